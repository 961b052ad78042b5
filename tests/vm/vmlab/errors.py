# SPDX-License-Identifier: GPL-2.0
"""The errors that a test may see."""


class LabError(Exception):
    """The harness itself could not do what the test asked for."""


class NodeDied(LabError):
    """The virtual machine has ended (crash, panic, power off) although the test still needs it."""


class CommandFailed(LabError):
    """A command in a guest failed, or did not end in time. `result` is what is known of its result."""

    def __init__(self, node, command, result, why):
        self.node, self.command, self.result = node, command, result
        super().__init__(f"{node}: {why}: {command}{_quote('stdout', result.out)}{_quote('stderr', result.err)}")


class CommandTimeout(CommandFailed):
    """A command did not end in time. Node.run() has killed it; the console has the kernel's list of blocked tasks."""


class ComplaintError(LabError):
    """A guest's kernel complained. `complaints` is a list of Complaint."""

    def __init__(self, complaints):
        self.complaints = complaints
        super().__init__("\n\n".join(str(c) for c in complaints))


class Skip(Exception):
    """Raised by a test that does not apply here."""


def _quote(title, text, limit=16384):
    if not text:
        return ""
    if len(text) > limit:
        text = f"[{len(text) - limit} characters omitted]\n{text[-limit:]}"
    return f"\n--- {title}\n{text.rstrip()}"
