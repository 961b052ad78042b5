# SPDX-License-Identifier: MIT
"""What small operations cost in instructions, beside their budgets. See budgets.py, and tests/vm/instructions for a person."""

import copy

import budgets
from vmlab.testing import vmtest

# Between two executions of an address, and between two looks at the clock, are not quite the same instructions.
_ENDS = 20


@vmtest(nodes=1, kernels=(budgets.KERNEL,), icount=True)
def test_within_the_budgets(lab):
    """Counted by the clock and in a trace: both say the same, and it is not above the budgets."""
    figures, table = budgets.Meter(lab.n1).measure(), budgets.load()
    for line in budgets.verdicts_text(figures, table).splitlines():
        print(f"      {line}")
    for operation, stages in figures["stages"].items():
        by_clock = figures["operations"]["lite"][operation]
        assert abs(sum(stages.values()) - by_clock) <= _ENDS, f"{operation}: {stages} are not {by_clock}"
    over = [verdict for verdict in budgets.compare(figures, table) if verdict.over]
    assert not over, "; ".join(f"{verdict.what}: {verdict.count}, {verdict.text()}" for verdict in over)


def _dearer(table, factor):
    """Figures of a machine where what LITE adds to a read of liblite's is so much more."""
    figures = copy.deepcopy(table)
    figures["operations"]["lite"]["read"] += round(budgets.above(table)["lite read"] * factor)
    return figures


@vmtest(nodes=1, kernels=(budgets.KERNEL,), icount=True)
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
