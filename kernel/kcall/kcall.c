// SPDX-License-Identifier: GPL-2.0
/*
 * Making calls.
 *
 * Normal operation: the caller takes a slot of the call's lane, writes the request, and waits. The
 * thread that handles the reply's announcement copies and checks the reply, frees the slot, and
 * sends the request of the waiter that has its turn. Preemption is off from taking a slot to
 * posting, so that no slot depends on a user's thread, which may be without a processor for long.
 *
 * Recovery: when the connection dies, lite_kcall_conn_down() ends all calls with -EHOSTDOWN. A
 * caller that stops waiting leaves its slot ABANDONED, until the connection ends or the reply
 * comes. Late work undoes what such a reply reports.
 *
 * What runs concurrently: on_reply, lite_call_sent(), callers, conn_down, late work. slot->state
 * and slot->sent, under rc->lock, say which thread owns a slot: none until both device and peer are
 * done with it, then the thread that saw the later of these. The reply is copied under rc->lock
 * while slot->desc is set; a caller that gives up clears slot->desc under the lock before its
 * buffer goes. Its lite_io stays until the request has completed, see lite_kcall_settle().
 */
#include <linux/slab.h>

#include "kcall.h"
#include "trace.h"
#include "wait.h"

/* A waiter for a slot: in line until its descriptor has a slot or an ERR_PTR. */
struct lite_slot_waiter {
	struct lite_line_place place;
	struct lite_call_desc *desc;
	struct completion done;
};

/*
 * Slots of a lane that one user may have, and all users together. The rest is for root and the
 * kernel: in CALLER for UNMAP and for undoing calls that were given up, in SHORT for heartbeats and
 * GRANTs. No user gets all of AWAIT, CALLER or ALLOC, where handlers wait for other nodes or
 * for threads of users. ALLOC has no slot for root: users would have to share the other one. Only
 * kernels call in REVOKE and ENDS, and handlers in WORK do not wait: these lanes have no limit.
 */
static const struct {
	u8 each;
	u8 users;
} lite_lane_share[LITE_LANES] = {
	[LITE_LANE_AWAIT] = { 2, 3 },
	[LITE_LANE_CALLER] = { 2, 3 },
	[LITE_LANE_ALLOC] = { 1, 2 },
	[LITE_LANE_REVOKE] = { 2, 2 },
	[LITE_LANE_ENDS] = { 2, 2 },
	[LITE_LANE_WORK] = { 2, 2 },
	[LITE_LANE_SHORT] = { 2, 2 },
};

/*
 * Calls that may take long: LMR_CHUNK waits for a thread of the LMR's owner (bring.c), MEM_FREE for
 * a fence. One of each has a slot at a time, so that the lane has another slot for calls that must
 * not wait so long. Their waiters have lines of their own.
 */
static const u16 lite_lone[LITE_LONE] = { LITE_CALL_LMR_CHUNK, LITE_CALL_MEM_FREE };

/* Slots of a lane that a user has, or with @uid 0 all users together. */
static u32 lite_lane_has(const struct lite_kcall_conn *rc, enum lite_lane lane, u32 uid)
{
	u32 i, n = 0;

	for (i = lite_lane_first[lane]; i < lite_lane_first[lane + 1]; i++) {
		const struct lite_call_slot *s = &rc->call[i];

		n += s->state != LITE_SLOT_FREE && s->uid && (!uid || s->uid == uid);
	}
	return n;
}

/* May a user have one more slot of a lane? */
static bool lite_lane_is_open(const struct lite_kcall_conn *rc, enum lite_lane lane, u32 uid)
{
	return !uid || (lite_lane_has(rc, lane, uid) < lite_lane_share[lane].each &&
			lite_lane_has(rc, lane, 0) < lite_lane_share[lane].users);
}

/* May @call, of lite_lone[], have a free slot of a lane? Not while another such call has one. */
static bool lite_lane_takes(const struct lite_kcall_conn *rc, enum lite_lane lane, u16 call)
{
	u32 i;

	if (lane != lite_call_lane(call))
		return false;
	for (i = lite_lane_first[lane]; i < lite_lane_first[lane + 1]; i++) {
		if (rc->call[i].state != LITE_SLOT_FREE && rc->call[i].call == call)
			return false;
	}
	return true;
}

static struct lite_line *lite_call_line(struct lite_kcall_conn *rc, u16 call)
{
	int i;

	for (i = 0; i < LITE_LONE; i++) {
		if (call == lite_lone[i])
			return &rc->waiters[LITE_LANES + i];
	}
	return &rc->waiters[lite_call_lane(call)];
}

/* The waiter in @line that gets a free slot of a lane, or NULL. Users at a limit are skipped. */
static struct lite_line_place *lite_line_next(struct lite_kcall_conn *rc, enum lite_lane lane,
					      struct lite_line *line)
{
	struct lite_line_place *place;

	if (lite_lane_has(rc, lane, 0) >= lite_lane_share[lane].users)
		return lite_line_first(line, 0);
	list_for_each_entry(place, &line->firsts, firsts) {
		if (lite_lane_is_open(rc, lane, place->kind))
			return place;
	}
	return NULL;
}

/* The waiter that gets a free slot, or NULL. Waiters for calls of lite_lone[] go first. */
static struct lite_slot_waiter *lite_lane_next(struct lite_kcall_conn *rc, enum lite_lane lane)
{
	struct lite_line_place *place = NULL;
	int i;

	for (i = 0; i < LITE_LONE && !place; i++) {
		if (lite_lane_takes(rc, lane, lite_lone[i]))
			place = lite_line_next(rc, lane, &rc->waiters[LITE_LANES + i]);
	}
	if (!place)
		place = lite_line_next(rc, lane, &rc->waiters[lane]);
	return place ? container_of(place, struct lite_slot_waiter, place) : NULL;
}

/* The waiter reads its descriptor under rc->lock, so @w exists until the lock is dropped. */
static void lite_slot_waiter_end(struct lite_slot_waiter *w, struct lite_call_slot *s)
{
	lite_line_leave(&w->place);
	w->desc->slot = s;
	complete(&w->done);
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

static void lite_call_settled(struct lite_call_slot *s, int status);
static void lite_call_sent(struct lite_io *io);

/*
 * Give a free slot to a call, and copy its request, which the caller may free once it knows of the
 * slot. lite_call_post() must follow, with preemption still off.
 */
static void lite_call_slot_claim(struct lite_call_slot *s, struct lite_call_desc *d, u32 uid)
{
	struct lite_wire_msg *msg = lite_slot_data(&s->rc->req_out, s - s->rc->call);

	lockdep_assert_held(&s->rc->lock);
	s->state = LITE_SLOT_WAITING;
	s->uid = uid;
	s->seq = atomic64_inc_return(&s->rc->kcalls->seq);
	s->desc = d;
	s->call = d->call;
	s->late = d->late;
	s->late_ctx = d->late_ctx;
	s->held = d->held;
	s->release = d->release;
	if (s->held)
		kref_get(s->held);
	/* The poster has no share, as it must not touch the io after posting. */
	s->io = (struct lite_io){ .end = lite_call_sent };
	s->sent = false;
	s->counted = false;
	s->sender = &d->io;
	lite_io_expect(&d->io, 1);
	*msg = (struct lite_wire_msg){
		.magic = cpu_to_le32(LITE_WIRE_MAGIC),
		.version = LITE_WIRE_VERSION,
		.call = cpu_to_le16(d->call),
		.length = cpu_to_le32(d->len),
		.seq = cpu_to_le64(s->seq),
	};
	memcpy(msg + 1, d->req, d->len);
	d->slot = s;
	d->sent = true;
	lite_stat_inc(s->rc->kcalls->stats, LITE_STAT_CALLS);
	lite_stat_inc(s->rc->kcalls->stats, LITE_STAT_CALLS_INFLIGHT);
}

/* Post the request of a call with a new slot; preemption is off. @d exists until its io ends. */
static void lite_call_post(struct lite_call_slot *s, struct lite_call_desc *d)
{
	struct lite_kcall_conn *rc = s->rc;

	s->begun = jiffies;
	if (!lite_conn_is_dead(rc->conn) && lite_conn_tryget(rc->conn)) {
		/* An error ends @s->io, too. */
		lite_kcall_post_live(rc, LITE_IMM_REQUEST, s - rc->call, &s->io);
		return;
	}
	d->sent = false;
	lite_call_settled(s, -EHOSTDOWN);
}

/*
 * Give a free slot of a lane, if any, to the waiter that has its turn, if any. Return: the slot,
 * which needs lite_call_post(), with preemption still off; or NULL.
 */
static struct lite_call_slot *lite_lane_grant(struct lite_kcall_conn *rc, enum lite_lane lane,
					      struct lite_call_desc **d)
{
	struct lite_slot_waiter *w;
	u32 i = lite_lane_first[lane];

	lockdep_assert_held(&rc->lock);
	while (i < lite_lane_first[lane + 1] && rc->call[i].state != LITE_SLOT_FREE)
		i++;
	/* lite_kcall_conn_down() ends the waiters for a dead connection. */
	if (i == lite_lane_first[lane + 1] || rc->dead)
		return NULL;
	w = lite_lane_next(rc, lane);
	if (!w)
		return NULL;
	*d = w->desc;
	lite_call_slot_claim(&rc->call[i], *d, w->place.kind);
	lite_slot_waiter_end(w, &rc->call[i]);
	return &rc->call[i];
}

/*
 * Free a slot that this thread owns, and send the requests of waiters: usually one, but more if a
 * limit of the slot's user or call kept waiters from other free slots.
 */
static void lite_call_slot_free(struct lite_call_slot *freed)
{
	enum lite_lane lane = lite_slot_lane(freed - freed->rc->call);
	struct lite_kcall_conn *rc = freed->rc;
	struct lite_call_slot *s;
	struct lite_call_desc *d;

	lite_stat_dec(rc->kcalls->stats, LITE_STAT_CALLS_INFLIGHT);
	if (freed->held)
		kref_put(freed->held, freed->release);
	freed->held = NULL;
	do {
		preempt_disable();
		spin_lock(&rc->lock);
		if (freed)
			freed->state = LITE_SLOT_FREE;
		freed = NULL;
		s = lite_lane_grant(rc, lane, &d);
		spin_unlock(&rc->lock);
		if (s)
			lite_call_post(s, d);
		preempt_enable();
	} while (s);
}

static void lite_call_late_work(struct work_struct *work)
{
	struct lite_call_slot *s = container_of(work, struct lite_call_slot, late_work);
	struct lite_conn *conn = s->rc->conn;
	typeof(s->late) late = s->late;
	void *ctx = s->late_ctx;
	u32 max = lite_call_payload_max(s->call);
	void *reply = kmalloc(max, GFP_KERNEL);
	int err = -ENOMEM;
	u32 len;

	if (reply)
		err = lite_call_take_reply(s, reply, max, &len);
	/* Without a valid reply, only the end of the session undoes the call. */
	if (!reply || err == -EBADMSG)
		lite_conn_kill(conn, reply ? -EPROTO : -ENOMEM);
	if (err)
		late = NULL;
	/* Free the slot first: @late may need one of the same lane. */
	lite_call_slot_free(s);
	if (late)
		late(ctx, conn, reply);
	kfree(reply);
	lite_conn_put(conn);
}

/* This thread owns the slot: device and peer are done. Process context, preemptible or not. */
static void lite_call_slot_over(struct lite_call_slot *s)
{
	struct lite_kcall_conn *rc = s->rc;

	if (s->state == LITE_SLOT_LATE) {
		lite_conn_get(rc->conn);
		queue_work(rc->kcalls->wq[LITE_LANE_CALLER], &s->late_work);
	} else {
		lite_call_slot_free(s);
	}
}

/*
 * The reply of a call has come (if the caller waits, it was copied with the result @err), or it
 * will never come. Return: true: lite_call_slot_over() must follow, unlocked.
 */
static bool lite_call_finish(struct lite_call_slot *s, int err)
{
	struct lite_call_desc *d = s->desc;

	lockdep_assert_held(&s->rc->lock);
	if (s->state == LITE_SLOT_ABANDONED) {
		s->state = err || !s->late ? LITE_SLOT_ENDED : LITE_SLOT_LATE;
		return s->sent;
	}
	/* A second finish does nothing. */
	if (s->state != LITE_SLOT_WAITING)
		return false;
	s->state = LITE_SLOT_ENDED;
	s->desc = NULL;
	d->err = err;
	/* From here on @d may be gone. */
	complete(&d->done);
	return s->sent;
}

/*
 * The device is done with the request. If @status is not 0, the connection is dying, and the reply
 * may never come.
 */
static void lite_call_settled(struct lite_call_slot *s, int status)
{
	struct lite_kcall_conn *rc = s->rc;
	struct lite_io *sender = s->sender;
	bool over, counted;

	if (!status)
		lite_conn_asked(rc->conn, s->begun);
	spin_lock(&rc->lock);
	WRITE_ONCE(s->sent, true); /* read unlocked by lite_call_take_sent() */
	counted = s->counted;
	if (status) {
		/* Post nothing for waiters: that would fail, and recurse to here. */
		rc->dead = true;
		lite_call_finish(s, -EHOSTDOWN);
	}
	over = s->state == LITE_SLOT_ENDED || s->state == LITE_SLOT_LATE;
	spin_unlock(&rc->lock);
	if (counted)
		lite_cq_disarm_sleeper(rc->conn->qp[0].scq);
	if (over)
		lite_call_slot_over(s);
	/* The caller may leave now. */
	lite_io_end(sender, status, 1);
}

static void lite_call_sent(struct lite_io *io)
{
	struct lite_call_slot *s = container_of(io, struct lite_call_slot, io);
	struct lite_conn *conn = s->rc->conn;

	lite_call_settled(s, io->status);
	lite_conn_put_live(conn);
}

/*
 * The reply has overtaken the completion of request @seq, which the caller may not take soon. Take
 * it, or have the send CQ armed until it comes.
 */
static void lite_call_take_sent(struct lite_call_slot *s, u64 seq)
{
	struct lite_kcall_conn *rc = s->rc;
	struct lite_cq *scq = rc->conn->qp[0].scq;
	bool counted = false;

	lite_cq_poll(scq);
	if (READ_ONCE(s->sent))
		return;
	lite_cq_arm_sleeper(scq);
	spin_lock(&rc->lock);
	if (s->seq == seq && !s->sent && !s->counted) {
		s->counted = true;
		counted = true;
	}
	spin_unlock(&rc->lock);
	if (!counted)
		lite_cq_disarm_sleeper(scq);
}

void lite_kcall_on_reply(struct lite_kcall_conn *rc, u32 slot)
{
	const struct lite_wire_msg *msg = lite_slot_data(&rc->rep_in, slot);
	struct lite_call_slot *s = &rc->call[slot];
	bool over = false, sent = true;
	u16 call = 0;
	int err = 0;
	u64 seq;

	spin_lock(&rc->lock);
	seq = s->seq;
	/* Ignore the reply to the slot's previous call, announced again. */
	if (le64_to_cpu(msg->seq) == seq || !lite_conn_repeats(rc->conn)) {
		if (s->state == LITE_SLOT_WAITING) {
			call = s->call;
			err = lite_call_take_reply(s, s->desc->reply, s->desc->reply_max,
						   &s->desc->reply_len);
			/* Kill before the caller is told. */
			if (err == -EBADMSG)
				lite_conn_kill(rc->conn, -EPROTO);
		}
		over = lite_call_finish(s, err == -EBADMSG ? -EPROTO : err);
		/* A dead connection needs no completion, and its queues may be gone. */
		sent = s->sent || s->state == LITE_SLOT_FREE || rc->dead;
	}
	spin_unlock(&rc->lock);
	if (err == -EBADMSG)
		pr_warn_ratelimited("lite: malformed reply to call %u from node %u\n", call,
				    rc->conn->from.node);
	if (over)
		lite_call_slot_over(s);
	else if (!sent)
		lite_call_take_sent(s, seq);
}

/* End the wait of one thread, if any, for a slot of a dead connection. */
static bool lite_slot_waiters_end(struct lite_kcall_conn *rc, struct lite_line *line)
{
	struct lite_line_place *first;

	spin_lock(&rc->lock);
	first = lite_line_front(line);
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
	struct lite_kcall_conn *rc = smp_load_acquire(&conn->kcall);
	bool over;
	int i;

	if (!rc)
		return;
	spin_lock(&rc->lock);
	rc->dead = true;
	spin_unlock(&rc->lock);
	for (i = 0; i < LITE_SLOT_COUNT; i++) {
		spin_lock(&rc->lock);
		over = lite_call_finish(&rc->call[i], -EHOSTDOWN);
		spin_unlock(&rc->lock);
		if (over)
			lite_call_slot_over(&rc->call[i]);
	}
	/* A user may have any number of threads. */
	for (i = 0; i < ARRAY_SIZE(rc->waiters); i++) {
		while (lite_slot_waiters_end(rc, &rc->waiters[i]))
			cond_resched();
	}
}

void lite_kcall_slots_init(struct lite_kcall_conn *rc)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(rc->waiters); i++)
		lite_line_init(&rc->waiters[i]);
	for (i = 0; i < LITE_SLOT_COUNT; i++) {
		rc->call[i].rc = rc;
		INIT_WORK(&rc->call[i].late_work, lite_call_late_work);
	}
}

/*
 * Take a slot and send the request; or queue @w, if given, for another thread to do so. Return: the
 * slot; NULL: none is free for @uid; ERR_PTR: the connection is dead.
 */
static struct lite_call_slot *lite_call_slot_take(struct lite_kcall_conn *rc,
						  struct lite_call_desc *d, u32 uid,
						  struct lite_slot_waiter *w)
{
	struct lite_line *line = lite_call_line(rc, d->call);
	enum lite_lane lane = lite_call_lane(d->call);
	u32 i = lite_lane_first[lane];
	u32 end = lite_lane_first[lane + 1];
	struct lite_call_slot *s = NULL;

	preempt_disable();
	spin_lock(&rc->lock);
	if (rc->dead)
		d->slot = ERR_PTR(-EHOSTDOWN);
	/* This overtakes no waiter: while one is in line, no slot is free for it. */
	if (!lite_lane_is_open(rc, lane, uid) ||
	    (line != &rc->waiters[lane] && !lite_lane_takes(rc, lane, d->call)))
		i = end;
	for (; !d->slot && i < end; i++) {
		s = &rc->call[i];
		if (s->state == LITE_SLOT_FREE)
			lite_call_slot_claim(s, d, uid);
	}
	s = d->slot;
	if (!s && w) {
		w->place.kind = uid;
		lite_line_enter(line, &w->place, false);
	}
	spin_unlock(&rc->lock);
	if (!IS_ERR_OR_NULL(s))
		lite_call_post(s, d);
	preempt_enable();
	return s;
}

/*
 * As wait_for_completion_timeout(), or killable. Other waits have parts (LITE_TIMEOUT_PARTS),
 * because some callers end the session after a time-out.
 */
static long lite_call_wait(struct completion *done, unsigned long timeout, bool killable)
{
	long ret = 0;
	int i;

	if (killable)
		return lite_wait_done_timeout(done, timeout);
	if (timeout < LITE_TIMEOUT_PARTS)
		return wait_for_completion_timeout(done, timeout);
	for (i = 0; i < LITE_TIMEOUT_PARTS && !ret; i++)
		ret = wait_for_completion_timeout(done, timeout / LITE_TIMEOUT_PARTS + 1);
	return ret;
}

/* Return: as lite_kcall_begin(). */
static int lite_call_slot_get(struct lite_kcall_conn *rc, struct lite_call_desc *d,
			      unsigned long timeout)
{
	bool killable = d->slot_timeout != LITE_SLOT_SURELY && (d->killable || d->slot_timeout);
	u32 uid = d->uid ?: lite_current_uid();
	struct lite_slot_waiter w = {
		.desc = d,
		.done = COMPLETION_INITIALIZER_ONSTACK(w.done),
	};
	struct lite_call_slot *s = lite_call_slot_take(rc, d, uid, d->no_wait ? NULL : &w);
	long ret;

	if (s)
		return PTR_ERR_OR_ZERO(s);
	if (d->no_wait)
		return -EAGAIN;
	ret = lite_call_wait(&w.done, d->slot_timeout ?: timeout, killable);
	spin_lock(&rc->lock);
	/* A slot may have been granted at the last moment. */
	s = d->slot;
	if (!s)
		lite_line_leave(&w.place);
	spin_unlock(&rc->lock);
	if (!s)
		return ret < 0 ? -EINTR : -ETIMEDOUT;
	return PTR_ERR_OR_ZERO(s);
}

/* Abandon the slot. Return: false: the result has just come. */
static bool lite_call_abandon(struct lite_call_desc *d)
{
	struct lite_call_slot *s = d->slot;
	bool left;

	spin_lock(&s->rc->lock);
	left = s->desc == d;
	if (left) {
		s->desc = NULL;
		s->state = LITE_SLOT_ABANDONED;
	}
	spin_unlock(&s->rc->lock);
	return left;
}

static unsigned long lite_call_timeout(const struct lite_kcall_conn *rc,
				       const struct lite_call_desc *d)
{
	if (d->deadline)
		return lite_jiffies_left(d->deadline);
	return d->timeout ?: rc->kcalls->timeout;
}

/*
 * Post a request. Until lite_kcall_end(), the caller holds a reference to @conn, and @d stays where
 * it is; @d->req may go before. May sleep; not in the poller. Return: 0: the same thread must call
 * lite_kcall_end(), and lite_kcall_settle() before it waits for anything but @conn; else nothing
 * was sent: errors of lite_kcall(); -EAGAIN: @d->no_wait is set, and no slot is free.
 */
int lite_kcall_begin(struct lite_conn *conn, struct lite_call_desc *d)
{
	struct lite_kcall_conn *rc = conn->kcall;

	d->sent = false;
	if (WARN_ON_ONCE(d->len > lite_call_payload_max(d->call)))
		return -EINVAL;
	if (d->life && d->life != conn->from.incarnation)
		return -ESTALE;
	d->slot = NULL;
	init_completion(&d->done);
	lite_io_init(&d->io);
	return lite_call_slot_get(rc, d, lite_call_timeout(rc, d));
}

/*
 * Wait until a request that this thread has begun is in the peer's memory, or end the connection if
 * the device is stuck. May be called again. Context: may sleep, at most the operation time-out.
 */
void lite_kcall_settle(struct lite_call_desc *d)
{
	if (!lite_io_ended(&d->io))
		lite_io_wait(&d->io, &d->slot->rc->conn->qp[0]);
}

/* Wait for the reply of lite_kcall_begin(). Return: as lite_kcall(). */
int lite_kcall_end(struct lite_conn *conn, struct lite_call_desc *d)
{
	unsigned long timeout = lite_call_timeout(conn->kcall, d);
	long ret;
	int err;

	/* Until then the request uses @d->io. */
	lite_kcall_settle(d);
	ret = lite_call_wait(&d->done, timeout, d->killable);
	if (ret <= 0 && lite_call_abandon(d))
		err = ret < 0 ? -EINTR : -ETIMEDOUT;
	else
		err = d->err;
	trace_lite_call(conn->session, conn->from.node, d->call, err);
	return err;
}

/*
 * Call the kernel at the other end of @conn, to which the caller holds a reference. May sleep; not
 * in the poller, and not in a leaf handler. Return: 0; the handler's errno; -EHOSTDOWN: the
 * connection died; -ETIMEDOUT, -EINTR: the wait ended, and @d->late cleans up: if @d->sent, the
 * call may or may not have been served; -EPROTO: a malformed reply, the connection is killed;
 * -ESTALE: the peer is not in @d->life, nothing was sent.
 */
int lite_kcall(struct lite_conn *conn, struct lite_call_desc *d)
{
	int err = lite_kcall_begin(conn, d);

	if (!err)
		return lite_kcall_end(conn, d);
	trace_lite_call(conn->session, conn->from.node, d->call, err);
	return err;
}
