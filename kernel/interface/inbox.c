// SPDX-License-Identifier: GPL-2.0
/*
 * Inboxes in the address space of processes; LITE_IOC_RPC_INBOX and NEXT.
 *
 * As a mapped LMR (mmap.c), an inbox is a file of its own that nobody has a
 * descriptor of: its VMAs keep it, and it ends with the last of them. There are
 * two: the control, to be written, and the rings, never. They are not inherited:
 * requests are a process's, and end with it.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mman.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "../compat.h"
#include "node.h"

/**
 * struct lite_inbox_file - a mapped inbox
 * @node: with a reference to the object
 * @inbox: with a reference
 * @exited: a mapping of it went with its address space
 */
struct lite_inbox_file {
	struct lite_node *node;
	struct lite_inbox *inbox;
	bool exited;
};

/*
 * Whoever it is that lets go of the address space last: a debugger, say. In
 * exit(2) and execve(2) that has no users any more, in munmap(2) it has.
 */
static void lite_inbox_vm_close(struct vm_area_struct *vma)
{
	struct lite_inbox_file *f = vma->vm_file->private_data;

	if (!atomic_read(&vma->vm_mm->mm_users))
		/* The VMA's reference to the file is put after this. */
		WRITE_ONCE(f->exited, true);
}

static vm_fault_t lite_inbox_vm_fault(struct vm_fault *vmf)
{
	struct lite_inbox_file *f = vmf->vma->vm_file->private_data;
	int err;

	if (!lite_node_enter(f->node))
		return VM_FAULT_SIGBUS;
	err = lite_inbox_fault(f->inbox, vmf);
	lite_node_exit(f->node);
	return lite_fs_fault(err);
}

static const struct vm_operations_struct lite_inbox_vm_ops = {
	.close = lite_inbox_vm_close,
	.fault = lite_inbox_vm_fault,
};

static u32 lite_inbox_file_control(const struct lite_inbox_file *f)
{
	return lite_inbox_control_bytes(f->inbox->queue.entries);
}

static int lite_inbox_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct lite_inbox_file *f = file->private_data;
	unsigned long length = vma->vm_end - vma->vm_start;

	/* None but LITE_IOC_RPC_INBOX gets here; it asks for nothing else. */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (vma->vm_pgoff) {
		if (vma->vm_pgoff != LITE_INBOX_RINGS >> PAGE_SHIFT ||
		    length != lite_inbox_rings_bytes(f->inbox) ||
		    vma->vm_flags & VM_WRITE)
			return -EINVAL;
		/* mprotect(2) does not ask us. */
		vm_flags_clear(vma, VM_MAYWRITE);
	} else if (length != lite_inbox_file_control(f)) {
		return -EINVAL;
	}
	vm_flags_set(vma, VM_MIXEDMAP | VM_DONTEXPAND | VM_DONTDUMP |
				  VM_DONTCOPY);
	vma->vm_ops = &lite_inbox_vm_ops;
	return 0;
}

static void lite_inbox_file_free(struct lite_inbox_file *f)
{
	struct lite_node *node = f->node;

	lite_inbox_unmapped(f->inbox, READ_ONCE(f->exited));
	lite_fs_unpin();
	lite_stat_dec(node->stats, LITE_STAT_MMAPS);
	lite_node_put(node);
	kfree(f);
}

static int lite_inbox_release(struct inode *inode, struct file *file)
{
	lite_inbox_file_free(file->private_data);
	return 0;
}

static const struct file_operations lite_inbox_fops = {
	.owner = THIS_MODULE,
	.mmap = lite_inbox_mmap,
	.release = lite_inbox_release,
};

/* A file for an inbox, whose reference it takes over in any case. */
static struct file *lite_inbox_file(struct lite_node *node,
				    struct lite_inbox *inbox)
{
	struct lite_inbox_file *f = kzalloc(sizeof(*f), GFP_KERNEL_ACCOUNT);
	struct file *file;
	int err = f ? lite_fs_pin() : -ENOMEM;

	if (err) {
		kfree(f);
		lite_inbox_unmapped(inbox, false);
		return ERR_PTR(err);
	}
	kref_get(&node->ref);
	f->node = node;
	f->inbox = inbox;
	lite_stat_inc(node->stats, LITE_STAT_MMAPS);
	file = lite_fs_file(&lite_inbox_fops, true);
	if (IS_ERR(file)) {
		lite_inbox_file_free(f);
		return file;
	}
	file->private_data = f;
	lite_inbox_mapped(inbox, file_inode(file));
	return file;
}

/**
 * lite_inbox_unmap - undo LITE_IOC_RPC_INBOX
 * @arg: of it, as it has succeeded
 *
 * Context: may sleep; by the process that called it.
 */
void lite_inbox_unmap(const struct lite_ioc_rpc_inbox *arg)
{
	vm_munmap(arg->control, arg->control_bytes);
	vm_munmap(arg->rings, arg->rings_bytes);
}

static int lite_inbox_map(struct file *file, struct lite_ioc_rpc_inbox *arg)
{
	int err;

	err = lite_fs_map(file, 0, arg->control_bytes, PROT_READ | PROT_WRITE,
			  0, &arg->control);
	if (err)
		return err;
	err = lite_fs_map(file, LITE_INBOX_RINGS, arg->rings_bytes, PROT_READ,
			  0, &arg->rings);
	if (err)
		vm_munmap(arg->control, arg->control_bytes);
	return err;
}

/**
 * lite_ioc_rpc_inbox - LITE_IOC_RPC_INBOX
 * @lf: open file
 * @arg: struct lite_ioc_rpc_inbox
 * @gate: of the call
 *
 * Context: may sleep.
 * Return: 0 or a negative errno as documented for it.
 */
int lite_ioc_rpc_inbox(struct lite_file *lf, void *arg, struct lite_gate *gate)
{
	struct lite_rpc_file *rpc = lite_file_rpc(lf);
	struct lite_ioc_rpc_inbox *a = arg;
	struct lite_inbox *inbox;
	struct lite_cred cred;
	struct file *file;
	int err;

	if (a->flags || a->reserved)
		return -EOPNOTSUPP;
	if (!rpc)
		return -ENOMEM;
	lite_cred_current(&cred);
	inbox = lite_inbox_make(rpc, a->function, a->depth, cred.uid);
	if (IS_ERR(inbox))
		return PTR_ERR(inbox);
	a->depth = inbox->depth;
	a->entries = inbox->queue.entries;
	a->control_bytes = lite_inbox_control_bytes(a->entries);
	a->rings_bytes = lite_inbox_rings_bytes(inbox);
	file = lite_inbox_file(lf->node, inbox);
	if (IS_ERR(file))
		return PTR_ERR(file);
	/* Others of the process may hold mmap_lock, waiting for user space. */
	lite_gate_leave(gate);
	err = lite_inbox_map(file, a);
	fput(file);
	return err;
}

/**
 * lite_ioc_rpc_next - LITE_IOC_RPC_NEXT
 * @lf: open file
 * @arg: struct lite_ioc_rpc_next
 * @gate: of the call
 *
 * Context: may sleep.
 * Return: 0 or a negative errno as documented for it.
 */
int lite_ioc_rpc_next(struct lite_file *lf, void *arg, struct lite_gate *gate)
{
	struct lite_rpc_file *rpc = lite_file_rpc(lf);

	return rpc ? lite_file_next(rpc, arg, gate) : -ENOMEM;
}
