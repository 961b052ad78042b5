# SPDX-License-Identifier: MIT
"""LMRs in the address space of processes: coherence, I/O, rights. When a mapping ends, users get SIGBUS, never the
memory of another user."""

from litelab import (block_device, in_one_machine, memory_kb, on_machines, prepare, prepare_all, program_path, run_catch, times,
                     wait_complete, wait_until)
from vmlab.testing import vmtest

setup = prepare_all


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=500)
def test_three_nodes_in_one_machine(lab):
    lites = in_one_machine(lab.n1)
    run_catch(lab, lites, "mmap_test", "[map],[free],[io],[change]", timeout=480, env=block_device(lab.n1))
    for lite in lites:
        lite.check_idle()


@vmtest(timeout=300, mem_mb=512, slow=True)
def test_two_machines(lab):
    """The same between two machines. The next tests are about what happens only between machines."""
    lites = on_machines(lab)
    run_catch(lab, lites, "mmap_test", "[map],[free],[io],[change]", timeout=280, env=block_device(lab.n1))
    for lite in lites:
        lite.check_idle()


@vmtest(timeout=120)
def test_freed_from_another_machine(lab):
    here, there = on_machines(lab)
    for _ in range(lab.scale(5)):
        here.lite("alloc", "mapped", "8M", "--mode", "0666")
        users = [_user(here, "map", "mapped") for _ in range(3)]
        there.lite("free", "mapped")
        for user in users:
            assert user.wait(check=True).out.split() == ["ready", "SIGBUS"], user.out
    here.check_idle()


@vmtest(timeout=120)
def test_users_of_a_node_that_stops(lab):
    """Stopping a node ends the mappings of its users, and does not wait for the users to exit."""
    lites = on_machines(lab)
    here, there = lites
    here.lite("alloc", "mine", "4M")
    users = [_user(here, "map", "mine") for _ in range(2)]
    here.stop()
    for user in users:
        assert user.wait(check=True).out.split() == ["ready", "SIGBUS"], user.out
    there.stop()


@vmtest(timeout=120, fresh=True)
def test_device_goes_away(lab):
    """It goes while mappings and registered memory use it."""
    lites = on_machines(lab)
    here = lites[0]
    here.lite("alloc", "mine", "4M")
    user = _user(here, "map", "mine")
    owner = _user(here, "register", "owned")
    lab.n1.run("rdma link del rxe0", timeout=40)
    assert not here.exists()
    assert user.wait(check=True).out.split() == ["ready", "SIGBUS"], user.out
    owner.close_stdin()
    assert owner.wait(check=True).out.split() == ["ready", "VmPin:", "0", "kB"], owner.out
    lab.n1.run("rdma link add rxe0 type rxe netdev eth0")
    lab.n1.rmmod("lite")


@vmtest(timeout=120)
def test_home_leaves(lab):
    """Processes of a store have memory mapped when the home leaves, and so frees its LMRs."""
    here, there = on_machines(lab)
    there.lite("alloc", "spread", "8M", "--node", f"{there.id},{here.id}", "--mode", "0666")
    users = [_user(here, "map", "spread", 4 << 20) for _ in range(2)]
    there.stop()
    for user in users:
        assert user.wait(check=True).out.split() == ["ready", "SIGBUS"], user.out
    here.stop()


@vmtest(timeout=200)
def test_cut_off_from_the_home(lab):
    """An LMR is freed while one of its stores is cut off from the home. The store sees that the home is gone, so its
    own processes lose their mappings. The memory itself is free when the home reaches the store again."""
    here, there = lites = on_machines(lab)
    there.lite("alloc", "spread", "8M", "--node", f"{there.id},{here.id}", "--mode", "0666")
    users = [_user(here, "map", "spread", 4 << 20) for _ in range(2)]
    here.vm.cut()
    there.lite("free", "spread", timeout=60)
    for user in users:
        assert user.wait(60, check=True).out.split() == ["ready", "SIGBUS"], user.out
    assert here.stats()["allocs"] == 1
    here.vm.cut(False)
    wait_complete(lites, timeout=30)
    for lite in lites:
        lite.check_idle()


@vmtest(timeout=200, fresh=True)
def test_home_crashes(lab):
    """Memory of a dead home stays allocated at a store, but cannot be used, until the home begins a new life."""
    here, there = on_machines(lab)
    there.lite("alloc", "spread", "8M", "--node", f"{there.id},{here.id}", "--mode", "0666")
    users = [_user(here, "map", "spread", 4 << 20) for _ in range(2)]
    dead = there.id
    there.vm.crash()
    wait_until("its death is noticed", lambda: here.states().get(dead) == "down", 20, here.vm.time_scale)
    for user in users:
        assert user.wait(check=True).out.split() == ["ready", "SIGBUS"], user.out
    assert here.stats()["allocs"] == 1
    # A new mapping needs the home.
    assert not here.vm.run([program_path("mapped"), "map", "spread", "0", str(4 << 20)], check=False).ok
    there.vm.reboot()
    prepare(there.vm)
    there.start(**times(there.vm))
    there.join(here)
    here.check_idle()


@vmtest(timeout=300, mem_mb=768)
def test_killed(lab):
    """Killed processes with mappings and registered memory leak nothing."""
    lites = on_machines(lab)
    here = lites[0]
    here.lite("alloc", "mapped", "4M", "--mode", "0666")
    for i in range(max(3, lab.scale(20))):
        users = [_user(here, "map", "mapped"), _user(here, "register", f"owned{i}")]
        if i == 1:
            before = memory_kb(here.vm)
        for user in users:
            user.kill(9)
            user.wait()
    wait_until("mappings to go", lambda: here.stats()["mmaps"] == 0 and here.stats()["pinned_pages"] == 0, 20,
               lab.n1.time_scale)
    here.lite("free", "mapped")
    here.check_idle()
    available, _ = before
    now, _ = memory_kb(here.vm)
    assert now > available - 4096, (available, now)


def _user(lite, what, name, offset=0):
    user = lite.vm.spawn([program_path("mapped"), what, name, str(lite.index), str(offset)])
    user.wait_output("ready")
    return user
