# SPDX-License-Identifier: MIT
"""What small operations cost in instructions, beside their budgets. See budgets.py; tests/vm/instructions prints the
figures."""

import copy

import budgets
from vmlab.testing import vmtest


@vmtest(nodes=1, kernels=(budgets.KERNEL,), icount=True, kernel_args=budgets.KERNEL_ARGS)
def test_within_the_budgets(lab):
    """The counts by the clock and those in a trace, which must agree: see budgets.Meter."""
    meter, table = budgets.Meter(lab.n1), budgets.load()
    figures = meter.measure()
    for line in budgets.report_text(figures, table).splitlines():
        print(f"      {line}".rstrip())
    assert not meter.stale(), f"stages.py: no operation goes through {meter.stale()}"
    over = [verdict for verdict in budgets.compare(figures, table) if verdict.over]
    assert not over, "; ".join(f"{verdict.what}: {verdict.count}, {verdict.text()}" for verdict in over)


@vmtest(nodes=1, fresh=True, kernels=(budgets.KERNEL,), icount=True, kernel_args=budgets.KERNEL_ARGS)
def test_scheduling_costs_at_most_two_percent(lab):
    """Where nothing waits, an operation passes the scheduler by."""
    meter = budgets.Meter(lab.n1)
    without = meter.medians()
    meter.schedule("fair")
    fair = meter.medians()
    for arm in ("kernel-lite", "lite"):
        for operation, count in without[arm].items():
            print(f"      {arm} {operation}: {count} in mode none, {fair[arm][operation]} in mode fair")
            assert fair[arm][operation] <= 1.02 * count


def _dearer(table, factor):
    """Figures of a machine on which what LITE adds to a read of liblite's is larger by this factor."""
    figures = copy.deepcopy(table)
    figures["operations"]["lite"]["read"] += round(budgets.above(table)["lite read"] * factor)
    return figures


@vmtest(nodes=1, kernels=(budgets.KERNEL,), icount=True, kernel_args=budgets.KERNEL_ARGS)
def test_what_is_dearer_is_seen(_lab):
    """Tests the comparison: 3 % count as too much where the table was made; elsewhere, 11 % do."""
    table = budgets.load()

    def over(figures):
        return [verdict.what for verdict in budgets.compare(figures, table) if verdict.over]

    assert not over(table) and not over(_dearer(table, 0.01)) and not over(_dearer(table, -0.03))
    assert over(_dearer(table, 0.03)) == ["lite read above raw"]
    for factor, wanted in ((0.03, []), (0.11, ["lite read above raw"])):
        figures = _dearer(table, factor)
        figures["where"]["kernel"] = "another"
        assert over(figures) == wanted, factor
