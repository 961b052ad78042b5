# SPDX-License-Identifier: MIT
"""Lifetimes: which objects outlive others, LMRs freed in use, processes killed in the middle of operations."""

import re
import statistics

import hostile
from litelab import (environment, holds_of, in_one_machine, memory_kb, module_path, nodes_in, on_machines, prepare_all,
                     program_path, program_scale, run_catch, run_program, stop_all, times, wait_until)
from vmlab.testing import vmtest

setup = prepare_all


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=500)
def test_three_nodes_in_one_machine(lab):
    lites = in_one_machine(lab.n1)
    # Of its cases each does many rounds.
    run_catch(lab, lites, "life_test", timeout=480, env={"LITE_TEST_SCALE": program_scale(lab) * lab.part})
    for lite in lites:
        lite.check_idle()


@vmtest(timeout=300, slow=True)
def test_two_machines(lab):
    lites = on_machines(lab)
    run_catch(lab, lites, "life_test", "[free],[races]", timeout=280)
    for lite in lites:
        lite.check_idle()


def _kill(lab, count):
    """Kills processes in the middle of operations. Gauges must go back to zero, and memory to where it was."""
    lites = on_machines(lab)
    # After a first run caches, per-CPU lists and lazily made connections have their final size.
    run_program(lab, lites, "killstorm", "--count", max(15, count // 10))
    before = [_level(lite) for lite in lites]
    print(f"      {run_program(lab, lites, 'killstorm', '--count', count, timeout=560).out.splitlines()[-1]}")
    if lab.kernel.is_debug:
        return  # KASAN keeps freed memory for a while; there kmemleak finds leaks
    for lite, (available, slab, rest) in zip(lites, before):
        available_now, slab_now, rest_now = _level(lite)
        moved = {name: kb - rest[name] for name, kb in rest_now.items() if abs(kb - rest[name]) > 512}
        # A leak of one page per process would be four times this; one object of 256 bytes, half of the slab's.
        assert available_now > available - count * 1.0 - 2048, f"{lite}: available {available} -> {available_now} kB: {moved}"
        assert slab_now < slab + count * 0.5 + 1024, f"{lite}: slab {slab} -> {slab_now} kB: {moved}"


@vmtest(timeout=600, mem_mb=768)
def test_killed_processes(lab):
    _kill(lab, lab.scale(450 * lab.part, 40))


@vmtest(timeout=600, mem_mb=768, slow=True)
def test_a_thousand_killed_processes(lab):
    _kill(lab, lab.scale(1000, 40))


@vmtest(nodes=1, cpus=2, timeout=300, mem_mb=768, slow=True)
def test_killed_processes_of_each_kind(lab):
    lites = in_one_machine(lab.n1)
    for kind in ("small", "large", "atomics", "alloc", "map", "list"):
        run_program(lab, lites, "killstorm", "--kind", kind, "--count", max(10, int(80 * program_scale(lab))))
        for lite in lites:
            lite.check_idle()
    assert not lites[0].names()


@vmtest(timeout=120)
def test_users_of_a_node_that_stops(lab):
    """Files stay open when their node stops. Their calls fail, and closing them later does no harm."""
    lites = on_machines(lab)
    lites[0].lite("alloc", "doomed", "1M", "--node", lites[1].id)
    user = lites[0].spawn("loop", "doomed")
    user.wait_output("running")
    lites[0].stop()
    # A stopping node is in no cluster for a moment.
    assert user.wait(check=True).out.split()[-1] in ("ENODEV", "ENOTCONN"), user.out
    lites[1].wait_states({lites[1].id: "up"})
    lites[1].lite("free", "doomed")
    lites[1].check_idle()
    lites[1].stop()


@vmtest(timeout=120)
def test_a_file_is_used_while_a_handle_is_renewed(lab):
    """While a process waits for the home of an LMR, another one with the same open file opens and closes LMRs."""
    lites = on_machines(lab, dead=120_000 * lab.n1.time_scale)
    program = lab.n1.spawn([program_path("life_test"), "[renewal]"], env=environment(lab, lites))
    program.wait_output("ready")
    ended = lites[0].broken()
    lab.n2.cut()
    wait_until("the session is over", lambda: lites[0].broken() > ended, 20, lab.n1.time_scale)
    program.write("\n")
    program.wait_output("opened", timeout=60)
    lab.n2.cut(False)
    program.wait(60, check=True)


@vmtest(nodes=1, cpus=2, timeout=200)
def test_a_file_that_is_passed_on(lab):
    """A process is sent an open file of another user, which takes long to close. That takes none of its own time."""
    lites = in_one_machine(lab.n1, 2)
    unmap = next(number for name, number, _ in hostile.requests() if name == "LMR_UNMAP")
    lab.n1.insmod(module_path(lab.n1, "hostile"))
    hostile.make(lab.n1, late=unmap, hold=1, late_calls=1000)
    try:
        run_catch(lab, lites, "life_test", "[passed]")
    finally:
        hostile.make(lab.n1, hold=0, late_calls=0)
        lab.n1.rmmod("hostile")
    for lite in lites:
        lite.check_idle()


def _level(lite):
    """memory_kb(), followed by all of /proc/meminfo."""
    lite.check_idle()
    level = memory_kb(lite.vm)
    rest = re.findall(r"^(\S+): +(\d+)", lite.vm.run("cat /proc/meminfo").out, re.M)
    return *level, {name: int(kb) for name, kb in rest}


@vmtest(nodes=1, cpus=2, kernels=("6.1", "6.12"), timeout=300)
def test_the_end_of_a_session_holds_no_lock_for_long(lab):
    """The store then looks at all its allocations, at most 64 in each hold of the lock (LITE_STORE_LOOK)."""
    store, other = nodes_in(lab.n1, 2)
    stop_all(nodes_in(lab.n1, 5))
    limit = lab.scale(48, 16) << 20
    store.start(**times(lab.n1), uid_limit=limit)
    filling = lab.n1.spawn([program_path("abi_test"), "[fill]"],
                           env={**environment(lab, [store], 200), "LITE_TEST_UID_LIMIT": limit})
    filling.wait_output("filled", timeout=200)
    other.start(**times(lab.n1))
    with holds_of(lab.n1, "lite_store_take_next") as holds:
        other.join(store)
        other.stop()
        wait_until("its sessions have ended", lambda: not store.stats()["conns"], 20)
    allocs = store.stats()["allocs"]
    assert allocs > limit // 10_000 and len(holds) > allocs / 64, (allocs, len(holds))
    print(f"      {allocs} allocations: {len(holds)} holds, median {statistics.median(holds):.0f} us, longest {max(holds):.0f} us")
    filling.close_stdin()
    filling.wait(200, check=True)
    store.check_idle()
    store.stop()
