# SPDX-License-Identifier: GPL-2.0
"""Consoles: QEMU writes them to files; this module finds the kernels' complaints in them."""

import dataclasses
import pathlib
import re
import time

# What a healthy kernel never prints. The patterns follow the kernel's wording, so that a test may log the word
# "warning". Time stamp and caller id are stripped before matching.
_COMPLAINTS = re.compile(r"""
      BUG:                                  # oopses, KASAN, "sleeping function", "soft lockup", "scheduling while atomic"
    | BUG\ \S+\ .*:                          # what SLUB found: "BUG kmalloc-64 (Not tainted): Poison overwritten"
    | WARNING:
    | Oops[:\ ]
    | general\ protection\ fault
    | double\ fault
    | invalid\ opcode:
    | kernel\ BUG\ at
    | Kernel\ panic
    | UBSAN:
    | KASAN:
    | KFENCE:
    | KCSAN:
    | .*possible\ (circular|recursive|irq\ lock|deadlock)
    | .*(inconsistent\ lock\ state|suspicious\ RCU\ usage|lock\ held\ when\ returning|bad\ unlock\ balance)
    | .*(lock|locks)\ still\ held
    | .*held\ lock\ freed
    | .*(detected\ stalls?|self-detected\ stall)
    | .*rcu_\w+\ kthread\ (starved|timer\ wakeup)
    | watchdog:\ .*(lockup|stuck)
    | INFO:\ task\ .*blocked\ for\ more\ than
    | workqueue\ lockup
    | .*workqueue\ lockup
    | ODEBUG:
    | .*refcount_t:
    | .*unregister_netdevice:\ waiting
    | .*Bad\ (page\ state|rss-counter|swap)
    | kmemleak:\ .*(\d+\ new\ suspected|Cannot|Kernel\ memory\ leak\ detector\ disabled)
    | .*(Slab\ corruption|Object\ already\ free|Redzone|Poison\ overwritten|Right\ Redzone|Objects\ remaining)
    | list_(add|del)\ corruption
    | .*page\ allocation\ failure
    | .*invoked\ oom-killer
    | Out\ of\ memory:
    | .*percpu\ ref\ .*<=\ 0
    | .*unchecked\ MSR\ access
    | .*nobody\ cared
    | NETDEV\ WATCHDOG
    | .*leaked\ \S+\ objects
""", re.VERBOSE)

_STAMP = re.compile(r"^(<\d+>)?\[ *\d+\.\d+\](\[ *[TC]\d+\])? ")

# After a lost packet Soft-RoCE may take a packet of a read for an error. LITE then repeats the read: decisions.rst.
_KNOWN = re.compile(r"WARNING: .* at drivers/infiniband/sw/rxe/rxe_comp\.c:\d+ rxe_completer\+")

# At most this many lines of a complaint are quoted; fewer if it visibly ends earlier.
_EXCERPT = 70
_END = re.compile(r"---\[ end |</TASK>$|={60,}$")


@dataclasses.dataclass
class Complaint:
    """What a node's kernel said: the line that matched, and those after it."""
    node: str
    line: str
    excerpt: str
    log: pathlib.Path

    def __str__(self):
        return f"the kernel of {self.node} complained ({self.log}):\n{self.excerpt}"


class Console:
    """The log of a node's console, over all its boots."""

    def __init__(self, node, path):
        self.node = node
        self.path = pathlib.Path(path)
        self._seen = 0
        self._expected = []  # [pattern, from, to]: the positions in the log between which it is valid

    def text(self):
        """The log so far. A byte is a character (Latin-1), so that positions stay valid when the log grows."""
        return self.path.read_bytes().decode("latin-1") if self.path.exists() else ""

    def tail(self, lines=40):
        """The last lines, for an error message."""
        return "\n".join(self.text().splitlines()[-lines:])

    def mark(self, text):
        """Appends a line of the harness to the log, to which QEMU appends, too."""
        with open(self.path, "a", encoding="utf-8") as log:
            log.write(f"\n=== {text}\n")

    def wait_for(self, pattern, timeout=5, since=0):
        """Waits until the regular expression matches something after position `since`; returns whether it has."""
        deadline = time.monotonic() + timeout
        wanted = re.compile(pattern)
        while not wanted.search(self.text(), since):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)  # polls, because a file has no event to wait for
        return True

    def expect(self, pattern):
        """From now on, a complaint is allowed if its excerpt matches the regular expression. Returns a handle."""
        entry = [re.compile(pattern), len(self.text()), None]
        self._expected.append(entry)
        return entry

    def unexpect(self, entry):
        """Ends an expect()."""
        entry[2] = len(self.text())

    def complaints(self, forget=False):
        """The unexpected complaints since the last call with `forget`."""
        text = self.text()
        at, found, skip = self._seen, [], 0
        lines = text[at:].splitlines(keepends=True)
        for number, raw in enumerate(lines):
            start, at = at, at + len(raw)
            if number < skip or not _COMPLAINTS.match(_STAMP.sub("", raw)):
                continue
            skip = number + 1
            while skip < len(lines) and skip < number + _EXCERPT and not _END.search(lines[skip - 1].rstrip()):
                skip += 1
            excerpt = "".join(lines[number:skip]).replace("\r", "")
            if not _KNOWN.search(excerpt) and not any(
                    pattern.search(excerpt) and begin <= start and (end is None or start < end)
                    for pattern, begin, end in self._expected):
                found.append(Complaint(self.node, _STAMP.sub("", raw).rstrip(), excerpt, self.path))
        if forget:
            self._seen = text.rfind("\n") + 1
        return found
