# SPDX-License-Identifier: MIT
"""What small operations cost in instructions, beside their budgets (budgets.py). tests/vm/instructions prints it."""

import copy

import budgets
from vmlab.testing import vmtest


@vmtest(nodes=1, kernels=(budgets.KERNEL,), icount=True, kernel_args=budgets.KERNEL_ARGS)
def test_within_the_budgets(lab):
    """No figure exceeds its budget. Counts by the clock and those in a trace must agree: see budgets.Meter."""
    meter, table = budgets.Meter(lab.n1), budgets.load()
    figures = meter.measure()
    for line in budgets.report_text(figures, table).splitlines():
        print(f"      {line}".rstrip())
    assert not meter.stale(), f"stages.py: no operation goes through {meter.stale()}"
    over = [verdict for verdict in budgets.compare(figures, table) if verdict.over]
    assert not over, "; ".join(f"{verdict.what}: {verdict.count}, {verdict.text()}" for verdict in over)


@vmtest(nodes=1, fresh=True, kernels=(budgets.KERNEL,), icount=True, kernel_args=budgets.KERNEL_ARGS)
def test_scheduling_costs_at_most_two_percent(lab):
    """When nothing waits, an operation passes by the scheduler."""
    meter = budgets.Meter(lab.n1)
    without = meter.medians()
    meter.schedule("fair")
    fair = meter.medians()
    for arm in ("kernel-lite", "lite"):
        for operation, count in without[arm].items():
            print(f"      {arm} {operation}: {count} in mode none, {fair[arm][operation]} in mode fair")
            assert fair[arm][operation] <= 1.02 * count


def _dearer(table, factor):
    """The table, but LITE adds more, by this factor, to a read of liblite."""
    figures = copy.deepcopy(table)
    figures["operations"]["lite"]["read"] += round(budgets.above(table)["lite read"] * factor)
    return figures


@vmtest(nodes=1, kernels=(budgets.KERNEL,), icount=True, kernel_args=budgets.KERNEL_ARGS)
def test_what_is_dearer_is_seen(_lab):
    """The comparison finds 3 % too much in the table's environment, and 11 % elsewhere."""
    table = budgets.load()

    def over(figures):
        return [verdict.what for verdict in budgets.compare(figures, table) if verdict.over]

    assert not over(table) and not over(_dearer(table, 0.01)) and not over(_dearer(table, -0.03))
    assert over(_dearer(table, 0.03)) == ["lite read above raw"]
    for factor, wanted in ((0.03, []), (0.11, ["lite read above raw"])):
        figures = _dearer(table, factor)
        figures["where"]["kernel"] = "another"
        assert over(figures) == wanted, factor
