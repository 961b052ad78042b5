# SPDX-License-Identifier: MIT
"""Commands of io_uring: data, errors, ends of commands in flight."""

import re

from litelab import (Lite, environment, in_one_machine, join_all, on_machines, prepare_all, program_path, run_catch, stop_all,
                     wait_until)
from vmlab.testing import vmtest

setup = prepare_all


@vmtest(timeout=400)
def test_two_machines(lab):
    lites = on_machines(lab)
    run_catch(lab, lites, "uring_test", timeout=380, case_timeout=120)
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=1, cpus=2, mem_mb=768, timeout=300, slow=True)
def test_three_nodes_in_one_machine(lab):
    lites = in_one_machine(lab.n1)
    run_catch(lab, lites, "uring_test", timeout=280, case_timeout=120)
    for lite in lites:
        lite.check_idle()


@vmtest(fresh=True, timeout=120)
def test_a_node_stops_with_commands_under_way(lab):
    here, there = on_machines(lab)
    program = here.vm.spawn([program_path("uring_test"), "[stop]"], env=environment(lab, [here, there]))
    wait_until("it is ready", lambda: "ready" in program.out or not program.running, 30, here.vm.time_scale)
    here.stop(timeout=20)
    program.wait(30)
    assert "All tests passed" in program.out, program.out
    there.check_idle()
    # Completed commands do not pin the module.
    stop_all([there])
    here.vm.rmmod("lite")


@vmtest(fresh=True, timeout=120)
def test_a_peer_dies_with_commands_under_way(lab):
    here, there = on_machines(lab)
    program = here.vm.spawn([program_path("uring_test"), "[peer]"], env=environment(lab, [here, there]))
    wait_until("it is ready", lambda: "ready" in program.out or not program.running, 30, here.vm.time_scale)
    there.vm.crash()
    program.wait(60)
    assert "All tests passed" in program.out, program.out
    # Locks may stay: only their home knows their state, if it comes back.
    wait_until("nothing else is in use", lambda: not set(here.busy()) - {"locks", "lock_claims"}, 20, here.vm.time_scale)


@vmtest(timeout=200)
def test_a_submission_does_not_wait_for_a_peer(lab):
    """The peer's device does not answer, so small operations and answers find the send queues full. The submitting
    thread, which holds the ring's lock, leaves the wait for a slot to others."""
    here, there = lites = [Lite(vm) for vm in lab.nodes]
    stop_all(lites)
    for lite in lites:
        # No heartbeat is due before the test is over.
        lite.start(heartbeat=100_000, dead=300_000, op_timeout=100_000)
    join_all(lites)
    program = here.vm.spawn([program_path("uring_test"), "[full]"], env=environment(lab, lites))
    wait_until("it serves", lambda: re.search(r"function \d+\n", program.out) or not program.running, 30, here.vm.time_scale)
    number = re.search(r"function (\d+)\n", program.out)[1]
    caller = there.vm.spawn(["lite", "call", str(here.id), number, "ping", "--timeout", "100s"])
    program.wait_output("ready")
    there.vm.pause()
    program.write("\n")
    program.wait_output("submitted", timeout=20)
    there.vm.resume()
    program.wait(60)
    assert "All tests passed" in program.out, program.out
    caller.wait(30, check=True)
    assert caller.out == "pong", caller.out
    for lite in lites:
        lite.check_idle()
    stop_all(lites)


@vmtest(kernels=("6.1",), fresh=True, timeout=200, slow=True)
def test_rates(lab):
    """Prints operations per second, by ioctl and by commands, for the user to read."""
    said = run_catch(lab, on_machines(lab), "uring_test", "[rate]", timeout=100).out
    print("\n".join(f"      {line}" for line in said.splitlines() if line.endswith("/s")))
