# SPDX-License-Identifier: MIT
"""Fault injection, on debug kernels: each allocation and user copy of a call fails, and some in LITE's threads."""

import json

from litelab import (in_one_machine, join_all, nodes_in, prepare_all, program_path, rdma_objects, run_catch, run_program,
                     stop_all, times)
from vmlab import CommandFailed
from vmlab.testing import vmtest

setup = prepare_all

_DEBUG = ("debug", "debug2")


def _arm(vm):
    """With fail-nth, sleeping allocations fail, too, and failures are not logged."""
    vm.run("cd /sys/kernel/debug; for f in failslab fail_page_alloc fail_usercopy; do "
           "echo 0 >$f/verbose; echo 0 >$f/probability; done; "
           "echo N >failslab/ignore-gfp-wait; echo N >fail_page_alloc/ignore-gfp-wait; "
           "echo 0 >fail_page_alloc/min-order")


@vmtest(nodes=1, cpus=2, kernels=_DEBUG, timeout=500)
def test_every_ioctl(lab):
    lites = in_one_machine(lab.n1, unpinned=True)
    _arm(lab.n1)
    lab.n1.kmemleak_clear()
    print(run_program(lab, lites, "failnth", "--samples", 200, "ioctls", timeout=490).out)
    for lite in lites:
        lite.check_idle()
    # A node that allows no unpinned LMRs refuses their flags as unknown.
    stop_all(lites)
    lites = in_one_machine(lab.n1)
    run_catch(lab, lites, "abi_test", "[structs]")
    stop_all(lites)
    lab.n1.kmemleak_scan()


@vmtest(nodes=1, cpus=2, kernels=_DEBUG, timeout=500)
def test_every_ioctl_while_operations_wait(lab):
    """The same while operations wait for their turn behind those of another user."""
    lites = in_one_machine(lab.n1, unpinned=True)
    _arm(lab.n1)
    lab.n1.kmemleak_clear()
    first, second = lites[:2]
    first.lite("alloc", "crowd", "16M", "--node", second.id, "--mode", "0666")
    qos = lambda *words: lab.n1.run(["litectl", "qos", *words, "-i", str(first.index)]).out
    qos("set", "--mode", "fair")
    stream = lab.n1.spawn([program_path("queues"), "stream", "crowd", "0", str(1 << 20), "12", "0"], user="alice",
                          env={"LITE_INDEX": str(first.index)})
    stream.wait_output("ready", timeout=100)
    print(run_program(lab, lites, "failnth", "--samples", 40, "ioctls", timeout=490).out)
    waited = json.loads(qos("show", "-j"))["tenants"]
    assert [tenant for tenant in waited if tenant["uid"] != 1000 and tenant["slices"]], waited
    stream.close_stdin()
    stream.wait(100, check=True)
    qos("set", "--mode", "none")
    first.lite("free", "crowd")
    for lite in lites:
        lite.check_idle()
    lab.n1.kmemleak_scan()


@vmtest(nodes=1, cpus=2, kernels=_DEBUG, timeout=500)
def test_every_call_of_functions(lab):
    lites = in_one_machine(lab.n1, unpinned=True)
    _arm(lab.n1)
    lab.n1.kmemleak_clear()
    print(run_program(lab, lites, "failnth", "--samples", 60, "rpc", timeout=490).out)
    for lite in lites:
        lite.check_idle()
    lab.n1.kmemleak_scan()


@vmtest(nodes=1, cpus=2, kernels=_DEBUG, timeout=500)
def test_every_membership_command(lab):
    stop_all(nodes_in(lab.n1))  # those of the last test
    lites = in_one_machine(lab.n1, 2)
    spare = nodes_in(lab.n1, 5)[4]
    _arm(lab.n1)
    objects = rdma_objects(lab.n1)
    lab.n1.kmemleak_clear()
    print(run_program(lab, lites, "failnth", "--samples", 40, "membership", "rxe1", spare.address, lites[0].address,
                      timeout=490).out)
    for lite in lites:
        lite.wait_states({lite.id: "up" for lite in lites})
    assert rdma_objects(lab.n1) == objects
    lab.n1.kmemleak_scan()
    stop_all(lites)


@vmtest(nodes=1, cpus=2, kernels=_DEBUG, timeout=400)
def test_failures_in_the_threads_of_lite(lab):
    """LITE's threads have no caller to return an error to. They must tell the peer, or try again, but never hang."""
    vm = lab.n1
    lites = in_one_machine(vm)
    _arm(vm)
    # One allocation in fifty fails in LITE's threads and in kworkers, once they are marked.
    mark = ("for p in /proc/[0-9]*; do read -r name <$p/comm; "
            "case $name in kworker*|lite-*) echo {} >$p/make-it-fail; esac; done 2>/dev/null; true")
    # The RDMA CM's own allocations for a new connection do not fail: it would destroy the connection while it holds the
    # listener's lock, which is of the same class, and lockdep would complain (cma_ib_new_conn_id() in 6.1). Those of
    # LITE's handler, which the CM calls there, are deeper in the stack and do fail.
    vm.run("cd /sys/kernel/debug/failslab && "
           "set -- $(sort /proc/kallsyms | grep -A1 -w 'cma_ib_req_handler' | grep -v cold | cut -d' ' -f1) && "
           "echo 0x$1 >reject-start && echo 0x$2 >reject-end && echo 6 >stacktrace-depth")
    vm.run("cd /sys/kernel/debug/failslab && "
           "echo Y >task-filter && echo -1 >times && echo 1 >interval && echo 2 >probability")
    vm.run(mark.format(1))
    failures = 0
    try:
        for number in range(lab.scale(300, 60)):
            home = lites[number % 3]
            for words in (["alloc", "shaky", "200K", "--node", home.id], ["write", "shaky", 0, "data"],
                          ["read", "shaky", 0, 4], ["ls"], ["free", "shaky"]):
                try:
                    lites[(number + 1) % 3].lite(*words, timeout=40)
                except CommandFailed as error:
                    assert error.result.rc not in (None, -9), error
                    failures += 1
    finally:
        vm.run(mark.format(0))
        vm.run("cd /sys/kernel/debug/failslab; echo 0 >probability; echo N >task-filter; echo 0 >stacktrace-depth")
    lab.n1.log(f"{failures} commands failed")
    assert failures, "no fault had any effect: is anything injected?"
    stop_all(lites)
    for lite in lites:
        lite.start(**times(vm))
    join_all(lites)
    for lite in lites:
        lite.check_idle()
