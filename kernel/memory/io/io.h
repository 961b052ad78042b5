/* SPDX-License-Identifier: GPL-2.0 */
/* Reads, writes, atomics and fences, and the memory of their callers. */
#ifndef _LITE_IO_H
#define _LITE_IO_H

#include "memory/handle/ctx.h"

/* The caller's memory for an operation: a user's; or the kernel's, as pages or at an address. */
struct lite_buf {
	union {
		struct lite_gate *gate; /* if @user; may be NULL */
		struct page **pages;    /* if not @user; NULL: kernel memory at @k */
	};
	bool user;
	union {
		unsigned long u; /* address; of @pages: offset in the first one */
		void *k;
	};
};

/* transfer.c, atomic.c, fence.c */
int lite_transfer(const struct lite_access *a, struct lite_op *op, const struct lite_buf *buf);
int lite_atomic(const struct lite_access *a, struct lite_op *op, bool *posted);
int lite_atomic_may(const struct lite_access *a, u64 offset, u64 length);
int lite_fence(struct lite_ctx *ctx, u64 lh);

/* buf.c */
size_t lite_buf_copy_nofault(const struct lite_buf *buf, u64 at, void *mem, size_t n, bool write);
int lite_buf_fault_in(const struct lite_buf *buf, u64 at, size_t n, bool write);
int lite_buf_pin(const struct lite_buf *buf, u64 at, size_t n, bool write, bool wait,
		 struct page **pages, int max, size_t *skip, size_t *got);
bool lite_buf_tryunpin(const struct lite_buf *buf, struct page **pages, int n, bool dirty);
void lite_buf_unpin(const struct lite_buf *buf, struct page **pages, int n, bool dirty);
void lite_buf_keep(const struct lite_buf *buf, struct page **pages, int n);

#endif /* _LITE_IO_H */
