# SPDX-License-Identifier: MIT
"""Files straight into LMRs and back: contents, refusals, files that change, killed senders, nodes that die."""

import filesystems
from litelab import (block_device, environment, in_one_machine, new_processes, on_machines, patient, prepare_all, probed,
                     program_path, program_scale, run_catch, wait_until)
from vmlab.testing import vmtest

setup = prepare_all

_DISK_MB = filesystems.DISK_MB


def _mount(vm, **options):
    """Mounts file systems; returns the environment for files_test."""
    directories = ["/tmp", *filesystems.mount(vm, **options)]
    vm.run("mkdir -p /mnt/small; mount -t tmpfs -o size=256k small /mnt/small")
    return {"LITE_TEST_DIRS": ":".join(directories), "LITE_TEST_SMALL": "/mnt/small"}


def _unmount(vm):
    """Unmounts file systems, which must not be in use any more."""
    vm.run("umount /mnt/small")
    filesystems.unmount(vm)


def _run(lab, lites, spec, timeout, part=1):
    """Runs tests of files_test with this part of the repetitions that it would make: all are made on each file system."""
    vm = lites[0].vm
    # In this order, because file systems take loop devices, too.
    env = {**block_device(vm), **_mount(vm), "LITE_TEST_SCALE": program_scale(lab) * part}
    try:
        with new_processes([vm]):
            run_catch(lab, lites, "files_test", spec, timeout=timeout, case_timeout=timeout, env=env)
    finally:
        _unmount(vm)
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=1, cpus=2, mem_mb=1024, swap_mb=_DISK_MB, timeout=500)
def test_contents(lab):
    _run(lab, in_one_machine(lab.n1), "[transfers]", 480, lab.part)


@vmtest(nodes=1, cpus=2, mem_mb=1024, swap_mb=_DISK_MB, timeout=300)
def test_refusals(lab):
    _run(lab, in_one_machine(lab.n1), "[refusals]", 280)


@vmtest(nodes=1, cpus=2, mem_mb=1024, swap_mb=_DISK_MB, timeout=500)
def test_storms(lab):
    _run(lab, in_one_machine(lab.n1), "[storm]", 480, lab.part)


@vmtest(nodes=1, cpus=2, mem_mb=1024, swap_mb=_DISK_MB, timeout=2000, slow=True, kernels=("6.1", "6.12"))
def test_ten_thousand_files(lab):
    _run(lab, in_one_machine(lab.n1), "[.many]", 1900)


@vmtest(nodes=3, mem_mb=512, swap_mb=_DISK_MB, timeout=500, slow=True)
def test_three_machines(lab):
    _run(lab, on_machines(lab), "[transfers],[storm]", 480)


@vmtest(nodes=3, mem_mb=512, swap_mb=_DISK_MB, timeout=600)
def test_changes_beside(lab):
    """Random files, of which only what is not moved changes meanwhile: every byte is right, on each file system."""
    _run(lab, on_machines(lab, **patient(lab.n1)), "[.beside]", 580, lab.part)


def _the_other_node_dies(lab, spec, moving):
    lites = on_machines(lab)
    mover, other = lites
    env = {**_mount(mover.vm), **environment(lab, lites), "LITE_TEST_LMR": "target"}
    mover.lite("alloc", "target", "4M", "--node", other.id)
    process = mover.vm.spawn([program_path("files_test"), spec], env=env)
    process.wait_output(moving)
    other.vm.crash()
    process.wait(120, check=True)
    _unmount(mover.vm)
    wait_until("idle", lambda: mover.stats()["ops_inflight"] == 0)


@vmtest(nodes=2, mem_mb=512, swap_mb=_DISK_MB, timeout=200, fresh=True)
def test_the_receiver_dies(lab):
    """A sender with sets in flight gets an error and holds no page of its file: the file system can be unmounted."""
    _the_other_node_dies(lab, "[.death]", "sending")


@vmtest(nodes=2, mem_mb=512, swap_mb=_DISK_MB, timeout=200, fresh=True)
def test_the_source_dies(lab):
    """The file has what was reported as received before, and no more."""
    _the_other_node_dies(lab, "[.source]", "receiving")


@vmtest(nodes=1, cpus=2, mem_mb=1024, swap_mb=_DISK_MB, timeout=200)
def test_what_is_local_takes_no_worker(lab):
    """Between a file and an LMR of the same node the caller itself copies all sets, in its own processor time."""
    lites = in_one_machine(lab.n1)
    here, there = lites[:2]
    lab.n1.run("head -c 33554432 /dev/urandom >/tmp/file")
    here.lite("alloc", "near", "32M")
    here.lite("alloc", "far", "32M", "--node", there.id)
    with probed(lab.n1, "lite_set_work") as event:
        count = lambda: lab.n1.run(f"grep -c {event}: /sys/kernel/tracing/trace", check=False).out.strip()
        here.lite("put", "/tmp/file", "near")
        here.lite("get", "near", "/tmp/copy")
        assert count() == "0"
        # The probe works.
        wait_until("a worker moves a set", lambda: here.lite("put", "/tmp/file", "far").ok and count() != "0")
    lab.n1.run("cmp /tmp/file /tmp/copy; rm /tmp/file /tmp/copy")
    for name in ("near", "far"):
        here.lite("free", name)
    here.check_idle()


@vmtest(nodes=2, mem_mb=256, swap_mb=1400, timeout=1200, slow=True, fresh=True, kernels=("6.1", "6.12"))
def test_a_file_larger_than_the_memory(lab):
    lites = on_machines(lab)
    sender, receiver = lites
    env = _mount(sender.vm, kinds=("xfs",))
    sender.lite("alloc", "target", "8M", "--node", receiver.id)
    run_catch(lab, lites, "files_test", "[.pressure]", timeout=1100, case_timeout=1100, env={**env, "LITE_TEST_LMR": "target"})
    _unmount(sender.vm)
    sender.lite("free", "target")
