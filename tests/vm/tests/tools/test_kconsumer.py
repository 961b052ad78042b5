# SPDX-License-Identifier: MIT
"""Kernel modules that use LITE. They test themselves when they are loaded."""

import errno
import re

from litelab import in_one_machine, module_path, on_machines, prepare_all
from vmlab.testing import vmtest

setup = prepare_all


def _load(vm, **parameters):
    result = vm.run(["insmod", module_path(vm, "kconsumer"), *(f"{k}={v}" for k, v in parameters.items())], check=False)
    log = vm.run("dmesg").out
    if result.ok:
        vm.rmmod("kconsumer")
    return result, [line for line in log.splitlines() if "kconsumer:" in line]


def _says(line, number):
    """Whether the line reports this errno. Debug kernels (without CONFIG_SYMBOLIC_ERRNAME) print numbers."""
    return errno.errorcode[number] in line or f" -{number}" in line


def test_on_another_machine(lab):
    first, second = lites = on_machines(lab)
    far, near = second.id, first.id
    for node, size in ((far, 1 << 20), (far, 16), (far, (8 << 20) + 5), (near, 4096), (0, 1 << 20)):
        result, log = _load(first.vm, node=node, size=size)
        assert result.ok, (result.err, log[-3:])
        assert re.search(rf"{size} bytes on node \d+ written, read back and verified", log[-1]), log[-1]
    for lite in lites:
        lite.check_idle()


def test_named(lab):
    first, second = on_machines(lab)
    result, log = _load(first.vm, node=second.id, name="from-the-kernel")
    assert result.ok, log[-3:]
    assert not first.names()
    first.lite("alloc", "taken", 10)
    result, log = _load(first.vm, node=second.id, name="taken")
    assert not result.ok and _says(log[-1], errno.EEXIST), log[-3:]
    first.lite("free", "taken")


def test_it_fails_as_a_process_does(lab):
    first, _ = on_machines(lab)
    result, log = _load(first.vm, node=4321)
    assert not result.ok and _says(log[-1], errno.EHOSTUNREACH), log[-3:]
    result, log = _load(first.vm, index=9)
    assert not result.ok and _says(log[-1], errno.ENODEV), log[-3:]


@vmtest(nodes=1, cpus=2)
def test_lite_cannot_be_unloaded_under_it(lab):
    lites = in_one_machine(lab.n1)
    lab.n1.insmod(module_path(lab.n1, "kconsumer"), index=1, node=lites[2].id)
    for lite in lites:
        lite.stop()
    assert not lab.n1.run("rmmod lite", check=False).ok  # its symbols are in use
    lab.n1.rmmod("kconsumer")
    lab.n1.rmmod("lite")


@vmtest(nodes=1, cpus=2, fresh=True, timeout=400)
def test_mistakes_and_slow_handlers(lab):
    """A function that was found is no later one of its number; addresses without memory are refused; slow handlers keep
    back neither those of other functions nor the end of their own; an LMR has a name, rights, locks and barriers, moves,
    and its owner and nodes are told."""
    lites = in_one_machine(lab.n1, 5)
    lab.n1.run(["insmod", module_path(lab.n1, "client"), f"node={lites[1].id}"], timeout=300)
    lab.n1.rmmod("client")
    print("      " + lab.n1.run("dmesg | grep -o 'client: .*' | tail -1").out.strip())
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=1, cpus=2, fresh=True)
def test_a_node_stops_under_a_function(lab):
    """A node that stops waits for a handler. A client's context, and then its function, outlive the node."""
    lites = in_one_machine(lab.n1, 2)
    lab.n1.insmod(module_path(lab.n1, "client"), hold=1)
    for lite in lites:
        lite.stop()
    lab.n1.rmmod("client")
    assert "client: the call ended: -" in lab.n1.run("dmesg").out
