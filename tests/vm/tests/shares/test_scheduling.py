# SPDX-License-Identifier: MIT
"""Threads that seldom or never get a processor do not stop others."""

import collections
import contextlib
import re
import statistics
import time

from litelab import (in_one_machine, on_machines, passing, patient, prepare_all, probed, program_path, run_program, serve,
                     stop_all, times, twice_in, wait_until)
from vmlab.testing import vmtest

setup = prepare_all

# Restores the time that the kernel reserves for ordinary threads, which the test program takes away.
_SHARE = "echo 950000 > /proc/sys/kernel/sched_rt_runtime_us"


@vmtest(nodes=1, cpus=2, timeout=200)
def test_a_node_stops_beside_a_real_time_thread(lab):
    """The real-time thread never leaves its processor: see lite_cq_barrier()."""
    lites = in_one_machine(lab.n1, 2)
    hog = lab.n1.spawn([program_path("starved"), "occupy", "1"])
    try:
        hog.wait_output("ready")
        stop_all(lites)
        assert hog.running, "the thread that occupies a processor has gone"
    finally:
        hog.kill()
        lab.n1.run(_SHARE)


@vmtest(nodes=1, cpus=2, kernels=("6.1", "6.12"), kernel_args=("preempt=full",), timeout=300)
def test_messages_wait_for_no_thread_without_a_processor(lab):
    """A thread that has polled other threads' completions handles them before it loses its processor."""
    lites = in_one_machine(lab.n1, 2)
    try:
        run_program(lab, lites, "starved", "receive", 0, 1, lites[1].id, timeout=200)
    finally:
        lab.n1.run(_SHARE)
    stop_all(lites)


@contextlib.contextmanager
def _box(vm, cpu_max=None):
    """Yields the directory of a cgroup, maybe with a limit of processor time (which debug kernels do not have)."""
    box = "/tmp/cgroup/box"
    vm.run("mkdir -p /tmp/cgroup; mount -t cgroup2 none /tmp/cgroup; echo +cpu >/tmp/cgroup/cgroup.subtree_control; "
           f"mkdir -p {box}")
    try:
        # It may be an old one, which cannot be removed before all killed threads are gone.
        vm.run(f"echo {cpu_max or 'max'} >{box}/cpu.max")
        yield box
    finally:
        vm.run(f"rmdir {box}; umount /tmp/cgroup", check=False)


# For programs with threads that have next to no processor time, which wait for each other for a quarter of this.
_PATIENT = {"LITE_TEST_TIMEOUT": "400"}


@contextlib.contextmanager
def _sessions_last(lites):
    """Checks that no session ends within the context."""
    before = [lite.broken() for lite in lites]
    began = time.monotonic()
    yield
    print(f"      freed in {time.monotonic() - began:.2f} s")
    assert [lite.broken() for lite in lites] == before


def _throng(vm, words):
    """Starts a throng that works by itself."""
    return vm.spawn([program_path("throng"), *words], env=_PATIENT)


def _end_throng(throng):
    """Ends a throng that works by itself; it must not have failed."""
    assert throng.running, throng.out + throng.err
    throng.write("\n")
    throng.wait(100, check=True)


# Microseconds that the throng's cgroup gets in each period. A thread that has used them up waits for the next one.
_QUOTA, _PERIOD = 1000, 1000000
_FLUSH = 2  # LITE_FLUSH_TIMEOUT, in seconds: a fence waits so long for what the device does not flush


def _echo(lite):
    """Starts a server of a function that all users may call. The other node's ring has room for four of its longest
    replies, the last one for a user that has no other call there."""
    return serve(lite, "echo", "-e", "-m", "0666", "-l", "128K", "-r", "256K")


def _work_beside(lab, mode, cpu_max=None):
    """One user works beside threads of another that get next to no processor time, and hold requests and replies. Calls
    of what these serve time out; no session ends, and nothing else waits for these threads."""
    scale = lab.n1.time_scale
    tries = []
    # A host that stands still now and then may make some slow, but hardly the same in two of three tries.
    while twice_in(tries) is None:
        # So long that moments in which the host stands still end no session.
        here, there = lites = in_one_machine(lab.n1, 2, dead=60000 * scale, op_timeout=8000 * scale)
        broken, cancels = [lite.broken() for lite in lites], there.stats()["rpc_cancels"]
        servers = [_echo(lite) for lite in lites]
        with _box(lab.n1, cpu_max) as box:
            # Beside other cgroups it gets little.
            lab.n1.run(f"echo 1 >{box}/cpu.weight")
            said = run_program(lab, lites, "throng", mode, here.index, there.id, box, 40, lab.scale(30, 5),
                               there.index, here.id, timeout=250, case_timeout=400)
        print(f"      median ms: {', '.join(said.out.splitlines())}")
        took = dict(line.split() for line in said.out.splitlines())
        assert took, said
        tries.append({what for what, ms in took.items() if float(ms) > _PERIOD / 1000 / 3})
        assert [lite.broken() for lite in lites] == broken
        assert there.stats()["rpc_cancels"] > cancels
        for server in servers:
            server.kill()
            server.wait(30)
        # Named LMRs outlive their processes, which were killed.
        for name in here.names():
            here.lite("free", name, timeout=60)
        for lite in lites:
            lite.check_idle()
        # The next try takes the same names.
        stop_all(lites)
    assert not twice_in(tries), tries


@vmtest(nodes=1, cpus=2, timeout=300, kernels=("6.1", "6.12"))
def test_one_user_works_beside_anothers_throttled_threads(lab):
    """Threads are in the middle of calls and atomics, in line or at work, when their processor time is used up, so each
    of their operations takes seconds."""
    _work_beside(lab, "throttled", f"{_QUOTA} {_PERIOD}")


@vmtest(nodes=1, cpus=2, timeout=300, kernels=("6.1", "6.12"))
def test_one_user_works_beside_anothers_idle_threads(lab):
    """The same for threads of the policy SCHED_IDLE, beside some that compute."""
    _work_beside(lab, "idle")


@vmtest(nodes=1, cpus=2, timeout=300, kernels=("6.1", "6.12"))
def test_one_user_passes_a_crowd_of_another(lab):
    """A user with one thread waits for its turn, not until all threads of another user had theirs."""
    here, there = lites = in_one_machine(lab.n1, 2)
    threads, rounds, look, grants = 200, lab.scale(30, 10), 38, 41  # enum lite_call
    with _box(lab.n1) as box, passing(lab.n1, f"call={look} err=0", f"call={grants} err=0") as passed:
        run_program(lab, lites, "throng", "crowd", here.index, there.id, box, threads, rounds, timeout=250)
    # In order of arrival all of them would pass.
    assert len(passed) >= rounds and statistics.median(passed) <= threads // 4, passed
    stop_all(lites)


def _fences_of_cuts(lab, here, count):
    """Ends the session of two machines `count` times, until the next begins; returns the seconds of each fence."""
    tracing = "/sys/kernel/tracing"
    lab.n1.run(f"[ -e {tracing}/trace ] || mount -t tracefs none {tracing}; cd {tracing}; "
               "echo >trace; echo 1 >events/lite/lite_conn/enable")
    for _ in range(count):
        before = here.broken()
        lab.n2.cut()
        try:
            wait_until("the session ends", lambda before=before: here.broken() > before, 60, lab.n1.time_scale)
        finally:
            lab.n2.cut(False)
        # Waits for the next session.
        here.lite("write", "one", "0", "x", timeout=60)
    trace = lab.n1.run(f"cd {tracing}; echo 0 >events/lite/lite_conn/enable; cat trace").out
    at = {(session, state): float(seconds) for seconds, session, state in
          re.findall(r" ([0-9.]+): lite_conn: session=(\d+) .* state=(dead|fenced)", trace)}
    return [fenced - at[session, "dead"] for (session, state), fenced in at.items()
            if state == "fenced" and (session, "dead") in at]


@vmtest(nodes=2, timeout=400, kernels=("6.1", "6.12"))
def test_sessions_end_beside_throttled_threads(lab):
    """Threads are in the middle of calls, atomics and locks when the session ends: in line, at work, or done but not
    yet awake. The session is made anew each time, no lock fails, and nothing is left when they are gone."""
    scale = lab.n1.time_scale
    here, there = lites = on_machines(lab, dead=60000 * scale, op_timeout=2000 * scale)
    here.lite("alloc", "one", "4K", "--node", there.id)
    server = _echo(there)
    with _box(lab.n1, f"{10 * _QUOTA} {_PERIOD}") as box:
        throng = _throng(lab.n1, ["restless", str(here.index), str(there.id), box, "64", "0"])
        throng.wait_output("ready", timeout=100)
        _fences_of_cuts(lab, here, lab.scale(8, 4))
        assert throng.running, throng.out + throng.err
        _end_throng(throng)
    server.kill()
    server.wait(30)
    here.lite("free", "one")
    for lite in lites:
        lite.check_idle()
    stop_all(lites)


@vmtest(nodes=1, cpus=2, timeout=400, kernels=("6.1", "6.12"))
def test_an_lmr_is_freed_beside_throttled_threads(lab):
    """Threads are in the middle of all kinds of operations on the LMR, and each needs seconds to notice the end of one.
    The home does not wait for that, and ends no session."""
    scale = lab.n1.time_scale
    here, there = lites = in_one_machine(lab.n1, 2, op_timeout=2000 * scale)
    there.lite("alloc", "held", "256K", "--mode", "0666")
    with _box(lab.n1, f"{_QUOTA} {_PERIOD}") as box:
        throng = _throng(lab.n1, ["held", str(here.index), str(there.id), box, "110", "held"])
        throng.wait_output("ready", timeout=100)
        with _sessions_last(lites):
            there.lite("free", "held", timeout=60)
        _end_throng(throng)
    for lite in lites:
        lite.check_idle()
    stop_all(lites)


def _locks(lite, *words, user):
    return lite.vm.spawn([program_path("locks"), "--index", str(lite.index), *(str(word) for word in words)], user=user)


# A user may have so many locks; it takes tens of milliseconds to look at all of them.
_MANY = 12000


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=300, kernels=("6.1", "6.12"))
def test_locks_are_cut_off_by_a_throttled_thread(lab):
    """The thread cuts an LMR where many locks are held. The home goes on handing over other locks meanwhile."""
    here, there = lites = in_one_machine(lab.n1, 2)
    here.lite("alloc", "cut", "128K", user="alice")
    here.lite("alloc", "kept", "4K", user="bob")
    many = _locks(here, "many", "cut", "--offset", 4096, "--count", _MANY, "--shared", user="alice")
    many.wait_output("held", timeout=100)
    cutter = _locks(here, "cut", "cut", "--count", 4096, user="alice")
    cutter.wait_output("\n", timeout=30)
    holder = _locks(here, "hold", "kept", user="bob")
    holder.wait_output("held", timeout=30)
    claims = here.stats()["lock_claims"]
    waiter = _locks(there, "hold", "kept", user="bob")
    wait_until("it waits", lambda: here.stats()["lock_claims"] > claims, 30, lab.n1.time_scale)
    with _box(lab.n1, f"{_QUOTA} {_PERIOD}") as box:
        lab.n1.run(f"echo {cutter.out.split()[1]} >{box}/cgroup.procs")
        cutter.write("\n")
        wait_until("it cuts", lambda: here.stats()["lock_claims"] < claims or not cutter.running, 100, lab.n1.time_scale)
        holder.write("\n")
        # In less time than the cutter's thread would need for all locks.
        waiter.wait_output("held", timeout=5)
        lab.n1.run(f"echo max >{box}/cpu.max")
        cutter.wait(60, check=True)
    waiter.write("\n")
    for process in (holder, waiter):
        process.wait(30, check=True)
    many.write("\n")
    many.wait(60)
    for name in ("cut", "kept"):
        here.lite("free", name)
    for lite in lites:
        lite.check_idle()
    stop_all(lites)


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=300, kernels=("6.1", "6.12"))
def test_a_memory_cgroup_throttles_no_worker_that_enters_locks(lab):
    """A process takes many locks while its memory cgroup is over its limit (memory.high)."""
    lites = in_one_machine(lab.n1, 2)
    here, vm, count = lites[0], lab.n1, 4000
    here.lite("alloc", "many", "40K", user="alice")
    # Kernel threads have no program.
    throttled = ("for task in /proc/[0-9]*; do if [ ! -e $task/exe ] && grep -q mem_cgroup_handle_over_high $task/stack; then "
                 "cat $task/comm $task/stack; fi; done 2>/dev/null")
    # It gets little time until it is over its limit, so that it does not have all locks before.
    with _box(vm, "10000 100000") as box:
        vm.run(f"echo +memory >{box}/../cgroup.subtree_control")
        many = vm.spawn(f"echo $$ >{box}/cgroup.procs; exec {program_path('locks')} --index {here.index} "
                        f"many many --offset 4096 --count {count} --shared")
        # Stops it before it has all of them, and lowers the limit.
        vm.run(f"until litectl stats -i {here.index} -j | grep -qE '\"lock_claims\": *[0-9]{{3}}'; do :; done; "
               f"kill -STOP $(cat {box}/cgroup.procs); echo 100K >{box}/memory.high; echo max >{box}/cpu.max; "
               f"kill -CONT $(cat {box}/cgroup.procs)", timeout=60)
        seen = []
        while "held" not in many.out and many.running:
            seen += [vm.run(throttled).out]
            if here.stats()["lock_claims"] > count // 2:
                vm.run(f"echo max >{box}/memory.high")
        assert "held" in many.out, (many.out, many.err)
        assert not "".join(seen), "".join(seen)
        events = dict(line.split() for line in vm.read(f"{box}/memory.events").splitlines())
        assert seen and int(events["high"]), events
        many.write("\n")
        many.wait(60)
    here.lite("free", "many")
    for lite in lites:
        lite.check_idle()
    stop_all(lites)


@vmtest(nodes=1, cpus=2, timeout=400, kernels=("6.1", "6.12"))
def test_an_lmr_is_freed_beside_throttled_processes_that_map_it(lab):
    """The home does not wait until their mmap(2) has looked at all of the LMR's extents."""
    scale = lab.n1.time_scale
    here, there = lites = in_one_machine(lab.n1, 2, op_timeout=2000 * scale)
    there.lite("alloc", "held", "4K", "--mode", "0666", "--node", here.id)
    lab.n1.run([program_path("mapped"), "grow", "held", str(there.index), "64"], timeout=60)
    with _box(lab.n1) as box:
        mappers = lab.n1.spawn([program_path("mapped"), "again", "held", str(here.index), "30"], user="alice", env=_PATIENT)
        mappers.wait_output("ready", timeout=60)
        pids = " ".join(re.findall(r"^\d+$", mappers.out, re.M))
        lab.n1.run(f"for pid in {pids}; do echo $pid >{box}/cgroup.procs; done; echo {_QUOTA} {_PERIOD} >{box}/cpu.max")
        wait_until("all have been throttled", lambda: int(re.search(r"nr_throttled (\d+)", lab.n1.read(f"{box}/cpu.stat"))[1]) > 5, 60,
                   lab.n1.time_scale)
        with _sessions_last(lites):
            there.lite("free", "held", timeout=60)
        lab.n1.run(f"echo max >{box}/cpu.max")
        mappers.close_stdin()
        mappers.wait(60, check=True)
    for lite in lites:
        lite.check_idle()
    stop_all(lites)


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=400, kernels=("6.1", "6.12"))
def test_throttled_threads_unmap_nothing_for_others(lab):
    """Throttled threads read an LMR that others have mapped, so that one of them is the first to see that it is gone.
    To remove all pages from page tables would take that thread far longer than the home waits."""
    here, there = lites = in_one_machine(lab.n1, 2, op_timeout=2000 * lab.n1.time_scale)
    half = 128 << 20
    there.lite("alloc", "held", 2 * half, "--mode", "0666", "--node", f"{there.id},{here.id}", timeout=60)
    mappers = lab.n1.spawn([program_path("mapped"), "hold", "held", str(here.index), str(half), "8"], user="alice", env=_PATIENT)
    mappers.wait_output("ready", timeout=100)
    readers = lab.n1.spawn([program_path("mapped"), "read", "held", str(here.index), "40"], user="bob", env=_PATIENT)
    readers.wait_output("ready", timeout=60)
    pids = " ".join(re.findall(r"^\d+$", readers.out, re.M))
    with _box(lab.n1) as box:
        # Each has its own limit, so that at any time one of them may run.
        lab.n1.run(f"echo +cpu >{box}/cgroup.subtree_control; for pid in {pids}; do "
                   f"mkdir {box}/$pid; echo {20 * _QUOTA} {_PERIOD} >{box}/$pid/cpu.max; echo $pid >{box}/$pid/cgroup.procs; done")
        with _sessions_last(lites):
            there.lite("free", "held", timeout=100)
        lab.n1.run(f"for part in {box}/*/; do echo max >$part/cpu.max; done")
        readers.close_stdin()
        readers.wait(60, check=True)
        lab.n1.run(f"rmdir {box}/*/")
    mappers.close_stdin()
    mappers.wait(60, check=True)
    for lite in lites:
        lite.check_idle()
    stop_all(lites)


@vmtest(nodes=2, timeout=400, kernels=("6.1", "6.12"))
def test_a_fence_beside_throttled_threads(lab):
    """Threads are in the middle of all kinds of operations when the session ends, and each needs seconds to notice
    that. The fence does not wait for them."""
    scale = lab.n1.time_scale
    # So long that moments in which the host stands still end no session before the cut.
    here, there = on_machines(lab, dead=60000 * scale, op_timeout=8000 * scale)
    there.lite("alloc", "held", "256K", "--mode", "0666")
    here.lite("alloc", "one", "4K", "--node", there.id)
    tries = []
    # On a host that stands still now and then a fence may take long, but hardly each of three.
    while len(tries) < 3 and (not tries or tries[-1] >= _FLUSH):
        with _box(lab.n1, f"{_QUOTA} {_PERIOD}") as box:
            throng = _throng(lab.n1, ["held", str(here.index), str(there.id), box, "110", "held"])
            throng.wait_output("ready", timeout=100)
            tries.append(max(_fences_of_cuts(lab, here, 1)))
            throng.kill(9)
            lab.n1.write(f"{box}/cpu.max", b"max")
            throng.wait(60)
    print(f"      fenced in {tries} s")
    assert min(tries) < _FLUSH, tries
    stop_all([here, there])


def _slow_link(lab, **options):
    # Packets that wait for the link are not sent again meanwhile.
    here, there = on_machines(lab, qps=1, **{**patient(lab.n1), **options})
    here.lite("alloc", "target", "32M", "--node", there.id)
    lab.n1.netem("rate 40mbit")
    return here, there


def _end(lab, here, there):
    lab.n1.netem(None)
    here.lite("free", "target")
    stop_all((here, there))


def _spent(vm, thread, process):
    """{state: seconds} that a thread is ready but has no processor, is asleep and runs, until its process ends."""
    tracing = "/sys/kernel/tracing"
    events = f"{tracing}/events/sched/sched_switch {tracing}/events/sched/sched_wakeup"
    vm.run(f"cd {tracing}/events/sched; "
           f"echo 'prev_pid=={thread} || next_pid=={thread}' >sched_switch/filter; echo 'pid=={thread}' >sched_wakeup/filter; "
           f"for event in {events}; do echo 1 >$event/enable; done")
    process.wait(200, check=True)
    trace = vm.run(f"cat {tracing}/trace; for event in {events}; do echo 0 >$event/enable; echo 0 >$event/filter; done").out
    spent, state, since = collections.Counter(), None, 0
    for time_, event, what in re.findall(r" ([0-9.]+): (sched_\w+): (.*)", trace):
        spent[state] += float(time_) - since
        since = float(time_)
        state = "running" if f"next_pid={thread} " in what else "asleep" if re.search("prev_state=[^R]", what) else "ready"
    return {state: round(spent[state], 1) for state in ("ready", "asleep", "running")}


def _waits(vm, comes, goes, thread=0):
    """Checks in the trace that each slot of the machine's send queue went to the operation that had waited longest, if
    any had. Returns the seconds that those of a thread have waited."""
    trace = vm.run("cat /sys/kernel/tracing/trace").out
    in_buffer, written = re.search(r"entries-in-buffer/entries-written: (\d+)/(\d+)", trace).groups()
    assert in_buffer == written, "a part of the trace is lost"
    line, passed, waits = {}, [], []
    for pid, at, event, post in re.findall(rf"-(\d+) .* ([0-9.]+): ({comes}|{goes}): .* post=(\w+)", trace):
        if event == comes:
            line[post] = pid, float(at)
            continue
        passed.append(list(line).index(post) if post in line else len(line))
        came_pid, came = line.pop(post, (0, 0))
        if came_pid == str(thread):
            waits.append(round(float(at) - came, 3))
    print(f"      {len(passed)} slots handed over")
    assert passed and not any(passed), f"{sum(map(bool, passed))} of {len(passed)} have passed others: {passed}"
    return waits


def _write_among_writers(lab, *cgroup):
    """A thread that seldom has a processor waits long for a slot among many writers. The device makes progress meanwhile,
    so no session ends. Slots are handed over in order of arrival."""
    here, there = _slow_link(lab, op_timeout=2000 * lab.n1.time_scale)
    broken = [lite.broken(transport=False) for lite in (here, there)]
    try:
        with probed(here.vm, "lite_slot_enter_line", "post=$arg1:x64") as comes, \
                probed(here.vm, "lite_post_with", "post=$arg1:x64") as goes:
            writing = here.vm.spawn([program_path("starved"), "write", "0", "target", "32768", "200", str(lab.scale(3)),
                                     *cgroup])
            writing.wait_output("\n", timeout=100)
            # If they were handed over in another order, this thread might never get one.
            _waits(here.vm, comes, goes)
            thread = writing.out.split()[0]
            print("      seconds:", _spent(here.vm, thread, writing))
            waits = _waits(here.vm, comes, goes, thread)
        print(f"      its writes have waited for {waits} s")
        assert waits, "it has never waited"
        assert [lite.broken(transport=False) for lite in (here, there)] == broken
    finally:
        _end(lab, here, there)


# On the debug kernel the writers need all of the processor, so that an idle thread does not get any.
@vmtest(nodes=2, timeout=300, netem=True, kernels=("6.1", "6.12"))
def test_an_idle_thread_among_writers(lab):
    """A thread of the policy SCHED_IDLE."""
    _write_among_writers(lab)


@vmtest(nodes=2, timeout=300, kernels=("6.1", "6.12"), netem=True)
def test_a_throttled_thread_among_writers(lab):
    """A thread with a hundredth of a processor."""
    vm, box = lab.n1, "/tmp/cgroup/box"
    vm.run("mkdir -p /tmp/cgroup; mount -t cgroup2 none /tmp/cgroup; echo +cpu >/tmp/cgroup/cgroup.subtree_control; "
           f"mkdir -p {box}; echo threaded >{box}/cgroup.type; echo 1000 100000 >{box}/cpu.max")
    try:
        _write_among_writers(lab, box)
        throttled = dict(line.split() for line in vm.read(f"{box}/cpu.stat").splitlines())
        assert int(throttled["nr_throttled"]), throttled
    finally:
        vm.run(f"rmdir {box}; umount /tmp/cgroup", check=False)


@vmtest(nodes=2, timeout=300, netem=True)
def test_a_crowd_keeps_no_pages_from_others(lab):
    """Each small operation has a page until its thread gets a processor. A crowd of them does not take all pages."""
    here, there = _slow_link(lab)
    pages = 64  # for each processor; the machine has one
    crowd = here.vm.spawn([program_path("queues"), "writes", "target", "0", "4096", str(2 * pages), "0"],
                          env={"LITE_INDEX": str(here.index)})
    try:
        crowd.wait_output("ready", timeout=100)
        wait_until("more operations than pages", lambda: here.stats()["slots_busy"] > pages, 60, lab.n1.time_scale)
    finally:
        crowd.kill(9)
        crowd.wait()
        _end(lab, here, there)


@vmtest(nodes=2, timeout=300, netem=True)
def test_calls_of_kernels_pass_bulk(lab):
    """At most 1.4 MB are written before a message, besides what is posted while the message travels."""
    # On a slow host 96 writers leave little processor time to anything else.
    here, there = _slow_link(lab, op_timeout=8000 * lab.n1.time_scale)
    try:
        said = run_program(lab, (here, there), "starved", "call", 0, "target", 131072, 96, there.id, timeout=200)
        assert int(said.out.split()[-1]) <= 4 << 20, said.out
    finally:
        _end(lab, here, there)


@vmtest(nodes=2, timeout=300, netem=True, kernels=("6.1", "6.12"))
def test_an_lmr_is_freed_while_a_crowd_is_in_line(lab):
    """Large operations of many threads wait for slots. Those on the LMR leave the line, which would take longer than
    the home waits."""
    here, there = lites = _slow_link(lab, **{**times(lab.n1), "op_timeout": 2000 * lab.n1.time_scale})
    piece, threads = 128 << 10, 160
    there.lite("alloc", "crowded", piece * threads, "--mode", "0666", timeout=60)
    crowd = here.vm.spawn([program_path("queues"), "writes", "crowded", "0", str(piece), str(threads), "0"],
                          env={"LITE_INDEX": str(here.index)})
    try:
        crowd.wait_output("ready", timeout=200)
        # Five times as long as the home waits.
        lab.n1.netem("rate 15mbit")
        with _sessions_last(lites):
            there.lite("free", "crowded", timeout=60)
    finally:
        crowd.kill(9)
        crowd.wait(60)
        _end(lab, here, there)
