# SPDX-License-Identifier: GPL-2.0
"""A cluster of nodes on one network."""

import concurrent.futures
import contextlib
import pathlib
import shutil
import tempfile
import time

from .qemu import accel
from . import kernel as kernels
from .errors import ComplaintError, LabError, NodeDied
from .initramfs import base_image, extra_archive
from .network import Network
from .node import BOOT_SECONDS, Node

# MB: enough for a test program and a few LMRs. KASAN's shadow memory takes an eighth, and its quarantine more.
_MEMORY = {"debug": 1024, "debug2": 1024}
_MEMORY_DEFAULT = 512


def default_memory(kernel):
    """MB of a node with a kernel of this name, unless the test says otherwise."""
    return _MEMORY.get(kernel, _MEMORY_DEFAULT)


class Cluster:
    """`nodes` virtual machines, booted side by side, joined by one network.

        with Cluster(nodes=2, kernel="6.1") as c:
            n1, n2 = c.nodes
            n1.run(f"ping -c 1 {n2.ip}")

    Leaving the context ends all machines. If a kernel has complained it raises ComplaintError, chained to the exception
    that has ended the context, if any.

    nodes, kernel   how many, and which (6.1, 6.12, debug, debug2)
    mem_mb, cpus    of each node; the default memory depends on the kernel
    mtu             of eth0; rxe's own MTU is the largest of 256 ... 4096 that fits into it
    netem           eth0's queueing discipline is netem, which Node.netem() needs
    swap_mb         size of a swap device in each node
    log_dir         where consoles, command logs and scratch directories go (default: a new directory below /tmp, removed
                    after success)
    files           {path in the guest: path on the host}: files to add to the initramfs, programs with their libraries.
                    Only for files that are read often, as the guest has the whole project below /lite
    kernel_args     additional kernel parameters
    icount          count instructions instead of time: one instruction is one nanosecond for the guests. For figures
                    without noise, but only of a node that talks to itself, because nodes do not run in step
    """

    def __init__(self, nodes=2, kernel="6.1", mem_mb=None, cpus=1, mtu=1500, swap_mb=0, netem=False, log_dir=None,
                 files=None, kernel_args=(), icount=False):
        if not 1 <= nodes <= 32:
            raise LabError(f"cannot make a cluster of {nodes} nodes (1 to 32)")
        self.kernel = kernels.get_kernel(kernel) if isinstance(kernel, str) else kernel
        self._count = nodes
        self._temporary = None if log_dir else tempfile.mkdtemp(prefix="lite-vm-")
        self.log_dir = pathlib.Path(log_dir or self._temporary).absolute()
        self.log_dir.mkdir(parents=True, exist_ok=True)
        self._options = {"mem_mb": mem_mb or default_memory(self.kernel.name), "cpus": cpus, "mtu": mtu, "netem": netem,
                         "swap_mb": swap_mb, "kernel_args": tuple(kernel_args),
                         "accelerator": accel.ICOUNT if icount else accel.options(self.kernel)}
        self._files = files or {}
        self._network = None
        self.nodes = []
        self.boot_seconds = None

    @property
    def time_scale(self):
        """How much slower than a stock kernel this one is, for loop counts. Time-outs are scaled already."""
        return self.kernel.time_scale

    def start(self):
        """Boots all nodes and waits for them. `with` calls this."""
        initrd = self._initrd()
        begun = time.monotonic()
        self._network = Network(self._count)
        try:
            for number, end in enumerate(self._network.sockets, 1):
                node = Node(number, self.kernel, end, self._network.drain, self.log_dir, initrd=initrd, **self._options)
                self.nodes.append(node)
            first, *others = self.nodes
            first.start()
            if first.saves:  # the others need not boot then
                self._wait_booted(first)
            for node in others:
                node.start()
            for node in others if first.saves else self.nodes:
                self._wait_booted(node)
        except BaseException:
            self.stop()
            raise
        self.boot_seconds = time.monotonic() - begun
        return self

    def _wait_booted(self, node):
        """Boots the node again if it hangs, or if a processor of it has stood still: QEMU's emulation does so now and
        then, before any of our code runs."""
        # Nodes that boot share the host's processors.
        seconds = BOOT_SECONDS * (1 + self._count / 4)
        try:
            node.wait_ready(seconds / 2)
            why = None
        except NodeDied:
            raise
        except LabError as hung:
            why = hung
        complaints = node.console.complaints(forget=True)
        if why or complaints:
            print(f"booting again: {why or complaints[0]}", flush=True)
            node.reboot(seconds)

    def stop(self):
        """Ends all machines, in whatever state they are. Logs stay."""
        for node in self.nodes:
            node.close()
        if self._network:
            self._network.close()
            self._network = None

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, error, trace):
        complaints = self.complaints()
        self.stop()
        # A kernel may have complained at the last moment.
        complaints = self.complaints() or complaints
        if complaints:
            if error is None or isinstance(error, Exception):
                raise ComplaintError(complaints) from error
        elif error is None and self._temporary:
            self.remove_logs()

    def remove_logs(self):
        """Removes the log directory with all its files."""
        shutil.rmtree(self.log_dir, ignore_errors=True)

    def each(self, function, nodes=None):
        """Calls function(node) for all nodes in parallel; returns the results in the order of the nodes."""
        nodes = self.nodes if nodes is None else nodes
        with concurrent.futures.ThreadPoolExecutor(max_workers=len(nodes) or 1) as pool:
            return list(pool.map(function, nodes))

    def run(self, command, **options):
        """Runs a command on all nodes in parallel; see Node.run()."""
        return self.each(lambda node: node.run(command, **options))

    def complaints(self, forget=False):
        """The kernels' complaints so far, as a list; with `forget`, the next call does not repeat them."""
        return [complaint for node in self.nodes for complaint in node.console.complaints(forget)]

    def check(self):
        """Raises ComplaintError if there are complaints since the last check."""
        complaints = self.complaints(forget=True)
        if complaints:
            raise ComplaintError(complaints)

    def expect(self, pattern):
        """From now on, complaints of any node that match the regular expression are allowed."""
        for node in self.nodes:
            node.console.expect(pattern)

    @contextlib.contextmanager
    def expecting(self, pattern):
        """Within this context, complaints that match the regular expression are allowed, and at least one must come."""
        handles = [(node.console, node.console.expect(pattern), len(node.console.text())) for node in self.nodes]
        try:
            yield
            deadline = time.monotonic() + 5 * self.kernel.patience
            while not any(console.wait_for(pattern, 0, begin) for console, _, begin in handles):
                if time.monotonic() > deadline:
                    raise LabError(f"no kernel has complained about {pattern!r}, as was expected")
                time.sleep(0.05)  # a kernel may be about to print it
        finally:
            for console, handle, _ in handles:
                console.unexpect(handle)

    def _initrd(self):
        base = base_image(self.kernel)
        if not self._files:
            return None
        path = self.log_dir / "initramfs.cpio"
        path.write_bytes(base.read_bytes() + extra_archive(self._files))
        return path
