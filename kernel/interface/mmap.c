// SPDX-License-Identifier: GPL-2.0
/*
 * LITE_IOC_MMAP: LMRs in the address space of processes.
 *
 * A user mapping ("region") is an open file without a descriptor: the ioctl makes it, maps it and
 * drops it. The VMAs hold it, so splitting, copying or moving them needs no code here. It has a
 * context with one handle, a copy of the one given. Its pages are removed from page tables through
 * its inode (memory/mapper/view.c), in a file system that is mounted while regions exist. The file
 * is open for writing only if the ioctl asked for writing: else the kernel refuses mprotect(2) with
 * PROT_WRITE.
 *
 * A fault may have to ask the home of the LMR. Like a fault that reads from a disk, it first drops
 * mmap_lock if it may, and retries. The second time it asks with the lock held, so that it makes
 * progress; that takes as long as a silent home counts as alive. It waits for the end of a change
 * with the lock held only if it cannot drop the lock, or has just waited for a suspect home.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mman.h>
#include <linux/mm.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "command.h"
#include "compat.h"

static struct vfsmount *lite_fs_mount;
static int lite_fs_count;

static int lite_fs_init(struct fs_context *fc)
{
	if (!init_pseudo(fc, 0x6c697465)) /* "lite" */
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

struct lite_region {
	struct lite_file *lf; /* its context, as for an open file */
	u64 lh;               /* its only handle */
	struct lite_view view;
};

#define LITE_FAULT_DROP 1 /* the caller must drop the fault lock, and then renew the handle */

/* Renew the handle of a region. Return: 0, LITE_FAULT_DROP or a negative errno. */
static int lite_region_renew(const struct lite_access *a, const struct vm_fault *vmf)
{
	int err;

	if (!(vmf->flags & FAULT_FLAG_ALLOW_RETRY))
		return lite_view_renew(a);
	if (fault_flag_allow_retry_first(vmf->flags))
		return LITE_FAULT_DROP;
	err = lite_view_ask(a);
	if (err == -EBUSY)
		return LITE_FAULT_DROP;
	return err == -EHOSTDOWN ? lite_view_renew(a) : err;
}

static vm_fault_t lite_region_fault(struct vm_fault *vmf)
{
	struct file *file = vmf->vma->vm_file;
	struct lite_region *r = file->private_data;
	struct lite_node *node = r->lf->node;
	struct lite_access a = { .ctx = r->lf->ctx, .lh = r->lh, .right = LITE_RIGHT_READ };
	int err;

	/* mprotect(2) can make the mapping writable without asking LITE. */
	if (vmf->vma->vm_flags & VM_MAYWRITE)
		a.right |= LITE_RIGHT_WRITE;
	if (!lite_node_enter(node))
		return VM_FAULT_SIGBUS;
	do {
		err = lite_view_fault(&r->view, &a, vmf);
		if (err != -EAGAIN)
			break;
		if (vmf->flags & FAULT_FLAG_RETRY_NOWAIT) {
			lite_node_exit(node);
			return VM_FAULT_RETRY;
		}
		err = lite_region_renew(&a, vmf);
	} while (!err && !fatal_signal_pending(current));
	if (err == LITE_FAULT_DROP) {
		/* The VMA may go when the lock is dropped: keep the file and its node. */
		get_file(file);
		release_fault_lock(vmf);
		/* The next fault finds the result. */
		lite_view_renew(&a);
		lite_node_exit(node);
		fput(file);
		return VM_FAULT_RETRY;
	}
	lite_node_exit(node);
	if (!err)
		return VM_FAULT_NOPAGE;
	return err == -ENOMEM ? VM_FAULT_OOM : VM_FAULT_SIGBUS;
}

static const struct vm_operations_struct lite_region_vm_ops = { .fault = lite_region_fault };

static int lite_region_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct lite_region *r = file->private_data;

	/* LITE_IOC_MMAP is the only caller. */
	if (!(vma->vm_flags & VM_MAYSHARE) || vma->vm_pgoff ||
	    vma->vm_end - vma->vm_start != PAGE_ALIGN(r->view.length))
		return -EINVAL;
	vm_flags_set(vma, VM_MIXEDMAP | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_ops = &lite_region_vm_ops;
	return 0;
}

static void lite_region_free(struct lite_region *r)
{
	struct lite_node *node = r->lf->node;

	refcount_inc(&node->ref);
	lite_view_exit(&r->view);
	lite_file_close(r->lf);
	kfree(r);
	simple_release_fs(&lite_fs_mount, &lite_fs_count);
	lite_stat_dec(node->stats, LITE_STAT_MMAPS);
	lite_node_put(node);
}

static int lite_region_release(struct inode *inode, struct file *file)
{
	lite_region_free(file->private_data);
	return 0;
}

static const struct file_operations lite_region_fops = {
	.owner = THIS_MODULE,
	.mmap = lite_region_mmap,
	.release = lite_region_release,
};

static struct lite_region *lite_region_new(struct lite_file *lf, u64 offset, u64 length)
{
	struct lite_region *r = kzalloc(sizeof(*r), GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;

	if (!r)
		return ERR_PTR(-ENOMEM);
	r->lf = lite_file_new(lf->node);
	if (!r->lf)
		goto err_free;
	err = simple_pin_fs(&lite_fs, &lite_fs_mount, &lite_fs_count);
	if (err)
		goto err_file;
	r->view.mem = &lf->node->memory;
	r->view.offset = offset;
	r->view.length = length;
	INIT_LIST_HEAD(&r->view.list);
	lite_stat_inc(lf->node->stats, LITE_STAT_MMAPS);
	return r;

err_file:
	lite_file_close(r->lf);
err_free:
	kfree(r);
	return ERR_PTR(err);
}

/* Make the file of a region, with an inode of its own. The file then owns the region. */
static struct file *lite_region_file(struct lite_region *r, bool write)
{
	struct inode *inode = alloc_anon_inode(lite_fs_mount->mnt_sb);
	struct file *file;

	if (IS_ERR(inode))
		return ERR_CAST(inode);
	/* The release of the file puts it. */
	__module_get(THIS_MODULE);
	file = alloc_file_pseudo(inode, lite_fs_mount, "lite",
				 write ? O_RDWR : O_RDONLY, &lite_region_fops);
	if (IS_ERR(file)) {
		module_put(THIS_MODULE);
		iput(inode);
		return file;
	}
	r->view.inode = inode;
	file->private_data = r;
	return file;
}

static struct file *lite_region_open(struct lite_file *lf, const struct lite_ioc_mmap *m)
{
	struct lite_access a = { .ctx = lf->ctx, .lh = m->lh, .right = LITE_RIGHT_READ };
	struct lite_region *r;
	struct file *file;
	int err;

	if (m->prot & LITE_PROT_WRITE)
		a.right |= LITE_RIGHT_WRITE;
	r = lite_region_new(lf, m->offset, m->length);
	if (IS_ERR(r))
		return ERR_CAST(r);
	err = lite_ctx_share(r->lf->ctx, &a, &r->lh);
	if (err)
		goto err_region;
	a.ctx = r->lf->ctx;
	a.lh = r->lh;
	err = lite_view_check(&r->view, &a);
	if (err)
		goto err_region;
	file = lite_region_file(r, a.right & LITE_RIGHT_WRITE);
	err = PTR_ERR_OR_ZERO(file);
	if (!err)
		return file;
err_region:
	lite_region_free(r);
	return ERR_PTR(err);
}

/* Map @file, which may be an ERR_PTR, and put it. May sleep; killable. Return: 0 or an errno. */
int lite_cmd_mmap(struct lite_command *cmd, struct file *file, u64 length, unsigned long prot,
		  unsigned long flags, u64 *to)
{
	unsigned long addr;

	if (IS_ERR(file))
		return PTR_ERR(file);
	/* A thread may hold mmap_lock while it waits for user space. */
	lite_gate_leave(&cmd->gate);
	addr = vm_mmap(file, 0, length, prot, MAP_SHARED | flags, 0);
	fput(file);
	*to = addr;
	if (!IS_ERR_VALUE(addr))
		return 0;
	/* EAGAIN: the pages would have to be locked (mlockall(2)). */
	return (long)addr == -EAGAIN ? -ENOMEM : (long)addr;
}

/* LITE_IOC_MMAP. Context: may sleep; killable. Return: as documented for it. */
int lite_ioc_mmap(struct lite_command *cmd, void *arg)
{
	struct lite_ioc_mmap *m = arg;

	if (m->prot != LITE_PROT_READ && m->prot != (LITE_PROT_READ | LITE_PROT_WRITE))
		return -EINVAL;
	if (!m->length || !PAGE_ALIGNED(m->offset))
		return -EINVAL;
	if (m->length > LITE_LMR_SIZE_MAX)
		return -ERANGE;
	return lite_cmd_mmap(cmd, lite_region_open(cmd->lf, m), PAGE_ALIGN(m->length),
			     PROT_READ | (m->prot & LITE_PROT_WRITE ? PROT_WRITE : 0),
			     m->flags & LITE_MMAP_POPULATE ? MAP_POPULATE : 0, &m->addr);
}

void lite_ioc_unwind_mmap(void *arg)
{
	struct lite_ioc_mmap *m = arg;

	vm_munmap(m->addr, m->length);
}
