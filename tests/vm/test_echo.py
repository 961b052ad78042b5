# SPDX-License-Identifier: MIT
"""Calls beside what others do: native verbs, TCP and gRPC, on the same machines, in the same run, taking turns."""

import json
import os

from litelab import on_machines, prepare_all
from vmlab.testing import vmtest

setup = prepare_all

_SIZES = "8,64,4096"


def _measure(first, second, arms, workloads, rounds, count, sizes=_SIZES, baseline="write-imm"):
    """{(workload, size): {label: outcome}}, as lite-perf reports it."""
    served = ",".join(arm for arm in arms if arm != "lite")
    server = second.vm.run(f"lite-perf serve --background --bind {second.address} --arms {served}").out
    try:
        out = first.vm.run(f"lite-perf run --server {second.address} --node {second.id} --arms {','.join(arms)} "
                           f"--workload {workloads} --sizes {sizes} --rounds {rounds} --count {count} "
                           f"--baseline {baseline} --json - --quiet", timeout=500).out
    finally:
        second.vm.run(["kill", server.split()[-1]])
    return {(result["workload"], result["size"]): {outcome["label"]: outcome for outcome in result["outcomes"]}
            for result in json.loads(out)["results"]}


def _show(results):
    for (workload, size), outcomes in results.items():
        parts = []
        for label, outcome in outcomes.items():
            ratio = outcome.get("ratio")
            said = f" = {ratio['value']:.2f} x [{ratio['low']:.2f}, {ratio['high']:.2f}]" if ratio else ""
            parts.append(f"{label} {outcome['median']:.0f}{said}")
        print(f"      {workload} {size} B: {'; '.join(parts)}")


@vmtest(kernels=("6.1",), fresh=True, timeout=600)
def test_native_echoes(lab):
    """That the arms work, and what they need: figures, not a verdict."""
    first, second = on_machines(lab, heartbeat=1000, dead=10000)
    rounds = int(os.environ.get("LITE_ECHO_ROUNDS", "3"))
    results = _measure(first, second, ["tcp", "write-imm", "send"], "rpc-latency,rpc-rate", rounds, rounds * 50)
    _show(results)
    for size in (8, 64, 4096):
        assert set(results["rpc-latency", size]) == {"tcp", "write-imm", "send"}, results
        assert set(results["rpc-rate", size]) == {f"{arm}{many}" for arm in ("tcp", "write-imm", "send")
                                                  for many in ("", " x4", " x16")}, results
