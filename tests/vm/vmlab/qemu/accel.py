# SPDX-License-Identifier: GPL-2.0
"""KVM, if it works here, or else emulation.

/dev/kvm may exist, be accessible, and yet hang every stock kernel (with incomplete nested virtualisation). So the harness
starts one machine, once per boot of the host, and uses KVM only if the machine's agent answers quickly.
"""

import functools
import os
import pathlib

from ..errors import LabError
from ..kernel import cache_dir, write_atomically

# With ERMS and FSRM the guest would copy and clear by "rep movsb" and "rep stosb", which TCG executes byte by byte.
# Without them the kernel copies eight bytes at a time, and boots in a quarter less time.
TCG = ("-accel", "tcg,thread=multi", "-cpu", "max,erms=off,fsrm=off")
ICOUNT = ("-accel", "tcg,thread=single", "-cpu", "max", "-icount", "shift=0,sleep=off")
# With icount an instruction takes a nanosecond, and the time stamp counter ticks once.
ICOUNT_KHZ = 1_000_000
KVM = ("-accel", "kvm", "-cpu", "host")

PROBE_SECONDS = 6


def options(kernel):
    """QEMU's options for the accelerator: the one that LITE_ACCEL (kvm, tcg) names, else KVM if it works."""
    choice = os.environ.get("LITE_ACCEL") or ("kvm" if _kvm_works(kernel) else "tcg")
    if choice not in ("kvm", "tcg"):
        raise LabError(f"LITE_ACCEL must be kvm or tcg, not {choice!r}")
    return KVM if choice == "kvm" else TCG


@functools.cache
def _kvm_works(kernel):
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    known = cache_dir() / "vm" / "kvm-works"
    try:
        boot_then, answer = known.read_text().split()
        if boot_then == boot:
            return answer == "yes"
    except (OSError, ValueError):
        pass
    works = _probe(kernel)
    write_atomically(known, f"{boot} {'yes' if works else 'no'}\n".encode())
    return works


def _probe(kernel):
    from ..node import boots_with  # pylint: disable=import-outside-toplevel  # node needs our options
    return boots_with(kernel, KVM, PROBE_SECONDS)
