# SPDX-License-Identifier: MIT
"""Schedules that could give a lock to two holders, made by modules/hostile."""

import contextlib

import hostile
import locks
from litelab import dead_seconds, module_path, on_machines, prepare_all, stop_all, wait_complete, wait_until
from vmlab.testing import vmtest

setup = prepare_all

@contextlib.contextmanager
def _hostile(*vms):
    with contextlib.ExitStack() as stack:
        for vm in vms:
            vm.insmod(module_path(vm, "hostile"))
            stack.callback(vm.rmmod, "hostile")
            stack.callback(hostile.make, vm, hold=0, lose=0)
        yield


def _found(home, waiter):
    """The home has found the holder of the lock, and makes the other claim wait."""
    locks.claims(home, 2)
    assert waiter.out.split() == [], waiter.out


def _hand_over(holder, waiter):
    locks.let_go(holder)
    waiter.wait_output("held", timeout=20)
    locks.let_go(waiter)


@vmtest(nodes=2, timeout=300)
def test_the_holder_is_in_a_session_that_its_home_has_not_published(lab):
    """After a long partition the taker's node uses the new connection before the home does, and takes a lock through
    it. A second taker waits, although the first one's node is still down for the home."""
    home, other = lites = locks.mortal(lab)
    home.lite("alloc", "word", "4K")
    with _hostile(lab.n1, lab.n2):
        lab.n2.cut()
        for lite, peer in (home, other), (other, home):
            wait_until("it is down", lambda: lite.states()[peer.id] == "down", 60 + 2 * dead_seconds(lab.n1),
                       lab.n1.time_scale)
        # Only the home connects.
        hostile.make(lab.n2, hold=1, connects=1000)
        hostile.make(lab.n1, hold=1, sessions=1000)
        # What the other has begun before is over.
        wait_until("the other waits to connect", lambda: hostile.made(lab.n2, "connects") < 1000, 60, lab.n1.time_scale)
        lab.n2.cut(False)
        wait_until("the home is up for the other", lambda: other.states()[home.id] == "up", 60, lab.n1.time_scale)
        holder = locks.holder(other, "word")
        assert home.states()[other.id] == "down"
        waits = home.stats()["lock_waits"]
        waiter = locks.spawn(home, "hold", "word")
        wait_until("the second waits", lambda: home.stats()["lock_waits"] > waits, 20, lab.n1.time_scale)
        _found(home, waiter)
        hostile.make(lab.n1, hold=0)
        wait_complete(lites)
        _hand_over(holder, waiter)
    home.lite("free", "word")
    stop_all(lites)


@vmtest(nodes=2, timeout=300)
def test_the_home_loses_the_answers_of_two_swaps(lab):
    """The home swaps to give a lock back, and then to take it over from the next holder, and learns the outcome of
    neither. It must not give back the lock of that holder."""
    home, other = lites = locks.calm(lab)
    home.lite("alloc", "word", "4K")
    with _hostile(lab.n1):
        first = locks.holder(other, "word")
        second = locks.spawn(other, "hold", "word")
        locks.claims(home, 2)
        locks.let_go(first)
        second.wait_output("held", timeout=20)
        hostile.make(lab.n1, lose=1000)
        locks.let_go(second)
        wait_until("it is given back", lambda: home.lite("fetch-or", "word", 0, 0).out.strip() == "0", 20, lab.n1.time_scale)
        wait_until("that is not known", lambda: hostile.made(lab.n1, "lost"), 20, lab.n1.time_scale)
        holder = locks.holder(other, "word")
        # The home refuses it, because it does not know the outcome of its swap.
        refused = locks.spawn(home, "hold", "word")
        assert refused.wait(60).out.split() == ["EHOSTDOWN"], refused.out
        lost = hostile.made(lab.n1, "lost")
        wait_until("the home tries again", lambda: hostile.made(lab.n1, "lost") > lost + 1, 20, lab.n1.time_scale)
        hostile.make(lab.n1, lose=0)
        waiter = locks.spawn(home, "hold", "word")
        _found(home, waiter)
        _hand_over(holder, waiter)
    home.lite("free", "word")
    stop_all(lites)


@vmtest(nodes=2, timeout=300)
def test_a_node_dies_while_it_is_attached(lab):
    """A node accepts a connection, but never attaches, and so counts as down. Its claims end all the same."""
    attach = next(int(number) for name, number, _ in hostile.requests() if name == "ATTACH")
    # Long enough for a slow machine to connect again before.
    dead = 20 * lab.n1.time_scale
    home, other = lites = on_machines(lab, dead=1000 * dead)
    home.lite("alloc", "word", "4K")
    with _hostile(lab.n2):
        # The home knows a holder that shares the lock.
        holder = locks.holder(other, "word", "--shared")
        assert home.stats()["lock_claims"] == 1
        broken = home.broken()
        hostile.make(lab.n2, hold=1, connects=1000, late=attach, late_calls=1000)
        lab.n2.cut()
        wait_until("the session ends", lambda: home.broken() > broken, 60, lab.n1.time_scale)
        lab.n2.cut(False)
        wait_until("it is attached", lambda: hostile.made(lab.n2, "late_calls") < 1000, 60, lab.n1.time_scale)
        wait_until("it is down", lambda: home.states()[other.id] == "down", 60 + dead, lab.n1.time_scale)
        wait_until("its claim is over", lambda: not home.stats()["lock_claims"], 60, lab.n1.time_scale)
        hostile.make(lab.n2, hold=0, late_calls=0)
        wait_complete(lites)
        locks.let_go(holder, "ENOLCK")
    home.lite("free", "word")
    stop_all(lites)
