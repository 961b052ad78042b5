# SPDX-License-Identifier: GPL-2.0
"""The kernels that nodes run: gets them from scripts/kernel, and makes images that start quickly."""

import functools
import lzma
import os
import pathlib
import struct
import subprocess
import tempfile

from .errors import LabError

ROOT = pathlib.Path(__file__).resolve().parents[3]
KNOWN = ("6.1", "6.12", "debug", "debug2")

# How much longer everything takes than with a stock kernel. Every time-out is multiplied by this.
_SCALE = {"debug": 6, "debug2": 4}

# Every time-out is multiplied by this, too: tests give them for an idle host, and only to end what hangs.
PATIENCE = 3


def time_scale(name):
    """How much longer everything takes with that kernel."""
    return _SCALE.get(name, 1)


def cache_dir():
    """The directory for files that can be made again, the same as in scripts/common.sh."""
    base = os.environ.get("LITE_CACHE")
    if not base:
        base = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "lite")
    path = pathlib.Path(base)
    path.mkdir(parents=True, exist_ok=True)
    return path


class Kernel:
    """A bootable kernel. `name` is the tests' name for it, `release` what uname -r prints."""

    def __init__(self, name, answer):
        self.name = name
        self.release = answer["KVER"]
        self.bzimage = pathlib.Path(answer["KIMAGE"])
        self.modules = pathlib.Path(answer["KMODDIR"]) / "lib/modules" / self.release
        self.kbuild = pathlib.Path(answer["KBUILD"])
        self.time_scale = time_scale(name)
        self.patience = self.time_scale * PATIENCE
        self._config_path = pathlib.Path(answer["KCONFIG"])

    def __str__(self):
        return self.name

    @property
    def is_debug(self):
        """Whether this is a kernel with checkers, on which tests do less of everything."""
        return self.name.startswith("debug")

    @functools.cached_property
    def config(self):
        """The options that are set: {"CONFIG_KASAN": "y", ...}."""
        lines = self._config_path.read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if line.startswith("CONFIG_"))

    def has(self, option):
        """Whether an option ("KASAN") is built in or a module."""
        return self.config.get("CONFIG_" + option) in ("y", "m")

    @functools.cached_property
    def image(self):
        """The kernel as a plain ELF file.

        QEMU can start it directly (PVH). A bzImage would first unpack itself inside the emulated machine, which takes
        longer than the rest of booting. As a side effect the kernel runs at the address that it was linked to. A kernel
        with KASAN would die, because it would use the shadow memory before that is set up.
        """
        if not self.has("PVH") or self.has("KASAN"):
            return self.bzimage
        stat = self.bzimage.stat()
        target = cache_dir() / "vm" / f"vmlinux-{self.release}-{stat.st_mtime_ns}"
        if not target.exists():
            write_atomically(target, _unpack_bzimage(self.bzimage.read_bytes()))
        return target


def _unpack_bzimage(data):
    """The vmlinux within a bzImage; see Documentation/x86/boot.rst for the header."""
    if data[0x202:0x206] != b"HdrS":
        raise LabError("the kernel image is not a bzImage")
    start = (data[0x1F1] + 1) * 512
    offset, length = struct.unpack_from("<II", data, 0x248)
    payload = data[start + offset:start + offset + length]
    if payload.startswith(b"\xfd7zXZ"):
        return lzma.LZMADecompressor(format=lzma.FORMAT_XZ).decompress(payload)
    for magic, program in ((b"\x28\xb5\x2f\xfd", "zstd"), (b"\x1f\x8b", "gzip")):
        if payload.startswith(magic):
            # The payload ends with its unpacked size, which the programs report as trailing garbage.
            done = subprocess.run([program, "-dc"], input=payload, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  check=False)
            if done.stdout[:4] == b"\x7fELF":
                return done.stdout
    raise LabError("cannot unpack the kernel image: unknown compression")


def write_atomically(target, data):
    """Writes a file of the cache; no other process ever sees a part of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".", delete=False) as f:
        f.write(data)
    os.chmod(f.name, 0o644)
    os.rename(f.name, target)


@functools.cache
def get_kernel(name):
    """The kernel of that name. Downloads or builds it if necessary, which takes ten minutes for a debug kernel."""
    done = subprocess.run([ROOT / "scripts/kernel", name], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise LabError(f"scripts/kernel {name} failed (its messages are above)")
    return Kernel(name, dict(line.split("=", 1) for line in done.stdout.splitlines()))
