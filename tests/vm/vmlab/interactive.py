# SPDX-License-Identifier: GPL-2.0
"""The prompt of tests/vm/cluster, for a user at the console of a virtual cluster."""

import argparse
import contextlib
import importlib
import os
import re
import secrets
import select
import signal
import sys
import termios
import tty

from . import kernel as kernels
from .cluster import Cluster
from .errors import LabError

HELP = """\
  COMMAND             runs on the current node, the one in the prompt
  2: COMMAND          ... on node 2              all: COMMAND     ... on all nodes
  node 2              makes node 2 the current one
  shell [2]           a terminal on a node; Ctrl-] leaves it
  crash|reboot|pause|resume 2, unplug|plug 2     power and network cable of node 2
  log [2]             the end of a node's console
  help, quit          (also Ctrl-D)"""

_DETACH = b"\x1d"
_FOREVER = 10 ** 7


class Prompt:
    """Reads commands and executes them."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.current = cluster.nodes[0]

    def loop(self):
        """Serves the user until the user quits."""
        while True:
            try:
                text = input(f"node {self.current.number}> ").strip()
            except EOFError:
                print()
                return
            except KeyboardInterrupt:
                print()
                continue
            if text in ("quit", "exit"):
                return
            if not text:
                continue
            try:
                self._do(text)
            except LabError as error:
                print(error)
            except KeyboardInterrupt:
                print()
            for complaint in self.cluster.complaints(forget=True):
                print(complaint)

    def _do(self, text):
        where = re.match(r"(\d+|all)\s*:\s*(.+)", text)
        words = text.split()
        if where and where[1] == "all":
            self._run(self.cluster.nodes, where[2])
        elif where:
            self._run([self._node(where[1])], where[2])
        elif words[0] == "help":
            print(HELP)
        elif words[0] == "node" and len(words) == 2:
            self.current = self._node(words[1])
        elif words[0] == "shell" and len(words) <= 2:
            self._shell(self._node(*words[1:]))
        elif words[0] == "log" and len(words) <= 2:
            print(self._node(*words[1:]).console.tail())
        elif words[0] in _POWER and len(words) == 2:
            _POWER[words[0]](self._node(words[1]))
        else:
            self._run([self.current], text)

    def _node(self, number=None):
        if number is None:
            return self.current
        if not number.isdigit() or not 1 <= int(number) <= len(self.cluster.nodes):
            raise LabError(f"no node {number} (there are 1 to {len(self.cluster.nodes)})")
        return self.cluster.nodes[int(number) - 1]

    @staticmethod
    def _run(nodes, command):
        """Runs the command on the nodes in parallel. Prints output as it comes; with several nodes each line begins
        with its node. Ctrl-C interrupts the commands."""
        processes = []
        for node in nodes:
            prefix = f"{node}: ".encode() if len(nodes) > 1 else b""
            processes.append(node.spawn(command, on_output=_Printer(prefix)))
            processes[-1].close_stdin()
        try:
            for p in processes:
                p.wait(_FOREVER)
        except KeyboardInterrupt:
            for p in processes:
                p.kill(signal.SIGINT)
            for p in processes:
                with contextlib.suppress(LabError):
                    p.wait(5)
                p.kill()
        for node, p in zip(nodes, processes):
            if p.rc:
                print(f"[{node}: {p.rc}]")

    @staticmethod
    def _shell(node):
        """A terminal: passes keys to the guest, and its output back, both unchanged."""
        if not sys.stdin.isatty():
            raise LabError("a shell needs a terminal")
        print(f"--- shell on {node}; exit or Ctrl-] leaves it")
        shell = "bash" if node.run("command -v bash", check=False).ok else "sh"
        out = sys.stdout.buffer
        p = node.spawn([shell, "-i"], env={"TERM": os.environ.get("TERM", "linux"), "PS1": f"{node}:\\w# "}, terminal=True,
                       cwd="/root", on_output=lambda data: (out.write(data), out.flush()))
        before = termios.tcgetattr(sys.stdin)
        size = None
        try:
            tty.setraw(sys.stdin)
            while p.running:
                if size != os.get_terminal_size():
                    size = os.get_terminal_size()
                    p.resize(size.lines or 24, size.columns or 80)
                if not select.select([sys.stdin], [], [], 0.2)[0]:
                    continue
                keys = os.read(sys.stdin.fileno(), 4096)
                if not keys or _DETACH in keys:
                    break
                p.write(keys)
        finally:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
            p.kill(signal.SIGHUP)
        print(f"\n--- back from {node}")


class _Printer:
    """Prints output; with a prefix, only whole lines."""

    def __init__(self, prefix):
        self._prefix = prefix
        self._rest = b""

    def __call__(self, data):
        if self._prefix:
            *lines, self._rest = (self._rest + data).split(b"\n")
            data = b"".join(self._prefix + line + b"\n" for line in lines)
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


_POWER = {
    "crash": lambda node: node.crash(),
    "reboot": lambda node: node.reboot(),
    "pause": lambda node: node.pause(),
    "resume": lambda node: node.resume(),
    "unplug": lambda node: node.link(up=False),
    "plug": lambda node: node.link(up=True),
}


def _load_module(cluster):
    """Loads the user's build of the module, if there is one."""
    module = kernels.ROOT / "build" / f"kernel-{cluster.kernel.release}" / "lite.ko"
    if module.exists():
        secret = secrets.token_hex(32)
        for node in cluster.nodes:
            node.insmod(f"/lite/{module.relative_to(kernels.ROOT)}")
            node.write("/etc/lite/secret", secret, mode=0o600)
        print("lite.ko is loaded, /etc/lite/secret made; the programs are below /lite/build/user")
    else:
        print(f"there is no {module.relative_to(kernels.ROOT)}: make module KERNEL={cluster.kernel} builds it")


def main(arguments=None):
    """The program tests/vm/cluster."""
    parser = argparse.ArgumentParser(prog="tests/vm/cluster", description="Boots a virtual cluster to play with.",
                                     epilog="At its prompt:\n" + HELP,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nodes", nargs="?", type=int, default=2, help="number of machines (default: 2)")
    parser.add_argument("--kernel", default="6.1", choices=kernels.KNOWN, help="default: 6.1")
    parser.add_argument("--mem", type=int, metavar="MB", help="memory of each")
    parser.add_argument("--cpus", type=int, default=1, help="processors of each (default: 1)")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with contextlib.suppress(ImportError):
        importlib.import_module("readline")  # input() then has a history
    try:
        with Cluster(nodes=options.nodes, kernel=options.kernel, mem_mb=options.mem, cpus=options.cpus) as cluster:
            print(f"{options.nodes} nodes with Linux {cluster.kernel.release} are up after {cluster.boot_seconds:.1f} s: "
                  f"{', '.join(f'{node} {node.ip}' for node in cluster.nodes)}; logs in {cluster.log_dir}; try: help")
            _load_module(cluster)
            Prompt(cluster).loop()
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
