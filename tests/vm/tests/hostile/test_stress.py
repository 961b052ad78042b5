# SPDX-License-Identifier: MIT
"""Many processes on all nodes do everything at random, while a model knows what every byte and every right must be
(programs/stress). A run has a number of operations, unless LITE_STRESS_SECONDS sets its length."""

import os

from litelab import environment, in_one_machine, on_machines, prepare_all, program_path, program_scale
from vmlab.testing import vmtest

setup = prepare_all

_PORT = 7000
_SECONDS = int(os.environ.get("LITE_STRESS_SECONDS", "0"))


def _stress(lab, lites, operations, each=3):
    words = [program_path("stress"), "coordinate", "--port", _PORT, "--workers", each * len(lites)]
    count = max(500, int(operations * program_scale(lab) * lab.part))
    words += ["--seconds", _SECONDS] if _SECONDS else ["--operations", count, "--check-every", max(400, count // 20)]
    words += ["--patience", 60 * lab.kernel.time_scale]
    coordinator = lites[0].vm.spawn([str(word) for word in words], env=environment(lab, lites))
    coordinator.wait_output("seed")
    workers = []
    for lite in lites:
        words = [program_path("stress"), "work", "--connect", f"{lites[0].vm.ip}:{_PORT}", "--index", lite.index,
                 "--count", each]
        workers.append(lite.vm.spawn([str(word) for word in words], env=environment(lab, [lite])))
    coordinator.wait(_SECONDS + 60 if _SECONDS else 800)
    said = f"{coordinator.out}{coordinator.err}{''.join(worker.err for worker in workers)}"
    assert coordinator.rc == 0, said
    for worker in workers:
        worker.wait(30)
        assert worker.rc == 0, f"{worker.out}{worker.err}"
    print(f"      {coordinator.out.splitlines()[1]}")
    # A run in which a kind of operation never succeeded, or was never refused, has tested little. Short runs may lack
    # the rarest outcomes by chance.
    wanted = ["alloc ok", "map ok", "map EACCES", "map ENOENT", "read ok", "read EACCES", "read EIDRM", "write ok", "write EACCES",
              "f-add ok", "f-and ok", "f-or ok", "set ok", "copy ok", "copy EACCES", "compare ok", "check ok", "grant ok",
              "grant EACCES", "setattr ok", "rename ok", "resize ok", "move ok", "free ok", "unmap ok", "stat ok"]
    if count >= 10000 or _SECONDS:
        wanted += ["alloc EEXIST", "read ERANGE", "swap ok", "copy ERANGE"]
    if count >= 3900 or _SECONDS:
        for what in wanted:
            assert f"  {what} " in said, f"never: {what}\n{said}"
    for lite in lites:
        lite.check_idle(30)


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=900 + _SECONDS)
def test_three_nodes_in_one_machine(lab):
    _stress(lab, in_one_machine(lab.n1), 36000)


@vmtest(nodes=3, mem_mb=512, timeout=900 + _SECONDS, slow=True)
def test_three_machines(lab):
    _stress(lab, on_machines(lab), 8000)
