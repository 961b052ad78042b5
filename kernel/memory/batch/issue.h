/* SPDX-License-Identifier: GPL-2.0 */
/* Small operations that complete without a waiter. issue.c */
#ifndef _LITE_ISSUE_H
#define _LITE_ISSUE_H

#include "memory/io/devop.h"

/* Maximum bytes of a small operation. */
#define LITE_ISSUE_BYTES LITE_BOUNCE_SIZE

/**
 * struct lite_issues - the small operations of a node in flight
 * @lock: protects the other fields
 * @flight: struct lite_issue, oldest first
 * @pages: free pages, mapped for DMA
 * @n_pages: number of pages, free or not
 * @watch: ends the connection of an operation that takes too long; frees
 *	@pages if nothing is in flight
 * @due: jiffies at which @watch is to run, if queued
 * @excused: @watch was late, and ended nothing, this one time
 */
struct lite_issues {
	spinlock_t lock;
	struct list_head flight;
	struct list_head pages;
	u32 n_pages;
	struct delayed_work watch;
	unsigned long due;
	bool excused;
};

/**
 * struct lite_issue - a small operation that completes without a waiter
 * @end: called at the end with 0 or an errno as of LITE_IOC_OP; must not
 *	sleep, and may free @i. Nothing of the node is held for it any more.
 * @data: the caller's, until then: room for bytes read, or for the 8 bytes
 *	before an atomic operation
 * @mem: the node's memory
 * @d: the operation; its LMR is entered
 * @page: bounce page
 * @lh: handle
 * @io: calls lite_issue_end()
 * @qp: queue pair that it was posted to; its connection is held live
 * @list: in lite_issues.flight
 * @since: jiffies at which it was posted
 */
struct lite_issue {
	void (*end)(struct lite_issue *i, int err);
	void *data;
	/* private: */
	struct lite_memory *mem;
	struct lite_devop d;
	struct lite_bounce *page;
	u64 lh;
	struct lite_io io;
	struct lite_qp *qp;
	struct list_head list;
	unsigned long since;
};

enum lite_issued {
	LITE_ISSUED, /* @end will be called, or has been */
	LITE_ISSUED_DONE, /* done; @end will not be called */
	LITE_ISSUED_NOT, /* not done: do all of it and wait */
};

void lite_issues_init(struct lite_memory *mem);
void lite_issues_exit(struct lite_memory *mem);
bool lite_issue_may(const struct lite_op *op);
enum lite_issued lite_issue(struct lite_issue *i, struct lite_ctx *ctx,
			    const struct lite_op *op);

#endif /* _LITE_ISSUE_H */
