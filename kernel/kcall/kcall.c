// SPDX-License-Identifier: GPL-2.0
/*
 * Making calls.
 *
 * Normal operation: take a slot of the call's lane, write the request, wait until the poller
 * announces the reply, copy and check it, free the slot. A freed slot goes to a waiter of the lane:
 * users take turns, and none of them gets all slots of a lane with handlers that wait.
 *
 * Recovery: when the connection dies, lite_kcall_conn_down() completes all calls with -EHOSTDOWN. A
 * caller that stops waiting leaves its slot ABANDONED, for the reply or the end of the connection
 * to free.
 *
 * What runs concurrently: the poller (on_reply), callers, the end of the connection (conn_down) and
 * late work. slot->state, under rc->lock, determines the owner of a slot: WAITING - the caller;
 * REPLIED - the caller, which has been woken, or late work; ABANDONED - the poller or conn_down,
 * which pass it to late work.
 */
#include <linux/slab.h>

#include "kcall.h"
#include "trace.h"

/* A waiter for a slot: in its lane's line until @slot is set. */
struct lite_slot_waiter {
	struct lite_line_place place;
	struct lite_call_slot *slot; /* or ERR_PTR */
	struct completion done;
};

/* Slots of a lane that one user may have; 0: all, as its handlers wait for no node but ours. */
static const u8 lite_lane_each[LITE_LANES] = {
	[LITE_LANE_AWAIT] = 2,
	[LITE_LANE_CALLER] = 2,
	[LITE_LANE_ALLOC] = 1,
};

/*
 * May a user have a free slot of a lane? Users together leave one of four to root and the kernel:
 * to unmap, and to undo what was given up.
 */
static bool lite_lane_is_open(struct lite_kcall_conn *rc, enum lite_lane lane, u32 uid)
{
	u32 n = lite_lane_first[lane + 1] - lite_lane_first[lane];
	const struct lite_call_slot *s = &rc->call[lite_lane_first[lane]];
	u32 users = 0, same = 0, i;

	if (!uid)
		return true;
	for (i = 0; i < n; i++) {
		users += s[i].state != LITE_SLOT_FREE && s[i].uid;
		same += s[i].state != LITE_SLOT_FREE && s[i].uid == uid;
	}
	return same < lite_lane_each[lane] && users < n - n / 4;
}

static struct lite_call_slot *lite_call_slot_claim(struct lite_call_slot *s, u32 uid)
{
	lockdep_assert_held(&s->rc->lock);
	s->state = LITE_SLOT_WAITING;
	s->uid = uid;
	s->seq = atomic64_inc_return(&s->rc->rpc->seq);
	s->error = 0;
	reinit_completion(&s->done);
	return s;
}

/* The waiter reads @slot under rc->lock, so @w exists until that is dropped. */
static void lite_slot_waiter_end(struct lite_slot_waiter *w, struct lite_call_slot *s)
{
	lite_line_leave(&w->place);
	w->slot = s;
	complete(&w->done);
}

static void lite_call_slot_free(struct lite_call_slot *s)
{
	enum lite_lane lane = lite_slot_lane(s - s->rc->call);
	struct lite_kcall_conn *rc = s->rc;
	struct lite_slot_waiter *w;

	lite_stat_dec(rc->rpc->stats, LITE_STAT_CALLS_INFLIGHT);
	if (s->held)
		kref_put(s->held, s->release);
	s->held = NULL;
	spin_lock(&rc->lock);
	s->state = LITE_SLOT_FREE;
	list_for_each_entry(w, &rc->waiters[lane].firsts, place.firsts) {
		if (!lite_lane_is_open(rc, lane, w->place.kind))
			continue;
		lite_slot_waiter_end(w, lite_call_slot_claim(s, w->place.kind));
		break;
	}
	spin_unlock(&rc->lock);
}

/* Copy the reply, so that the peer cannot change what has been checked. */
static int lite_call_take_reply(struct lite_call_slot *s, void *reply, u32 max, u32 *reply_len)
{
	struct lite_kcall_conn *rc = s->rc;
	u32 n = s - rc->call;
	const void *slot = lite_slot_data(&rc->rep_in, n);
	struct lite_wire_msg msg;
	u32 len;

	memcpy(&msg, slot, sizeof(msg));
	if (lite_wire_msg_check(&msg) || le16_to_cpu(msg.call) != s->call ||
	    le64_to_cpu(msg.seq) != s->seq)
		return -EBADMSG;
	if (msg.error)
		return lite_wire_error(le32_to_cpu(msg.error));
	len = le32_to_cpu(msg.length);
	if (len > max)
		return -EBADMSG;
	memcpy(reply, slot + sizeof(msg), len);
	if (lite_wire_reply_check(s->call, reply, len))
		return -EBADMSG;
	*reply_len = len;
	return 0;
}

static void lite_call_late_work(struct work_struct *work)
{
	struct lite_call_slot *s = container_of(work, struct lite_call_slot, late_work);
	typeof(s->late) late = s->error ? NULL : s->late;
	struct lite_conn *conn = s->rc->conn;
	void *ctx = s->late_ctx;
	u32 max = lite_call_payload_max(s->call);
	void *reply = late ? kmalloc(max, GFP_KERNEL) : NULL;
	u32 len;

	/* The call's effect is undone by ending the session. */
	if (late && !reply)
		lite_conn_kill(conn, -ENOMEM);
	if (!reply || lite_call_take_reply(s, reply, max, &len))
		late = NULL;
	/* Free the slot first: @late may need one of the same lane. */
	lite_call_slot_free(s);
	if (late)
		late(ctx, conn, reply);
	kfree(reply);
	lite_conn_put(conn);
}

/* The reply of a slot is here, or (@error) will never come. */
static void lite_call_finish(struct lite_call_slot *s, int error)
{
	struct lite_kcall_conn *rc = s->rc;
	enum lite_slot_state was = s->state;

	lockdep_assert_held(&rc->lock);
	/* If REPLIED, the caller or late work owns it: a second finish does nothing. */
	if (was != LITE_SLOT_WAITING && was != LITE_SLOT_ABANDONED)
		return;
	s->error = error;
	s->state = LITE_SLOT_REPLIED;
	if (was == LITE_SLOT_WAITING) {
		complete(&s->done);
	} else {
		lite_conn_get(rc->conn);
		queue_work(rc->rpc->wq[LITE_LANE_CALLER], &s->late_work);
	}
}

void lite_kcall_on_reply(struct lite_kcall_conn *rc, u32 slot)
{
	const struct lite_wire_msg *msg = lite_slot_data(&rc->rep_in, slot);
	struct lite_call_slot *s = &rc->call[slot];

	spin_lock(&rc->lock);
	/* Soft-RoCE may announce the reply to the last call in the slot twice. */
	if (!rc->conn->repeats || le64_to_cpu(msg->seq) == s->seq)
		lite_call_finish(s, 0);
	spin_unlock(&rc->lock);
}

/* End the wait of one thread for a slot of a dead connection, if there is any. */
static bool lite_slot_waiters_end(struct lite_kcall_conn *rc, enum lite_lane lane)
{
	struct lite_line_place *first;

	spin_lock(&rc->lock);
	first = lite_line_front(&rc->waiters[lane]);
	if (first)
		lite_slot_waiter_end(container_of(first, struct lite_slot_waiter, place),
				     ERR_PTR(-EHOSTDOWN));
	spin_unlock(&rc->lock);
	return first;
}

/* Fail all calls: the connection is dying. May sleep. */
void lite_kcall_conn_down(struct lite_conn *conn)
{
	/* Pairs with lite_kcall_conn_init(). */
	struct lite_kcall_conn *rc = smp_load_acquire(&conn->rpc);
	int i;

	if (!rc)
		return;
	spin_lock(&rc->lock);
	rc->dead = true;
	for (i = 0; i < LITE_SLOT_COUNT; i++)
		lite_call_finish(&rc->call[i], -EHOSTDOWN);
	spin_unlock(&rc->lock);
	/* A user may have any number of threads. */
	for (i = 0; i < LITE_LANES; i++) {
		while (lite_slot_waiters_end(rc, i))
			cond_resched();
	}
}

void lite_kcall_slots_init(struct lite_kcall_conn *rc)
{
	int i;

	for (i = 0; i < LITE_LANES; i++)
		lite_line_init(&rc->waiters[i]);
	for (i = 0; i < LITE_SLOT_COUNT; i++) {
		rc->call[i].rc = rc;
		init_completion(&rc->call[i].done);
		INIT_WORK(&rc->call[i].late_work, lite_call_late_work);
	}
}

/* NULL: no slot is free for @uid, and @w, if given, is queued; ERR_PTR: the connection is dead. */
static struct lite_call_slot *lite_call_slot_take(struct lite_kcall_conn *rc, enum lite_lane lane,
						  u32 uid, struct lite_slot_waiter *w)
{
	u32 i = lite_lane_first[lane];
	u32 end = lite_lane_first[lane + 1];
	struct lite_call_slot *s = NULL;

	spin_lock(&rc->lock);
	if (rc->dead)
		s = ERR_PTR(-EHOSTDOWN);
	/* While there are waiters none is free for them. */
	if (!lite_lane_is_open(rc, lane, uid))
		i = end;
	for (; !s && i < end; i++) {
		if (rc->call[i].state == LITE_SLOT_FREE)
			s = lite_call_slot_claim(&rc->call[i], uid);
	}
	if (!s && w) {
		w->place.kind = uid;
		lite_line_enter(&rc->waiters[lane], &w->place, false);
	}
	spin_unlock(&rc->lock);
	return s;
}

static struct lite_call_slot *lite_call_slot_wait(struct lite_kcall_conn *rc,
						  struct lite_slot_waiter *w, unsigned long timeout,
						  bool killable)
{
	struct lite_call_slot *s;
	long ret;

	if (killable)
		ret = wait_for_completion_killable_timeout(&w->done, timeout);
	else
		ret = wait_for_completion_timeout(&w->done, timeout);
	spin_lock(&rc->lock);
	s = w->slot;
	if (!s)
		lite_line_leave(&w->place);
	spin_unlock(&rc->lock);
	/* Take a slot that was granted at the last moment. */
	if (s)
		return s;
	return ERR_PTR(ret < 0 ? -EINTR : -ETIMEDOUT);
}

static struct lite_call_slot *lite_call_slot_get(struct lite_kcall_conn *rc,
						 const struct lite_call_desc *d,
						 unsigned long timeout)
{
	enum lite_lane lane = lite_call_lane(d->call);
	struct lite_slot_waiter w = {
		.done = COMPLETION_INITIALIZER_ONSTACK(w.done),
	};
	struct lite_call_slot *s;
	u32 uid = 0;

	if (lite_lane_each[lane])
		uid = d->uid ?: from_kuid(&init_user_ns, current_euid());
	s = lite_call_slot_take(rc, lane, uid, d->no_wait ? NULL : &w);
	if (!s && d->no_wait)
		s = ERR_PTR(-EAGAIN);
	if (!s)
		s = lite_call_slot_wait(rc, &w, d->slot_timeout ?: timeout,
					d->slot_timeout != LITE_SLOT_SURELY &&
						(d->killable || d->slot_timeout));
	if (!IS_ERR(s))
		lite_stat_inc(rc->rpc->stats, LITE_STAT_CALLS_INFLIGHT);
	return s;
}

/* Stop waiting. True: the slot is abandoned. False: the reply has just come, for the caller. */
static bool lite_call_abandon(struct lite_call_slot *s)
{
	struct lite_kcall_conn *rc = s->rc;
	bool left;

	spin_lock(&rc->lock);
	left = s->state == LITE_SLOT_WAITING;
	if (left)
		s->state = LITE_SLOT_ABANDONED;
	spin_unlock(&rc->lock);
	return left;
}

static int lite_call_send(struct lite_call_slot *s, struct lite_call_desc *d)
{
	struct lite_kcall_conn *rc = s->rc;
	u32 slot = s - rc->call;
	struct lite_wire_msg *msg = lite_slot_data(&rc->req_out, slot);

	s->call = d->call;
	s->late = d->late;
	s->late_ctx = d->late_ctx;
	s->held = d->held;
	s->release = d->release;
	if (s->held)
		kref_get(s->held);
	memset(msg, 0, sizeof(*msg));
	msg->magic = cpu_to_le32(LITE_WIRE_MAGIC);
	msg->version = LITE_WIRE_VERSION;
	msg->call = cpu_to_le16(d->call);
	msg->length = cpu_to_le32(d->len);
	msg->seq = cpu_to_le64(s->seq);
	memcpy(msg + 1, d->req, d->len);
	s->begun = jiffies;
	return lite_kcall_post(rc, LITE_IMM_REQUEST, slot, &s->io);
}

/* A request could not be sent: the connection is dying. */
static void lite_call_fail(struct lite_call_slot *s, int err)
{
	lite_conn_kill(s->rc->conn, err);
	/* conn_down may have run before. */
	spin_lock(&s->rc->lock);
	lite_call_finish(s, -EHOSTDOWN);
	spin_unlock(&s->rc->lock);
}

static unsigned long lite_call_timeout(const struct lite_kcall_conn *rc,
				       const struct lite_call_desc *d)
{
	unsigned long now = jiffies;

	if (d->deadline)
		return time_before(now, d->deadline) ? d->deadline - now : 0;
	return d->timeout ?: rc->rpc->timeout;
}

/**
 * lite_kcall_begin - post a request
 * @conn: caller holds a reference, until lite_kcall_end()
 * @d: what to call; @d->req may go afterwards
 *
 * Context: may sleep; not in the poller.
 * Return: 0: lite_kcall_end() must follow, in the same thread, which calls lite_kcall_settle()
 * before it waits for anything else than @conn. Otherwise nothing was sent: as lite_kcall();
 * -EAGAIN: @d->no_wait, and there is no slot.
 */
int lite_kcall_begin(struct lite_conn *conn, struct lite_call_desc *d)
{
	struct lite_kcall_conn *rc = conn->rpc;
	struct lite_call_slot *s;
	int err;

	d->sent = false;
	if (WARN_ON_ONCE(d->len > lite_call_payload_max(d->call)))
		return -EINVAL;
	if (d->life && d->life != conn->from.incarnation)
		return -ESTALE;
	s = lite_call_slot_get(rc, d, lite_call_timeout(rc, d));
	if (IS_ERR(s))
		return PTR_ERR(s);
	d->slot = s;
	lite_stat_inc(rc->rpc->stats, LITE_STAT_CALLS);
	err = lite_call_send(s, d);
	s->posted = !err;
	d->sent = !err;
	if (err)
		lite_call_fail(s, err);
	return 0;
}

/*
 * Wait until a request that this thread has begun is in the peer's memory; it may be settled
 * already. Until then the thread keeps the connection live, so it settles all calls that it has
 * begun before it waits for the first reply. Context: may sleep, at most the operation time-out.
 */
void lite_kcall_settle(struct lite_call_desc *d)
{
	struct lite_call_slot *s = d->slot;
	int err;

	if (!s->posted)
		return;
	s->posted = false;
	err = lite_kcall_posted(s->rc, &s->io);
	if (err)
		lite_call_fail(s, err);
	else
		lite_conn_asked(s->rc->conn, s->begun);
}

/* Wait for the reply of lite_kcall_begin(). Returns as lite_kcall(). */
int lite_kcall_end(struct lite_conn *conn, struct lite_call_desc *d)
{
	unsigned long timeout = lite_call_timeout(conn->rpc, d);
	struct lite_call_slot *s = d->slot;
	long ret;
	int err;

	/* The slot is not free before the device is done with the request. */
	lite_kcall_settle(d);
	if (d->killable)
		ret = wait_for_completion_killable_timeout(&s->done, timeout);
	else
		ret = wait_for_completion_timeout(&s->done, timeout);
	if (ret <= 0 && lite_call_abandon(s)) {
		err = ret < 0 ? -EINTR : -ETIMEDOUT;
		goto out;
	}
	err = s->error ?: lite_call_take_reply(s, d->reply, d->reply_max, &d->reply_len);
	if (err == -EBADMSG) {
		err = -EPROTO;
		pr_warn_ratelimited("lite: malformed reply to call %u from node %u\n",
				    d->call, conn->from.node);
		lite_conn_kill(conn, -EPROTO);
	}
	lite_call_slot_free(s);
out:
	trace_lite_call(conn->session, conn->from.node, d->call, err);
	return err;
}

/**
 * lite_kcall - call the kernel at the other end of a connection
 * @conn: caller holds a reference
 * @d: what to call
 *
 * Context: may sleep; not in the poller, and not in a leaf handler.
 * Return: 0; the handler's errno; -EHOSTDOWN: the connection died; -ETIMEDOUT, -EINTR: the wait
 * ended, and @d->late cleans up - if @d->sent, the call may or may not have been served; -EPROTO: a
 * malformed reply, the connection is killed; -ESTALE: the peer is not in @d->life, nothing was
 * sent.
 */
int lite_kcall(struct lite_conn *conn, struct lite_call_desc *d)
{
	int err = lite_kcall_begin(conn, d);

	if (!err)
		return lite_kcall_end(conn, d);
	trace_lite_call(conn->session, conn->from.node, d->call, err);
	return err;
}

/*
 * Serve a call of this node to itself. May sleep. Return: the handler's result; -ENOMEM; -EPROTO:
 * the reply is too long.
 */
int lite_kcall_local(struct lite_kcalls *rpc, struct lite_call_desc *d)
{
	void *reply;
	u32 len = 0;
	int err;

	d->sent = true;
	reply = kzalloc(lite_call_payload_max(d->call),
			d->no_reclaim ? GFP_NOWAIT | __GFP_NOWARN : GFP_KERNEL);
	if (!reply)
		return -ENOMEM;
	err = lite_kcall_dispatch(rpc, NULL, d->call, d->req, d->len, reply, &len);
	if (!err && len > d->reply_max)
		err = -EPROTO;
	if (!err) {
		memcpy(d->reply, reply, len);
		d->reply_len = len;
	}
	kfree(reply);
	return err;
}
