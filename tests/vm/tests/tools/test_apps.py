# SPDX-License-Identifier: MIT
"""Programs that use LITE: the examples, and lite-perf."""

import json

import filesystems
import litelab
from vmlab.testing import vmtest


def setup(cluster):
    """Installs tools, examples and module on all machines."""
    litelab.prepare_all(cluster)
    for node in cluster.nodes:
        for name in ("hello", "hello++", "greet", "tally", "checkpoint"):
            node.put(litelab.USER_BUILD / "examples" / name, f"/usr/bin/{name}")


def test_examples(lab):
    first, second = litelab.on_machines(lab)
    assert "hello, remote memory" in first.vm.run(["hello", str(second.id)]).out
    assert not first.vm.run(["hello", "4711"], check=False).ok

    counters = [lite.vm.spawn(["hello++", str(second.id)]) for lite in (first, second) for _ in range(2)]
    for process in counters:
        process.wait(60, check=True)
    assert "counted to 5000, in the memory" in first.vm.run(["hello++", str(second.id)]).out
    first.lite("free", "hello-counter")

    server = second.vm.spawn(["greet"])
    server.wait_output("serving", timeout=20)
    assert first.vm.run(["greet", str(second.id), "world"]).out == f"hello, world of node {first.id}\n"
    # Names of the maximum length, and names that are too long, do the server no harm.
    assert first.vm.run(["greet", str(second.id), "x" * 1024]).out == f"hello, {'x' * 1024} of node {first.id}\n"
    assert "greet: " in first.vm.run(["greet", str(second.id), "x" * 1025], check=False).err
    assert first.vm.run(["greet", str(second.id), "world"]).out == f"hello, world of node {first.id}\n"
    server.kill(15)
    server.wait(20)
    assert server.rc == 0, server.err
    assert "greet: " in first.vm.run(["greet", str(second.id), "world"], check=False).err

    server = second.vm.spawn(["tally"])
    server.wait_output("serving", timeout=20)
    said = first.vm.run(["tally", str(second.id), "1", "2", "3", "4"]).out
    assert said.count("\n") == 4 and said.count("= 10\n") == 1, said
    # Input that is no number is refused, or taken as a short number, and the server goes on.
    assert not first.lite("call", second.id, "tally", "-", stdin=b"123456789", check=False).ok
    assert first.lite("call", "-t", 60000, second.id, "tally", "-", stdin=b"\1").ok
    assert first.vm.run(["tally", str(second.id), "5"]).out == "+ 5 = 16\n"
    server.kill(15)
    server.wait(20)
    assert server.rc == 0, server.err


def _checkpoints(first, second, megabytes, steps, every, path, timeout):
    command = ["checkpoint", "state", *(str(word) for word in (second.id, megabytes, steps, every)), path]
    done = first.vm.run(command, timeout=timeout).out
    assert f"saved step {steps}\n" in done and "continued" not in done, done
    result = done.splitlines()[-1]
    assert result.startswith("result "), done
    # Only the result is left to compute, from the memory of the other node, and then from the file.
    assert first.vm.run(command, timeout=timeout).out == f"continued after step {steps}\n{result}\n"
    first.lite("free", "state")
    assert first.vm.run(command, timeout=timeout).out == f"continued after step {steps}\n{result}\n"
    first.lite("free", "state")
    first.vm.run(["rm", path])
    # It may be killed in the middle of a checkpoint.
    process = first.vm.spawn(command)
    process.wait_output(f"saved step {every * (steps // every // 3)}\n", timeout=timeout)
    process.kill(9)
    process.wait(20)
    said = first.vm.run(command, timeout=timeout).out
    assert said.startswith("continued after step ") and said.splitlines()[-1] == result, said
    first.lite("free", "state")


def test_checkpoint(lab):
    """A killed computation goes on, even if the node with its checkpoints has lost them."""
    first, second = litelab.on_machines(lab)
    for numbers in (["0", "40", "4"], ["2", "40", "0"]):
        assert first.vm.run(["checkpoint", "state", str(second.id), *numbers], check=False).rc == 1
    _checkpoints(first, second, lab.scale(8, 2), 40, 4, "/tmp/state", 120)


@vmtest(nodes=2, mem_mb=1536, swap_mb=filesystems.DISK_MB, timeout=1200, slow=True, fresh=True, kernels=("6.1", "6.12"))
def test_checkpoint_of_256_mb(lab):
    """The same with a state that takes many requests, and a file on a disk."""
    first, second = litelab.on_machines(lab)
    filesystems.mount(first.vm, kinds=("xfs",))
    _checkpoints(first, second, 256, 12, 4, "/mnt/xfs/state", 300)
    filesystems.unmount(first.vm)
    for lite in (first, second):
        lite.check_idle()


@vmtest(timeout=240)
def test_lite_perf(lab):
    first, second = litelab.on_machines(lab)
    second.vm.run("lite-perf serve --background")
    command = ["lite-perf", "run", "--server", second.vm.ip, "--node", second.id, "--sizes", "64,64K", "--rounds", 3,
               "--count", 9, "--window", "1,4", "--json", "-", "--workload",
               "read-latency,write-latency,fetch-add,read-throughput"]
    report = json.loads(first.vm.run([str(word) for word in command], timeout=120).out)
    arms = {(result["workload"], result["size"]): {(o["arm"], o["width"]) for o in result["outcomes"]}
            for result in report["results"]}
    single = {("lite", 1), ("verbs", 1), ("tcp", 1)}
    for workload in ("read-latency", "write-latency"):
        assert arms[workload, 64] == arms[workload, 65536] == single, arms
    assert arms["fetch-add", 8] == single, arms
    assert arms["read-throughput", 65536] >= single | {("verbs", 4)}, arms
    assert all(o["median"] > 0 for result in report["results"] for o in result["outcomes"])
    first.check_idle()
    second.check_idle()


def test_lite_perf_says_what_is_wrong(lab):
    first, second = litelab.on_machines(lab)
    for options, message in ((["-s", second.vm.ip, "-p", "9", "-a", "tcp"], "Connection refused"),
                             (["-s", second.vm.ip, "-p", "9", "-a", "verbs"], "refuses"),
                             (["-n", "4711"], "no node of that id"),
                             ([], "give --server, --node or both")):
        result = first.vm.run(["lite-perf", "run", *options], check=False)
        assert result.rc == 1 and message in result.err, result
