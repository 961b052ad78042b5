# SPDX-License-Identifier: GPL-2.0
"""The harness tests itself: all that other tests rely on."""

import pathlib
import re
import signal
import tempfile
import time

from preload import ATTEMPTS, TOO_SLOW
from vmlab import ROOT, CommandFailed, CommandTimeout, NodeDied
from vmlab.console import Console
from vmlab.testing import vmtest


def _raises(kind, function):
    try:
        function()
    except kind as error:
        return error
    raise AssertionError(f"did not raise {kind.__name__}")


def _perftest(program, server, client, device="rxe0", server_ip=None):
    """Runs a perftest program between two nodes, or within one; returns what the client printed."""
    iterations = 100
    command = f"{program} -d {device} -n {iterations} -s 64"
    for _ in range(ATTEMPTS):
        p = server.spawn(command)
        # The server does not tell that it listens. Port 18515 is 0x4853; state 0A is LISTEN.
        server.run("until grep -q ':4853 .* 0A ' /proc/net/tcp; do :; done")
        done = client.run(f"{command} {server_ip or server.ip}", timeout=60, check=False)
        if not done.ok:
            p.kill()
        p.wait()
        if not any(TOO_SLOW.search(end.out + end.err) for end in (done, p)):
            break
    assert done.ok and p.rc == 0, f"{done.out}{done.err}\nserver: {p.out}{p.err}"
    return done.out


@vmtest(alone=True)
def test_time_runs_as_it_should(lab):
    """The guests' clocks run at the right speed, whatever the host did while they booted (tsc.py). With a clock that is
    twice as fast a node would take others for dead."""
    def uptime(node):
        begun = time.monotonic()
        said = float(node.run("cat /proc/uptime").out.split()[0])
        return begun, said, time.monotonic()

    for node in lab.nodes:
        first = uptime(node)
        time.sleep(1)  # the measured interval
        last = uptime(node)
        passed = last[1] - first[1]
        assert (last[0] - first[2]) * 0.98 - 0.02 < passed < (last[2] - first[0]) * 1.02 + 0.02, \
            f"{node.name}: {passed} s in {last[0] - first[2]} to {last[2] - first[0]} s"


def test_ping(lab):
    lab.n1.run(f"ping -c 2 -i 0.1 {lab.n2.ip}")
    lab.n2.run("ping -c 2 -i 0.1 n1")
    assert lab.n1.run("uname -r").out.strip() == lab.kernel.release
    assert lab.cluster.run("hostname")[1].out == "n2\n"


def test_tools_are_real(lab):
    """They are not busybox's applets of the same names."""
    for tool in ("ip", "tc"):
        assert "iproute2" in lab.n1.run(f"{tool} -V").out
    assert "rxe0" in lab.n1.run("ibv_devices").out
    assert "state ACTIVE" in lab.n1.run("rdma link").out


def test_verbs(lab):
    for program in ("ib_write_lat", "ib_read_lat"):
        assert "t_typical" in _perftest(program, lab.n1, lab.n2)


def test_result(lab):
    r = lab.n1.run("echo out; echo err >&2; exit 3", check=False)
    assert (r.rc, r.out, r.err, r.ok) == (3, "out\n", "err\n", False)
    error = _raises(CommandFailed, lambda: lab.n1.run("echo reason >&2; false"))
    assert "reason" in str(error) and error.result.rc == 1
    assert lab.n1.run("kill -SEGV $$", check=False).rc == -signal.SIGSEGV
    assert lab.n1.run("cat", stdin=b"x" * 3_000_000).out == "x" * 3_000_000
    assert lab.n1.run(["printf", "%s-", "a b", "c"]).out == "a b-c-"
    assert lab.n1.run("echo $A; pwd", env={"A": "1 2"}, cwd="/tmp").out == "1 2\n/tmp\n"


def test_output_survives_exit(lab):
    """Output that a command writes just before its end arrives. run() does not wait for children that write later."""
    assert len(lab.n1.run("head -c 1000000 /dev/zero | tr '\\0' x").out) == 1_000_000
    assert lab.n1.run("(sleep 1000; echo late) & echo early").out == "early\n"
    lab.n1.run("until killall sleep; do usleep 100000; done")


def test_users(lab):
    assert lab.n1.run("id -un; id -G", user="alice").out == "alice\n1000\n"
    assert lab.n1.run("id -u; id -g", user=(1234, 77)).out == "1234\n77\n"
    assert not lab.n1.run("cat /proc/kmsg", user="bob", check=False).ok


def test_many_commands(lab):
    processes = [lab.n1.spawn(f"read line; echo {i} $line") for i in range(40)]
    for p in processes:
        p.write("x\n")
    for i, p in enumerate(processes):
        assert p.wait(check=True).out == f"{i} x\n"


def _await_no_sleep(lab):
    """All processes of a group that was killed end, but not all before the first one is reaped."""
    lab.n1.run("while pgrep sleep; do usleep 100000; done")


def test_kill(lab):
    p = lab.n1.spawn("trap 'echo caught; exit 7' TERM; echo ready; while :; do sleep 0.1; done")
    p.wait_output("ready")
    p.kill(signal.SIGTERM)
    assert p.wait().rc == 7 and "caught" in p.out
    p = lab.n1.spawn("sleep 1000 & sleep 1000")
    p.kill()
    assert p.wait().rc == -signal.SIGKILL
    _await_no_sleep(lab)


def test_timeout(lab):
    begun = time.monotonic()
    error = _raises(CommandTimeout, lambda: lab.n1.run("echo before; sleep 1000", timeout=0.5))
    assert error.result.out == "before\n"
    assert time.monotonic() - begun < 600  # but not 1000
    _await_no_sleep(lab)


def test_files(lab):
    data = lab.rng.randbytes(500_000)
    with tempfile.TemporaryDirectory() as directory:
        here, back = pathlib.Path(directory) / "here", pathlib.Path(directory) / "back"
        here.write_bytes(data)
        lab.n1.put(here, "/tmp/new/there")
        lab.n1.get("/tmp/new/there", back)
        assert back.read_bytes() == data
    (lab.n1.scratch / "from-host").write_bytes(data)
    lab.n1.run("cmp /scratch/from-host /tmp/new/there && echo hello >/scratch/from-guest")
    assert (lab.n1.scratch / "from-guest").read_text() == "hello\n"
    assert lab.n1.read("/lite/tests/vm/run") == (ROOT / "tests/vm/run").read_text()
    assert not lab.n1.run("touch /lite/x", check=False).ok


def test_host_changes_files(lab):
    """A rebuilt program must not be run from a stale cache."""
    script = lab.n1.scratch / "script"
    for text in ("first", "second one"):
        script.write_text(f"#!/bin/sh\necho {text}\n")
        script.chmod(0o755)
        assert lab.n1.run("/scratch/script").out == f"{text}\n"


def test_complaint_is_found(lab):
    with lab.cluster.expecting("WARNING: made up"):
        lab.n1.run("echo '<4>WARNING: made up' >/dev/kmsg")
    lab.cluster.check()
    lab.n2.run("echo '<4>BUG: unable to handle' >/dev/kmsg; echo '<4>a WARNING: in the middle' >/dev/kmsg")
    lab.n2.console.wait_for("in the middle", 60)
    found = lab.cluster.complaints(forget=True)
    assert [(c.node, c.line) for c in found] == [("n2", "BUG: unable to handle")], found


def test_link(lab):
    lab.n1.link(up=False)
    assert not lab.n2.run("ping -c 1 -W 1 n1", check=False).ok
    lab.n1.run("until [ $(cat /sys/class/net/eth0/carrier) = 0 ]; do :; done")
    lab.n1.link(up=True)
    lab.n1.run("until [ $(cat /sys/class/net/eth0/carrier) = 1 ]; do :; done")
    lab.n2.run("ping -c 3 -i 0.1 n1")


@vmtest(netem=True)
def test_netem_and_cut(lab):
    lab.n1.netem("delay 300ms")
    took = re.search(r"time=([\d.]+) ms", lab.n2.run("ping -c 1 n1").out)
    assert float(took[1]) >= 300
    lab.n1.netem(None)
    lab.n1.cut()
    assert not lab.n2.run("ping -c 1 -W 1 n1", check=False).ok
    assert not lab.n1.run("ping -c 1 -W 1 n2", check=False).ok
    lab.n1.cut(False)
    lab.n2.run("ping -c 1 n1")


def test_pause(lab):
    lab.n2.pause()
    # More than fits into the socket. The sender must not block.
    lab.n1.run("ping -c 2000 -i 0.001 -s 1400 -W 1 n2", check=False, timeout=60)
    lab.n2.resume()
    lab.n1.run("ping -c 2 -i 0.1 n2")


def test_crash_and_reboot(lab):
    p = lab.n2.spawn("sleep 1000")
    lab.n2.run("echo lost >/tmp/file")
    lab.n2.crash()
    _raises(NodeDied, p.wait)
    _raises(NodeDied, lambda: lab.n2.run("true"))
    assert not lab.n1.run("ping -c 1 -W 1 n2", check=False).ok
    lab.n2.reboot()
    assert not lab.n2.run("cat /tmp/file", check=False).ok
    lab.n1.run("ping -c 1 n2")
    _perftest("ib_write_lat", lab.n1, lab.n2)


@vmtest(nodes=1, fresh=True)
def test_panic(lab):
    with lab.cluster.expecting("Kernel panic"):
        _raises(NodeDied, lambda: lab.n1.run("echo c >/proc/sysrq-trigger"))
        lab.n1.wait_dead()


@vmtest(nodes=3)
def test_three_nodes(lab):
    for a in lab.nodes:
        for b in lab.nodes:
            a.run(f"ping -c 1 {b.ip}")
    _perftest("ib_read_lat", lab.n3, lab.n1)
    lab.n2.crash()
    _perftest("ib_write_lat", lab.n1, lab.n3)
    lab.n2.reboot()
    _perftest("ib_write_lat", lab.n2, lab.n3)


@vmtest(nodes=1, cpus=2)
def test_nodes_in_one_machine(lab):
    addresses = lab.n1.add_addresses(3)
    assert addresses == ["10.0.1.1", "10.0.1.2", "10.0.1.3"]
    _perftest("ib_write_lat", lab.n1, lab.n1, device="rxe1", server_ip=addresses[1])


@vmtest(nodes=1, swap_mb=64)
def test_swap(lab):
    assert "/dev/vda" in lab.n1.read("/proc/swaps")


@vmtest(nodes=1, kernels=("debug", "debug2"))
def test_fault_injection(lab):
    assert "0" in lab.n1.read("/proc/self/fail-nth")
    assert lab.n1.run("ls /sys/kernel/debug/failslab").ok


@vmtest(nodes=1, kernels=("debug2",))
def test_kmemleak_is_clean(lab):
    lab.n1.kmemleak_scan()


_COMPLAINTS = """\
BUG: KASAN: use-after-free in lite_op_done+0x1c/0x90 [lite]
BUG: sleeping function called from invalid context at mm/slab.h:1
BUG: scheduling while atomic: swapper/0/0/0x00000100
BUG kmalloc-64 (Tainted: G           OE     ): Poison overwritten
WARNING: CPU: 0 PID: 1 at lib/refcount.c:28 refcount_warn_saturate+0xba/0x110
WARNING: possible circular locking dependency detected
WARNING: suspicious RCU usage
refcount_t: underflow; use-after-free.
ODEBUG: free active (active state 0) object type: timer_list hint: f+0x0/0x10
Oops: 0000 [#1] PREEMPT SMP NOPTI
general protection fault, probably for non-canonical address 0xdead000000000108: 0000 [#1] PREEMPT SMP
rcu: INFO: rcu_preempt self-detected stall on CPU
watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [lite/0:77]
INFO: task rmmod:123 blocked for more than 30 seconds.
unregister_netdevice: waiting for eth0 to become free. Usage count = 2
UBSAN: shift-out-of-bounds in kernel/core/imm.c:7:3
list_del corruption. prev->next should be ffff, but was 0
kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)
BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 31s!
Kernel panic - not syncing: Fatal exception
""".splitlines()

_HARMLESS = """\
lite: loading out-of-tree module taints kernel.
lite: module verification failed: signature and/or required key missing - tainting kernel
warning: `ib_write_lat' uses 32-bit capabilities
infiniband rxe0: set active
sysrq: Show Blocked State
Lock dependency validator: Copyright (c) 2006 Red Hat, Inc., Ingo Molnar
kmemleak: Automatic memory scanning thread started
ip (64) used greatest stack depth: 24416 bytes left
debug: unmapping init [mem 0xffffffff82e00000-0xffffffff82ffffff]
""".splitlines()


@vmtest(nodes=1)
def test_scanner(lab):
    """Which lines count as complaints. They are quoted from the kernel, because not all can be provoked."""
    with tempfile.TemporaryDirectory() as directory:
        console = Console("n0", pathlib.Path(directory) / "console")
        console.path.write_text("".join(f"[   12.345678] {line}\r\n" for line in _HARMLESS))
        assert not console.complaints(), console.complaints()
        for line in _COMPLAINTS:
            console.path.write_text(f"[   12.345678] {line}\r\n[   12.345679] ---[ end trace 0 ]---\r\n")
            assert [c.line for c in console.complaints()] == [line], line
