# SPDX-License-Identifier: MIT
"""Requests taken in place: they stay as they are until given back, whoever dies; and nobody sees anybody else's memory."""

from litelab import (dead_seconds, in_one_machine, memory_kb, on_machines, prepare_all, program_path, run_catch,
                     wait_until)
from vmlab.testing import vmtest

setup = prepare_all

_FUNCTION = 2000


@vmtest(nodes=1, cpus=2, mem_mb=768, timeout=400)
def test_three_nodes_in_one_machine(lab):
    lites = in_one_machine(lab.n1)
    run_catch(lab, lites, "inbox_test", timeout=380)
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=2, fresh=True, timeout=200)
def test_a_caller_dies(lab):
    """Its request is there, as it was, until it is given back; its ring's memory then is, too."""
    here, there = on_machines(lab)
    holder = _holder(there)
    caller = _caller(here, there)
    holder.wait_output("taken")
    here.vm.crash()
    wait_until("its death is noticed", lambda: there.states().get(here.id) == "down",
               20 + 3 * dead_seconds(there.vm), there.vm.time_scale)
    assert there.stats()["rings"] == 1
    holder.close_stdin()
    assert holder.wait(check=True).out.split() == ["ready", "taken", "same"], holder.out
    there.check_idle()
    del caller


@vmtest(nodes=2, timeout=200)
def test_a_node_stops(lab):
    """Under a process that reads a request: SIGBUS. The module stays for as long as it is mapped."""
    here, there = on_machines(lab)
    holder = _holder(there)
    caller = _caller(here, there)
    holder.wait_output("taken")
    there.stop()
    assert holder.wait(check=True).out.split() == ["ready", "taken", "SIGBUS"], holder.out
    assert caller.wait(60).rc == 1
    here.stop()


@vmtest(nodes=1, timeout=200)
def test_the_module_is_not_unloaded(lab):
    """While an inbox is mapped."""
    lites = in_one_machine(lab.n1, 1)
    here = lites[0]
    holder = _holder(here)
    assert not lab.n1.run("rmmod lite", check=False).ok
    holder.kill(9)
    holder.wait()
    here.check_idle()
    lab.n1.rmmod("lite")


@vmtest(nodes=2, mem_mb=512, timeout=300)
def test_killed(lab):
    """Processes that hold requests, killed; no leak, and their callers are told."""
    here, there = on_machines(lab)
    for i in range(max(3, lab.scale(20))):
        holder = _holder(there)
        caller = _caller(here, there)
        holder.wait_output("taken")
        if i == 1:
            before = memory_kb(there.vm)
        holder.kill(9)
        holder.wait()
        assert caller.wait(60).rc == 1 and "the server" in caller.err, caller.err
    for lite in (here, there):
        lite.check_idle()
    available, _ = before
    now, _ = memory_kb(there.vm)
    assert now > available - 4096, (available, now)


def _holder(lite):
    holder = lite.vm.spawn([program_path("inplace"), str(lite.index), str(_FUNCTION)])
    holder.wait_output("ready")
    return holder


def _caller(here, there):
    return here.vm.spawn(["lite", "-i", str(here.index), "call", str(there.id), str(_FUNCTION), "x" * 3000,
                          "-t", "60000"])
