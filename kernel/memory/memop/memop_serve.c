// SPDX-License-Identifier: GPL-2.0
/*
 * Memory operations, carried out at the node that holds the bytes.
 *
 * Normal operation: a peer, or this node itself, has checked rights and bounds
 * on its handles, and names ranges of LMRs, the first of which (the source for
 * COPY) is held here. We enter our own mappings of them (peer_mapping.c), do a
 * little, leave, and so on, until all is done or LITE_MEMOP_EXEC_TIME is over;
 * the caller comes back for the rest. So neither a REVOKE, here or at the
 * caller, nor a caller that is being killed waits long.
 *
 * Recovery: none here. After its session broke a caller asks to PREPARE before
 * it tries again. PREPARE waits until our operations in its earlier sessions
 * have ended, so that none of them runs afterwards
 * (lite_memop_execs_settle()).
 */
#include <linux/sched/signal.h>

#include "core/memop_rules.h"
#include "memory/io/devop.h"
#include "memory/memory.h"
#include "compat.h"

/* Compare-and-swaps per entry. */
#define LITE_MEMOP_EXEC_SWAPS 16

/* ---- set, checksum ------------------------------------------------------- */

static ssize_t lite_memop_exec_set(struct lite_memop_exec *r)
{
	u32 length = le32_to_cpu(r->op->arg);
	struct lite_memop_cursor p;
	void *mem;
	u64 n;

	mem = lite_memop_cursor_local(r, &p, &n);
	if (IS_ERR(mem))
		return PTR_ERR(mem);
	lite_pattern_fill(mem, n,
			  lite_pattern_rotate(le64_to_cpu(r->op->operand),
					      length, r->done),
			  length);
	lite_access_exit(p.m);
	return n;
}

static ssize_t lite_memop_exec_checksum(struct lite_memop_exec *r)
{
	struct lite_memop_cursor p;
	void *mem;
	u64 n;

	mem = lite_memop_cursor_local(r, &p, &n);
	if (IS_ERR(mem))
		return PTR_ERR(mem);
	/* CRC32C is inverted before and after. */
	r->value = (u32)~lite_crc32c(~(u32)r->value, mem, n);
	lite_access_exit(p.m);
	return n;
}

/* ---- atomics ------------------------------------------------------------- */

/* Some attempts; 0: lost them all. */
static ssize_t lite_word_swap(struct lite_memop_exec *r,
			      struct lite_bounce *bounce)
{
	u32 opcode = le32_to_cpu(r->op->arg);
	u64 operand = le64_to_cpu(r->op->operand);
	struct lite_devop d = { .opcode = LITE_OP_CMP_SWAP };
	struct lite_memop_cursor p;
	ssize_t ret = 0;
	u64 n, *word;
	int i;

	word = lite_memop_cursor_local(r, &p, &n);
	if (IS_ERR(word))
		return PTR_ERR(word);
	d.m = p.m;
	d.offset = p.offset;
	/* A guess, which the device's compare confirms. */
	d.operand = READ_ONCE(*word);
	for (i = 0; i < LITE_MEMOP_EXEC_SWAPS && !ret; i++) {
		d.swap = lite_atomic_result(opcode, d.operand, operand);
		ret = lite_atomic_run(&d, bounce);
		if (ret)
			break;
		r->value = *(u64 *)bounce->data;
		if (r->value == d.operand)
			ret = sizeof(u64);
		d.operand = r->value;
	}
	lite_access_exit(p.m);
	/* PREPARE connects. */
	return ret == -EUNATCH ? -ENOLINK : ret;
}

static ssize_t lite_word_attempt(struct lite_memop_exec *r,
				 struct lite_bounce *bounce)
{
	unsigned long end = jiffies + LITE_MEMOP_EXEC_TIME;
	ssize_t ret;

	do {
		ret = lite_word_swap(r, bounce);
	} while (!ret && time_before(jiffies, end));
	if (!ret)
		r->status = LITE_WIRE_OP_BUSY;
	return ret;
}

static ssize_t lite_memop_exec_atomic(struct lite_memop_exec *r)
{
	struct lite_fabric *fab = r->mem->fab;
	struct lite_bounce *bounce;
	ssize_t ret;

	if (le64_to_cpu(r->op->range.offset) % sizeof(u64) ||
	    le64_to_cpu(r->op->length) != sizeof(u64))
		return -EINVAL;
	if (!fab->atomics)
		return -EOPNOTSUPP;
	/*
	 * One at a time, so that they do not race each other, and only the
	 * holder of the mutex uses a bounce page.
	 */
	if (mutex_lock_killable(&r->mem->word_lock))
		return -EINTR;
	bounce = lite_bounce_get(fab);
	ret = bounce ? lite_word_attempt(r, bounce) : -EINTR;
	if (bounce)
		lite_bounce_put(fab, bounce);
	mutex_unlock(&r->mem->word_lock);
	return ret;
}

/* ---- calls --------------------------------------------------------------- */

static int lite_serve_memop(void *priv, struct lite_conn *conn, const void *req,
			    u32 len, void *reply, u32 *reply_len)
{
	const struct lite_memop_served *served = priv;
	struct lite_wire_op_reply *out = reply;
	struct lite_memop_exec r = {
		.mem = served->mem,
		.conn = conn,
		.op = req,
		.value = le64_to_cpu(
			((const struct lite_wire_op *)req)->operand),
	};
	int err;

	err = lite_memop_exec(&r, served->step);
	if (err == -ENOLINK)
		r.status = LITE_WIRE_OP_UNMAPPED;
	else if (err == -EXDEV)
		r.status = LITE_WIRE_OP_ELSEWHERE;
	else
		out->error = cpu_to_le32(-err);
	out->done = cpu_to_le64(r.done);
	out->value = cpu_to_le64(r.value);
	out->status = cpu_to_le32(r.status);
	*reply_len = sizeof(*out);
	return 0;
}

static int lite_serve_prepare(void *priv, struct lite_conn *conn,
			      const void *req, u32 len, void *reply,
			      u32 *reply_len)
{
	struct lite_memory *mem = priv;
	const struct lite_wire_op *op = req;
	int err;

	err = lite_cluster_ready(mem->cl);
	/* To the peer this node is as good as down. */
	if (err)
		return conn ? -EHOSTDOWN : err;
	err = conn ? lite_memop_execs_settle(mem, conn) : 0;
	if (!err && op->arg)
		err = lite_atomic_connect(mem);
	if (!err)
		err = lite_peer_mapping_prepare(mem, &op->range);
	if (!err && op->from.id)
		err = lite_peer_mapping_prepare(mem, &op->from);
	return err;
}

void lite_memop_handlers(struct lite_memory *mem)
{
	static const struct {
		enum lite_call call;
		lite_memop_exec_step step;
	} memops[] = {
		{ LITE_CALL_OP_SET, lite_memop_exec_set },
		{ LITE_CALL_OP_COPY, lite_memop_exec_copy },
		{ LITE_CALL_OP_COMPARE, lite_memop_exec_compare },
		{ LITE_CALL_OP_CHECKSUM, lite_memop_exec_checksum },
		{ LITE_CALL_OP_ATOMIC, lite_memop_exec_atomic },
	};
	struct lite_kcalls *rpc = mem->cl->rpc;
	int i;

	BUILD_BUG_ON(ARRAY_SIZE(memops) != ARRAY_SIZE(mem->memops));
	for (i = 0; i < ARRAY_SIZE(memops); i++) {
		mem->memops[i].mem = mem;
		mem->memops[i].step = memops[i].step;
		lite_kcall_handle(rpc, memops[i].call, lite_serve_memop,
				  &mem->memops[i]);
	}
	lite_kcall_handle(rpc, LITE_CALL_OP_PREPARE, lite_serve_prepare, mem);
}
