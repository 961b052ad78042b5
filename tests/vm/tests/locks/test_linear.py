# SPDX-License-Identifier: MIT
"""Atomics on words are linearizable: many threads on several nodes record what they do, and a checker (tests/lin) looks
for an order that explains it. All these threads are in one machine, so that they share a clock."""

import time

from litelab import (Lite, beside_bulk, in_one_machine, join_all, patient, prepare_all, program_path, stop_all, times,
                     wait_complete, wait_until)
from vmlab import CommandFailed
from vmlab.testing import vmtest

setup = prepare_all


def _nodes(lab):
    """Three nodes in one machine. However busy the host is, no operation has an unknown end."""
    return in_one_machine(lab.n1, **patient(lab.n1))


def _words(lite, name, home, length=4096):
    lite.lite("alloc", name, length, "--node", home.id)


def _record(lab, lites, name, threads, count, *words):
    """Starts the recording program for those of these nodes that are in the first machine."""
    here = ",".join(str(lite.index) for lite in lites if lite.vm is lab.n1)
    command = [program_path("histories"), name, "--indexes", here, "--threads", threads, "--count", count,
               "--seed", lab.rng.getrandbits(32), *words]
    return lab.n1.spawn([str(word) for word in command])


def _outcome(process, timeout):
    """(operations, operations with an unknown result). Fails unless the history is linearizable."""
    counts = process.wait(timeout, check=True).out.split()[-2:]
    return tuple(int(count) for count in counts)


@vmtest(nodes=1, cpus=2, mem_mb=768, timeout=300)
def test_three_nodes(lab):
    """All nodes use words on a node chosen at random, with --thorough on each."""
    lites = _nodes(lab)
    for home in lab.rng.sample(lites, round(len(lites) * lab.part)):
        _words(lites[0], "words", home)
        total, unknown = _outcome(_record(lab, lites, "words", 4, lab.scale(500, 20)), 100)
        print(f"      home {home}: {total} operations")
        assert not unknown, unknown
        lites[0].lite("free", "words")
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=1, cpus=2, mem_mb=768, timeout=300)
def test_on_nodes_that_schedule(lab):
    """The atomics wait for their turns behind bulk of a higher class, and pass other bulk."""
    lites = _nodes(lab)
    with beside_bulk(lites) as has_waited:
        while True:
            _words(lites[0], "words", lites[1])
            total, unknown = _outcome(_record(lab, lites, "words", 4, lab.scale(250, 20)), 200)
            print(f"      {total} operations")
            assert total and not unknown, (total, unknown)
            lites[0].lite("free", "words")
            if has_waited():
                break
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=1, cpus=2, mem_mb=768, timeout=300)
def test_a_wrong_answer_is_found(lab):
    """The test above fails if a single result is wrong."""
    lites = _nodes(lab)
    _words(lites[0], "words", lites[1])
    try:
        _outcome(_record(lab, lites, "words", 4, lab.scale(500, 20), "--spoil"), 100)
    except CommandFailed as failure:
        assert failure.result.rc == 1 and "not linearizable: word 0x" in failure.result.err, failure
    else:
        raise AssertionError("nothing was found")
    lites[0].lite("free", "words")


@vmtest(nodes=1, cpus=2, mem_mb=768, timeout=400)
def test_moved_meanwhile(lab):
    """The words move from node to node without pause."""
    lites = _nodes(lab)
    _words(lites[0], "words", lites[0])
    running = _record(lab, lites, "words", 4, lab.scale(3000, 30, always=True), "--until-told")
    running.wait_output("running", timeout=60)
    for move in range(9):
        lites[move % 3].lite("move", "words", "--node", lites[(move + 1) % 3].id)
    running.write(b"\n")
    total, unknown = _outcome(running, 200)
    print(f"      {total} operations")
    assert total and not unknown, (total, unknown)
    lites[0].lite("free", "words")
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=2, cpus=2, mem_mb=768, timeout=400)
def test_sessions_break_meanwhile(lab):
    """Two nodes of a machine use words in another machine, and the network between them fails now and then. A thread
    that misses the end of an operation does not know whether that took effect; the other threads show it."""
    lab.n1.run("ip addr replace 10.0.0.101/24 dev eth0")
    lites = [Lite(lab.n1), Lite(lab.n1, 1, "10.0.0.101"), Lite(lab.n2)]
    for lite in lites:
        lite.start(**{**times(lite.vm), "dead": 120000 * lab.kernel.time_scale})
    join_all(lites)
    _words(lites[0], "words", lites[2])
    # So many operations that no thread finishes before the test tells it to end.
    running = _record(lab, lites, "words", 4, 50000, "--words", 4, "--until-told")
    running.wait_output("running", timeout=60)

    def count(what):
        return sum(lite.stats()[what] for lite in lites[:2])

    def until(what, name, more):
        wait_until(what, lambda: count(name) >= more or not running.running, 60, lab.kernel.time_scale)
        assert running.running, running.err

    for _ in range(2):
        until("it works", "atomics", count("atomics") + 50)
        # Counted before the cut: soon after it, each thread has a failed operation, and waits for the node.
        failed = count("op_errors")
        lab.n2.cut()
        try:
            until("an operation fails", "op_errors", failed + 1)
        finally:
            lab.n2.cut(False)
    running.write(b"\n")
    total, unknown = _outcome(running, 200)
    print(f"      {total} operations, of which {unknown} with an unknown end")
    assert unknown, total
    wait_complete(lites)
    lites[0].lite("free", "words")
    stop_all(lites)


@vmtest(nodes=2, cpus=2, mem_mb=768, timeout=400)
def test_lost_for_moments(lab):
    """The network fails for moments. Requests are repeated although they were carried out and only the answers lost:
    no answer is taken for another, and nothing is done twice. Other processes verify what they read and write."""
    lab.n1.run("ip addr replace 10.0.0.101/24 dev eth0")
    lites = [Lite(lab.n1), Lite(lab.n1, 1, "10.0.0.101"), Lite(lab.n2)]
    for lite in lites:
        # A moment may be long on a busy host.
        lite.start(**patient(lite.vm))
    join_all(lites)
    _words(lites[0], "words", lites[2])
    users, length, seed = 2, 512 << 10, lab.rng.getrandbits(32)
    _words(lites[0], "slots", lites[2], length)
    recorder = _record(lab, lites, "words", 4, 50000, "--words", 4, "--until-told")
    recorder.wait_output("running", timeout=60)
    others = [lab.n1.spawn([str(word) for word in (
        program_path("slots"), "--index", lites[number % 2].index, "slots", "--length", length, "--users", users,
        "--number", number, "--seed", seed)]) for number in range(users)]

    def count():
        return sum(lite.stats()["atomics"] for lite in lites[:2])

    for _ in range(lab.scale(30 * lab.part, 5)):
        before = count()
        wait_until("it works", lambda before=before: count() >= before + 50, 60, lab.kernel.time_scale)
        assert all(process.running for process in (recorder, *others)), recorder.err
        lab.n2.cut()
        # For a random time: the longer the cut, the more is lost.
        time.sleep(lab.rng.uniform(0.05, 0.4))
        lab.n2.cut(False)
    recorder.write(b"\n")
    total, unknown = _outcome(recorder, 200)
    print(f"      {total} operations, of which {unknown} with an unknown end")
    for process in others:
        process.write(b"\n")
        process.wait(60, check=True)
    for name in ("words", "slots"):
        lites[0].lite("free", name)
    stop_all(lites)
