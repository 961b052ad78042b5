# SPDX-License-Identifier: MIT
"""Fences (Documentation/interfaces/ordering.rst). Soft-RoCE writes to memory in order, so data cannot show the effect
of a fence. The tests count what a fence posts instead: a read on each queue pair to each node."""

from litelab import in_one_machine, nodes_in, prepare_all, run_catch, stop_all
from vmlab.testing import vmtest

setup = prepare_all


# Queue pairs of each connection: Soft-RoCE has one more than requested, for reads and atomics (lite_conn_qps()).
_ASKED = 3
_MADE = _ASKED + 1


def _flushes(lab, lites, tag):
    before = lites[0].stats()["flushes"]
    run_catch(lab, lites, "ordering_test", tag)
    return lites[0].stats()["flushes"] - before


@vmtest(nodes=1, cpus=2, timeout=200)
def test_three_nodes_in_one_machine(lab):
    stop_all(nodes_in(lab.n1))
    lites = in_one_machine(lab.n1, qps=_ASKED)
    assert _flushes(lab, lites, "[once]") == 2 * _MADE
    assert _flushes(lab, lites, "[all]") == 2 * _MADE
    run_catch(lab, lites, "ordering_test", "[fence]", timeout=180)
    # A node that is down needs no fence, because no process there could see anything.
    lites[2].stop()
    # One other node, and the node's connection to itself, which its atomics have made.
    assert _flushes(lab, lites[:2], "[all]") == 2 * _MADE
    stop_all(lites[:2])
