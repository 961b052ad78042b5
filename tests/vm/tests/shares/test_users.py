# SPDX-License-Identifier: MIT
"""Work that a user begins and cannot finish holds up no other user."""

import errno
import statistics

from litelab import in_one_machine, on_machines, passing, prepare_all, program_path, run_program, stop_all, wait_complete, wait_until
from vmlab.testing import vmtest

setup = prepare_all


@vmtest(nodes=3, timeout=300)
def test_closing_many_files(lab):
    """A user's process dies with hundreds of open files, each of which takes a second to close, because homes wait for a
    silent store. The lock and the function of another user's process are free when that dies."""
    here, home, silent = lites = on_machines(lab, dead=600000 * lab.n1.time_scale)
    vm, program = here.vm, program_path("users")
    here.lite("alloc", "words", "4K", user="bob")
    many = vm.spawn([program, "files", str(here.index), f"{home.id},{silent.id}", "280"], user="alice")
    many.wait_output("ready", timeout=100)
    owner = vm.spawn([program, "owner", str(here.index), "words"], user="bob")
    owner.wait_output("is ready", timeout=20)
    function = owner.out.split()[0]
    silent.vm.pause()
    try:
        for process in (many, owner):
            process.kill()
            process.wait(60)
        assert here.stats()["files"] >= 200, "the files of the other user are closed already"
        said = vm.run([program, "heir", str(here.index), "words", function, str(30000 * vm.time_scale)], user="bob",
                      timeout=100)
        assert said.out.split() == ["EOWNERDEAD", "ECONNREFUSED"], said
        assert here.stats()["files"] >= 200, "the files of the other user were closed meanwhile"
    finally:
        silent.vm.resume()
    wait_complete(lites)
    here.lite("free", "words", user="bob")
    wait_until("all files are closed", lambda: here.stats()["files"] <= 1, 100, vm.time_scale)
    for lite in lites:
        lite.check_idle()
    stop_all(lites)


def _free_beside(lites, many, begun, done, one, is_busy=lambda: True):
    """What process `many` does takes as long as the second node is silent. The LMR of `one` is freed meanwhile."""
    here, silent = lites
    silent.vm.pause()
    try:
        many.write("\n")
        many.wait_output(begun, timeout=60)
        wait_until("the workers are busy", is_busy, 60, here.vm.time_scale)
        one.write("\n")
        one.wait_output("freed", timeout=60)
        assert done not in many.out, f"the first user's are {done} already"
    finally:
        silent.vm.resume()
    for process in (many, one):
        process.wait(100, check=True)


def _end(lites):
    wait_complete(lites)
    for lite in lites:
        lite.check_idle()
    stop_all(lites)


@vmtest(nodes=2, timeout=300)
def test_freeing_many_lmrs(lab):
    """A user's hundreds of LMRs are being freed while their store is silent. Another user's LMR is freed meanwhile."""
    here, silent = lites = on_machines(lab, heartbeat=200_000, dead=600_000, op_timeout=200_000)
    words = [program_path("users"), "frees", str(here.index)]
    many = here.vm.spawn([*words, f"{here.id},{silent.id}", "280"], user="alice")
    one = here.vm.spawn([*words, str(here.id), "1"], user="bob")
    for process in (many, one):
        process.wait_output("ready", timeout=100)
    _free_beside(lites, many, "freeing", "freed", one)
    _end(lites)


@vmtest(nodes=2, timeout=300)
def test_changing_many_lmrs(lab):
    """A user's hundreds of LMRs are being changed while a mapper is silent. Another user's LMR is freed meanwhile, for
    which the home tells the mapper on its own node, too."""
    here, silent = lites = on_machines(lab, heartbeat=200_000, dead=600_000, op_timeout=200_000)
    program = program_path("users")
    many = here.vm.spawn([program, "changes", str(here.index), "280"], user="alice")
    one = here.vm.spawn([program, "frees", str(here.index), str(here.id), "1"], user="bob")
    for process in (many, one):
        process.wait_output("ready", timeout=100)
    mapper = silent.vm.spawn([program, "maps", str(silent.index), "280"], user="alice")
    mapper.wait_output("ready", timeout=100)
    told = here.stats()["revokes"]
    # As many as the user has workers.
    _free_beside(lites, many, "changing", "changed", one, lambda: here.stats()["revokes"] >= told + 112)
    mapper.kill()
    mapper.wait(60)
    _end(lites)


@vmtest(nodes=1, cpus=2, timeout=300)
def test_a_ring_that_another_user_makes(lab):
    """A user's first call to a function is in line behind its other calls. Another user's does not wait for that."""
    here, there = lites = in_one_machine(lab.n1, 2)
    threads, rounds, bind = 200, lab.scale(12, 6), 72  # enum lite_call; a file may have 16 functions
    with passing(lab.n1, f"call={bind} err=-{errno.ECONNREFUSED}", f"call={bind} err=0") as passed:
        run_program(lab, lites, "users", "bind", here.index, there.index, there.id, rounds, threads, timeout=250)
    # In line with the first user's call most of them would pass.
    assert len(passed) >= rounds // 2 and statistics.median(passed) <= threads // 4, passed
    stop_all(lites)


@vmtest(nodes=2, timeout=200)
def test_calls_that_ask_for_rings(lab):
    """A user begins hundreds of calls at once, each of a function at a silent node that it has not called before.
    Another user's call begins meanwhile."""
    # However slow the test is, the node must not become suspect, which would end the waits.
    here, silent = lites = on_machines(lab, heartbeat=200_000, dead=600_000, op_timeout=200_000)
    silent.vm.pause()
    try:
        many = here.vm.spawn([program_path("crowd"), "binds", str(here.index), str(silent.id), "600"], user="alice")
        many.wait_output("ready", timeout=60)
        words = [program_path("crowd"), "queued", str(here.index), str(here.index), str(here.id), str(60000 * lab.n1.time_scale)]
        assert here.vm.run(words, user="bob", timeout=100).out == "0\n"
        # Another call of the first user gets no worker, but ends in time.
        words[-1] = str(500 * lab.n1.time_scale)
        assert here.vm.run(words, user="alice", timeout=40).out == f"{-errno.ETIMEDOUT}\n"
        assert here.stats()["calls_inflight"], "the other user's calls do not wait any more"
    finally:
        silent.vm.resume()
    many.close_stdin()
    many.wait(60, check=True)
    wait_complete(lites)
    for lite in lites:
        lite.check_idle()
    stop_all(lites)


@vmtest(nodes=2, timeout=200)
def test_a_command_in_vain_is_cancelled(lab):
    """A call without a time-out asks a silent node for a ring, or waits for that node while it is suspect."""
    here, silent = lites = on_machines(lab, dead=600000 * lab.n1.time_scale)
    connections = here.stats()["conns"]
    silent.vm.pause()
    try:
        for state in ("up", "suspect"):
            caller = here.vm.spawn([program_path("users"), "cancel", str(here.index), str(silent.id), "2000"])
            caller.wait_output("begun", timeout=20)
            if state == "suspect":
                wait_until("the node is suspect", lambda: here.stats()["conns"] < connections, 60, here.vm.time_scale)
            wait_until("a worker is in the call", lambda: "iou-wrk" in here.vm.run(
                "cat /proc/[0-9]*/task/*/comm", check=False).out)
            caller.write("\n")
            caller.wait_output("E", timeout=20)
            assert caller.out.split()[1] in ("EINTR", "ECANCELED"), caller.out
            caller.wait(20, check=True)
    finally:
        silent.vm.resume()
    wait_complete(lites)
    for lite in lites:
        lite.check_idle()
    stop_all(lites)
