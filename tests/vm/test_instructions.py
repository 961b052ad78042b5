# SPDX-License-Identifier: MIT
"""What small operations cost in instructions, beside their budgets. See budgets.py, and tests/vm/instructions for a person."""

import copy

import budgets
from vmlab.testing import vmtest


@vmtest(nodes=1, kernels=(budgets.KERNEL,), icount=True, kernel_args=budgets.KERNEL_ARGS)
def test_within_the_budgets(lab):
    """By the clock and in a trace, which must say the same: see budgets.Meter."""
    meter, table = budgets.Meter(lab.n1), budgets.load()
    figures = meter.measure()
    for line in budgets.report_text(figures, table).splitlines():
        print(f"      {line}".rstrip())
    assert not meter.stale(), f"stages.py: no operation goes through {meter.stale()}"
    over = [verdict for verdict in budgets.compare(figures, table) if verdict.over]
    assert not over, "; ".join(f"{verdict.what}: {verdict.count}, {verdict.text()}" for verdict in over)


def _dearer(table, factor):
    """Figures of a machine where what LITE adds to a read of liblite's is so much more."""
    figures = copy.deepcopy(table)
    figures["operations"]["lite"]["read"] += round(budgets.above(table)["lite read"] * factor)
    return figures


@vmtest(nodes=1, kernels=(budgets.KERNEL,), icount=True, kernel_args=budgets.KERNEL_ARGS)
def test_what_is_dearer_is_seen(_lab):
    """Of the comparison: where the table was made, 3 % are; elsewhere, 11 %."""
    table = budgets.load()

    def over(figures):
        return [verdict.what for verdict in budgets.compare(figures, table) if verdict.over]

    assert not over(table) and not over(_dearer(table, 0.01)) and not over(_dearer(table, -0.03))
    assert over(_dearer(table, 0.03)) == ["lite read above raw"]
    for factor, wanted in ((0.03, []), (0.11, ["lite read above raw"])):
        figures = _dearer(table, factor)
        figures["where"]["kernel"] = "another"
        assert over(figures) == wanted, factor
