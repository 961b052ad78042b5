# SPDX-License-Identifier: MIT
"""Shared by tests that run verbs programs with liblite-verbs.so on two machines."""

import re

from litelab import on_machines, prepare, program_path, stripped, wait_until
from vmlab import ROOT, CommandTimeout

_LIBRARY = "/usr/lib/liblite-verbs.so"
PRELOAD = {"LD_PRELOAD": _LIBRARY}
# The same, and the library tells on stderr what it does: see assert_used().
TALKING = {**PRELOAD, "LITE_VERBS_DEBUG": "1"}
CHECKER = program_path("verbs_check")


def setup(cluster):
    """A test file's setup: LITE and the stripped library, which programs would otherwise read through 9p."""
    library = stripped("ulib/verbs/liblite-verbs.so")

    def install(node):
        prepare(node)
        node.run(f"cp /lite/{library.relative_to(ROOT)} {_LIBRARY}")

    cluster.each(install)


def unpinned(lab):
    """A node on each machine that allows unpinned LMRs. None dies; nor does a session end because a busy host has kept a
    machine from its processor for some seconds. If Soft-RoCE stops (below), it ends before the programs give up."""
    return on_machines(lab, unpinned=True, dead=60000 * lab.kernel.time_scale, op_timeout=20000 * lab.kernel.time_scale)


def limited(limit, command):
    """A command under one of dash's ulimits. It must not exceed what a user may have: RLIMIT_MEMLOCK is 8 MB."""
    return f"sh -c 'ulimit {limit} && exec {command}'"


def assert_used(*ends):
    """Processes that ran with TALKING registered memory, all of it unpinned: none fell back to plain verbs."""
    for end in ends:
        said = re.findall(r"liblite-verbs\[\d+\]: (.+)", end.err)
        assert any(line.startswith("unpinned: ") for line in said), end.err
        plain = [line for line in said if re.match(r"plain verbs|a registration is pinned|all registrations are pinned", line)]
        assert not plain, plain


def wait_listening(node, server, port):
    """Waits until a server, a process on this machine, listens at this TCP port."""
    listens = f"grep -q ':{port:04X} .* 0A ' /proc/net/tcp /proc/net/tcp6 2>/dev/null"
    wait_until("it listens", lambda: node.run(listens, check=False).ok or not server.running, 60, node.time_scale)
    assert server.running, server.out + server.err


def pair(lab, server, client, ready, env=None, timeout=60, user=None, stays=False):
    """Runs a server on the first machine and its client on the second; returns what both printed. The server listens
    when its port (`ready`) is open, or it has printed the text `ready`. If it stays, it is killed after its client's
    end. Without `env` both run with the library, and must have used it."""
    def await_listening(p):
        if isinstance(ready, str):
            p.wait_output(ready)
        else:
            wait_listening(lab.n1, p, ready)

    return _pair(lab, server, client, await_listening, env, timeout, user=user, stays=stays)


# What programs print on slow hosts. perftest and qperf ask the client to connect just before they listen; a client that
# is faster fails, perftest's with a segmentation fault. perftest compares clocks, and gives up if it was preempted.
TOO_SLOW = re.compile("RDMA_CM_EVENT_REJECTED; error: 8|unexpected event from RDMA CM: Event rejected|Correlation coefficient r\\^2")
ATTEMPTS = 20


# Seconds between two looks for what Soft-RoCE (seen on 6.12) may do, even without the library: stop in the middle of a
# message. The receiver then has what the sender should repeat, and does not (limits.rst).
_STUCK = 5


def _stuck(lab):
    """{(machine, queue pair, next number to send, next number wanted)} of those that should repeat what has arrived."""
    found = [re.findall(r"lqpn (\d+) rqpn (\d+) type RC state RTS rq-psn (\d+) sq-psn (\d+) .*pid", node.run("rdma resource show qp").out)
             for node in (lab.n1, lab.n2)]
    ends = [{number: (peer, int(wanted), int(sent)) for number, peer, wanted, sent in end} for end in found]
    return {(here, number, sent, ends[not here][peer][1]) for here in (0, 1) for number, (peer, _, sent) in ends[here].items()
            if peer in ends[not here] and 0 < (ends[not here][peer][1] - sent) % (1 << 24) < 1 << 23}


def _run_client(lab, client, env, timeout, user):
    """Runs a client on the second machine; returns its Result, or None (killed) if Soft-RoCE stopped."""
    p = lab.n2.spawn(client, env=env, user=user)
    p.close_stdin()
    before, left = set(), timeout
    while True:
        try:
            return p.wait(min(left, _STUCK))
        except CommandTimeout:
            left -= _STUCK
            now = _stuck(lab)
            if now & before:
                print(f"      Soft-RoCE does not go on: {now & before}")
                p.kill()
                p.wait()
                return None
            if left <= 0:
                raise
            before = now


def _pair(lab, server, client, await_listening, env, timeout, user=None, forgiven=None, stays=False):
    def is_good(end):
        return end.rc == 0 or (forgiven and forgiven in end.err)

    for _ in range(ATTEMPTS):
        p = lab.n1.spawn(server, env=TALKING if env is None else env, user=user)
        await_listening(p)
        done = _run_client(lab, client, TALKING if env is None else env, timeout, user)
        # A server may wait for ever for a client that has failed.
        if stays or not done or not is_good(done):
            p.kill()
        p.wait(timeout=timeout)
        if done and not any(TOO_SLOW.search(end.out + end.err) for end in (done, p)):
            break
    assert done, f"{client}: Soft-RoCE has stopped {ATTEMPTS} times"
    for end in (done,) if stays else (done, p):
        assert is_good(end), f"{client}: {done.out}{done.err}\nserver: {p.out}{p.err}"
    if env is None:
        assert_used(done, p)
    return p.out + done.out


def _listeners(node):
    """{number: process} of the listeners of the RDMA CM on a machine, without the kernel's."""
    return dict(re.findall(r"cm-idn (\d+) .*state LISTEN .*pid (\d+)", node.run("rdma resource show cm_id").out))


def _is_listening(node, before):
    new = [pid for number, pid in _listeners(node).items() if number not in before]
    # The state changes before the port can be reached. When the process sleeps, it has done the rest.
    return new and node.run(f"grep -q 'State:.S' /proc/{new[0]}/status", check=False).ok


def rdmacm_pair(lab, server, client, env=None, timeout=60, forgiven=None):
    """As pair(), but the server listens with the RDMA CM. `forgiven` is a message with which either may fail."""
    before = _listeners(lab.n1)

    def await_listening(p):
        wait_until("it listens", lambda: _is_listening(lab.n1, before) or not p.running, 60, lab.n1.time_scale)
        assert p.running, p.out + p.err

    return _pair(lab, server, client, await_listening, env, timeout, forgiven=forgiven)


def check(lab, what, rounds, options="", env=None, mb=8, timeout=120, user=None):
    """Runs the checker between the machines, which must find no error. Returns what it printed."""
    seed = lab.rng.getrandbits(31)
    out = pair(lab, f"{CHECKER} serve {options} 7000 {mb}",
               f"{CHECKER} use {options} {lab.n1.ip} 7000 {seed} {rounds} {what}", "ready", env=env, timeout=timeout, user=user)
    print(out)
    assert out.endswith("good\n"), out
    return out
