/* SPDX-License-Identifier: GPL-2.0 */
/*
 * LITE for kernel modules.
 *
 * A kernel client opens a context on a node, which gives it what a process has
 * with an open file of /dev/liteN: its own handles, released by
 * lite_ctx_close(). Errno values are those of include/uapi/lite.h.
 *
 * Functions are called in process context, with no spinlock held and preemption
 * on, unless their Context says otherwise. They allocate memory and wait for
 * other nodes, so they must not be called to write back or to free memory.
 * Threads may use a context, and a handle, at the same time.
 *
 * Killable: a fatal signal of the calling thread ends the call with -EINTR. A
 * kernel thread gets one only after allow_signal(SIGKILL), and only from
 * send_sig(); kthread_stop() ends no call. Such a thread needs time-outs where
 * there are any.
 *
 * A context has the rights of root, but those of uid 65534 at nodes that squash
 * root. All else is the calling thread's: its cgroups, its tenant in scheduling,
 * and its user's share of what LITE's kernels ask each other. Calls of functions
 * and the memory for them count as root's.
 *
 * When the node has stopped, functions return -ENODEV, for ever. The client then
 * closes the context and opens another.
 */
#ifndef _LITE_KAPI_H
#define _LITE_KAPI_H

#include <linux/types.h>
#include <linux/uidgid.h>
#include <uapi/lite.h>
#include <uapi/lite_order.h>
#include <lite/kapi_rpc.h>

struct file;
struct lite_ctx;

/**
 * struct lite_lmr_params - parameters of lite_lmr_alloc()
 * @name: name of 1..LITE_NAME_MAX bytes, or NULL: anonymous, freed with its last
 *	handle on this node
 * @length: bytes, 1..LITE_LMR_SIZE_MAX
 * @nodes: node ids to spread over, the first is the home; NULL with @n_nodes ==
 *	0: this node
 * @n_nodes: 0..LITE_SPREAD_MAX
 * @mode: permission bits, 0666 at most
 * @flags: LITE_ALLOC_*
 */
struct lite_lmr_params {
	const char *name;
	u64 length;
	const u32 *nodes;
	u32 n_nodes;
	u32 mode;
	u32 flags;
};

/**
 * lite_ctx_open - open a context on a node of this machine
 * @index: the N of /dev/liteN
 *
 * Context: may sleep.
 * Return: the context, to be closed by lite_ctx_close(), or ERR_PTR: -ENODEV no
 * such node, -ENOMEM.
 */
struct lite_ctx *lite_ctx_open(unsigned int index);

/**
 * lite_ctx_set_priority - set the priority of a context's operations and calls
 * @ctx: context
 * @priority: LITE_PRIORITY(class), class 0 (highest) to 7, or
 *	LITE_PRIORITY_DEFAULT: that of the calling thread's tenant, as
 *	lite_ctx_open() sets it
 *
 * Applies to those that begin from now on. Has an effect only if the node
 * schedules what goes to other nodes (litectl qos). The administrator's ceiling
 * does not apply to kernel modules.
 *
 * Context: may sleep.
 * Return: 0; -EINVAL: no such priority; -ENODEV: the node has stopped.
 */
int lite_ctx_set_priority(struct lite_ctx *ctx, u32 priority);

/**
 * lite_ctx_close - close a context, its handles and its anonymous LMRs
 * @ctx: from lite_ctx_open(); no other call on it may be in progress
 *
 * Locks that it holds exclusively go to the next owners, with -EOWNERDEAD.
 *
 * Context: may sleep; calls the homes of its LMRs; not killable.
 */
void lite_ctx_close(struct lite_ctx *ctx);

/**
 * lite_ctx_node_id - id of the node that a context is on
 * @ctx: from lite_ctx_open()
 *
 * Context: does not sleep.
 * Return: 1..65535, or 0 if the node is in no cluster or has stopped.
 */
u32 lite_ctx_node_id(struct lite_ctx *ctx);

/**
 * lite_lmr_alloc - make an LMR and open it
 * @ctx: context
 * @p: what to make
 * @lh: set to the new handle; untouched with LITE_ALLOC_NO_HANDLE
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_ALLOC.
 */
int lite_lmr_alloc(struct lite_ctx *ctx, const struct lite_lmr_params *p,
		   u64 *lh);

/**
 * lite_lmr_map - open an LMR by name
 * @ctx: context
 * @name: its name
 * @rights: LITE_RIGHT_* wanted
 * @lh: set to the new handle
 * @length: set to the LMR's length in bytes; may be NULL
 *
 * Any user may make an LMR of a name that is free. A client that did not make it
 * checks the owner with lite_lmr_stat().
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_MAP.
 */
int lite_lmr_map(struct lite_ctx *ctx, const char *name, u32 rights, u64 *lh,
		 u64 *length);

/**
 * lite_lmr_stat - describe an LMR
 * @ctx: context
 * @lh: handle
 * @info: set
 * @nodes: set to the ids of the nodes it is spread over; room for
 *	LITE_SPREAD_MAX; may be NULL
 * @n: set to their number; may be NULL
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_STAT.
 */
int lite_lmr_stat(struct lite_ctx *ctx, u64 lh, struct lite_lmr_info *info,
		  u32 *nodes, u32 *n);

/**
 * lite_lmr_unmap - close a handle
 * @ctx: context
 * @lh: handle
 *
 * Operations in flight on it complete normally. An anonymous LMR is freed with
 * its last handle.
 *
 * Context: may sleep; may wait for these, and calls the home; not killable.
 * Return: 0, -EBADF, -ENODEV.
 */
int lite_lmr_unmap(struct lite_ctx *ctx, u64 lh);

/**
 * lite_lmr_free - free the LMR behind a handle and close the handle
 * @ctx: context
 * @lh: handle with LITE_RIGHT_MASTER
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_FREE.
 */
int lite_lmr_free(struct lite_ctx *ctx, u64 lh);

/**
 * lite_lmr_free_name - free an LMR by name
 * @ctx: context
 * @name: its name
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_FREE.
 */
int lite_lmr_free_name(struct lite_ctx *ctx, const char *name);

/**
 * lite_lmr_grant - set the rights granted to a user
 * @ctx: context
 * @lh: handle with LITE_RIGHT_MASTER or LITE_RIGHT_SHARE
 * @grant: user and rights; rights 0 remove the grant
 *
 * Context: may sleep; killable. Waits until no handle has a right taken away.
 * Return: 0 or a negative errno as LITE_IOC_GRANT.
 */
int lite_lmr_grant(struct lite_ctx *ctx, u64 lh,
		   const struct lite_grant *grant);

/**
 * lite_lmr_grants - list the grants of an LMR
 * @ctx: context
 * @lh: handle
 * @grants: set; room for LITE_GRANTS_MAX
 * @n: set to the number of grants
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_GRANTS.
 */
int lite_lmr_grants(struct lite_ctx *ctx, u64 lh, struct lite_grant *grants,
		    u32 *n);

/**
 * lite_lmr_setattr - change owner, group or mode of an LMR
 * @ctx: context
 * @lh: handle with LITE_RIGHT_MASTER
 * @uid: new owner, or LITE_KEEP
 * @gid: new group, or LITE_KEEP
 * @mode: new permission bits, or LITE_KEEP
 *
 * Context: may sleep; killable. Waits until no handle has a right taken away.
 * Return: 0 or a negative errno as LITE_IOC_SETATTR.
 */
int lite_lmr_setattr(struct lite_ctx *ctx, u64 lh, u32 uid, u32 gid, u32 mode);

/**
 * lite_lmr_rename - rename an LMR, or give an anonymous one a name
 * @ctx: context
 * @lh: handle with LITE_RIGHT_MASTER
 * @to: name of 1..LITE_NAME_MAX bytes
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_RENAME.
 */
int lite_lmr_rename(struct lite_ctx *ctx, u64 lh, const char *to);

/**
 * lite_lmr_resize - make an LMR longer or shorter
 * @ctx: context
 * @lh: handle with LITE_RIGHT_MASTER
 * @length: bytes, 1..LITE_LMR_SIZE_MAX
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_RESIZE.
 */
int lite_lmr_resize(struct lite_ctx *ctx, u64 lh, u64 length);

/**
 * lite_lmr_move - move a range of an LMR to another node's memory
 * @ctx: context
 * @lh: handle with LITE_RIGHT_MASTER
 * @offset: bytes, rounded down to a page
 * @length: bytes, the end is rounded up to a page; 0: all from @offset on
 * @node: id of the node; 0: this one
 * @moved: set to the number of leading bytes moved, on failure too; may be NULL
 *
 * Context: may sleep; killable between steps; what was moved stays moved.
 * Return: 0 or a negative errno as LITE_IOC_MOVE.
 */
int lite_lmr_move(struct lite_ctx *ctx, u64 lh, u64 offset, u64 length, u32 node,
		  u64 *moved);

/**
 * lite_lmr_read - read from an LMR, wherever its memory is
 * @ctx: context
 * @lh: handle with LITE_RIGHT_READ
 * @offset: in the LMR, bytes
 * @buf: memory of kmalloc(), vmalloc(), whole pages or a module's data; on the
 *	stack only if @length is at most a page
 * @length: bytes, at least 1
 *
 * After an error any part of @buf may have changed, but none changes later,
 * unless the kernel log says that the device kept a queue pair.
 *
 * Context: may sleep; killable. There is no time-out: it waits while the home
 * may be alive and while the LMR is being changed.
 * Return: 0 when all of it has arrived, or a negative errno as LITE_IOC_OP.
 */
int lite_lmr_read(struct lite_ctx *ctx, u64 lh, u64 offset, void *buf,
		  size_t length);

/**
 * lite_lmr_write - write to an LMR, wherever its memory is
 * @ctx: context
 * @lh: handle with LITE_RIGHT_WRITE
 * @offset: in the LMR, bytes
 * @buf: kernel memory, as in lite_lmr_read()
 * @length: bytes, at least 1
 *
 * After an error any part of the range may be written, also later, even after a
 * write of another node (Documentation/interfaces/ordering.rst).
 *
 * Context: as lite_lmr_read().
 * Return: 0 when all of it is in the LMR, or a negative errno as LITE_IOC_OP.
 */
int lite_lmr_write(struct lite_ctx *ctx, u64 lh, u64 offset, const void *buf,
		   size_t length);

/**
 * lite_lmr_sendfile - write bytes of a file to an LMR, without a copy
 * @ctx: context
 * @lh: handle with LITE_RIGHT_WRITE
 * @offset: in the LMR, bytes
 * @file: open for reading
 * @pos: in: where to begin in the file, bytes; out: where the bytes moved end
 * @length: bytes; more than there are: to the end
 *
 * Context: may sleep and wait for the file system; killable.
 * Return: bytes moved, fewer than @length at the end of the file or the LMR, or
 * after an error; 0 at the end of the file; or a negative errno as
 * LITE_IOC_SENDFILE.
 */
s64 lite_lmr_sendfile(struct lite_ctx *ctx, u64 lh, u64 offset, struct file *file,
		      loff_t *pos, u64 length);

/**
 * lite_lmr_recvfile - write bytes of an LMR to a file
 * @ctx: context
 * @lh: handle with LITE_RIGHT_READ
 * @offset: in the LMR, bytes
 * @file: open for writing
 * @pos: in: where to begin in the file, bytes; out: where the bytes moved end
 * @length: bytes; more than there are: to the end
 *
 * Context: may sleep and wait for the file system; killable.
 * Return: bytes moved, or a negative errno, as lite_lmr_sendfile().
 */
s64 lite_lmr_recvfile(struct lite_ctx *ctx, u64 lh, u64 offset, struct file *file,
		      loff_t *pos, u64 length);

/**
 * lite_lmr_fetch_add - atomically add to an 8-byte word
 * @ctx: context
 * @lh: handle with LITE_RIGHT_ATOMIC
 * @offset: in the LMR, a multiple of 8
 * @add: addend, modulo 2^64
 * @old: set to the previous value; may be NULL
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_OP.
 */
int lite_lmr_fetch_add(struct lite_ctx *ctx, u64 lh, u64 offset, u64 add,
		       u64 *old);

/**
 * lite_lmr_cmp_swap - atomically compare and swap an 8-byte word
 * @ctx: context
 * @lh: handle with LITE_RIGHT_ATOMIC
 * @offset: in the LMR, a multiple of 8
 * @expected: value to be replaced
 * @desired: the new value
 * @old: set to the previous value, swapped if it is @expected; may be NULL
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_OP.
 */
int lite_lmr_cmp_swap(struct lite_ctx *ctx, u64 lh, u64 offset, u64 expected,
		      u64 desired, u64 *old);

/**
 * lite_lmr_swap - atomically replace an 8-byte word
 * @ctx: context
 * @lh: handle with LITE_RIGHT_ATOMIC
 * @offset: in the LMR, a multiple of 8
 * @desired: the new value
 * @old: set to the previous value; may be NULL
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_OP.
 */
int lite_lmr_swap(struct lite_ctx *ctx, u64 lh, u64 offset, u64 desired,
		  u64 *old);

/**
 * lite_lmr_fetch_and - atomically clear bits of an 8-byte word
 * @ctx: context
 * @lh: handle with LITE_RIGHT_ATOMIC
 * @offset: in the LMR, a multiple of 8
 * @mask: bits to keep
 * @old: set to the previous value; may be NULL
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_OP.
 */
int lite_lmr_fetch_and(struct lite_ctx *ctx, u64 lh, u64 offset, u64 mask,
		       u64 *old);

/**
 * lite_lmr_fetch_or - atomically set bits of an 8-byte word
 * @ctx: context
 * @lh: handle with LITE_RIGHT_ATOMIC
 * @offset: in the LMR, a multiple of 8
 * @bits: bits to set
 * @old: set to the previous value; may be NULL
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_OP.
 */
int lite_lmr_fetch_or(struct lite_ctx *ctx, u64 lh, u64 offset, u64 bits,
		      u64 *old);

/**
 * lite_lmr_fence - make completed operations visible to processors
 * @ctx: context
 * @lh: handle of an LMR: for its nodes; 0: for all that are not down
 *
 * As LITE_OP_FENCE.
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_OP.
 */
int lite_lmr_fence(struct lite_ctx *ctx, u64 lh);

/**
 * lite_lmr_vector - execute many operations in parallel
 * @ctx: context
 * @ops: operations, each with its @size; @buf of a read or write is the address
 *	of kernel memory. Sets @result and @error (0 or a negative errno) of
 *	each.
 * @n: number of operations, 1..INT_MAX
 *
 * The order is undefined, except around LITE_OP_FENCE (see there).
 *
 * Context: may sleep. A fatal signal ends it: operations that were not tried
 * have the error -EINTR.
 * Return: the number of operations with an error; or -EINVAL, -ENODEV, -ENOMEM:
 * nothing was done.
 */
int lite_lmr_vector(struct lite_ctx *ctx, struct lite_op *ops, u32 n);

/**
 * lite_lmr_set - fill a range of an LMR with a pattern, on its nodes
 * @ctx: context
 * @lh: handle with LITE_RIGHT_WRITE
 * @offset: in the LMR, bytes; the pattern begins there
 * @length: bytes, at least 1
 * @pattern: its bytes
 * @pattern_length: number of them, 1..8
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_OP.
 */
int lite_lmr_set(struct lite_ctx *ctx, u64 lh, u64 offset, u64 length,
		 const void *pattern, size_t pattern_length);

/**
 * lite_lmr_copy - copy between LMRs, or within one, from node to node
 * @ctx: context
 * @to: handle with LITE_RIGHT_WRITE
 * @to_offset: in that LMR, bytes
 * @from: handle with LITE_RIGHT_READ
 * @from_offset: in that LMR, bytes
 * @length: bytes, at least 1; the ranges may overlap
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_OP.
 */
int lite_lmr_copy(struct lite_ctx *ctx, u64 to, u64 to_offset, u64 from,
		  u64 from_offset, u64 length);

/**
 * lite_lmr_compare - compare ranges of LMRs, on the nodes of the first one
 * @ctx: context
 * @lh: handle with LITE_RIGHT_READ
 * @offset: in that LMR, bytes
 * @other: handle with LITE_RIGHT_READ
 * @other_offset: in that LMR, bytes
 * @length: bytes, at least 1
 * @equal: set to the number of equal leading bytes
 *
 * Context: may sleep; killable.
 * Return: 0, equal or not, or a negative errno as LITE_IOC_OP.
 */
int lite_lmr_compare(struct lite_ctx *ctx, u64 lh, u64 offset, u64 other,
		     u64 other_offset, u64 length, u64 *equal);

/**
 * lite_lmr_checksum - CRC-32C of a range of an LMR, computed on its nodes
 * @ctx: context
 * @lh: handle with LITE_RIGHT_READ
 * @offset: in the LMR, bytes
 * @length: bytes, at least 1
 * @seed: checksum of what precedes the range, or 0
 * @crc: set to the checksum of that and the range
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_OP.
 */
int lite_lmr_checksum(struct lite_ctx *ctx, u64 lh, u64 offset, u64 length,
		      u32 seed, u32 *crc);

/**
 * lite_lmr_lock - take the lock in an 8-byte word of an LMR
 * @ctx: context
 * @lh: handle with LITE_RIGHT_WRITE and LITE_RIGHT_ATOMIC
 * @offset: of the word, a multiple of 8
 * @owner: any number; distinguishes holders within the context
 * @flags: LITE_LOCK_*
 * @timeout_ms: 1..LITE_TIMEOUT_MAX, LITE_NOWAIT, LITE_FOREVER,
 *	LITE_TIMEOUT_DEFAULT (for ever)
 *
 * Context: may sleep; killable.
 * Return: 0; -EOWNERDEAD: the caller has the lock, and an exclusive holder
 * before it died; or another negative errno as LITE_IOC_LOCK.
 */
int lite_lmr_lock(struct lite_ctx *ctx, u64 lh, u64 offset, u64 owner,
		  u32 flags, s32 timeout_ms);

/**
 * lite_lmr_unlock - release a lock
 * @ctx: context
 * @lh: handle of the LMR
 * @offset: of the word
 * @owner: as passed to lite_lmr_lock()
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_UNLOCK.
 */
int lite_lmr_unlock(struct lite_ctx *ctx, u64 lh, u64 offset, u64 owner);

/**
 * lite_lmr_lock_consistent - declare the data that a lock protects consistent
 * @ctx: context
 * @lh: handle of the LMR
 * @offset: of the word
 * @owner: as passed to lite_lmr_lock(), which returned -EOWNERDEAD
 *
 * Context: may sleep.
 * Return: 0 or a negative errno as LITE_IOC_CONSISTENT.
 */
int lite_lmr_lock_consistent(struct lite_ctx *ctx, u64 lh, u64 offset,
			     u64 owner);

/**
 * lite_lmr_barrier - wait until @n callers wait at a barrier
 * @ctx: context
 * @lh: handle with LITE_RIGHT_WRITE and LITE_RIGHT_ATOMIC
 * @offset: of the word that is the barrier, a multiple of 8
 * @n: number of callers, this one included, 1..LITE_BARRIER_MAX
 * @timeout_ms: 1..LITE_TIMEOUT_MAX, LITE_NOWAIT, LITE_FOREVER,
 *	LITE_TIMEOUT_DEFAULT (for ever)
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_BARRIER.
 */
int lite_lmr_barrier(struct lite_ctx *ctx, u64 lh, u64 offset, u32 n,
		     s32 timeout_ms);

#endif /* _LITE_KAPI_H */
