# SPDX-License-Identifier: MIT
"""liblite-verbs.so: a program checks every byte, completion and error, with unpinned registrations."""

import preload
from litelab import wait_until
from preload import CHECKER, PRELOAD, check, limited, unpinned
from vmlab.testing import vmtest

setup = preload.setup


def _rounds(lab, count):
    """Without --thorough a ninth: a round has several operations, and whatever may go wrong does so in the first ones."""
    return lab.scale(count * lab.part, 4)


@vmtest(timeout=300)
def test_checker_natively(lab):
    """The checker accepts plain verbs."""
    unpinned(lab)
    check(lab, "all", _rounds(lab, 100), "-q", env={})
    check(lab, "messages", _rounds(lab, 60), "-e -s", env={})


@vmtest(timeout=300)
def test_checker_data(lab):
    """Random reads, writes and atomics: all bytes are right, and all completions come in order."""
    unpinned(lab)
    check(lab, "data", _rounds(lab, 400))


@vmtest(timeout=300)
def test_checker_messages(lab):
    """Sends and writes, with and without immediate, take effect in order."""
    unpinned(lab)
    check(lab, "messages", _rounds(lab, 100))


@vmtest(timeout=300)
def test_checker_errors(lab):
    """Wrong keys, bounds and rights have the status that a device gives, and flush what is behind them."""
    unpinned(lab)
    check(lab, "errors", 0)


@vmtest(timeout=300)
def test_checker_overlaps(lab):
    """The same memory is registered several times."""
    unpinned(lab)
    check(lab, "overlaps", 0)


@vmtest(timeout=300)
def test_checker_changes(lab):
    """ibv_rereg_mr() changes registrations, which Soft-RoCE of 6.1 cannot do: old keys end, new ones work."""
    unpinned(lab)
    check(lab, "changes", 0)


@vmtest(timeout=300)
def test_checker_other_addresses(lab):
    """Registrations with I/O virtual addresses that are no process's (ibv_reg_mr_iova2), at both ends."""
    unpinned(lab)
    check(lab, "all", _rounds(lab, 60), "-i -q", env={})
    check(lab, "all", _rounds(lab, 100), "-i")
    check(lab, "changes", 0, "-i")


@vmtest(timeout=300)
def test_checker_sleeping(lab):
    """All checks with completion events."""
    unpinned(lab)
    check(lab, "all", _rounds(lab, 200), "-e")


@vmtest(timeout=300)
def test_checker_shared_receives(lab):
    """Receives come from an SRQ."""
    unpinned(lab)
    check(lab, "messages", _rounds(lab, 60), "-s")
    check(lab, "messages", _rounds(lab, 60), "-s -e")


@vmtest(timeout=300)
def test_checker_loop(lab):
    """A process destroys and resets queues while it uses them to talk to itself."""
    unpinned(lab)
    # Freed memory is overwritten, so that its use shows.
    env = {**PRELOAD, "MALLOC_PERTURB_": "165", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
    out = lab.n1.run(f"{CHECKER} loop {_rounds(lab, 60)}", env=env, timeout=280).out
    assert out.endswith("good\n"), out


@vmtest(timeout=120)
def test_checker_events(lab):
    """The library's thread for events is late: it ends with its device, and no event is for an object that is gone."""
    unpinned(lab)
    out = lab.n1.run(f"{CHECKER} events {lab.scale(20)}", env=PRELOAD, timeout=60).out
    assert out.endswith("good\n"), out


@vmtest(timeout=120)
def test_checker_unreliable(lab):
    """A receiver of an unreliable connection stops for a while. Messages for which it has posted receives arrive."""
    unpinned(lab)
    for env in {}, PRELOAD:
        out = lab.n1.run(f"{CHECKER} unreliable", env=env, timeout=60).out
        assert out.endswith("good\n"), (env, out)


@vmtest(timeout=120)
def test_checker_failures(lab):
    """LMRs cannot be made or freed, or memory is short: nothing of which the program does not know is left."""
    unpinned(lab)
    out = lab.n1.run(f"{CHECKER} failures", env=PRELOAD, timeout=60).out
    assert out.endswith("good\n"), out


@vmtest(timeout=120)
def test_checker_successor(lab):
    """A process gets number and keys of one that has ended, while a queue pair still knows that one's memory."""
    here, _ = unpinned(lab)
    client = None
    for _ in range(2):
        server = lab.n1.spawn(f"{CHECKER} serve -z 7000 8", env=preload.TALKING)
        server.wait_output("ready")
        if client:
            client.close_stdin()
        else:
            client = lab.n2.spawn(f"{CHECKER} use {lab.n1.ip} 7000 1 0 successor", env=PRELOAD)
        server.wait()
        assert f"node {here.id}, process 0\n" in server.err, server.err
        wait_until("the number is free", lambda: f"verbs/{here.id}/0" not in here.names())
    client.wait()
    assert client.out.endswith("good\n"), client.out + client.err


@vmtest(timeout=300)
def test_checker_other_users(lab):
    """Another user's memory can be used only if LITE_VERBS_MODE at both ends allows that."""
    unpinned(lab)
    opened = {**PRELOAD, "LITE_VERBS_MODE": "0666"}
    for mine, theirs, good in ((opened, opened, True), (opened, PRELOAD, False), (PRELOAD, opened, False)):
        server = lab.n1.spawn(f"{CHECKER} serve 7000 8", env=mine, user="alice")
        server.wait_output("ready")
        client = lab.n2.run(f"{CHECKER} use {lab.n1.ip} 7000 1 20 data", env=theirs, user="bob", check=False)
        server.wait()
        assert client.out.endswith("good\n" if good else "remote access error\n"), client.out + client.err + server.out


@vmtest(timeout=240)
def test_more_than_may_be_locked(lab):
    """With 4 MB of RLIMIT_MEMLOCK a program registers more than the machine has."""
    unpinned(lab)
    mb = 3000
    assert mb * 1024 > int(lab.n1.run("awk '/MemTotal/ { print $2 }' /proc/meminfo").out)
    server = limited("-l 4096", f"{CHECKER} serve 7000 {mb}")
    client = limited("-l 4096", f"{CHECKER} use {lab.n1.ip} 7000 {lab.rng.getrandbits(31)} {mb} large")
    out = preload.pair(lab, server, client, "ready", user="alice")
    assert f"large: {mb << 20} bytes\ngood" in out, out

    # Plain verbs would pin it, but so little may be locked.
    p = lab.n1.spawn(server, user="alice")
    p.wait_output("ready")
    lab.n2.run(f"{CHECKER} use {lab.n1.ip} 7000 1 {mb} large", check=False)
    p.wait()
    assert "ibv_reg_mr: Cannot allocate memory" in p.out, p.out


@vmtest(timeout=240)
def test_little_may_be_locked(lab):
    """Bounce buffers of messages are as small as possible, and are kept for later messages."""
    unpinned(lab)
    server = limited("-l 64", f"{CHECKER} serve 7000 8 2>/dev/null")
    client = limited("-l 64", f"{CHECKER} use {lab.n1.ip} 7000 {lab.rng.getrandbits(31)} 48 messages 2>/tmp/said")
    out = preload.pair(lab, server, client, "ready", user="alice", env=preload.TALKING)
    assert out.endswith("good\n"), out
    said = lab.n2.run("cat /tmp/said; rm /tmp/said").out
    assert 1 <= said.count("bounce buffer of ") < 8, said


@vmtest(mem_mb=448, swap_mb=512, fresh=True, slow=True, timeout=900)
def test_more_than_memory(lab):
    """A registration larger than the machine's memory is written as a whole, and parts are read back from swap."""
    unpinned(lab)
    mb = 450
    assert mb * 1024 > int(lab.n1.run("awk '/MemTotal/ { print $2 }' /proc/meminfo").out)
    out = check(lab, "fill", mb, mb=mb, timeout=800)
    assert f"fill: {mb << 20} bytes" in out, out
    print(lab.n1.run("grep -E '^pswp|^pgmajfault' /proc/vmstat").out)


@vmtest(timeout=120)
def test_no_threads(lab):
    """If no thread can be started, what needs none works, and the rest fails instead of hanging."""
    unpinned(lab)
    for what, options, expected in (("data", "", "good\n"), ("messages", "", "local QP operation error\n"),
                                    ("messages", "-e", "arm\n")):
        server = lab.n1.spawn(f"{CHECKER} serve 7000 8", env=PRELOAD, user="alice")
        server.wait_output("ready")
        client = lab.n2.run(limited("-p 1", f"{CHECKER} use {options} {lab.n1.ip} 7000 1 20 {what}"), env=PRELOAD, user="alice",
                            check=False)
        server.wait()
        assert client.out.endswith(expected), client.out + client.err
        assert ("no thread" in client.err) == (expected != "good\n" and not options), client.err
