/* SPDX-License-Identifier: GPL-2.0 */
/* Small operations that nobody waits for. issue.c, issue_post.c */
#ifndef _LITE_ISSUE_H
#define _LITE_ISSUE_H

#include "../fabric/chain.h"
#include "ctx.h"

/* More is not small. */
#define LITE_ISSUE_BYTES LITE_BOUNCE_SIZE

/**
 * struct lite_issues - those of a node that are in flight
 * @lock: protects the others
 * @flight: they, the longest first; of those posted together, the first
 * @pages: mapped for DMA, and free
 * @n_pages: how many there are, free or not
 * @watch: ends the connection of one that takes too long; gives back @pages when
 *	nothing has been in flight for a while
 * @due: jiffies at which @watch is to run, while it is queued
 * @excused: it was late, and has left it at that, once
 * @plugs: of threads that have begun some, and not posted them yet
 * @hurry: posts what they have had for too long
 */
struct lite_issues {
	spinlock_t lock;
	struct list_head flight;
	struct list_head pages;
	u32 n_pages;
	struct delayed_work watch;
	unsigned long due;
	bool excused;
	struct list_head plugs;
	struct delayed_work hurry;
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
 * @link: its work request
 * @next: posted together with it
 * @chain: the first's: all of them
 * @plain: it may go in a message; the first's, in a chain: all of them may
 * @work: likewise: sends those
 * @last: likewise: the last of them
 * @conn: likewise: theirs, held live
 * @list: likewise: in lite_issues.flight
 * @since: likewise: jiffies, of when it was posted; before that, begun
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
	struct lite_link link;
	struct lite_issue *next;
	struct lite_chain chain;
	bool plain;
	struct work_struct work;
	struct lite_issue *last;
	struct lite_conn *conn;
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

/* Between the two files. */
struct lite_extent;

bool lite_issue_post(struct lite_issue *i, const struct lite_op *op,
		     const struct lite_extent *e);
void lite_issue_over(struct lite_issue *i, int err);
void lite_issues_watch(struct work_struct *work);
void lite_issues_hurry(struct work_struct *work);
void lite_issue_pages_free(struct lite_memory *mem, struct list_head *pages);

#endif /* _LITE_ISSUE_H */
