/* SPDX-License-Identifier: GPL-2.0 */
/* Small operations that nobody waits for. issue.c */
#ifndef _LITE_ISSUE_H
#define _LITE_ISSUE_H

#include "memory/handle/ctx.h"

/* More is not small. */
#define LITE_ISSUE_BYTES LITE_BOUNCE_SIZE

/**
 * struct lite_issues - those of a node that are in flight
 * @lock: protects the others
 * @flight: they, the longest first
 * @pages: mapped for DMA, and free
 * @n_pages: how many there are, free or not
 * @watch: ends the connection of one that takes too long; gives back @pages when
 *	nothing has been in flight for a while
 * @due: jiffies at which @watch is to run, while it is queued
 * @excused: it was late, and has left it at that, once
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
 * struct lite_issue - a small operation that nobody waits for
 * @end: called when it is over, with an errno as of LITE_IOC_OP, or 0; must not
 *	sleep, and may free it. Nothing of the node is held for it any more.
 * @data: of the caller, until then: room for what is read, or for the 8 bytes
 *	that were there before an atomic operation
 * @mem: node's
 * @m: mapping, entered
 * @page: what the device reads or writes
 * @opcode: LITE_OP_READ, _WRITE, _FETCH_ADD or _CMP_SWAP
 * @length: bytes
 * @lh: handle
 * @offset: in the LMR
 * @io: its end
 * @qp: where it was posted, of a connection that is held live
 * @list: in lite_issues.flight
 * @since: jiffies, of when it was posted
 */
struct lite_issue {
	void (*end)(struct lite_issue *i, int err);
	void *data;
	/* private: */
	struct lite_memory *mem;
	struct lite_mapping *m;
	struct lite_bounce *page;
	u32 opcode;
	u32 length;
	u64 lh;
	u64 offset;
	struct lite_io io;
	struct lite_qp *qp;
	struct list_head list;
	unsigned long since;
};

enum lite_issued {
	LITE_ISSUED, /* @end will be called, or has been */
	LITE_ISSUED_DONE, /* it was quick: @end will not be called */
	LITE_ISSUED_NOT, /* not in this way: do it and wait */
};

void lite_issues_init(struct lite_memory *mem);
void lite_issues_exit(struct lite_memory *mem);
bool lite_issue_may(const struct lite_op *op);
enum lite_issued lite_issue(struct lite_issue *i, struct lite_ctx *ctx,
			    const struct lite_op *op);

#endif /* _LITE_ISSUE_H */
