# SPDX-License-Identifier: GPL-2.0
"""The frequency of the host's time stamp counter, which emulated machines see as theirs.

A guest that measures it on a busy host, against timers that fire late, may compute a multiple or a fraction of it. Its
time then runs fast or slow until it reboots: 26 times too fast was seen with the PIT, several times with the HPET.
"""

import ctypes
import functools
import mmap
import platform
import time

_RDTSC = bytes.fromhex("0f31" "48c1e220" "4809d0" "c3")  # rdtsc; shl $32,%rdx; or %rdx,%rax; ret
_SECONDS = 0.1
_TRIES = 50


@functools.cache
def khz():
    """The frequency in kHz, or None if it cannot be measured."""
    if platform.machine() != "x86_64":
        return None
    try:
        return _measure()
    except OSError:  # the host forbids memory that is writable and executable
        return None


def _measure():
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as code:
        code.write(_RDTSC)
        entry = ctypes.c_char.from_buffer(code)
        read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(entry))
        first = _at_once(read)
        time.sleep(_SECONDS)  # longer does no harm: both clocks are read afterwards
        last = _at_once(read)
        del read, entry
    return round((last[1] - first[1]) * 1_000_000 / (last[0] - first[0]))


def _at_once(read):
    """(ns, ticks) of the same moment: the pair that took the shortest time of several tries."""
    best = None
    for _ in range(_TRIES):
        begun, ticks, ended = time.monotonic_ns(), read(), time.monotonic_ns()
        if best is None or ended - begun < best[0]:
            best = (ended - begun, (begun + ended) // 2, ticks)
    return best[1:]
