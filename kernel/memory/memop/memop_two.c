// SPDX-License-Identifier: GPL-2.0
/*
 * Steps of memory operations on two ranges: copy and compare.
 *
 * A COPY writes from the memory of one LMR straight to that of the other node:
 * no page is pinned, and the data crosses the network once. A COMPARE fetches
 * remote bytes.
 */
#include <linux/slab.h>

#include "core/memop_rules.h"
#include "memory/io/devop.h"
#include "memory/memory.h"

/* Bytes sent in one entry. */
#define LITE_MEMOP_EXEC_SEND (256UL << 10)
/* Bytes fetched for a comparison. */
#define LITE_MEMOP_EXEC_FETCH (32UL << 10)

/*
 * The kernel address of the end of a part: @n is reduced to the contiguous
 * bytes before its end. Contiguous pieces are at least a page, so this takes
 * few steps.
 */
static void *lite_memop_cursor_tail(struct lite_memop_cursor *p, u64 *n)
{
	u64 size = *n;
	void *mem;

	for (;;) {
		mem = lite_memop_cursor_address(p, &size);
		if (!mem || size == *n)
			return mem;
		p->offset += size;
		*n -= size;
		size = *n;
	}
}

/* Transfer between a remote part and memory at @dma. Returns bytes. */
static ssize_t lite_memop_cursor_run(struct lite_memop_cursor *p, u32 opcode,
				     u64 dma, u64 n, u64 packet)
{
	struct lite_devop d = {
		.m = p->m,
		.e = p->e,
		.opcode = opcode,
		.n = n,
		.offset = p->offset,
		.dma = dma,
	};
	int err = lite_devop_run(&d, packet);

	/* There is a newer session: map again. */
	if (err == -EAGAIN)
		return -ENOLINK;
	return err ?: (ssize_t)n;
}

/* ---- copy ---------------------------------------------------------------- */

static ssize_t lite_copy_local(struct lite_memop_exec *r,
			       struct lite_memop_cursor *to,
			       struct lite_memop_cursor *from, u64 n)
{
	bool backward = lite_memop_exec_is_backward(r);
	void *t, *f;

	n = min_t(u64, n, LITE_MEMOP_EXEC_BYTES);
	lite_memop_cursor_place(r, to, n);
	lite_memop_cursor_place(r, from, n);
	if (backward) {
		u64 all = n;

		f = lite_memop_cursor_tail(from, &n);
		to->offset += all - n;
		all = n;
		t = f ? lite_memop_cursor_tail(to, &n) : NULL;
		f = t ? f + (all - n) : NULL;
	} else {
		f = lite_memop_cursor_address(from, &n);
		t = f ? lite_memop_cursor_address(to, &n) : NULL;
	}
	if (!t)
		return -EIO;
	memmove(t, f, n);
	return n;
}

static ssize_t lite_copy_send(struct lite_memop_exec *r,
			      struct lite_memop_cursor *to,
			      struct lite_memop_cursor *from, u64 n)
{
	u64 packet = lite_memop_exec_packet(r, LITE_WR_BYTES_MAX);

	n = min_t(u64, n, lite_memop_exec_packet(r, LITE_MEMOP_EXEC_SEND));
	lite_memop_cursor_place(r, to, n);
	lite_memop_cursor_place(r, from, n);
	return lite_memop_cursor_run(to, LITE_OP_WRITE,
				     lite_memop_cursor_dma(from), n, packet);
}

/**
 * lite_memop_exec_copy - a step of a COPY
 * @r: operation
 *
 * Context: may sleep.
 * Return: bytes, or a negative errno: -ENOLINK: the caller has to PREPARE;
 * -EXDEV: the source is at another node.
 */
ssize_t lite_memop_exec_copy(struct lite_memop_exec *r)
{
	u64 n = LITE_MEMOP_EXEC_SEND;
	struct lite_memop_cursor to, from;
	ssize_t ret;

	ret = lite_memop_cursor_enter(r, &from, &r->op->from, &n);
	if (ret)
		return ret;
	ret = lite_memop_cursor_enter(r, &to, &r->op->range, &n);
	if (ret)
		goto out;
	if (!lite_memop_cursor_is_local(&from))
		ret = -EXDEV;
	else if (lite_memop_cursor_is_local(&to))
		ret = lite_copy_local(r, &to, &from, n);
	else
		ret = lite_copy_send(r, &to, &from, n);
	lite_access_exit(to.m);
out:
	lite_access_exit(from.m);
	return ret;
}

/* ---- compare ------------------------------------------------------------- */

/* Allocate a buffer to fetch into, as large as useful. */
static int lite_memop_exec_page(struct lite_memop_exec *r)
{
	u64 size =
		min_t(u64, le64_to_cpu(r->op->length), LITE_MEMOP_EXEC_FETCH);
	int err;

	r->since = lite_dma_since(r->mem->fab);
	r->order = get_order(size);
	r->page = alloc_pages(GFP_KERNEL | __GFP_NOWARN | __GFP_NORETRY,
			      r->order);
	if (!r->page) {
		r->order = 0;
		r->page = alloc_page(GFP_KERNEL);
	}
	if (!r->page)
		return -ENOMEM;
	err = lite_dma_map_page(r->mem->fab, r->page, PAGE_SIZE << r->order,
				&r->dma);
	if (err) {
		__free_pages(r->page, r->order);
		r->page = NULL;
	}
	return err;
}

static ssize_t lite_compare_parts(struct lite_memop_exec *r,
				  struct lite_memop_cursor *a,
				  struct lite_memop_cursor *b, u64 n)
{
	void *x, *y;
	ssize_t ret;
	size_t same;

	if (!lite_memop_cursor_is_local(a))
		return -EXDEV;
	if (!lite_memop_cursor_is_local(b) && !r->page)
		return -ENOBUFS;
	x = lite_memop_cursor_address(a, &n);
	if (!x)
		return -EIO;
	if (lite_memop_cursor_is_local(b)) {
		y = lite_memop_cursor_address(b, &n);
		if (!y)
			return -EIO;
	} else {
		n = min_t(u64, n, lite_memop_exec_packet(r, PAGE_SIZE <<
							    r->order));
		ret = lite_memop_cursor_run(b, LITE_OP_READ, r->dma, n, n);
		if (ret < 0)
			return ret;
		n = ret;
		y = page_address(r->page);
	}
	same = lite_first_difference(x, y, n);
	if (same < n)
		r->status = LITE_WIRE_OP_DIFFERENT;
	return same;
}

/**
 * lite_memop_exec_compare - a step of a COMPARE
 * @r: operation; its status is set if there is a difference
 *
 * Context: may sleep.
 * Return: equal bytes; or a negative errno as lite_memop_exec_copy().
 */
ssize_t lite_memop_exec_compare(struct lite_memop_exec *r)
{
	struct lite_memop_cursor a, b;
	u64 n = LITE_MEMOP_EXEC_BYTES;
	ssize_t ret;

	ret = lite_memop_cursor_enter(r, &a, &r->op->range, &n);
	if (ret)
		return ret;
	ret = lite_memop_cursor_enter(r, &b, &r->op->from, &n);
	if (!ret) {
		lite_memop_cursor_place(r, &a, n);
		lite_memop_cursor_place(r, &b, n);
		ret = lite_compare_parts(r, &a, &b, n);
		lite_access_exit(b.m);
	}
	lite_access_exit(a.m);
	/* Memory is not allocated while entered. */
	return ret == -ENOBUFS ? lite_memop_exec_page(r) : ret;
}
