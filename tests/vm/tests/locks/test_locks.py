# SPDX-License-Identifier: MIT
"""Locks in words of LMRs: exclusion, order, deaths of holders and waiters, nodes that go, LMRs that change."""

import contextlib
import time

import locks
from litelab import (dead_seconds, in_one_machine, on_machines, patient, prepare, prepare_all, program_path, stop_all, times,
                     wait_complete, wait_until)
from vmlab.testing import vmtest

setup = prepare_all

_GONE = {"EHOSTDOWN", "ESTALE", "ETIMEDOUT"}


def _storm(lab, lites, threads, count):
    for home in lab.rng.sample(lites, round(len(lites) * lab.part)):
        name = f"storm-{home.id}"
        locks.alloc(lites[0], name, home)
        users = [locks.spawn(lite, "storm", name, "--threads", threads, "--count", count) for lite in lites]
        for user in users:
            assert locks.last(user, 200) == "0", user.out
        locks.free(lites[1], name)
        assert locks.word(lites[1], name, 16) == len(lites) * threads * count
        lites[0].lite("free", name)
    locks.idle(lites)


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=300)
def test_storm_in_one_machine(lab):
    _storm(lab, in_one_machine(lab.n1, **patient(lab.n1)), 3, lab.scale(200, 20))


@vmtest(nodes=3, timeout=400)
def test_storm(lab):
    """There are never two holders, no increment is lost, and the word is free in the end. The words are at a node chosen
    at random, with --thorough at each."""
    _storm(lab, locks.calm(lab), 4, lab.scale(60, 6))


@vmtest(nodes=3, timeout=300)
def test_order(lab):
    """Waiters get the lock in the order in which they reach the home, with at most three calls for each time."""
    lites = locks.calm(lab, heartbeat=2000 * lab.kernel.time_scale)
    home = lites[0]
    locks.alloc(home, "order", home)
    count, threads = lab.scale(60, 6), 8
    before = [lite.stats() for lite in lites]
    with locks.traced(home) as events:
        users = [locks.spawn(lite, "order", "order", "--threads", threads, "--count", count) for lite in lites]
        took = max(int(locks.last(user, 200)) for user in users)
    granted = locks.check_order(events)
    after = [lite.stats() for lite in lites]
    taken, calls, waits = (sum(now[key] - was[key] for now, was in zip(after, before))
                           for key in ("locks_taken", "calls", "lock_waits"))
    assert taken == len(lites) * threads * count
    # Most had to wait; otherwise this shows nothing.
    assert granted > taken / 2, (granted, taken)
    print(f"      {granted} of {taken} handed on, {took / taken:.0f} us and {calls / taken:.2f} calls each")
    # WAIT, GRANT, RELEASE; the home's own cross no network. The 200 are for heartbeats.
    assert calls < 3 * taken + 200, (calls, taken, waits)
    home.lite("free", "order")
    locks.idle(lites)


@vmtest(nodes=3, timeout=300)
def test_readers_and_writers(lab):
    """Readers never meet a writer. No thread starves: all of them finish."""
    lites = locks.calm(lab)
    locks.alloc(lites[0], "phases", lites[1])
    users = [locks.spawn(lite, "phases", "phases", "--threads", 5, "--writers", 2, "--count", lab.scale(40, 5))
             for lite in lites]
    for user in users:
        assert locks.last(user, 200) == "0", user.out
    locks.free(lites[0], "phases")
    lites[0].lite("free", "phases")
    locks.idle(lites)


@vmtest(nodes=3, timeout=300)
def test_phases(lab):
    """A writer waits for two readers; a reader that comes later waits for the writer."""
    lites = locks.calm(lab)
    first, second, third = lites
    locks.alloc(first, "phase", second)
    readers = [locks.holder(lite, "phase", "--shared") for lite in (first, third)]
    writer = locks.waiter(first, "phase", second, 2)
    late = locks.waiter(third, "phase", second, 3, "--shared")
    assert locks.last(locks.spawn(first, "hold", "phase", "--shared", "--try")) == "EBUSY"
    locks.let_go(readers[0])
    locks.claims(second, 3)
    assert "held" not in writer.out
    # A reader that dies blocks no waiter, and waiters are not told of it.
    readers[1].kill(9)
    writer.wait_output("held")
    assert "held" not in late.out
    locks.let_go(writer)
    late.wait_output("held")
    locks.let_go(late)
    first.lite("free", "phase")
    locks.idle(lites)


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=900, kernels=("6.1", "6.12"))
def test_one_more_in_a_crowd(lab):
    """Among 7,000 readers (65,536 with --thorough) one more costs as much as alone. A file has up to 65,536 locks."""
    lites = in_one_machine(lab.n1, **patient(lab.n1))
    home, readers = lites[0], lab.scale(65536 * lab.part)
    home.lite("alloc", "crowd", "1M")
    # The home knows nothing of the locks that it does not share, which are quick to take.
    full, taken, refused, medians = locks.crowd(home, "crowd", readers, "--measure", "--others")
    # Counted in reads made meanwhile, because the host may be busier at one time than at the other.
    few, many = (lock / max(read, 1) for lock, read in zip(medians[::2], medians[1::2]))
    print(f"      {readers} readers; a reader more: {few:.2f} reads alone, {many:.2f} among them")
    assert (taken, refused) == (65536, "EMFILE")
    assert many < 5 * few, (few, many)
    locks.claims(home, readers)
    full.write(b"\n")
    full.wait(300, check=True)
    wait_until("all is given back", lambda: not home.stats()["locks"] and not locks.word(home, "crowd", 0), 300,
               home.vm.time_scale)
    home.lite("free", "crowd")
    locks.idle(lites)
    stop_all(lites)


@vmtest(nodes=1, cpus=2, mem_mb=256, timeout=900, kernels=("6.1", "6.12"), fresh=True)
def test_crowd_in_one_machine(lab):
    """No user takes all claims from the others, neither at this node's home nor at a home elsewhere. The fewer the
    machine's memory has room for, the quicker this is."""
    home, other, _ = lites = in_one_machine(lab.n1, **patient(lab.n1))
    home.lite("alloc", "crowd", "4K", "--mode", "0666")
    root, taken, refused, _ = locks.crowd(home, "crowd", 1000)
    assert (taken, refused) == (1000, "0"), (taken, refused)
    # The one that is tried after the count.
    locks.claims(home, taken + 1)
    alice, more, refused, _ = locks.crowd(home, "crowd", 65536, user="alice")
    print(f"      {more} claims of one user")
    assert refused == "EDQUOT" and 1000 < more < 65536, (more, refused)
    locks.claims(home, taken + 1 + more)
    # Nor does the user get the rest of them by another node.
    again, more, refused, _ = locks.crowd(other, "crowd", 1000, user="alice")
    assert refused == "EDQUOT" and more < 1000, (more, refused)
    bob, got, refused, _ = locks.crowd(other, "crowd", 100, user="bob")
    assert (got, refused) == (100, "0"), (got, refused)
    for process in (root, alice, again, bob):
        process.write(b"\n")
        process.wait(300, check=True)
    wait_until("all is given back", lambda: not locks.word(home, "crowd", 0), 300, home.vm.time_scale)
    home.lite("free", "crowd")
    locks.idle(lites)


@vmtest(nodes=3, timeout=300)
def test_dead_holders(lab):
    """The next holder is told of the death, and must make the data consistent; otherwise the lock is lost for all."""
    lites = locks.calm(lab)
    first, second, third = lites
    for number, home in enumerate(lites):
        name = f"dead-{number}"
        locks.alloc(first, name, home)
        # No waiter: the word itself records the death.
        locks.holder(second, name).kill(9)
        heir = locks.spawn(third, "hold", name)
        heir.wait_output("died")
        locks.let_go(heir)
        # With waiters.
        holder = locks.holder(third, name)
        heir = locks.waiter(second, name, home, 1)
        behind = locks.waiter(first, name, home, 2)
        holder.kill(9)
        heir.wait_output("died")
        # When the waiter that was told dies as well, the next one is told.
        heir.kill(9)
        behind.wait_output("died")
        locks.let_go(behind)
        locks.free(first, name)
        locks.let_go(locks.holder(second, name))
        # A holder that was told of the death does not make the data consistent before it releases the lock.
        locks.holder(second, name).kill(9)
        broken = third.vm.run([program_path("locks"), "hold", name, "--leave"], stdin=b"\n").out.split()
        assert broken == ["died", "ok"], broken
        assert locks.last(locks.spawn(first, "hold", name)) == "ENOTRECOVERABLE"
        assert locks.last(locks.spawn(first, "hold", name, "--try")) == "ENOTRECOVERABLE"
        assert locks.last(locks.spawn(first, "hold", name, "--shared")) == "ENOTRECOVERABLE"
        # Written anew, the word is a lock again.
        first.lite("set", name, 0, 8, "00")
        locks.let_go(locks.holder(first, name))
        first.lite("free", name)
    locks.idle(lites)


@vmtest(nodes=3, timeout=300)
def test_waiters_that_go(lab):
    """Waiters that are killed or time out do not hold up the waiters behind them."""
    lites = locks.calm(lab)
    first, second, third = lites
    locks.alloc(first, "gone", second)
    holder = locks.holder(third, "gone")
    killed = locks.waiter(first, "gone", second, 1)
    # The last waiter comes while the one before still waits: for longer if a machine is slow.
    for seconds in (5, 20, 80):
        late = locks.spawn(third, "hold", "gone", "--timeout", 1000 * seconds * lab.kernel.time_scale)
        waits = locks.claims_before_its_end(late, second, 3)
        behind = locks.spawn(second, "hold", "gone")
        if waits and locks.claims_before_its_end(late, second, 4):
            break
        behind.kill(9)
        for process in (late, behind):
            process.wait(20 + seconds)
        locks.claims(second, 2)
    else:
        raise AssertionError("each has timed out before the next one came")
    killed.kill(9)
    killed.wait(20)
    assert locks.last(late, 20 + seconds) == "ETIMEDOUT"
    locks.claims(second, 2)
    assert locks.last(locks.spawn(first, "hold", "gone", "--try")) == "EBUSY"
    locks.let_go(holder)
    behind.wait_output("held")
    locks.let_go(behind)
    locks.free(first, "gone")
    first.lite("free", "gone")
    locks.idle(lites)


def _killing_storm(lab, lites, threads, wanted):
    """Kills processes at random times and replaces them, until the lock was taken `wanted` times and three died."""
    name = "killed"
    locks.alloc(lites[0], name, lites[1])
    users, kills = {}, 0
    with locks.traced(lites[1]) as events:
        while kills < 3 or locks.word(lites[0], name, 16) < wanted:
            for lite in lites:
                if str(lite) not in users:
                    users[str(lite)] = locks.spawn(lite, "storm", name, "--threads", threads, "--count", 2**40)
                    users[str(lite)].wait_output("running", timeout=60)
            victim = users.pop(str(lab.rng.choice(lites)))
            time.sleep(lab.rng.uniform(0, 0.5))
            victim.kill(9)
            victim.wait(30)
            kills += 1
            for user in users.values():
                assert user.running, user.err
        for user in users.values():
            user.kill(9)
            user.wait(30)
    deaths = sum(what == "grant" and status != 0 for what, _, _, status in events)
    granted = locks.check_order(events)
    total = locks.word(lites[0], name, 16)
    print(f"      {total} times at it, {granted} handed on, {kills} processes killed, {deaths} heirs")
    # In whatever state the lock is, it can still be taken.
    locks.let_go(locks.holder(lites[2], name, said="\n"))
    locks.free(lites[0], name)
    lites[0].lite("free", name)
    locks.idle(lites)


@vmtest(nodes=3, timeout=400)
def test_killed_at_random(lab):
    _killing_storm(lab, locks.calm(lab), 8, lab.scale(2000 * lab.part, 100))


@vmtest(nodes=3, timeout=5000, slow=True)
def test_killed_at_random_for_long(lab):
    _killing_storm(lab, locks.calm(lab), 8, lab.scale(100000, 2000))


def _back(lite, other):
    """Brings a crashed machine back into the cluster."""
    lite.vm.reboot()
    prepare(lite.vm)
    lite.forget()
    lite.start(**times(lite.vm))
    lite.join(other)


@vmtest(nodes=3, timeout=300, fresh=True)
def test_crash(lab):
    """The machine of a holder crashes, with and without waiters; that of a waiter; that of the home."""
    lites = locks.mortal(lab)
    first, second, third = lites
    locks.alloc(first, "a", first)
    locks.alloc(first, "b", first)
    locks.alloc(first, "c", third)
    locks.holder(third, "a")
    locks.holder(third, "b")
    # This lock has its home on the machine that crashes.
    lost = locks.holder(first, "c")
    waits_lost = locks.waiter(second, "c", third, 1)
    heir = locks.waiter(second, "a", first, 1)
    locks.waiter(third, "a", first, 2)
    behind = locks.waiter(first, "a", first, 3)
    third.vm.crash()
    heir.wait_output("died", timeout=20 + 2 * dead_seconds(first.vm))
    locks.let_go(heir)
    behind.wait_output("held")
    locks.let_go(behind)
    assert locks.last(waits_lost, 20 + 2 * dead_seconds(first.vm)) in _GONE
    # This lock had no waiter.
    heir = locks.spawn(second, "hold", "b")
    heir.wait_output("died", timeout=20)
    locks.let_go(heir)
    lost.write(b"\n")
    assert locks.last(lost, 60) in _GONE
    _back(third, first)
    wait_complete(lites)
    locks.let_go(locks.holder(third, "a"))
    for name in ("a", "b"):
        first.lite("free", name)
    locks.idle(lites)


@vmtest(nodes=3, timeout=300)
def test_suspects(lab):
    """Sessions break, and come back before a node counts as dead: holders keep their locks, waiters their places."""
    lites = on_machines(lab, dead=120000 * lab.kernel.time_scale)
    first, second, third = lites
    locks.alloc(first, "kept", first)
    holder = locks.holder(second, "kept")
    one = locks.waiter(third, "kept", first, 1)
    two = locks.waiter(second, "kept", first, 2)
    for cut in (second, third, first):
        seen_by = second if cut is first else first
        ended = seen_by.broken()
        with contextlib.ExitStack() as stack:
            cut.vm.cut()
            stack.callback(cut.vm.cut, False)
            wait_until("a session is over", lambda: seen_by.broken() > ended, 20, lab.kernel.time_scale)
    wait_complete(lites)
    assert not one.out and not two.out, (one.out, two.out)
    locks.let_go(holder)
    one.wait_output("held", timeout=30)
    locks.let_go(one)
    two.wait_output("held", timeout=30)
    locks.let_go(two)
    locks.free(first, "kept")
    first.lite("free", "kept")
    locks.idle(lites)


@vmtest(nodes=3, timeout=400)
def test_words_out_of_reach(lab):
    """A user has locks in many words at a store that is suspect. Cleaning them up delays neither waiters for other
    locks, nor the take-over of other words, nor late releases at other homes."""
    home, store, other = lites = on_machines(lab, dead=600000 * lab.kernel.time_scale)
    locks.alloc(home, "far", home, store, mode="0666")  # the second half is there
    locks.alloc(home, "away", store, mode="0666")
    locks.alloc(home, "near", home, mode="0666")
    locks.alloc(home, "third", other, mode="0666")
    holder = locks.holder(home, "near")
    waiter = locks.waiter(home, "near", home, 1)
    dying = locks.holder(home, "near", "--offset", 64, user="bob")
    lost = locks.holder(home, "third", "--offset", 64, "--shared", user="bob")  # so the home waits for its release
    # More than there are workers. The home of `far` gives its words back, the taker of the locks in `away` those.
    many = [locks.holder(home, "far", "--offset", 32768, "--count", 280, "--shared", user="alice", what="many"),
            locks.holder(home, "away", "--count", 280, user="alice", what="many")]
    ended = home.broken()
    with contextlib.ExitStack() as stack:
        store.vm.cut()
        stack.callback(store.vm.cut, False)
        other.vm.cut()
        stack.callback(other.vm.cut, False)
        wait_until("the sessions are over", lambda: home.broken() > ended + 1, 20, home.vm.time_scale)
        for process in many:
            process.write(b"\n")
            assert process.wait(30).rc == 0, process.err
        lost.kill()
        holder.write(b"\n")
        waiter.wait_output("held", timeout=20)
        waits = home.stats()["lock_waits"]
        heir = locks.spawn(home, "hold", "near", "--offset", 64, user="bob")
        wait_until("a waiter", lambda: home.stats()["lock_waits"] > waits, 20, home.vm.time_scale)
        dying.kill()
        heir.wait_output("died")
        # The home cannot take this word over before they give up, and ends so many claims in more than one go.
        late = locks.spawn(home, "hold", "far", "--offset", 65528, "--shared", "--threads", 100, "--timeout", 1000)
        assert late.wait(60, check=True).out.split() == ["ETIMEDOUT"] * 100
        other.vm.cut(False)
        finder = locks.holder(other, "third", "--offset", 64)
        # The home still waits for the store.
        assert home.states()[store.id] == "up", "counted as down, so not waited for"
    assert holder.wait(30, check=True).out.split()[-1] == "ok", holder.out
    for process in (waiter, heir, finder):
        locks.let_go(process)
    wait_complete(lites)
    wait_until("the words are free", lambda: not home.stats()["lock_claims"] and
               not any(locks.word(home, "far", at) for at in (32768, 32768 + 279 * 8, 65528)), 30, home.vm.time_scale)
    locks.let_go(locks.holder(home, "away", "--offset", 279 * 8, said="died"))
    for name in ("far", "away", "near", "third"):
        home.lite("free", name)
    locks.idle(lites)


@vmtest(nodes=2, timeout=300)
def test_claims_on_a_word_that_is_lost(lab):
    """Waiters give up while the word's store is out of reach. When the store counts as down, the home forgets the lock and
    ends their claims, which are more than it ends in one go."""
    # On a slow machine the store is down before all have given up.
    assert any(_claims_outlast_their_waiters(lab, dead * lab.kernel.time_scale) for dead in (30000, 120000)), \
        "the store was down before the waiters had given up, each time"


def _claims_outlast_their_waiters(lab, dead):
    home, store = lites = on_machines(lab, dead=dead)
    locks.alloc(home, "far", home, store)  # the second half is there
    ended = home.broken()
    with contextlib.ExitStack() as stack:
        store.vm.cut()
        stack.callback(store.vm.cut, False)
        wait_until("the session is over", lambda: home.broken() > ended, 20, lab.kernel.time_scale)
        late = locks.spawn(home, "hold", "far", "--offset", 65528, "--shared", "--threads", 100, "--timeout", 1000)
        said = late.wait(60, check=True).out.split()
        claims = home.stats()["lock_claims"]
        # Otherwise the home may have forgotten the lock before.
        outlast = home.states()[store.id] == "up"
        if outlast:
            assert said == ["ETIMEDOUT"] * 100, said
            assert claims > 64, claims
        wait_until("the claims are over", lambda: not home.stats()["lock_claims"], 120, lab.kernel.time_scale)
        assert home.states()[store.id] == "down"
    wait_complete(lites)
    home.lite("free", "far")
    locks.idle(lites)
    stop_all(lites)
    return outlast


@vmtest(nodes=3, timeout=300)
def test_grants_to_a_silent_node(lab):
    """Hundreds of waiters of a user at a silent node get a lock. Telling them takes all workers that the user gets, but
    a waiter of another user at another node is told meanwhile."""
    home, other, silent = lites = on_machines(lab, heartbeat=200_000, dead=600_000, op_timeout=200_000)
    for name in ("many", "one"):
        locks.alloc(home, name, home, mode="0666")
    holders = [locks.holder(home, name) for name in ("many", "one")]
    # The node has fewer workers.
    many = locks.spawn(silent, "hold", "many", "--shared", "--threads", 300, user="alice")
    locks.claims(home, 301)  # with the holder
    one = locks.spawn(other, "hold", "one", user="bob")
    locks.claims(home, 303)
    granted = home.stats()["lock_grants"]
    silent.vm.pause()
    try:
        locks.let_go(holders[0])
        wait_until("they have the lock", lambda: home.stats()["lock_grants"] == granted + 300, 20, home.vm.time_scale)
        locks.let_go(holders[1])
        one.wait_output("held", timeout=20)
    finally:
        silent.vm.resume()
    for process in (many, one):
        process.write(b"\n")
        process.wait(60, check=True)
    for name in ("many", "one"):
        home.lite("free", name)
    locks.idle(lites)
    stop_all(lites)


@vmtest(nodes=3, timeout=300)
def test_partition(lab):
    """A holder that is out of reach until it counts as dead loses the lock, and learns it; a waiter gets an error."""
    lites = locks.mortal(lab)
    first, second, third = lites
    locks.alloc(first, "split", first)
    holder = locks.holder(third, "split")
    locks.claims(first, 0)
    heir = locks.waiter(second, "split", first, 1)
    far = locks.waiter(third, "split", first, 2)
    third.vm.cut()
    heir.wait_output("died", timeout=20 + 2 * dead_seconds(first.vm))
    said = locks.last(far, 20 + 3 * dead_seconds(first.vm))
    assert said == "EHOSTDOWN", said
    third.vm.cut(False)
    wait_complete(lites)
    locks.let_go(holder, "ENOLCK")
    assert heir.running
    locks.let_go(heir)
    locks.let_go(locks.holder(third, "split"))
    first.lite("free", "split")
    locks.idle(lites)


@vmtest(nodes=3, timeout=300)
def test_leave_and_stop(lab):
    """A node with locks leaves; a node with locks and waiters is stopped."""
    lites = locks.calm(lab)
    first, second, third = lites
    locks.alloc(first, "left", first)
    holder = locks.holder(third, "left")
    waits = locks.waiter(third, "left", first, 1)
    heir = locks.waiter(second, "left", first, 2)
    third.leave()
    assert locks.last(waits) == "ENOTCONN"
    heir.wait_output("died")
    locks.let_go(heir)
    holder.write(b"\n")
    assert locks.last(holder) in ("ENOLCK", "ENOTCONN"), holder.out
    third.join(first)
    wait_complete(lites)
    holder = locks.holder(second, "left")
    waits = locks.waiter(third, "left", first, 1)
    third.stop()
    # A stopping node leaves the cluster first.
    assert locks.last(waits) in ("ENOTCONN", "ENODEV"), waits.out
    locks.let_go(holder)
    first.lite("free", "left")
    locks.idle((first, second))
    stop_all(lites)


@vmtest(nodes=3, timeout=300)
def test_changed_meanwhile(lab):
    """The LMR is moved, renamed, resized and freed, and rights are taken away, with a holder and with waiters."""
    lites = locks.calm(lab)
    first, second, third = lites
    locks.alloc(first, "changed", second)
    holder = locks.holder(first, "changed", "--offset", 8192)
    waits = locks.waiter(third, "changed", second, 1, "--offset", 8192)
    first.lite("move", "changed", "--node", first.id)
    first.lite("move", "changed", "--node", third.id, "--offset", 4096, "--length", 8192)
    first.lite("rename", "changed", "renamed")
    first.lite("resize", "renamed", "32K")
    locks.let_go(holder)
    waits.wait_output("held")
    # Without waiters.
    locks.let_go(waits)
    holder = locks.holder(first, "renamed", "--offset", 8192)
    first.lite("move", "renamed", "--node", first.id)
    locks.let_go(holder)
    locks.free(first, "renamed", 8192)
    # The word is cut off and allocated again: now it is another lock.
    holder = locks.holder(first, "renamed", "--offset", 8192)
    waits = locks.waiter(third, "renamed", second, 1, "--offset", 8192)
    second.lite("resize", "renamed", "4K")
    assert locks.last(waits) == "ERANGE"
    second.lite("resize", "renamed", "64K")
    other = locks.holder(third, "renamed", "--offset", 8192)
    holder.write(b"\n")
    assert locks.last(holder) == "ENOLCK", holder.out
    assert other.running
    locks.let_go(other)
    # The LMR is freed.
    holder = locks.holder(first, "renamed")
    waits = locks.waiter(third, "renamed", second, 1)
    again = locks.waiter(second, "renamed", second, 2, "--shared")
    first.lite("free", "renamed")
    assert locks.last(waits) == "EIDRM"
    assert locks.last(again) == "EIDRM"
    holder.write(b"\n")
    assert locks.last(holder) == "EIDRM"
    locks.idle(lites)


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=200)
def test_more_claims_of_one_lock_than_are_ended_in_one_go(lab):
    """The LMR of a lock with so many claims is freed; then the node of such claims leaves."""
    lites = in_one_machine(lab.n1, **patient(lab.n1))
    home, other, _ = lites
    locks.alloc(home, "many", home)
    # Each takes one more than the count.
    sharers = [locks.crowd(lite, "many", 99)[0] for lite in (home, other)]
    waits = locks.spawn(other, "hold", "many", "--threads", 70)
    locks.claims(home, 270)
    home.lite("free", "many")
    assert waits.wait(60, check=True).out.split() == ["EIDRM"] * 70
    locks.claims(home, 0)
    locks.alloc(home, "many", home)
    sharers.append(locks.crowd(other, "many", 99)[0])
    waits = locks.spawn(other, "hold", "many", "--threads", 70)
    locks.claims(home, 170)
    heir = locks.waiter(home, "many", home, 170)
    other.leave()
    heir.wait_output("held", timeout=30)
    assert waits.wait(60, check=True).out.split() == ["ENOTCONN"] * 70
    locks.claims(home, 1)
    locks.let_go(heir)
    for sharer in sharers:
        sharer.write(b"\n")
        sharer.wait(60, check=True)
    home.lite("free", "many")
    locks.idle(lites)
    stop_all(lites)


@vmtest(nodes=3, timeout=300)
def test_rights(lab):
    """A lock takes both rights, read and write. A waiter that loses one gets no lock; a holder can release its lock."""
    lites = locks.calm(lab)
    first, second, third = lites
    first.lite("alloc", "ours", "4K", "--node", second.id, "--mode", "0600")

    def alice(lite, *words):
        return lite.vm.spawn([program_path("locks"), "hold", "ours", *words], user="alice")

    assert "permission denied" in alice(third).wait(30).err
    first.lite("grant", "ours", "--uid", 1000, "--rights", "rwa")
    holder = alice(third)
    holder.wait_output("held")
    waits = alice(first)
    locks.claims(second, 2)
    behind = locks.waiter(second, "ours", second, 2)
    first.lite("revoke", "ours", "--uid", 1000)
    locks.let_go(holder)
    assert locks.last(waits) == "EACCES"
    behind.wait_output("held")
    locks.let_go(behind)
    first.lite("free", "ours")
    locks.idle(lites)


@vmtest(nodes=2, timeout=200)
def test_command(lab):
    """lite lock: exit status, time-out, report of a dead holder, and the end of its command when it is killed."""
    first, second = locks.calm(lab)
    locks.alloc(first, "cli", second)
    assert first.lite("lock", "cli", 8, "--", "sh", "-c", "exit 7", check=False).rc == 7
    assert first.lite("lock", "cli", 8, "--", "sh", "-c", "kill -15 $$", check=False).rc == 128 + 15
    assert first.lite("lock", "cli", 8, "--", "no-such-program", check=False).rc == 127
    assert first.lite("lock", "cli", 4, "--", "true", check=False).rc == 1
    running = first.vm.spawn(["lite", "lock", "cli", "8", "--", "sh", "-c", "echo running; exec sleep 1000"])
    running.wait_output("running")
    refused = second.lite("lock", "cli", 8, "--timeout", "0.3s", "--", "true", check=False)
    assert refused.rc == 1 and "not in time" in refused.err, refused
    refused = second.lite("lock", "cli", 8, "--timeout", 0, "--", "true", check=False)
    assert refused.rc == 1 and "has the lock" in refused.err, refused
    heir = second.vm.spawn(["lite", "lock", "cli", "8", "--", "sh", "-c", "echo died $LITE_OWNER_DIED"])
    locks.claims(second, 2)
    # Kills the first of the two processes. Its command dies with it; the other process keeps the lock until then.
    first.vm.run(f"kill -9 {min(first.vm.run('pidof lite').out.split(), key=int)}")
    done = heir.wait(20, check=True)
    assert done.out.split() == ["died", "1"] and "died" in done.err, (done.out, done.err)
    wait_until("the program is gone", lambda: not first.vm.run("pidof sleep", check=False).ok, 10, first.vm.time_scale)
    both = [lite.vm.spawn(["lite", "lock", "cli", "8", "--shared", "--", "sh", "-c", "echo in; read line"])
            for lite in (first, second)]
    for process in both:
        process.wait_output("in")
    for process in both:
        process.write(b"\n")
        process.wait(20, check=True)
    first.lite("free", "cli")
    locks.idle((first, second))


@vmtest(nodes=1, cpus=2, timeout=200)
def test_a_word_that_is_no_lock(lab):
    """However many threads ask at a time, none gets a lock in such a word, and it keeps its value."""
    lites = in_one_machine(lab.n1, **patient(lab.n1))
    home, other, _ = lites
    locks.alloc(home, "number", home)
    home.lite("fetch-add", "number", 0, 0xdeadbeef)
    users = [locks.spawn(lite, "spoilt", "number", "--threads", 200, "--count", lab.scale(60 * lab.part, 10)) for lite in (home, other)]
    for user in users:
        assert locks.last(user, 150) == "0", user.out
    assert locks.word(other, "number", 0) == 0xdeadbeef
    home.lite("free", "number")
    locks.idle(lites)
    stop_all(lites)


@vmtest(nodes=3, timeout=300)
def test_spoilt(lab):
    """Processes that write to the word spoil only the lock: all threads finish, and the word can be a lock again."""
    lites = locks.calm(lab)
    first, second, third = lites
    locks.alloc(first, "spoilt", second)
    scribblers = [locks.spawn(lite, "scribble", "spoilt") for lite in (second, third)]
    users = [locks.spawn(lite, "spoilt", "spoilt", "--threads", 4, "--count", lab.scale(150, 15)) for lite in lites]
    killed = locks.spawn(first, "spoilt", "spoilt", "--threads", 4, "--count", 1000000)
    for process in (*scribblers, *users, killed):
        process.wait_output("running", timeout=60)
    killed.kill(9)
    taken = sum(int(locks.last(user, 200)) for user in users)
    for scribbler in scribblers:
        assert scribbler.running, scribbler.err
        scribbler.kill(9)
        scribbler.wait(20)
    print(f"      taken {taken} times")
    first.lite("set", "spoilt", 0, 8, "00")
    one = locks.holder(first, "spoilt", said="\n")
    two = locks.spawn(third, "hold", "spoilt")
    locks.let_go(one)
    two.wait_output("\n", timeout=30)
    locks.let_go(two)
    locks.let_go(locks.holder(second, "spoilt", said="\n"))
    first.lite("free", "spoilt")
    locks.idle(lites)
