# SPDX-License-Identifier: MIT
"""Small file systems of many kinds in one machine, for tests with files."""

# MB of the disk (Cluster's swap_mb), for xfs and for btrfs in a file there, which reuses space only after a while.
DISK_MB = 640

# The machine becomes its own NFS server at the first mount. There are no daemons: their answers to the kernel's upcalls
# are written in advance, as numbers (fsid 0 is the root; 9234: insecure, async, no_subtree_check, fsid).
_NFS = r"""
modprobe -q -a nfsd nfsv4 && { [ -d /mnt/exported ] || {
    mkdir -p /mnt/exported /var/lib/nfs/v4recovery && mount -t tmpfs -o size=80M exported /mnt/exported &&
    mount -t nfsd nfsd /proc/fs/nfsd && cd /proc/fs/nfsd && echo 10 >nfsv4leasetime && echo 10 >nfsv4gracetime &&
    echo -3 >versions && echo 2 >threads && echo Y >v4_end_grace && cd /proc/net/rpc && for_ever=2147483647 &&
    echo "nfsd 127.0.0.1 $for_ever tests" >auth.unix.ip/channel &&
    echo "tests 1 \\x00000000 $for_ever /mnt/exported" >nfsd.fh/channel &&
    echo "tests /mnt/exported $for_ever 9234 65534 65534 0" >nfsd.export/channel
}; } && mount -t nfs4 -o vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1 127.0.0.1:/ /mnt/nfs
"""

# In the order of mounting, because some are inside others.
_COMMANDS = {
    "ext4": "modprobe -q -a loop ext4; truncate -s 96M /tmp/ext4 && mke2fs -q -t ext4 /tmp/ext4 && mount -o loop /tmp/ext4 /mnt/ext4",
    "overlay": "cd /mnt/ext4 && mkdir -p lower upper work && modprobe -q overlay && "
               "mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work overlay /mnt/overlay",
    "nfs": _NFS,
    # At boot the disk became a swap device.
    "xfs": "command -v mkfs.xfs && modprobe -q xfs && { swapoff /dev/vda; mkfs.xfs -q -f /dev/vda; } && mount /dev/vda /mnt/xfs",
    "btrfs": "command -v mkfs.btrfs && modprobe -q btrfs && truncate -s 400M /mnt/xfs/image && "
             "mkfs.btrfs -q -m single /mnt/xfs/image && mount -o loop -t btrfs /mnt/xfs/image /mnt/btrfs",
}


def mount(vm, kinds=tuple(_COMMANDS)):
    """Makes and mounts these in /mnt; returns the directories. Only debug kernels may lack some kinds."""
    mounted = []
    for kind in kinds:
        done = vm.run(f"mkdir -p /mnt/{kind}; {_COMMANDS[kind]}", check=False, timeout=60)
        if done.ok:
            mounted.append(f"/mnt/{kind}")
        else:
            assert vm.kernel.is_debug, f"no {kind} (scripts/deps vm installs what it takes): {done.out}{done.err}"
    vm.log(f"file systems: {mounted}")
    return mounted


def unmount(vm):
    """Unmounts all of them; fails if one is in use."""
    for kind in reversed(_COMMANDS):
        vm.run(f"! grep -q ' /mnt/{kind} ' /proc/mounts || umount /mnt/{kind}", timeout=60)
    vm.run("rm -f /tmp/ext4")
