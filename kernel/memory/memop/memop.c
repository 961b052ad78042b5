// SPDX-License-Identifier: GPL-2.0
/*
 * Memory operations at their caller's node: set, copy, compare, checksum, and
 * those atomics that a device cannot do.
 *
 * Normal operation: enter the LMRs by the caller's handles, which checks
 * rights and bounds; find the node that holds the next bytes; call it, for as
 * much as it holds in a row; leave; note what it has done, and go on with the
 * rest. That node works through mappings of its own (memop_serve.c); if it has
 * none, it says so, and we ask it to PREPARE.
 *
 * We stay entered while it works: when a handle loses its right or its LMR,
 * the revocation waits for our call, so nothing uses the handle any more once
 * that is reported. Therefore the work itself makes no calls and takes little
 * time, and PREPARE, which calls homes, is called outside.
 *
 * LMRs that are being changed: a change waits until we and the other node have
 * left, so neither may wait for a change while entered. If the other node
 * finds its mapping recalled, it stops, and returns UNMAPPED; PREPARE on a
 * closed LMR returns EBUSY. Then we, entered nowhere, await the end of the
 * change at the home of each LMR, and begin the piece anew: location, length
 * and right are checked again.
 *
 * If a call gets no slot for a while, it is given up, and we leave: our
 * queueing must not block others. Slots are granted in turn, so we get one
 * eventually. A call that was sent has half the operation time-out; a signal
 * does not end it, so that nothing is done for a process that has exited. If
 * it is not answered, or the session breaks, the other node may still do one
 * piece. Then only its own mapping protects memory, which it keeps until that
 * piece has ended, and only until the next change: it does nothing in a
 * generation other than the one in which we asked (lite_peer_mapping_enter()).
 *
 * Recovery: after a session broke, wait for the next one and repeat the piece,
 * which is idempotent, except for atomics and for pieces that overlap
 * themselves. The first attempt must be over before the second begins and
 * before we go on: PREPARE waits for that, and until one has done so nothing
 * else is asked (@unsettled).
 */

#include "core/memop_rules.h"
#include "memory/io/devop.h"
#include "memory/memory.h"
#include "trace.h"
#include "wait.h"

/*
 * Attempts per piece, across sessions. Several may break: those with the
 * homes, that with the working node, and that between it and the node that has
 * the other bytes.
 */
#define LITE_MEMOP_CLIENT_TRIES 6
/* Failed attempts after which to use small packets. */
#define LITE_MEMOP_CLIENT_CAREFUL_AFTER 2
/* Time to wait for a slot of a call, while entered. */
#define LITE_MEMOP_CLIENT_SLOT_TIME (HZ / 4)

/**
 * struct lite_memop_client - a memory operation of a caller here
 * @mem: the node's memory
 * @range: first or only range: handle and right
 * @from: second range; @from.lh is 0 if there is none
 * @call: LITE_CALL_OP_*
 * @offset: offset of the first range
 * @from_offset: offset of the second range
 * @length: bytes
 * @operand: operand of the operation
 * @arg: argument of the operation
 * @decided: the next two are valid
 * @overlap: both ranges have bytes in common
 * @backward: they have to be copied from the end
 * @careful: use small packets
 * @done: bytes done
 * @value: value of the last reply
 * @different: the byte at @done differs
 * @unsettled: a request in an earlier session may still be running at @node
 * @tries: failed attempts of the current piece
 * @stuck: jiffies at which to give up; moved on progress, and when an LMR
 *	changes
 * @generation: of the LMRs when they were last entered
 * @node: node that has the current bytes
 * @piece: bytes asked for
 * @op: the request
 */
struct lite_memop_client {
	struct lite_memory *mem;
	struct lite_access range;
	struct lite_access from;
	u16 call;
	u64 offset;
	u64 from_offset;
	u64 length;
	u64 operand;
	u32 arg;
	bool decided;
	bool overlap;
	bool backward;
	bool careful;
	u64 done;
	u64 value;
	bool different;
	bool unsettled;
	int tries;
	unsigned long stuck;
	u64 generation[2];
	u32 node;
	u64 piece;
	struct lite_wire_op op;
};

/* ---- entering ------------------------------------------------------------ */

/*
 * Enter both LMRs, neither of them while handles are renewed: that could wait
 * for the other.
 */
static int lite_memop_client_enter(struct lite_memop_client *job,
				   struct lite_mapping **m,
				   struct lite_mapping **from)
{
	const struct lite_mapping *stale;
	const struct lite_access *a;
	int err;

	do {
		*from = NULL;
		a = &job->range;
		*m = lite_tryenter_range(a, job->offset, job->length, &stale);
		err = PTR_ERR_OR_ZERO(*m);
		if (!err && job->from.lh) {
			a = &job->from;
			*from = lite_tryenter_range(a, job->from_offset,
						    job->length, &stale);
			err = PTR_ERR_OR_ZERO(*from);
			if (err)
				lite_access_exit(*m);
		}
		if (err == -EAGAIN)
			err = lite_access_renew(a, stale) ?: -EAGAIN;
	} while (err == -EAGAIN);
	return err;
}

/* If either LMR has been changed since it was entered last, allow more time. */
static void lite_memop_client_note(struct lite_memop_client *job,
				   const struct lite_mapping *m,
				   const struct lite_mapping *from)
{
	u64 second = from ? from->generation : 0;

	if (job->generation[0] == m->generation && job->generation[1] == second)
		return;
	job->generation[0] = m->generation;
	job->generation[1] = second;
	job->stuck = jiffies + job->mem->fab->op_timeout;
}

static void lite_memop_client_exit(struct lite_mapping *m,
				   struct lite_mapping *from)
{
	if (from)
		lite_access_exit(from);
	lite_access_exit(m);
}

/* Decide the direction, once, as it must not change after the first piece. */
static void lite_memop_client_decide(struct lite_memop_client *job,
				     const struct lite_mapping *m,
				     const struct lite_mapping *from)
{
	if (job->decided)
		return;
	job->decided = true;
	if (job->call != LITE_CALL_OP_COPY || m->home != from->home ||
	    m->id != from->id || m->home_incarnation != from->home_incarnation)
		return;
	job->overlap =
		lite_copy_overlaps(job->offset, job->from_offset, job->length);
	job->backward = lite_copy_is_backward(job->offset, job->from_offset,
					      job->length);
}

/* Fill in the next request. Returns the share of @at that has the bytes. */
static u32 lite_memop_client_next(struct lite_memop_client *job,
				  const struct lite_mapping *at,
				  const struct lite_mapping *m,
				  const struct lite_mapping *from)
{
	u64 base = job->call == LITE_CALL_OP_COPY ? job->from_offset :
						    job->offset;
	u64 left = job->length - job->done;
	struct lite_wire_op *op = &job->op;
	u32 flags = 0;
	u64 start;

	if (job->backward) {
		job->piece = lite_extent_run_back(at->extents, at->n_extents,
						  base + left, left);
		start = left - job->piece;
		flags |= LITE_WIRE_OP_BACKWARD;
	} else {
		start = job->done;
		job->piece = lite_extent_run(at->extents, at->n_extents,
					     base + start, left);
	}
	if (job->careful)
		flags |= LITE_WIRE_OP_CAREFUL;
	memset(op, 0, sizeof(*op));
	lite_range_fill(&op->range, m, job->offset + start);
	if (from)
		lite_range_fill(&op->from, from, job->from_offset + start);
	op->length = cpu_to_le64(job->piece);
	op->operand = cpu_to_le64(job->operand);
	op->arg = cpu_to_le32(job->arg);
	op->flags = cpu_to_le32(flags);
	if (job->call == LITE_CALL_OP_SET)
		op->operand = cpu_to_le64(
			lite_pattern_rotate(job->operand, job->arg, start));
	else if (job->call == LITE_CALL_OP_CHECKSUM)
		op->operand = cpu_to_le64(job->value);
	return lite_extent_at(at, base + start)->share;
}

/* ---- calling ------------------------------------------------------------- */

/*
 * Call the node that has the bytes. @sent: it may have done something; if
 * false, -EAGAIN: there was no slot.
 */
static int lite_memop_client_call(struct lite_memop_client *job,
				  const struct lite_map_share *s,
				  struct lite_wire_op_reply *reply, bool *sent)
{
	struct lite_call_desc d = {
		.call = job->call,
		.req = &job->op,
		.len = sizeof(job->op),
		.reply = reply,
		.reply_max = sizeof(*reply),
		.timeout = max(job->mem->fab->op_timeout / 2, 1UL),
		.slot_timeout = LITE_MEMOP_CLIENT_SLOT_TIME,
	};
	struct lite_conn *conn;
	int err;

	*sent = false;
	if (s->lost)
		return -ESTALE;
	if (s->local)
		return lite_kcall_local(job->mem->cl->rpc, &d);
	conn = lite_peer_conn_get(s->peer);
	if (!conn)
		return -EHOSTDOWN;
	err = lite_kcall(conn, &d);
	lite_conn_put(conn);
	*sent = d.sent;
	if (!d.sent && err == -ETIMEDOUT)
		return -EAGAIN;
	job->unsettled = d.sent && (err == -EHOSTDOWN || err == -ETIMEDOUT);
	return err;
}

/*
 * An LMR could not be mapped as it is being changed: wait for the end of the
 * change. The time does not count as lack of progress.
 */
static int lite_memop_client_await_range(struct lite_memop_client *job,
					 const struct lite_wire_range *range)
{
	unsigned long begun = jiffies;
	int err;

	if (!range->id)
		return 0;
	err = lite_mapping_await(job->mem, le32_to_cpu(range->home),
				 le64_to_cpu(range->id));
	job->stuck += jiffies - begun;
	return err;
}

static int lite_memop_client_prepare(struct lite_memop_client *job)
{
	struct lite_wire_op *op = &job->op;
	struct lite_call_desc d = {
		.call = LITE_CALL_OP_PREPARE,
		.req = op,
		.len = sizeof(*op),
		.timeout = LITE_PREPARE_TIMEOUT,
		.killable = true,
	};
	struct lite_memory *mem = job->mem;
	int err;

	if (job->call != LITE_CALL_OP_ATOMIC)
		op->arg = 0;
	op->flags = 0;
	err = lite_cluster_call_patiently(mem->cl, job->node, &d);
	/* It has waited for earlier requests before it returned these. */
	if (!err || err == -EBUSY)
		job->unsettled = false;
	if (err == -EBUSY)
		return lite_memop_client_await_range(job, &op->range) ?:
			       lite_memop_client_await_range(job, &op->from);
	if (err != -ENOENT)
		return err == -EHOSTUNREACH ? -EHOSTDOWN : err;
	err = lite_home_gone(mem, le32_to_cpu(op->range.home),
			     le64_to_cpu(op->range.incarnation));
	if (err == -EIDRM && op->from.id)
		err = lite_home_gone(mem, le32_to_cpu(op->from.home),
				     le64_to_cpu(op->from.incarnation));
	return err;
}

/*
 * A node of the LMRs is out of reach. Waiting for one that is merely suspect
 * is no attempt: several links may break, and recover one after the other. It
 * may also have come back just now, or be out of another node's reach. 0: try
 * again.
 */
static int lite_memop_client_await_nodes(struct lite_memop_client *job)
{
	int err = lite_access_await(&job->range);
	int second = -EHOSTDOWN;

	if (err != -EINTR && job->from.lh)
		second = lite_access_await(&job->from);
	if (err == -EINTR || second == -EINTR)
		return -EINTR;
	if (!err || !second)
		return 0;
	return ++job->tries < LITE_MEMOP_CLIENT_TRIES ? 0 : -EHOSTDOWN;
}

/* Have the node prepare; wait for nodes that it cannot reach. */
static int lite_memop_client_prepare_try(struct lite_memop_client *job)
{
	int err = lite_memop_client_prepare(job);

	return err == -EHOSTDOWN ? lite_memop_client_await_nodes(job) : err;
}

/* A session broke. 0: try again. */
static int lite_memop_client_recover(struct lite_memop_client *job, int err)
{
	if (++job->tries >= LITE_MEMOP_CLIENT_TRIES)
		return err;
	job->careful |= job->tries >= LITE_MEMOP_CLIENT_CAREFUL_AFTER;
	return lite_memop_client_prepare_try(job);
}

/* Account for what the other node has done. */
static int lite_memop_client_take(struct lite_memop_client *job,
				  const struct lite_wire_op_reply *reply)
{
	u64 done = le64_to_cpu(reply->done);

	if (done > job->piece)
		return -EPROTO;
	/* Success without progress? */
	if (!done && !reply->error && !reply->status)
		return -EPROTO;
	job->done += done;
	job->value = le64_to_cpu(reply->value);
	if (job->call == LITE_CALL_OP_CHECKSUM && job->value > U32_MAX)
		return -EPROTO;
	if (done) {
		job->tries = 0;
		job->stuck = jiffies + job->mem->fab->op_timeout;
	}
	return lite_wire_error(le32_to_cpu(reply->error));
}

static int lite_memop_client_in_time(const struct lite_memop_client *job)
{
	return time_after(jiffies, job->stuck) ? -ETIMEDOUT : 0;
}

/* Do one piece; 0: check whether all is done. */
static int lite_memop_client_piece(struct lite_memop_client *job)
{
	struct lite_mapping *m, *from, *at;
	struct lite_wire_op_reply reply = {};
	const struct lite_map_share *s;
	unsigned long begun = jiffies;
	bool once, sent;
	int err;

	if (job->unsettled)
		return lite_memop_client_recover(job, -EHOSTDOWN);
	err = lite_memop_client_enter(job, &m, &from);
	/* Time spent waiting for a change does not count. */
	job->stuck += jiffies - begun;
	if (err == -EHOSTDOWN)
		return lite_memop_client_await_nodes(job);
	if (err)
		return err;
	lite_memop_client_note(job, m, from);
	lite_memop_client_decide(job, m, from);
	at = job->call == LITE_CALL_OP_COPY ? from : m;
	s = &at->share[lite_memop_client_next(job, at, m, from)];
	job->node = s->node;
	err = lite_memop_client_call(job, s, &reply, &sent);
	lite_memop_client_exit(m, from);

	if (err == -EHOSTDOWN) {
		once = job->call == LITE_CALL_OP_ATOMIC ||
		       (job->overlap &&
			lite_copy_overlaps(job->offset, job->from_offset,
					   job->piece));
		return sent && once ? err : lite_memop_client_recover(job, err);
	}
	if (err == -EAGAIN && !sent)
		return lite_memop_client_in_time(job);
	err = err ?: lite_memop_client_take(job, &reply);
	if ((err == -EHOSTDOWN || err == -ETIMEDOUT) && reply.error &&
	    job->call != LITE_CALL_OP_ATOMIC)
		return lite_memop_client_recover(job, err);
	if (err)
		return err;
	switch (le32_to_cpu(reply.status)) {
	case LITE_WIRE_OP_DIFFERENT:
		job->different = true;
		return 0;
	case LITE_WIRE_OP_UNMAPPED:
		err = lite_memop_client_prepare_try(job);
		break;
	default:
		break;
	}
	/* Mapped and retired, or redirected, for too long? */
	if (!err && job->done < job->length)
		err = lite_memop_client_in_time(job);
	return err;
}

static int lite_memop_client_run(struct lite_memop_client *job)
{
	struct lite_cluster *cl = job->mem->cl;
	int err = 0;

	job->stuck = jiffies + job->mem->fab->op_timeout;
	/* At least once: this is where everything is checked. */
	do {
		err = lite_memop_client_piece(job);
		if (err || job->done == job->length || job->different)
			break;
		err = lite_given_up() ? -EINTR :
						      lite_cluster_ready(cl);
		cond_resched();
	} while (!err);
	/* This node itself may be down. */
	if (err == -EHOSTDOWN)
		err = lite_cluster_ready(cl) ?: err;
	return err;
}

/* ---- for callers --------------------------------------------------------- */

/**
 * lite_memop_atomic - swap, fetch-and, fetch-or
 * @ctx: context of the handle
 * @op: operation; its result is set to the value before
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_OP. After -EHOSTDOWN and
 * -ETIMEDOUT it may or may not have been done.
 */
int lite_memop_atomic(struct lite_ctx *ctx, struct lite_op *op)
{
	struct lite_memory *mem = ctx->mem;
	struct lite_memop_client job = {
		.mem = mem,
		.range = {
			.ctx = ctx,
			.lh = op->lh,
			.right = LITE_RIGHT_ATOMIC,
		},
		.call = LITE_CALL_OP_ATOMIC,
		.offset = op->offset,
		.length = sizeof(u64),
		.operand = op->operand,
		.arg = op->opcode,
	};
	int err = lite_atomic_may(&job.range, op->offset, op->length);

	if (err)
		return err;
	lite_stat_inc(mem->stats, LITE_STAT_OPS_INFLIGHT);
	err = lite_memop_client_run(&job);
	lite_stat_dec(mem->stats, LITE_STAT_OPS_INFLIGHT);
	if (!err)
		op->result = job.value;
	lite_op_count(mem->stats, op, 0, err);
	return err;
}

/* Set what differs between the opcodes. Returns 0 or an errno. */
static int lite_memop_client_init(struct lite_memop_client *job,
				  const struct lite_op *op)
{
	job->range.right = LITE_RIGHT_READ;
	job->from.right = LITE_RIGHT_READ;
	job->from.ctx = job->range.ctx;
	switch (op->opcode) {
	case LITE_OP_SET:
		job->call = LITE_CALL_OP_SET;
		job->range.right = LITE_RIGHT_WRITE;
		job->operand = op->operand;
		job->arg = op->swap;
		return lite_pattern_check(op->operand, op->swap);
	case LITE_OP_COPY:
	case LITE_OP_COMPARE:
		job->call = LITE_CALL_OP_COMPARE;
		if (op->opcode == LITE_OP_COPY) {
			job->call = LITE_CALL_OP_COPY;
			job->range.right = LITE_RIGHT_WRITE;
		}
		job->from.lh = op->operand;
		job->from_offset = op->swap;
		return op->operand ? 0 : -EBADF;
	default:
		job->call = LITE_CALL_OP_CHECKSUM;
		job->value = op->operand;
		if (op->swap)
			return -EOPNOTSUPP;
		return op->operand > U32_MAX ? -EINVAL : 0;
	}
}

/* A processor carries it out, and must see what the caller has written. */
static int lite_memop_client_fence(struct lite_memop_client *job)
{
	int err;

	if (job->mem->fab->quirks.soft)
		return 0;
	err = lite_fence(job->range.ctx, job->range.lh);
	if (!err && job->from.lh)
		err = lite_fence(job->from.ctx, job->from.lh);
	return err;
}

/**
 * lite_memop - an operation on memory of LMRs, carried out where it is
 * @ctx: context of the handles
 * @op: LITE_OP_SET, LITE_OP_COPY, LITE_OP_COMPARE, LITE_OP_CHECKSUM; its result
 *	is set, after failures too
 *
 * Context: may sleep; a fatal signal ends it after the piece in flight.
 * Return: 0 or a negative errno as LITE_IOC_OP.
 */
int lite_memop(struct lite_ctx *ctx, struct lite_op *op)
{
	struct lite_stats __percpu *stats = ctx->mem->stats;
	struct lite_memop_client job = {
		.mem = ctx->mem,
		.range = { .ctx = ctx, .lh = op->lh },
		.offset = op->offset,
		.length = op->length,
	};
	int err = lite_memop_client_init(&job, op);

	if (err)
		return err;
	lite_stat_inc(stats, LITE_STAT_OPS_INFLIGHT);
	err = lite_memop_client_fence(&job) ?: lite_memop_client_run(&job);
	lite_stat_dec(stats, LITE_STAT_OPS_INFLIGHT);
	lite_stat_inc(stats, LITE_STAT_MEMOPS);
	lite_stat_add(stats, LITE_STAT_MEMOP_BYTES, job.done);
	if (err)
		lite_stat_inc(stats, LITE_STAT_OP_ERRORS);
	if (op->opcode == LITE_OP_CHECKSUM)
		op->result = err ? 0 : job.value;
	else if (!err || !job.backward)
		op->result = job.done;
	trace_lite_op(op->opcode, op->lh, op->offset, op->length, err);
	return err;
}
