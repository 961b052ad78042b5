# SPDX-License-Identifier: GPL-2.0
"""The part of scripts/demo after the build: a story in numbered chapters, with a check of every step."""

import os
import pathlib
import re
import sys
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/vm"), str(ROOT / "scripts/lib")]

import guest_tools  # noqa: E402  # pylint: disable=wrong-import-position
from vmlab import Cluster, LabError  # noqa: E402  # pylint: disable=wrong-import-position

KERNEL = os.environ.get("KERNEL", "6.1")
LOGS = pathlib.Path(os.environ.get("LITE_DEMO_LOGS") or ROOT / "build/demo")
BEGUN = float(os.environ.get("LITE_DEMO_BEGUN") or time.time())

# Room for the file, its copy, and the region between them.
NODE_MB = 640
FILE_MB = 64


class Failure(Exception):
    """A step failed."""


class Story:
    """Runs commands on the nodes, and prints them as a user would type them."""

    def __init__(self):
        self._chapter = 1  # scripts/demo has printed the first chapter

    def chapter(self, title):
        """Begins the next chapter."""
        self._chapter += 1
        print(f"\n{self._chapter:2}. {title}", flush=True)

    def run(self, node, command, user=None, timeout=60, show=None):
        """Runs a command that must succeed; returns what it printed."""
        result = self._run(node, command, user, timeout, show)
        if not result.ok:
            raise Failure(f"{command}: exit status {result.rc}")
        return result.out

    def refused(self, node, command, because, user=None):
        """Runs a command that must fail, with an error that matches `because`."""
        result = self._run(node, command, user, 60)
        if result.ok:
            raise Failure(f"{command}: succeeded, but must not")
        if not re.search(because, result.err):
            raise Failure(f"{command}: failed, but not with {because!r}")
        self.good("refused, and for the right reason")

    def good(self, text):
        """Reports a check that passed."""
        print(f"       ok: {text}", flush=True)

    def _run(self, node, command, user, timeout, show=None):
        name = f"node{node.number}"
        print(f"    {user}@{name}$ " if user else f"    {name}# ", show or command, sep="", flush=True)
        result = node.run(command, user=user, timeout=timeout, check=False)
        for line in (result.out + result.err).splitlines():
            print(f"    {line}".rstrip(), flush=True)
        return result


def _module(node, name):
    return f"/lite/build/kernel-{node.kernel.release}/{name}.ko"


def form_cluster(story, cluster):
    """Two nodes form a cluster."""
    story.chapter("A cluster of two nodes")
    n1, n2 = cluster.nodes
    # Both nodes need the same secret.
    story.run(n1, "litectl secret")
    n2.write("/etc/lite/secret", n1.read("/etc/lite/secret"), mode=0o600)
    for node in cluster.nodes:
        story.run(node, f"insmod {_module(node, 'lite')}", show="insmod lite.ko")
        story.run(node, f"litectl start --addr {node.ip} --mode 0666")
    story.run(n2, f"litectl join {n1.ip}")
    nodes = story.run(n1, "litectl nodes")
    if n1.ip not in nodes or n2.ip not in nodes:
        raise Failure("litectl nodes does not show both nodes")


def move_file(story, cluster):
    """A file goes from one machine to the other through a region, and must arrive unchanged."""
    n1, n2 = cluster.nodes
    story.chapter(f"A file of {FILE_MB} MB through memory of the other node")
    story.run(n1, f"dd if=/dev/urandom of=file bs=1M count={FILE_MB} status=none")
    story.run(n1, f"lite alloc demo {FILE_MB}M --node 2")
    story.run(n1, "lite ls")
    _timed(story, n1, "lite put file demo", "sent from node 1 into the memory of node 2")
    _timed(story, n2, "lite get demo copy --checksum", "fetched on node 2, where it is local")
    sums = [story.run(node, f"sha256sum {name}").split()[0] for node, name in ((n1, "file"), (n2, "copy"))]
    if sums[0] != sums[1]:
        raise Failure("the checksums differ")
    story.good("both nodes have the same bytes")


def _timed(story, node, command, what):
    begun = time.monotonic()
    story.run(node, command, timeout=180)
    took = time.monotonic() - begun
    story.good(f"{what} in {took:.1f} s ({FILE_MB * 1.048576 / took:.0f} MB/s)")


def get_refused(story, cluster):
    """LITE refuses invalid requests, and says why."""
    n1, n2 = cluster.nodes
    story.chapter("What LITE refuses")
    story.refused(n1, f"lite read demo {FILE_MB}M 1", "beyond the end")
    story.refused(n1, "lite write demo 0xffffffffffffffff two", "beyond the end")
    story.refused(n1, "lite read demo 0 16", "permission denied", user="alice")
    story.refused(n2, "lite free demo", "only a master", user="alice")
    story.refused(n2, "lite read nothing 0 1", "no LMR of that name")
    story.refused(n1, "lite alloc far 4K --node 77", "no node of that id")


def count_together(story, cluster):
    """Small programs that use the library, in C and in C++."""
    n1, n2 = cluster.nodes
    story.chapter("Programs: examples/hello.c and examples/hello.cpp")
    if "hello, remote memory" not in story.run(n1, "hello 2"):
        raise Failure("hello did not read back what it wrote")
    story.run(n1, "hello++ 2")
    if "counted to 2000," not in story.run(n2, "hello++ 2"):
        raise Failure("counts were lost")
    story.good("a counter that both nodes increment loses nothing")
    story.run(n1, "lite free hello-counter demo")


def use_from_kernel(story, cluster):
    """A kernel module uses remote memory."""
    n1 = cluster.nodes[0]
    story.chapter("A kernel module: apps/kconsumer")
    story.run(n1, f"insmod {_module(n1, 'kconsumer')} node=2", show="insmod kconsumer.ko node=2")
    if "verified" not in story.run(n1, "dmesg | grep kconsumer | tail -n 1"):
        raise Failure("the module did not say that it has verified anything")
    story.run(n1, "rmmod kconsumer")


def measure(story, cluster):
    """Compares LITE with native verbs and TCP."""
    n1, n2 = cluster.nodes
    story.chapter("Speed, beside native verbs and TCP, taking turns (Soft-RoCE in emulated machines: only ratios count)")
    story.run(n2, "lite-perf serve --background >/dev/null", show="lite-perf serve --background")
    story.run(n1, f"lite-perf run --server {n2.ip} --node 2 --arms lite,verbs,tcp --sizes 64,4K,1M --window 1 --seconds 0.4 "
                  "--workload read-latency,write-latency,fetch-add,read-throughput,write-throughput")


def leave(story, cluster):
    """Leaves the cluster, and unloads the module."""
    n1, n2 = cluster.nodes
    story.chapter("Leaving")
    story.run(n2, "litectl leave")
    for node in (n2, n1):
        story.run(node, "litectl stop")
        story.run(node, "rmmod lite")
    cluster.check()
    story.good("modules unloaded, and neither kernel has complained")


CHAPTERS = (form_cluster, move_file, get_refused, count_together, use_from_kernel, measure, leave)


def main():
    """Returns exit status 0 if every step passed."""
    story = Story()
    try:
        story.chapter("Booting two virtual machines")
        with Cluster(nodes=2, kernel=KERNEL, mem_mb=NODE_MB, log_dir=LOGS,
                     files=guest_tools.install(LOGS / "bin")) as cluster:
            print("    " + ", ".join(f"node{n.number} {n.ip}" for n in cluster.nodes) +
                  f": up in {cluster.boot_seconds:.1f} s", flush=True)
            for chapter in CHAPTERS:
                chapter(story, cluster)
    except (Failure, LabError) as error:
        print(f"\nFAIL after {time.time() - BEGUN:.0f} s: {error}\n(logs: {LOGS})")
        return 1
    except KeyboardInterrupt:
        print("\nFAIL: interrupted")
        return 130
    print(f"\nPASS in {time.time() - BEGUN:.0f} s: two machines, one memory.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
