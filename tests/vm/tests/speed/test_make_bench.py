# SPDX-License-Identifier: MIT
"""scripts/bench prepares the machines on which it measures, so this test does not. The results do not matter."""

import importlib.machinery
import importlib.util
import json

from vmlab import ROOT
from vmlab.testing import vmtest

_MEM_MB = 1024
_BUILD = ROOT / "build/guest/bench"


def _bench():
    loader = importlib.machinery.SourceFileLoader("bench", str(ROOT / "scripts/bench"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench", loader))
    loader.exec_module(module)
    return module


@vmtest(fresh=True, kernels=("6.1", "6.12"), mem_mb=_MEM_MB, swap_mb=64)
def test_it_starts(lab):
    bench = _bench()
    for path, program in bench.guest_tools.install(_BUILD).items():
        lab.cluster.run(f"cp /lite/{program.relative_to(ROOT)} {path}")
    client, server = bench.start(lab.cluster, _MEM_MB)
    bench.mount_disk(client)
    result = _BUILD / "result.json"
    bench.measure(client, server, ["--arms", "lite,verbs,tcp,kernel-lite", "--workload", "read-latency,file-cold", "--sizes",
                                   "64", "--file-sizes", "4K", "--pipes", "1", "--pages", "1", "--rounds", "2", "--count", "5"],
                  result)
    latency, cold = (entry["outcomes"] for entry in json.loads(result.read_text())["results"])
    assert {outcome["label"] for outcome in latency} == {"lite", "verbs", "tcp", "kernel-lite"}, latency
    assert "lite 1x1" in {outcome["label"] for outcome in cold}, cold
