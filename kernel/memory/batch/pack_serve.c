// SPDX-License-Identifier: GPL-2.0
/*
 * Small reads and writes, many in a message, at the node that holds the bytes.
 *
 * Normal operation: a peer has checked rights and bounds on its handles. The handler enters this
 * node's mapping of the first LMR (peer_mapping.c), goes through the operations in order, and
 * leaves it when one names another LMR. A message is a few kilobytes at most, so a REVOKE does not
 * wait long, and nothing here sleeps.
 *
 * Recovery: none. If an operation fails the reply says so, and the caller does all of them in
 * another way. The message is in mem->work as memory operations are, so that it has ended before
 * any of its operations is repeated (lite_memop_execs_conn_down(), lite_memop_execs_settle()).
 */
#include "memory/handle/ctx.h"
#include "memory/memop/memop.h"
#include "memory/memory.h"
#include "pack.h"

/* A message that is being carried out. */
struct lite_unpack {
	struct lite_memory *mem;
	const struct lite_wire_pack *req; /* request, checked */
	struct lite_mapping *m;           /* the entered LMR, or NULL */
	u32 range;                        /* its number in the message */
	const u8 *out;                    /* bytes of the next write */
	u8 *in;                           /* room for the next read */
};

static void lite_unpack_leave(struct lite_unpack *u)
{
	if (u->m)
		lite_access_exit(u->m);
	u->m = NULL;
}

static int lite_unpack_enter(struct lite_unpack *u, const struct lite_wire_pack_op *op)
{
	u64 offset = le64_to_cpu(op->offset), length = le16_to_cpu(op->length);
	struct lite_mapping *m;

	if (u->m && u->range == op->range)
		return lite_mapping_bounds(u->m, offset, length);
	lite_unpack_leave(u);
	m = lite_peer_mapping_enter(u->mem, &lite_wire_pack_ranges(u->req)[op->range], offset,
				    length);
	if (IS_ERR(m))
		return PTR_ERR(m);
	u->m = m;
	u->range = op->range;
	return 0;
}

static int lite_unpack_copy(struct lite_unpack *u, const struct lite_wire_pack_op *op)
{
	u64 offset = le64_to_cpu(op->offset), left = le16_to_cpu(op->length);
	const struct lite_extent *e = lite_extent_at(u->m, offset);
	u64 at = offset - e->start;

	if (!u->m->share[e->share].local || left > e->length - at)
		return -EXDEV;
	while (left) {
		size_t n = left;
		void *mem = lite_mapping_address(u->m, e, at, &n);

		if (!mem)
			return -EIO;
		if (op->write) {
			memcpy(mem, u->out, n);
			u->out += n;
		} else {
			memcpy(u->in, mem, n);
			u->in += n;
		}
		at += n;
		left -= n;
	}
	return 0;
}

/* Carry out all operations, in order. Sets @at to the index of one that failed. */
static int lite_unpack(struct lite_unpack *u, u32 *at)
{
	u32 i, n = le32_to_cpu(u->req->n_ops);
	int err = 0;

	for (i = 0; i < n; i++) {
		const struct lite_wire_pack_op *op = &lite_wire_pack_ops(u->req)[i];

		err = lite_unpack_enter(u, op) ?: lite_unpack_copy(u, op);
		if (err)
			break;
	}
	lite_unpack_leave(u);
	*at = err ? i : 0;
	return err;
}

int lite_serve_pack(struct lite_memory *mem, struct lite_conn *conn, const void *req, void *reply)
{
	struct lite_wire_pack_reply *out = reply;
	struct lite_memop_exec r = { .mem = mem, .conn = conn, .brief = true };
	struct lite_unpack u = {
		.mem = mem,
		.req = req,
		.out = lite_wire_pack_bytes(req),
		.in = (u8 *)(out + 1),
	};
	u32 at = 0;
	int err;

	err = lite_memop_exec_begin(&r);
	if (!err)
		err = lite_unpack(&u, &at);
	lite_memop_exec_end(&r);
	out->at = cpu_to_le32(at);
	if (!err)
		return u.in - (u8 *)reply;
	if (err == -ENOLINK)
		out->status = cpu_to_le32(LITE_WIRE_OP_UNMAPPED);
	else if (err == -EXDEV)
		out->status = cpu_to_le32(LITE_WIRE_OP_ELSEWHERE);
	else
		out->error = cpu_to_le32(-err);
	return sizeof(*out);
}
