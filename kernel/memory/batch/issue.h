/* SPDX-License-Identifier: GPL-2.0 */
/* Small operations that complete without a waiter. issue.c */
#ifndef _LITE_ISSUE_H
#define _LITE_ISSUE_H

#include "memory/io/devop.h"

struct lite_issue {
	/*
	 * Called at the end, with 0 or an errno of LITE_IOC_OP, when nothing of the node is held
	 * for the operation any more. Must not sleep; may free the struct.
	 */
	void (*end)(struct lite_issue *i, int err);
	void *data;            /* the caller's: room for the bytes read, or an atomic's old value */
	struct lite_memory *mem;
	struct lite_devop d;   /* the operation; its LMR is entered */
	struct lite_bounce *page;
	u64 lh;
	struct lite_io io;     /* calls lite_issue_end() */
	struct lite_qp *qp;    /* where it was posted; its connection is held live */
	struct list_head list; /* in lite_issues.flight */
	unsigned long since;   /* jiffies at which it was posted */
};

enum lite_issued {
	LITE_ISSUED, /* @end will be called, or has been */
	LITE_ISSUED_DONE, /* done; @end will not be called */
	LITE_ISSUED_NOT, /* not done: do all of it and wait */
};

void lite_issues_init(struct lite_memory *mem);
void lite_issues_exit(struct lite_memory *mem);
bool lite_issue_may(const struct lite_op *op);
enum lite_issued lite_issue(struct lite_issue *i, struct lite_ctx *ctx, const struct lite_op *op);

#endif /* _LITE_ISSUE_H */
