# SPDX-License-Identifier: GPL-2.0
"""What this host has room for."""

import os
import pathlib
import re
import time


def at_a_time(mb, each=1.0):
    """How many jobs may run at a time, at least 1, if each takes `each` processors and `mb` MB of memory: as many as the
    host has room for and as the (v2) cgroups of this process allow."""
    processors = len(os.sched_getaffinity(0))
    memory = int(re.search(r"MemAvailable: +(\d+)", pathlib.Path("/proc/meminfo").read_text())[1]) << 10
    own = re.search(r"^0::/(.*)", pathlib.Path("/proc/self/cgroup").read_text(), re.M)
    inner = pathlib.Path("/sys/fs/cgroup", own[1] if own else "")
    for cgroup in (inner, *inner.parents):
        if (cgroup / "cpu.max").exists():
            quota, period = (cgroup / "cpu.max").read_text().split()
            processors = processors if quota == "max" else min(processors, int(quota) // int(period))
        if (cgroup / "memory.max").exists():
            most = (cgroup / "memory.max").read_text().strip()
            memory = memory if most == "max" else min(memory, int(most))
    return max(1, min(int(processors / each), memory // (mb << 20)))


def _busy_seconds():
    """Processor time of the host that was used, or that another host took, since it was booted."""
    user, nice, system, _, _, irq, softirq, steal = map(int, pathlib.Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


class Share:
    """What other programs leave of the host to these nodes' machines from now on."""

    def __init__(self, nodes):
        self._nodes = nodes
        self._since = time.monotonic()
        self._seconds = self._others()

    def _others(self):
        return _busy_seconds() - sum(node.cpu_seconds() for node in self._nodes)

    def processors(self):
        """How many processors, on average."""
        taken = (self._others() - self._seconds) / (time.monotonic() - self._since)
        return len(os.sched_getaffinity(0)) - taken
