# SPDX-License-Identifier: MIT
"""The ABI: every refused input, limits, states. The checks themselves are in programs/abi and programs/netlink."""

import re

from litelab import (Lite, environment, in_one_machine, memory_kb, nodes_in, on_machines, prepare_all, probed, program_path,
                     run_catch, stop_all)
from vmlab.testing import vmtest

setup = prepare_all


@vmtest(nodes=1, cpus=2, timeout=400)
def test_three_nodes_in_one_machine(lab):
    lites = in_one_machine(lab.n1)
    run_catch(lab, lites, "abi_test")
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=1, cpus=2)
def test_netlink(lab):
    lites = in_one_machine(lab.n1)
    before = [lite.status() for lite in lites]
    run_catch(lab, lites, "netlink_test")
    assert [lite.status() for lite in lites] == before


@vmtest(nodes=1, cpus=2)
def test_limits(lab):
    stop_all(nodes_in(lab.n1))
    lites = in_one_machine(lab.n1, 2, mem_limit="64M", uid_limit="16M", handle_limit=500)
    run_catch(lab, lites, "abi_test", "[limits]", env={"LITE_TEST_UID_LIMIT": 16 << 20})
    lites[0].check_idle()
    # A user's default share is a fourth.
    stop_all(lites)
    alone = Lite(lab.n1, 0, "10.0.1.1", "rxe1")
    alone.start(mem_limit="64M")
    assert alone.status()["uid_limit"] == 16 << 20
    # An impossible size is refused at once, instead of being allocated up to the limit.
    with probed(lab.n1, "lite_store_alloc") as taken:
        assert not alone.lite("alloc", "large", "256M", check=False).ok
        alone.lite("alloc", "small", 100)
        trace = lab.n1.run("cat /sys/kernel/tracing/trace").out
    assert trace.count(f"{taken}:") == 1, trace
    assert not alone.lite("resize", "small", "65M", check=False).ok
    alone.lite("free", "small")
    alone.check_idle()
    alone.stop()


@vmtest(nodes=1, cpus=2, mem_mb=448, fresh=True, kernels=("6.1", "6.12", "debug"), timeout=600)
def test_a_small_machine_is_filled(lab):
    """A user makes as many LMRs of a byte as the limits allow. They take no more memory than the limits say, and the
    machine lives on. Its limit is nearly that of all users but root, which is half of the memory by default; without
    --thorough an LMR of root's takes two thirds of that, so that there are fewer. SLUB's debugging (debug2) makes small
    objects several times as large, which no limit counts."""
    stop_all(nodes_in(lab.n1))
    alone = Lite(lab.n1, 0, "10.0.1.1", "rxe1")
    alone.start()
    limit = alone.status()["mem_limit"]
    assert alone.status()["uid_limit"] == limit // 4
    alone.stop()
    limit -= (limit >> 4) + (8 << 20)
    large = int(limit * (1 - lab.part)) >> 20
    limit -= large << 20
    alone.start(uid_limit=limit)
    if large:
        alone.lite("alloc", "large", f"{large}M")
    counted_before = alone.stats()["counted_bytes"]
    before, _ = memory_kb(lab.n1)
    filling = lab.n1.spawn([program_path("abi_test"), "[fill]"],
                           env={**environment(lab, [alone], 600), "LITE_TEST_UID_LIMIT": limit})
    filling.wait_output("filled", timeout=600)
    taken = (before - memory_kb(lab.n1)[0]) * 1024
    counted = alone.stats()["counted_bytes"] - counted_before
    made = int(re.search(r"(\d+) LMRs", filling.out)[1])
    print(f"{made} LMRs: {counted / made:.0f} bytes are counted for each, {taken / made:.0f} taken")
    # Nodes of trees and tables, which many objects share, take memory but are not counted.
    assert taken < 1.25 * counted, f"{taken} bytes are taken, {counted} are counted"
    alone.lite("alloc", "another", "1M")
    assert alone.lite("read", "another", 0, 1, "-x").ok
    alone.lite("free", "another")
    filling.close_stdin()
    filling.wait(600, check=True)
    assert "\noom_kill 0\n" in lab.n1.run("cat /proc/vmstat").out
    if large:
        alone.lite("free", "large")
    alone.check_idle()
    alone.stop()


@vmtest(nodes=1, cpus=2)
def test_after_leave_and_stop(lab):
    for tag in ("leave", "stop"):
        stop_all(nodes_in(lab.n1))
        run_catch(lab, in_one_machine(lab.n1), "abi_test", f"[{tag}]")


@vmtest(timeout=400, slow=True)
def test_two_machines(lab):
    """The tests of one machine pass between two as well: the ABI hides where the other node is."""
    lites = on_machines(lab)
    run_catch(lab, lites, "abi_test")
    for lite in lites:
        lite.check_idle()
