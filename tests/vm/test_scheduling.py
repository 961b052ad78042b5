# SPDX-License-Identifier: MIT
"""Threads that seldom get a processor, or never: what others do goes on."""

from litelab import in_one_machine, prepare_all, program_path, run_program, stop_all
from vmlab.testing import vmtest

setup = prepare_all

# The time that is left to ordinary threads, which the program has taken from them.
_SHARE = "echo 950000 > /proc/sys/kernel/sched_rt_runtime_us"


@vmtest(nodes=1, cpus=2, timeout=200)
def test_a_node_stops_beside_a_real_time_thread(lab):
    """Which never leaves one of the processors to others. See lite_cq_barrier()."""
    lites = in_one_machine(lab.n1, 2)
    hog = lab.n1.spawn([program_path("starved"), "occupy", "1"])
    try:
        hog.wait_output("ready")
        stop_all(lites)
        assert hog.running, "the thread that occupies a processor has gone"
    finally:
        hog.kill()
        lab.n1.run(_SHARE)


@vmtest(nodes=1, cpus=2, kernels=("6.1", "6.12"), kernel_args=("preempt=full",), timeout=300)
def test_messages_wait_for_no_thread_without_a_processor(lab):
    """A thread that has taken completions of others lets their handlers run before it loses its processor."""
    lites = in_one_machine(lab.n1, 2)
    try:
        run_program(lab, lites, "starved", "receive", 0, 1, lites[1].id, timeout=200)
    finally:
        lab.n1.run(_SHARE)
    stop_all(lites)
