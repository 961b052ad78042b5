# SPDX-License-Identifier: MIT
"""Pools that all users of a node share (limits.rst): one user takes all it can, others get theirs."""

from litelab import in_one_machine, prepare_all, run_catch
from vmlab.testing import vmtest

setup = prepare_all


@vmtest(nodes=1, cpus=2, mem_mb=768, timeout=300)
def test_three_nodes_in_one_machine(lab):
    lites = in_one_machine(lab.n1)
    run_catch(lab, lites, "pools_test", timeout=280, case_timeout=120)
    for lite in lites:
        lite.check_idle()
