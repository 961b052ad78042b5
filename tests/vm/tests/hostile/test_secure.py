# SPDX-License-Identifier: MIT
"""A default installation opens nothing that was not asked for."""

from litelab import SECRET_PATH, join_all, nodes_in, prepare, prepare_all, stop_all, times
from vmlab.testing import vmtest

setup = prepare_all


@vmtest(nodes=1, cpus=2, timeout=60)
def test_a_node_without_a_secret_is_wanted_and_says_so(lab):
    """A node without a secret warns the user that starts it, users that look at it, and in the kernel's log."""
    vm = lab.n1
    lites = nodes_in(vm, 3)
    stop_all(lites)
    vm.run(f"mv {SECRET_PATH} {SECRET_PATH}.away; dmesg -c >/dev/null")
    try:
        refused = lites[0].start(check=False)
        assert not refused.ok and "no cluster secret" in refused.err, refused
        for lite in lites[:2]:
            assert "warning: no cluster secret" in lite.start(**times(vm), insecure=True).err
    finally:
        vm.run(f"mv {SECRET_PATH}.away {SECRET_PATH}")
    join_all(lites[:2])
    for lite in lites[:2]:
        assert lite.status()["insecure"]
        assert all(entry["insecure"] for entry in lite.members().values())
        assert "no cluster secret" in lite.ctl("nodes").err
        assert f"lite: lite{lite.index} has no cluster secret" in vm.run("dmesg").out
    lites[2].start(**times(vm))
    assert not lites[2].status()["insecure"]
    assert not lites[2].ctl("nodes").err and not lites[2].ctl("status").err
    assert "lite2 has no" not in vm.run("dmesg").out
    stop_all(lites)


@vmtest(nodes=1, cpus=2, kernels=("6.1", "6.12"), timeout=200)
def test_a_machine_that_is_locked_down_opens_its_memory_to_nobody(lab):
    """Not even root can start a node on such a machine. Only a reboot ends the lockdown."""
    vm = lab.n1
    lites = nodes_in(vm, 2)
    stop_all(lites)
    vm.run("[ -e /sys/kernel/security/lockdown ] || mount -t securityfs none /sys/kernel/security")
    lites[0].start(**times(vm))
    vm.run("echo integrity >/sys/kernel/security/lockdown")
    try:
        refused = lites[1].start(**times(vm), check=False)
        assert not refused.ok and "locked down" in refused.err, refused
        assert not lites[1].exists()
        # Root can still stop a node that was started before.
        lites[0].stop()
        assert not lites[0].start(**times(vm), check=False).ok
    finally:
        vm.reboot()
        prepare(vm)
