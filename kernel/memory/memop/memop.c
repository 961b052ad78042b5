// SPDX-License-Identifier: GPL-2.0
/*
 * Memory operations at their caller's node: set, copy, compare, checksum, and those atomics that a
 * device cannot do. Documentation/memory-operations.rst has the rules and the arguments.
 *
 * Normal operation: enter the LMRs by the caller's handles, which checks rights and bounds; find
 * the node that holds the next bytes; leave; call that node (memop_serve.c), for as much as it
 * holds in a row; go on with the rest. While that node works nothing is entered here: its own
 * mapping protects the memory, and the generation in the request protects the right
 * (lite_peer_mapping_enter()).
 *
 * Recovery: after the session broke a piece is repeated, unless that may do harm, and only after a
 * PREPARE: until one has succeeded, the node is asked for nothing else (@unsettled).
 */
#include "core/memop_rules.h"
#include "memory/io/devop.h"
#include "memory/memory.h"
#include "memop.h"
#include "trace.h"
#include "wait.h"

/*
 * Attempts per piece. Several sessions may break: those with the homes, that with the working node,
 * and that between it and the node that has the other bytes.
 */
#define LITE_MEMOP_CLIENT_TRIES 6

/* Failed attempts after which to use small packets. */
#define LITE_MEMOP_CLIENT_CAREFUL_AFTER 2
/* PREPARE waits for suspect nodes. */
#define LITE_PREPARE_TIMEOUT (30 * HZ)

/* A memory operation of a caller here. */
struct lite_memop_client {
	struct lite_memory *mem;
	const struct lite_op *op;    /* the caller's */
	u16 call;                    /* LITE_CALL_OP_* */
	u32 n;                       /* ranges: 1 or 2 */
	struct lite_access range[2]; /* handle and right of each */
	u64 offset[2];               /* of each */
	struct lite_mapping *m[2];   /* the LMRs, while entered */
	u64 generation[2];           /* of the LMRs when they were last entered */
	bool same;                   /* both ranges are in one LMR */
	bool backward;               /* they have to be copied from the end */
	bool chunked;                /* one of them is in an unpinned LMR */
	bool remote;                 /* some of what the node needs may be at other nodes */
	unsigned long until;         /* for lite_range_renew() */
	bool careful;                /* use small packets */
	u64 done;                    /* bytes */
	u64 value;                   /* of the last reply */
	bool different;              /* the byte at @done differs */
	bool unsettled;              /* a request of an earlier session may still run at @node */
	int tries;                   /* failed attempts of the current piece */
	unsigned long stuck;         /* jiffies at which to give up; waits and progress move it */
	u32 node;                    /* node that has the current bytes */
	u64 piece;                   /* bytes asked for */
	struct lite_wire_op req;
};

static void lite_memop_client_exit(struct lite_memop_client *job, u32 n)
{
	while (n--)
		lite_access_exit(job->m[n]);
}

/* Enter the LMRs. No handle is renewed while one is entered: renewal may wait for this thread. */
static int lite_memop_client_enter(struct lite_memop_client *job)
{
	const struct lite_mapping *stale;
	u32 i = 0;
	u64 at;
	int err;

	while (i < job->n) {
		at = job->offset[i] + (job->backward ? job->op->length - job->done - 1 : job->done);
		job->m[i] = lite_tryenter_at(&job->range[i], job->offset[i], job->op->length, at,
					     &stale);
		err = PTR_ERR_OR_ZERO(job->m[i]);
		if (!err) {
			i++;
			continue;
		}
		lite_memop_client_exit(job, i);
		if (err == -EAGAIN)
			err = lite_range_renew(&job->range[i], at, stale, &job->until);
		if (err && err != -EAGAIN)
			return err;
		i = 0;
	}
	return 0;
}

/* If an LMR has been changed since it was entered last, allow more time. */
static void lite_memop_client_note(struct lite_memop_client *job)
{
	u32 i;

	for (i = 0; i < job->n; i++) {
		job->chunked |= job->m[i]->of;
		if (job->generation[i] == job->m[i]->generation)
			continue;
		job->generation[i] = job->m[i]->generation;
		job->stuck = jiffies + job->mem->fab->op_timeout;
	}
}

/*
 * Decide the direction. It is the same for all pieces: whatever mapping a handle has, it names one
 * LMR for good. Return: false: that direction begins in other chunks: enter again.
 */
static bool lite_memop_client_decide(struct lite_memop_client *job)
{
	const struct lite_mapping *to = job->m[0], *from = job->m[1];
	bool was = job->backward;

	if (job->call != LITE_CALL_OP_COPY)
		return true;
	job->same = to->home == from->home && lite_mapping_lmr(to) == lite_mapping_lmr(from) &&
		    to->home_incarnation == from->home_incarnation;
	job->backward = job->same &&
			lite_copy_is_backward(job->offset[0], job->offset[1], job->op->length);
	return job->backward == was || !job->chunked;
}

/* Cut a piece at the end of the chunks that were entered. @left: bytes that are not done. */
static void lite_memop_client_clamp(struct lite_memop_client *job, u64 left)
{
	u32 i;

	for (i = 0; i < job->n; i++) {
		const struct lite_mapping *m = job->m[i];
		u64 room;

		if (!m->of)
			continue;
		room = job->backward ? job->offset[i] + left - m->base :
				       m->base + m->length - (job->offset[i] + job->done);
		job->piece = min(job->piece, room);
	}
}

/* Fill in the next request. Return: the share that has the bytes. */
static const struct lite_map_share *lite_memop_client_next(struct lite_memop_client *job)
{
	/* The node that stores the source does a COPY, that of the first range anything else. */
	const u32 which = job->call == LITE_CALL_OP_COPY;
	const struct lite_mapping *at = job->m[which];
	u64 base = job->offset[which], left = job->op->length - job->done;
	u64 start, operand = 0;
	u32 flags = 0;

	if (job->backward) {
		job->piece = lite_extent_run_back(at->extents, at->n_extents, base + left, left);
		lite_memop_client_clamp(job, left);
		start = left - job->piece;
		flags |= LITE_WIRE_OP_BACKWARD;
	} else {
		start = job->done;
		job->piece = lite_extent_run(at->extents, at->n_extents, base + start, left);
		lite_memop_client_clamp(job, left);
	}
	if (job->careful)
		flags |= LITE_WIRE_OP_CAREFUL;
	memset(&job->req, 0, sizeof(job->req));
	lite_range_fill(&job->req.range, job->m[0], job->offset[0] + start);
	if (job->n == 2) {
		lite_range_fill(&job->req.from, job->m[1], job->offset[1] + start);
		job->remote = lite_mapping_is_remote(job->m[!which]);
	}
	if (job->call == LITE_CALL_OP_SET) {
		operand = lite_pattern_rotate(job->op->operand, job->op->swap, start);
		job->req.arg = cpu_to_le32(job->op->swap);
	} else if (job->call == LITE_CALL_OP_ATOMIC) {
		operand = job->op->operand;
		job->req.arg = cpu_to_le32(job->op->opcode);
	} else if (job->call == LITE_CALL_OP_CHECKSUM) {
		operand = job->value;
	}
	job->req.operand = cpu_to_le64(operand);
	job->req.length = cpu_to_le64(job->piece);
	job->req.flags = cpu_to_le32(flags);
	return &at->share[lite_extent_at(at, base + start)->share];
}

/*
 * The session with the node of @s, of an LMR that has been entered. @conn: set to it, with a
 * reference; NULL: this node, or failure. Return: 0; -ESTALE: the node has lost the bytes;
 * -EHOSTDOWN.
 */
static int lite_memop_client_conn(const struct lite_map_share *s, struct lite_conn **conn)
{
	*conn = NULL;
	if (s->lost)
		return -ESTALE;
	if (s->local)
		return 0;
	if (s->peer)
		*conn = lite_peer_conn_get(s->peer);
	return *conn ? 0 : -EHOSTDOWN;
}

/*
 * Call the node that has the bytes, in the session @conn; NULL: this node. @sent: false; set if
 * that node may have acted. If it is not set, -EAGAIN means that no slot came free.
 */
static int lite_memop_client_call(struct lite_memop_client *job, struct lite_conn *conn,
				  struct lite_wire_op_reply *reply, bool *sent)
{
	unsigned long timeout = job->mem->fab->op_timeout;
	struct lite_call_desc d = {
		LITE_REQUEST(job->call, job->req),
		LITE_REPLY(*reply),
		.timeout = max(timeout / 2, 1UL),
		.slot_timeout = timeout,
		/* In this thread it could wait for a device with LMRs entered or a mutex held. */
		.by_worker = job->remote || job->call == LITE_CALL_OP_ATOMIC,
		.killable = !conn,
	};
	int err;

	if (!conn)
		return lite_kcall_local(job->mem->cl->kcalls, &d);
	err = lite_kcall(conn, &d);
	*sent = d.sent;
	if (!d.sent && err == -ETIMEDOUT)
		return -EAGAIN;
	job->unsettled = d.sent && (err == -EHOSTDOWN || err == -ETIMEDOUT);
	return err;
}

/*
 * Ask @node to PREPARE for @req, which names one or two LMRs; waits while @node is suspect. May
 * sleep; killable; makes calls; entered nowhere. Return: 0 or an errno. 0, -EBUSY, -ENOENT and
 * -ESTALE mean that @node has ended what this node asked for in earlier sessions.
 */
int lite_memop_prepare(struct lite_memory *mem, u32 node, const struct lite_wire_op *req)
{
	struct lite_call_desc d = {
		LITE_REQUEST(LITE_CALL_OP_PREPARE, *req),
		.timeout = LITE_PREPARE_TIMEOUT,
		.killable = true,
	};

	return lite_cluster_call_patiently(mem->cl, node, &d);
}

static int lite_memop_client_prepare(struct lite_memop_client *job)
{
	const struct lite_wire_range *range[] = { &job->req.range, &job->req.from };
	unsigned long begun;
	int err;
	u32 i;

	if (job->call != LITE_CALL_OP_ATOMIC)
		job->req.arg = 0;
	job->req.flags = 0;
	err = lite_memop_prepare(job->mem, job->node, &job->req);
	if (!err || err == -EBUSY)
		job->unsettled = false;
	switch (err) {
	case -EBUSY:
		/* Waiting for the end of a change does not count as lack of progress. */
		begun = jiffies;
		for (i = 0, err = 0; i < job->n && !err; i++)
			err = lite_mapping_await(job->mem, le32_to_cpu(range[i]->home),
						 le64_to_cpu(range[i]->id));
		job->stuck += jiffies - begun;
		return err;
	case -ENOENT:
		/* A chunk is gone. The next attempt finds out whether its LMR is, too. */
		if (job->chunked) {
			job->unsettled = false;
			return 0;
		}
		for (i = 0, err = -EIDRM; i < job->n && err == -EIDRM; i++)
			err = lite_home_gone(job->mem, le32_to_cpu(range[i]->home),
					     le64_to_cpu(range[i]->incarnation));
		return err;
	case -EHOSTUNREACH:
		return -EHOSTDOWN;
	default:
		return err;
	}
}

/*
 * A node of the LMRs is out of reach. If one is suspect, wait for it; this does not count as an
 * attempt, because several links may break, and recover one after the other. If none is, one may
 * just have come back, or be out of reach of another node only. Return: 0: try again; or an errno.
 */
static int lite_memop_client_await_nodes(struct lite_memop_client *job)
{
	unsigned long begun = jiffies;
	bool back = false;
	int err;
	u32 i;

	for (i = 0; i < job->n; i++) {
		err = lite_access_await(&job->range[i], NULL);
		if (err == -EINTR)
			return err;
		back |= !err;
	}
	job->stuck += jiffies - begun;
	return back || ++job->tries < LITE_MEMOP_CLIENT_TRIES ? 0 : -EHOSTDOWN;
}

/* Have the node prepare; wait for nodes that it cannot reach. */
static int lite_memop_client_prepare_try(struct lite_memop_client *job)
{
	int err = lite_memop_client_prepare(job);

	return err == -EHOSTDOWN ? lite_memop_client_await_nodes(job) : err;
}

/* A session broke. Return: 0: try again; or an errno. */
static int lite_memop_client_recover(struct lite_memop_client *job, int err)
{
	if (++job->tries >= LITE_MEMOP_CLIENT_TRIES)
		return err;
	job->careful |= job->tries >= LITE_MEMOP_CLIENT_CAREFUL_AFTER;
	return lite_memop_client_prepare_try(job);
}

static int lite_memop_client_take(struct lite_memop_client *job,
				  const struct lite_wire_op_reply *reply)
{
	u64 done = le64_to_cpu(reply->done);

	if (done > job->piece)
		return -EPROTO;
	if (!done && !reply->error && !reply->status)
		return -EPROTO;
	job->done += done;
	job->value = le64_to_cpu(reply->value);
	if (job->call == LITE_CALL_OP_CHECKSUM && job->value > U32_MAX)
		return -EPROTO;
	if (done) {
		job->tries = 0;
		job->until = 0;
		job->stuck = jiffies + job->mem->fab->op_timeout;
	}
	return lite_wire_error(le32_to_cpu(reply->error));
}

static int lite_memop_client_in_time(const struct lite_memop_client *job)
{
	return time_after(jiffies, job->stuck) ? -ETIMEDOUT : 0;
}

/* Do one piece. Return: 0: go on, unless all is done; or an errno. */
static int lite_memop_client_piece(struct lite_memop_client *job)
{
	bool atomic = job->call == LITE_CALL_OP_ATOMIC, sent = false, once;
	struct lite_wire_op_reply reply = {};
	const struct lite_map_share *s;
	unsigned long begun = jiffies;
	struct lite_conn *conn;
	int err;

	if (job->unsettled)
		return lite_memop_client_recover(job, -EHOSTDOWN);
	err = lite_memop_client_enter(job);
	job->stuck += jiffies - begun;
	if (err == -EHOSTDOWN)
		return lite_memop_client_await_nodes(job);
	if (err)
		return err;
	lite_memop_client_note(job);
	if (!lite_memop_client_decide(job)) {
		lite_memop_client_exit(job, job->n);
		return 0;
	}
	s = lite_memop_client_next(job);
	job->node = s->node;
	err = lite_memop_client_conn(s, &conn);
	lite_memop_client_exit(job, job->n);
	err = err ?: lite_memop_client_call(job, conn, &reply, &sent);
	lite_conn_put(conn);

	/* What must not be done twice. */
	once = atomic || (job->same &&
			  lite_copy_overlaps(job->offset[0], job->offset[1], job->piece));
	if (err == -EHOSTDOWN)
		return sent && once ? err : lite_memop_client_recover(job, err);
	if (err == -EAGAIN && !sent)
		return lite_memop_client_in_time(job);
	err = err ?: lite_memop_client_take(job, &reply);
	if ((err == -EHOSTDOWN || err == -ETIMEDOUT) && reply.error && !atomic)
		return lite_memop_client_recover(job, err);
	if (err)
		return err;
	job->different = le32_to_cpu(reply.status) == LITE_WIRE_OP_DIFFERENT;
	if (job->different)
		return 0;
	if (le32_to_cpu(reply.status) == LITE_WIRE_OP_UNMAPPED)
		err = lite_memop_client_prepare_try(job);
	/* If the node keeps refusing or redirecting the request, give up in time. */
	if (!err && job->done < job->op->length)
		err = lite_memop_client_in_time(job);
	return err;
}

static int lite_memop_client_run(struct lite_memop_client *job)
{
	struct lite_cluster *cl = job->mem->cl;
	int err;

	job->stuck = jiffies + job->mem->fab->op_timeout;
	/* At least once, because that checks rights and bounds, too. */
	do {
		err = lite_memop_client_piece(job);
		if (err || job->done == job->op->length || job->different)
			break;
		err = lite_given_up() ? -EINTR : lite_cluster_ready(cl);
		cond_resched();
	} while (!err);
	if (err == -EHOSTDOWN)
		err = lite_cluster_ready(cl) ?: err;
	return err;
}

/* Set what differs between the opcodes. Return: 0 or an errno. */
static int lite_memop_client_init(struct lite_memop_client *job)
{
	const struct lite_op *op = job->op;

	job->range[0].right = LITE_RIGHT_READ;
	switch (op->opcode) {
	case LITE_OP_SET:
		job->call = LITE_CALL_OP_SET;
		job->range[0].right = LITE_RIGHT_WRITE;
		return lite_pattern_check(op->operand, op->swap);
	case LITE_OP_COPY:
		job->call = LITE_CALL_OP_COPY;
		job->range[0].right = LITE_RIGHT_WRITE;
		job->n = 2;
		return op->operand ? 0 : -EBADF;
	case LITE_OP_COMPARE:
		job->call = LITE_CALL_OP_COMPARE;
		job->n = 2;
		return op->operand ? 0 : -EBADF;
	case LITE_OP_CHECKSUM:
		job->call = LITE_CALL_OP_CHECKSUM;
		job->value = op->operand;
		if (op->swap)
			return -EOPNOTSUPP;
		return op->operand > U32_MAX ? -EINVAL : 0;
	default:
		job->call = LITE_CALL_OP_ATOMIC;
		job->range[0].right = LITE_RIGHT_ATOMIC;
		return lite_atomic_may(&job->range[0], op->offset, op->length);
	}
}

/* A processor carries the operation out, and must see what the caller has written. */
static int lite_memop_client_fence(struct lite_memop_client *job)
{
	int err = 0;
	u32 i;

	if (lite_device_is_soft(job->mem->fab) || job->call == LITE_CALL_OP_ATOMIC)
		return 0;
	for (i = 0; i < job->n && !err; i++)
		err = lite_fence(job->range[i].ctx, job->range[i].lh);
	return err;
}

/*
 * Carry out an operation where the memory is: LITE_OP_SET, _COPY, _COMPARE, _CHECKSUM, _SWAP,
 * _FETCH_AND or _FETCH_OR. @op's result is 0, and is set, also on failure. May sleep; a fatal
 * signal ends it after the piece in flight. Return: 0 or an errno, see LITE_IOC_OP; after
 * -EHOSTDOWN and -ETIMEDOUT an atomic may or may not have been done.
 */
int lite_memop(struct lite_ctx *ctx, struct lite_op *op)
{
	struct lite_stats __percpu *stats = ctx->mem->stats;
	struct lite_memop_client job = {
		.mem = ctx->mem,
		.op = op,
		.n = 1,
		.range = {
			{ .ctx = ctx, .lh = op->lh },
			{ .ctx = ctx, .lh = op->operand, .right = LITE_RIGHT_READ },
		},
		.offset = { op->offset, op->swap },
	};
	int err = lite_memop_client_init(&job);

	if (err)
		return err;
	lite_stat_inc(stats, LITE_STAT_OPS_INFLIGHT);
	err = lite_memop_client_fence(&job) ?: lite_memop_client_run(&job);
	lite_stat_dec(stats, LITE_STAT_OPS_INFLIGHT);
	if (job.call == LITE_CALL_OP_ATOMIC || job.call == LITE_CALL_OP_CHECKSUM)
		op->result = err ? 0 : job.value;
	else if (!err || !job.backward)
		op->result = job.done;
	if (job.call == LITE_CALL_OP_ATOMIC) {
		lite_op_count(stats, op, 0, err);
		return err;
	}
	lite_stat_inc(stats, LITE_STAT_MEMOPS);
	lite_stat_add(stats, LITE_STAT_MEMOP_BYTES, job.done);
	if (err)
		lite_stat_inc(stats, LITE_STAT_OP_ERRORS);
	trace_lite_op(op->opcode, op->lh, op->offset, op->length, err);
	return err;
}
