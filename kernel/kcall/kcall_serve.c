// SPDX-License-Identifier: GPL-2.0
/*
 * Serving calls.
 *
 * Normal operation: when a request is announced, the slot's work item is queued. It copies the
 * request out of the peer's reach, checks it, runs the handler, and writes the reply into the
 * caller's reply slot of the same number.
 *
 * What cannot run concurrently: two requests in one slot, as the work item never runs twice at a
 * time. A request that is announced before the reply was sent makes it run again: a peer that
 * reuses a slot too early only loses its own request.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "kcall.h"
#include "trace.h"

static bool lite_kcall_allowed(const struct lite_conn *conn, u16 call)
{
	/* ATTACH comes first: all others rely on it. */
	if (conn->passive && READ_ONCE(conn->state) == LITE_CONN_NEW && call != LITE_CALL_ATTACH)
		return false;
	return lite_call_by(call) & (conn->from.node ? LITE_BY_MEMBER : LITE_BY_GUEST);
}

/*
 * Check a call, and run its handler. Arguments and result are those of lite_handler(), but @call
 * and @req, which is out of the peer's reach, are not checked yet. May sleep. Not inlined, for
 * tests that probe it.
 */
noinline int
lite_kcall_dispatch(struct lite_kcalls *kcalls, struct lite_conn *conn, u16 call, const void *req,
		    u32 len, void *reply)
{
	int ret = lite_wire_request_check(call, req, len);

	if (ret)
		return ret == -EPROTO ? -EBADMSG : ret;
	if (conn && !lite_kcall_allowed(conn, call))
		return -EBADMSG;
	if (call >= LITE_CALL_MAX || !kcalls->handler[call].fn)
		return -EOPNOTSUPP;
	lite_stat_inc(kcalls->stats, LITE_STAT_CALLS_SERVED);
	ret = kcalls->handler[call].fn(kcalls->handler[call].priv, conn, call, req, reply);
	/* It must fit the wire format. */
	if (ret > (int)lite_call_payload_max(call) || ret < -MAX_ERRNO)
		ret = -EIO;
	return ret;
}

static void lite_serve_protocol_error(struct lite_conn *conn, u16 call)
{
	pr_warn_ratelimited("lite: malformed call %u from node %u\n", call, conn->from.node);
	lite_conn_kill(conn, -EPROTO);
}

static void lite_serve(struct lite_serve_slot *s)
{
	struct lite_kcall_conn *rc = s->rc;
	struct lite_conn *conn = rc->conn;
	u32 slot = s - rc->serve;
	const void *in = lite_slot_data(&rc->req_in, slot);
	struct lite_wire_msg *out = lite_slot_data(&rc->rep_out, slot);
	void *req = rc->requests + lite_slot_offset(slot);
	struct lite_wire_msg msg;
	struct lite_io io;
	u16 call;
	u32 len;
	int ret;

	memcpy(&msg, in, sizeof(msg));
	call = le16_to_cpu(msg.call);
	/* A call in the wrong lane could cause a deadlock. */
	if (lite_wire_msg_check(&msg) || msg.error ||
	    lite_call_lane(call) != lite_slot_lane(slot)) {
		lite_serve_protocol_error(conn, call);
		return;
	}
	if (le64_to_cpu(msg.seq) == s->seq) {
		if (!lite_conn_repeats(conn))
			lite_serve_protocol_error(conn, call);
		return;
	}
	s->seq = le64_to_cpu(msg.seq);
	len = le32_to_cpu(msg.length);
	memcpy(req, in + sizeof(msg), len);

	memset(out, 0, lite_slot_bytes(slot));
	ret = lite_kcall_dispatch(rc->kcalls, conn, call, req, len, out + 1);
	trace_lite_serve(conn->session, conn->from.node, call, min(ret, 0));
	if (ret == -EBADMSG) {
		lite_serve_protocol_error(conn, call);
		return;
	}
	out->magic = cpu_to_le32(LITE_WIRE_MAGIC);
	out->version = LITE_WIRE_VERSION;
	out->call = msg.call;
	out->seq = msg.seq;
	out->error = cpu_to_le32(max(-ret, 0));
	out->length = cpu_to_le32(max(ret, 0));

	if (!lite_conn_tryget(conn))
		return;
	lite_io_init(&io);
	/* This fails only if the connection dies; another thread may then be ending @io. */
	lite_kcall_post_live(rc, LITE_IMM_REPLY, slot, &io);
	lite_io_wait(&io, &conn->qp[0]);
	lite_conn_put_live(conn);
}

static void lite_serve_work(struct work_struct *work)
{
	struct lite_serve_slot *s = container_of(work, struct lite_serve_slot, work);
	struct lite_conn *conn = s->rc->conn;
	bool ends = lite_slot_lane(s - s->rc->serve) == LITE_LANE_ENDS;
	/* Handlers of ENDS allocate nothing, and the device's driver must not wait for memory. */
	unsigned int noreclaim = ends ? memalloc_noreclaim_save() : 0;

	lite_serve(s);
	if (ends)
		memalloc_noreclaim_restore(noreclaim);
	lite_conn_put(conn);
}

void lite_kcall_on_request(struct lite_kcall_conn *rc, u32 slot)
{
	struct lite_serve_slot *s = &rc->serve[slot];

	/* The peer calls only after ATTACH, with all its queue pairs connected. */
	if (READ_ONCE(rc->conn->state) == LITE_CONN_UP)
		lite_conn_ready(rc->conn);
	/* The work item drops it. */
	lite_conn_get(rc->conn);
	if (!queue_work(rc->kcalls->wq[lite_slot_lane(slot)], &s->work))
		lite_conn_put(rc->conn);
}

/* Set up all slots for serving. May sleep. Return: 0 or -ENOMEM. */
int lite_kcall_serve_init(struct lite_kcall_conn *rc)
{
	int i;

	for (i = 0; i < LITE_SLOT_COUNT; i++) {
		rc->serve[i].rc = rc;
		INIT_WORK(&rc->serve[i].work, lite_serve_work);
	}
	rc->requests = kmalloc(LITE_SLOTS_BYTES, GFP_KERNEL);
	return rc->requests ? 0 : -ENOMEM;
}
