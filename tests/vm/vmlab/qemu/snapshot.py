# SPDX-License-Identifier: GPL-2.0
"""Machines that are saved when they have booted, before they are any particular node, and start from there again.

An emulated machine takes five times as long to boot as to start from there; a suite starts some two hundred. Saved machines are
in the cache. They are told apart by all that the guest can see, and are forgotten when the host boots: the frequency of
its time stamp counter is the guest's.
"""

import contextlib
import hashlib
import os
import pathlib
import shutil
import tempfile
import time

from ..errors import LabError
from ..kernel import cache_dir

_KEEP = 8


class Snapshot:
    """One saved machine, which may not be there yet. `sees` is what tells it apart, as strings."""

    def __init__(self, *sees):
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text()
        qemu = os.stat(shutil.which("qemu-system-x86_64") or "/").st_mtime_ns
        # A changed file of the harness may mean other devices.
        code = b"".join(path.read_bytes() for path in sorted(pathlib.Path(__file__).parents[1].rglob("*.py")))
        key = hashlib.sha256(repr((boot, qemu, sees)).encode() + code).hexdigest()[:16]
        self._path = cache_dir() / "vm" / f"booted-{key}"

    @contextlib.contextmanager
    def opened(self):
        """The file, as a descriptor for `-incoming fd:N`, or None if the machine has not been saved. QEMU then waits for
        resume()."""
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            yield None
            return
        os.utime(fd)
        try:
            yield fd
        finally:
            os.close(fd)

    def save(self, monitor):
        """Saves a machine that runs, which goes on afterwards. Raises LabError if QEMU cannot do it."""
        fd, partial = tempfile.mkstemp(dir=self._path.parent, prefix="booting-")
        os.close(fd)
        try:
            monitor.command("stop")
            monitor.command("migrate", uri=f"exec:cat >{partial}")
            while (status := monitor.command("query-migrate")["status"]) not in ("completed", "failed"):
                time.sleep(0.02)
            if status != "completed":
                raise LabError(f"QEMU cannot save the machine: {status}")
            os.rename(partial, self._path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(partial)
            monitor.command("cont")
        self._forget_others()

    def remove(self):
        """Forgets the saved machine."""
        self._path.unlink(missing_ok=True)

    def _forget_others(self):
        # Also what runs that were killed have left half-saved.
        known = sorted(self._path.parent.glob("boot*-*"), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in known[_KEEP:]:
            path.unlink(missing_ok=True)


def resume(monitor):
    """Lets a machine that was saved go on, if QEMU has read it. Returns whether it runs."""
    if monitor.command("query-status")["status"] == "inmigrate":
        return False
    monitor.command("cont")
    return True
