# SPDX-License-Identifier: GPL-2.0
"""Records every instruction that a node executes: QEMU translates one at a time, and logs what it executes. With
Cluster's icount this changes nothing for the guest, because the guest's clock counts instructions.
"""

import bisect
import re
import time

from .errors import LabError

_SECONDS = 60
_BYTES = 80  # at least that many are in a line of the log

# "Trace 0: 0x7f... [cs base/pc/flags/flags] symbol"
_EXECUTED = re.compile(r"Trace \d+: \S+ \[[0-9a-f]+/([0-9a-f]+)/")
# The instruction logged last was not executed: an interrupt came first.
_NOT_EXECUTED = "Stopped execution of TB chain before"


def record(node, instructions):
    """The addresses of the next instructions, at least this many, that a node with one CPU executes, in order."""
    path = node.console.path.with_name(f"trace-{node.name}.log")
    path.unlink(missing_ok=True)
    # QEMU 8.1 renamed this option.
    one_by_one = "singlestep" if "unknown" in node.monitor("help one-insn-per-tb") else "one-insn-per-tb"
    node.pause()
    try:
        _tell(node, f"{one_by_one} on", f"logfile {path}", "log exec,nochain")
        node.resume()
        _wait_size(node, path, instructions * _BYTES)
    finally:
        if not node.paused:
            node.pause()
        _tell(node, "log none", f"{one_by_one} off")
        node.resume()
    found = _parse(path)
    path.unlink()
    return found


def _tell(node, *commands):
    for command in commands:
        answer = node.monitor(command)
        if answer:
            raise LabError(f"{node}: QEMU's answer to {command}: {answer}")


def _wait_size(node, path, size):
    deadline = time.monotonic() + _SECONDS * node.patience
    while not path.exists() or path.stat().st_size < size:
        if time.monotonic() > deadline:
            raise LabError(f"{node}: no {size} bytes of log in {_SECONDS * node.patience} s")
        time.sleep(0.02)


def _parse(path):
    addresses = []
    with open(path, encoding="ascii", errors="replace") as file:
        for line in file:
            match = _EXECUTED.match(line)
            if match:
                addresses.append(int(match[1], 16))
            elif line.startswith(_NOT_EXECUTED):
                addresses.pop()
    return addresses


class Symbols:
    """The functions of a node's kernel and of its loaded modules."""

    def __init__(self, node):
        entries = []
        for line in node.run("cat /proc/kallsyms", timeout=60).out.splitlines():
            words = line.split()
            if words[1] in "tTwW":
                entries.append((int(words[0], 16), words[2], words[3].strip("[]") if len(words) > 3 else ""))
        entries.sort()
        self._starts = [entry[0] for entry in entries]
        self._entries = entries

    def at(self, address):
        """(name, module, start) of the function that an instruction is in; the module is "" for the kernel itself."""
        if address < self._starts[0]:
            return "user", "user", 0
        start, name, module = self._entries[bisect.bisect_right(self._starts, address) - 1]
        return name, module, start
