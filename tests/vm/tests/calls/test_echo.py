# SPDX-License-Identifier: MIT
"""Calls beside native verbs, TCP and gRPC, which take turns in one run: echoes by a program at the other end."""

import contextlib
import json
import os

from litelab import USER_BUILD, on_machines, prepare_all
from vmlab.testing import vmtest

setup = prepare_all

_SIZES = (8, 64, 4096)
_NATIVE = ("tcp", "write-imm", "send")
# gRPC is measured if it is installed (libgrpc++-dev), and was when lite-perf was built.
_PLUGIN = USER_BUILD / "apps/lite-perf/lite-perf-grpc.so"
_FILES = {"/usr/bin/lite-perf-grpc.so": str(_PLUGIN)} if _PLUGIN.exists() else {}
_ARMS = ("lite", *_NATIVE, *(["grpc"] if _FILES else []))


@contextlib.contextmanager
def _serving(lite, arms, *options):
    """Runs lite-perf serve on a node."""
    words = ["lite-perf", "serve", "--background", "--bind", lite.address, "--arms", ",".join(arms), *options]
    server = lite.vm.run(words).out.split()[-1]
    try:
        yield
    finally:
        lite.vm.run(["kill", server])
        lite.vm.run(f"while kill -0 {server} 2>/dev/null; do usleep 50000; done")


def _measure(first, second, workloads, rounds, count, arms=_ARMS, sizes=_SIZES):
    """{(workload, size): {label: outcome}} as lite-perf reports them; ratios are to write-imm."""
    with _serving(second, arms):
        out = first.vm.run(f"lite-perf run --server {second.address} --node {second.id} --arms {','.join(arms)} "
                           f"--workload {workloads} --sizes {','.join(map(str, sizes))} --rounds {rounds} --count {count} "
                           "--baseline write-imm --json - --quiet", timeout=500).out
    return {(result["workload"], result["size"]): {outcome["label"]: outcome for outcome in result["outcomes"]}
            for result in json.loads(out)["results"]}


def _show(results):
    for (workload, size), outcomes in results.items():
        parts = []
        for label, outcome in outcomes.items():
            ratio = outcome.get("ratio")
            said = f" ({ratio['value']:.2f} x [{ratio['low']:.2f}, {ratio['high']:.2f}])" if ratio else ""
            parts.append(f"{label} {outcome['median']:.0f}{said}")
        print(f"      {workload} {size} B: {', '.join(parts)}")


def _missed(results, bounds):
    """The ratios of LITE's medians to those of other arms that exceed their bounds, as texts."""
    missed = []
    for size in _SIZES:
        medians = {arm: outcome["median"] for arm, outcome in results["rpc-latency", size].items()}
        ratios = {arm: medians["lite"] / medians[arm] for arm in bounds if arm in medians}
        print(f"      {size} B: " + ", ".join(f"lite / {arm} {ratio:.2f}" for arm, ratio in ratios.items()))
        missed += [f"{size} B: {ratio:.2f} x {arm}" for arm, ratio in ratios.items() if ratio > bounds[arm]]
    return missed


def _compare(lab, bounds, rounds):
    """Compares medians of round trips with bounds. The host is noisy, and may be so for a whole run, so one that misses a
    bound is followed by longer ones, at last seven times as long. One that meets all bounds is enough."""
    first, second = on_machines(lab, heartbeat=1000, dead=10000)
    rounds = int(os.environ.get("LITE_ECHO_ROUNDS", rounds))
    for longer in (1, 2, 7, 7, 7):
        results = _measure(first, second, "rpc-latency", longer * rounds, longer * rounds * 100)
        _show(results)
        missed = _missed(results, bounds)
        if not missed:
            break
    assert not missed, ", ".join(missed)


@vmtest(alone=True, kernels=("6.1",), fresh=True, timeout=600, mem_mb=512, files=_FILES)
def test_latency(lab):
    """Calls do not become slower. The goal is the next test."""
    _compare(lab, {"write-imm": 1.1, "grpc": 0.7, "tcp": 2.5}, 3)


@vmtest(alone=True, kernels=("6.1",), fresh=True, timeout=600, mem_mb=512, files=_FILES, slow=True)
def test_latency_as_it_should_be(lab):
    """The goal for the latency of calls."""
    _compare(lab, {"write-imm": 1.0, "grpc": 0.5, "tcp": 1.0}, 7)


@vmtest(alone=True, kernels=("6.1",), fresh=True, timeout=600, mem_mb=512, files=_FILES, slow=True)
def test_rate(lab):
    """Echoes per second of 1, 4 and 16 callers."""
    first, second = on_machines(lab, heartbeat=1000, dead=10000)
    rounds = int(os.environ.get("LITE_ECHO_ROUNDS", "5"))
    _show(_measure(first, second, "rpc-rate", rounds, rounds * 320, sizes=(64,)))


def _busy(vm):
    """(busy, all) jiffies of a machine's CPUs so far, interrupts included."""
    user, nice, system, idle, iowait, *rest = (int(word) for word in vm.run("cat /proc/stat").out.split("\n")[0].split()[1:])
    return user + nice + system + sum(rest[:3]), user + nice + system + idle + iowait + sum(rest[:3])


def _share(vm, seconds):
    """The part of its CPU time that a machine uses during so many seconds."""
    busy, total = _busy(vm)
    vm.run(f"sleep {seconds}", timeout=seconds + 30)
    now_busy, now_total = _busy(vm)
    return (now_busy - busy) / (now_total - total)


@vmtest(alone=True, kernels=("6.1",), fresh=True, timeout=600, mem_mb=512, files=_FILES, slow=True)
def test_what_the_server_pays(lab):
    """The CPU use of the server's machine, at 1000 calls of 64 B per second and without calls."""
    first, second = on_machines(lab, heartbeat=1000, dead=10000)
    seconds = 6
    seen = {}
    for name, arms, options in (("spinning", ["write-imm"], ["--spin"]), *((arm, [arm], []) for arm in _ARMS)):
        with _serving(second, arms, *options):
            load = first.vm.spawn(f"lite-perf load --server {second.address} --node {second.id} --arm {arms[0]} --rate 1000 "
                                  f"--seconds {seconds + 4}")
            load.wait_output("running", timeout=20)
            share = _share(second.vm, seconds)
            said = load.wait(60, check=True).out.splitlines()[-1]
        seen[name] = share
        print(f"      {name}: {share:.1%} ({said})")
    with _serving(second, ["lite"]):
        first.vm.run("sleep 1")
        idle = _share(second.vm, seconds)
    print(f"      idle, a function served: {idle:.1%}")
    print(f"      lite / spinning: {seen['lite'] / seen['spinning']:.2f}")
    assert seen["lite"] <= 0.6 * seen["spinning"], seen
    # The machine has one CPU.
    assert idle <= 0.03, idle
