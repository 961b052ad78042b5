# SPDX-License-Identifier: MIT
"""Shared by tests that run programs/locks, which takes locks."""

import contextlib
import re

from litelab import on_machines, patient, program_path, wait_until


def calm(lab, **options):
    """A cluster in which no node counts as dead by mistake, however busy the host is."""
    return on_machines(lab, **{**patient(lab.n1), **options})


def mortal(lab):
    """A cluster in which a node that dies is soon missed, but not one that gets no processor for some seconds."""
    return on_machines(lab, dead=10000 * lab.kernel.time_scale)


def spawn(lite, *words, user="root"):
    return lite.vm.spawn([program_path("locks"), "--index", str(lite.index), *(str(word) for word in words)], user=user)


def alloc(lite, name, *homes, size="64K", mode="0600"):
    lite.lite("alloc", name, size, "--node", ",".join(str(home.id) for home in homes), "--mode", mode)


def idle(lites):
    for lite in lites:
        lite.check_idle()


def word(lite, name, offset):
    return int(lite.lite("fetch-or", name, offset, 0).out)


def free(lite, name, offset=0):
    """Waits until the word is free: the home gives it back after it has answered the last RELEASE."""
    wait_until("the word is free", lambda: not word(lite, name, offset), 20, lite.vm.time_scale)


def holder(lite, name, *words, said="held", what="hold", user="root"):
    """Starts a process, and waits until it holds the lock (or many locks)."""
    process = spawn(lite, what, name, *words, user=user)
    process.wait_output(said, timeout=30)
    return process


def claims(home, wanted):
    """Waits until the home knows this many claims, of owners and waiters."""
    wait_until(f"{wanted} claims", lambda: home.stats()["lock_claims"] == wanted, 20, home.vm.time_scale)


def claims_before_its_end(process, home, wanted):
    """Waits until the home knows this many claims; returns whether the process has not ended before."""
    wait_until(f"{wanted} claims", lambda: home.stats()["lock_claims"] == wanted or not process.running, 20,
               home.vm.time_scale)
    return process.running


def waiter(lite, name, home, before, *words):
    """Starts a process, and waits until it waits for the lock behind `before` claims."""
    process = spawn(lite, "hold", name, *words)
    claims(home, before + 1)
    return process


def let_go(process, said="ok"):
    """Makes a holder release its lock."""
    process.write(b"\n")
    assert process.wait(30, check=True).out.split()[-1] == said, process.out


def last(process, timeout=30):
    return process.wait(timeout, check=True).out.split()[-1]


def crowd(lite, name, count, *words, user="root"):
    """Starts a process that takes as many shared holds of a word as it gets. Returns the process, the number of holds,
    the errno that ended that, and what else it says."""
    process = spawn(lite, "crowd", name, "--count", count, *words, user=user)
    process.wait_output("\n", timeout=600)
    taken, refused, *more = process.out.split()
    return process, int(taken), refused, [int(word) for word in more]


@contextlib.contextmanager
def traced(lite):
    """Yields a list, filled at the end of the context: (what, node, ticket, status) of each event of locks at a
    machine, or of the last ones if there are very many."""
    base, events = "/sys/kernel/tracing", []
    lite.vm.run(f"echo 8192 >{base}/buffer_size_kb; echo >{base}/trace; echo 1 >{base}/events/lite/lite_lock/enable")
    try:
        yield events
    finally:
        lite.vm.run(f"echo 0 >{base}/events/lite/lite_lock/enable")
        text = lite.vm.run(f"grep lite_lock: {base}/trace", timeout=60, check=False).out
        lite.vm.run(f"echo >{base}/trace; echo 1408 >{base}/buffer_size_kb")
        for found in re.finditer(r"lite_lock: (\w+) id=\d+ offset=\d+ node=(\d+) ticket=(\d+) status=(-?\d+)", text):
            events.append((found[1], int(found[2]), int(found[3]), int(found[4])))


def check_order(events):
    """Checks that the home has granted a lock to claims in their order of arrival, leaving out those that ended before.
    Returns the number of grants."""
    queue, granted = [], 0
    for what, node, ticket, _ in events:
        who = (node, ticket)
        if what == "queue":
            queue.append(who)
        elif what == "grant" and who in queue:
            assert queue[0] == who, (who, queue)
            queue.pop(0)
            granted += 1
        elif what == "end" and who in queue:
            queue.remove(who)
    return granted
