# SPDX-License-Identifier: MIT
"""Arenas: memory that is registered by a look-up. A block is zeroed before another process gets it."""

import json
import statistics

from litelab import USER_BUILD, block_device, in_one_machine, on_machines, prepare_all, program_path, run_catch
from vmlab.testing import vmtest

setup = prepare_all


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=500)
def test_three_nodes_in_one_machine(lab):
    lites = in_one_machine(lab.n1)
    run_catch(lab, lites, "arena_test", "[arena]", timeout=480, env=block_device(lab.n1))
    for lite in lites:
        lite.check_idle()


@vmtest(timeout=400, mem_mb=512)
def test_two_machines(lab):
    """The same between two machines."""
    lites = on_machines(lab)
    run_catch(lab, lites, "arena_test", "[arena]", timeout=380, env=block_device(lab.n1))
    for lite in lites:
        lite.check_idle()


def _holder(lite, name):
    holder = lite.vm.spawn([program_path("arena_holder"), name, str(lite.index)])
    holder.wait_output("ready")
    return holder


@vmtest(timeout=120)
def test_used_from_the_other_machine(lab):
    here, there = on_machines(lab)
    holder = _holder(here, "range")
    assert there.names() == {"range"}
    there.lite("write", "range", 3 << 20, "from afar")
    assert there.lite("read", "range", 3 << 20, 9).out == "from afar"
    holder.kill(9)
    holder.wait()
    there.check_idle()
    here.check_idle()
    assert not there.names()


@vmtest(timeout=120)
def test_node_stops(lab):
    """A process keeps what it has touched of its arena, and its node does not wait for it."""
    here, there = on_machines(lab)
    holder = _holder(here, "range")
    here.stop()
    holder.close_stdin()
    assert holder.wait(check=True).out.split() == ["ready", "intact", "SIGBUS"], holder.out
    there.stop()


@vmtest(timeout=120, fresh=True)
def test_device_goes_away(lab):
    here = on_machines(lab)[0]
    holder = _holder(here, "range")
    lab.n1.run("rdma link del rxe0", timeout=40)
    assert not here.exists()
    holder.close_stdin()
    assert holder.wait(check=True).out.split() == ["ready", "intact", "SIGBUS"], holder.out
    lab.n1.run("rdma link add rxe0 type rxe netdev eth0")
    lab.n1.rmmod("lite")


@vmtest(timeout=120)
def test_charged_to_the_memory_cgroup(lab):
    """An arena's pages are charged to its process's memory cgroup, which bounds it."""
    here = on_machines(lab)[0]
    vm, box = here.vm, "/tmp/cgroup/box"
    vm.run("mkdir -p /tmp/cgroup; mount -t cgroup2 none /tmp/cgroup; echo +memory >/tmp/cgroup/cgroup.subtree_control; "
           f"mkdir -p {box}")
    try:
        vm.run(f"echo 64M >{box}/memory.max")
        holder = vm.spawn(f"echo $$ >{box}/cgroup.procs; exec {program_path('arena_holder')} boxed {here.index}")
        holder.wait_output("ready")
        charged = int(vm.read(f"{box}/memory.current"))
        assert charged >= 8 << 20, charged
        holder.kill(9)
        holder.wait()
        here.check_idle()  # so that nothing is charged any more
        vm.run(f"echo 7M >{box}/memory.max")
        refused = vm.run(f"echo $$ >{box}/cgroup.procs; exec {program_path('arena_holder')} boxed {here.index}", check=False)
        assert not refused.ok, refused.out
        here.check_idle()
    finally:
        vm.run(f"rmdir {box}; umount /tmp/cgroup", check=False)


def _allreduce(lab, megabytes, timeout):
    """examples/allreduce, with new memory in each round, must be quicker with arenas than with registered memory."""
    lites = on_machines(lab, 4)
    for lite in lites:
        lite.vm.put(USER_BUILD / "examples/allreduce", "/usr/bin/allreduce")

    def median(size, rounds, mode):
        ranks = [lite.vm.spawn(["allreduce", f"sum-{mode}-{size}", str(lite.index), str(rank), str(len(lites)), str(size),
                                str(rounds), mode]) for rank, lite in enumerate(lites)]
        return float([rank.wait(timeout, check=True).out for rank in ranks][0])

    for size in megabytes:
        times = {"arena": [], "register": []}
        for _ in range(5):
            for mode, seen in times.items():
                seen.append(median(size << 20, 5, mode))
        arena, register = (statistics.median(seen) for seen in times.values())
        # Of neighbours, because a busy host delays some.
        ratio = statistics.median(slow / quick for quick, slow in zip(*times.values()))
        print(f"      {size} MB: arena {arena:.0f} us, register {register:.0f} us, ratio {ratio:.2f}")
        # With more memory, nearly all time is the network's, and varies by more than memory costs.
        assert ratio > 1 or size > 4, times
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=4, kernels=("6.1",), alone=True, fresh=True, timeout=500, mem_mb=512)
def test_allreduce_with_fresh_memory(lab):
    """Arenas do not become slower. With --thorough also with more memory."""
    _allreduce(lab, (1, 4) if lab.part == 1 else (1,), 200)


@vmtest(nodes=4, kernels=("6.1",), alone=True, fresh=True, slow=True, timeout=1500, mem_mb=512)
def test_allreduce_of_each_size(lab):
    """The figures in arenas.rst."""
    _allreduce(lab, (1, 4, 16), 600)


@vmtest(nodes=1, kernels=("6.1",), fresh=True, timeout=500, mem_mb=1024, icount=True)
def test_costs(lab):
    """Instructions (on a machine that counts them instead of time) to register in an arena, and for the cycle from
    getting memory to giving it back, beside ibv_reg_mr; with and without deferred unmapping."""
    lite, = on_machines(lab)
    out = lab.n1.run(f"lite-perf run --index {lite.index} --server {lite.address} --node {lite.id} --arms lite,verbs "
                     "--workload arena,arena-cycle --rounds 3 --count 3 --json - --quiet", timeout=450).out
    for result in json.loads(out)["results"]:
        # A microsecond has a thousand instructions.
        costs = {outcome["label"]: outcome["median"] * 1000 for outcome in result["outcomes"]}
        size = result["size"]
        print(f"      {result['workload']}, {size}: " + ", ".join(f"{label} {cost:.0f}" for label, cost in costs.items()))
        if size < 1 << 20:
            continue
        if result["workload"] == "arena":
            # A range of the library's LMR, which peers can use after its end. arenas.rst tells what an own LMR saves.
            assert costs["arena"] * 100 <= costs["ibv_reg_mr"], costs
            assert costs["arena, own LMR"] < costs["lite_register"], costs
        else:
            # The library uses the chunk that it has, or takes one anew.
            assert costs["arena"] * 10 <= costs["arena, eager"], costs
            # The kernel unmaps lazily, or at once.
            assert costs["mmap and own LMR"] * 4 <= costs["mmap and own LMR, eager"], costs
    lite.check_idle(60)
