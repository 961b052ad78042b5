# SPDX-License-Identifier: MIT
"""Unpinned LMRs: memory of processes that registering neither pins nor brings in."""

import contextlib
import re

from litelab import in_one_machine, nodes_in, on_machines, patient, prepare_all, program_path, stop_all, times, wait_until
from vmlab.testing import vmtest

setup = prepare_all
_GAUGES = ("chunks",)
# A second NUMA node, to migrate pages to; and memfd_secret(2).
_WAYS = ("numa=fake=2", "secretmem.enable=1")
_HUNG = "/proc/sys/kernel/hung_task_timeout_secs"


def _unpinned(node, *words, **options):
    return node.vm.run([program_path("unpinned"), *(str(word) for word in words)], **options)


def _check_idle(lites):
    for lite in lites:
        lite.check_idle()
        wait_until("no chunks", lambda lite=lite: not any(lite.stats().get(name, 0) for name in _GAUGES))


def _at_work(lab):
    """Nodes for operations that find their memory gone again and again. Without progress they fail after a time-out."""
    return in_one_machine(lab.n1, unpinned=True, **patient(lab.n1))


@contextlib.contextmanager
def _box(vm, kind="domain"):
    """Yields the directory of a cgroup that gets a thousandth of a processor until the end of the context."""
    box = "/tmp/cgroup/box"
    vm.run("mkdir -p /tmp/cgroup; mount -t cgroup2 none /tmp/cgroup; echo +cpu >/tmp/cgroup/cgroup.subtree_control; "
           f"mkdir {box}; [ {kind} = domain ] || echo {kind} >{box}/cgroup.type; echo 1000 1000000 >{box}/cpu.max")
    try:
        yield box
    finally:
        vm.run(f"echo max >{box}/cpu.max")


def _let_wait(vm):
    """Lets workers wait for long for threads in the box, without a complaint. Returns what _end_box() restores."""
    return vm.run(f"cat {_HUNG}; echo 0 >{_HUNG}").out.strip()


def _end_box(vm, hung=None):
    vm.run("rmdir /tmp/cgroup/box; umount /tmp/cgroup")
    if hung:
        vm.run(f"echo {hung} >{_HUNG}")


@vmtest(nodes=1, cpus=2, mem_mb=768, swap_mb=256, kernel_args=_WAYS, timeout=300)
def test_each_way_to_change_memory(lab):
    """After each event another node sees what the process sees, or gets EFAULT."""
    lites = _at_work(lab)
    # The owner's own node is a mapper like any other.
    for user in (1, 0):
        out = _unpinned(lites[0], "ways", 0, user, timeout=250).out
        print(out)
        assert re.findall("^skipped: (.*)$", out, re.M) == (["no second NUMA node"] if lab.kernel.is_debug else []), out
    _check_idle(lites)


@vmtest(nodes=1, cpus=2, mem_mb=768, swap_mb=256)
def test_memory_of_the_library(lab):
    """lite_alloc() with LITE_ALLOC_UNPINNED: contents, refusals, a child, and the ends of handles, LMRs and contexts."""
    lites = in_one_machine(lab.n1, unpinned=True)
    print(_unpinned(lites[0], "alloc", 0, 1).out)
    _check_idle(lites)


@vmtest(nodes=1, cpus=2, mem_mb=768, timeout=900)
def test_all_operations(lab):
    """Each operation, one by one, in vectors, by io_uring, and with files, on chunks that the process has just thrown away,
    from another node and from its own, with leases, too. Each misses the chunks that it wants, and does what it does on any
    LMR. On memory that the process does not have, or only to read, it fails with EFAULT."""
    lites = _at_work(lab)
    rounds = max(1, int(lab.scale(6, 2) * lab.part))
    for user, env in ((1, {}), (0, {}), (1, {"LEASED": "1"})):
        before = lites[0].stats()["chunk_faults"]
        out = _unpinned(lites[0], "operations", 0, user, 2, rounds, lab.rng.getrandbits(31), env=env, timeout=290).out
        print(out)
        missing, = re.findall(r"^(\d+) chunks were missing$", out, re.M)
        assert 0 < int(missing) <= lites[0].stats()["chunk_faults"] - before, out
        _check_idle(lites)


@vmtest(nodes=1, cpus=2, mem_mb=768, timeout=400)
def test_operations_beside_changes(lab):
    """Vectors and memory operations at random, of users on three nodes, while the process throws chunks away: all bytes are
    right. Small operations go in messages, too."""
    lites = _at_work(lab)
    first, second, third = lites
    part, each = 512 << 10, 50
    owner = lab.n1.spawn([program_path("unpinned"), "shake", "0", "shaken", "2", str(10_000 * lab.n1.time_scale)])
    owner.wait_output("ready")
    first.lite("alloc", "plain", 4 * part, "--node", third.id)
    packed = second.stats()["packed"]
    # Together they use all chunks. What the second node packs is for this LMR only.
    plan = (("vectors", second, ["shaken"]), ("vectors", first, ["shaken", "plain"]),
            ("memops", second, ["shaken", "plain"]), ("memops", third, ["plain", "shaken"]))
    users = [lab.n1.spawn([program_path(program), "--index", str(lite.index), "churn", *names, "--offset", str(i * part),
                           "--length", str(part), "--count", "1", "--seed", str(lab.rng.getrandbits(31))])
             for i, (program, lite, names) in enumerate(plan)]

    def writes():
        return sum(lite.stats()["writes"] for lite in (first, second))

    def run_until(what, condition):
        wait_until(what, lambda: condition() or not all(user.running for user in users), 60, lab.n1.time_scale)
        assert all(user.running for user in users), [user.err for user in users]

    for user in users:
        user.wait_output("running", timeout=60)
    run_until("messages go", lambda: second.stats()["packed"] > packed)
    for i in range(1, lab.scale(24 * lab.part, 4) + 1):
        owner.write(f"{each}\n")
        owner.wait_output(f"shaken {i * each}\n", timeout=60)
        # Let users get on: after some seconds without progress operations would fail (ETIMEDOUT).
        done = writes()
        run_until("writes go on", lambda done=done: writes() > done)
    for user in users:
        user.close_stdin()
        user.wait(120, check=True)
    # What another node sees is what the users of vectors have written.
    for i, (_, _, names) in enumerate(plan[:2]):
        for name, crc in zip(names, users[i].out.split()[1:], strict=True):
            seen = third.lite("checksum", name, i * part, part, timeout=60).out.split()[-1]
            assert int(seen, 16) == int(crc, 16), (name, i, seen, crc)
    third.lite("free", "plain")
    owner.close_stdin()
    owner.wait(check=True)
    _check_idle(lites)


def _flood(lab, events, timeout):
    lites = _at_work(lab)
    out = _unpinned(lites[0], "flood", 0, 1, events, 3, lab.rng.getrandbits(31), timeout=timeout).out
    print(out)
    seen = {what: int(n) for n, what in re.findall(r"^(\d+) (.*)$", out, re.M)}
    assert seen["events"] == events and seen["forks"] and seen["pages swapped out"], seen
    # There are no NUMA nodes on debug kernels.
    assert seen["pages migrated"] or lab.kernel.is_debug, seen
    assert seen["pages freed lazily"] and seen["huge pages made"], seen
    _check_idle(lites)


@vmtest(nodes=1, cpus=2, mem_mb=768, swap_mb=256, kernel_args=_WAYS, timeout=400)
def test_flood_of_events(lab):
    """No canary in a page that the process has given up is read or damaged, nor a child's memory."""
    _flood(lab, lab.scale(3000 * lab.part), 350)


@vmtest(nodes=1, cpus=2, mem_mb=768, swap_mb=256, kernel_args=_WAYS, slow=True, timeout=7200)
def test_flood_of_events_for_long(lab):
    """The same, a million times."""
    _flood(lab, lab.scale(1_000_000, always=True), 7000)


@vmtest(nodes=1, cpus=2, mem_mb=768, timeout=300)
def test_owner_ends_in_every_way(lab):
    """The owner is killed, ends, calls execve(2) or unmaps the memory while another node writes, which learns it."""
    lites = _at_work(lab)
    for way in ("kill", "end", "exec", "unmap"):
        owner = lab.n1.spawn([program_path("unpinned"), "hold", "0", "held", "8"])
        owner.wait_output("ready")
        user = lab.n1.spawn([program_path("unpinned"), "use", "1", "held"])
        user.wait_output("using")
        if way == "kill":
            owner.kill(9)
        elif way == "end":
            owner.close_stdin()
        else:
            owner.write(f"{way}\n")
        if way == "unmap":
            # The writer fills the new memory in its place.
            owner.wait_output("unmap ")
            owner.kill(9)
        user.wait(check=True)
        assert re.search(r"^(14|43) ", user.out, re.M), (way, user.out)
        owner.kill(9)
        owner.wait()
        _check_idle(lites)


@vmtest(timeout=240)
def test_stopped_user(lab):
    """A machine that stands still in a write delays munmap() only until it is fenced, and later damages nothing."""
    here, there = on_machines(lab, unpinned=True)
    owner = here.vm.spawn([program_path("unpinned"), "hold", "0", "held", "8"])
    owner.wait_output("ready")
    user = there.vm.spawn([program_path("unpinned"), "use", "0", "held"])
    user.wait_output("using")
    there.vm.pause()
    owner.write("unmap\n")
    owner.wait_output(" KB\n", timeout=40)
    # The time-out of an operation and 5 s, on a host that may be busy. Mostly silence ends the session before that.
    bound = (times(here.vm)["op_timeout"] / 1000 + 5 * here.vm.time_scale) * here.vm.patience / here.vm.time_scale
    took = int(re.search(r"^unmap (\d+) us", owner.out, re.M)[1]) / 1e6
    assert took <= bound, f"munmap has waited {took:.1f} s for a node that stands still, and not {bound:g} s at most"
    print(f"      munmap took {took:.1f} s")
    owner.write("canaries\n")
    owner.wait_output("canaries ")
    here.wait_states({here.id: "up", there.id: "down"})
    # The handle would lead the user to the new memory, so it has to end. The user still has the old addresses.
    here.lite("free", "held")
    there.vm.resume()
    user.wait(60, check=True)
    assert re.search(r"^(5|43|110|112) ", user.out, re.M), user.out
    owner.write("look\n")
    owner.wait_output("look ")
    owner.close_stdin()
    owner.wait()
    print(owner.out)


@vmtest(nodes=1, cpus=2, mem_mb=1024, swap_mb=3072, fresh=True, slow=True, timeout=3600)
def test_more_than_memory(lab):
    """An LMR of three times the machine's memory is mostly swapped out. ibv_reg_mr of so much kills its process."""
    lites = in_one_machine(lab.n1, unpinned=True)
    owner = lab.n1.spawn([program_path("unpinned"), "hold", "0", "large", "3072"])
    owner.wait_output("ready")
    with lab.cluster.expecting("invoked oom-killer|Out of memory:"):
        pinning = _unpinned(lites[0], "native", 3072, check=False, timeout=300)
    print(pinning)
    assert not pinning.ok and "good" not in pinning.out, pinning
    print(_unpinned(lites[1], "fill", 1, "large", 3072, timeout=3500).out)
    owner.write("resident\n")
    owner.close_stdin()
    owner.wait()
    print(owner.out, {name: value for name, value in lites[0].stats().items() if name.startswith("chunk")})
    _check_idle(lites)


@vmtest(nodes=1, cpus=2, mem_mb=1536, timeout=200)
def test_idle_memory(lab):
    """If a hundredth of 1 GB is used, in pieces that are not too small, at most 15 % is held; pinned, it would be all.
    The rest of a chunk is brought in, or of a huge page if the kernel makes one. With --thorough it prints what smaller
    pieces take."""
    lites = in_one_machine(lab.n1, unpinned=True)
    huge = "/sys/kernel/mm/transparent_hugepage/enabled"
    had = re.search(r"\[(\w+)\]", lab.n1.read(huge))[1]
    for pages, least in (("always", 256), ("madvise", 64)):
        lab.n1.run(f"echo {pages} >{huge}")
        for kb in (1024, 256, 64, 4):
            if kb < least and lab.part < 1:
                continue
            owner = lab.n1.spawn([program_path("unpinned"), "hold", "0", "idle", "1024"])
            owner.wait_output("ready")
            _unpinned(lites[1], "sparse", 1, "idle", kb, timeout=100)
            owner.write("resident\n")
            owner.close_stdin()
            owner.wait(check=True)
            held = int(re.search(r"(\d+) KB\s*$", owner.out)[1]) / (1 << 20)
            print(f"      huge pages {pages}, 1 % in pieces of {kb} KB: {held:.1%} held")
            assert held <= 0.15 or kb < least, owner.out
    lab.n1.run(f"echo {had} >{huge}")
    _check_idle(lites)


@vmtest(nodes=1, cpus=2, mem_mb=768, swap_mb=256, timeout=200)
def test_registering_costs_nothing(lab):
    """Registering touches and pins no page, so much more than the machine's memory can be registered."""
    lites = in_one_machine(lab.n1, unpinned=True)
    out = _unpinned(lites[0], "costs", 0, 1, 128, timeout=150).out
    print(out)
    found = re.findall(r"unpinned (\d+) us, (-?\d+) KB", out)
    assert len(found) == 2 and all(int(resident) < 64 for _, resident in found), out
    held = {name: int(kb) for name, kb in re.findall(r"^(\S+(?: \S+)?) +make \d+ us, held (-?\d+) KB", out, re.M)}
    assert len(held) == 6 and held["unpinned"] < 4096 and min(held["allocated"], held["registered"]) > 32000, held
    # Verbs touch all of it. One of the two times may be that of a busy host.
    assert min(int(us) for us, _ in found) * 100 < int(re.search(r"ibv_reg_mr (\d+) us", out)[1]), out
    _check_idle(lites)


@vmtest(nodes=1, mem_mb=768, kernels=("6.1",), fresh=True, icount=True)
def test_what_writes_cost(lab):
    """Instructions (on a machine that counts them instead of time) of a write: hardly more than with pinned memory if
    no page has to be brought in; a minor fault takes less than three calls."""
    lites = in_one_machine(lab.n1, 2, unpinned=True)
    out = _unpinned(lites[0], "writes", 0, 1, timeout=100).out
    print(out)
    pinned, hit, fault, call = (float(us) for us in re.findall(r"([\d.]+) us", out))
    assert hit <= 1.05 * pinned, out
    assert fault <= 2.6 * call, out
    _check_idle(lites)


@vmtest(nodes=1, cpus=2, mem_mb=768)
def test_rights_taken_away(lab):
    """When rights have been taken away no chunk is left, so requests that other nodes execute late find none."""
    lites = in_one_machine(lab.n1, unpinned=True)
    owner = lab.n1.spawn([program_path("unpinned"), "hold", "0", "held", "2"])
    owner.wait_output("ready")
    # Chunks stay as long as a handle does.
    holder = lites[1].spawn("hold", "held")
    holder.wait_output("running")
    lites[1].vm.run([program_path("unpinned"), "fill", "1", "held", "2"])
    assert lites[0].stats()["chunks"]
    lites[0].lite("chmod", "0644", "held")
    assert not lites[0].stats()["chunks"]
    assert not lites[1].vm.run(f"echo x | lite -i {lites[1].index} write held 0", user="alice", check=False).ok
    lites[1].vm.run([program_path("unpinned"), "fill", "1", "held", "2"])
    holder.kill()
    owner.close_stdin()
    owner.wait(check=True)
    _check_idle(lites)


@vmtest(nodes=1, cpus=2, mem_mb=768, timeout=200)
def test_what_is_refused(lab):
    """By default nothing is unpinned. No page may be in several LMRs: the kernel would wait for one after the other."""
    stop_all(nodes_in(lab.n1))
    lites = in_one_machine(lab.n1)
    assert not lites[0].status()["unpinned"]
    out = _unpinned(lites[0], "hold", 0, "held", 1, check=False)
    assert not out.ok and "not supported" in out.out, out.out
    stop_all(lites)
    lites = in_one_machine(lab.n1, unpinned=True)
    assert lites[0].status()["unpinned"]
    print(_unpinned(lites[0], "limits", 0, timeout=100).out)
    _check_idle(lites)


@vmtest(nodes=1, cpus=2, mem_mb=768, timeout=300)
def test_owners_node_ends(lab):
    """The home leaves or stops while others use chunks, and it registers memory: nothing hangs, and nothing is left."""
    for way in ("leave", "stop"):
        lites = in_one_machine(lab.n1, unpinned=True)
        owner = lab.n1.spawn([program_path("unpinned"), "hold", "0", "held", "8"])
        owner.wait_output("ready")
        users = [lab.n1.spawn([program_path("unpinned"), "use", str(index), "held"]) for index in (0, 1, 2)]
        for user in users:
            user.wait_output("using")
        churn = lab.n1.spawn([program_path("unpinned"), "churn", "0"])
        churn.wait_output("churning")
        getattr(lites[0], way)()
        for user in users:
            user.wait(check=True)
        churn.kill(9)
        churn.wait()
        # The owner still has its memory, and can unmap it.
        owner.write("unmap\n")
        owner.wait_output("unmap ")
        owner.close_stdin()
        owner.wait()
        for lite in lites[way == "stop":]:
            wait_until("no chunks", lambda lite=lite: not lite.stats().get("chunks", 0))
        stop_all(lites)


@vmtest(nodes=1, cpus=2, mem_mb=768, timeout=300, kernels=("6.1", "6.12"))
def test_others_beside_a_process_that_always_changes_its_memory(lab):
    """At least one of its threads, which get no processor time, is in a madvise(2), so the notifiers of its LMRs cannot
    be removed. That holds up neither FREE, nor unpinned LMRs of another user, nor the end of the node."""
    lites = in_one_machine(lab.n1, unpinned=True)
    hung = _let_wait(lab.n1)
    with _box(lab.n1, "threaded") as box:
        restless = lab.n1.spawn([program_path("unpinned"), "restless", "0"], user="alice")
        restless.wait_output("ready", timeout=60)
        for thread in re.findall(r"^thread (\d+)$", restless.out, re.M):
            lab.n1.run(f"echo {thread} >{box}/cgroup.threads")
        restless.write("\n")
        restless.wait_output("restless")
        restless.write("\n")
        restless.wait_output("freed")
        lites[0].lite("alloc", "one", "4K", user="bob")
        lites[0].lite("free", "one", user="bob")
        holder = lab.n1.spawn([program_path("unpinned"), "hold", "0", "held", "1"], user="bob")
        holder.wait_output("ready")
        print(_unpinned(lites[1], "fill", 1, "held", 1, user="bob").out)
        holder.close_stdin()
        holder.wait(check=True)
        _check_idle(lites)
        stop_all(lites)
        assert restless.running, restless.out
    restless.write("\n")
    restless.wait(check=True)
    _end_box(lab.n1, hung)


@vmtest(nodes=1, cpus=2, mem_mb=768, timeout=300, kernels=("6.1", "6.12"))
def test_others_beside_a_thread_that_punches_holes(lab):
    """The thread has next to no processor time. Processes that fault there wait for it, can be killed, and hold up
    neither other users nor the end of the node."""
    lites = in_one_machine(lab.n1, 2, unpinned=True)
    with _box(lab.n1, "threaded") as box:
        owner = lab.n1.spawn([program_path("unpinned"), "punched", "0", "punched"], user="alice")
        owner.wait_output("ready", timeout=60)
        # More than there are workers for the home's own threads, and slots between the nodes.
        using = [lab.n1.spawn([program_path("unpinned"), "use", str(index), "punched"], user="alice")
                 for index in (0, 0, 0, 0, 1, 1)]
        for user in using:
            user.wait_output("using", timeout=60)
        threads = " ".join(re.findall(r"^(?:worker|thread) (\d+)$", owner.out, re.M))
        lab.n1.run(f"for thread in {threads}; do echo $thread >{box}/cgroup.threads; done")
        owner.write("\n")
        owner.wait_output("punching", timeout=60)
        for node in (0, 1):
            holder = lab.n1.spawn([program_path("unpinned"), "hold", "0", "held", "1"], user="bob")
            holder.wait_output("ready")
            print(_unpinned(lites[node], "fill", node, "held", 1, user="bob").out)
            holder.close_stdin()
            holder.wait(check=True)
            lites[node].lite("alloc", "one", "4K", "--node", lites[1 - node].id, user="bob")
            lites[node].lite("free", "one", user="bob")
        for user in (using.pop(0), using.pop()):
            user.kill(9)
            user.wait(20)
        stop_all(lites)
        for user in using:
            user.wait()
        assert owner.running, owner.out
    owner.write("\n")
    owner.wait(check=True)
    _end_box(lab.n1)


@vmtest(mem_mb=512, timeout=300, kernels=("6.1", "6.12"))
def test_others_beside_a_thread_that_has_begun_to_take_pages(lab):
    """The thread has next to no processor time when the mappers have let go. Neither threads that take other pages
    there nor the end of the node wait for it."""
    # So that the mapper can be silent for long.
    long = 100_000 * lab.n1.time_scale
    here, there = on_machines(lab, unpinned=True, dead=long, op_timeout=long)
    owner = here.vm.spawn([program_path("unpinned"), "starved", str(here.index), "starved", "64"])
    owner.wait_output("ready")
    # Chunks stay as long as a handle does.
    holder = there.spawn("hold", "starved")
    holder.wait_output("running")
    _unpinned(there, "touch", there.index, "starved")
    assert here.stats()["chunks"] >= 256
    hung = _let_wait(here.vm)
    taker, = re.findall(r"^worker (\d+)$", owner.out, re.M)
    others = re.findall(r"^thread (\d+)$", owner.out, re.M)
    with _box(here.vm, "threaded") as box:
        here.vm.run(f"for thread in {' '.join(others)}; do echo $thread >{box}/cgroup.threads; done")
        there.vm.pause()
        owner.write("\n")
        wait_until("a wait for the mapper", lambda: ") D " in here.vm.run(f"cat /proc/{taker}/stat").out)
        here.vm.run(f"echo {taker} >{box}/cgroup.threads")
        owner.write("\n")
        owner.wait_output("busy")
        there.vm.resume()
        owner.write("\n")
        owner.wait_output("taken", timeout=30)
        stop_all([here])
    owner.write("\n")
    owner.wait(check=True)
    _end_box(here.vm, hung)
    holder.kill()
    holder.wait()
