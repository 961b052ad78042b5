# SPDX-License-Identifier: MIT
"""Requests and replies that are passed by reference instead of through rings."""

import hashlib
import signal

from litelab import (dead_seconds, in_one_machine, module_path, nodes_in, on_machines, prepare_all, run_catch, serve,
                     stop_all, wait_until)
from vmlab.testing import vmtest

setup = prepare_all


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=400)
def test_two_nodes_in_one_machine(lab):
    stop_all(nodes_in(lab.n1))
    # One of the cases takes all of this memory.
    lites = in_one_machine(lab.n1, 2, mem_limit="160M")
    run_catch(lab, lites, "bulk_test", timeout=380, case_timeout=200)
    for lite in lites:
        lite.check_idle()
    stop_all(lites)


@vmtest(nodes=2, mem_mb=768, timeout=200)
def test_command_line(lab):
    here, there = on_machines(lab)
    echo = serve(there, "echo", "--echo", "--length", "4M")
    here.vm.run("head -c 3000001 /dev/urandom >/tmp/data")  # in several pieces, each in several batches
    here.vm.run(f"lite call -l 4M -t 60000 {there.id} echo - </tmp/data >/tmp/back && cmp /tmp/data /tmp/back", timeout=90)
    said = here.vm.run(f"lite call -l 2M -t 60000 {there.id} echo - </tmp/data | wc -c", timeout=90)
    assert said.out.strip() == "0" and "larger than the buffer" in said.err, said
    echo.kill(signal.SIGTERM)
    echo.wait(20)
    summed = serve(there, "sum", "--exec", "md5sum", "--length", "4M")
    wanted = here.vm.run("md5sum </tmp/data").out
    assert here.vm.run(f"lite call -t 60000 {there.id} sum - </tmp/data", timeout=90).out == wanted
    summed.kill(signal.SIGTERM)
    summed.wait(20)
    for lite in (here, there):
        lite.check_idle()


@vmtest(nodes=2, mem_mb=768, fresh=True, timeout=200)
def test_a_node_dies(lab):
    """When the server's node dies in the middle of a call, the caller's node releases all that the call holds."""
    here, there = on_machines(lab)
    serve(there, "2000", "--echo", "--length", "32M")
    here.vm.run("head -c 33554432 /dev/zero >/tmp/data")
    # The death must end these calls, not a time-out on a slow host.
    loop = f"while lite call -t 120000 -l 32M {there.id} 2000 - </tmp/data >/dev/null; do :; done"
    calls = here.vm.spawn(["sh", "-c", loop])
    wait_until("calls are under way", lambda: here.stats()["rpc_bulk_bytes"] > 0, 20)
    there.vm.crash()
    calls.wait(30 + 3 * dead_seconds(here.vm))
    assert "down" in calls.err, calls.err
    here.check_idle()


@vmtest(nodes=2, mem_mb=768, timeout=200)
def test_kernel_functions(lab):
    """A kernel module serves a function with long requests and replies: the example, which sorts."""
    here, there = on_machines(lab)
    there.vm.insmod(module_path(there.vm, "kcalls"))
    here.vm.run("head -c 300000 /dev/urandom >/tmp/data")
    data = here.vm.run("cat /tmp/data | base64 -w0 | tee /tmp/text").out
    # The sort function replies with the caller's node id as status, which is not 0.
    said = here.vm.run(f"lite call -l 1M -t 60000 {there.id} kcalls-sort - </tmp/text >/tmp/sorted", timeout=60, check=False)
    assert f"the server says {here.id}" in said.err, said.err
    wanted = hashlib.md5("".join(sorted(data)).encode()).hexdigest()
    assert here.vm.run("md5sum </tmp/sorted").out.split()[0] == wanted
    there.vm.rmmod("kcalls")
    for lite in (here, there):
        lite.check_idle()
