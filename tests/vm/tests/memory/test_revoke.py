# SPDX-License-Identifier: MIT
"""Revocation under fire: LMRs are freed while processes on other nodes read and write them all the time, and their
memory is used again at once. LITE_REVOKE_ROUNDS is the number of rounds; --slow adds twice a hundred thousand.
tests/vm/mutate shows that these tests fail without the essential parts of the protocol."""

import contextlib
import os

from litelab import environment, in_one_machine, on_machines, patient, prepare_all, program_path
from vmlab.testing import vmtest

setup = prepare_all

_PROCESSES = 2
_TRACING = "/sys/kernel/tracing"
# Addresses come from a probe, because no interface for users shows them.
_PROBE = "p:litetest/unmap lite:lite_dma_unmap_page dma=$arg2:x64 size=$arg3:u64"
MANY = 100_000


def _patient(lab):
    """Options for machines that are so busy that they may be silent for a while."""
    return {**patient(lab.n1), "heartbeat": 1000 * lab.n1.time_scale}


@contextlib.contextmanager
def _trace(vm):
    """Traces the memory that a machine unmaps. Yields the trace, a file of that machine."""
    vm.run(f"cd {_TRACING}; mkdir instances/litetest; echo '{_PROBE}' >>kprobe_events && "
           "echo 1 >instances/litetest/events/litetest/unmap/enable")
    try:
        yield f"{_TRACING}/instances/litetest/trace_pipe"
    finally:
        vm.run(f"cd {_TRACING}; echo 0 >instances/litetest/events/litetest/unmap/enable; "
               "echo '-:litetest/unmap' >>kprobe_events; rmdir instances/litetest")


def _say(data):
    """Prints progress as the program reports it."""
    print("".join(f"      {line}\n" for line in data.decode().splitlines() if line != "ready"), end="", flush=True)


def _fire(lab, lites, rounds, timeout, at_once=1, most=9 << 20, threads=2, nice=0, here=True):
    """Runs rounds with attackers on all nodes. The first node is the home, and has attackers only with `here`. The
    attackers outnumber the home, so `nice` can raise its priority."""
    rounds = int(os.environ.get("LITE_REVOKE_ROUNDS", rounds))
    seed = lab.rng.getrandbits(32)
    same = ["--seed", seed, "--at-once", at_once, "--most", most]
    env = environment(lab, lites)
    print(f"      {rounds} rounds, seed {seed}")

    def spawn(lite, *words, nice=0, **how):
        command = ["nice", "-n", nice, program_path("revoke"), *same, *words]
        return lite.vm.spawn([str(word) for word in command], env=env, **how)
    home, attacking = lites[0], lites if here else lites[1:]
    with _trace(home.vm) as trace:
        program = spawn(home, "home", "--rounds", rounds, "--attackers", len(attacking) * _PROCESSES * threads,
                        "--trace", trace, nice=nice, on_output=_say)
        program.wait_output("ready")
        attackers = [spawn(lite, "attack", "--index", lite.index, "--processes", _PROCESSES, "--threads", threads)
                     for lite in attacking]
        program.wait(timeout)
        said = [program.err]
        for attacker in attackers:
            # Attackers need not end by themselves if the home has found an error.
            if program.rc:
                attacker.kill()
            attacker.wait(30)
            said += [attacker.out, attacker.err]
    text = "\n".join(line for part in said for line in part.splitlines())
    assert program.rc == 0 and all(attacker.rc == 0 for attacker in attackers), text
    _say(text.encode())
    home.lite("free", "revoke-board")
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=200)
def test_under_fire_in_one_machine(lab):
    """Three nodes attack, even LMRs of which they are home or store themselves."""
    lites = in_one_machine(lab.n1, **_patient(lab))
    _fire(lab, lites, lab.scale(150, 10), timeout=180)


@vmtest(mem_mb=768, timeout=200)
def test_under_fire(lab):
    """The same on two machines, with a network in between."""
    lites = on_machines(lab, **_patient(lab))
    _fire(lab, lites, lab.scale(150, 10), timeout=180)


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=200)
def test_many_at_once_under_fire(lab):
    """While an LMR is freed, many others are in use."""
    lites = in_one_machine(lab.n1, **_patient(lab))
    _fire(lab, lites, lab.scale(256 * lab.part, 32), timeout=180, at_once=lab.scale(32, 8), nice=-15)


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=36000, slow=True, fresh=True)
def test_under_fire_in_one_machine_for_long(lab):
    """Enough rounds to trust the protocol."""
    lites = in_one_machine(lab.n1, **_patient(lab))
    _fire(lab, lites, MANY, timeout=35900, at_once=64, most=64 << 10, threads=1, nice=-15, here=False)


@vmtest(mem_mb=768, timeout=36000, slow=True, fresh=True)
def test_under_fire_for_long(lab):
    """Enough rounds on two machines."""
    lites = on_machines(lab, **_patient(lab))
    _fire(lab, lites, MANY, timeout=35900, at_once=32, nice=-15)
