# SPDX-License-Identifier: MIT
"""Sessions end between nodes that live on: these keep their anonymous LMRs, and the cause of each end is recorded."""

import contextlib
import time

import ends
from litelab import (Lite, dead_seconds, join_all, new_processes, on_machines, prepare, prepare_all, program_path, stop_all,
                     times, traced_at, wait_complete, wait_until)
from vmlab.testing import vmtest

setup = prepare_all


def _user(lite, home, length="64K", idle=False, count=0):
    """A process with an anonymous LMR at another node; see programs/anonymous.cpp."""
    units = {"K": 10, "M": 20}
    user = lite.vm.spawn([program_path("anonymous"), str(lite.index), str(home.id),
                          str(int(length[:-1]) << units[length[-1]]), "idle" if idle else str(count)])
    user.wait_output("running", timeout=60)
    return user


def _finish(users, timeout=60):
    """Ends the users, which check that they have kept their memory. Returns what they print."""
    for user in users:
        user.write("\n")
    return [user.wait(timeout, check=True).out.splitlines()[-1] for user in users]


def _lmrs(lite):
    return lite.stats()["lmrs"]


def _ends(lite):
    """{cause: number} of the sessions that have ended."""
    return {name.removeprefix("ends_"): count for name, count in lite.stats().items() if name.startswith("ends_") and count}


def _fenced(lite):
    """How many sessions a node has ended to fence the peer. (A busy host ends them for other causes.)"""
    stats = lite.stats()
    return stats["ends_fence"] + stats["ends_revoke"]


def _cut(lites, until_missed=True, seconds=0):
    """Cuts the last of these nodes off until each side misses the other, or for this many seconds."""
    *others, last = lites
    with contextlib.ExitStack() as stack:
        last.vm.cut()
        stack.callback(last.vm.cut, False)
        time.sleep(seconds)  # the length of the interruption
        for lite in lites if until_missed else []:
            away = [last] if lite is not last else others
            lite.wait_states({other.id: "down" if other in away else "up" for other in lites},
                             timeout=dead_seconds(lite.vm) * 2 + 5)
    wait_complete(lites, timeout=40)


@vmtest(nodes=2, timeout=300)
def test_anonymous_memory_outlives_sessions(lab):
    """Processes go on using anonymous memory, and idle ones can still use it afterwards. When its process releases it,
    even during an interruption, it is freed."""
    first, second = lites = on_machines(lab)
    users = [_user(one, other, idle=idle) for one, other in ((first, second), (second, first)) for idle in (False, True)]
    leaver = _user(first, second, idle=True)
    assert _lmrs(second) == 3
    with ends.told(first) as ended:
        cuts = lab.scale(3)
        for _ in range(cuts):
            _cut(lites)
        assert _lmrs(second) == 3, "memory was freed while its process lives"

        with contextlib.ExitStack() as stack:
            second.vm.cut()
            stack.callback(second.vm.cut, False)
            wait_until("it is missed", lambda: first.states()[second.id] == "down", 30, first.vm.time_scale)
            leaver.kill()
            leaver.wait(30)
        wait_complete(lites, timeout=40)
        causes = ended(second)
        print(f"      ends of sessions: {causes}")
        assert sum(map(len, causes.values())) > cuts, causes
    wait_until("what was let go meanwhile is free", lambda: _lmrs(second) == 2, 20, first.vm.time_scale)
    print("     ", *_finish(users), sep="\n        ")
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=3, timeout=300)
def test_what_a_new_session_has_settled(lab):
    """Operations on a share at another node failed when their session ended. The next session has fenced that one, so
    changes of the LMR need not end a session for these operations, however long a handle refers to the old mapping."""
    home, store, user = lites = on_machines(lab)
    home.lite("alloc", "torn", "8M", "--node", f"{home.id},{store.id}")
    keeper = user.spawn("keep", "torn", "--offset", 6 << 20)
    keeper.wait_output("running")
    with contextlib.ExitStack() as stack:
        store.vm.cut()
        stack.callback(store.vm.cut, False)
        keeper.wait_output("EHOSTDOWN", timeout=60)
    wait_complete(lites, timeout=40)
    before = [_fenced(lite) for lite in lites]
    for mode in ("0600", "0640", "0600"):
        home.lite("chmod", mode, "torn")
    assert [_fenced(lite) for lite in lites] == before
    keeper.write("\n")
    keeper.wait(30, check=True)
    home.lite("free", "torn")
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=2, fresh=True, timeout=240)
def test_orphans(lab):
    """When a node was down for the orphan time, its peers free what it had made there, whether its session ended by
    silence or before, so that it was suspect first. If the node died, they do so as soon as its next life begins."""
    first, second = lites = [Lite(vm) for vm in lab.nodes]
    short = times(lab.n1)["dead"]
    rounds = {short: "silence"}
    if short < 8000:
        # The session ends by a missing acknowledgement before the node is silent for that long.
        rounds[8000] = "transport"
    for dead, cause in rounds.items():
        stop_all(lites)
        for lite in lites:
            # No operation waits for so long that its time-out ends the session.
            lite.start(**{**times(lite.vm), "dead": dead, "op_timeout": 3 * short}, orphan_time=2 * dead)
        join_all(lites)
        assert second.status()["orphan_ms"] == 2 * dead
        _lose_memory(first, second, dead / 1000, cause)

    # The default orphan time is longer than a machine takes to come back.
    stop_all(lites)
    for lite in lites:
        lite.start(**times(lite.vm))
    join_all(lites)
    _user(first, second, idle=True)
    first.vm.crash()
    first.vm.reboot()
    prepare(first.vm)
    wait_until("it is missed", lambda: second.states()[first.id] == "down", 30, first.vm.time_scale)
    assert _lmrs(second) == 1
    first.start(**times(first.vm))
    first.join(second)
    wait_until("its last life is over", lambda: not _lmrs(second), 20, first.vm.time_scale)
    stop_all(lites)


def _lose_memory(first, second, dead, cause):
    """The dead time is in seconds, and half the orphan time. The cause is that of the session's end."""
    user = _user(first, second, idle=True)
    with contextlib.ExitStack() as stack:
        ended = stack.enter_context(ends.told(second))
        second.vm.run("echo 1 >/sys/kernel/tracing/events/lite/lite_lmr_dying/enable")
        first.vm.cut()
        stack.callback(first.vm.cut, False)
        wait_until("it is given up", lambda: not _lmrs(second), 40, first.vm.time_scale)
        assert list(ended(first, cause)) == [cause], ended(first)
    # A busy host may look too late to see the memory of a node that is down, so the times of both events count.
    trace = second.vm.run("cat /sys/kernel/tracing/trace").out
    missed = traced_at(trace, rf"lite_member: self=\d+ node={first.id} .*state=down")
    assert traced_at(trace, "lite_lmr_dying: ") - missed > dead / 2, trace
    wait_complete([first, second], timeout=40)
    user.write("\n")
    assert user.wait(30).rc == 1 and "was freed" in user.out, user.out


def _default_times(lab, count):
    lites = [Lite(vm) for vm in lab.nodes[:count]]
    stop_all(lites)
    for lite in lites:
        lite.start()
    return join_all(lites)


@vmtest(nodes=2, fresh=True, timeout=400, slow=True)
def test_cuts_of_4_20_and_60_seconds(lab):
    lites = _default_times(lab, 2)
    first, second = lites
    users = [_user(one, other, length, idle) for one, other in ((first, second), (second, first))
             for length in ("64K", "4M") for idle in (False, True)]
    for seconds in (4, 20, 60):
        _cut(lites, until_missed=False, seconds=seconds)
        for lite in lites:
            assert _lmrs(lite) == 4
            print(f"      after {seconds} s, {lite}: {_ends(lite)}")
    print("     ", *_finish(users, 100), sep="\n        ")
    for lite in lites:
        lite.check_idle()
    stop_all(lites)


def _ordinary_traffic(lab, length, count=0, seconds=0):
    """With default times, two processes on each of three machines read and write; the host may be busy. They do so for some
    seconds, or each of them so many times."""
    lites = _default_times(lab, 3)
    events = [lite.vm.spawn(["litectl", "events"]) for lite in lites]
    with new_processes(lite.vm for lite in lites):
        users = [_user(lite, other, length, count=count) for lite in lites for other in lites if other is not lite]
        for user in users if count else []:
            user.wait_output("enough", timeout=200)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            assert all(user.running for user in users), [user.out for user in users]
            time.sleep(5)
        print("     ", *_finish(users, 300), sep="\n        ")
    for lite, process in zip(lites, events):
        print(f"      {lite}: ends of sessions: {_ends(lite)}")
        print(*(f"        {line}" for line in process.out.splitlines() if "ended" in line), sep="\n")
        lite.check_idle()
    for process in events:
        process.kill()
    stop_all(lites)


@vmtest(nodes=3, timeout=300)
def test_ordinary_traffic(lab):
    _ordinary_traffic(lab, "1M" if lab.kernel.is_debug else "8M" if lab.part == 1 else "4M", count=lab.scale(9, 2))


@vmtest(nodes=3, fresh=True, timeout=1500, slow=True)
def test_ordinary_traffic_for_ten_minutes(lab):
    _ordinary_traffic(lab, "24M", seconds=600)
