# SPDX-License-Identifier: MIT
"""From nothing to a cluster and back, again and again in one boot: nothing may be left in the kernel."""

from litelab import (join_all, load, memory_kb, module_path, nodes_in, on_machines, prepare_all, rdma_objects, stop_all,
                     times, traces, wait_until)
from vmlab.testing import vmtest

setup = prepare_all


def _unload(vm):
    vm.rmmod("lite")
    left = traces(vm)
    assert not left, f"{vm.name}: left after rmmod: {left}"
    assert not vm.run("litectl status", check=False).ok


def _life(lites):
    """Start, join, transfer, leave, stop."""
    for lite in lites:
        lite.start(**times(lite.vm))
    join_all(lites)
    lites[0].lite("alloc", "short-lived", "300K", "--node", ",".join(str(lite.id) for lite in reversed(lites)))
    lites[-1].transfers("fill", "short-lived", "--seed", 3)
    lites[0].transfers("verify", "short-lived", "--seed", 3)
    lites[0].lite("fetch-add", "short-lived", 0, 1)
    # The last node leaves while others have its LMR mapped; the others are stopped without leaving first.
    lites[-1].leave()
    for lite in lites:
        lite.stop()


# A whole life as a script in the machine, because starting programs from the host takes most of the time.
_LIFE = """
set -e
insmod {module}
litectl start -i 0 -d rxe1 -a 10.0.1.1 {options}
litectl start -i 1 -d rxe1 -a 10.0.1.2 {options}
litectl join -i 1 10.0.1.1
lite -i 0 alloc short-lived 300K --node 2,1
transfers --index 1 fill short-lived --seed 3
transfers --index 0 verify short-lived --seed 3
litectl leave -i 1
litectl stop -i 1
litectl stop -i 0
rmmod lite
"""


def _lives(lab, rounds, batch):
    vm = lab.n1
    stop_all(nodes_in(vm))
    _unload(vm)
    objects = rdma_objects(vm)
    options = " ".join(f"--{key.replace('_', '-')} {value}" for key, value in times(vm).items())
    life = _LIFE.format(module=module_path(vm), options=options)
    levels = []
    for number in range(0, rounds, batch):
        for _ in range(batch):
            vm.run(life, timeout=60)
        left = traces(vm)
        assert not left, f"after {number + batch} lives: {left}"
        assert rdma_objects(vm) == objects, f"after {number + batch} lives: {objects} -> {rdma_objects(vm)}"
        levels.append(memory_kb(vm))
    load(vm)
    if lab.kernel.is_debug:
        return  # KASAN keeps freed memory for a while; there kmemleak finds leaks
    # Caches have their final size after the first batch. Free memory may be reported more than a megabyte too low, so
    # the best of the last three values counts: a leak lasts.
    available, slab = levels[0]
    available_now, slab_now = max(level[0] for level in levels[-3:]), levels[-1][1]
    # Less than a page, and less than 100 bytes of slab, per life.
    assert available_now > available - rounds * 3 - 1024, f"available memory: {available} -> {available_now} kB"
    assert slab_now < slab + rounds * 0.1 + 512, f"slab: {slab} -> {slab_now} kB"


@vmtest(nodes=1, cpus=2, timeout=600)
def test_lives_in_one_machine(lab):
    _lives(lab, lab.scale(20 * lab.part, 4), lab.scale(4 * lab.part, 1))


@vmtest(nodes=1, cpus=2, timeout=600, slow=True)
def test_a_hundred_lives_in_one_machine(lab):
    _lives(lab, lab.scale(100, 8), lab.scale(10, 2))


@vmtest(nodes=2, timeout=400)
def test_lives_on_two_machines(lab):
    lites = on_machines(lab)
    stop_all(lites)
    for lite in lites:
        _unload(lite.vm)
    for _ in range(lab.scale(4 * lab.part, 1)):
        lab.cluster.each(load)
        _life(lites)
        lab.cluster.each(_unload)
    lab.cluster.each(load)


@vmtest(nodes=2, timeout=120)
def test_unloading_ends_a_join(lab):
    """rmmod ends a join that waits for a silent machine. Else both, and all generic netlink, could wait for an hour."""
    lites = on_machines(lab)
    stop_all(lites)
    vm, nobody = lab.n1, "10.0.0.77"
    lites[0].start(**times(vm))
    vm.run(f"ip neigh replace {nobody} lladdr 02:00:00:00:00:77 dev eth0 nud permanent")
    try:
        joining = vm.spawn(["litectl", "join", "--timeout", "3600000", nobody])
        wait_until("it is joining", lambda: lites[0].status()["state"] == "joining", 10, vm.time_scale)
        vm.rmmod("lite")
        assert not joining.wait(20).ok, joining.out
    finally:
        vm.run(f"ip neigh del {nobody} dev eth0", check=False)
    assert not traces(vm), traces(vm)
    load(vm)


@vmtest(nodes=1, cpus=2, timeout=200)
def test_start_and_stop_alone(lab):
    vm = lab.n1
    lite = nodes_in(vm)[0]
    stop_all([lite])
    objects = rdma_objects(vm)
    for _ in range(lab.scale(24 * lab.part, 3)):
        lite.start(**times(vm))
        lite.stop()
    assert rdma_objects(vm) == objects
    # Failed starts leave nothing either.
    lite.start(**times(vm))
    running = rdma_objects(vm)
    for _ in range(lab.scale(10 * lab.part, 2)):
        assert not lite.start(check=False).ok
    assert rdma_objects(vm) == running
    join_all([lite, *_started(nodes_in(vm)[1:2])])
    stop_all(nodes_in(vm))
    assert rdma_objects(vm) == objects


def _started(lites):
    for lite in lites:
        lite.start(**times(lite.vm))
    return lites
