# SPDX-License-Identifier: MIT
"""A node uses an LMR of a node that it does not know yet, or of which it does not know the next life. The errors that
it returns for that end when its view is up to date."""

import json
import re

import hostile
from litelab import Lite, join_all, module_path, prepare_all, program_path, stop_all, wait_complete, wait_until
from vmlab.testing import vmtest

setup = prepare_all

# No heartbeat tells anything, and no silent node counts as dead, before a test is over.
_RARE = {"heartbeat": 100_000, "dead": 300_000}


# As long as a session lives. A quarter of it is less than the kernel lets a task wait without a complaint.
_LONG = 100_000


def _times(vm, op_timeout=None):
    return {**{name: value * vm.time_scale for name, value in _RARE.items()}, "op_timeout": op_timeout or 3000 * vm.time_scale}


def _deaf(lite, other, on=True):
    """Has a node send nothing to the other one, so that the two do not connect."""
    lite.vm.run(f"ip route {'add' if on else 'del'} blackhole {other.address}")


def _next_life(lite, through, number):
    """Has a node begin another life. Without its device it cannot tell others that the old one ends."""
    lite.vm.cut()
    lite.vm.run("rdma link del rxe0", timeout=60)
    lite.vm.run("rdma link add rxe0 type rxe netdev eth0")
    lite.vm.cut(False)
    lite.forget()
    lite.start(**_times(lite.vm), id=number)
    lite.join(through, timeout=60)


@vmtest(nodes=3, timeout=300)
def test_a_store_that_the_user_has_not_heard_of(lab):
    """A node opens an LMR before it has heard of the LMR's store, and another one while it knows only the store's
    earlier life. The handles work when the node has a session with the store."""
    home, store, user = lites = [Lite(vm) for vm in lab.nodes]
    stop_all(lites)
    for lite in lites:
        lite.start(**_times(lite.vm))
    user.join(home)
    _deaf(user, store)
    store.join(home, timeout=60)
    number = store.id
    home.wait_states({home.id: "up", number: "up", user.id: "up"})
    home.lite("alloc", "new", "8M", "--node", f"{home.id},{number}")
    assert number not in user.states()
    holders = [user.spawn("hold", "new")]
    holders[0].wait_output("running")
    user.lite("write", "new", "1M", "living")
    result = user.lite("read", "new", "5M", 4, check=False)
    assert result.rc == 1 and "down" in result.err, result
    _deaf(user, store, False)
    wait_complete(lites, timeout=60)
    user.lite("write", "new", "5M", "living")
    assert home.lite("read", "new", "5M", 6).out == "living"

    _deaf(user, store)
    _next_life(store, home, number)
    home.wait_states({home.id: "up", number: "up", user.id: "up"})
    home.lite("alloc", "newer", "8M", "--node", f"{home.id},{number}")
    home.lite("write", "newer", "5M", "living")
    holders.append(user.spawn("hold", "newer"))
    holders[1].wait_output("running")
    _deaf(user, store, False)
    wait_until("it can be read", lambda: user.lite("read", "newer", "5M", 6, check=False).out == "living", 30, user.vm.time_scale)
    result = user.lite("read", "new", "5M", 6, check=False)
    assert result.rc == 1 and "restarted" in result.err, result
    for name, holder in zip(("new", "newer"), holders):
        holder.kill()
        holder.wait(10)
        home.lite("free", name)
    for lite in lites:
        lite.check_idle()
    stop_all(lites)


@vmtest(nodes=2, timeout=200)
def test_a_change_for_an_earlier_life_of_the_home(lab):
    """Requests by handle wait for a slot when the home restarts. They fail with ESTALE: the home's next life would
    answer as if the LMRs had been freed."""
    user, home = lites = [Lite(vm) for vm in lab.nodes[:2]]
    stop_all([Lite(vm) for vm in lab.nodes])
    for lite in lites:
        # The session ends with the home's life, and not while requests have yet to be made.
        lite.start(**_times(lite.vm, op_timeout=_LONG))
    join_all(lites)
    number = home.id
    changers = []
    for name in "abcdef":
        home.lite("alloc", name, "64K")
        changers.append(user.vm.spawn([program_path("crowd"), "change", str(user.index), name]))
        changers[-1].wait_output("ready")
    home.vm.cut()
    for changer in changers:
        changer.write("\n")
    _next_life(home, user, number)
    for changer in changers:
        changer.wait(60)
    said = [changer.err.strip() or f"status {changer.rc}" for changer in changers]
    # A request that was sent before may get the other error.
    assert all(re.fullmatch("crowd: resize: (Host is down|Stale file handle)", line) for line in said), said
    assert any("Stale" in line for line in said), said
    wait_complete(lites)
    for lite in lites:
        lite.check_idle()
    stop_all(lites)


@vmtest(nodes=3, timeout=300)
def test_a_store_restarts_before_an_lmr_has_grown(lab):
    """An LMR grows by memory of a store, which restarts while a mapper does not answer, and so before the LMR has the
    memory. The LMR must not get memory that no longer exists."""
    home, store, mapper = lites = [Lite(vm) for vm in lab.nodes]
    stop_all(lites)
    for lite in lites:
        # The home waits for the mapper's answer until the store has restarted.
        lite.start(**_times(lite.vm, op_timeout=_LONG))
    join_all(lites)
    number = store.id
    home.lite("alloc", "growing", "16K", "--node", f"{home.id},{number}", "--mode", "0666")
    holder = mapper.spawn("hold", "growing")
    holder.wait_output("running")
    changer = home.vm.spawn([program_path("crowd"), "change", str(home.index), "growing"])
    changer.wait_output("ready")
    asked = home.stats()["revokes"]
    mapper.vm.pause()
    try:
        changer.write("\n")
        wait_until("it has made the memory", lambda: home.stats()["revokes"] > asked, 20, home.vm.time_scale)
        _next_life(store, home, number)
    finally:
        mapper.vm.resume()
    changer.wait(60)
    assert "resize: Stale file handle" in changer.err, changer.out + changer.err
    assert json.loads(home.lite("stat", "growing", "-j").out)["size"] == 16 << 10
    holder.kill()
    holder.wait(10)
    home.lite("free", "growing", timeout=60)
    wait_complete(lites, timeout=60)
    for lite in lites:
        lite.check_idle()
    stop_all(lites)


@vmtest(nodes=3, timeout=300)
def test_a_store_restarts_before_an_lmr_is_made(lab):
    """An LMR is made of memory of two stores. One of them restarts, after it has given memory or before that, while the
    other one has yet to give some. The LMR must not be made, and the memory goes back."""
    home, *stores = lites = [Lite(vm) for vm in lab.nodes]
    stop_all(lites)
    for lite in lites:
        lite.start(**_times(lite.vm, op_timeout=_LONG))
    join_all(lites)
    nodes = ",".join(str(lite.id) for lite in lites)
    mem_alloc = next(number for name, number, _ in hostile.requests() if name == "MEM_ALLOC")
    for store in stores:
        store.vm.insmod(module_path(store.vm, "hostile"))
    try:
        for lost, late in (stores, stores[::-1]):
            hostile.make(late.vm, late=mem_alloc, hold=1, late_calls=1)
            number = lost.id
            maker = home.vm.spawn(["lite", "alloc", "made", "12K", "--node", nodes, "--mode", "0666"])
            wait_until("the other one is asked", lambda late=late: not hostile.made(late.vm, "late_calls"), 60,
                       home.vm.time_scale)
            assert lost.stats()["allocs"] == (lost is stores[0])
            _next_life(lost, home, number)
            wait_complete(lites, timeout=60)
            hostile.make(late.vm, hold=0)
            maker.wait(60)
            assert maker.rc == 1 and "restarted" in maker.err, maker.err
            assert not home.names()
            for lite in lites:
                lite.check_idle()
    finally:
        for store in stores:
            store.vm.rmmod("hostile")
    stop_all(lites)
