# SPDX-License-Identifier: MIT
"""What small operations cost in instructions, and what they may cost: instructions.json, the table of budgets.

They are measured in one machine that counts instructions instead of time (Cluster's icount) and talks to itself. A
count is the same in every run until the kernel, the compiler or LITE changes. Then `tests/vm/instructions --write`
rewrites the table, in the commit that changes it.
"""

import dataclasses
import json
import pathlib
import re
import subprocess

import litelab
import stages
from vmlab import ROOT, LabError, trace

PAGE = ROOT / "Documentation/performance.rst"
TABLE = pathlib.Path(__file__).with_name("instructions.json")
KERNEL = "6.1"  # the table's: on later kernels other threads do the work, and counts vary
OPERATIONS = ("read", "write", "fetch-add")
_ARMS = ("raw", "kernel-lite", "lite")
_LAYERS = _ARMS[1:]

# The figures in the page stand between these two lines.
_BEGIN = ".. Instructions: `tests/vm/instructions --write` replaces what follows, up to the end of them."
_END = ".. End of the instructions."

# The harness switches AppArmor off. Debian's kernels then use SELinux, with which system calls cost more than normally.
KERNEL_ARGS = ("apparmor=1",)

_TOOLS = ("litectl", "lite-perf", "instructions")
# Soft-RoCE allocates for each packet. Freeing is 284 instructions cheaper if the object is of the slab from which the
# processor allocates at the moment, which depends on earlier allocations, and stays so while a process runs. So several
# processes take turns, and the lowest median counts.
_PROCESSES = 5
# Instructions in a trace: a dozen operations. If none takes as many as the measured median, another process is traced.
_TRACED = 200_000
_TRACES = 20
# From one execution of an address to the next a trace has a few instructions more than the clock counts.
_ENDS = 10

# A figure may exceed its budget by this much. In another environment than the table's only what LITE adds is compared.
_TOLERANCE = 0.02
_TOLERANCE_ELSEWHERE = 0.10
# At most so much do a read and a write of liblite cost above raw verbs: that is promised.
_PROMISE = {"read": 1200, "write": 1100}
# A few instructions are always tolerated: in a small stage they would be a large percentage.
_SLACK = 4


class Meter:
    """A freshly booted machine that counts instructions, with two nodes of LITE and a server of native verbs."""

    def __init__(self, node):
        litelab.install(node, _TOOLS)
        litelab.load(node)
        node.insmod(litelab.module_path(node, "kperf"))
        self._node = node
        self._lites = litelab.in_one_machine(node, 2)
        self._module = ROOT / f"build/kernel-{node.kernel.release}/kernel/lite.ko"  # with its debug information
        self._symbols = trace.Symbols(node)
        self._inlined = stages.Inlined(self._module, int(node.read("/sys/module/lite/sections/.text"), 16))

    def measure(self):
        """The costs, and the environment in which they were measured, in the form of the table."""
        operations = self.medians()
        counts = {operation: stages.sums(self.profile(operation, operations["lite"][operation])) for operation in OPERATIONS}
        return {"where": self._where(), "operations": operations, "stages": counts}

    def profile(self, operation, instructions):
        """stages.attribute() of an operation of liblite that takes this many instructions by the clock."""
        lengths = set()
        for _ in range(_TRACES):
            for traced in self._trace(operation):
                if abs(len(traced) - instructions) <= _ENDS:
                    return stages.attribute(traced, self._symbols, self._inlined)
                lengths.add(len(traced))
        raise LabError(f"no {operation} takes {instructions} instructions in a trace, but {sorted(lengths)}")

    def _trace(self, operation):
        program = self._node.spawn(self._program("loop", operation))
        try:
            program.wait_output("\n")
            return stages.split(trace.record(self._node, _TRACED), int(program.out, 16))
        finally:
            program.kill()
            program.wait(10)

    def schedule(self, mode):
        """Sets the scheduling mode (litectl qos) of the node that posts the operations."""
        self._node.run(f"litectl qos set --mode {mode} -i {self._lites[0].index}")

    def stale(self):
        """After measure(): the functions named in stages.py that no operation executes any more."""
        return stages.unknown(self._inlined)

    def _program(self, *words):
        first, second = self._lites
        return [litelab.program_path("instructions"), str(first.index), str(second.id), *words]

    def medians(self):
        """{arm: {operation: instructions}}."""
        address = self._lites[1].address
        server = self._node.run(f"lite-perf serve --background --bind {address} --arms verbs").out
        try:
            runs = [self._node.run(self._program(address), timeout=60).out for _ in range(_PROCESSES)]
        finally:
            self._node.run(["kill", server.split()[-1]])
        figures = {arm: {} for arm in ("ioctl", *_ARMS)}
        for arm, operation, count in (line.split() for out in runs for line in out.splitlines()):
            figures[arm][operation] = min(int(count), figures[arm].get(operation, int(count)))
        return figures

    def _where(self):
        said = subprocess.run(["qemu-system-x86_64", "--version"], check=True, text=True, stdout=subprocess.PIPE).stdout
        release, built = self._node.run("uname -rv").out.strip().split(" ", 1)
        return {"kernel": f"{release} ({built.split(' ')[-2]})",
                "QEMU": re.search(r"version (\d+\.\d+)", said)[1],
                "module compiler": _compiler(self._module),
                "library compiler": _compiler(litelab.USER_BUILD / "tests/vm/programs/instructions")}


def _compiler(path):
    said = subprocess.run(["readelf", "-p", ".comment", path], check=True, text=True, stdout=subprocess.PIPE).stdout
    return re.search(r"\]\s+(.*\S)", said)[1]


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A figure beside its budget."""
    what: str
    count: int
    budget: int
    tolerance: float

    def _allowed(self):
        return max(self.budget * self.tolerance, _SLACK)

    @property
    def over(self):
        """Whether it costs too much."""
        return self.count > self.budget + self._allowed()

    @property
    def under(self):
        """Whether it costs so little that the budget should be lowered."""
        return self.count < self.budget - self._allowed()

    def text(self):
        """"as budgeted", "OVER its budget by +61 (+4.5 %)", "below its budget: -40 (-3.0 %)"."""
        if not self.over and not self.under:
            return "as budgeted"
        by = f"{self.count - self.budget:+} ({100 * (self.count / self.budget - 1):+.1f} %)" if self.budget else f"{self.count:+}"
        return f"OVER its budget by {by}" if self.over else f"below its budget: {by}"


def above(figures):
    """{"lite read": instructions, ...}: what LITE adds to raw verbs."""
    operations = figures["operations"]
    return {f"{arm} {operation}": operations[arm][operation] - operations["raw"][operation]
            for arm in _LAYERS for operation in OPERATIONS}


def _all(figures):
    found = {f"{arm} {operation}": count for arm in ("ioctl", "raw") for operation, count in figures["operations"][arm].items()}
    found |= {f"{what} above raw": count for what, count in above(figures).items()}
    found |= {f"lite {operation}: {stage}": count for operation, counts in figures["stages"].items()
              for stage, count in counts.items()}
    return found


def load(path=TABLE):
    """Reads figures from a file, or from the table."""
    return json.loads(path.read_text())


def save(figures, path):
    """Writes figures to a file."""
    path.write_text(json.dumps(figures, indent=1) + "\n")


def make_budgets(figures):
    """Writes these figures into the table and into the page."""
    page = PAGE.read_text()
    begin, end = page.index(_BEGIN) + len(_BEGIN), page.index(_END)
    PAGE.write_text(f"{page[:begin]}\n\n{_page_text(figures)}\n{page[end:]}")
    save(figures, TABLE)


def elsewhere(figures, table):
    """The properties of the environment that differ between these figures and the table."""
    return [name for name, value in table["where"].items() if figures["where"].get(name) != value]


def compare(figures, table):
    """The verdicts on the figures; in another environment than the table's only on what LITE adds."""
    if elsewhere(figures, table):
        found, budgets = above(figures), above(table)
        return [Verdict(f"{what} above raw", found[what], budgets[what], _TOLERANCE_ELSEWHERE) for what in budgets]
    found, budgets = _all(figures), _all(table)
    return [Verdict(what, found[what], budgets[what], _TOLERANCE) for what in budgets]


def _tables(figures):
    """[[title, read, write, fetch-add], [arm, figures...], ...]: what operations cost; and the same for the stages of
    liblite."""
    operations, added, counts = figures["operations"], above(figures), figures["stages"]
    costs = [["Instructions", *OPERATIONS]]
    costs += [[arm, *(str(operations[arm][operation]) for operation in OPERATIONS)] for arm in _ARMS]
    costs += [[f"{arm} above raw", *(str(added[f"{arm} {operation}"]) for operation in OPERATIONS)] for arm in _LAYERS]
    parts = [["Stages of lite", *OPERATIONS]]
    parts += [[stage, *(str(counts[operation][stage]) for operation in OPERATIONS)] for stage in stages.STAGES]
    return costs, parts


def _promise(figures):
    """The project's promises, and whether the figures keep them."""
    seen = {operation: above(figures)[f"lite {operation}"] for operation in _PROMISE}
    missed = {operation: f"missed by {100 * (count / _PROMISE[operation] - 1):.0f} %" if count > _PROMISE[operation] else "met"
              for operation, count in seen.items()}
    most = " and ".join(f"{count} for a {operation}" for operation, count in _PROMISE.items())
    text = ", ".join(f"{operation} {count} ({missed[operation]})" for operation, count in seen.items())
    return f"Promised: lite takes at most {most} above raw, the system call included. Seen: {text}."


def figures_text(figures):
    """The costs, for a terminal."""
    lines = []
    for table in _tables(figures):
        lines += [f"{row[0]:<22}" + "".join(f"{cell:>11}" for cell in row[1:]) for row in table] + [""]
    return "\n".join([*lines, f"A system call alone, an unknown ioctl(2): {_system_call(figures)}", _promise(figures)])


def report_text(figures, table):
    """The costs, and how they compare with the budgets, for a terminal."""
    verdicts = compare(figures, table)
    remarkable = [verdict for verdict in verdicts if verdict.over or verdict.under]
    lines = [figures_text(figures), "", *(f"{verdict.what}: {verdict.count}, {verdict.text()}" for verdict in remarkable)]
    if any(verdict.under for verdict in remarkable):
        lines.append("Lower the budgets: tests/vm/instructions --write")
    lines.append(f"{len(verdicts) - len(remarkable)} of {len(verdicts)} figures as budgeted, within {100 * verdicts[0].tolerance:.0f} %")
    different = elsewhere(figures, table)
    if different:
        lines.append(f"The budgets are from elsewhere ({', '.join(different)}): only what LITE adds to raw verbs was compared.")
    return "\n".join(lines) + "\n"


def _system_call(figures):
    return figures["operations"]["ioctl"]["unknown"]


def _page_text(figures):
    """reStructuredText."""
    where = figures["where"]
    lines = [f"Linux {where['kernel']}, modules by {where['module compiler']}, QEMU {where['QEMU']}.", ""]
    for table in _tables(figures):
        widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
        rule = " ".join("=" * width for width in widths)
        text = [" ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table]
        lines += [rule, text[0], rule, *text[1:], rule, ""]
    return "\n".join([*lines, f"A system call alone, an ``ioctl(2)`` that is none of LITE's, takes {_system_call(figures)}.",
                      _promise(figures), ""])
