# SPDX-License-Identifier: MIT
"""lite-perf can measure all that it claims. For results see test_perf.py, test_echo.py and `make bench`."""

import contextlib
import json

from litelab import module_path, on_machines, prepare_all, rdma_objects
from vmlab.testing import vmtest

setup = prepare_all

_ARMS = "lite,lite-vector,lite-uring,verbs,verbs-events,tcp,kernel-lite,kernel-verbs,write-imm,send"


@contextlib.contextmanager
def _serving(lite, arms="lite,verbs,tcp,write-imm,send"):
    """Runs lite-perf serve, for all arms or some."""
    pid = lite.vm.run(f"lite-perf serve --background --arms {arms}").out.split()[-1]
    try:
        yield
    finally:
        lite.vm.run(["kill", pid])
        lite.vm.run(f"while kill -0 {pid} 2>/dev/null; do usleep 50000; done")


@contextlib.contextmanager
def _kperf(vm):
    vm.insmod(module_path(vm, "kperf"))
    try:
        yield
    finally:
        vm.rmmod("kperf")


def _measure(first, second, workloads, *options):
    """{workload: {label: outcome}}, with one size each."""
    out = first.vm.run(["lite-perf", "run", "--server", second.address, "--node", str(second.id), "--arms", _ARMS, "--workload",
                        workloads, "--sizes", "64", "--rounds", "2", "--count", "5", "--json", "-", *options], timeout=120).out
    results = {}
    for result in json.loads(out)["results"]:
        assert result["workload"] not in results, result
        results[result["workload"]] = {outcome["label"]: outcome for outcome in result["outcomes"]}
    return results


def _labels(arms, widths):
    return {arm if width == 1 else f"{arm} x{width}" for arm in arms for width in widths}


@vmtest(alone=True, kernels=("6.1", "6.12"), timeout=200)
def test_all_that_can_be_measured(lab):
    """Every workload works with every arm that can do it, and nothing is left behind at either end."""
    first, second = on_machines(lab, heartbeat=1000, dead=10000)
    main, kernel = {"lite", "verbs", "tcp"}, {"kernel-lite", "kernel-verbs"}
    user = main | {"lite-vector", "lite-uring", "verbs-events"}
    echoes = {"lite", "tcp", "write-imm", "send"}
    before = rdma_objects(first.vm), rdma_objects(second.vm)
    with _kperf(first.vm), _serving(second):
        seen = _measure(first, second, "read-latency,write-latency,fetch-add,rpc-latency,read-rate,write-rate,read-threads,rpc-rate,"
                        "read-processes,map,connect,lmrs,lmr-size", "--window", "1,8", "--threads", "1,3", "--processes", "1,3",
                        "--lmrs", "1,50", "--lmr-sizes", "4K,8M")
    for workload in ("read-latency", "write-latency", "fetch-add"):
        assert set(seen[workload]) == user | kernel, seen[workload].keys()
    assert set(seen["rpc-latency"]) == echoes
    for workload in ("read-rate", "write-rate"):
        assert set(seen[workload]) == _labels(user | {"kernel-verbs"}, (1, 8)) - {"lite x8"} | {"kernel-lite"}, seen[workload].keys()
    assert set(seen["read-threads"]) == _labels(user, (1, 3))
    assert set(seen["rpc-rate"]) == _labels(echoes, (1, 3))
    assert set(seen["read-processes"]) == _labels(user, (1, 3))
    assert set(seen["map"]) == {"lite", "lite, first", "verbs"}
    assert set(seen["connect"]) == main | {"process alone"}
    assert set(seen["lmrs"]) == {f"{arm} of {count}" for arm in ("lite", "verbs") for count in (1, 50)}
    assert set(seen["lmr-size"]) == {f"{arm} in {size}" for arm in ("lite", "verbs") for size in ("4 KB", "8 MB")}
    made = {label: outcome["facts"]["queue_pairs_made"] for label, outcome in seen["read-processes"].items()}
    assert made == {label: (3 if "x3" in label else 1) * label.startswith("verbs") for label in _labels(user, (1, 3))}, made
    assert (rdma_objects(first.vm), rdma_objects(second.vm)) == before
    for lite in (first, second):
        lite.check_idle()


def test_what_is_missing_is_said(lab):
    """lite-perf names what is missing at either end."""
    first, second = on_machines(lab, heartbeat=1000, dead=10000)

    def refused(*options):
        result = first.vm.run(["lite-perf", "run", "--workload", "read-latency", "--count", "1", *options], check=False)
        assert result.rc == 1, result
        return result.err

    assert "is kperf.ko loaded?" in refused("--node", str(second.id), "--arms", "kernel-lite")
    assert "10.0.0." in refused("--server", second.address, "--arms", "verbs")
    assert "10.0.0." in refused("--server", second.address, "--arms", "tcp")
    assert "none of the arms" in refused("--server", second.address, "--arms", "write-imm")
    with _kperf(first.vm):
        assert "connecting" in refused("--server", second.address, "--arms", "kernel-verbs")
        assert "connecting" in refused("--node", "4321", "--arms", "kernel-lite")
    first.check_idle()


def test_an_arm_that_the_server_lacks_is_named(lab):
    """The other arms are measured."""
    first, second = on_machines(lab, heartbeat=1000, dead=10000)
    with _serving(second, "tcp"):
        result = first.vm.run(["lite-perf", "run", "--server", second.address, "--node", str(second.id), "--arms", "lite,tcp",
                               "--workload", "rpc-latency,read-latency", "--sizes", "64", "--rounds", "2", "--count", "5"],
                              timeout=60)
        nowhere = first.vm.run(["lite-perf", "run", "--server", second.address, "--node", str(second.id), "--arms", "lite,tcp",
                                "--workload", "rpc-latency", "--sizes", "64", "--rounds", "2", "--count", "5"],
                               check=False, timeout=60)
    assert result.err == ("lite-perf: rpc-latency has no results for lite: it is not served there, or this arm cannot do "
                          "it\n"), result
    assert "tcp" in result.out and "lite" in result.out, result
    assert nowhere.rc == 1 and nowhere.err == result.err + "lite-perf: lite was not measured\n", nowhere
    assert "tcp" in nowhere.out, nowhere
    first.check_idle()


@vmtest(alone=True, kernels=("6.1", "6.12"), timeout=200, mem_mb=768, swap_mb=64)
def test_every_way_to_move_a_file(lab):
    """All ways to move a file, even one that is not in the page cache, and back. None holds a page of it afterwards."""
    first, second = on_machines(lab, heartbeat=1000, dead=10000)
    first.vm.run("swapoff /dev/vda && modprobe -q ext4 && mke2fs -q -t ext4 /dev/vda && mkdir -p /mnt/disk && "
                 "mount /dev/vda /mnt/disk", timeout=60)
    run = ["lite-perf", "run", "--server", second.address, "--node", str(second.id), "--arms", "lite,verbs,tcp", "--file-sizes",
           "1,100K", "--pipes", "1,3", "--pages", "4", "--rounds", "2", "--count", "2", "--quiet"]
    try:
        with _serving(second, "verbs,tcp"):
            out = first.vm.run([*run, "--workload", "file,file-cold,file-receive", "--directory", "/mnt/disk", "--json", "-"],
                               timeout=150).out
            refused = first.vm.run([*run, "--workload", "file-cold", "--directory", "/tmp"], check=False, timeout=60)
    finally:
        first.vm.run("umount /mnt/disk")
    assert refused.rc == 1 and "/tmp stay in memory" in refused.err, refused
    results = json.loads(out)["results"]
    sizes = (1, 100 << 10)
    assert [(result["workload"], result["size"]) for result in results] == [
        (workload, size) for workload in ("file", "file-cold", "file-receive") for size in sizes], results
    for result in results:
        outcomes = {outcome["label"]: outcome for outcome in result["outcomes"]}
        in_sets = {"lite", "static"} | ({"register"} if result["workload"] != "file-receive" else set())
        # A file of one byte is one part.
        assert set(outcomes) == ({f"{way} {pipes}x4" for way in in_sets for pipes in ((1, 3) if result["size"] > 1 else (1,))} |
                                 {"read-write 1x4", "tcp 1x4"}), outcomes.keys()
        assert result["unit"] == "MB/s"
        for label, outcome in outcomes.items():
            assert outcome["samples"] == 2 and outcome["median"] > 0, outcome
            assert set(outcome["facts"]) == {"cpu_here", "cpu_there", "held"}, outcome
            if outcome["arm"] != "tcp":
                pages = 1 if result["size"] == 1 else 4 * outcome["width"]
                assert outcome["facts"]["held"] == pages * 4096, (label, outcome)
    for lite in (first, second):
        lite.check_idle()
