# SPDX-License-Identifier: MIT
"""Barriers in words of LMRs: rounds, participants that give up or die, nodes that go."""

import locks
from litelab import on_machines, prepare_all, wait_complete, wait_until
from vmlab.testing import vmtest

setup = prepare_all


@vmtest(nodes=3, timeout=300)
def test_rounds(lab):
    """No participant passes before all have arrived, round after round."""
    lites = locks.calm(lab)
    locks.alloc(lites[0], "rounds", lites[1])
    count, threads = lab.scale(60, 6), 3
    users = [locks.spawn(lite, "rounds", "rounds", "--threads", threads, "--all", 3 * threads, "--count", count)
             for lite in lites]
    for user in users:
        assert locks.last(user, 200) == "through", user.out
    assert locks.word(lites[0], "rounds", 8) == 3 * threads * count
    lites[0].lite("free", "rounds")
    locks.idle(lites)


@vmtest(nodes=3, timeout=300)
def test_time_outs(lab):
    """A participant that times out just as the last one arrives either passes with the others or was not counted."""
    lites = locks.calm(lab)
    locks.alloc(lites[0], "meet", lites[1])
    users = [locks.spawn(lite, "meet", "meet", "--all", 3, "--timeout", 20 * lab.kernel.time_scale, "--count",
                    lab.scale(100, 10)) for lite in lites]
    late = sum(int(locks.last(user, 200)) for user in users)
    print(f"      {late} times too late")
    lites[0].lite("free", "meet")
    locks.idle(lites)


@vmtest(nodes=3, timeout=300, fresh=True)
def test_who_gives_up_or_dies(lab):
    """Participants that give up or die do not count. Another number is refused. A barrier ends with its LMR."""
    lites = locks.mortal(lab)
    first, second, third = lites
    locks.alloc(first, "barrier", second)

    def arrive(lite, *words):
        return lite.vm.spawn(["lite", "barrier", "barrier", "3", *words])

    def fails(process, text):
        assert process.wait(30).rc == 1 and text in process.err, (process.rc, process.err)

    one = arrive(first)
    locks.claims(second, 1)
    killed = arrive(third)
    locks.claims(second, 2)
    killed.kill(9)
    killed.wait(20)
    locks.claims(second, 1)
    fails(arrive(second, "--timeout", "1.5s"), "not all have come")
    fails(third.vm.spawn(["lite", "barrier", "barrier", "2"]), "another number")
    locks.claims(second, 1)
    # Another word is another barrier. The word of a barrier can also be a lock.
    fails(third.vm.spawn(["lite", "barrier", "barrier", "2", "--offset", "8", "--timeout", "100ms"]), "not all have come")
    locks.let_go(locks.holder(third, "barrier"))
    two = arrive(second)
    locks.claims(second, 2)
    assert one.running and two.running
    for process in (arrive(third), one, two):
        assert process.wait(30).rc == 0, process.err
    # The first participant makes the barrier's LMR; those of the next round find it.
    for _ in range(2):
        meeting = [lite.vm.spawn(["lite", "barrier", "--create", "--mode", "0666", "meeting", "3"]) for lite in lites]
        for process in meeting:
            assert process.wait(30).rc == 0, process.err
    first.lite("free", "meeting")
    # The node of a participant dies.
    one = arrive(first)
    locks.claims(second, 1)
    arrive(third)
    locks.claims(second, 2)
    third.vm.crash()
    wait_until("it is taken out", lambda: second.stats()["lock_claims"] == 1, 60, first.vm.time_scale)
    two = arrive(second)
    locks.claims(second, 2)
    assert one.running and two.running
    first.lite("free", "barrier")
    fails(one, "freed")
    fails(two, "freed")
    locks.idle((first, second))


@vmtest(nodes=2, timeout=200, netem=True)
def test_a_round_that_was_complete(lab):
    """Rounds are complete, but their last participants do not learn it until the home has counted their node as down.
    Then they go on, even if their time-out is over, and do not count for the next round."""
    # No session may end before the last participants have arrived.
    home, other = lites = on_machines(lab, dead=10000 * lab.n1.time_scale, op_timeout=60000 * lab.n1.time_scale)
    locks.alloc(home, "complete", home)

    def arrive(lite, offset, *words):
        process = locks.spawn(lite, "arrive", "complete", "--offset", offset, "--all", 2, *words)
        process.wait_output("ready", timeout=30)
        return process

    first = [arrive(home, offset) for offset in (0, 8)]
    last = [arrive(other, 0), arrive(other, 8, "--timeout", 1)]
    for process in first:
        process.write(b"\n")
    locks.claims(home, 2)
    # The arrivals reach the home, but its answers are lost.
    home.vm.netem("loss 100%")
    for process in last:
        process.write(b"\n")
    assert [locks.last(process) for process in first] == ["0", "0"]
    other.vm.pause()
    home.wait_states({home.id: "up", other.id: "down"}, timeout=60)
    home.vm.netem(None)
    other.vm.resume()
    assert [locks.last(process, 60) for process in last] == ["0", "0"]
    wait_complete(lites)
    home.lite("free", "complete")
    locks.idle(lites)
