# SPDX-License-Identifier: MIT
"""Functions, calls, messages: between processes of one node, of several nodes in one machine, of several machines."""

import signal
import time

from litelab import (Lite, beside_bulk, dead_seconds, in_one_machine, join_all, module_path, nodes_in, on_machines,
                     patient, prepare_all, probed, program_path, run_catch, serve, stop_all, wait_complete, wait_until)
from vmlab.testing import vmtest

setup = prepare_all

_IDLE = 10  # LITE_CLIENT_RING_IDLE


def _call(lite, *words, **options):
    """Runs `lite call`, with more time than it takes by default: a busy host may need it."""
    return lite.lite("call", "-t", 60000, *words, **options)


@vmtest(nodes=1, cpus=2, mem_mb=768, timeout=560)
def test_three_nodes_in_one_machine(lab):
    lites = in_one_machine(lab.n1)
    run_catch(lab, lites, "rpc_test", timeout=540, case_timeout=300)
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=1, cpus=2, mem_mb=768, timeout=300)
def test_messages_on_nodes_that_schedule(lab):
    """Messages keep their order, and calls get their own answers, behind bulk of a higher class."""
    lites = in_one_machine(lab.n1)
    with beside_bulk(lites) as has_waited:
        while True:
            run_catch(lab, lites, "rpc_test", "messages: in their order*,async: many at once*", timeout=280, case_timeout=250)
            if has_waited():
                break
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=2, timeout=200)
def test_command_line(lab):
    here, there = on_machines(lab)
    echo = serve(there, "echo", "--echo")
    assert _call(here, there.id, "echo", "hello").out == "hello"
    assert _call(there, 0, "echo", "me").out == "me"
    said = _call(here, there.id, "nothing", "x", check=False)
    assert said.rc == 1 and "no process serves that function" in said.err, said
    said = here.lite("call", there.id, "echo", "x" * 5000, check=False)
    assert said.rc == 1, said
    echo.kill(signal.SIGTERM)
    echo.wait(20)
    assert here.lite("call", there.id, "echo", "x", check=False).rc == 1

    command = serve(there, "2000", "--exec", "tr a-z A-Z; exit $LITE_CALLER_NODE", "--mode", "0666")
    said = _call(here, there.id, 2000, "-", stdin=b"shout", check=False)
    assert said.out == "SHOUT" and said.rc == 1 and f"the server says {here.id}" in said.err, said
    command.kill(signal.SIGTERM)
    command.wait(20)

    printed = serve(there, "log", "--count", 3)
    for word in ("one ", "two ", "three"):
        here.lite("send", "-t", 60000, there.id, "log", word)
    printed.wait(20, check=True)
    assert printed.out == "one two three", printed.out
    for lite in (here, there):
        lite.check_idle()


@vmtest(nodes=2, fresh=True, timeout=200)
def test_a_node_dies(lab):
    """A caller is told that the server's node is down."""
    here, there = on_machines(lab)
    serve(there, "2000", "--exec", "sleep 100")
    slow = here.vm.spawn(["lite", "call", str(there.id), "2000", "x", "-t", "60000"])
    wait_until("the call is there", lambda: there.stats()["rpc_requests"] == 1, 20)
    there.vm.crash()
    slow.wait(20 + 3 * dead_seconds(here.vm))
    assert slow.rc == 1 and "down" in slow.err, slow.err
    here.check_idle()


@vmtest(nodes=2, timeout=200)
def test_rings_are_given_back(lab):
    """A ring is given back when it has been idle, even if a call in it was not collected, and when its client stops."""
    here, there = on_machines(lab)
    echo = serve(there, "2001", "--echo")

    def bind():
        assert _call(here, there.id, 2001, "x").out == "x"
        return there.stats()["rings"] == here.stats()["rings"] == 1

    # Not at once if this takes so long that the ring has been idle.
    wait_until("there is a ring", bind, 20, here.vm.time_scale)
    wait_until("the ring is given back", lambda: not there.stats()["rings"] and not here.stats()["rings"], 40)
    kept = here.vm.spawn([program_path("crowd"), "begin", str(here.index), str(there.id), "2001", "1"])
    kept.wait_output("1\n", timeout=20)
    assert _call(here, there.id, 2001, "y").out == "y"
    wait_until("the ring is given back", lambda: not there.stats()["rings"] and not here.stats()["rings"], 40)
    assert kept.running
    kept.close_stdin()
    kept.wait(20, check=True)
    assert _call(here, there.id, 2001, "z").out == "z"
    echo.kill(signal.SIGTERM)
    echo.wait(20)
    here.stop()
    wait_until("the client's ring is gone", lambda: not there.stats()["rings"], 20)
    here.start()
    here.join(there)


@vmtest(nodes=2, timeout=200, kernels=("6.1", "6.12"))
def test_a_question_without_an_answer_closes_no_ring(lab):
    """A node is asked whether a function that a user may not call was registered anew, and does not answer in time."""
    here, there = on_machines(lab, **patient(lab.n1))
    echo = serve(there, "2003", "--echo")
    for _ in range(10):
        begun = time.monotonic()
        with probed(lab.n1, "lite_client_ring_close") as closed:
            assert _call(here, there.id, 2003, "x").out == "x"
            there.vm.pause()
            try:
                refused = here.vm.run(["lite", "-i", str(here.index), "call", str(there.id), "2003", "y", "-t", "300"],
                                      user="alice", check=False)
            finally:
                there.vm.resume()
            assert "did not answer in time" in refused.err, refused.err
            is_closed = closed in here.vm.run("cat /sys/kernel/tracing/trace").out
        if not is_closed:
            break
        # A ring that has been idle for a while is closed, too: then all of it again.
        assert time.monotonic() - begun >= _IDLE, "it was not idle for long"
    assert not is_closed
    refused = here.vm.run(["lite", "-i", str(here.index), "call", str(there.id), "2003", "y", "-t", "60000"], user="alice",
                          check=False)
    assert "permission denied" in refused.err, refused.err
    echo.kill(signal.SIGTERM)
    echo.wait(20)


@vmtest(nodes=2, timeout=200)
def test_stopped_while_memory_is_missing(lab):
    """A node can be stopped while a thread waits for a page of its own process that may never come."""
    here, there = on_machines(lab)
    echo = serve(there, "2002", "--echo")
    user = here.vm.spawn([program_path("absent"), str(here.index), str(there.id), "2002"])
    wait_until("its memory is waited for", lambda: "waiting" in user.out or not user.running, 20, here.vm.time_scale)
    here.stop()
    assert not here.exists()
    assert user.running, user.err
    user.close_stdin()
    user.wait(20)
    assert user.rc == 0, user.out + user.err
    echo.kill(signal.SIGTERM)
    echo.wait(20)
    there.check_idle()
    here.start()
    here.join(there)


@vmtest(nodes=2, timeout=200)
def test_kernel_functions(lab):
    """The example module serves functions, calls those of another node, and checks the replies."""
    here, there = on_machines(lab)
    there.vm.insmod(module_path(there.vm, "kcalls"))
    here.vm.insmod(module_path(here.vm, "kcalls"), node=there.id)
    assert _call(here, there.id, "kcalls-sort", "sesame", check=False).out == "aeemss"
    here.lite("send", "-t", 60000, there.id, "kcalls-sort", "x")
    wait_until("it is taken", lambda: not there.stats()["rpc_requests"], 20)
    for lite, count in ((here, 204), (there, 409)):
        lite.vm.rmmod("kcalls")
        assert f"kcalls: {count} messages came" in lite.vm.run("dmesg").out
        lite.check_idle()


@vmtest(nodes=2, timeout=100)
def test_a_ring_of_no_use(lab):
    """A user that may not call a function learns this from BIND. A work item gives the ring back, because no signal
    would end the wait of the user's thread."""
    here, there = on_machines(lab)
    server = serve(there, "2005", "--echo")
    with probed(here.vm, "lite_client_ring_tell_unbind") as unbind:
        said = here.lite("call", there.id, 2005, "x", check=False, user="alice")
        assert said.rc == 1 and not said.out, said
        threads = wait_until("it is given back", lambda: here.vm.run(
            f"sed -n 's/-[0-9]* .* {unbind}: .*//p' /sys/kernel/tracing/trace").out.split(), 20, here.vm.time_scale)
    assert all(thread.startswith("kworker/") for thread in threads), threads
    server.kill(signal.SIGTERM)
    server.wait(20)
    for lite in (here, there):
        lite.check_idle()


@vmtest(nodes=2, timeout=300)
def test_giving_back_waits_for_its_turn(lab):
    """Calls of other processes fill the lane to a server that does not answer. The kernel has to tell the server that a
    call was given up, and that a ring is idle: these messages wait for longer than calls do, and end no session."""
    here, there = lites = [Lite(vm) for vm in lab.nodes]
    stop_all(lites)
    for lite in lites:
        # No heartbeat is due before the test is over.
        lite.start(heartbeat=200_000, dead=600_000, op_timeout=200_000)
    join_all(lites)
    there.lite("alloc", "asked", 4096)
    servers = [serve(there, function, "--echo") for function in ("2003", "2004")]
    for function in ("2003", "2004"):
        assert _call(here, there.id, function, "x").out == "x"
    before = {lite.vm: lite.stats() for lite in lites}
    # Threads block for longer than the hung-task check allows.
    patience = here.vm.read("/proc/sys/kernel/hung_task_timeout_secs").strip()
    here.vm.run("echo 0 >/proc/sys/kernel/hung_task_timeout_secs")
    there.vm.pause()
    # One for each slot of the lane (lane.h).
    line = [here.vm.spawn(["lite", "stat", "asked"]) for _ in range(3)]
    wait_until("they have all slots", lambda: here.stats()["calls_inflight"] == 3, 20, here.vm.time_scale)
    assert "did not answer in time" in here.lite("call", there.id, 2003, "x", "--timeout", "500ms", check=False).err
    # Each waits for LITE_CALL_TIMEOUT: the first for longer than the ring takes to be idle, the next for its retry.
    for _ in range(3):
        result = here.lite("stat", "asked", check=False, timeout=60)
        assert result.rc == 1 and "did not answer in time" in result.err, result
    there.vm.resume()
    for process in line:
        process.wait(30)
    here.vm.run(f"echo {patience} >/proc/sys/kernel/hung_task_timeout_secs")
    for lite in lites:
        wait_until("rings and calls are given back", lambda lite=lite: not lite.stats()["rings"], 40, lite.vm.time_scale)
        after = lite.stats()
        ends = {name: after[name] - number for name, number in before[lite.vm].items() if name.startswith("ends_")}
        assert not any(ends.values()), (lite, ends)
    assert here.stats()["rpc_cancels"] == before[here.vm]["rpc_cancels"] + 1
    assert _call(here, there.id, 2003, "y").out == "y"
    for server in servers:
        server.kill(signal.SIGTERM)
        server.wait(20)
    there.lite("free", "asked")
    stop_all(lites)


@vmtest(nodes=1, cpus=2, timeout=200)
def test_calls_in_line_end(lab):
    """Calls of a user wait in line when their node leaves, their process is killed, both happen at once, or their node
    stops. Each releases its resources once, and nothing that belongs to another call."""
    stop_all(nodes_in(lab.n1))
    here, there = lites = in_one_machine(lab.n1, 2)

    def queue():
        crowd = lab.n1.spawn([program_path("crowd"), "line", "0", "1", str(there.id), "400"], user="alice")
        crowd.wait_output("ready", timeout=60)
        wait_until("all that may be are in flight", lambda: here.stats()["rpcs_inflight"] >= 100)
        return crowd

    for leaves, killed in ((True, False), (False, True), (True, True)):
        crowd = queue()
        if killed:
            crowd.kill()
        if leaves:
            here.leave()
        crowd.close_stdin()
        crowd.wait(60, check=not killed)
        for lite in lites:
            lite.check_idle()
        if leaves:
            here.join(there)
            wait_complete(lites)
        lab.n1.run([program_path("crowd"), "echo", "0", "1", str(there.id), "20"], timeout=60)
    crowd = queue()
    stop_all(lites)
    crowd.close_stdin()
    crowd.wait(60, check=True)
