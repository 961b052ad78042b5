// SPDX-License-Identifier: GPL-2.0
/*
 * The policy of the scheduler: see sched.h. Documentation/scheduling.rst has rules and reasons.
 *
 * Tenants are served by start-time fair queueing (Goyal et al., 1996). A class keeps them in a
 * sorted list, because a connection has few (LITE_TENANTS_MAX). The window follows the mean
 * latency, as in TCP Vegas: by Little's law the mean tells how much is in flight, however latencies
 * vary.
 */
#include "sched.h"

/* Fraction bits of virtual time. */
#define LITE_SCHED_VTIME_SHIFT 20
/* Time between measurements of the base latency. */
#define LITE_SCHED_RESTART_NS 10000000000ULL
/* Completions that a measurement takes. */
#define LITE_SCHED_BASED 16
/* A longer latency counts as this, ns. */
#define LITE_SCHED_LATENCY_MAX 1000000000ULL
/* Time between decisions of sw-pri. */
#define LITE_SCHED_HOLD_NS 10000000ULL

/* Time since @from; 0 if the clock of another processor was ahead. */
static u64 lite_sched_elapsed(u64 from, u64 now)
{
	return (s64)(now - from) > 0 ? now - from : 0;
}

static u32 lite_sched_bit(u64 word)
{
	return 63 - __builtin_clzll(word);
}

/* What @cost takes of the virtual time of a class. */
static u64 lite_sched_vtime(u32 cost, const struct lite_sched_tenant *tenant)
{
	return ((u64)cost << LITE_SCHED_VTIME_SHIFT) / tenant->weight;
}

static s64 lite_sched_in_flight(const struct lite_sched *s)
{
	s64 gates = !!s->queued + (s->mode == LITE_SCHED_SW_PRI);

	return s->limit - atomic64_read(&s->room) - gates * LITE_SCHED_GATE;
}

static void lite_sched_set_limit(struct lite_sched *s, s64 limit)
{
	atomic64_add(limit - s->limit, &s->room);
	s->limit = limit;
}

/* Measure the base anew, with at most a quantum in flight (in sw-pri: of low classes). */
static void lite_sched_restart(struct lite_sched *s, u64 now)
{
	lite_sched_set_limit(s, s->mode == LITE_SCHED_FAIR ? s->quantum : LITE_SCHED_OPEN);
	s->low_limit = s->quantum;
	memset(s->base_ns, 0, sizeof(s->base_ns));
	memset(s->based, 0, sizeof(s->based));
	s->restarted = now;
}

/* @conf: slice + op_cost are at most 16 MB, window_max is at most 1 GB. */
void lite_sched_init(struct lite_sched *s, const struct lite_sched_conf *conf)
{
	u32 prio;

	memset(s, 0, sizeof(*s));
	s->mode = conf->mode;
	s->op_cost = conf->op_cost;
	s->quantum = conf->slice + conf->op_cost;
	s->window_max = conf->window_max;
	s->age_ns = conf->age_ns;
	for (prio = 0; prio < LITE_SCHED_CLASSES; prio++)
		INIT_LIST_HEAD(&s->classes[prio].due);
	atomic64_set(&s->room, s->mode == LITE_SCHED_SW_PRI ? -LITE_SCHED_GATE : 0);
	lite_sched_restart(s, 0);
}

void lite_sched_tenant_init(struct lite_sched_tenant *tenant, u32 weight)
{
	int i;

	*tenant = (struct lite_sched_tenant){ .weight = weight };
	for (i = 0; i < LITE_SCHED_CLASSES; i++)
		INIT_LIST_HEAD(&tenant->queue[i].items);
}

/* Change the mode, with a minimal window. The caller then takes out what may be posted now. */
void lite_sched_set_mode(struct lite_sched *s, enum lite_sched_mode mode)
{
	s64 gates = (mode == LITE_SCHED_SW_PRI) - (s->mode == LITE_SCHED_SW_PRI);

	atomic64_add(-gates * LITE_SCHED_GATE, &s->room);
	s->mode = mode;
	lite_sched_restart(s, s->restarted);
	s->round = (struct lite_sched_round){ .begun = s->round.begun };
}

/* Enter a queue with items behind those that are due earlier or at the same time. */
static void lite_sched_join(struct lite_sched_class *class, struct lite_sched_queue *queue)
{
	struct lite_sched_queue *last;
	struct list_head *at;

	list_for_each_prev(at, &class->due) {
		last = list_entry(at, struct lite_sched_queue, due);
		if ((s64)(last->vtime - queue->vtime) <= 0)
			break;
	}
	list_add(&queue->due, at);
}

/* Change the weight of a tenant. Its waiting items are due now. */
void lite_sched_set_weight(struct lite_sched *s, struct lite_sched_tenant *tenant, u32 weight)
{
	u32 prio;

	tenant->weight = weight;
	for (prio = 0; prio < LITE_SCHED_CLASSES; prio++) {
		struct lite_sched_class *class = &s->classes[prio];
		struct lite_sched_queue *queue = &tenant->queue[prio];

		queue->vtime = class->vtime;
		if (!list_empty(&queue->items)) {
			list_del(&queue->due);
			lite_sched_join(class, queue);
		}
	}
}

/*
 * Queue an item of @ops operations with @bytes in all. lite_sched_pop() must follow at once, and
 * may return this item. @now: ns of any clock that does not go backwards by much.
 */
void lite_sched_push(struct lite_sched *s, struct lite_sched_item *item,
		     struct lite_sched_tenant *tenant, u32 prio, u32 bytes, u32 ops, u64 now)
{
	struct lite_sched_class *class = &s->classes[prio];
	struct lite_sched_queue *queue = &tenant->queue[prio];

	item->flight = (struct lite_sched_flight){
		.tenant = tenant,
		.cost = lite_sched_cost(s, bytes, ops),
		.prio = prio,
	};
	item->bytes = bytes;
	item->since = now;
	if (list_empty(&queue->items)) {
		/* Served lately, it is ahead by up to a quantum; else it begins at the present. */
		if (queue->vtime - class->vtime > lite_sched_vtime(s->quantum, tenant))
			queue->vtime = class->vtime;
		lite_sched_join(class, queue);
	}
	list_add_tail(&item->list, &queue->items);
	if (!class->stats.queued++) {
		s->waiting |= 1U << prio;
		class->since = now;
		class->spent = 0;
	}
	tenant->stats.queued++;
	if (!s->queued++)
		atomic64_add(-LITE_SCHED_GATE, &s->room);
}

/* Remove an item that waits: it is taken out or cancelled, or its poster dies. */
void lite_sched_remove(struct lite_sched *s, struct lite_sched_item *item)
{
	struct lite_sched_tenant *tenant = item->flight.tenant;
	u32 prio = item->flight.prio;

	list_del(&item->list);
	if (list_empty(&tenant->queue[prio].items))
		list_del(&tenant->queue[prio].due);
	tenant->stats.queued--;
	if (!--s->classes[prio].stats.queued)
		s->waiting &= ~(1U << prio);
	if (!--s->queued)
		atomic64_add(LITE_SCHED_GATE, &s->room);
}

/* The class to serve next. @level: set to the level to which it has risen. */
static u32 lite_sched_next_class(const struct lite_sched *s, u64 now, u32 *level)
{
	const u32 high = (1U << LITE_SCHED_LOW) - 1;
	u32 prio, at, next = 0, left = s->waiting;
	u64 risen;

	/* Low classes rise while they are held back, but high ones must not wait for them. */
	if (s->mode == LITE_SCHED_SW_PRI && (left & high))
		left &= high;
	*level = LITE_SCHED_CLASSES;
	for (; left; left &= left - 1) {
		prio = __builtin_ctz(left);
		risen = lite_sched_elapsed(s->classes[prio].since, now) / s->age_ns;
		at = risen < prio ? prio - risen : 0;
		if (at <= *level) {
			*level = at;
			next = prio;
		}
	}
	return next;
}

/* High levels may exceed the window by a quantum: urgent operations need not wait for low ones. */
static bool lite_sched_has_room(const struct lite_sched *s, u32 prio, u32 level, u32 cost)
{
	s64 reserve = level < LITE_SCHED_LOW ? s->quantum : 0;

	if (s->mode == LITE_SCHED_SW_PRI && prio >= LITE_SCHED_LOW)
		return s->in_flight[1] + cost <= s->low_limit;
	return lite_sched_in_flight(s) + cost <= s->limit + reserve;
}

/* Charge class and tenant for an item that is about to be taken out. */
static void lite_sched_charge(struct lite_sched *s, const struct lite_sched_flight *flight,
			      u64 now)
{
	struct lite_sched_class *class = &s->classes[flight->prio];
	struct lite_sched_queue *queue = &flight->tenant->queue[flight->prio];
	bool low = flight->prio >= LITE_SCHED_LOW;

	class->spent += flight->cost;
	if (class->spent >= s->quantum) {
		class->spent = 0;
		class->since = now;
	}
	class->vtime = queue->vtime;
	queue->vtime += lite_sched_vtime(flight->cost, flight->tenant);
	list_del(&queue->due);
	lite_sched_join(class, queue);
	s->round.cost[low] += flight->cost;
	s->in_flight[low] += flight->cost;
}

static void lite_sched_count(struct lite_sched_stats *stats, u32 bytes, u64 waited_ns)
{
	u64 us = waited_ns / 1000;
	u32 bucket = us ? lite_sched_bit(us) + 1 : 0;

	stats->in_flight++;
	stats->slices++;
	stats->bytes += bytes;
	stats->waited[bucket < LITE_SCHED_WAITS ? bucket : LITE_SCHED_WAITS - 1]++;
}

/* Take out the item to post now, or return NULL. lite_sched_leave() must follow its completion. */
struct lite_sched_item *lite_sched_pop(struct lite_sched *s, u64 now)
{
	struct lite_sched_flight *flight;
	struct lite_sched_class *class;
	struct lite_sched_queue *queue;
	struct lite_sched_item *item;
	u32 prio, level;
	u64 waited;

	if (!s->queued)
		return NULL;
	prio = lite_sched_next_class(s, now, &level);
	class = &s->classes[prio];
	queue = list_first_entry(&class->due, struct lite_sched_queue, due);
	item = list_first_entry(&queue->items, struct lite_sched_item, list);
	flight = &item->flight;
	if (!lite_sched_has_room(s, prio, level, flight->cost)) {
		s->round.limited = true;
		return NULL;
	}
	lite_sched_charge(s, flight, now);
	waited = lite_sched_elapsed(item->since, now);
	lite_sched_count(&class->stats, item->bytes, waited);
	lite_sched_count(&flight->tenant->stats, item->bytes, waited);
	flight->posted = now;
	atomic64_add(-(s64)flight->cost, &s->room);
	lite_sched_remove(s, item);
	return item;
}

static bool lite_sched_has_base(const struct lite_sched *s)
{
	return s->based[0] + s->based[1] >= LITE_SCHED_BASED;
}

static void lite_sched_measure(struct lite_sched *s, const struct lite_sched_flight *flight,
			       u64 now)
{
	bool large = flight->cost > s->quantum / 2;
	u64 took = lite_sched_elapsed(flight->posted, now) + 1;
	u64 base;

	/* Items posted before the restart may have stood behind more than a quantum. */
	if (!flight->posted || lite_sched_elapsed(flight->posted, s->restarted))
		return;
	if (took > LITE_SCHED_LATENCY_MAX)
		took = LITE_SCHED_LATENCY_MAX;
	if (!lite_sched_has_base(s)) {
		s->base_ns[large] += took;
		s->based[large]++;
		s->round = (struct lite_sched_round){ .begun = now };
	} else if (s->based[large]) {
		base = s->base_ns[large] / s->based[large];
		s->round.late[took > 2 * base]++;
		s->round.measured += flight->cost;
		s->round.squares += (u64)flight->cost * flight->cost;
		s->round.excess += took > base ? flight->cost * (took - base) / took : 0;
	} else {
		s->round.strange = true;
	}
}

static s64 lite_sched_clamp(const struct lite_sched *s, s64 limit)
{
	if (limit > s->window_max)
		limit = s->window_max;
	return limit < s->quantum ? s->quantum : limit;
}

static void lite_sched_adapt(struct lite_sched *s, u64 now)
{
	const struct lite_sched_round *r = &s->round;
	u64 standing = r->measured ? s->limit * r->excess / r->measured : 0;
	u64 item = r->measured ? r->squares / r->measured : s->quantum;
	s64 limit = s->limit;

	if (!lite_sched_has_base(s))
		return;
	if (r->dry || (r->limited && r->measured && standing < item / 2))
		limit += item / 2;
	else if (standing > item + item / 4)
		limit -= item / 2;
	lite_sched_set_limit(s, lite_sched_clamp(s, limit));
	/* All completions were of a size for which there is no base. */
	if (r->strange && !r->measured)
		lite_sched_restart(s, now);
}

/*
 * LITE's SW-Pri (Tsai and Zhang, SOSP 2017, section 6.2): the window of low classes is halved while
 * high classes move as much as low ones, or most high operations take over twice the base; else it
 * is doubled. The base is measured with high operations, once low ones of a larger window are gone.
 */
static void lite_sched_hold(struct lite_sched *s, u64 now)
{
	const struct lite_sched_round *r = &s->round;
	bool loaded = r->cost[0] && r->cost[0] >= r->cost[1];
	bool high = r->cost[0] || s->in_flight[0];
	bool slow = high && r->late[1] >= r->late[0];

	if (high && !lite_sched_has_base(s)) {
		if (s->low_limit > s->quantum)
			lite_sched_restart(s, now + LITE_SCHED_HOLD_NS);
	} else if (loaded || slow) {
		s->low_limit = lite_sched_clamp(s, lite_sched_clamp(s, s->low_limit) / 2);
	} else if (s->low_limit < LITE_SCHED_OPEN) {
		s->low_limit *= 2;
	}
}

/* Account for a completion, as lite_sched_leave() demands. lite_sched_pop() must follow. */
void lite_sched_done(struct lite_sched *s, const struct lite_sched_flight *flight, u64 now)
{
	bool low = flight->prio >= LITE_SCHED_LOW;
	bool sw_pri = s->mode == LITE_SCHED_SW_PRI;

	if (flight->tenant) {
		flight->tenant->stats.in_flight--;
		s->classes[flight->prio].stats.in_flight--;
		s->in_flight[low] -= flight->cost;
		if (!sw_pri || !low)
			lite_sched_measure(s, flight, now);
	}
	if (s->queued && lite_sched_in_flight(s) <= 0)
		s->round.dry = true;
	s->round.acked += flight->cost;
	if (sw_pri ? lite_sched_elapsed(s->round.begun, now) < LITE_SCHED_HOLD_NS :
		     s->round.acked < (u64)s->limit)
		return;
	if (lite_sched_elapsed(s->restarted, now) >= LITE_SCHED_RESTART_NS)
		lite_sched_restart(s, now);
	else if (sw_pri)
		lite_sched_hold(s, now);
	else if (s->mode == LITE_SCHED_FAIR)
		lite_sched_adapt(s, now);
	s->round = (struct lite_sched_round){ .begun = now };
}

/*
 * Which of @n >= 1 queue pairs a class uses. Devices serve queue pairs in turn, so an operation
 * waits longer behind others of its own queue pair. In hw-sep low classes have the last quarter; in
 * fair mode, where most operations are of the default class, high ones have the first quarter.
 * @first: set to the number of the first. Return: how many.
 */
u32 lite_sched_qps(enum lite_sched_mode mode, u32 prio, u32 n, u32 *first)
{
	u32 few = n > 4 ? n / 4 : 1;
	u32 high = mode == LITE_SCHED_FAIR ? few : n - few;

	*first = 0;
	if (n == 1 || (mode != LITE_SCHED_FAIR && mode != LITE_SCHED_HW_SEP))
		return n;
	if (prio < LITE_SCHED_LOW)
		return high;
	*first = high;
	return n - high;
}
