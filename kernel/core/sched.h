/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The order in which operations go to one peer: priorities, shares, and a window of cost in flight.
 * Documentation/scheduling.rst has the rules and the bounds.
 *
 * Normal operation: while nothing waits and the window has room, an operation passes by, with one
 * compare-and-exchange of lite_sched.room (lite_sched_try()). Otherwise its poster queues an item
 * on its stack and takes out the items that may be posted now. Each completion makes room; if items
 * wait, the thread that handles it takes out those that fit. The caller cuts long operations into
 * slices, so that an item costs at most lite_sched.quantum.
 *
 * Locking: the caller serialises all calls but lite_sched_try() and lite_sched_leave(), which need
 * no lock. No wake-up is lost, because an item that waits closes the gate in the same word in which
 * lite_sched_leave() makes room: either lite_sched_leave() sees the gate closed, and its caller
 * takes the lock, or lite_sched_pop(), which follows each lite_sched_push(), sees the room.
 */
#ifndef _LITE_CORE_SCHED_H
#define _LITE_CORE_SCHED_H

#include <uapi/lite_netlink.h>

#include "types.h"

/* Priority classes: 0 is the highest. */
#define LITE_SCHED_CLASSES 8
#define LITE_SCHED_CLASS_DEFAULT 4
/* Classes from here on are low. hw-sep and sw-pri know only high and low. */
#define LITE_SCHED_LOW 4

/* The class of a priority: 0 is the default, other priorities are a class plus 1. */
static inline u32 lite_sched_class_of(u32 prio)
{
	return prio && prio <= LITE_SCHED_CLASSES ? prio - 1 : LITE_SCHED_CLASS_DEFAULT;
}

#define LITE_SCHED_WEIGHT_DEFAULT 100
#define LITE_SCHED_WEIGHT_MAX 1000
/* Buckets of lite_sched_stats.waited. */
#define LITE_SCHED_WAITS 24

/* Subtracted from lite_sched.room to close the gate; more than all cost that can be in flight. */
#define LITE_SCHED_GATE ((s64)BIT_ULL(50))
/* A window without a limit. */
#define LITE_SCHED_OPEN ((s64)BIT_ULL(40))

enum lite_sched_mode {
	LITE_SCHED_NONE = LITE_QOS_NONE,     /* no window, so nothing waits */
	LITE_SCHED_FAIR = LITE_QOS_FAIR,
	LITE_SCHED_HW_SEP = LITE_QOS_HW_SEP, /* as NONE, but with queue pairs for classes */
	LITE_SCHED_SW_PRI = LITE_QOS_SW_PRI,
	LITE_SCHED_MODES,
};

struct lite_sched_conf {
	enum lite_sched_mode mode;
	u32 slice;      /* most bytes of an item */
	u32 op_cost;    /* what an operation costs the device besides its bytes, in bytes */
	u32 window_max; /* most cost in flight; more than slice + op_cost */
	u64 age_ns;     /* a class rises by one each time it has waited so long; not 0 */
};

/* Counters, under the caller's lock. Operations that pass by are not counted. */
struct lite_sched_stats {
	u64 queued;                   /* items that wait now */
	u64 in_flight;                /* items taken out and not yet done */
	u64 slices;                   /* items taken out */
	u64 bytes;                    /* in these slices */
	u64 waited[LITE_SCHED_WAITS]; /* [i]: slices that waited 2^(i - 1) to 2^i us */
};

/* What a tenant has waiting in one class. */
struct lite_sched_queue {
	struct list_head items;
	struct list_head due; /* in lite_sched_class.due while there are items */
	u64 vtime;            /* virtual time when the next item is due */
};

/* A user or control group. The caller keeps it while it has items queued or in flight. */
struct lite_sched_tenant {
	u32 weight; /* 1..LITE_SCHED_WEIGHT_MAX */
	struct lite_sched_queue queue[LITE_SCHED_CLASSES];
	struct lite_sched_stats stats;
};

/* What the scheduler must know of an operation when it completes. */
struct lite_sched_flight {
	struct lite_sched_tenant *tenant; /* NULL: it has passed by */
	u64 posted;                       /* ns, when it was taken out; 0: not measured */
	u32 cost;
	u8 prio;                          /* its class */
};

/* An operation, or a slice, that waits; on the stack of its poster. */
struct lite_sched_item {
	struct list_head list;           /* in lite_sched_queue.items */
	struct lite_sched_flight flight;
	u32 bytes;
	u64 since;                       /* ns, when it was queued */
};

struct lite_sched_class {
	struct list_head due; /* of struct lite_sched_queue, by virtual time */
	u64 vtime;            /* virtual time: cost per weight; wraps; no queue is due before it */
	u64 since;            /* ns, start of its present wait for a turn */
	u32 spent;            /* cost taken out since then */
	struct lite_sched_stats stats;
};

/* The window is adapted after each round: a window of cost, or in sw-pri a time. */
struct lite_sched_round {
	u64 begun;    /* ns */
	bool limited; /* something waited for room */
	bool dry;     /* nothing was in flight although something waited */
	bool strange; /* an item of a size without a base has completed */
	u64 acked;    /* cost that has completed */
	u64 measured; /* the part of @acked with a known latency */
	u64 squares;  /* sum of the squares of the costs in @measured */
	u64 excess;   /* the part of @measured by which latencies exceed the base */
	u64 cost[2];  /* taken out of high classes [0] and low ones [1] */
	u32 late[2];  /* completions in up to twice the base [0], and later [1] */
};

struct lite_sched {
	/*
	 * Free cost of the window; may be negative. LITE_SCHED_GATE is subtracted if anything
	 * waits, and once more in sw-pri. Changes without the lock.
	 */
	atomic64_t room;
	enum lite_sched_mode mode;
	u32 op_cost;
	u32 quantum;      /* most cost of an item */
	u32 window_max;
	u64 age_ns;
	u64 queued;       /* items that wait */
	u32 waiting;      /* bitmap of classes with items that wait */
	s64 limit;        /* the window, cost */
	s64 low_limit;    /* the window of low classes in sw-pri */
	s64 in_flight[2]; /* cost taken out and not yet done: of high classes [0], low ones [1] */
	/*
	 * Base latency, with a quantum in flight, of items of up to half a quantum [0] and others
	 * [1]: means of the first completions of items posted since @restarted.
	 */
	u64 base_ns[2];   /* sum */
	u32 based[2];     /* number */
	u64 restarted;    /* ns */
	struct lite_sched_round round;
	struct lite_sched_class classes[LITE_SCHED_CLASSES];
};

void lite_sched_init(struct lite_sched *s, const struct lite_sched_conf *conf);
void lite_sched_tenant_init(struct lite_sched_tenant *tenant, u32 weight);
void lite_sched_set_mode(struct lite_sched *s, enum lite_sched_mode mode);
void lite_sched_set_weight(struct lite_sched *s, struct lite_sched_tenant *tenant, u32 weight);
void lite_sched_push(struct lite_sched *s, struct lite_sched_item *item,
		     struct lite_sched_tenant *tenant, u32 prio, u32 bytes, u32 ops, u64 now);
struct lite_sched_item *lite_sched_pop(struct lite_sched *s, u64 now);
void lite_sched_remove(struct lite_sched *s, struct lite_sched_item *item);
void lite_sched_done(struct lite_sched *s, const struct lite_sched_flight *flight, u64 now);
u32 lite_sched_qps(enum lite_sched_mode mode, u32 prio, u32 n, u32 *first);

/* The cost of @ops operations posted together, of @bytes in all. */
static inline u32 lite_sched_cost(const struct lite_sched *s, u32 bytes, u32 ops)
{
	u64 cost = bytes + (u64)ops * s->op_cost;

	return cost < s->quantum ? cost : s->quantum;
}

/* Pass by, without the lock. If true, lite_sched_leave() must follow, with flight.tenant NULL. */
static inline bool lite_sched_try(struct lite_sched *s, u32 cost)
{
	s64 room = atomic64_read(&s->room);

	do {
		if (room < (s64)cost)
			return false;
	} while (!atomic64_try_cmpxchg(&s->room, &room, room - (s64)cost));
	return true;
}

/* Would lite_sched_try() let an operation pass? */
static inline bool lite_sched_would(const struct lite_sched *s, u32 cost)
{
	return atomic64_read(&s->room) >= (s64)cost;
}

/*
 * What lite_sched_try() let pass, or lite_sched_pop() returned, has completed or was not posted
 * after all. Without the lock. Return: true: the caller takes the lock, calls lite_sched_done(),
 * and then lite_sched_pop() until that returns NULL.
 */
static inline bool lite_sched_leave(struct lite_sched *s, const struct lite_sched_flight *flight)
{
	s64 room = atomic64_add_return((s64)flight->cost, &s->room);

	return flight->tenant || room < -LITE_SCHED_GATE / 2;
}

#endif /* _LITE_CORE_SCHED_H */
