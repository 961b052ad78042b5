# SPDX-License-Identifier: MIT
"""LMRs get another name, length or place while they are in use. The checks are in programs/change and
programs/slots."""

import hashlib
import json
import re
import time

from litelab import (Lite, dead_seconds, in_one_machine, join_all, nodes_in, on_machines, patient, prepare, prepare_all,
                     probed, program_path, program_scale, run_catch, stop_all, times, wait_complete, wait_until)
from vmlab.testing import vmtest

setup = prepare_all

_PAGE = 4096
# No heartbeat is due, and no session with a silent node ends, before a test is over. A quarter of the operation time-out is
# less than the kernel lets a task wait without a complaint.
_RARE = {"heartbeat": 1_000_000, "dead": 3_000_000, "op_timeout": 100_000}


def _scale(lab):
    """LITE_TEST_SCALE for change_test: each of its cases does many rounds."""
    return {"LITE_TEST_SCALE": program_scale(lab) * lab.part}


def _bring_back(crashed, through, lites):
    """Brings a crashed machine back into the cluster. Nothing may be left of what it was used for."""
    crashed.vm.reboot()
    prepare(crashed.vm)
    crashed.forget()
    crashed.start(**times(crashed.vm))
    crashed.join(through)
    wait_complete(lites, timeout=30)
    for lite in lites:
        lite.check_idle()


def _nodes(lite, name):
    return json.loads(lite.lite("stat", name, "-j").out)["nodes"]


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=600)
def test_three_nodes_in_one_machine(lab):
    lites = in_one_machine(lab.n1)
    for spec in ("[rename]", "[resize]", "[move]"):
        run_catch(lab, lites, "change_test", spec, timeout=300, env=_scale(lab))
        for lite in lites:
            lite.check_idle()


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=200)
def test_a_part_is_lost_with_a_life_of_its_store(lab):
    """A store restarts: its part of an LMR is lost for all nodes, even the restarted one, but not the rest of the LMR.
    The lost part cannot be moved or copied, and a failed attempt leaves no allocation. When a resize has cut it off, it
    can be allocated anew."""
    home, store, other = lites = in_one_machine(lab.n1)
    home.lite("alloc", "spread", "8M", "--node", f"{home.id},{store.id}", "--mode", "0666")
    for offset in ("1M", "5M"):
        home.lite("write", "spread", offset, "living")
    holder = other.spawn("hold", "spread")
    holder.wait_output("running")
    number = store.id
    store.stop()
    store.start(**times(lab.n1), id=number)
    store.join(home)
    wait_complete(lites)
    for lite in lites:
        assert lite.lite("read", "spread", "1M", 6).out == "living", lite
        for words in (["read", "spread", "5M", 6], ["write", "spread", "5M", "x"], ["fetch-add", "spread", "5M", 1],
                      ["set", "spread", "5M", 8, "00"], ["read", "spread", "3M", "2M", "--file", "/tmp/both"]):
            result = lite.lite(*words, check=False)
            assert result.rc == 1 and "restarted" in result.err, (lite, words, result)
    # A page of the lost part cannot be mapped either.
    result = lab.n1.run([program_path("mapped"), "map", "spread", str(store.index), str(4 << 20)], check=False)
    assert result.rc == 1 and "restarted" in result.out, result
    for words in (["resize", "spread", "6M"], ["move", "spread", "--node", home.id, "--offset", "4M"],
                  ["move", "spread", "--node", store.id, "--offset", "5M", "--length", "1M"]):
        result = other.lite(*words, check=False)
        assert result.rc == 1 and "restarted" in result.err, (words, result)
        assert store.stats()["allocs"] == 0, words
    other.lite("move", "spread", "--node", store.id, "--length", "2M")
    other.lite("resize", "spread", "4M")
    other.lite("resize", "spread", "8M")
    for lite in lites:
        assert lite.lite("read", "spread", "1M", 6).out == "living", lite
        assert lite.lite("read", "spread", "5M", 6).out == "\0" * 6, lite
    holder.kill()
    home.lite("free", "spread")
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=1, fresh=True)
def test_a_part_is_at_a_node_that_has_left(lab):
    """A node that joins after a store has left does not know the store. It can use the other parts of an LMR there."""
    home, store, newcomer = lites = nodes_in(lab.n1)
    # With chosen ids, so that no node gets one that another had.
    for number, lite in enumerate(lites, 1):
        lite.start(**times(lab.n1), id=number)
    store.join(home)
    wait_complete([home, store])
    home.lite("alloc", "spread", "8M", "--node", f"{home.id},{store.id}", "--mode", "0666")
    home.lite("write", "spread", "1M", "living")
    store.leave()
    newcomer.join(home)
    wait_complete([home, newcomer])
    for lite in (home, newcomer):
        assert lite.lite("read", "spread", "1M", 6).out == "living", lite
        for words in (["read", "spread", "5M", 6], ["write", "spread", "5M", "x"], ["fetch-add", "spread", "5M", 1],
                      ["set", "spread", "5M", 8, "00"], ["checksum", "spread", "5M", 8],
                      ["read", "spread", "3M", "2M", "--file", "/tmp/both"]):
            result = lite.lite(*words, check=False)
            assert result.rc == 1 and "down" in result.err, (lite, words, result)
    home.lite("free", "spread")
    for lite in (home, newcomer):
        lite.check_idle()


@vmtest(timeout=400, mem_mb=768, slow=True)
def test_two_machines(lab):
    """The cases in which data travels between machines; changes of LMRs in use are tested below."""
    lites = on_machines(lab)
    names = ("rename: the old name*", "rename: of many*", "resize: longer*", "resize: what was cut off*", "resize: grown*",
             "move: all of it*", "move: the memory*", "move: parts of it*", "move: and resize*", "move: and free*",
             "move: the mover*")
    run_catch(lab, lites, "change_test", ",".join(names), timeout=380)
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=3, timeout=200)
def test_the_tools(lab):
    first, second, third = lites = on_machines(lab)
    first.lite("alloc", "old", "1M")
    first.transfers("fill", "old", "--seed", 5)
    second.lite("rename", "old", "new")
    assert third.names() == {"new"}
    result = first.lite("rename", "old", "other", check=False)
    assert result.rc == 1 and "no LMR of that name" in result.err, result
    second.lite("alloc", "old", 100)
    result = third.lite("rename", "new", "old", check=False)
    assert result.rc == 1 and "exists" in result.err, result
    second.lite("free", "old")

    third.lite("resize", "new", "3M")
    assert json.loads(first.lite("stat", "new", "-j").out)["size"] == 3 << 20
    assert first.lite("read", "new", "2M", 3).out == "\0\0\0"
    third.lite("resize", "new", "1M")
    second.transfers("verify", "new", "--seed", 5)

    assert first.lite("move", "new", "--node", third.id).out == ""
    assert _nodes(second, "new") == [third.id]
    said = second.lite("move", "new", "--node", second.id, "--offset", "512K", "--verbose").out
    assert said == f"new: {512 << 10} bytes moved to node {second.id}\n", said
    assert _nodes(first, "new") == [third.id, second.id]
    for lite in lites:
        lite.transfers("verify", "new", "--seed", 5)
    result = first.lite("move", "new", "--node", 999, check=False)
    assert result.rc == 1 and "no node of that id" in result.err, result
    result = first.lite("move", "new", "--node", third.id, check=False, user="alice")
    assert result.rc == 1 and "only a master" in result.err, result
    first.lite("free", "new")
    for lite in lites:
        lite.check_idle()


class _Users:
    """Processes on each of these nodes that use slots, and notice every lost or torn write (programs/slots)."""

    def __init__(self, lab, lites, name, each=2):
        self.name, self.first = name, lites[0]
        count = each * len(lites)
        self.length = 64 * 8 + (8 + 30 * count) * _PAGE
        self.length += -self.length % _PAGE
        lites[0].lite("alloc", name, self.length, "--mode", "0666")
        seed = lab.rng.getrandbits(32)
        self.processes = []
        for number in range(count):
            lite = lites[number % len(lites)]
            words = [program_path("slots"), "--index", lite.index, name, "--length", self.length, "--users", count,
                     "--number", number, "--seed", seed]
            self.processes.append(lite.vm.spawn([str(word) for word in words]))
        for process in self.processes:
            process.wait_output("running", timeout=60)

    def check_running(self):
        """Checks that no user has found an error so far."""
        for process in self.processes:
            assert process.running, f"{process.out}{process.err}"

    def end(self):
        """Ends the users. Each verifies its own part, and the common counter must be right."""
        counted = 0
        for process in self.processes:
            process.write("\n")
        for process in self.processes:
            process.wait(120)
            assert process.rc == 0, f"{process.out}{process.err}"
            counted += int(re.search(r"counted (\d+)", process.out)[1])
        assert int(self.first.lite("fetch-add", self.name, _PAGE - 8, 0).out) == counted
        self.first.lite("free", self.name)


@vmtest(timeout=300, netem=True)
def test_a_store_restarts_while_memory_is_made_there(lab):
    """A request for memory is carried out in the life of the store for which it was meant, or not at all: memory
    allocated in another life would never be freed. Without its device the store cannot tell others that it goes."""
    stop_all([Lite(vm) for vm in lab.nodes])
    # The home waits for the store to return.
    unhurried = {**times(lab.n1), "dead": 30000 * lab.n1.time_scale}
    home, store = lites = on_machines(lab, **unhurried)
    home.lite("alloc", "mine", "4M", "--node", f"{home.id},{store.id}")
    store.vm.netem("delay 50ms")
    grower = home.vm.spawn(["lite", "resize", "mine", "96M"])
    wait_until("some of it has been made", lambda: store.stats()["allocs"] > 3 or not grower.running, 60,
               lab.n1.time_scale)
    store.vm.netem(None)
    _restart_unseen(store, home, **unhurried)
    grower.wait(120)
    assert grower.rc == 0 or re.search("restarted|down", grower.err), grower.err
    home.lite("free", "mine", timeout=60)
    for lite in lites:
        lite.check_idle()
    stop_all(lites)


# Changes of the LMR "changed": 4 MB at the home H, 4 MB at the store S; user 1000 may read and write. The home makes each
# of them in lite_serve_<first word>(). All need answers of the store, which has the LMR open.
_CHANGES = {
    "alloc": ("create", "alloc changed 8M --node H,S --mode 0666"),
    "grow": ("resize", "resize changed 24M"),
    "shrink": ("resize", "resize changed 5M"),
    "cut off": ("resize", "resize changed 3M"),
    "chmod": ("setattr", "chmod 0600 changed"),
    "grant": ("grant", "grant changed -u 1000 -r r"),
    "rename": ("rename", "rename changed renamed"),
    "move there": ("move", "move changed --node S --length 3M"),
    "move back": ("move", "move changed --node H"),
    "move away": ("move", "move changed --node O --offset 3M"),
    "free": ("free", "free changed"),
}


def _restart_unseen(store, through, **options):
    """Has a node begin another life. Without its device it cannot tell others that the old one ends."""
    number = store.id
    store.vm.run("rdma link del rxe0", timeout=60)
    store.vm.run("rdma link add rxe0 type rxe netdev eth0")
    store.vm.cut(False)
    store.forget()
    store.start(**options, id=number)
    store.join(through)


def _cut_in_the_middle(lab, function, home, store, changer, words, longest):
    """Begins a change, and cuts the store off a while after the home has begun to make it, at most `longest` seconds.
    Returns the process, and whether the home was still at it."""
    serve = f"lite_serve_{function}"
    with probed(home.vm, serve) as begun, probed(home.vm, serve, ends=True) as ended:
        process = changer.vm.spawn(words)
        home.vm.run(f"until grep -q ' {begun}:' /sys/kernel/tracing/trace; do sleep 0.01; done", timeout=60)
        time.sleep(lab.rng.uniform(0, longest))  # the instant of the fault
        store.vm.cut()
        trace = home.vm.run("cat /sys/kernel/tracing/trace").out
    return process, trace.count(f" {begun}:") > trace.count(f" {ended}:")


@vmtest(nodes=3, fresh=True, timeout=900, netem=True)
def test_a_store_restarts_in_every_change(lab):
    """A change succeeds, or reports that it has not; the LMR is changed or as it was; the home's part of it can be
    used; and when it is freed, all its memory is. The store's life ends in the middle of each kind of change."""
    options = times(lab.n1)
    home, store, other = lites = on_machines(lab)
    number = {"H": home.id, "S": store.id, "O": other.id}
    # The change, how often the store has yet to restart in the middle of it, after how many seconds at most, and the
    # delay of what it sends, in milliseconds: a step takes a few of these delays, a change of memory a hundred.
    rounds = [(name, lab.scale(2, 1), 0.3, 60) for name in _CHANGES]
    while rounds:
        name, wanted, longest, delay = rounds.pop(0)
        function, change = _CHANGES[name]
        holders = []
        if name != "alloc":
            home.lite("alloc", "changed", "8M", "--node", f"{home.id},{store.id}", "--mode", "0666")
            home.lite("grant", "changed", "-u", 1000, "-r", "rw")
            home.lite("write", "changed", "1M", "living")
            holders = [lite.spawn("hold", "changed") for lite in (home, store, other)]
            for holder in holders:
                holder.wait_output("running")
        words = ["lite", *re.sub(r"\b[HSO]\b", lambda match: str(number[match[0]]), change).split()]
        store.vm.netem(f"delay {delay}ms")
        changing = (home, other)[lab.rng.randrange(2)]
        changer, under_way = _cut_in_the_middle(lab, function, home, store, changing, words, longest)
        store.vm.netem(None)
        _restart_unseen(store, home, **options)
        wait_complete(lites, timeout=40)
        changer.wait(100)
        said = changer.err.strip()
        print(f"      {name}: {'under way' if under_way else 'done'}, {longest} s, {delay} ms; {said or 'success'}")
        assert changer.rc == 0 or re.search("restarted|down|no LMR of that name", said), said
        if not under_way:
            # It was over before the store's life: the middle is earlier, or it must take longer, on a busy host.
            assert delay < 900, f"{name} was always over before the store restarted"
            rounds.insert(0, (name, wanted, longest / 10, delay * 2))
        elif wanted > 1:
            rounds.insert(0, (name, wanted - 1, longest, delay))
        for holder in holders:
            holder.kill()
            holder.wait(30)
        left = home.names()
        assert left <= {"renamed" if name == "rename" else "changed"} or (name == "rename" and left == {"changed"}), left
        for lmr in left:
            size = json.loads(home.lite("stat", lmr, "-j").out)["size"]
            assert size in {"grow": (8 << 20, 24 << 20), "shrink": (5 << 20, 8 << 20), "cut off": (3 << 20, 8 << 20)}.get(name, (8 << 20,)), size
            if name not in ("alloc", "move there"):
                assert home.lite("read", lmr, "1M", 6).out == "living"
            home.lite("free", lmr, timeout=60)
        for lite in lites:
            lite.check_idle()
    stop_all(lites)


@vmtest(timeout=300, netem=True)
def test_an_lmr_is_freed_while_it_grows(lab):
    """An LMR grows for long, part by part. Processes that wait for that can be killed, and freeing the LMR ends it."""
    home, store = lites = on_machines(lab)
    # The stack of a process shows that it waits for the end of a change.
    waiting = "grep -lsE 'lite_change_(open|begin)' /proc/[0-9]*/stack | wc -l"

    def freed_in_the_middle(delay):
        home.lite("alloc", "grown", "4M", "--node", f"{home.id},{store.id}")
        store.vm.netem(f"delay {delay}ms")
        grower = home.vm.spawn(["lite", "resize", "grown", "96M"])
        wait_until("some of it has been made", lambda: store.stats()["allocs"] > 2 or not grower.running)
        others = [home.vm.spawn(["lite", *words]) for words in (["chmod", "0600", "grown"], ["resize", "grown", "8M"])]
        wait_until("they wait", lambda: int(home.vm.run(waiting).out) == len(others) or not grower.running)
        for other in others:
            other.kill(9)
        for other in others:
            other.wait(60)
        in_time = grower.running
        home.lite("free", "grown", timeout=60)
        store.vm.netem(None)
        grower.wait(60)
        return in_time and grower.rc == 1 and "no LMR of that name" in grower.err

    # On a slow host it must take longer.
    assert any(freed_in_the_middle(delay) for delay in (50, 100, 200, 400)), "growing was always over before the LMR was freed"
    for lite in lites:
        lite.check_idle()


def _in_ioctl(vm, program):
    """Whether the only process of that name sleeps in ioctl(2), which is number 16."""
    return vm.run(f"cat /proc/$(pidof {program})/syscall", check=False).out.startswith("16 ")


@vmtest(nodes=3, timeout=200)
def test_who_waits_to_free_can_be_killed(lab):
    """While a mapper does not answer, a process that frees the LMR, at its home or elsewhere, ends as soon as it is
    killed. The LMR is gone when the mapper has answered."""
    home, mapper, other = lites = [Lite(vm) for vm in lab.nodes]
    stop_all(lites)
    for lite in lites:
        lite.start(**_RARE)
    join_all(lites)
    users = {"first": home, "second": other}
    holders = {}
    for name, user in users.items():
        home.lite("alloc", name, "64K", "--mode", "0666")
        for lite in (user, mapper):
            holders[name, lite.vm] = lite.spawn("hold", name)
            holders[name, lite.vm].wait_output("running")
    mapper.vm.pause()
    for name, user in users.items():
        waiting = holders[name, user.vm]
        waiting.write("\n")
        # The program frees the LMR as its last step.
        wait_until("it has done the rest", lambda waiting=waiting: waiting.out.split()[1:] == ["success"] * 4, 20, user.vm.time_scale)
        wait_until("it waits", lambda user=user: _in_ioctl(user.vm, "transfers"), 20, user.vm.time_scale)
        waiting.kill(9)
        waiting.wait(10)
        assert waiting.rc == -9, waiting.rc
    assert home.stats()["lmrs"] == len(users)
    mapper.vm.resume()
    for lite in lites:
        wait_until("they are freed", lambda lite=lite: not lite.stats()["lmrs"], 30, lite.vm.time_scale)
    stop_all(lites)


@vmtest(nodes=2, timeout=200)
def test_who_waits_to_change_can_be_killed(lab):
    """While a mapper does not answer, a process that changes the LMR at its home ends as soon as it is killed. The LMR
    stays as it was, and can be changed when the mapper has answered."""
    home, mapper = lites = [Lite(vm) for vm in lab.nodes[:2]]
    stop_all([Lite(vm) for vm in lab.nodes])
    for lite in lites:
        lite.start(**_RARE)
    join_all(lites)
    holders, changers = [], {}
    for change in ("chmod", "grant", "resize"):
        home.lite("alloc", change, "64K", "--mode", "0666")
        holders.append(mapper.spawn("hold", change))
        holders[-1].wait_output("running")
        # By handle, because the directory of the name may be the paused mapper.
        changers[change] = home.vm.spawn([program_path("crowd"), "change", str(home.index), change])
        changers[change].wait_output("ready")
    mapper.vm.pause()
    try:
        for changer in changers.values():
            asked = home.stats()["revokes"]
            changer.write("\n")
            wait_until("it waits", lambda asked=asked: home.stats()["revokes"] > asked, 20, home.vm.time_scale)
            assert changer.running, changer.out + changer.err
            changer.kill(9)
            changer.wait(10)
            assert changer.rc == -9, changer.rc
    finally:
        mapper.vm.resume()
    for change in changers:
        stat = json.loads(home.lite("stat", change, "-j", timeout=60).out)
        assert (stat["size"], stat["mode"]) == (64 << 10, "0666"), stat
        again = home.vm.spawn([program_path("crowd"), "change", str(home.index), change])
        again.write("\n")
        again.wait(60, check=True)
        home.lite("free", change, timeout=60)
    for holder in holders:
        holder.kill()
        holder.wait(10)
    for lite in lites:
        lite.check_idle()
    stop_all(lites)


@vmtest(nodes=3, timeout=300)
def test_move_in_use_by_three_machines(lab):
    lites = on_machines(lab, **patient(lab.n1))
    users = _Users(lab, lites, "moving")
    for round_number in range(lab.scale(24, 6)):
        mover, to = lites[round_number % 3], lites[lab.rng.randrange(3)]
        words = ["move", "moving", "--node", to.id]
        if round_number % 3:
            offset = lab.rng.randrange(users.length)
            words += ["--offset", offset, "--length", lab.rng.randrange(1, users.length - offset + 1)]
        mover.lite(*words, timeout=60)
        users.check_running()
    users.end()
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=3, timeout=300)
def test_resize_in_use_by_three_machines(lab):
    lites = on_machines(lab, **patient(lab.n1))
    users = _Users(lab, lites, "breathing")
    for round_number in range(lab.scale(24, 6)):
        lites[round_number % 3].lite("resize", "breathing", users.length + lab.rng.randrange(500000), timeout=60)
        users.check_running()
    users.end()
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=3, timeout=300, mem_mb=768)
def test_the_destination_dies_in_the_middle(lab):
    """The destination of a move crashes. The move ends soon. The parts already moved are lost, the others are there and
    right. The LMR can be freed, and users of other LMRs notice nothing."""
    first, second, third = lites = on_machines(lab)
    size = 48 << 20
    data = lab.rng.randbytes(size)
    (first.vm.scratch / "data").write_bytes(data)
    first.lite("alloc", "doomed", size)
    first.lite("write", "doomed", 0, "--file", "/scratch/data", timeout=120)
    first.lite("alloc", "safe", "1M", "--node", second.id)
    second.transfers("fill", "safe", "--seed", 3)
    holder = second.spawn("hold", "doomed")
    holder.wait_output("running")

    mover = second.vm.spawn(["lite", "move", "doomed", "--node", str(third.id)])
    wait_until("a part has been moved", lambda: third.id in _nodes(first, "doomed"), 60, first.vm.time_scale)
    third.vm.crash()
    mover.wait(40 + dead_seconds(first.vm) * 4)
    if mover.rc:
        moved = int(re.search(r"(\d+) of \d+ bytes were moved", mover.err)[1])
    else:
        moved = size
    # The step under way at the crash may have moved more than the mover knows.
    rest = min(size, moved + (16 << 20))
    first.wait_states({first.id: "up", second.id: "up", third.id: "down"}, timeout=dead_seconds(first.vm) * 2 + 5)
    if rest < size:
        wanted = hashlib.sha256(data[rest:]).hexdigest()
        for lite in (first, second):
            found = lite.vm.run(f"lite read doomed {rest} | sha256sum", timeout=120).out.split()[0]
            assert found == wanted, f"{lite}: what was not moved has changed"
        first.lite("write", "doomed", rest, "still writable")
    result = first.lite("move", "doomed", "--node", third.id, "--offset", rest, check=False, timeout=60)
    assert (result.rc == 1 and "down" in result.err) or rest == size, result
    second.transfers("verify", "safe", "--seed", 3)
    holder.kill()
    second.lite("free", "doomed", timeout=60)
    first.lite("free", "safe")
    _bring_back(third, second, lites)


@vmtest(nodes=3, timeout=200, slow=True)
def test_a_user_dies_in_the_middle(lab):
    """A machine that uses an LMR crashes while the LMR is moved. The move goes on."""
    first, second, third = lites = on_machines(lab)
    first.lite("alloc", "used", "2M")
    first.transfers("fill", "used", "--seed", 8)
    users = [third.spawn("verify", "used", "--seed", 8) for _ in range(2)]
    third.vm.crash()
    first.lite("move", "used", "--node", second.id, timeout=60)
    assert _nodes(second, "used") == [second.id]
    first.lite("resize", "used", "3M", timeout=60)
    first.lite("resize", "used", "2M", timeout=60)
    second.transfers("verify", "used", "--seed", 8)
    first.lite("free", "used")
    del users
    _bring_back(third, second, lites)
