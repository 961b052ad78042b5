/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Locks in words of LMRs: core/lockword.h has the word, Documentation/locks.rst the protocol, and
 * why no two claims own a lock and none waits for ever.
 *
 * Two roles, both of which a node may play at the same time:
 *
 *   taker  has a process that wants a lock (struct lite_hold): lock.c, lock_wait.c
 *   home   of the LMR: when a claim has to wait, makes the word MANAGED, keeps owners and a queue
 *          (struct lite_lock), and grants in the order of requests: lock_home.c, lock_claim.c,
 *          lock_settle.c
 *
 * A barrier is a lock without an owner until the expected number of claims is queued: barrier.c
 *
 * Locking: only workers take @home_lock, never users' threads. Inside @lock are only the locks of
 * crews. Neither is held during a call or a memory operation. No handler waits for another call.
 */
#ifndef _LITE_LOCK_H
#define _LITE_LOCK_H

#include "core/lockword.h"
#include "crew.h"
#include "memory/handle/ctx.h"
#include "memory/memop/word.h"
#include "memory/memory.h"

/* The locks of a node. */
struct lite_locks {
	struct lite_memory *mem;
	struct lite_cluster *cl;
	struct lite_stats __percpu *stats;
	/* Jobs of all three may wait for long; only shutdown waits for them. */
	struct lite_crew words;           /* operate on words at home */
	struct lite_crew tells;           /* send GRANTs; its workqueue runs @sweep and cuts, too */
	struct lite_crew lefts;           /* release LEFT claims */
	atomic_t changes;                 /* counts changes of members and sessions, for waiters */
	bool closing;                     /* accept nothing new */
	spinlock_t lock;                  /* protects the next three, and some fields of holds */
	struct xarray tickets;            /* struct lite_hold by ticket */
	u32 next_ticket;                  /* where to look for a free one */
	struct rb_root left_barriers;     /* LEFT arrivals at barriers, by word */
	struct lite_crowd left_wait;      /* woken when a LEFT arrival is over, or members change */
	struct mutex home_lock;           /* protects the rest, and what it contains */
	struct rb_root home;              /* struct lite_lock by LMR and offset */
	atomic_t objects;                 /* number of struct lite_lock, removed ones included */
	struct work_struct sweep;         /* ends the claims of dead nodes */
};

/* A lock request. @ctx and @owner identify the holder. */
struct lite_lock_args {
	struct lite_ctx *ctx;
	u64 lh;
	u64 offset;
	u64 owner;             /* any number; tells the holders of one context apart */
	u32 n;                 /* participants of a barrier; 0: a lock */
	bool shared;           /* allow other shared holders */
	bool try;              /* do not wait */
	unsigned long timeout; /* jiffies to wait, MAX_JIFFY_OFFSET at most */
};

/* lock.c */
int lite_locks_init(struct lite_locks *locks, struct lite_memory *mem);
void lite_locks_changed(struct lite_locks *locks);
void lite_locks_shut(struct lite_locks *locks);
void lite_locks_exit(struct lite_locks *locks);
int lite_lock_take(struct lite_locks *locks, const struct lite_lock_args *args);
int lite_barrier_wait(struct lite_locks *locks, const struct lite_lock_args *args);

/* lock_wait.c */
int lite_lock_release(struct lite_locks *locks, struct lite_ctx *ctx, u64 lh,
		      u64 offset, u64 owner);
int lite_lock_consistent(struct lite_locks *locks, struct lite_ctx *ctx, u64 lh,
			 u64 offset, u64 owner);
void lite_locks_ctx_gone(struct lite_locks *locks, struct lite_ctx *ctx);

/* lock_home.c */
void lite_locks_lmr_cut(struct lite_locks *locks, u64 id, u64 length);

/*
 * For a claim and its lock, charged to a local process that asks for it. Never waits: home_lock is
 * held, a memory cgroup over its limit would throttle the worker, and reclaim may wait for a mapper
 * that uses a page of an unpinned LMR.
 */
#define LITE_LOCK_GFP (GFP_ATOMIC | __GFP_ACCOUNT)

/* @number: LITE_POOL_LOCKS or LITE_POOL_LOCK_CLAIMS. */
static inline struct lite_pool *lite_lock_pool(struct lite_locks *locks,
					       enum lite_pool_number number)
{
	return &locks->mem->fab->pools[number];
}

/* Take one unit of a pool. Return: 0, -EDQUOT or -ENOMEM. */
static inline int lite_lock_pool_take(struct lite_pool *pool, u32 uid, gfp_t gfp)
{
	int err = lite_pool_take(pool, uid, 1, gfp);

	/* The caller need not know that other users have the rest. */
	return err == -ENOSPC ? -EDQUOT : err;
}

/* After @err, is the lock gone or the claim over, so that another try is of no use? */
static inline bool lite_lock_is_final(int err)
{
	return !err || err == -ENOLCK || err == -EALREADY || err == -EIDRM || err == -ESTALE ||
	       err == -ERANGE || err == -EINVAL || err == -ENOTCONN || err == -ENODEV ||
	       err == -EOPNOTSUPP;
}

/* A message about a claim; @arg: see struct lite_wire_lock. */
static inline struct lite_wire_lock lite_lock_wire(const struct lite_word *word, u64 incarnation,
						   u32 ticket, u32 arg)
{
	return (struct lite_wire_lock){
		.id = cpu_to_le64(word->id),
		.offset = cpu_to_le64(word->offset),
		.incarnation = cpu_to_le64(incarnation),
		.ticket = cpu_to_le32(ticket),
		.arg = cpu_to_le32(arg),
		.uid = cpu_to_le32(word->uid),
	};
}

enum lite_hold_state {
	LITE_HOLD_TAKING,  /* its value may be in the word */
	LITE_HOLD_WAITING, /* the home may grant it */
	LITE_HOLD_HELD,    /* has the lock */
	LITE_HOLD_ENDING,  /* a caller is releasing it */
	LITE_HOLD_LEFT,    /* no caller waits: released in the background */
};

/* A local process's claim on a lock. */
struct lite_hold {
	struct lite_locks *locks;
	struct lite_ctx *ctx;       /* the holder's; NULL: LEFT */
	u64 owner;                  /* number of the holder in @ctx */
	struct lite_word word;      /* the lock */
	u64 incarnation;            /* of this node */
	u32 ticket;                 /* number of the claim in that life */
	u64 value;                  /* is in the word if it has the lock without the home */
	u64 seen;                   /* the last other value seen in the word */
	enum lite_hold_state state; /* under locks->lock, as are the next two */
	bool died;                  /* a holder died, and the lock was not made consistent since */
	int verdict;                /* by the home, if a GRANT ended WAITING */
	u32 n;                      /* participants of its barrier; 0: a claim on a lock */
	bool arriving;              /* is repeating its WAIT in a new session; under locks->lock */
	bool shared;                /* with other holders */
	bool managed;               /* the home has granted it; under locks->lock */
	bool swapped;               /* @value may be in the word */
	bool was_died;              /* the swap replaced DIED */
	bool asked;                 /* the home may know the claim */
	bool entered;               /* an arrival that the home has confirmed */
	enum lite_lock_end end;     /* LEFT: how it ends */
	struct rb_node node;        /* HELD: in ctx->locks; LEFT arrival: in locks->left_barriers */
	wait_queue_head_t wait;     /* woken by a verdict, or when members have changed */
	struct lite_crew_job job;   /* LEFT: releases it */
	struct delayed_work timer;  /* queues @job */
};

struct lite_hold *lite_hold_new(struct lite_locks *locks, const struct lite_lock_args *args,
				const struct lite_word *word);
void lite_hold_add(struct rb_root *tree, struct lite_hold *h);
struct lite_hold *lite_hold_in(const struct rb_root *tree, const struct lite_word *word, u64 owner);
int lite_lock_check(const struct lite_lock_args *args);
void lite_lock_give_up(struct lite_hold *h);
int lite_lock_wait(struct lite_hold *h, const struct lite_lock_args *args);
lite_handler lite_serve_lock_grant, lite_serve_lock_probe;
void lite_hold_free(struct lite_hold *h);
void lite_hold_leave(struct lite_hold *h, enum lite_lock_end end);
void lite_hold_left_job(struct work_struct *work);
void lite_hold_left_due(struct work_struct *work);

/* Finds a lock or barrier in locks->home; without padding. */
struct lite_lock_key {
	u64 id; /* of the LMR */
	u64 offset;
	u64 barrier; /* 0, 1 */
};

/* What identifies a claim. */
struct lite_claim_name {
	/* First, so that claims of one life are side by side in lock->claims. */
	u64 incarnation; /* of the taker's node */
	u32 node;
	u32 ticket;      /* number of the claim there */
};

/* A lock with waiters, or a barrier, at its home. */
struct lite_lock {
	struct lite_locks *locks;
	refcount_t ref;           /* held by the tree, by claims, by @job and @timer if queued */
	struct rb_node node;      /* in locks->home */
	struct lite_lock_key key; /* its key there */
	struct lite_word word;    /* without a uid */
	/* Participants of a barrier; 0: a lock. @owners: a complete round, until each is told. */
	u32 n;
	bool managed;             /* the word is MANAGED: @owners and @queue decide */
	bool busy;                /* @job is at work */
	bool settling;            /* a swap for MANAGED is under way */
	bool died;                /* the next owner gets EOWNERDEAD */
	bool ended;               /* the lock is unrecoverable */
	bool removed;             /* no longer in locks->home; all claims that are left are early */
	bool more;                /* lite_lock_go_on() has more to do; @job is queued */
	bool swept;               /* the sweep has ended some of its claims so far */
	bool back;                /* a swap for FREE, DIED or ENDED has an unknown outcome */
	u64 seen;                 /* probable value of the word, to be tried first */
	u64 maybe;                /* value that a swap of unknown outcome may have made MANAGED */
	struct list_head owners;  /* claims that own it: one, or several shared ones */
	struct list_head queue;   /* claims that wait, in order of arrival */
	u32 n_queued;             /* length of @queue */
	struct list_head tries;   /* claims in @queue that do not wait */
	/* Claims released before the word was known; @status is how they ended. */
	struct list_head early;
	struct rb_root claims;    /* owners, @queue and @early, by name */
	struct lite_claim_name at; /* the last claim that the sweep has looked at */
	/* Operates on the word and sends PROBEs; counts for the user of the first claim. */
	struct lite_crew_job job;
	struct delayed_work timer; /* queues @job */
	/* That user's part of the workers of locks->tells. */
	struct lite_pool_part *tellers;
	struct lite_lock_claim *spare; /* used by @job for a claim found in the word */
};

/* Claims in all states but OVER are in a list and in lock->claims. */
enum lite_lock_claim_state {
	LITE_CLAIM_OVER,
	LITE_CLAIM_QUEUED,
	LITE_CLAIM_OWNER,
	LITE_CLAIM_EARLY,
};

/* A claim on a lock, at the lock's home. */
struct lite_lock_claim {
	struct lite_lock *lock;
	refcount_t ref;           /* held by the tree, by @job and @timer if queued */
	struct rb_node node;      /* in lock->claims */
	struct list_head list;    /* in lock->owners, lock->queue or lock->early */
	struct list_head tried;   /* in lock->tries while it is QUEUED */
	struct lite_claim_name name;
	bool counted;             /* charged to @uid in the pool of claims */
	u32 uid;                  /* of the taker */
	enum lite_lock_claim_state state;
	bool shared;              /* with other owners */
	bool try;                 /* does not wait */
	bool probe;               /* it was found in the word, to be confirmed by a PROBE */
	bool found;               /* it was in the word when that became MANAGED */
	bool swept;               /* its node has counted as dead: it is not told any more */
	bool told;                /* its node knows that it owns the lock */
	int status;               /* what it is told */
	struct lite_crew_job job; /* tells it */
	struct delayed_work timer; /* queues @job */
};

/* lock_home.c */
void lite_lock_home_init(struct lite_locks *locks);
void lite_lock_home_shut(struct lite_locks *locks);
void lite_lock_put(struct lite_lock *l);
void lite_lock_go_on(struct lite_lock *l);
void lite_lock_refuse(struct lite_lock *l, int err);
void lite_lock_remove(struct lite_lock *l);
void lite_lock_queue_work(struct lite_lock *l, unsigned long delay);

/* lock_claim.c */
struct lite_lock_claim *lite_lock_claim_found(struct lite_lock *l,
					      const struct lite_claim_name *name);
struct lite_lock_claim *lite_lock_claim_admit(struct lite_lock *l,
					      const struct lite_claim_name *name, u32 uid);
struct lite_lock_claim *lite_lock_claim_find(const struct lite_lock *l,
					     const struct lite_claim_name *name);
struct lite_lock_claim *lite_lock_claim_after(const struct lite_lock *l,
					      const struct lite_claim_name *name);
void lite_lock_claim_put(struct lite_lock_claim *c);
void lite_lock_claim_move(struct lite_lock_claim *c, enum lite_lock_claim_state state);
void lite_lock_claim_over(struct lite_lock_claim *c, int status);
void lite_lock_claim_end(struct lite_lock_claim *c, enum lite_lock_end end);
bool lite_lock_claim_is_dead(const struct lite_lock_claim *c);
void lite_lock_claim_trace(const struct lite_lock_claim *c, int what, int status);
void lite_lock_claim_tell(struct lite_lock_claim *c, int status);

/* lock_settle.c */
void lite_lock_job(struct work_struct *work);
u64 lite_lock_holder(struct lite_locks *locks, u64 word);

#endif /* _LITE_LOCK_H */
