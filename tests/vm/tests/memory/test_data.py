# SPDX-License-Identifier: MIT
"""What one node writes another reads: random transfers, all sizes, many at once."""

from litelab import in_one_machine, on_machines, patient, prepare_all, run_catch
from vmlab.testing import vmtest

setup = prepare_all


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=500, slow=True)
def test_three_nodes_in_one_machine(lab):
    lites = in_one_machine(lab.n1)
    run_catch(lab, lites, "data_test", timeout=480)
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=200)
def test_large_and_absent_buffers(lab):
    lites = in_one_machine(lab.n1)
    run_catch(lab, lites, "data_test", "[large],[absent]", timeout=180)
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=3, timeout=400)
def test_three_machines(lab):
    """Other nodes verify what one has written, with a model that needs only the seed and the plan."""
    # With the times of other tests packets are resent soon, so many come twice. Slow kernels might do nothing else.
    lites = on_machines(lab, **(patient(lab.n1) if lab.kernel.is_debug else {}))
    ids = [lite.id for lite in lites]
    # Both are larger than anything that LITE handles in one piece.
    length, longest = (24 << 20, 16 << 20) if lab.part == 1 else (12 << 20, 8 << 20)
    places = {"n1 alone": ids[:1], "n2 alone": ids[1:2], "n2 and n3": ids[1:], "all": [ids[2], ids[0], ids[1]]}
    for number, (label, place) in enumerate(places.items()):
        name, seed = f"data-{number}", lab.rng.getrandbits(32)
        # Any node but the writer; with --thorough each of them.
        readers = [lites[2], lites[1]] if lab.part == 1 else [lab.rng.choice(lites[1:])]
        lab.n1.log(f"{label}, seed {seed}")
        plan = [name, "--seed", seed, "--count", lab.scale(60 * lab.part, 8), "--max-length", longest // lab.kernel.time_scale]
        lites[0].lite("alloc", name, length + 4321, "--node", ",".join(map(str, place)))
        lites[0].transfers("run", *plan, timeout=120)
        for reader in readers:
            reader.transfers("check", *plan, timeout=60)
        lites[1].lite("free", name)
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=3, timeout=300)
def test_all_machines_at_once(lab):
    """Each machine carries out a plan in its own LMR, which spans all machines. Then each checks the next one's."""
    lites = on_machines(lab, **patient(lab.n1))
    ids = [lite.id for lite in lites]
    plans = []
    for number, lite in enumerate(lites):
        name = f"own-{number}"
        lite.lite("alloc", name, (6 << 20) + 999, "--node", ",".join(map(str, ids[number:] + ids[:number])))
        plans.append([name, "--seed", lab.rng.getrandbits(32), "--count", lab.scale(60 * lab.part, 8), "--max-length", 4 << 20])
    running = [lite.spawn("run", *plan) for lite, plan in zip(lites, plans)]
    for process in running:
        process.wait(200, check=True)
    for number, lite in enumerate(lites):
        lite.transfers("check", *plans[(number + 1) % len(plans)])
    for plan in plans:
        lites[0].lite("free", plan[0])
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=3, timeout=300)
def test_atomics_from_all_machines(lab):
    """Several processes on each machine add to one word: every old value is returned once, and the sum is right. The word's
    home takes part, so its atomics must not be plain CPU instructions."""
    lites = on_machines(lab, **patient(lab.n1))
    count = lab.scale(1000 * lab.part, 50)
    for number, home in enumerate(lites):
        name = f"tally-{number}"
        lites[0].lite("alloc", name, 4096, "--node", home.id)
        running = [lite.spawn("tally", name, "--offset", 4088, "--count", count) for lite in lites for _ in range(2)]
        olds = [int(line) for process in running for line in process.wait(200, check=True).out.split()]
        assert sorted(olds) == list(range(len(running) * count)), f"home {home}: {len(set(olds))} of {len(olds)}"
        assert int(lites[2].lite("fetch-add", name, 4088, 0).out) == len(olds)
        lites[0].lite("free", name)


@vmtest(nodes=2, mem_mb=1536, fresh=True, timeout=600, kernels=("6.1", "6.12"))
def test_one_gigabyte(lab):
    lites = on_machines(lab, mem_limit="1G", **patient(lab.n1))
    run_catch(lab, lites, "data_test", "[huge]", timeout=580, case_timeout=560)
    lites[0].check_idle()
    lites[1].check_idle()
