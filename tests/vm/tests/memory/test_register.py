# SPDX-License-Identifier: MIT
"""Memory of processes as LMRs."""

from litelab import in_one_machine, on_machines, prepare_all, program_path, run_catch
from vmlab.testing import vmtest

setup = prepare_all


def _files(vm):
    """Mounts a file system besides those in swap space and the test's own; returns the environment that names it."""
    vm.run("mkdir -p /run/files; mountpoint -q /run/files || mount -t ramfs none /run/files")
    return {"LITE_TEST_FILES": "/run/files"}


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=400)
def test_three_nodes_in_one_machine(lab):
    lites = in_one_machine(lab.n1)
    run_catch(lab, lites, "mmap_test", "[register]", timeout=380, env=_files(lab.n1))
    for lite in lites:
        lite.check_idle()


@vmtest(timeout=300, mem_mb=512, slow=True)
def test_two_machines(lab):
    """The same between two machines. The next test is about what happens only between machines."""
    lites = on_machines(lab)
    run_catch(lab, lites, "mmap_test", "[register]", timeout=280, env=_files(lab.n1))
    for lite in lites:
        lite.check_idle()


@vmtest(timeout=120)
def test_used_from_the_other_machine(lab):
    """Registered memory is listed, read and written by its name, like any LMR. It is gone when its process ends."""
    here, there = on_machines(lab)
    owner = here.vm.spawn([program_path("mapped"), "register", "owned", "0"])
    owner.wait_output("ready")
    assert there.names() == {"owned"}
    there.lite("write", "owned", 4096, "from afar")
    assert there.lite("read", "owned", 4096, 9).out == "from afar"
    # A master may free it although its process still lives.
    there.lite("free", "owned")
    owner.close_stdin()
    assert owner.wait(check=True).out.split() == ["ready", "VmPin:", "0", "kB"], owner.out
    owner = here.vm.spawn([program_path("mapped"), "register", "owned", "0"])
    owner.wait_output("ready")
    owner.kill(9)
    owner.wait()
    there.check_idle()
    here.check_idle()
    assert not there.names()
