# SPDX-License-Identifier: MIT
"""liblite-verbs.so: unmodified programs of verbs, with their registrations unpinned."""

import re
import subprocess

from litelab import USER_BUILD, on_machines, prepare, program_path
from vmlab import ROOT
from vmlab.testing import vmtest

_LIBRARY = "/usr/lib/liblite-verbs.so"
_PRELOAD = {"LD_PRELOAD": _LIBRARY}


def setup(cluster):
    """LITE, and the library, stripped: it is 9p that programs would otherwise read it through."""
    stripped = ROOT / "build/guest/liblite-verbs.so"
    stripped.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["strip", "-o", stripped, USER_BUILD / "ulib/verbs/liblite-verbs.so"], check=True)

    def install(node):
        prepare(node)
        node.run(f"cp /lite/{stripped.relative_to(ROOT)} {_LIBRARY}")

    cluster.each(install)


def _pair(lab, server, client, ready, env=None, timeout=60, user=None):
    """A server on the first machine and its client on the second. Returns what both printed. `ready` is what says that the
    server listens: a port, or a text that it prints."""
    env = _PRELOAD if env is None else env
    p = lab.n1.spawn(server, env=env, user=user)
    if isinstance(ready, str):
        p.wait_output(ready)
    else:
        lab.n1.run(f"until grep -q ':{ready:04X} .* 0A ' /proc/net/tcp /proc/net/tcp6; do :; done")
    out = lab.n2.run(client, env=env, timeout=timeout, user=user).out
    p.wait(timeout=timeout, check=True)
    return p.out + out


# --- the checker -----------------------------------------------------------------------------------------------------

def _check(lab, what, rounds, options="", env=None, mb=8, timeout=120, user=None):
    seed = lab.rng.getrandbits(31)
    out = _pair(lab, f"{program_path('verbs_check')} serve {options} 7000 {mb}",
                f"{program_path('verbs_check')} use {options} {lab.n1.ip} 7000 {seed} {rounds} {what}", "ready", env=env,
                timeout=timeout, user=user)
    print(out)
    assert out.endswith("good\n"), out
    return out


def _unpinned(lab):
    return on_machines(lab, unpinned=True)


@vmtest(timeout=300)
def test_checker_data(lab):
    """Random reads, writes and atomics: all bytes, and all completions in order."""
    _unpinned(lab)
    _check(lab, "data", lab.scale(400))


@vmtest(timeout=300)
def test_checker_messages(lab):
    """Sends, with immediate too, and writes with immediate: in order after the writes before them."""
    _unpinned(lab)
    _check(lab, "messages", lab.scale(100))


@vmtest(timeout=300)
def test_checker_errors(lab):
    """Wrong keys, bounds and rights: the status that a device gives, and what is behind it is flushed."""
    _unpinned(lab)
    _check(lab, "errors", 0)


@vmtest(timeout=300)
def test_checker_overlaps(lab):
    """Registrations of the same memory."""
    _unpinned(lab)
    _check(lab, "overlaps", 0)


@vmtest(timeout=300)
def test_checker_sleeping(lab):
    """All of it with completion events."""
    _unpinned(lab)
    _check(lab, "all", lab.scale(200), "-e")


@vmtest(timeout=300)
def test_checker_shared_receives(lab):
    """Receives of an SRQ."""
    _unpinned(lab)
    _check(lab, "messages", lab.scale(60), "-s")
    _check(lab, "messages", lab.scale(60), "-s -e")


@vmtest(timeout=300)
def test_checker_loop(lab):
    """Queues that are destroyed and reset while they are in use, by one process with itself."""
    _unpinned(lab)
    # What is freed is overwritten, so that its use shows.
    env = {**_PRELOAD, "MALLOC_PERTURB_": "165", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
    out = lab.n1.run(f"{program_path('verbs_check')} loop {lab.scale(60)}", env=env, timeout=120).out
    assert out.endswith("good\n"), out


@vmtest(timeout=300)
def test_checker_other_users(lab):
    """Memory of another user is used only if LITE_VERBS_MODE lets others in at both ends."""
    _unpinned(lab)
    opened = {**_PRELOAD, "LITE_VERBS_MODE": "0666"}
    checker = program_path("verbs_check")
    for mine, theirs, good in ((opened, opened, True), (opened, _PRELOAD, False), (_PRELOAD, opened, False)):
        server = lab.n1.spawn(f"{checker} serve 7000 8", env=mine, user="alice")
        server.wait_output("ready")
        client = lab.n2.run(f"{checker} use {lab.n1.ip} 7000 1 20 data", env=theirs, user="bob", check=False)
        server.wait()
        assert client.out.endswith("good\n" if good else "remote access error\n"), client.out + client.err + server.out


# --- programs of Debian ------------------------------------------------------------------------------------------------

def _perftest(lab, program, options="", env=None, iterations=100):
    command = f"{program} -d rxe0 -n {iterations} {options}"
    return _pair(lab, command, f"{command} {lab.n1.ip}", 18515, env=env, timeout=150)


def _perftests(lab, *programs):
    _unpinned(lab)
    for program, *options in programs:
        for option in options:
            out = _perftest(lab, program, option)
            assert re.search(r"^ *\d+ +\d+ +[\d.]+", out, re.M), out


def test_ibv_rc_pingpong(lab):
    _unpinned(lab)
    for option in ("", "-e", "-s 100000 -c"):
        out = _pair(lab, f"ibv_rc_pingpong -g 1 -n 200 {option}", f"ibv_rc_pingpong -g 1 -n 200 {option} {lab.n1.ip}", 18515)
        assert "200 iters" in out, out


@vmtest(timeout=240)
def test_perftest_write(lab):
    _perftests(lab, ("ib_write_lat", "-s 64", "-s 65536"), ("ib_write_bw", "-s 64", "-s 65536"))


@vmtest(timeout=240)
def test_perftest_read(lab):
    _perftests(lab, ("ib_read_lat", "-s 64"), ("ib_read_bw", "-s 64", "-s 65536"))


@vmtest(timeout=240)
def test_perftest_atomic(lab):
    _perftests(lab, ("ib_atomic_lat", "", "-A CMP_AND_SWAP"), ("ib_atomic_bw", ""))


def _listeners(node):
    return len(re.findall("state LISTEN", node.run("rdma resource show cm_id").out))


def _rdmacm(lab, server, client, env=None, timeout=60):
    """As _pair(), for servers that listen with the RDMA CM."""
    _unpinned(lab)
    env = _PRELOAD if env is None else env
    before = _listeners(lab.n1)
    p = lab.n1.spawn(server, env=env)
    while _listeners(lab.n1) == before:
        assert p.running, p.out + p.err
    out = lab.n2.run(client, env=env, timeout=timeout).out
    p.wait(timeout=timeout, check=True)
    return p.out + out


def test_rping(lab):
    out = _rdmacm(lab, f"rping -s -a {lab.n1.ip} -C 50 -V -v", f"rping -c -a {lab.n1.ip} -C 50 -V -v")
    assert "rdma-ping-49: " in out, out


def test_ucmatose(lab):
    out = _rdmacm(lab, "ucmatose", f"ucmatose -s {lab.n1.ip}")
    assert "data transfers complete" in out and out.count("return status 0") == 2, out


def test_rdma_client(lab):
    out = _rdmacm(lab, "rdma_server", f"rdma_client -s {lab.n1.ip}")
    assert out.count("end 0") == 2, out
