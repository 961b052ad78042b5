// SPDX-License-Identifier: GPL-2.0
/*
 * Turns: which operation goes to the peer next, if the node schedules operations.
 * Documentation/scheduling.rst has the rules, and what is not scheduled.
 *
 * Normal operation: every lite_qp.waiting of a scheduled connection is at least 1, so posters take
 * the slow path (slot.c), which comes here. A struct lite_post that cannot pass by waits in the
 * scheduler (core/sched.c), on its poster's stack, and the thread that makes room posts for it, as
 * slot.c does for a slot. What is posted carries its cost in lite_wr.flight until it has completed.
 *
 * A waiter depends on completions of all queue pairs of the connection, so it has all of them
 * armed. It leaves when it is killed, or when an LMR that it has entered is about to be changed
 * (lite_io_hooks.stale). It checks this itself, in ticks, so that the thread that changes the LMR
 * need not look for it. If it gets no processor to check, it gets its turn at last.
 *
 * Recovery: nothing gets a turn when the connection is dead; waiters leave. Turns that are in
 * flight then are not given back: they end with the connection.
 *
 * Locking: lite_turns.lock protects tenants and the scheduler's queues. It is taken in process
 * context, outside of lite_qp.lock, and nothing is posted under it.
 */
#include <linux/sched/clock.h>
#include <linux/slab.h>

#include "slot.h"
#include "trace.h"
#include "wait.h"

/*
 * What a work request costs a device besides its bytes, in bytes: about right for software devices.
 * So the window holds few more small work requests than a queue pair has slots.
 */
#define LITE_TURN_OP_COST (LITE_TURN_WINDOW / LITE_SQ_DEPTH)
/* Maximum cost in flight, in bytes. */
#define LITE_TURN_WINDOW SZ_512K
/* A class that is not served rises by one after this time. */
#define LITE_TURN_AGE_NS (10 * NSEC_PER_MSEC)

struct lite_turn_tenant {
	struct lite_sched_tenant tenant;
	struct list_head list; /* in lite_turns.tenants */
	u64 id;                /* see lite_qos_tenant() */
};

static const struct lite_sched_conf lite_turn_conf = {
	.mode = LITE_SCHED_NONE,
	.slice = LITE_WR_BYTES_MAX,
	.op_cost = LITE_TURN_OP_COST,
	.window_max = LITE_TURN_WINDOW,
	.age_ns = LITE_TURN_AGE_NS,
};

/*
 * Find the tenant @id, or make it. Once there are LITE_TENANTS_MAX, an idle one, with nothing
 * waiting or in flight, becomes @id. Return: it; if none is idle, or there is no memory, the tenant
 * of the rest, not root's: there the kernel's own copies (MOVE) would wait behind others.
 */
static struct lite_sched_tenant *lite_tenant_get(struct lite_conn *conn, u64 id)
{
	struct lite_turns *turns = conn->turns;
	struct lite_turn_tenant *t, *new = NULL;

	lockdep_assert_held(&turns->lock);
	if (id == LITE_QOS_ROOT)
		return &turns->root;
	list_for_each_entry(t, &turns->tenants, list) {
		if (t->id == id)
			return &t->tenant;
		if (!new && !t->tenant.stats.queued && !t->tenant.stats.in_flight)
			new = t;
	}
	if (turns->n_tenants < LITE_TENANTS_MAX) {
		new = kmalloc(sizeof(*new), GFP_NOWAIT | __GFP_NOWARN);
		if (new) {
			list_add(&new->list, &turns->tenants);
			turns->n_tenants++;
		}
	}
	if (!new)
		return &turns->rest;
	new->id = id;
	lite_sched_tenant_init(&new->tenant, lite_qos_weight(conn->fab->qos, id));
	return &new->tenant;
}

/*
 * The class of what tenant @id posts with @prio (LITE_POST_PRIO). LITE_POST_BOUND: the tenant's
 * ceiling may have become lower since the file was opened. Root's does not apply, because threads
 * of the kernel, which count as root, may post for other tenants.
 */
static u32 lite_turn_class(struct lite_qos *qos, u64 id, u32 prio)
{
	u32 class = lite_sched_class_of(prio % LITE_PRIOS);
	struct lite_qos_rule rule;

	if (!(prio & LITE_POST_BOUND) || id == LITE_QOS_ROOT)
		return class;
	lite_qos_get(qos, id, &rule);
	return max_t(u32, class, rule.ceiling);
}

/* @post has its turn: post it, or have it wait for a slot. */
static void lite_turn_give(struct lite_post *post)
{
	int slot = lite_slot_get_last(post->qp, post->kind);

	if (slot < 0) {
		lite_slot_queue(post);
		return;
	}
	lite_post_with(post, slot);
	lite_io_end(&post->turn, 0, 1);
}

/* Dequeue the waiter that goes next; any waiter if the connection is @dead. */
static struct lite_post *lite_turn_next(struct lite_turns *turns, bool dead)
{
	struct lite_sched_item *item;
	struct lite_post *post;

	spin_lock(&turns->lock);
	if (dead) {
		post = list_first_entry_or_null(&turns->line, struct lite_post, line);
		if (post)
			lite_sched_remove(&turns->sched, &post->item);
	} else {
		item = lite_sched_pop(&turns->sched, local_clock());
		post = item ? container_of(item, struct lite_post, item) : NULL;
	}
	if (post)
		list_del_init(&post->line);
	spin_unlock(&turns->lock);
	return post;
}

static void lite_turn_trace(const struct lite_conn *conn, const struct lite_sched_item *item)
{
	const struct lite_sched_flight *flight = &item->flight;
	const struct lite_turn_tenant *t =
		container_of(flight->tenant, struct lite_turn_tenant, tenant);
	bool own = flight->tenant != &conn->turns->root && flight->tenant != &conn->turns->rest;

	trace_lite_turn(conn->session, own ? t->id : LITE_QOS_ROOT, flight->prio, item->bytes,
			flight->posted - item->since);
}

/* Post for waiters while the window has room. Process context. Return: as lite_slots_grant(). */
bool lite_turns_grant(struct lite_conn *conn)
{
	struct lite_turns *turns = lite_turns_of(conn);
	struct lite_post *post;
	bool dead;

	if (!turns)
		return false;
	do {
		/* A dequeued waiter depends on this thread. */
		lite_posting_begin(conn);
		dead = lite_conn_is_dead(conn);
		post = lite_turn_next(turns, dead);
		if (post && dead) {
			lite_post_fail(post, -EHOSTDOWN);
			lite_io_end(&post->turn, 0, 1);
		} else if (post) {
			if (trace_lite_turn_enabled())
				lite_turn_trace(conn, &post->item);
			lite_turn_give(post);
		}
		lite_posting_end(conn);
	} while (post && !dead);
	return post;
}

/* End a turn: its work requests have completed, or were not posted. Process context. */
static void lite_turn_end(struct lite_conn *conn, const struct lite_sched_flight *flight)
{
	struct lite_turns *turns = conn->turns;

	/* Now @flight may be that of another post (chain.c), but nothing is posted any more. */
	if (lite_conn_is_dead(conn))
		return;
	if (!lite_sched_leave(&turns->sched, flight))
		return;
	spin_lock(&turns->lock);
	lite_sched_done(&turns->sched, flight, local_clock());
	spin_unlock(&turns->lock);
	lite_turns_grant(conn);
}

/* Send completion of a work request that had a turn. */
void lite_turn_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct lite_wr *wr = container_of(wc->wr_cqe, struct lite_wr, cqe);
	struct lite_sched_flight flight = wr->flight;
	struct lite_conn *conn = wr->qp->conn;

	/* Before the slot is given back. */
	wr->cqe.done = lite_send_done;
	lite_send_done(cq, wc);
	lite_turn_end(conn, &flight);
}

/* Choose the work requests of a turn: up to a quantum, but at least one. Return: their bytes. */
static u32 lite_turn_bytes(struct lite_post *post)
{
	const struct ib_send_wr *send = post->send;
	u32 n, bytes = 0, more;

	if (likely(post->n == 1 || post->kind == LITE_SLOT_BULK)) {
		post->turn_wrs = 1;
		return lite_wr_bytes(send);
	}
	for (n = 0; n < min_t(u32, post->n, LITE_TURN_WRS); n++, send = send->next) {
		more = lite_wr_bytes(send);
		if (n && bytes + more + (n + 1) * LITE_TURN_OP_COST >
			 LITE_WR_BYTES_MAX + LITE_TURN_OP_COST)
			break;
		bytes += more;
	}
	post->turn_wrs = n;
	return bytes;
}

/* Queue @post for a turn. Process context. Return: false: posters need no turns any more. */
static bool lite_turn_queue(struct lite_post *post, u32 bytes)
{
	struct lite_conn *conn = post->qp->conn;
	u64 id = lite_qos_tenant(conn->fab->qos);
	u32 class = lite_turn_class(conn->fab->qos, id, post->prio);
	struct lite_turns *turns = conn->turns;
	bool on;

	spin_lock(&turns->lock);
	on = turns->on;
	if (on) {
		lite_sched_push(&turns->sched, &post->item, lite_tenant_get(conn, id),
				class, bytes, post->turn_wrs, local_clock());
		list_add_tail(&post->line, &turns->line);
	}
	spin_unlock(&turns->lock);
	return on;
}

/* Take a turn and a slot for @post at once. Process context. Return: the slot or -EAGAIN. */
int lite_turn_take(struct lite_post *post)
{
	struct lite_turns *turns = post->qp->conn->turns;
	struct lite_sched_flight *flight = &post->item.flight;
	u32 bytes = lite_turn_bytes(post);
	int slot;

	*flight = (struct lite_sched_flight){
		.cost = lite_sched_cost(&turns->sched, bytes, post->turn_wrs),
	};
	if (!lite_sched_try(&turns->sched, flight->cost)) {
		flight->cost = 0;
		return -EAGAIN;
	}
	slot = lite_slot_get_last(post->qp, post->kind);
	if (slot < 0) {
		lite_turn_end(post->qp->conn, flight);
		flight->cost = 0;
	}
	return slot;
}

/*
 * Would an operation of @bytes get its turn at once? If so, it may go past the scheduler, in a
 * message. Any context; another thread may be quicker.
 */
bool lite_turns_pass(const struct lite_conn *conn, u32 bytes)
{
	const struct lite_turns *turns = lite_turns_of(conn);

	return !turns || !READ_ONCE(turns->on) ||
	       lite_sched_would(&turns->sched, lite_sched_cost(&turns->sched, bytes, 1));
}

/* Have all completions of a connection taken while a thread waits for its turn. */
static void lite_turn_arm(struct lite_conn *conn, bool arm)
{
	int i;

	for (i = 0; i < conn->nqps; i++) {
		if (arm)
			lite_cq_arm_sleeper(conn->qp[i].scq);
		else
			lite_cq_disarm_sleeper(conn->qp[i].scq);
	}
}

/*
 * Let a waiter leave if it has no use for its turn any more, unless another thread is giving it
 * one. If it has its turn and waits for a slot, it gives the turn back.
 */
static void lite_turn_tick(struct lite_io *turn)
{
	struct lite_post *post = container_of(turn, struct lite_post, turn);
	struct lite_conn *conn = post->qp->conn;
	struct lite_turns *turns = conn->turns;
	struct lite_sched_flight flight;
	bool waits, has;

	if (!post->stale)
		return;
	/* Other threads depend on this one while it has a turn and is in no line. */
	lite_posting_begin(conn);
	spin_lock(&turns->lock);
	/* If it is not in line, @io may have ended. */
	waits = !list_empty(&post->line) && (lite_given_up() || post->stale(post->io));
	if (waits) {
		list_del_init(&post->line);
		lite_sched_remove(&turns->sched, &post->item);
	}
	spin_unlock(&turns->lock);
	has = !waits && lite_slot_leave(post, lite_given_up());
	if (waits || has) {
		flight = post->item.flight;
		/* The device never had it: do not measure its latency. */
		flight.posted = 0;
		post->item.flight.cost = 0;
		lite_post_fail(post, -EAGAIN);
		lite_io_end(turn, 0, 1);
		/* Waiters behind it may fit into the window. */
		if (has && flight.cost)
			lite_turn_end(conn, &flight);
		else
			lite_turns_grant(conn);
	}
	lite_posting_end(conn);
}

static bool lite_turn_never_stale(const struct lite_io *io)
{
	return false;
}

/*
 * Wait until a thread has posted at least one work request of @post in its turn, or has set its
 * error. May sleep. Ends early, with the error -EAGAIN, if lite_io_hooks.stale says so, or if this
 * thread is killed; but without that hook it stays if the operation has a waiter. Return: false:
 * posters need no turns any more.
 */
bool lite_turn_wait(struct lite_post *post)
{
	struct lite_conn *conn = post->qp->conn;
	const struct lite_io_hooks *hooks = post->io->waiter == current ? post->io->hooks : NULL;

	post->stale = hooks ? hooks->stale : post->io->waiter ? NULL : lite_turn_never_stale;
	if (post->stale && post->stale(post->io)) {
		lite_post_fail(post, -EAGAIN);
		return true;
	}
	INIT_LIST_HEAD(&post->list);
	lite_io_init(&post->turn);
	lite_io_expect(&post->turn, 1);
	if (!lite_turn_queue(post, lite_turn_bytes(post))) {
		post->item.flight.cost = 0;
		return false;
	}
	lite_turns_grant(conn);
	if (lite_io_ended(&post->turn))
		return true;
	lite_turn_arm(conn, true);
	lite_io_wait_ticking(&post->turn, post->qp, LITE_ROOM_SPIN_NS, lite_turn_tick);
	lite_turn_arm(conn, false);
	return true;
}

/* Called when no thread uses the connection any more. */
void lite_turns_exit(struct lite_conn *conn)
{
	struct lite_turn_tenant *t, *next;

	if (!conn->turns)
		return;
	list_for_each_entry_safe(t, next, &conn->turns->tenants, list)
		kfree(t);
	kfree(conn->turns);
}

/* In the other modes nothing ever waits. */
static bool lite_turns_needed(enum lite_sched_mode mode)
{
	return mode == LITE_SCHED_FAIR || mode == LITE_SCHED_SW_PRI;
}

static void lite_turns_weigh(struct lite_turns *turns, struct lite_sched_tenant *tenant, u32 weight)
{
	if (tenant->weight != weight)
		lite_sched_set_weight(&turns->sched, tenant, weight);
}

/* Apply mode and weights, which may have changed. */
static void lite_turns_apply(struct lite_conn *conn, struct lite_turns *turns)
{
	struct lite_qos *qos = conn->fab->qos;
	struct lite_turn_tenant *t;
	enum lite_sched_mode mode;
	bool on;
	int i;

	spin_lock(&turns->lock);
	mode = lite_qos_mode(qos);
	on = lite_turns_needed(mode);
	if (mode != turns->sched.mode)
		lite_sched_set_mode(&turns->sched, mode);
	lite_turns_weigh(turns, &turns->root, lite_qos_weight(qos, LITE_QOS_ROOT));
	list_for_each_entry(t, &turns->tenants, list)
		lite_turns_weigh(turns, &t->tenant, lite_qos_weight(qos, t->id));
	if (on != turns->on) {
		WRITE_ONCE(turns->on, on);
		for (i = 0; i < LITE_QPS_MAX; i++)
			lite_slots_schedule(&conn->qp[i], on);
	}
	spin_unlock(&turns->lock);
}

/* Give a connection a scheduler if the mode needs one. May sleep. Return: 0 or -ENOMEM. */
int lite_turns_make(struct lite_conn *conn)
{
	struct lite_turns *new;

	if (lite_turns_of(conn) || !lite_turns_needed(lite_qos_mode(conn->fab->qos)))
		return 0;
	new = kzalloc(sizeof(*new), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	spin_lock_init(&new->lock);
	INIT_LIST_HEAD(&new->tenants);
	INIT_LIST_HEAD(&new->line);
	lite_sched_init(&new->sched, &lite_turn_conf);
	lite_sched_tenant_init(&new->root, LITE_SCHED_WEIGHT_DEFAULT);
	lite_sched_tenant_init(&new->rest, LITE_SCHED_WEIGHT_DEFAULT);
	/* Another thread may have been quicker. */
	if (cmpxchg(&conn->turns, NULL, new))
		kfree(new);
	return 0;
}

/* Apply the node's rules to a connection. May sleep. Return: 0; -ENOMEM: it is not scheduled. */
int lite_turns_update(struct lite_conn *conn)
{
	int err = lite_turns_make(conn);

	lite_conn_share_qps(conn);
	if (!lite_turns_of(conn))
		return err;
	lite_turns_apply(conn, lite_turns_of(conn));
	lite_turns_grant(conn);
	return 0;
}

/* As lite_turns_update(), for all connections. New ones apply the rules themselves. */
int lite_fabric_schedule(struct lite_fabric *fab)
{
	struct lite_conn *conn = NULL;
	int err = 0;

	while ((conn = lite_conn_next(fab, conn)))
		err = lite_turns_update(conn) ?: err;
	return err;
}

/* Nothing waits or is in flight on a @dead connection: see lite_turn_end(). */
static void lite_turns_add(struct lite_sched_stats *sum, const struct lite_sched_stats *stats,
			   bool dead)
{
	int i;

	if (!dead) {
		sum->queued += stats->queued;
		sum->in_flight += stats->in_flight;
	}
	sum->slices += stats->slices;
	sum->bytes += stats->bytes;
	for (i = 0; i < LITE_SCHED_WAITS; i++)
		sum->waited[i] += stats->waited[i];
}

/* Count what has waited in @class. Process context. Return: false: no such class. */
bool lite_turns_count_class(struct lite_fabric *fab, u32 class, struct lite_turn_count *count)
{
	struct lite_conn *conn = NULL;
	struct lite_turns *turns;

	if (class >= LITE_SCHED_CLASSES)
		return false;
	*count = (struct lite_turn_count){ .class = class };
	while ((conn = lite_conn_next(fab, conn))) {
		turns = lite_turns_of(conn);
		if (!turns)
			continue;
		spin_lock(&turns->lock);
		lite_turns_add(&count->sum, &turns->sched.classes[class].stats,
			       lite_conn_is_dead(conn));
		spin_unlock(&turns->lock);
	}
	return true;
}

/* Add a tenant of a connection, if its id, from @from on, is the lowest found so far. */
static bool lite_turns_count_one(struct lite_turn_count *count, bool found, u64 from, u64 id,
				 const struct lite_sched_tenant *tenant, bool dead)
{
	const struct lite_sched_stats *stats = &tenant->stats;

	if (id < from || (found && id > count->tenant) || (!stats->slices && !stats->queued))
		return found;
	if (!found || id < count->tenant)
		*count = (struct lite_turn_count){ .class = -1, .tenant = id };
	lite_turns_add(&count->sum, stats, dead);
	return true;
}

/* Count what has waited of the first tenant from @from on. Process context. Return: false: none. */
bool lite_turns_count_tenant(struct lite_fabric *fab, u64 from, struct lite_turn_count *count)
{
	struct lite_conn *conn = NULL;
	struct lite_turn_tenant *t;
	struct lite_turns *turns;
	bool found = false;
	bool dead;

	while ((conn = lite_conn_next(fab, conn))) {
		turns = lite_turns_of(conn);
		if (!turns)
			continue;
		dead = lite_conn_is_dead(conn);
		spin_lock(&turns->lock);
		found = lite_turns_count_one(count, found, from, LITE_QOS_ROOT, &turns->root, dead);
		found = lite_turns_count_one(count, found, from, LITE_QOS_ROOT, &turns->rest, dead);
		list_for_each_entry(t, &turns->tenants, list)
			found = lite_turns_count_one(count, found, from, t->id, &t->tenant, dead);
		spin_unlock(&turns->lock);
	}
	return found;
}
