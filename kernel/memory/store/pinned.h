/* SPDX-License-Identifier: GPL-2.0 */
/* Process memory that LMRs are made of. pinned.c, register.c */
#ifndef _LITE_PINNED_H
#define _LITE_PINNED_H

#include <linux/rbtree.h>
#include <linux/types.h>

struct lite_alloc;
struct lite_cred;
struct lite_ctx;
struct lite_gate;
struct lite_handle;
struct lite_memory;
struct mm_struct;
struct page;
struct user_struct;

/**
 * struct lite_pinned_run - physically contiguous memory of a process
 * @rb: in the node's interval tree
 * @start: device address of the first byte
 * @last: of the last byte
 * @subtree_last: largest @last in the subtree
 * @page: first page
 * @n: pages; 0: quarantined
 */
struct lite_pinned_run {
	struct rb_node rb;
	u64 start;
	u64 last;
	u64 subtree_last;
	struct page *page;
	u32 n;
};

/**
 * struct lite_pinned - memory of a process that is an LMR
 * @mem: memory layer
 * @list: in the context that registered it, until that is shut; the LMR ends
 *	with it. Under mem->runs_lock
 * @lmr: id of the LMR
 * @user: charged for RLIMIT_MEMLOCK
 * @mm: its VmPin counts the pages
 * @n_pages: pinned and accounted
 * @n_mapped: leading runs that are mapped for the device and in the tree
 * @n_runs: entries in @runs
 * @runs: the pages, in order
 */
struct lite_pinned {
	struct lite_memory *mem;
	struct list_head list;
	u64 lmr;
	struct user_struct *user;
	struct mm_struct *mm;
	unsigned long n_pages;
	u32 n_mapped;
	u32 n_runs;
	struct lite_pinned_run *runs;
};

struct lite_pinned *lite_pinned_new(struct lite_memory *mem, unsigned long addr,
				    u64 length);
void lite_pinned_release(struct lite_pinned *pin);
struct lite_alloc *lite_pinned_adopt(struct lite_memory *mem,
				     struct lite_pinned *pin, u32 uid);
void lite_pinned_free(struct lite_memory *mem, struct lite_pinned *pin,
		      u32 since);
void *lite_pinned_address(struct lite_memory *mem, u64 dma, size_t *n);

#endif /* _LITE_PINNED_H */
