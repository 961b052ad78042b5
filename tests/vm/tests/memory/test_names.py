# SPDX-License-Identifier: MIT
"""Names: one of many creators wins, whichever nodes come or go meanwhile. No name is lost with its directory."""

import json

from litelab import (dead_seconds, in_one_machine, nodes_in, on_machines, prepare, prepare_all, program_path,
                     program_scale, run_program, stop_all, times, traced_calls, wait_complete, wait_until)
from vmlab.testing import vmtest

setup = prepare_all


def _namerace(lite, *words, **options):
    """Starts `namerace WORDS` on a node."""
    return lite.vm.spawn([program_path("namerace"), *(str(word) for word in words)],
                         env={"LITE_TEST_INDEXES": str(lite.index)}, **options)


def _rounds(lab, count):
    """How many rounds of a race to run; in each one a dozen processes want the name."""
    return max(20, int(count * program_scale(lab) * lab.part))


def _outcomes(process):
    """{number: errno or "0"} from the complete lines that `namerace loose` has printed so far."""
    lines = process.out.split("\n")[:-1]
    return {int(number): word for number, word in (line.split() for line in lines)}


def _look(lite, prefix, count):
    """{number: home or errno} of all names as a node sees them."""
    process = _namerace(lite, "look", "--prefix", prefix, "--count", count)
    lines = process.wait(60, check=True).out.splitlines()
    return {int(number): int(home) if word == "0" else word for number, word, home in map(str.split, lines)}


def _idle(lites):
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=1, cpus=2, timeout=400)
def test_exactly_one_wins(lab):
    lites = in_one_machine(lab.n1)
    run_program(lab, lites, "namerace", "race", "--rounds", _rounds(lab, 300), timeout=380,
                case_timeout=1200)
    _idle(lites)


@vmtest(nodes=1, cpus=2, timeout=300)
def test_names_that_come_and_go(lab):
    """Mutual exclusion by a name: never two processes have it, and one always gets it."""
    lites = in_one_machine(lab.n1)
    rounds = max(20, int(200 * program_scale(lab)))
    said = run_program(lab, lites, "namerace", "churn", "--rounds", rounds, timeout=280, case_timeout=600).out
    assert int(said.split()[0]) >= rounds, said
    _idle(lites)


@vmtest(nodes=1, cpus=2, timeout=300)
def test_listing_asks_each_home_once(lab):
    """A list has the LMRs of homes that need two replies each, and makes no calls beyond these."""
    # Heartbeats are calls, too.
    lites = in_one_machine(lab.n1, 4, heartbeat=1_000_000, dead=3_000_000)
    names = {f"{lite.id}-{i}" for lite in lites for i in range(7)}
    for lite in lites:
        _namerace(lite, "loose", "--prefix", lite.id, "--count", 7).wait(60, check=True)
    before = lites[1].stats()["calls"]
    listed = json.loads(lites[1].lite("ls", "-j").out)
    calls = lites[1].stats()["calls"] - before
    assert {lmr["name"] for lmr in listed} == names, listed
    assert calls <= 2 * (len(lites) - 1), calls
    lites[0].lite("free", *names)
    _idle(lites)


@vmtest(nodes=1, cpus=2, timeout=500)
def test_while_a_node_joins_and_leaves(lab):
    """Rounds go on while a node comes and goes that, as a member, is the directory of a quarter of the names."""
    lites = in_one_machine(lab.n1)
    fourth = nodes_in(lab.n1, 4)[3]
    fourth.start(**times(lab.n1))
    rounds = _rounds(lab, 200)
    turns, wanted = 0, lab.scale(12, 2)
    while turns < wanted:
        racing = lab.n1.spawn([program_path("namerace"), "race", "--rounds", str(rounds)],
                              env={"LITE_TEST_INDEXES": ",".join(str(lite.index) for lite in lites),
                                   "LITE_TEST_REMOTE": ",".join(str(lite.id) for lite in lites[1:]),
                                   "LITE_TEST_SEED": lab.rng.getrandbits(32),
                                   "LITE_TEST_TIMEOUT": 1200 * lab.kernel.time_scale})
        while racing.running:
            fourth.join(lites[turns % 3])
            fourth.leave()
            turns += 1
        racing.wait(check=True)
    lab.n1.log(f"{turns} times joined and left")
    stop_all([fourth])
    wait_complete(lites)
    _idle(lites)


@vmtest(nodes=1, cpus=2, timeout=200)
def test_names_survive_their_directories(lab):
    """Each node is the directory of some of the names. Whichever goes, the names of others' LMRs are found."""
    lites = in_one_machine(lab.n1)
    count = lab.scale(100, 40)
    for number, lite in enumerate(lites[:2]):
        made = _namerace(lite, "loose", "--prefix", f"of-{number}", "--count", count).wait(60, check=True)
        assert made.out.split("\n")[-2] == f"{count - 1} 0"
    lites[2].stop()
    for number, home in enumerate(lites[:2]):
        for lite in lites[:2]:
            assert set(_look(lite, f"of-{number}", count).values()) == {home.id}
    lites[2].start(**times(lab.n1))
    lites[2].join(lites[1])
    for number, home in enumerate(lites[:2]):
        for lite in lites:
            assert set(_look(lite, f"of-{number}", count).values()) == {home.id}
    # An existing name cannot be taken, wherever its directory is now.
    again = _namerace(lites[2], "loose", "--prefix", "of-0", "--count", count).wait(60, check=True)
    assert {line.split()[1] for line in again.out.splitlines()} == {"EEXIST"}
    lites[0].leave()
    for lite in lites[1:]:
        assert set(_look(lite, "of-0", count).values()) == {"ENOENT"}
        assert set(_look(lite, "of-1", count).values()) == {lites[1].id}
    again = _namerace(lites[2], "loose", "--prefix", "of-0", "--count", count).wait(60, check=True)
    assert {line.split()[1] for line in again.out.splitlines()} == {"0"}
    lites[1].leave()
    lites[2].leave()
    _idle(lites)
    stop_all(lites)


# enum lite_call in kernel/wire/wire.h.
_FIND, _OPEN, _MAP, _EXTENTS = 19, 24, 33, 34
_OF_OPENING = {_FIND, _OPEN, _MAP, _EXTENTS}


def _calls(lite, *words):
    """Runs `lite WORDS`; returns [(node called, kind of call)] of all calls in the machine to find or map LMRs."""
    with traced_calls(lite.vm) as made:
        lite.lite(*words)
    return [(node, call) for node, call, err in made if not err and call in _OF_OPENING]


@vmtest(nodes=1, timeout=300)
def test_opening_a_name_takes_at_most_two_calls(lab):
    """A node's first opening takes one call if the directory is the home or the node itself, else two."""
    lites = in_one_machine(lab.n1)
    first, second, third = lites
    seen = set()
    for nodes in ((second,), (second, first), (second, third), (third, first, second)):
        home, opener = nodes[0].id, third if nodes[0] is second else second
        for number in range(6):
            name = f"opened-{len(nodes)}-{number}"
            first.lite("alloc", name, "64K", "--node", ",".join(str(lite.id) for lite in nodes))
            opened = _calls(opener, "read", name, "0", "1")
            directory = next((node for node, call in opened if call == _OPEN), None)
            assert opened in ([(home, _OPEN)], [(home, _MAP)], [(directory, _OPEN), (home, _MAP)]), (name, home, opened)
            seen.add("home" if directory == home else "another" if directory else "opener")
            first.lite("free", name)
    assert seen == {"home", "another", "opener"}, seen
    _idle(lites)


def _check_loose(processes, lost, count):
    """Checks the outcomes of the processes that live, and those that the killed one has noted: {number: was it made}."""
    survivors = [_outcomes(process) for process in processes]
    for number in range(count):
        words = [outcome[number] for outcome in survivors]
        winners = words.count("0")
        assert winners <= 1, f"{number}: {words}"
        if winners or lost.get(number):
            continue
        # The killed process notes each outcome before the next name, so it may have got only the next one unnoted.
        in_flight = number == len(lost)
        assert in_flight or set(words) - {"EEXIST"}, f"{number}: {words}, killed: {lost.get(number)}"


@vmtest(nodes=4, mem_mb=320, timeout=400)
def test_while_a_member_is_killed(lab):
    lites = on_machines(lab)
    survivors, doomed = lites[:3], lites[3]
    count = lab.scale(300 * lab.part, 48)
    # What the doomed process prints shortly before the crash may get no further than its machine.
    survivors[0].lite("alloc", "board", count)
    processes = [_namerace(lite, "loose", "--prefix", "raced", "--count", count)
                 for lite in survivors for _ in range(2)]
    killed = _namerace(doomed, "loose", "--prefix", "raced", "--count", count, "--board", "board")
    killed.wait_output(f"\n{count // 4} ", timeout=100)
    doomed.vm.crash()
    for process in processes:
        process.wait(200, check=True)
    for lite in survivors:
        lite.wait_states({**{other.id: "up" for other in survivors}, doomed.id: "down"},
                         timeout=dead_seconds(lite.vm) * 2 + 5)
    marks = survivors[0].lite("read", "board", 0, count).out
    survivors[0].lite("free", "board", timeout=60)
    _check_loose(processes, {number: mark == "\1" for number, mark in enumerate(marks) if mark != "\0"}, count)
    # All nodes find the same, whichever was the directory.
    seen = [_look(lite, "raced", count) for lite in survivors]
    assert seen[0] == seen[1] == seen[2]
    made = {number for process in processes for number, word in _outcomes(process).items() if word == "0"}
    assert {number for number, home in seen[0].items() if home != "ENOENT"} == made
    # Names that were lost with the node can be made anew. When it comes back, it has none of them.
    again = _namerace(survivors[0], "loose", "--prefix", "raced", "--count", count).wait(100, check=True)
    assert _outcomes(again) == {number: "EEXIST" if number in made else "0" for number in range(count)}
    doomed.vm.reboot()
    prepare(doomed.vm)
    doomed.start(**times(doomed.vm))
    doomed.join(survivors[1])
    wait_complete(lites, timeout=30)
    seen = [_look(lite, "raced", count) for lite in lites]
    assert seen[0] == seen[1] == seen[2] == seen[3] and "ENOENT" not in seen[0].values()
    for lite in lites:
        lite.leave()
    _idle(lites)
    stop_all(lites)


@vmtest(nodes=4, mem_mb=320, timeout=300, slow=True)
def test_many_machines_want_the_same_names(lab):
    """While no node comes or goes, EEXIST is the only error."""
    lites = on_machines(lab)
    count = lab.scale(300, 40)
    processes = [_namerace(lite, "loose", "--prefix", "wanted", "--count", count) for lite in lites for _ in range(2)]
    for process in processes:
        process.wait(200, check=True)
    outcomes = [_outcomes(process) for process in processes]
    for number in range(count):
        words = sorted(outcome[number] for outcome in outcomes)
        assert words == ["0"] + ["EEXIST"] * (len(words) - 1), f"{number}: {words}"
    for lite in lites:
        lite.leave()
    _idle(lites)
    stop_all(lites)


@vmtest(timeout=300, netem=True)
def test_an_lmr_is_replaced_while_it_is_to_be_freed(lab):
    """A program renames an LMR and makes another of the old name, while a request to free that name waits for a slot to
    the home. The request does not free the renamed LMR."""
    # Longer than the longest delay.
    home, other = lites = on_machines(lab, dead=60_000 * lab.n1.time_scale, op_timeout=30_000 * lab.n1.time_scale)
    # The stack of a process shows that its request has no slot yet.
    in_line = "grep -lsE 'lite_call_slot|lite_kcall_begin' $(grep -ls lite_ctx_free /proc/[0-9]*/stack) /dev/null"

    def replaced(delay):
        home.lite("alloc", "busy", "4K")
        home.lite("alloc", "current", "64K")
        home.lite("write", "current", 0, "old data")
        # They take all slots of the user until all that follows is done. Each begins when it has read a line.
        crowd = other.vm.spawn("exec 3<&0; for i in $(seq 48); do { read go <&3; exec lite chmod 0600 busy; } & done; wait")
        other.vm.netem(f"delay {delay * other.vm.time_scale}s")
        crowd.write("\n" * 48)
        wait_until("they wait", lambda: int(other.vm.run("grep -ls lite_ctx_setattr /proc/[0-9]*/stack | wc -l").out) > 30 or
                   not crowd.running, 20, other.vm.time_scale)
        freeing = other.vm.spawn(["lite", "free", "current"])
        wait_until("it is in line", lambda: other.vm.run(in_line, check=False).out or not crowd.running, 20, other.vm.time_scale)
        renamed = home.lite("rename", "current", "old", check=False).ok
        if renamed:
            home.lite("alloc", "current", "64K")
        other.vm.netem(None)
        crowd.wait(60, check=True)
        # On a slow host it may come before the rename, or before the new LMR is made.
        freed = freeing.wait(60)
        assert freed.ok or "no LMR of that name" in freed.err, freed
        in_time = renamed and freed.ok
        if in_time:
            assert home.names() == {"busy", "old"}, home.names()
            assert home.lite("read", "old", 0, 8).out == "old data"
        for name in home.names():
            home.lite("free", name)
        return in_time

    # A host that is too slow for the first delay may be quick enough for a later one.
    assert any(replaced(delay) for delay in (1, 2, 3, 4, 4)), "the crowd was always gone too early"
    for lite in lites:
        lite.check_idle()
