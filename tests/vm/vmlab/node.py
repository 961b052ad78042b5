# SPDX-License-Identifier: GPL-2.0
"""A node: a QEMU process, what it boots, and the commands that run in it."""

import contextlib
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import tempfile
import threading
import time

from . import process
from .agent import Channel, Result, describe_status
from .console import Console
from .errors import CommandFailed, CommandTimeout, LabError, NodeDied
from .initramfs import USERS, base_image
from .kernel import ROOT
from .qemu import accel, tsc
from .qemu.qmp import Monitor
from .qemu.snapshot import Snapshot, resume

BOOT_SECONDS = 30

# A serial port is slow, so only warnings are printed until init raises the level. A panic reboots: that ends QEMU, and
# so the harness learns of it. IPv6 is off because its packets would be in every count. Addresses are not randomised:
# TCG translates a page of code again for each virtual address, so programs would take three times as long to start. The
# self-test of a key derivation, and a type of keys, that nothing uses would take a fifth of booting.
_KERNEL_PARAMETERS = ("console=ttyS0", "loglevel=5", "panic=-1", "reboot=t", "mitigations=off", "tsc=reliable",
                      "no_timer_check", "random.trust_cpu=1", "ipv6.disable=1", "apparmor=0", "audit=0",
                      "rcupdate.rcu_expedited=1", "cryptomgr.notests=1", "initcall_blacklist=crypto_kdf108_init,init_encrypted",
                      "norandmaps", "nokaslr", "rdinit=/init")

# Without a PIT the kernel measures the time stamp counter with the HPET. On a busy host it would see too few ticks of
# the PIT, and believe them ("PIT calibration deviates from HPET"): in one machine, time ran 26 times too fast.
_MACHINE = "q35,i8042=off,sata=off,smbus=off,vmport=off,pit=off"


class Node:
    """A virtual machine on the cluster's network, with Soft-RoCE ("rxe0") on its card ("eth0").

    Attributes: `number` (from 1), `name` ("n1"), `ip`, `kernel`, `time_scale`, `console`, `scratch` (a directory of the
    host that the node can write to as /scratch). The project is at /lite, read-only.
    """

    def __init__(self, number, kernel, end, drain, log_dir, accelerator, mem_mb=512, cpus=1, mtu=1500, swap_mb=0,
                 netem=False, initrd=None, kernel_args=()):
        self.number, self.name, self.ip = number, f"n{number}", f"10.0.0.{number}"
        self.kernel, self.time_scale, self.patience = kernel, kernel.time_scale, kernel.patience
        self.console = Console(self.name, pathlib.Path(log_dir) / f"console-{self.name}.log")
        self.scratch = pathlib.Path(log_dir) / f"scratch-{self.name}"
        self.scratch.mkdir(parents=True, exist_ok=True)
        self._mem_mb, self._cpus, self._mtu, self._swap_mb = mem_mb, cpus, mtu, swap_mb
        self._netem = netem
        self._initrd = initrd or base_image(kernel)
        self._kernel_args = kernel_args
        self._accelerator = accelerator
        self._end, self._drain = end, drain
        # Figures of icount must not depend on which machine was the first. KVM boots quickly.
        self._snapshot = None
        if accelerator == accel.TCG and not initrd:
            self._snapshot = Snapshot(kernel.image, os.stat(kernel.image).st_mtime_ns, self._initrd, mem_mb, cpus, bool(swap_mb),
                                      kernel_args)
        self._restored = False
        self.console.path.write_bytes(b"")  # complaints of an earlier run, if the directory is not new
        self._journal = open(pathlib.Path(log_dir) / f"commands-{self.name}.log", "w", encoding="utf-8")
        self._journal_lock = threading.Lock()
        self._qemu = self._channel = self._monitor = None
        self._epoch = time.monotonic()
        self.boots = 0
        self.paused = False

    def __str__(self):
        return self.name

    def start(self):
        """Starts to boot; returns at once. wait_ready() waits until the node has booted."""
        if self._qemu:
            raise LabError(f"{self.name} runs already")
        self._drain.stop(self._end)
        self._note("--- power on")
        self.boots += 1
        self.paused = False
        agent, agent_end = socket.socketpair()
        qmp, qmp_end = socket.socketpair()
        saved = self._snapshot.opened() if self._snapshot else contextlib.nullcontext()
        with agent_end, qmp_end, saved as fd, open(self.console.path.with_name(f"qemu-{self.name}.log"), "ab") as log:
            words = self._command(agent_end.fileno(), qmp_end.fileno())
            fds = [agent_end.fileno(), qmp_end.fileno(), self._end.fileno()]
            self._restored = fd is not None
            if self._restored:
                words += ["-incoming", f"fd:{fd}"]
                fds.append(fd)
            self._qemu = process.start(words, stdout=log, stderr=log, pass_fds=fds)
        self._monitor = Monitor(qmp, self.name)
        self._channel = Channel(self, agent)

    @property
    def saves(self):
        """Whether the node boots to be saved, so that machines like it need not boot."""
        return bool(self._snapshot) and not self._restored

    def wait_ready(self, timeout=BOOT_SECONDS):
        """Waits until the node takes commands. If it is the first of its kind, it is saved for others."""
        if self._restored:
            try:
                self._wait_booted(lambda: resume(self._monitor), timeout)
            except LabError:  # the file is no good
                self._snapshot.remove()
                self.crash()
                self.start()
        if not self._restored:
            self._wait_booted(lambda: self._channel.wait_ready(0.2), timeout)
            if self.saves and not self.console.complaints():
                try:
                    self._snapshot.save(self._monitor)
                except LabError as error:  # the disk may be full; the others boot, too, then
                    self._note(f"--- not saved: {error}")
        try:
            self._settle()
        except LabError:  # another attempt must not start from there
            if self._snapshot:
                self._snapshot.remove()
            raise

    def _settle(self):
        self._channel.wake()
        self.run(["settle", self.ip, self._mtu, "1" if self._netem else "", "1" if self._swap_mb else ""])

    def _wait_booted(self, booted, timeout):
        deadline = time.monotonic() + timeout * self.patience
        while not booted():
            if self._qemu.poll() is not None:
                raise NodeDied(f"{self.name} died while booting (QEMU's exit status {self._qemu.returncode}):\n"
                               f"{self._last_words()}")
            if time.monotonic() > deadline:
                raise LabError(f"{self.name} did not boot within {timeout * self.patience} s:\n{self._last_words()}")
            time.sleep(0.02)

    @property
    def running(self):
        """Whether the node's QEMU process exists, even if it is paused."""
        return bool(self._qemu) and self._qemu.poll() is None

    def cpu_seconds(self):
        """Processor time of the host that the machine has used since it was switched on."""
        if not self.running:
            return 0
        fields = pathlib.Path(f"/proc/{self._qemu.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def crash(self):
        """Cuts the power: the guest cannot shut down. Does nothing if the machine is off."""
        if not self._qemu:
            return
        self._note("--- power off")
        process.stop(self._qemu)
        self._drain.start(self._end)
        self._channel.close()
        self._monitor.close()
        self._qemu = self._channel = self._monitor = None

    def reboot(self, timeout=BOOT_SECONDS):
        """Cuts the power, then boots afresh with the same address."""
        self.crash()
        self.start()
        self.wait_ready(timeout)

    def wait_dead(self, timeout=30):
        """Waits until the guest ends by itself (panic, power off)."""
        try:
            self._qemu.wait(timeout * self.patience)
        except subprocess.TimeoutExpired:
            raise LabError(f"{self.name} is still running after {timeout * self.patience} s") from None
        self.crash()

    def pause(self):
        """Stops the machine and its clock, so that the guest does not notice. Packets for it are lost meanwhile."""
        self._note("--- pause")
        self._qmp("stop")
        self.paused = True
        self._drain.start(self._end)

    def resume(self):
        """Ends a pause."""
        self._note("--- resume")
        self._drain.stop(self._end)
        self._qmp("cont")
        self.paused = False

    def freeze(self):
        """Gives the machine no processor time until thaw(). Its clock goes on, so the guest sees afterwards that time has
        passed."""
        self._note("--- freeze")
        self._qemu.send_signal(signal.SIGSTOP)

    def thaw(self):
        """Ends a freeze()."""
        self._note("--- thaw")
        self._qemu.send_signal(signal.SIGCONT)

    def monitor(self, command):
        """Executes a line in QEMU's human monitor; returns what it prints."""
        return self._qmp("human-monitor-command", **{"command-line": command}).strip()

    def link(self, up):
        """Pulls or plugs the network cable. The guest sees the carrier and the port state of rxe0 change."""
        self._note(f"--- link {'up' if up else 'down'}")
        self._qmp("set_link", name="nic0", up=up)

    def cut(self, on=True):
        """Loses every packet in both directions without telling the guest, like a broken switch; on=False ends that."""
        # QEMU drops the packets between the card and the wire. Filters in the guest would change the guest's code, in
        # which an emulated processor can get stuck, and some tell the sender of the loss.
        how = {"qom-type": "filter-redirector", "netdev": "net0", "queue": "all", "outdev": "nowhere"} if on else {}
        try:
            self._qmp("object-add" if on else "object-del", id="cut", **how)
        except LabError as error:
            # Cutting a cut link does nothing, so that there is no moment in which packets pass.
            if not re.search("duplicate|not found", str(error)):
                raise
        self._note(f"--- cut {'on' if on else 'off'}")

    def netem(self, rules):
        """Disturbs what the node sends: tc-netem(8) rules ("loss 1% delay 2ms"); None ends the disturbance.

        The cluster needs netem=True, so that the device has this qdisc from the start: Linux fails what is sent while a
        qdisc is being replaced. For that Soft-RoCE of 6.12 ends a queue pair, the connection manager's for good.
        """
        if not self._netem:
            raise LabError("netem(): the cluster is without netem=True")
        self.run(f"tc qdisc change dev eth0 root netem limit 10000 {rules or 'rate 0bit corrupt 0%'}")

    def add_addresses(self, count, subnet="10.0.1"):
        """Lets this machine act as several nodes: a veth with `count` addresses, and the rxe device "rxe1" on it.
        Returns the addresses, 10.0.1.1 and so on. Through rxe1 they reach each other, but no other machine."""
        addresses = [f"{subnet}.{i}" for i in range(1, count + 1)]
        self.run("modprobe -q veth; ip link add veth0 type veth peer name veth1 && ip link set veth1 up && "
                 "ip link set veth0 up && " + " && ".join(f"ip addr add {a}/24 dev veth0" for a in addresses) +
                 " && rdma link add rxe1 type rxe netdev veth0")
        return addresses

    def run(self, command, timeout=30, check=True, stdin=b"", env=None, user=None, cwd="/"):
        """Runs a command (a shell line, or a list of arguments) and waits for it; returns a Result (rc, out, err).

        Raises CommandFailed if the command fails (not with check=False), CommandTimeout after killing it, and NodeDied.
        `user` is a name (see initramfs.USERS), a uid, or (uid, gid). The time-out is multiplied by the node's patience.
        """
        p = self.spawn(command, env=env, user=user, cwd=cwd)
        begun = time.monotonic()
        try:
            if stdin:
                p.write(stdin, timeout)
            p.close_stdin()
            result = p.wait(timeout)
        except CommandTimeout as problem:
            raise self._give_up(p, problem) from None
        except NodeDied:
            self._note(f"$ {p.command}\n[the node died]")
            raise
        took = time.monotonic() - begun
        self._note(f"$ {p.command}\n{result.out}{result.err}[{result.rc} after {took:.2f} s]")
        if check and result.rc:
            raise CommandFailed(self, p.command, result, describe_status(result.rc))
        return result

    def spawn(self, command, env=None, user=None, cwd="/", terminal=False, on_output=None):
        """Starts a command and returns its Process. Standard input stays open until close_stdin()."""
        uid, gid = _ids(user)
        if not self._channel:
            raise NodeDied(f"{self.name} is not running")
        environment = {k: str(v) for k, v in (env or {}).items()}
        p = self._channel.spawn(command, environment, uid, gid, cwd, terminal, on_output)
        self._note(f"& {p.command}")
        return p

    def processes(self):
        """The Processes that still run."""
        return self._channel.running() if self._channel else []

    def put(self, local, remote, mode=None):
        """Copies a file of the host into the guest."""
        local = pathlib.Path(local)
        self.write(remote, local.read_bytes(), local.stat().st_mode & 0o777 if mode is None else mode)

    def get(self, remote, local):
        """Copies a file of the guest to the host."""
        pathlib.Path(local).write_bytes(self.read_bytes(remote))

    def write(self, remote, data, mode=0o644):
        """Creates or replaces a file in the guest."""
        path = shlex.quote(remote)
        self.run(f'mkdir -p "$(dirname {path})" && cat >{path} && chmod {mode:o} {path}', stdin=data)

    def read_bytes(self, remote):
        """The contents of one of the guest's files."""
        p = self.spawn(["cat", remote])
        p.wait(check=True)
        return p.out_bytes

    def read(self, remote):
        """The contents of one of the guest's files, as text."""
        return self.read_bytes(remote).decode(errors="replace")

    def insmod(self, path, **parameters):
        """Loads a module with parameters; `path` is in the guest (/lite is the project)."""
        self.run(["insmod", path, *(f"{k}={v}" for k, v in parameters.items())])

    def rmmod(self, name, timeout=30):
        """Unloads a module."""
        self.run(["rmmod", name], timeout=timeout)

    def log(self, message):
        """Writes a line into the kernel's log, as a landmark in the console log."""
        self.run("cat >/dev/kmsg", stdin=f"<6>lab: {message}\n")

    def dump_blocked(self):
        """Makes the kernel list blocked and running tasks on the console."""
        self.run("echo w >/proc/sysrq-trigger; echo l >/proc/sysrq-trigger", check=False, timeout=10)

    @property
    def has_kmemleak(self):
        """Whether the kernel has kmemleak."""
        return self.kernel.has("DEBUG_KMEMLEAK")

    def kmemleak_clear(self):
        """Makes kmemleak ignore all leaks so far."""
        if self.has_kmemleak:
            self.run("echo clear >/sys/kernel/debug/kmemleak")

    def kmemleak_scan(self):
        """Raises a LabError with back traces if kmemleak finds leaks; does nothing without kmemleak."""
        from . import kmemleak  # pylint: disable=import-outside-toplevel
        if self.has_kmemleak:
            kmemleak.scan(self)

    def _command(self, agent_fd, qmp_fd):
        words = [
            "qemu-system-x86_64", "-name", f"lite-{self.name}", "-nodefaults", "-no-user-config", "-display", "none",
            "-M", _MACHINE, "-bios", "qboot.rom", *self._accelerator, "-m", self._mem_mb, "-no-reboot",
            # If only one CPU is possible, QEMU leaves out the guest's memory barriers, although its own I/O threads run
            # on other processors: now and then virtio stalls for good.
            "-smp", f"{self._cpus},maxcpus={max(self._cpus, 2)}",
            "-kernel", self.kernel.image, "-initrd", self._initrd, "-append", self._append(),
            "-chardev", f"file,id=console,path={_qemu_escape(self.console.path)},append=on", "-serial", "chardev:console",
            "-chardev", f"socket,id=qmp,fd={qmp_fd}", "-mon", "chardev=qmp,mode=control",
            "-device", "virtio-serial-pci", "-chardev", f"socket,id=agent,fd={agent_fd}",
            "-device", "virtserialport,chardev=agent,name=lite.agent",
            "-netdev", f"dgram,id=net0,local.type=fd,local.str={self._end.fileno()}",
            "-chardev", "null,id=nowhere",
            "-device", f"virtio-net-pci,id=nic0,netdev=net0,mac=52:54:00:00:00:{self.number:02x},"
            # Without a speed rxe queries it again and again, and complains.
            "speed=10000,duplex=full,romfile=",
            *_share("lite", ROOT, readonly=True), *_share("scratch", self.scratch)]
        if self._swap_mb:
            # The file is sparse, and is not needed after a crash: cache=unsafe.
            words += ["-drive", f"file={_qemu_escape(self._swap_file())},format=raw,if=none,id=swap,cache=unsafe",
                      "-device", "virtio-blk-pci,drive=swap"]
        return words

    def _append(self):
        own = [f"VM_HUNG={60 if self.kernel.is_debug else 30}"]
        # The guest must not measure the frequency itself: see tsc.py. KVM tells its guests.
        if self._accelerator == accel.TCG and tsc.khz():
            own.append(f"tsc_early_khz={tsc.khz()}")
        if self._accelerator == accel.ICOUNT:
            own.append(f"tsc_early_khz={accel.ICOUNT_KHZ}")
        return " ".join((*_KERNEL_PARAMETERS, *self._kernel_args, *own))

    def _swap_file(self):
        path = self.console.path.with_name(f"swap-{self.name}.img")
        with open(path, "wb") as f:
            f.truncate(self._swap_mb << 20)
        return path

    def _qmp(self, command, **arguments):
        if not self._monitor:
            raise NodeDied(f"{self.name} is not running")
        return self._monitor.command(command, **arguments)

    def _give_up(self, p, problem):
        """Kills a command that is late, after the kernel has listed blocked tasks; returns the exception to raise."""
        with contextlib.suppress(LabError):
            self.dump_blocked()
        p.kill()
        result = Result(p.rc, p.out, p.err)
        why = str(problem).split(":")[1].strip()
        with contextlib.suppress(LabError):
            p.wait(5)
        if p.running:
            why += ", and cannot be killed"
        self._note(f"$ {p.command}\n{result.out}{result.err}[{why}]")
        return CommandTimeout(self, p.command, result, f"{why} (see the blocked tasks in {self.console.path})")

    def _last_words(self):
        qemu = self.console.path.with_name(f"qemu-{self.name}.log")
        return f"{qemu.read_text(errors='replace')}\n{self.console.tail()}\n(in {self.console.path})"

    def _note(self, text):
        with self._journal_lock:
            self._journal.write(f"[{time.monotonic() - self._epoch:8.2f}] {text}\n")
            self._journal.flush()

    def close(self):
        """Ends the node for good."""
        self.crash()
        self._journal.close()


def _qemu_escape(path):
    return str(path).replace(",", ",,")


def _share(tag, path, readonly=False):
    return ("-fsdev", f"local,id={tag},path={_qemu_escape(path)},security_model=none,multidevs=remap" +
            (",readonly=on" if readonly else ""), "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}")


def _ids(user):
    if user is None:
        return 0, 0
    if isinstance(user, tuple):
        return user
    if isinstance(user, str):
        if user not in USERS:
            raise LabError(f"no user {user!r} in the guests (there are: {', '.join(USERS)})")
        return USERS[user], USERS[user]
    return user, user


def boots_with(kernel, accelerator, seconds):
    """Whether a machine comes up with these QEMU options in that time."""
    from .network import Network  # pylint: disable=import-outside-toplevel
    with tempfile.TemporaryDirectory(prefix="lite-probe-") as directory:
        network = Network(1)
        node = Node(1, kernel, network.sockets[0], network.drain, directory, accelerator)
        try:
            node.start()
            node.wait_ready(seconds)
            return True
        except LabError:
            return False
        finally:
            node.close()
            network.close()
