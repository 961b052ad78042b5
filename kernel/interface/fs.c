// SPDX-License-Identifier: GPL-2.0
/*
 * Files that are mapped into processes, and of which nobody has a descriptor:
 * mapped LMRs (mmap.c), and inboxes (inbox.c).
 *
 * Each has an inode of its own, as inodes are what pages are taken out of page
 * tables by. They are of a file system of ours, which is there while there are
 * such files.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mman.h>
#include <linux/mm.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>

#include "node.h"

#define LITE_FS_MAGIC 0x6c697465 /* "lite" */

static struct vfsmount *lite_fs_mount;
static int lite_fs_count;

static int lite_fs_init(struct fs_context *fc)
{
	if (!init_pseudo(fc, LITE_FS_MAGIC))
		return -ENOMEM;
	fc->s_iflags |= SB_I_NOEXEC | SB_I_NODEV;
	return 0;
}

static struct file_system_type lite_fs = {
	.name = "lite",
	.owner = THIS_MODULE,
	.init_fs_context = lite_fs_init,
	.kill_sb = kill_anon_super,
};

/**
 * lite_fs_pin - have the file system of what is mapped
 *
 * Context: may sleep.
 * Return: 0, then lite_fs_unpin() is to follow, or a negative errno.
 */
int lite_fs_pin(void)
{
	return simple_pin_fs(&lite_fs, &lite_fs_mount, &lite_fs_count);
}

/**
 * lite_fs_unpin - the counterpart of lite_fs_pin()
 *
 * Context: may sleep.
 */
void lite_fs_unpin(void)
{
	simple_release_fs(&lite_fs_mount, &lite_fs_count);
}

/**
 * lite_fs_file - a file with an inode of its own, to be mapped
 * @fops: its operations
 * @write: it may be mapped for writing
 *
 * Context: may sleep; the file system is pinned for as long as it is there.
 * Return: the file, or ERR_PTR.
 */
struct file *lite_fs_file(const struct file_operations *fops, bool write)
{
	struct inode *inode = alloc_anon_inode(lite_fs_mount->mnt_sb);
	struct file *file;

	if (IS_ERR(inode))
		return ERR_CAST(inode);
	/* The file gives it back. */
	__module_get(THIS_MODULE);
	file = alloc_file_pseudo(inode, lite_fs_mount, "lite",
				 write ? O_RDWR : O_RDONLY, fops);
	if (IS_ERR(file)) {
		module_put(THIS_MODULE);
		iput(inode);
	}
	return file;
}

/**
 * lite_fs_map - map a part of a file into the current process, shared
 * @file: from lite_fs_file(); the mapping has a reference of its own
 * @offset: in the file
 * @length: bytes
 * @prot: PROT_*
 * @flags: MAP_*, besides MAP_SHARED
 * @addr: set to where it is
 *
 * Context: may sleep, and wait for user space: the caller is active on no node.
 * Return: 0 or a negative errno.
 */
int lite_fs_map(struct file *file, u64 offset, unsigned long length,
		unsigned long prot, unsigned long flags, u64 *addr)
{
	unsigned long at = vm_mmap(file, 0, length, prot, MAP_SHARED | flags,
				   offset);

	*addr = at;
	if (!IS_ERR_VALUE(at))
		return 0;
	/* EAGAIN: it would have to be locked (mlockall(2)). */
	return (long)at == -EAGAIN ? -ENOMEM : (long)at;
}

/**
 * lite_fs_fault - what a page fault comes to
 * @err: 0: the page is in the page table; or a negative errno
 *
 * Return: for the kernel.
 */
vm_fault_t lite_fs_fault(int err)
{
	switch (err) {
	case 0:
		return VM_FAULT_NOPAGE;
	case -ENOMEM:
		return VM_FAULT_OOM;
	default:
		return VM_FAULT_SIGBUS;
	}
}
