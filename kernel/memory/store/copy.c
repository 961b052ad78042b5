// SPDX-License-Identifier: GPL-2.0
/*
 * Copying memory between stores, for the home that both gave it to (home/move.c). The source writes
 * straight into the destination's memory, which no node maps yet, but only in the session that it
 * has named to the home before (MEM_SESSION). Documentation/lifetime.rst, Changes of an LMR in use,
 * says what the home does if a copy fails. Within one node the copy holds a reference instead.
 */
#include "memory/memory.h"
#include "store.h"

/* Bytes copied locally between two calls of cond_resched(). */
#define LITE_COPY_BYTES (64UL << 10)

static int lite_copy_local(struct lite_memory *mem, u64 from, u64 to, u64 n)
{
	while (n) {
		size_t in = min_t(u64, n, LITE_COPY_BYTES);
		size_t out = in;
		void *src = lite_store_address(mem, from, &in);
		void *dst = lite_store_address(mem, to, &out);
		size_t done = min(in, out);

		if (!src || !dst)
			return -EIO;
		memcpy(dst, src, done);
		from += done;
		to += done;
		n -= done;
		cond_resched();
	}
	return 0;
}

/* Target of a copy. */
struct lite_copy_io {
	struct lite_qp *qp; /* of a connection held live; NULL: memory of this node */
	struct lite_io io;  /* completion of what was posted */
};

static int lite_copy_run(struct lite_memory *mem, struct lite_copy_io *c, u64 from, u64 to, u64 n)
{
	int err = 0;

	if (!c->qp)
		return lite_copy_local(mem, from, to, n);
	while (n && !err) {
		struct ib_sge sge = {
			.addr = from,
			.length = min_t(u64, n, LITE_WR_BYTES_MAX),
			.lkey = mem->fab->lkey,
		};

		err = lite_qp_rdma(c->qp, &c->io, IB_WR_RDMA_WRITE, &sge, 1, to, 0);
		from += sge.length;
		to += sge.length;
		n -= sge.length;
	}
	return err;
}

/* Fill the extents @to from @alloc, beginning at @offset. */
static int lite_copy_extents(struct lite_memory *mem, struct lite_copy_io *c,
			     const struct lite_alloc *alloc, u64 offset,
			     const struct lite_wire_extent *to, u32 n)
{
	u32 x = lite_extent_find(alloc->extents, alloc->n_extents, offset);
	u64 in = offset - alloc->extents[x].start;
	int err = 0;
	u32 i;

	for (i = 0; i < n && !err; i++) {
		u64 left = le64_to_cpu(to[i].length_share) >> 8;
		u64 addr = le64_to_cpu(to[i].addr);

		while (left && !err) {
			const struct lite_extent *e = &alloc->extents[x];
			u64 run = min(left, e->length - in);

			err = lite_copy_run(mem, c, e->addr + in, addr, run);
			left -= run;
			addr += run;
			in += run;
			if (in < e->length)
				continue;
			in = 0;
			if (++x == alloc->n_extents)
				return left || i + 1 < n ? -EPROTO : err;
		}
	}
	return err;
}

static int lite_copy_away(struct lite_memory *mem, const struct lite_alloc *alloc,
			  const struct lite_wire_mem_copy *c)
{
	struct lite_peer *peer = lite_peer_find(mem->cl, le32_to_cpu(c->node));
	struct lite_copy_io io = {};
	struct lite_conn *conn = NULL;
	int err;

	if (peer && c->session)
		conn = lite_peer_conn_tryget(peer, le64_to_cpu(c->session));
	if (peer)
		lite_peer_put(peer);
	if (!conn)
		return -EHOSTDOWN;
	io.qp = lite_conn_qp(conn, false, 0);
	lite_io_init(&io.io);
	err = lite_copy_extents(mem, &io, alloc, le64_to_cpu(c->offset), c->extent,
				le32_to_cpu(c->count));
	lite_io_wait(&io.io, io.qp);
	lite_conn_put_live(conn);
	return err ?: io.io.status;
}

/* Does @alloc contain a range that the home named? @at: extent to look at first; updated. */
static bool lite_alloc_has(const struct lite_alloc *alloc, u32 *at, u64 addr, u64 n)
{
	u32 i;

	for (i = 0; i < alloc->n_extents; i++) {
		const struct lite_extent *e = &alloc->extents[*at];

		if (addr >= e->addr && n <= e->length && addr - e->addr <= e->length - n)
			return true;
		*at = (*at + 1) % alloc->n_extents;
	}
	return false;
}

static int lite_copy_within(struct lite_memory *mem, u32 home, const struct lite_alloc *alloc,
			    const struct lite_wire_mem_copy *c)
{
	struct lite_alloc *to = lite_store_get(mem, le64_to_cpu(c->to), home, false);
	struct lite_copy_io io = {};
	u32 at = 0, i;
	int err = 0;

	if (!to)
		return -ENOENT;
	for (i = 0; i < le32_to_cpu(c->count) && !err; i++) {
		if (!lite_alloc_has(to, &at, le64_to_cpu(c->extent[i].addr),
				    le64_to_cpu(c->extent[i].length_share) >> 8))
			err = -EPROTO;
	}
	if (!err)
		err = lite_copy_extents(mem, &io, alloc, le64_to_cpu(c->offset), c->extent,
					le32_to_cpu(c->count));
	lite_store_free(to);
	return err;
}

/* MEM_COPY, to memory of the same home. After a failure, writes may still be in flight. */
int lite_serve_mem_copy(struct lite_memory *mem, struct lite_conn *conn, const void *req,
			void *reply)
{
	const struct lite_wire_mem_copy *c = req;
	u32 home = conn ? conn->from.node : lite_cluster_id(mem->cl);
	struct lite_alloc *alloc = lite_store_get(mem, le64_to_cpu(c->id), home, false);
	int err;

	if (!alloc)
		return -ENOENT;
	if (le64_to_cpu(c->offset) >= alloc->bytes)
		err = -EPROTO;
	else if (le32_to_cpu(c->node) == lite_cluster_id(mem->cl))
		err = lite_copy_within(mem, home, alloc, c);
	else
		err = lite_copy_away(mem, alloc, c);
	lite_store_free(alloc);
	return err;
}

int lite_serve_mem_session(struct lite_memory *mem, struct lite_conn *conn, const void *req,
			   void *reply)
{
	const struct lite_wire_mem_session *s = req;
	struct lite_wire_mem_session_reply *r = reply;
	u64 incarnation;
	u64 session = lite_cluster_session(mem->cl, le32_to_cpu(s->node), &incarnation);

	if (!session || incarnation != le64_to_cpu(s->incarnation))
		return -EHOSTDOWN;
	r->session = cpu_to_le64(session);
	return sizeof(*r);
}
