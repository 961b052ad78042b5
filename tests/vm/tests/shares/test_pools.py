# SPDX-License-Identifier: MIT
"""Pools that all users of a node share (limits.rst): a user takes all it can, and others still get their part."""

import errno
import re
import signal
import statistics

from litelab import (in_one_machine, join_all, memory_kb, module_path, nodes_in, on_machines, prepare_all, probed,
                     program_path, run_catch, stop_all, times, twice_in, wait_complete, wait_until)
from vmlab.testing import vmtest

setup = prepare_all


@vmtest(nodes=1, cpus=2, mem_mb=768, timeout=300)
def test_three_nodes_in_one_machine(lab):
    lites = in_one_machine(lab.n1)
    run_catch(lab, lites, "pools_test", timeout=280, case_timeout=120)
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=1, cpus=2, timeout=100)
def test_memory_that_is_kept_for_root(lab):
    """Users that take all the memory they can get leave a sixteenth of it to root."""
    stop_all(nodes_in(lab.n1))
    lite, = in_one_machine(lab.n1, 1, mem_limit="32M", uid_limit="32M")
    lite.lite("alloc", "most", "29M", user="alice")
    refused = lite.lite("alloc", "more", "2M", check=False, user="alice")
    assert refused.rc == 1 and "is used up" in refused.err, refused
    lite.lite("alloc", "root's", "2M")
    assert not lite.lite("alloc", "too much", "2M", check=False).ok
    for name in ("most", "root's"):
        lite.lite("free", name)
    lite.check_idle()
    stop_all([lite])


@vmtest(nodes=1, cpus=2, timeout=100)
def test_slots_and_bytes_of_a_ring(lab):
    """Unanswered calls of a user take all they can get of a function's ring. Another user's call is still sent."""
    vm = lab.n1
    stop_all(nodes_in(vm))
    here, there = in_one_machine(vm, 2)

    def begin(function, count, user):
        process = vm.spawn([program_path("crowd"), "begin", *map(str, (here.index, there.id, function, count))], user=user)
        process.wait_output("\n", timeout=20)
        return process

    for function, ring, at_most in (2010, [], 56), (2011, ["--ring", "4K", "--length", "64"], 28):
        server = vm.spawn(["lite", "-i", str(there.index), "serve", str(function), "--exec", "sleep 100", "-m", "0622", *ring])
        wait_until("it serves", lambda: "serving function" in server.err or not server.running, 20, vm.time_scale)
        users = begin(function, 100, "alice"), begin(function, 1, "bob")
        begun = [int(process.out) for process in users]
        print(f"      {begun[0]} calls of one user, {begun[1]} of the next")
        assert 10 < begun[0] <= at_most and begun[1] == 1, begun
        for process in users:
            process.close_stdin()
            process.wait(20, check=True)
        server.kill(signal.SIGTERM)
        server.wait(20)
    stop_all([here, there])


@vmtest(nodes=1, cpus=2, mem_mb=768, timeout=200)
def test_long_replies_of_kernel_functions(lab):
    """The memory of a kernel function for a long reply counts as the caller's. A user that has all that it gets of the
    memory for long calls gets no reply, and takes no memory from others."""
    vm = lab.n1
    here, there = lites = in_one_machine(vm, 2)
    vm.insmod(module_path(vm, "kcalls"), index=there.index)
    server = vm.spawn(["lite", "-i", str(here.index), "serve", "2020", "--exec", "sleep 1000", "-m", "0622", "--length", "16M"])
    wait_until("it serves", lambda: "serving function" in server.err or not server.running, 20, vm.time_scale)
    held, size = [], 16 << 20
    while size > 64 << 10:
        before = there.stats()["rpc_bulk_bytes"]
        words = ["call", "-l", str(size), "-t", "600s", str(here.id), "2020", "x"]
        call = vm.spawn(["lite", "-i", str(there.index), *words], user="alice")
        wait_until("it waits or ends", lambda: there.stats()["rpc_bulk_bytes"] > before or not call.running, 20, vm.time_scale)
        if call.running:
            held.append(call)
        else:
            assert "memory" in call.err, call.err
            size //= 2
    print(f"      {there.stats()['rpc_bulk_bytes'] >> 10} KB with {len(held)} calls")
    refused = here.lite("call", "-t", "60s", there.id, "kcalls-sort", "sesame", check=False, user="alice")
    assert not refused.out and "without an answer" in refused.err, refused
    # The status is the id of the caller's node.
    said = here.lite("call", "-t", "60s", there.id, "kcalls-sort", "sesame", check=False, user="bob")
    assert said.out == "aeemss", said
    for process in (*held, server):
        process.kill(signal.SIGTERM)
        process.wait(20)
    vm.rmmod("kcalls")
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=3, timeout=600)
def test_pages_of_files(lab):
    """A user sends files to a silent node until it gets no more pages: it then sends small sets, others full ones."""
    # The senders take long to start on a slow host, and the node must not count as dead before.
    here, there, lost = lites = on_machines(lab, dead=600000 * lab.n1.time_scale)
    vm, set_pages = lab.n1, 512
    uid = {user: vm.run(["id", "-u", user]).out.strip() for user in ("alice", "bob")}
    vm.run("head -c 2097152 /dev/zero >/tmp/sent")
    # It can be mapped without the node that is to be cut off, which has the second half.
    here.lite("alloc", "far", "4M", "--node", f"{here.id},{lost.id}", "--mode", "0666")
    here.lite("alloc", "near", "2M", "--node", there.id, "--mode", "0666")

    def trace():
        return vm.run("cat /sys/kernel/tracing/trace").out

    def gets_full_sets(user):
        """Whether the user gets the pages of a full set while a file is sent."""
        with probed(vm, "lite_pool_give", "uid=$arg2:u32 pages=$arg3:u64"):
            here.lite("put", "/tmp/sent", "near", user=user)
            return f"uid={uid[user]} pages={set_pages}\n" in trace()

    assert gets_full_sets("alice")
    lost.vm.cut()
    try:
        many = []
        while not many or gets_full_sets("alice"):
            with probed(vm, "lite_pool_take", "uid=$arg2:u32 pages=$arg3:u64"):
                many += [vm.spawn(["lite", "put", "/tmp/sent", "far:2M"], user="alice") for _ in range(6)]
                wait_until("all send", lambda: trace().count(f"uid={uid['alice']} pages={set_pages}\n") == 6, 60, vm.time_scale)
        assert gets_full_sets("bob")
        assert all(process.running for process in many)
    finally:
        lost.vm.cut(False)
    for process in many:
        process.wait(100, check=True)
    assert gets_full_sets("alice")
    wait_complete(lites)
    for name in ("far", "near"):
        here.lite("free", name)
    for lite in lites:
        lite.check_idle()
    stop_all(lites)


@vmtest(nodes=1, cpus=2, kernels=("6.1", "6.12"), timeout=300)
def test_names_that_are_cached(lab):
    """A user opens more LMRs than the cache of names has entries. Another one mostly opens an LMR without a call."""
    vm = lab.n1
    here, there = lites = in_one_machine(vm, 2)
    there.lite("alloc", "another's", "4K", "--mode", "0644")
    vm.run([program_path("namerace"), "loose", "--prefix", "greedy", "--count", "2200"], user="alice", timeout=120,
           env={"LITE_TEST_INDEXES": str(there.index)})
    greedy = vm.spawn([program_path("crowd"), "open", str(here.index), "greedy", "2200"], user="alice")
    greedy.wait_output("ready", timeout=200)
    tracing, count = "/sys/kernel/tracing", 20
    vm.run(f"[ -e {tracing}/trace ] || mount -t tracefs none {tracing}; echo 1 >{tracing}/events/lite/lite_call/enable")
    pid = vm.run([program_path("crowd"), "reopen", str(here.index), "another's", str(count)], user="bob", timeout=60).out.strip()
    vm.run(f"echo 0 >{tracing}/events/lite/lite_call/enable")
    calls = int(vm.run(f"grep -c 'crowd-{pid} .* lite_call:' {tracing}/trace; echo >{tracing}/trace", check=False).out)
    assert greedy.running, greedy.err
    greedy.kill()
    greedy.wait(20)
    print(f"      {count} times, with {calls} calls")
    assert 0 < calls < count / 2, calls
    # Named LMRs outlive their makers.
    stop_all(lites)


@vmtest(nodes=1, cpus=2, fresh=True, mem_mb=448, kernels=("6.1", "6.12"), timeout=400)
def test_handles(lab):
    """A user opens an LMR through one file after the other until it gets no more handles. They take only a part of the
    memory. The user maps as many LMRs as it then closes handles, and another user still gets handles and mappings."""
    vm, spare = lab.n1, 1000
    stop_all(nodes_in(vm))
    lite, = in_one_machine(vm, 1)
    lite.lite("alloc", "open", "4K", "--mode", "0644")
    total = int(vm.run("awk '/^MemTotal/ {print $2}' /proc/meminfo").out)
    before, _ = memory_kb(vm)
    greedy = vm.spawn([program_path("handles"), "fill", str(lite.index), "open", str(spare)], user="alice")
    greedy.wait_output("\n", timeout=300)
    taken = before - memory_kb(vm)[0]
    opened = int(greedy.out)
    print(f"      {opened} handles, {taken >> 10} of {total >> 10} MB")
    assert opened == lite.stats()["handles"] and opened > 10_000
    # Half of a 16th, and memory that is not counted.
    assert taken < total / 16, (taken, total)
    greedy.write("\n")
    greedy.wait_output("mapped", timeout=60)
    assert greedy.out.split()[1:] == [str(spare), str(errno.EMFILE), "mapped"], greedy.out
    stats = lite.stats()
    assert (stats["handles"], stats["mmaps"]) == (opened, spare), stats
    assert lite.lite("read", "open", 0, 1, "-x", user="bob").ok
    assert vm.run([program_path("handles"), "map", str(lite.index), "open", "10"], user="bob").out == "10 0 mapped\n"
    greedy.close_stdin()
    greedy.wait(60, check=True)
    lite.lite("free", "open")
    lite.check_idle()
    stop_all([lite])


def _make_names(lite, user, count):
    """The user makes so many LMRs with names. Returns the errno of each, or "0"."""
    said = lite.vm.run([program_path("namerace"), "loose", "--prefix", user, "--count", str(count)], user=user,
                       timeout=120, env={"LITE_TEST_INDEXES": str(lite.index)}).out
    return [line.split()[1] for line in said.splitlines()]


@vmtest(nodes=1, cpus=2, timeout=200)
def test_names_of_a_directory(lab):
    """A node that has no memory left for users' LMRs is the directory of half of the names. A user's names take all
    that the user gets there. Names that have the other directory still work, and so do all names of another user."""
    vm, limit = lab.n1, 64 << 10
    stop_all(nodes_in(vm))
    home, directory = nodes_in(vm, 2)
    home.start(**times(vm))
    directory.start(**times(vm), mem_limit="1M", uid_limit=limit)
    join_all([home, directory])
    home.lite("alloc", "full", "980K", "--node", directory.id)
    refused = home.lite("alloc", "more", "4K", "--node", directory.id, check=False, user="bob")
    assert refused.rc == 1 and "that the node gives to LMRs is used up" in refused.err, refused
    before = directory.stats()
    made = _make_names(home, "alice", 200)
    full = directory.stats()
    counted, names = (full[what] - before[what] for what in ("counted_bytes", "names"))
    print(f"      {names} names, counted as {counted} bytes")
    assert set(made) == {"0", "EDQUOT"} and "0" in made[made.index("EDQUOT"):], made
    # One more would not fit.
    assert limit // 8 - 256 < counted <= limit // 8, counted
    assert set(_make_names(home, "bob", 20)) == {"0"}
    assert directory.stats()["names"] > full["names"], "the other node is the directory of all names of the second user"
    # LMRs with names outlive their makers. A node's kernel complains at its end if something is still charged.
    stop_all([home, directory])


def _work(vm, where):
    """{kind: microseconds that an operation of another user takes}. Each kind is measured for the same time, so that
    quick ones meet the others' work, too. Raises CommandFailed if an operation fails."""
    words = vm.run([program_path("greedy"), "work", *where, "150"], user="bob", timeout=60).out.split()
    return dict(zip(words[::2], map(float, words[1::2])))


def _take_turns(vm, where, taker, third):
    """([[_work() alone, beside the third user, beside the taker], ...], what a second thread finds of a processor)."""
    rounds, seconds = [], []
    for _ in range(9):
        took = []
        for stopped, going in ((taker, None), (None, third), (third, taker)):
            if stopped:
                stopped.kill(signal.SIGSTOP)
            if going:
                going.kill(signal.SIGCONT)
            took.append(_work(vm, where))
        rounds.append(took)
        taker.kill(signal.SIGSTOP)
        seconds.append(float(vm.run([program_path("greedy"), "spin", "100"]).out))
        taker.kill(signal.SIGCONT)
    return rounds, statistics.median(seconds)


def _slow_kinds(kernel, rounds):
    """The kinds of operations that take too long beside the taker."""
    slow = set()
    for kind in rounds[0][0]:
        quiet, ordinary, greedy = (statistics.fmean(took[kind] for took in side) for side in zip(*rounds))
        print(f"      {kind}: {quiet:.0f} us alone, {ordinary:.0f} us beside a third user, {greedy:.0f} us beside the taker")
        # On 6.12 kernel threads do Soft-RoCE's work, so all operations need two threads.
        two = kind == "call" or kernel.name == "6.12"
        if greedy > max(2 * quiet, 1.5 * ordinary if two else 0):
            slow.add(kind)
    return slow


@vmtest(nodes=1, cpus=2, mem_mb=768, alone=True, timeout=500)
def test_one_user_works_beside_another_who_takes_all(lab):
    """A user at all its limits goes on asking. Another user gets no errors, and its operations take at most twice as
    long as alone. Its calls take at most half as long again as beside a third user that works like it: they need two
    threads, so they take three times as long beside anything that keeps one of the two processors busy."""
    vm = lab.n1
    stop_all(nodes_in(vm))
    lites = in_one_machine(vm, 2, uid_limit="8M")
    where = ["0", "1", str(lites[1].id)]
    # Claims are larger and slower on debug kernels.
    most = 5000 if lab.kernel.is_debug else 1 << 20
    taker = vm.spawn([program_path("greedy"), "take", *where, str(most)], user="alice")
    taker.wait_output("LMRs\n", timeout=200)
    print("     ", taker.out.strip())
    locks, refused = re.search(r"(\d+) locks \((\w+)\)", taker.out).groups()
    assert refused == ("0" if lab.kernel.is_debug else "EDQUOT"), taker.out
    third = vm.spawn(f"while {program_path('greedy')} work {' '.join(where)} 150; do :; done", user="carol")
    third.wait_output("lmr", timeout=60)
    third.kill(signal.SIGSTOP)
    tries, second = [], 1
    # One operation during which the host stands still makes a kind slow, but hardly the same in two of three tries.
    while second >= 0.5 and twice_in(tries) is None:
        rounds, second = _take_turns(vm, where, taker, third)
        tries.append(_slow_kinds(lab.kernel, rounds))
        print(f"      a second thread finds {second:.2f} of a processor")
    assert taker.running and third.running, (taker.out, third.out)
    assert lites[0].stats()["locks"] >= int(locks), "the taker has lost locks"
    taker.kill()
    third.kill()
    wait_until("all locks are released", lambda: not lites[0].stats()["locks"], 100, vm.time_scale)
    slow = tries[-1] if second < 0.5 else twice_in(tries)
    # 0.7 to 0.8 if nothing else runs on the host.
    if slow and second < 0.5:
        lab.skip(f"the host is busy: {slow}")
    assert not slow, slow
    stop_all(lites)


@vmtest(nodes=3, timeout=200)
def test_one_users_slow_calls_leave_room_for_others(lab):
    """A user's claims on names wait for a silent member. The home serves another user of the same node meanwhile."""
    lites = on_machines(lab, dead=600000 * lab.n1.time_scale)
    here, home, silent = lites
    here.lite("alloc", "changed", "4K", "--node", home.id, user="bob")
    silent.vm.pause()
    claims = []
    try:
        for number in range(6):
            claims.append(lab.n1.spawn(["lite", "alloc", f"slow{number}", "4K", "--node", str(home.id)], user="alice"))
        waiting = "grep -ls ' lite_' $(pidof lite | sed 's,[0-9]*,/proc/&/stack,g') | wc -l"
        wait_until("claims wait", lambda: int(lab.n1.run(waiting).out) == len(claims), 20, lab.n1.time_scale)
        for mode in ("0640", "0600", "0644", "0600", "0640"):
            here.lite("chmod", mode, "changed", user="bob", timeout=60)
        ended = [claim for claim in claims if not claim.running]
        assert not ended, [(claim.out, claim.err) for claim in ended]
    finally:
        silent.vm.resume()
    wait_complete(lites)
    for number, claim in enumerate(claims):
        claim.wait(100, check=True)
        here.lite("free", f"slow{number}")
    here.lite("free", "changed")
    for lite in lites:
        lite.check_idle()
    stop_all(lites)


@vmtest(nodes=1, cpus=2, timeout=100)
def test_memory_that_comes_back_is_its_containers(lab):
    """A process allocates memory at another node, which takes a part of it from the process's own node. That part is
    charged to the process's memory cgroup."""
    vm = lab.n1
    lites = in_one_machine(vm, 2)
    here, there = lites
    vm.run("mkdir -p /tmp/cgroup; mount -t cgroup2 none /tmp/cgroup; echo +memory >/tmp/cgroup/cgroup.subtree_control; "
           "mkdir -p /tmp/cgroup/box")
    box = "/tmp/cgroup/box"

    def inside(words, limit):
        vm.run(f"echo {limit} >{box}/memory.max")
        return vm.run(f"echo $$ >{box}/cgroup.procs; exec lite {words}", check=False)

    try:
        refused = inside(f"alloc contained 48M --node {there.id},{here.id}", "16M")
        assert refused.rc == 1 and "ut of memory" in refused.err, refused
        made = inside(f"alloc contained 48M --node {there.id},{here.id}", "64M")
        assert made.ok, made
        charged = int(vm.read(f"{box}/memory.current"))
        assert 24 << 20 <= charged < 48 << 20, charged
        here.lite("resize", "contained", "30M")
        refused = inside("resize contained 80M", "16M")
        assert refused.rc == 1 and "ut of memory" in refused.err, refused
        here.lite("free", "contained")
        for lite in lites:
            lite.check_idle()
    finally:
        vm.run(f"rmdir {box}; umount /tmp/cgroup", check=False)


@vmtest(nodes=3, timeout=200)
def test_memory_of_who_was_killed_is_its_containers(lab):
    """A process that asks a home for memory is killed while the home waits for a member. Then the home takes a part of
    the memory from the process's node. That part is charged to the process's memory cgroup."""
    here, home, silent = lites = on_machines(lab, dead=600000 * lab.n1.time_scale)
    vm, box = lab.n1, "/tmp/cgroup/box"
    vm.run("mkdir -p /tmp/cgroup; mount -t cgroup2 none /tmp/cgroup; echo +memory >/tmp/cgroup/cgroup.subtree_control; "
           f"mkdir -p {box}")
    try:
        silent.vm.pause()
        try:
            asking = vm.spawn(["sh", "-c", f"echo $$ >{box}/cgroup.procs; "
                               f"exec lite alloc orphaned 48M --node {home.id},{here.id} --mode 0666"])
            wait_until("the home has begun", lambda: home.stats()["counted_bytes"], 20, vm.time_scale)
            asking.kill(9)
            asking.wait(20)
            assert int(vm.read(f"{box}/memory.current")) < 8 << 20
        finally:
            silent.vm.resume()
        wait_until("it is made", lambda: "orphaned" in here.names(), 60, vm.time_scale)
        charged = int(vm.read(f"{box}/memory.current"))
        assert 24 << 20 <= charged < 48 << 20, charged
        wait_complete(lites)
        here.lite("free", "orphaned")
        for lite in lites:
            lite.check_idle()
    finally:
        vm.run(f"rmdir {box}; umount /tmp/cgroup", check=False)
    stop_all(lites)
