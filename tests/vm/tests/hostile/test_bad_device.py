# SPDX-License-Identifier: MIT
"""RDMA devices that behave badly: modules/rigged makes Soft-RoCE do so."""

import re
from contextlib import contextmanager

import ends
import hostile
from litelab import (environment, in_one_machine, module_path, nodes_in, on_machines, prepare, prepare_all, program_path, stop_all,
                     times, trace_sessions, traced_sessions, wait_complete, wait_until)
from vmlab.testing import vmtest

setup = prepare_all

_PAGES = 4 << 20 >> 12


@contextmanager
def _rigged(vm, **parameters):
    """Loads modules/rigged for a machine's device, until the test has passed; yields a setter of its parameters."""
    stop_all(nodes_in(vm))
    vm.insmod(module_path(vm, "rigged"), device="rxe1", **parameters)
    yield lambda name, value: vm.run(f"echo {value} > /sys/module/rigged/parameters/{name}")
    vm.rmmod("rigged")


def _end_a_session_badly(lites, worsen):
    """The session of a node that has mapped an LMR ends badly. When the LMR is freed, its pages go into quarantine."""
    here, there = lites
    here.lite("alloc", "old", "4M")
    there.lite("write", "old", 0, stdin=b"something")
    # The connection in which the second node asked to join has ended, at both ends.
    wait_until("one connection", lambda: all(lite.stats()["conns"] == 1 for lite in lites))
    worsen()
    there.stop(timeout=200)
    wait_until("no connection", lambda: not here.stats()["conns"], timeout=120)
    assert here.stats()["fences_failed"] == 1
    before = here.status()["mem_used"]
    here.lite("free", "old")
    after = here.stats()
    assert after["quarantined_pages"] >= _PAGES
    assert after["lmrs"] == after["allocs"] == after["lmr_bytes"] == 0, after
    # Quarantined memory belongs to no LMR, but still counts as used.
    assert here.status()["mem_used"] == before
    # New memory is allocated and freed as usual.
    here.lite("alloc", "new", "4M")
    here.lite("write", "new", 0, stdin=b"anything")
    assert here.lite("read", "new", 0, 8).out == "anything"
    here.lite("free", "new")
    assert here.stats()["quarantined_pages"] == after["quarantined_pages"]
    assert here.status()["mem_used"] == before
    return after["quarantined_pages"]


@vmtest(nodes=1, cpus=2, timeout=200, fresh=True, kernels=("6.1", "6.12"))
def test_a_device_that_keeps_queue_pairs(lab):
    """The device keeps pointers into the module, so the module cannot be unloaded."""
    vm = lab.n1
    stop_all(nodes_in(vm))
    vm.insmod(module_path(vm, "rigged"), device="rxe1")
    lites = in_one_machine(vm, 2, qps=1)
    # All queue pairs of the connection: each end has one, and one for reads and atomics (lite_conn_qps()).
    pages = _end_a_session_badly(lites, lambda: vm.run("echo 4 > /sys/module/rigged/parameters/keep"))
    assert "could not destroy a queue pair" in vm.run("dmesg").out
    lites[0].stop(timeout=100)
    stay = vm.run("dmesg | grep 'stay in quarantine' | tail -n 1").out
    assert int(stay.split("lite: ")[1].split()[0]) >= pages, stay
    assert not vm.run("rmmod lite", check=False).ok


@vmtest(nodes=1, cpus=2, timeout=200, fresh=True, kernels=("6.1", "6.12"))
def test_a_device_that_keeps_queue_pairs_while_the_module_is_unloaded(lab):
    """By then rmmod(8) cannot be refused any more. So it never ends, and the module's code stays where it is."""
    vm = lab.n1
    stop_all(nodes_in(vm))
    vm.insmod(module_path(vm, "rigged"), device="rxe1")
    in_one_machine(vm, 2, qps=1)
    vm.run("echo 4 > /sys/module/rigged/parameters/keep")
    unload = vm.spawn(["rmmod", "lite"])
    wait_until("the module is gone but for its code", lambda: "the module stays" in vm.run("dmesg").out, 60, vm.time_scale)
    assert unload.running
    assert vm.run("grep '^lite ' /proc/modules").out.split()[4] == "Unloading"
    vm.crash()


@vmtest(nodes=1, cpus=2, timeout=100, kernels=("6.1", "6.12"))
def test_a_device_that_works_on_copies(lab):
    """No node starts on such a device, because CPUs use LMRs at the same time as the device."""
    vm = lab.n1
    lite = nodes_in(vm)[0]
    with _rigged(vm, dma=1, bounce=1):
        refused = lite.start(check=False)
        assert not refused.ok
        assert "works on copies of memory" in refused.err, refused.err
        assert not lite.exists()
    lite.start()
    lite.stop()


@vmtest(nodes=1, cpus=2, timeout=200, kernels=("6.1", "6.12"))
def test_a_device_that_maps_a_little_at_a_time(lab):
    """Mappings that the device refuses are repeated in smaller pieces. LMRs work as usual."""
    vm = lab.n1
    with _rigged(vm, dma=1, map_max=1 << 20):
        here, there = in_one_machine(vm, 2)
        here.lite("alloc", "pieces", "9M", "--node", there.id)
        assert int(vm.read("/sys/module/rigged/parameters/map_refused")) > 0
        here.lite("write", "pieces", (8 << 20) + 5, stdin=b"beyond a piece")
        assert there.lite("read", "pieces", (8 << 20) + 5, 14).out == "beyond a piece"
        assert here.lite("checksum", "pieces").out == there.lite("checksum", "pieces").out
        here.lite("free", "pieces")
        for lite in (here, there):
            lite.check_idle()
        stop_all([here, there])


@vmtest(nodes=4, timeout=300, fresh=True, kernels=("6.1", "6.12"))
def test_all_are_fenced_once(lab):
    """A home crashes while a store has memory of its LMR. The store fences all peers that may have that memory mapped,
    all at once, although its device is slow. It does not fence again those that come back meanwhile."""
    store, home, *others = lites = on_machines(lab, qps=1)
    trace_sessions(store.vm)
    store.vm.insmod(module_path(store.vm, "rigged"), device="rxe0", destroy_ms=1500)
    home.lite("alloc", "spread", "8M", "--node", f"{home.id},{store.id}")
    home.vm.crash()
    others[0].wait_states({**{lite.id: "up" for lite in (store, *others)}, home.id: "down"})
    store.vm.run("echo >/sys/kernel/tracing/trace")
    before = store.stats()
    numbers = {lite.id for lite in others}
    home.vm.reboot()
    prepare(home.vm)
    home.forget()
    home.start(**times(home.vm))
    home.join(store, timeout=100)
    # When the memory is free, all peers are fenced; some have come back meanwhile.
    wait_until("its memory is free", lambda: not store.stats()["allocs"], 60, store.vm.time_scale)
    wait_until("they are back", lambda: {int(node) for _, node in traced_sessions(store.vm)[0]} >= numbers, 60, store.vm.time_scale)
    after = store.stats()
    causes = {kind: after[kind] - before[kind] for kind in after if kind.startswith("ends_") and after[kind] != before[kind]}
    assert causes.pop("ends_fence") == len(others), causes
    assert not causes.get("ends_call"), causes
    seen = re.findall(r"lite_conn: session=(\d+) node=(\d+) state=(\w+) ", store.vm.run("cat /sys/kernel/tracing/trace").out)
    ended = [(number, state) for _, number, state in seen if int(number) in numbers and state in ("dead", "fenced")]
    assert [state for _, state in ended[:len(others)]] == ["dead"] * len(others), seen
    store.vm.run("echo 0 > /sys/module/rigged/parameters/destroy_ms")
    wait_complete(lites, timeout=90)
    stop_all(lites)
    store.vm.rmmod("rigged")


@vmtest(nodes=2, timeout=200)
def test_no_session_is_used_before_the_last_one_is_fenced(lab):
    """A link breaks, and the device of the node that connects anew is slow to destroy queue pairs. ATTACH lets the
    other node use the new session, so it is sent only when the old one is fenced, and nothing is in flight there."""
    attach = next(int(number) for name, number, _ in hostile.requests() if name == "ATTACH")
    here, there = lites = on_machines(lab, qps=1)
    trace_sessions(here.vm)
    here.vm.insmod(module_path(here.vm, "rigged"), device="rxe0", destroy_ms=10000)
    here.vm.run("echo 1 >/sys/kernel/tracing/events/lite/lite_call/enable")
    broken = here.broken()
    there.vm.cut()
    wait_until("the session ends", lambda: here.broken() > broken, 60, here.vm.time_scale)
    there.vm.cut(False)
    # The nodes may look complete before the end of the session has been told.
    wait_until("it connects anew", lambda: f" call={attach} " in here.vm.run("cat /sys/kernel/tracing/trace").out, 90,
               here.vm.time_scale)
    wait_complete(lites, timeout=90)
    trace = here.vm.run("cat /sys/kernel/tracing/trace; echo 0 >/sys/kernel/tracing/events/lite/lite_call/enable").out
    events = re.findall(rf"lite_(?:conn: session=(\d+) node={there.id} state=(dead|fenced)|call: session=(\d+) node=\d+ call={attach}) ",
                        trace)
    dead = next(session for session, state, _ in events if state == "dead")
    order = [state or "attach" for session, state, attached in events if session == dead or attached]
    assert order[:2] == ["dead", "fenced"] and "attach" in order, trace
    here.vm.run("echo 0 > /sys/module/rigged/parameters/destroy_ms")
    stop_all(lites)
    here.vm.rmmod("rigged")


@vmtest(nodes=3, timeout=300, fresh=True, kernels=("6.1", "6.12"))
def test_names_of_the_next_life_stay(lab):
    """A home crashes and comes back while a store still fences the peers that may have memory of its earlier life
    mapped. The directory drops the names of that life, and keeps those that the home has entered since."""
    store, home, other = lites = on_machines(lab, qps=4)
    store.vm.insmod(module_path(store.vm, "rigged"), device="rxe0")
    home.lite("alloc", "spread", "8M", "--node", f"{home.id},{store.id}")
    home.vm.crash()
    store.wait_states({store.id: "up", home.id: "down", other.id: "up"})
    # The home's new session has half as many queue pairs to destroy as the session of the other peer.
    store.vm.run("echo 2000 > /sys/module/rigged/parameters/destroy_ms")
    home.vm.reboot()
    prepare(home.vm)
    home.forget()
    home.start(**times(home.vm), qps=1)
    home.join(store, timeout=100)
    # The remaining queue pairs of the other session take longer still.
    store.vm.run("echo 6000 > /sys/module/rigged/parameters/destroy_ms")
    home.vm.run("for i in 1 2 3 4 5 6 7 8; do lite alloc name-$i 4K; done", timeout=60)
    before = store.stats()
    wait_until("the old memory is free", lambda: not store.stats()["allocs"], 60, store.vm.time_scale)
    store.vm.run("echo 0 > /sys/module/rigged/parameters/destroy_ms")
    store.wait_states({lite.id: "up" for lite in lites}, timeout=60)
    print(f"      {before['allocs']} allocations left when {before['names']} names had been entered")
    assert store.stats()["names"] >= before["names"] > 0
    stop_all(lites)
    store.vm.rmmod("rigged")
    if not before["allocs"]:
        lab.skip("the old memory was free before the names were made")


@vmtest(nodes=1, cpus=2, timeout=200, kernels=("6.1", "6.12"))
def test_a_device_that_breaks_connections(lab):
    """If its connection breaks before the answer, a joiner asks again, and reports the new answer."""
    with _rigged(lab.n1) as rig:
        lites = nodes_in(lab.n1, 3)
        for lite, number in zip(lites, (3, 4, 4)):
            lite.start(**times(lab.n1), id=number)
        lites[1].join(lites[0])
        for queue_pairs in (1, 2):
            rig("breaks", queue_pairs)
            refused = lites[2].join(lites[0], check=False)
            assert lab.n1.read("/sys/module/rigged/parameters/breaks").strip() == "0"
            assert not refused.ok and "another node of the cluster has the id" in refused.err, refused
        stop_all(lites)


@vmtest(nodes=1, cpus=2, timeout=200, kernels=("6.1", "6.12"))
def test_a_device_that_does_not_work(lab):
    """The device refuses a work request of a session, and later it carries out none. Each ends the session; there is
    another one when the device works."""
    vm = lab.n1
    with _rigged(vm) as rig:
        # Heartbeats use the device, too.
        rare = 60_000 * vm.time_scale
        lites = here, there = in_one_machine(vm, 2, heartbeat=rare, dead=5 * rare)
        here.lite("alloc", "far", "4K", "--node", there.id)
        for parameter, cause in ("refuse", "device"), ("forget", "op_timeout"):
            wait_complete(lites)
            user = here.spawn("loop", "far")
            user.wait_output("running", timeout=60)
            with ends.told(here) as ended:
                rig(parameter, 1)
                assert list(ended(there, cause)) == [cause], ended(there)
            rig(parameter, 0)
            # Its operation has failed, or was repeated in the next session.
            user.kill()
            user.wait(60)
        wait_complete(lites, timeout=60)
        here.lite("free", "far")
        for lite in lites:
            lite.check_idle()
        stop_all(lites)


@vmtest(nodes=1, cpus=2, timeout=200, kernels=("6.1", "6.12"))
def test_a_connection_to_oneself_breaks(lab):
    """A hundred atomics and two fences are under way when it breaks. Only atomics that were posted may fail."""
    vm = lab.n1
    with _rigged(vm) as rig:
        lite, = in_one_machine(vm, 1, qps=1, op_timeout=60_000 * vm.time_scale)
        lite.lite("alloc", "word", "4K")
        lite.lite("fetch-add", "word", 0, 1)
        rig("forget", 1)
        program = vm.spawn([program_path("ordering_test"), "[.rigged]"], env=environment(lab, [lite]))
        # Atomics and reads of fences have their own queue pair, with 56 slots; each fence also reads on the other one.
        wait_until("all are posted or in line",
                   lambda: int(vm.read("/sys/module/rigged/parameters/forgotten")) == 56 + 2 and lite.stats()["ops_inflight"] == 100,
                   30, vm.time_scale)
        rig("forget", 0)
        rig("break_all", 1)
        program.wait(60, check=True)
        lite.lite("free", "word")
        lite.check_idle()
        stop_all([lite])


@vmtest(nodes=1, cpus=2, timeout=400, fresh=True, slow=True, kernels=("6.1", "6.12"))
def test_a_device_that_takes_too_long(lab):
    """The device destroys queue pairs late, but reports success, as Soft-RoCE does when it gives up."""
    vm = lab.n1
    # LITE waits for the device for longer than the kernel of the test machines lets a thread block.
    patience = vm.read("/proc/sys/kernel/hung_task_timeout_secs").strip()
    vm.run("echo 0 >/proc/sys/kernel/hung_task_timeout_secs")
    with _rigged(vm) as rig:
        lites = in_one_machine(vm, 2, qps=1)
        _end_a_session_badly(lites, lambda: rig("destroy_ms", 41_000))
        rig("destroy_ms", 0)
        stop_all(lites[:1])
        vm.rmmod("lite")
    vm.run(f"echo {patience} >/proc/sys/kernel/hung_task_timeout_secs")
