# SPDX-License-Identifier: GPL-2.0
"""Asks kmemleak for leaks, and filters out known false reports."""

import re

from .errors import LabError

# Reports with a back trace that matches one of these patterns are ignored: for allocations of the stock kernel, at boot
# or in rxe, that kmemleak takes for leaks. Each entry needs a reason, and must not be what a test can cause.
_KNOWN = ()

_REPORT = re.compile(r"^unreferenced object", re.MULTILINE)


def scan(node):
    """Raises LabError with all reports that are not known.

    kmemleak reports an object only if a scan has found no reference to it and the next one finds it unchanged: hence
    two scans. Objects that RCU frees in the meantime disappear by themselves.
    """
    for _ in range(2):
        node.run("echo scan >/sys/kernel/debug/kmemleak", timeout=60)
    # Objects younger than five seconds are never reported: another scan, when they are older.
    node.run("sleep 5; echo scan >/sys/kernel/debug/kmemleak", timeout=60)
    reports = [f"unreferenced object{text}" for text in _REPORT.split(node.read("/sys/kernel/debug/kmemleak"))[1:]]
    leaks = [report for report in reports if not any(re.search(pattern, report) for pattern in _KNOWN)]
    if leaks:
        raise LabError(f"{node}: kmemleak found {len(leaks)} leaks:\n" + "\n".join(leaks[:20]))
