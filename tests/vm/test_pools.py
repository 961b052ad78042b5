# SPDX-License-Identifier: MIT
"""Pools that all users of a node share (limits.rst): one user takes all it can, others get theirs."""

from litelab import in_one_machine, nodes_in, prepare_all, run_catch, stop_all
from vmlab.testing import vmtest

setup = prepare_all


@vmtest(nodes=1, cpus=2, mem_mb=768, timeout=300)
def test_three_nodes_in_one_machine(lab):
    lites = in_one_machine(lab.n1)
    run_catch(lab, lites, "pools_test", timeout=280, case_timeout=120)
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=1, cpus=2, timeout=100)
def test_memory_that_is_kept_for_root(lab):
    """Users that take all that they may have of a node's memory leave a sixteenth of it to root."""
    stop_all(nodes_in(lab.n1))
    lite, = in_one_machine(lab.n1, 1, mem_limit="32M", uid_limit="32M")
    lite.lite("alloc", "most", "29M", user="alice")
    refused = lite.lite("alloc", "more", "2M", check=False, user="alice")
    assert refused.rc == 1 and "is used up" in refused.err, refused
    lite.lite("alloc", "root's", "2M")
    assert not lite.lite("alloc", "too much", "2M", check=False).ok
    for name in ("most", "root's"):
        lite.lite("free", name)
    lite.check_idle()
    stop_all([lite])
