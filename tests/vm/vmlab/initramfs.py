# SPDX-License-Identifier: GPL-2.0
"""The file system that nodes start from: a cpio archive with tools, their libraries, and the kernel's modules.

Building it takes two seconds, so it is cached, under a hash of what goes into it (this file, those of guest/; the
kernel's modules and the tools by size and time; dpkg's state stands for the libraries). It is not compressed, because
the guest would need longer to unpack it than QEMU needs to copy it.
"""

import functools
import hashlib
import lzma
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile

from .errors import LabError
from .kernel import cache_dir, write_atomically

GUEST = pathlib.Path(__file__).parent / "guest"

# Real programs instead of busybox's applets. Its ip and tc are incomplete, and its shell, and each applet that starts
# other programs, prefers applets whatever PATH says.
_TOOLS = ("dash", "env", "timeout", "nohup", "nice", "stdbuf", "find", "xargs", "setsid",
          "ip", "tc", "rdma", "ss", "bridge", "ethtool", "ibv_devices", "ibv_devinfo", "ibv_rc_pingpong",
          "mke2fs", "ib_read_lat", "ib_write_lat", "ib_send_lat", "ib_atomic_lat", "ib_read_bw", "ib_write_bw", "ib_send_bw",
          "ib_atomic_lat", "ib_atomic_bw", "ibv_srq_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong", "rping", "ucmatose", "udaddy",
          "rdma_client", "rdma_server", "qperf")
_TOOLS_IF_PRESENT = ("mkfs.xfs", "mkfs.btrfs", "bash", "strace", "taskset", "setpriv", "prlimit")

# What C and C++ test programs are usually linked to. The programs themselves come from the host through 9p.
_LIBRARIES = ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libatomic.so.1", "libfmt.so.9",
              "libnl-3.so.200", "libnl-genl-3.so.200", "libibverbs.so.1", "librdmacm.so.1")

# init loads _MODULES_AT_BOOT. Tests load _MODULES, or the kernel asks modprobe for them.
_MODULES_AT_BOOT = ("virtio_pci", "virtio_net", "virtio_console", "9p", "9pnet_virtio", "crc32_generic", "rdma_rxe",
                    "ib_uverbs", "rdma_ucm")
_MODULES = ("crc32_pclmul", "hmac", "sha256_generic", "sha512_generic", "algif_hash", "veth", "dummy", "ifb",
            "sch_netem", "sch_ingress", "sch_prio", "sch_tbf", "sch_fq", "cls_u32", "cls_matchall", "cls_flower", "act_gact",
            "act_mirred", "virtio_blk", "loop", "zram", "psample", "ext4", "xfs", "btrfs", "overlay", "nfsd", "nfsv4",
            "crc32c_generic")

_PASSWD = "root:x:0:0:root:/root:/bin/sh\n" + "".join(
    f"{name}:x:{uid}:{uid}:{name}:/tmp:/bin/sh\n" for name, uid in
    (("alice", 1000), ("bob", 1001), ("carol", 1002), ("nobody", 65534)))

USERS = {line.split(":")[0]: int(line.split(":")[2]) for line in _PASSWD.splitlines()}


# Links into /usr, as on the host: otherwise the archive would have a library twice, as /lib/x and as /usr/lib/x.
_MERGED = ("bin", "sbin", "lib", "lib64")


class Archive:
    """A cpio archive in the "newc" format, as the kernel unpacks it."""

    def __init__(self):
        self._parts = []
        self._names = set()

    def _add(self, path, mode, data=b""):
        path = str(path).lstrip("/")
        if path.split("/")[0] in _MERGED and path not in _MERGED:
            path = "usr/" + path
        if path in self._names:
            return
        parent = os.path.dirname(path)
        if parent:
            self.directory(parent)
        self._names.add(path)
        self._write(path, mode, data, len(self._names))

    def _write(self, path, mode, data, inode):
        name = path.encode() + b"\0"
        fields = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
        for part in (head, data):
            self._parts += (part, bytes(-len(part) % 4))

    def directory(self, path, mode=0o755):
        """Adds a directory, and those above it."""
        self._add(path, stat.S_IFDIR | mode)

    def data(self, path, data, mode=0o644):
        """Adds a file. If a path is added twice, the first file stays."""
        self._add(path, stat.S_IFREG | mode, data.encode() if isinstance(data, str) else data)

    def file(self, path, source):
        """Adds a copy of one of the host's files."""
        source = pathlib.Path(source)
        self.data(path, source.read_bytes(), stat.S_IMODE(source.stat().st_mode) | 0o444)

    def link(self, path, target):
        """Adds a symbolic link."""
        self._add(path, stat.S_IFLNK | 0o777, str(target).encode())

    def bytes(self):
        """The archive so far, with its end. Several archives may be concatenated."""
        self._write("TRAILER!!!", 0, b"", 0)
        joined = b"".join(self._parts)
        del self._parts[-4:]
        return joined + bytes(-len(joined) % 512)


def _find_program(name):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin")
    return pathlib.Path(path) if path else None


def _shared_libraries(path):
    """The absolute paths of all libraries that a dynamic program or library needs, directly or not."""
    done = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False,
                          env={**os.environ, "LC_ALL": "C"})
    found = []
    for line in done.stdout.splitlines():
        words = line.split()
        if "not found" in line:
            raise LabError(f"{path} needs {words[0]}, which is not on this machine")
        found += [word for word in words if word.startswith("/")][:1]
    return found


def _add_dynamic(archive, path, source):
    """Adds a program or library, with all libraries that it needs."""
    archive.file(path, source)
    for library in _shared_libraries(source):
        archive.file(library, library)


def add_program(archive, path, source):
    """Adds a file; if it is a program, with all libraries that it needs."""
    with open(source, "rb") as f:
        is_elf = f.read(4) == b"\x7fELF"
    (_add_dynamic if is_elf else Archive.file)(archive, path, source)


def _add_tools(archive):
    missing = [name for name in (*_TOOLS, "busybox") if not _find_program(name)]
    if missing:
        raise LabError(f"not installed: {', '.join(missing)} (scripts/deps vm installs it)")
    for name in (*_TOOLS, *_TOOLS_IF_PRESENT):
        source = _find_program(name)
        if source:
            _add_dynamic(archive, f"/usr/bin/{name}", source.resolve())

    ldconfig = subprocess.run([_find_program("ldconfig"), "-p"], stdout=subprocess.PIPE, text=True, check=True).stdout
    known = {}
    for line in ldconfig.splitlines():
        if "x86-64" in line and " => " in line:
            known.setdefault(line.split()[0], line.split(" => ")[1])
    for name in _LIBRARIES:
        if name in known:
            _add_dynamic(archive, known[name], known[name])

    # libibverbs loads its drivers by name, from a directory next to it.
    verbs = pathlib.Path(known["libibverbs.so.1"])
    for driver in (verbs.parent / "libibverbs").glob("librxe-*.so"):
        _add_dynamic(archive, driver, driver)
    archive.data("/etc/libibverbs.d/rxe.driver", "driver rxe\n")

    archive.link("/usr/bin/sh", "dash")
    busybox = _find_program("busybox").resolve()
    archive.file("/usr/bin/busybox", busybox)
    applets = subprocess.run([busybox, "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    for applet in applets:
        archive.link(f"/usr/bin/{applet}", "busybox")  # no effect if the real program is there
    archive.link("/usr/sbin/modprobe", "../bin/busybox")  # the kernel calls it by this name


def _module_name(path):
    return path.rsplit("/", 1)[-1].split(".ko")[0].replace("-", "_")


def _read_module(path):
    """A module, unpacked, without its signature: verifying that would take the guest longer than loading the module."""
    data = path.read_bytes()
    if path.suffix == ".xz":
        data = lzma.decompress(data)
    magic = b"~Module signature appended~\n"
    if data.endswith(magic):
        # struct module_signature precedes the magic; its last field is the length of the signature before the struct.
        end = len(data) - len(magic)
        data = data[:end - 12 - int.from_bytes(data[end - 4:end], "big")]
    return data


def _add_modules(archive, kernel):
    """Adds the modules, and those that they depend on, with an index for modprobe that has only these."""
    paths, needs = {}, {}
    for line in (kernel.modules / "modules.dep").read_text().splitlines():
        path, rest = line.split(":")
        paths[_module_name(path)] = path
        needs[_module_name(path)] = [_module_name(p) for p in rest.split()]
    builtin = {_module_name(line) for line in (kernel.modules / "modules.builtin").read_text().splitlines()}

    wanted = [name for name in (*_MODULES_AT_BOOT, *_MODULES) if name in paths]
    lost = [name for name in _MODULES_AT_BOOT if name not in paths and name not in builtin]
    if lost:
        raise LabError(f"Linux {kernel.release} has no {', '.join(lost)}")
    closure = sorted({dep for name in wanted for dep in (name, *needs[name])})

    release = f"lib/modules/{kernel.release}"
    with tempfile.TemporaryDirectory(prefix="lite-modules-") as staging:
        base = pathlib.Path(staging) / release
        base.mkdir(parents=True)
        for name in closure:
            (base / f"{name}.ko").write_bytes(_read_module(kernel.modules / paths[name]))
        for index in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
            if (kernel.modules / index).exists():
                shutil.copy(kernel.modules / index, base)
        subprocess.run([_find_program("depmod"), "-b", staging, kernel.release], check=True)
        for path in sorted(base.iterdir()):
            if not path.name.endswith(".bin") and not path.name.startswith("modules.builtin."):
                archive.file(f"/{release}/{path.name}", path)
    archive.data("/etc/modules-at-boot", " ".join(name for name in _MODULES_AT_BOOT if name in paths))


@functools.cache
def agent_binary():
    """The compiled guest agent."""
    source = GUEST / "agent.c"
    target = cache_dir() / "vm" / f"agent-{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}"
    if not target.exists():
        compile_c(source, target, "-static")
    return target


def compile_c(source, target, *flags):
    """Compiles one file into a program in the cache."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        made = pathlib.Path(work) / "made"
        subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-o", made, source, *flags], check=True)
        os.rename(made, target)


def _cache_key(kernel):
    key = hashlib.sha256()
    for path in (GUEST / "agent.c", GUEST / "init", GUEST / "settle", pathlib.Path(__file__)):
        key.update(path.read_bytes())
    for path in (kernel.modules / "modules.dep", *(_find_program(t) for t in _TOOLS), "/var/lib/dpkg/status"):
        if path and os.path.exists(path):
            info = os.stat(path)
            key.update(f"{path} {info.st_size} {info.st_mtime_ns}\n".encode())
    return key.hexdigest()[:16]


@functools.cache
def base_image(kernel):
    """Path of the archive that all nodes with this kernel start from."""
    directory = cache_dir() / "vm"
    target = directory / f"initramfs-{kernel.release}-{_cache_key(kernel)}.cpio"
    if target.exists():
        os.utime(target)
        return target
    archive = Archive()
    archive.file("/init", GUEST / "init")
    archive.file("/usr/sbin/settle", GUEST / "settle")
    archive.file("/usr/sbin/agent", agent_binary())
    for name in ("proc", "sys", "dev", "tmp", "run", "root", "mnt"):
        archive.directory(name)
    archive.data("/etc/passwd", _PASSWD)
    archive.data("/etc/group", "".join(f"{name}:x:{uid}:\n" for name, uid in USERS.items()))
    archive.data("/etc/hosts", "127.0.0.1 localhost\n" + "".join(f"10.0.0.{n} n{n}\n" for n in range(1, 33)))
    for name in _MERGED:
        archive.link(f"/{name}", f"usr/{name}")
    _add_tools(archive)
    _add_modules(archive, kernel)
    write_atomically(target, archive.bytes())
    _forget_old_images(directory)
    return target


def _forget_old_images(directory, keep=8):
    images = sorted(directory.glob("initramfs-*.cpio"), key=lambda p: p.stat().st_mtime, reverse=True)
    for path in images[keep:]:
        path.unlink(missing_ok=True)


def extra_archive(files):
    """An archive of {guest path: host path}, programs with their libraries, to be appended to the base image."""
    archive = Archive()
    for path, source in files.items():
        add_program(archive, path, source)
    return archive.bytes()
