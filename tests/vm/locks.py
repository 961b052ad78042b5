# SPDX-License-Identifier: MIT
"""Shared by tests that run programs/locks, which takes locks."""

from litelab import program_path, wait_until


def spawn(lite, *words, user="root"):
    return lite.vm.spawn([program_path("locks"), "--index", str(lite.index), *(str(word) for word in words)], user=user)


def alloc(lite, name, *homes, size="64K", mode="0600"):
    lite.lite("alloc", name, size, "--node", ",".join(str(home.id) for home in homes), "--mode", mode)


def idle(lites):
    for lite in lites:
        lite.check_idle()


def word(lite, name, offset):
    return int(lite.lite("fetch-or", name, offset, 0).out)


def holder(lite, name, *words, said="held", what="hold", user="root"):
    """Starts a process, and waits until it holds the lock (or many locks)."""
    process = spawn(lite, what, name, *words, user=user)
    process.wait_output(said, timeout=30)
    return process


def claims(home, wanted):
    """Waits until the home knows this many claims, of owners and waiters."""
    wait_until(f"{wanted} claims", lambda: home.stats()["lock_claims"] == wanted, 20, home.vm.time_scale)


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
