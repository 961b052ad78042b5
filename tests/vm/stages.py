# SPDX-License-Identifier: MIT
"""Assigns each instruction of an operation to a stage of it.

The instructions come from a trace (vmlab.trace), which costs the guest nothing. The stages follow from the names of
LITE's functions, of which addr2line also finds those that the compiler has inlined.
"""

import collections
import itertools
import re
import subprocess

from vmlab.errors import LabError

# From the system call to the device and back. "device" is what raw verbs cost, too: posting, device, polling.
STAGES = ("enter", "look-up", "check", "translate", "post", "device", "complete", "return")

# Any other function of LITE belongs to the stage of its caller. After the completion, functions of the first four stages
# belong to "return".
_FUNCTIONS = {
    "enter": ("lite_ioctl", "lite_ioctl_op", "lite_op_run", "lite_transfer", "lite_atomic"),
    "look-up": ("lite_access_try",),
    "check": ("lite_tryenter_range", "lite_tryenter_at", "lite_bounds_check", "lite_atomic_check", "lite_atomic_check_entered"),
    "translate": ("lite_piece", "lite_piece_entered", "lite_piece_small", "lite_piece_put", "lite_atomic_try", "lite_atomic_run",
                  "lite_devop_run", "lite_devop_conn"),
    "post": ("lite_devop_wr", "lite_qp_post", "lite_rdma_wr", "lite_atomic_wr", "lite_io_init"),
    "complete": ("lite_io_wait", "lite_cq_poll"),
}
_STAGE_OF = {name: stage for stage, names in _FUNCTIONS.items() for name in names}
_BEFORE = STAGES[:4]

# The stage "device" begins with a function of the driver or, on 6.1, with the end of a section without softirqs.
_DEVICE_MODULES = ("rdma_rxe", "ib_core")
_DEVICE_FUNCTIONS = ("__local_bh_enable_ip",)


class Inlined:
    """The functions that an address of a module is in: the innermost first."""

    def __init__(self, path, text):
        self._path, self._text = path, text
        self._known = {}

    def learn(self, addresses):
        """Looks up many addresses at once, because addr2line takes a while to start."""
        wanted = sorted(set(addresses) - self._known.keys())
        if not wanted:
            return
        words = "\n".join(f"{address - self._text:#x}" for address in wanted)
        out = subprocess.run(["addr2line", "-a", "-f", "-i", "-j", ".text", "-e", self._path], input=words, text=True,
                             stdout=subprocess.PIPE, check=True).stdout
        # One group per address: the address, then a name and a place for each inlined function.
        groups = re.split("^0x", out, flags=re.MULTILINE)[1:]
        if len(groups) != len(wanted):
            raise LabError(f"addr2line knows {len(groups)} of {len(wanted)} addresses of {self._path}")
        for address, group in zip(wanted, groups):
            self._known[address] = tuple(group.splitlines()[1::2])

    def __getitem__(self, address):
        return self._known[address]

    def functions(self):
        """All functions found so far."""
        return set(itertools.chain.from_iterable(self._known.values()))


def unknown(inlined):
    """The functions in the table above to which no instruction belonged: they were renamed, or are gone."""
    return sorted(_STAGE_OF.keys() - inlined.functions())


def split(addresses, begin):
    """The instructions between successive executions of an address, as lists."""
    at = [i for i, address in enumerate(addresses) if address == begin]
    return [addresses[first:last] for first, last in itertools.pairwise(at)]


def attribute(operation, symbols, inlined):
    """[(stage, function, is LITE's)] of each instruction of an operation."""
    places = [symbols.at(address) for address in operation]
    inlined.learn(address for address, (_, module, _) in zip(operation, places) if module == "lite")
    found = []
    stage, completing, in_lite, in_device = "enter", False, False, False
    for address, (name, module, _) in zip(operation, places):
        if module == "lite":
            functions = inlined[address]
            known = next((_STAGE_OF[function] for function in functions if function in _STAGE_OF), stage)
            completing = completing or known == "complete"
            stage = "return" if completing and known in _BEFORE else known
            in_lite = True
            found.append((stage, functions[0], True))
            continue
        if in_lite:
            in_device = module in _DEVICE_MODULES or name in _DEVICE_FUNCTIONS
            in_lite = False
        found.append(("device" if in_device else stage, name, False))
    return found


def sums(attributed):
    """{stage: instructions}."""
    counts = collections.Counter(stage for stage, _, _ in attributed)
    return {stage: counts[stage] for stage in STAGES}


def profile_text(attributed):
    """The functions that an operation's instructions belong to, by stage: LITE's, and what these call."""
    counts = collections.Counter()
    caller = "system call"
    for stage, function, own in attributed:
        if own:
            caller = function
        if stage != "device":
            counts[stage, caller if own else f"{caller} > {function}"] += 1
    total = sums(attributed)
    lines = []
    for stage in STAGES:
        lines.append(f"  {total[stage]:>6} {stage}")
        lines += [f"  {count:>13} {function}" for (of, function), count in counts.most_common() if of == stage]
    return "\n".join(lines)
