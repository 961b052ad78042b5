# SPDX-License-Identifier: GPL-2.0
"""What this host has room for."""

import os
import pathlib
import re


def at_a_time(mb):
    """How many jobs may run at a time, at least 1, if each takes a processor and `mb` MB of memory: as many as the host
    has room for and as the (v2) cgroups of this process allow."""
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
    return max(1, min(processors, memory // (mb << 20)))
