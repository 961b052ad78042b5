// SPDX-License-Identifier: GPL-2.0
/*
 * LITE_IOC_ARENA: arenas (memory/arena/arena.c) in the address space of a process.
 *
 * Like a mapped LMR (mmap.c), an arena is an open file without a descriptor, which ends with its
 * last VMA. It has a reference to the node's object, because it may outlive the node.
 */
#include <linux/anon_inodes.h>
#include <linux/fs.h>
#include <linux/mman.h>
#include <linux/mm.h>

#include "command.h"
#include "compat.h"

static int lite_arena_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct lite_arena *arena = file->private_data;

	/* LITE_IOC_ARENA is the only caller. */
	if (!(vma->vm_flags & VM_MAYSHARE) || vma->vm_pgoff ||
	    vma->vm_end - vma->vm_start != arena->length)
		return -EINVAL;
	vm_flags_set(vma, VM_MIXEDMAP | VM_DONTEXPAND | VM_DONTCOPY);
	vma->vm_private_data = arena;
	vma->vm_ops = &lite_arena_vm_ops;
	return 0;
}

static int lite_arena_release(struct inode *inode, struct file *file)
{
	struct lite_arena *arena = file->private_data;
	struct lite_node *node = arena->kept->mem->priv;

	/* A node that is stopping takes the blocks back itself. */
	if (lite_node_enter(node)) {
		lite_arena_close(arena);
		lite_node_exit(node);
	}
	lite_arena_put(arena);
	lite_node_put(node);
	return 0;
}

static const struct file_operations lite_arena_fops = {
	.owner = THIS_MODULE,
	.mmap = lite_arena_mmap,
	.release = lite_arena_release,
};

static struct file *lite_arena_open(struct lite_command *cmd, const struct lite_ioc_arena *a)
{
	u32 uid = lite_cmd_user(cmd)->uid;
	struct lite_arena *arena = lite_arena_new(cmd->ctx->kept, a->length, a->flags, uid);
	struct file *file;

	if (IS_ERR(arena))
		return ERR_CAST(arena);
	file = anon_inode_getfile("[lite-arena]", &lite_arena_fops, arena, O_RDWR);
	if (!IS_ERR(file)) {
		/* Not too late: only the caller has the file yet. */
		refcount_inc(&cmd->node->ref);
		return file;
	}
	lite_arena_close(arena);
	lite_arena_put(arena);
	return file;
}

/* LITE_IOC_ARENA. Context: may sleep; killable. Return: as documented for it. */
int lite_ioc_arena(struct lite_command *cmd, void *arg)
{
	struct lite_ioc_arena *a = arg;

	if (!a->length || a->length % LITE_ARENA_BLOCK)
		return -EINVAL;
	if (a->length > LITE_LMR_SIZE_MAX)
		return -EFBIG;
	return lite_cmd_mmap(cmd, lite_arena_open(cmd, a), a->length, PROT_READ | PROT_WRITE, 0,
			     &a->addr);
}

void lite_ioc_unwind_arena(void *arg)
{
	struct lite_ioc_arena *a = arg;

	vm_munmap(a->addr, a->length);
}
