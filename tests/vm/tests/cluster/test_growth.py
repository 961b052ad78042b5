# SPDX-License-Identifier: MIT
"""How costs grow with the number of nodes: memory and queue pairs per idle peer; making, listing and freeing LMRs."""

import statistics

from litelab import memory_kb, nodes_in, prepare_all, program_path, rdma_objects, wait_complete
from vmlab.testing import vmtest

setup = prepare_all

_COUNT = 20  # LMRs
_MOST = 32  # nodes
_PATIENCE = 600  # seconds: the times are printed, but not checked


def _calls(lites):
    return sum(lite.stats()["calls"] for lite in lites)


def _measure(vm, n):
    lites = nodes_in(vm, n)
    # Heartbeats are calls, too, so they must be rare.
    for lite in lites:
        lite.start(heartbeat=1_000_000, dead=3_000_000, op_timeout=100_000)
    alone_kb, _ = memory_kb(vm)
    for lite in lites[1:]:
        lite.forget()
        # Each join connects to all members, and all nodes share the processors.
        lite.ctl("join", lites[0].address, "--timeout", "500s", timeout=_PATIENCE)
    wait_complete(lites, timeout=_PATIENCE)
    ends = n * (n - 1)
    kb = (alone_kb - memory_kb(vm)[0]) / ends
    qps = rdma_objects(vm)["qp"] / ends
    before = _calls(lites)
    said = vm.run([program_path("growth"), "0", str(_COUNT)], timeout=_PATIENCE).out
    calls = (_calls(lites) - before) / _COUNT
    took = {words[0]: statistics.median(float(word) for word in words[1:]) for words in map(str.split, said.splitlines())}
    print(f"      {n:2} nodes: {kb:4.0f} KB, {qps:.1f} queue pairs a peer; {calls:5.1f} calls for an LMR; create "
          f"{took['create']:6.0f} us, list {took['list']:6.0f} us, free {took['free']:6.0f} us", flush=True)
    for lite in lites:
        lite.stop(timeout=_PATIENCE)
    return kb, qps, calls


@vmtest(nodes=1, cpus=2, mem_mb=4096, fresh=True, slow=True, timeout=7200, kernels=("6.1", "6.12"))
def test_3_to_32_nodes_in_one_machine(lab):
    """The cost of an idle peer is constant; an LMR costs a few calls to each member."""
    vm = lab.n1
    vm.add_addresses(_MOST)
    figures = {n: _measure(vm, n) for n in (3, 8, 16, _MOST)}
    for n, (kb, qps, calls) in figures.items():
        # Including the memory of Soft-RoCE's queue pairs.
        assert kb < 1500 and qps <= 4, figures
        # PROBE, LIST and DROP to each other member; ENTER at the directory; the rest of the list of one home; repeats.
        assert calls <= 3 * (n - 1) + 4, figures
