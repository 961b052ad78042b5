# SPDX-License-Identifier: MIT
"""Starting, joining, leaving, coming back."""

import errno
import re
import signal
import time

import ends
from litelab import (Lite, in_one_machine, join_all, nodes_in, prepare_all, probed, program_path, run_catch, serve, stop_all,
                     times, trace_sessions, traced_sessions, wait_complete, wait_until)
from vmlab.testing import vmtest

setup = prepare_all


def _fresh(lab, count, **options):
    """Started nodes in one machine, each in a cluster of its own."""
    lites = nodes_in(lab.n1, 5)
    stop_all(lites)
    for lite in lites[:count]:
        lite.start(**{**times(lab.n1), **options})
    return lites[:count]


def _check_transfers(lites):
    """Each node can use memory of the next one, and another reads it."""
    for writer, home, reader in zip(lites, lites[1:] + lites[:1], lites[2:] + lites[:2]):
        writer.lite("alloc", "greeting", 4096, "--node", home.id)
        writer.lite("write", "greeting", 0, f"from {writer.id}")
        assert reader.lite("read", "greeting", 0, len(f"from {writer.id}")).out == f"from {writer.id}"
        reader.lite("free", "greeting")


def _errno(result):
    """The message of a failed command, as users see it."""
    assert not result.ok and result.err, result
    return result.err


@vmtest(nodes=1, cpus=2)
def test_one(lab):
    """A node alone is a cluster."""
    lite, = _fresh(lab, 1)
    assert lite.states() == {lite.id: "up"} and lite.members()[lite.id]["self"]
    lite.lite("alloc", "alone", 100)
    assert lite.names() == {"alone"}
    lite.stop()
    assert not lite.exists()


@vmtest(nodes=1, cpus=2)
def test_join_two_three_five(lab):
    """A cluster grows, and works with each number of nodes."""
    lites = _fresh(lab, 5)
    for count in (2, 3, 5):
        for lite in lites[1:count]:
            if lite.status()["peers"] == 0:
                lite.join(lites[0])
        wait_complete(lites[:count])
        assert [lite.id for lite in lites[:count]] == list(range(1, count + 1))
        _check_transfers(lites[:count])
        assert all(lite.status()["peers"] == count - 1 for lite in lites[:count])


@vmtest(nodes=1, cpus=2)
def test_join_through_any_member(lab):
    """The member that is asked need not be the one that hands out ids."""
    lites = _fresh(lab, 5)
    lites[1].join(lites[0])
    lites[2].join(lites[1])
    lites[3].join(lites[2])
    lites[4].join(lites[1])
    wait_complete(lites)
    assert sorted(lite.id for lite in lites) == [1, 2, 3, 4, 5]
    _check_transfers(lites)


@vmtest(nodes=1, cpus=2, timeout=200)
def test_concurrent_joins(lab):
    """First in their first life, then again in a later one."""
    lites = _fresh(lab, 5)
    for number in range(lab.scale(6, 2)):
        if number:
            for lite in lites[1:]:
                lite.leave()
            lites[0].wait_states({1: "up"})
        joining = [lite.vm.spawn(["litectl", "join", "-i", str(lite.index), "--timeout", "100s", lites[0].address])
                   for lite in lites[1:]]
        for process in joining:
            process.wait(100, check=True)
        wait_complete(lites)
        assert sorted(lite.id for lite in lites) == [1, 2, 3, 4, 5]
    _check_transfers(lites)


@vmtest(nodes=5, mem_mb=320, timeout=200, slow=True)
def test_five_machines_join_at_once(lab):
    """Joiners connect to each other at the same time, and the sessions that result last."""
    lites = [Lite(vm) for vm in lab.nodes]
    for _ in range(lab.scale(3, 1)):
        stop_all(lites)
        for lite in lites:
            trace_sessions(lite.vm)
            lite.start(**times(lite.vm))
        joining = [lite.vm.spawn(["litectl", "join", "--timeout", "100s", lites[0].address]) for lite in lites[1:]]
        for process in joining:
            process.wait(100, check=True)
        wait_complete(lites)
        assert sorted(lite.id for lite in lites) == [1, 2, 3, 4, 5]
        for lite in lites:
            up, ended = traced_sessions(lite.vm)
            # A joiner first has a session as a guest of some member, which it ends itself.
            up = [session for session, node in up if node != "0" and ended.get(session) != -errno.ENOTCONN]
            ended = [session for session in up if session in ended]
            assert len(up) == 4 and not ended, f"{lite}: sessions {up}, of which {ended} have ended"
    _check_transfers(lites)


@vmtest(nodes=1, cpus=2)
def test_chosen_ids(lab):
    lites = nodes_in(lab.n1, 5)
    stop_all(lites)
    ids = (400, 7, 65535, None)
    for lite, number in zip(lites, ids):
        lite.start(**times(lab.n1), **({"id": number} if number else {}))
    join_all(lites[:4])
    assert [lite.id for lite in lites[:3]] == [400, 7, 65535]
    assert lites[3].id not in (0, 400, 7, 65535)
    _check_transfers(lites[:4])


@vmtest(nodes=1, cpus=2)
def test_taken_id(lab):
    lites = nodes_in(lab.n1, 5)
    stop_all(lites)
    for lite, number in zip(lites, (3, 4, 4)):
        lite.start(**times(lab.n1), id=number)
    lites[1].join(lites[0])
    assert "another node of the cluster has the id" in _errno(lites[2].join(lites[0], check=False))
    # The cluster is unchanged, and the refused node may join elsewhere.
    wait_complete(lites[:2])
    _check_transfers(lites[:2])
    lites[2].stop()
    lites[2].start(**times(lab.n1), id=5)
    lites[2].join(lites[0])
    wait_complete(lites[:3])


@vmtest(nodes=1, cpus=2)
def test_secrets(lab):
    lites = nodes_in(lab.n1, 5)
    stop_all(lites)
    for lite, secret in zip(lites, ("correct horse", "correct horse", "battery staple", None, "correct hors")):
        lite.start(**times(lab.n1), secret=secret)
    lites[1].join(lites[0])
    for stranger in lites[2:]:
        refused = stranger.join(lites[0], check=False)
        message = _errno(refused)
        assert refused.rc == 1, refused
        assert "rejected" in message.lower() or "secret" in message.lower(), message
    wait_complete(lites[:2])
    _check_transfers(lites[:2])
    # No stranger got in, and the members did not learn of any.
    assert set(lites[0].states()) == {lites[0].id, lites[1].id}
    for stranger in lites[2:]:
        assert len(stranger.states()) == 1


@vmtest(nodes=1, cpus=2)
def test_a_member_with_a_secret_is_asked_by_one_without(lab):
    """Nodes with and without a secret do not accept each other, whichever of them asks."""
    lites = nodes_in(lab.n1, 5)
    stop_all(lites)
    lites[0].start(**times(lab.n1), insecure=True)
    lites[1].start(**times(lab.n1), secret="x")
    assert not lites[1].join(lites[0], check=False).ok
    assert not lites[0].join(lites[1], check=False).ok
    assert len(lites[0].states()) == len(lites[1].states()) == 1


@vmtest(nodes=1, cpus=2, timeout=60)
def test_programs_join_list_and_leave(lab):
    """Programs join, list and leave through the library. No netlink command takes as long as a join."""
    first, second = _fresh(lab, 2)
    absent = "10.0.0.77"
    lab.n1.run(f"ip neigh replace {absent} lladdr 02:00:00:00:00:77 dev eth0 nud permanent")
    try:
        run_catch(lab, [second], "netlink_test", "liblite joins*", env={"LITE_TEST_MEMBER": first.address})
        wait_complete([first, second])
        second.stop()
        second.start(**times(lab.n1))
        run_catch(lab, [second], "netlink_test", "netlink: JOIN is only begun*", env={"LITE_TEST_ABSENT": absent})
        assert not second.exists()
    finally:
        lab.n1.run(f"ip neigh del {absent} dev eth0", check=False)


@vmtest(nodes=1, cpus=2)
def test_join_nobody(lab):
    lite, other = _fresh(lab, 2)
    other.stop()
    failed = lite.join(other, check=False, timeout=20)
    assert failed.rc == 3 and ("refused" in failed.err or "timed out" in failed.err), failed
    # No member answers at an address without a machine, nor at the node's own.
    for address in ("10.0.1.77", lite.address):
        failed = lite.ctl("join", "--timeout", 2000, address, check=False, timeout=20)
        assert failed.rc == 3, failed
    assert lite.states() == {lite.id: "up"}
    lite.lite("alloc", "still-works", 10)
    lite.lite("free", "still-works")


@vmtest(nodes=1, cpus=2)
def test_a_node_that_starts_in_no_cluster(lab):
    """Until it has joined a cluster, no node can join it, and it has no memory. Failed attempts change nothing. A node
    that is refused learns why from the first connection, even if the RDMA CM flushes receives before it tells that."""
    idle, member, gone = nodes_in(lab.n1, 5)[:3]
    stop_all(nodes_in(lab.n1, 5))
    idle.start(idle=True, **times(lab.n1))
    idle.stop()
    idle.start(idle=True, **times(lab.n1))
    member.start(**times(lab.n1))
    trace_sessions(lab.n1)
    for _ in range(5):
        refused = member.join(idle, check=False, timeout=20)
        assert refused.rc == 3 and "no cluster" in refused.err, refused
    trace = lab.n1.run("cat /sys/kernel/tracing/trace").out
    assert set(re.findall(r"state=dead reason=(-\d+)", trace)) == {str(-errno.ENOTCONN)}, trace
    assert member.states() == {member.id: "up"}
    assert "no cluster" in _errno(idle.lite("alloc", "early", 10, check=False))
    failed = idle.join(gone, check=False, timeout=20)
    assert failed.rc == 3 and idle.status()["state"] == "idle", failed
    idle.join(member)
    wait_complete([member, idle])
    _check_transfers([member, idle])


@vmtest(nodes=1, cpus=2)
def test_join_with_lmrs_or_peers_is_busy(lab):
    lites = _fresh(lab, 3)
    lites[0].lite("alloc", "mine", 100)
    assert "has LMRs" in _errno(lites[0].join(lites[1], check=False))
    lites[2].join(lites[1])
    assert "leave" in _errno(lites[2].join(lites[0], check=False)).lower()


@vmtest(nodes=1, cpus=2)
def test_a_function_that_was_found_before_a_join(lab):
    """The node gets another id when it joins, and another node has its old one. Callers that have found a function of
    the node, as 0 or by the old id, reach neither a later function of that number nor the other node's."""
    there, here = _fresh(lab, 2)
    server = serve(here, "mine", "--echo")
    number = re.search(r"serving function (\d+)", server.err)[1]
    was = here.id
    callers = [here.vm.spawn([program_path("crowd"), "found", str(here.index), str(node), "mine"]) for node in (0, was)]
    for caller in callers:
        caller.wait_output("found\n")
        caller.write("\n")
        caller.wait_output("found\n0\n")
    here.join(there)
    assert here.id != was and there.id == was
    server.kill(signal.SIGTERM)
    server.wait(20)
    others = [serve(lite, number, "--echo") for lite in (here, there)]
    for caller in callers:
        caller.write("\n")
        caller.wait_output(f"found\n0\n{errno.ECONNREFUSED}\n")
        caller.close_stdin()
        caller.wait(20, check=True)
    for other in others:
        other.kill(signal.SIGTERM)
        other.wait(20)


@vmtest(nodes=1, cpus=2)
def test_calls_that_wait_during_a_join(lab):
    """Calls of a node to itself wait for room in the ring. They do not go to the node that now has its old id."""
    there, here = _fresh(lab, 2)
    server = serve(here, "40000", "--exec", "sleep 1000")
    full = here.vm.spawn([program_path("crowd"), "begin", str(here.index), "0", "40000", "1000"])
    full.wait_output("\n")
    count = 40
    callers = here.vm.spawn(f"for i in $(seq {count}); do lite -i {here.index} call 0 40000 x -t 600000 & done; wait")
    waiting = "grep -ls lite_ring_wait_take $(pidof lite | sed 's,[0-9]*,/proc/&/stack,g') | wc -l"
    wait_until("they wait", lambda: int(here.vm.run(waiting).out) == count, 60, here.vm.time_scale)
    was = here.id
    here.join(there)
    assert here.id != was and there.id == was
    other = serve(there, "40000", "--exec", "echo wrong")
    server.kill(signal.SIGKILL)
    server.wait(20)
    callers.wait(60)
    assert "wrong" not in callers.out and callers.err.count("no process serves that function") == count, callers.out + callers.err
    full.close_stdin()
    full.wait(20, check=True)
    other.kill(signal.SIGTERM)
    other.wait(20)


@vmtest(nodes=1, cpus=2)
def test_leave_and_come_back(lab):
    lites = join_all(_fresh(lab, 3))
    incarnation = lites[1].status()["incarnation"]
    lites[0].lite("alloc", "theirs", 4096, "--node", lites[1].id)
    lites[0].lite("alloc", "ours", 4096)
    user = lites[2].spawn("loop", "theirs")
    user.wait_output("running")
    lites[1].leave()
    assert user.wait(check=True).out.split()[-1] == "EIDRM", user.out
    assert lites[1].status()["state"] == "idle"
    for lite in (lites[0], lites[2]):
        lite.wait_states({lites[0].id: "up", lites[2].id: "up"})
        assert lite.names() == {"ours"}
    assert not lites[0].lite("stat", "theirs", check=False).ok
    lites[1].join(lites[2])
    wait_complete(lites)
    assert lites[1].names() == {"ours"}
    assert lites[1].status()["incarnation"] > incarnation
    _check_transfers(lites)


@vmtest(nodes=1, cpus=2)
def test_who_leaves_may_join_when_all_is_forgotten(lab):
    """A leaving node becomes idle only after it has forgotten the old cluster. If it joined earlier, it would also
    forget what belongs to the next one. No test would hit that moment, so this one checks the order of events. Its
    sessions have ended because it leaves."""
    lites = join_all(_fresh(lab, 2))
    lites[1].lite("alloc", "theirs", "1M", "--node", f"{lites[1].id},{lites[0].id}")
    lites[0].lite("alloc", "ours", "1M", "--node", f"{lites[0].id},{lites[1].id}")
    with ends.told(lites[1]) as ended, probed(lab.n1, "lite_store_exit") as forgotten:
        lites[1].leave()
        assert ended(lites[0], "leave") == {"leave": [errno.ENOTCONN]}, ended(lites[0])
        trace = lab.n1.run("cat /sys/kernel/tracing/trace").out
    assert lites[1].status()["state"] == "idle"
    assert forgotten in trace and trace.index(forgotten) < trace.index("state=idle"), trace
    lites[1].check_idle()
    lites[0].lite("free", "ours")
    lites[1].join(lites[0])
    wait_complete(lites)


@vmtest(nodes=2, kernels=("6.1", "6.12"), timeout=200)
def test_netlink_goes_on_while_a_node_leaves(lab):
    """While a node leaves or stops, other commands are answered, and modules can register families of generic
    netlink."""
    vm = lab.n1
    home, mapper = lites = [Lite(machine) for machine in lab.nodes]
    stop_all(lites)
    long = 60000 * vm.time_scale
    for word in ("leave", "stop"):
        for lite in lites:
            lite.start(heartbeat=1000, dead=long, op_timeout=long)
        join_all(lites)
        home.lite("alloc", "held", 4096)
        holder = mapper.spawn("hold", "held")
        holder.wait_output("running")
        mapper.vm.pause()
        try:
            ending = vm.spawn(["litectl", word])
            wait_until("it is leaving", lambda: home.status()["state"] == "leaving", 20, vm.time_scale)
            vm.run("modprobe psample && modprobe -r psample", timeout=20)
            assert home.status()["state"] == "leaving"
            assert ending.running, (ending.out, ending.err)
        finally:
            mapper.vm.resume()
        ending.wait(60, check=True)
        holder.kill()
        home.forget()
        if word == "leave":
            assert home.status()["state"] == "idle"
        stop_all(lites)
        assert not home.exists()


@vmtest(nodes=1, cpus=2)
def test_the_first_member_may_go(lab):
    """When the first member is gone, the lowest remaining one hands out ids."""
    lites = join_all(_fresh(lab, 3))
    lites[0].stop()
    for lite in lites[1:]:
        lite.wait_states({lites[1].id: "up", lites[2].id: "up"})
    newcomer = nodes_in(lab.n1, 5)[3]
    newcomer.start(**times(lab.n1))
    newcomer.join(lites[2])
    members = [lites[1], lites[2], newcomer]
    wait_complete(members)
    assert len({lite.id for lite in members}) == 3
    _check_transfers(members)


@vmtest(nodes=1, cpus=2)
def test_the_id_of_a_node_with_a_fast_clock(lab):
    """A node with a fast clock leaves. A member that has joined since gives out its id, for a life after the last."""
    first, second, third, fourth = lites = _fresh(lab, 4)
    second.join(first)
    lab.n1.run("date -s @$(($(date +%s) + 3600))")
    try:
        third.join(first)
    finally:
        lab.n1.run("date -s @$(($(date +%s) - 3600))")
    wait_complete([first, second, third])
    third.leave()
    first.leave()
    first.join(second)
    assert (first.id, second.id) == (1, 2)
    fourth.join(second)
    wait_complete([first, second, fourth])
    assert fourth.id == 3
    _check_transfers([first, second, fourth])
    stop_all(lites)


@vmtest(nodes=4, mem_mb=320, timeout=200)
def test_a_suspect_gives_out_ids_still(lab):
    """No other member hands out ids until the suspect is down. A joiner that asks the suspect waits; one that asks
    another member is sent to the suspect."""
    first, second, third, fourth = lites = [Lite(vm) for vm in lab.nodes]
    stop_all(lites)
    for lite in lites:
        lite.start(**{**times(lite.vm), "dead": 300000 * lite.vm.time_scale})
    join_all(lites[:2])
    # Without the suspect's hardware address these machines could not even begin to join.
    for lite in lites[2:]:
        lite.vm.run(f"ping -c 1 {first.vm.ip}")
    ended = second.broken()
    first.vm.pause()
    try:
        wait_until("the session is over", lambda: second.broken() > ended, 20, second.vm.time_scale)
        waiting = [lite.vm.spawn(["litectl", "join", "--timeout", str(150000 * lite.vm.time_scale), member.address])
                   for lite, member in ((third, second), (fourth, first))]
        time.sleep(2)  # time enough for a joiner to get in by mistake
        assert all(process.running for process in waiting), [process.out for process in waiting]
        assert second.states() == {1: "up", 2: "up"}
    finally:
        first.vm.resume()
    for process in waiting:
        process.wait(60, check=True)
    for lite in lites:
        lite.forget()
    wait_complete(lites)
    assert sorted(lite.id for lite in lites) == [1, 2, 3, 4]
    _check_transfers(lites)
    stop_all(lites)


@vmtest(nodes=4, mem_mb=320, timeout=200)
def test_joining_when_the_first_member_has_crashed(lab):
    """A joiner waits until the crashed member is down, but not until it comes back."""
    first, second, third, fourth = lites = [Lite(vm) for vm in lab.nodes]
    stop_all(lites)
    for lite in lites:
        lite.start(**times(lite.vm))
    join_all(lites[:2])
    first.vm.crash()
    third.ctl("join", "--timeout", 60000 * third.vm.time_scale, second.address, timeout=120)
    third.forget()
    second.wait_states({1: "down", 2: "up", third.id: "up"})
    fourth.join(third)
    wait_until("all are in", lambda: fourth.states() == third.states() == second.states(), 20, second.vm.time_scale)
    assert len({second.id, third.id, fourth.id}) == 3
    stop_all(lites[1:])


@vmtest(nodes=1, cpus=2, timeout=200)
def test_leave_and_join_again_and_again(lab):
    lites = join_all(_fresh(lab, 3))
    for _ in range(lab.scale(15 * lab.part, 3)):
        lites[2].leave()
        lites[2].join(lites[lab.rng.randrange(2)])
        lites[2].lite("alloc", "quick", 100, "--node", lites[0].id)
        # The node may still be connecting to this one.
        lites[1].wait_states({lite.id: "up" for lite in lites})
        lites[1].lite("free", "quick")
    wait_complete(lites)
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=1, cpus=2)
def test_leave_twice_is_not_connected(lab):
    lites = join_all(_fresh(lab, 2))
    lites[1].leave()
    assert not lites[1].ctl("leave", check=False).ok
    assert not lites[1].lite("alloc", "x", 10, check=False).ok


@vmtest(nodes=1, cpus=2)
def test_all_stop_at_once(lab):
    for _ in range(lab.scale(5, 2)):
        lites = join_all(_fresh(lab, 3))
        for process in [lite.vm.spawn(["litectl", "stop", "-i", str(lite.index)]) for lite in lites]:
            process.wait(check=True)
        assert not any(lite.exists() for lite in lites)


@vmtest(nodes=1, cpus=2)
def test_events(lab):
    lites = _fresh(lab, 3)
    lites[1].join(lites[0])
    with ends.watched(lab.n1, "-i", "0") as events:
        lites[2].join(lites[0])
        up = lambda: any(event["id"] == lites[2].id and event["state"] == "up" for event in events())
        wait_until("it is told", up, 20, lab.n1.time_scale)
        assert {event["index"] for event in events()} == {0}, events()


@vmtest(nodes=1, cpus=2)
def test_cluster_of_one_machine_is_shared_again(lab):
    """Nothing is stuck: what the tests of this file leave behind can be cleaned up."""
    stop_all(nodes_in(lab.n1, 5))
    lites = in_one_machine(lab.n1)
    _check_transfers(lites)
    for lite in lites:
        lite.check_idle()
    stop_all(lites)
