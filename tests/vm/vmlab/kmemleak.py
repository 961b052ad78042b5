# SPDX-License-Identifier: GPL-2.0
"""Asking kmemleak for leaks, and knowing which ones are none."""

import re

from .errors import LabError

# Reports whose back trace matches one of these patterns are not ours: for allocations of the stock kernel, at boot or in
# rxe, that kmemleak takes for leaks. Each entry needs a reason; nothing belongs here that a test of ours can cause. There
# are none: the kernels that we build are clean.
_KNOWN = ()

_REPORT = re.compile(r"^unreferenced object", re.MULTILINE)


def scan(node):
    """Raises LabError with all reports that are not known.

    Two scans: an object is only reported if it had no reference in one and was not touched since, and is younger than
    five seconds at first; what is freed by RCU in the meantime disappears by itself.
    """
    for _ in range(2):
        node.run("echo scan >/sys/kernel/debug/kmemleak", timeout=60)
    # Objects younger than five seconds are never reported: let them age, then look once more.
    node.run("sleep 5; echo scan >/sys/kernel/debug/kmemleak", timeout=60)
    reports = [f"unreferenced object{text}" for text in _REPORT.split(node.read("/sys/kernel/debug/kmemleak"))[1:]]
    leaks = [report for report in reports if not any(re.search(pattern, report) for pattern in _KNOWN)]
    if leaks:
        raise LabError(f"{node}: kmemleak found {len(leaks)} leaks:\n" + "\n".join(leaks[:20]))
