/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Locks in words of LMRs. core/lockword.h has the word; Documentation/locks.rst
 * tells the story.
 *
 * Two roles, which one node may play at once:
 *
 *   taker    whose process wants a lock (struct lite_hold). It takes a lock that
 *            nobody has, and gives back one that nobody waits for, by one
 *            compare-and-swap; else it asks the home. lock.c, lock_wait.c,
 *            lock_release.c
 *   home     of the LMR: when somebody has to wait it makes the word its own
 *            (MANAGED), keeps owners and a queue (struct lite_lock), and passes
 *            the lock on in the order in which they asked. lock_home.c,
 *            lock_settle.c, lock_serve.c
 *
 * A barrier is a lock that nobody has until as many want it as are to come: then
 * all of them do, for a moment. barrier.c
 *
 * Calls, none of which waits for anything: WAIT (taker to home: I want it) and
 * RELEASE (I want it no more) are answered at once; GRANT (home to taker: you
 * have it, or an error) says whether the taker still wants it; PROBE (home to
 * the node in a word: do you?) whether it has it. All may be repeated, and may
 * come late: they name a ticket, which stands for one claim on a lock in one
 * life of a node.
 *
 * Why nobody waits for ever
 *
 *   A claim that the home knows ends by RELEASE, by a GRANT that is refused, by
 *   the end of its node's life, or of the LMR. A taker that is waiting asks again
 *   in each session with the home. A word that names a claim which is none (a
 *   swap of which nobody knew whether it was done) is found out by PROBE; so is
 *   an owner that is none, whoever has written what to the word, as long as
 *   others wait.
 *
 * Why no two have it
 *
 *   While the word is MANAGED only the home says who has the lock; it becomes
 *   FREE, DIED or ENDED only when there is neither owner nor queue, under
 *   @home_lock, before it is swapped. A swap of which it is not known whether it
 *   was done is done again, or seen to have been done, in a later session: then
 *   the first one is over (the responder ends a session before it has the next).
 *
 * Locking: @home_lock, then lite_lmr.lock. @lock is innermost. No call and no
 * operation on memory is made with either.
 */
#ifndef _LITE_LOCK_H
#define _LITE_LOCK_H

#include <linux/rbtree.h>

#include "../core/lockword.h"
#include "../memory/memory.h"
#include "../pool.h"

/**
 * struct lite_locks - the locks of a node
 * @mem: node's
 * @cl: node's
 * @stats: of the node
 * @wq: words, and what takes calls of those who are suspect: its items may wait
 *	long, but nobody for them but the end of the node
 * @tell_wq: claims that are told, and the sweep: not behind items of @wq
 * @changes: in members and sessions; who waits looks again
 * @closing: nothing new
 * @lock: protects the next six, and what is in holds
 * @tickets: struct lite_hold by ticket
 * @next_ticket: where to look for a free one
 * @held: those that are HELD; each context has a tree of its own
 * @waiting: those that are WAITING
 * @left: those that are LEFT
 * @left_barriers: of them the arrivals at barriers, by word
 * @left_wait: woken when one of a barrier is so no more, or members have changed
 * @home_lock: protects the rest, and what is in it
 * @home: struct lite_lock by LMR and offset
 * @objects: how many they are, those out of the tree included; atomic
 * @sweep: looks for claims whose nodes are no more
 */
struct lite_locks {
	struct lite_memory *mem;
	struct lite_cluster *cl;
	struct lite_stats __percpu *stats;
	struct workqueue_struct *wq;
	struct workqueue_struct *tell_wq;
	atomic_t changes;
	bool closing;
	spinlock_t lock;
	struct xarray tickets;
	u32 next_ticket;
	struct list_head held;
	struct list_head waiting;
	struct list_head left;
	struct rb_root left_barriers;
	wait_queue_head_t left_wait;
	struct mutex home_lock;
	struct rb_root home;
	atomic_t objects;
	struct work_struct sweep;
};

/**
 * struct lite_lock_args - a lock, and who wants it how
 * @ctx: context; with @owner it is the holder
 * @lh: handle
 * @offset: in the LMR
 * @owner: any number; tells the holders of one context from each other
 * @n: not a lock: a barrier for so many
 * @shared: with others who want it so
 * @try: do not wait
 * @timeout: jiffies to wait, MAX_JIFFY_OFFSET at most
 */
struct lite_lock_args {
	struct lite_ctx *ctx;
	u64 lh;
	u64 offset;
	u64 owner;
	u32 n;
	bool shared;
	bool try;
	unsigned long timeout;
};

/* lock.c */
int lite_locks_init(struct lite_locks *locks, struct lite_memory *mem,
		    struct lite_rpc *rpc, struct lite_stats __percpu *stats);
void lite_locks_changed(struct lite_locks *locks);
void lite_locks_shut(struct lite_locks *locks);
void lite_locks_exit(struct lite_locks *locks);
int lite_lock_take(struct lite_locks *locks, const struct lite_lock_args *args);
int lite_barrier_wait(struct lite_locks *locks,
		      const struct lite_lock_args *args);

/* lock_release.c */
int lite_lock_release(struct lite_locks *locks, struct lite_ctx *ctx, u64 lh,
		      u64 offset, u64 owner);
int lite_lock_consistent(struct lite_locks *locks, struct lite_ctx *ctx, u64 lh,
			 u64 offset, u64 owner);
void lite_locks_ctx_gone(struct lite_locks *locks, struct lite_ctx *ctx);

/* lock_home.c */
void lite_locks_lmr_cut(struct lite_locks *locks, u64 id, u64 length);

/* Of each kind a node has so many, if they take no more than this part of memory. */
#define LITE_LOCK_CLAIMS_MAX 262144U
#define LITE_LOCK_CLAIMS_PART 16
#define LITE_LOCK_CLAIM_BYTES 512

/* The pools of a node, of which LITE_POOL_LOCKS and LITE_POOL_LOCK_CLAIMS are ours. */
static inline struct lite_pool *lite_lock_pools(struct lite_locks *locks)
{
	return locks->mem->fab->pools;
}

/* One more; 0, -EDQUOT or -ENOMEM. */
static inline int lite_lock_pool_take(struct lite_pool *pool, u32 uid)
{
	int err = lite_pool_take(pool, uid, 1);

	/* That others have the rest is no news to the caller. */
	return err == -ENOSPC ? -EDQUOT : err;
}

/* Trees are in the order of several numbers, one after the other. */
static inline int lite_order(u64 a, u64 b)
{
	return a < b ? -1 : a > b;
}

/* ---- the taker's side, between its files --------------------------------- */

enum lite_hold_state {
	LITE_HOLD_TAKING,  /* its word may be in memory */
	LITE_HOLD_WAITING, /* the home may grant it */
	LITE_HOLD_HELD,    /* has the lock */
	LITE_HOLD_ENDING,  /* somebody gives it back, and waits for that */
	LITE_HOLD_LEFT,    /* nobody waits: it is given back when that is possible */
};

/**
 * struct lite_hold - a claim of a process here on a lock
 * @locks: node's
 * @ctx: whose; NULL: LEFT
 * @owner: of it
 * @word: the lock
 * @incarnation: of this node
 * @ticket: number of the claim in that life
 * @value: of the word, should it be taken without the home
 * @seen: what was in the word instead
 * @state: under locks->lock, as are the next two
 * @died: it was got from a holder that died, and has not been made consistent
 * @verdict: of the home
 * @n: it is an arrival at a barrier for so many; 0: a claim on a lock
 * @arriving: once more, in another session; under locks->lock
 * @shared: with others
 * @managed: the home has granted it; under locks->lock
 * @swapped: @value may be in the word
 * @was_died: that replaced DIED
 * @asked: the home may know of it
 * @entered: an arrival of which it does know
 * @end: LEFT: how it ends
 * @node: HELD: in ctx->locks; LEFT, of an arrival: in locks->left_barriers
 * @list: in locks->held, locks->waiting or locks->left
 * @kicked: locks->changes of which it has been told, or which was before it came
 *	to that list
 * @wait: woken when there is a verdict, or members have changed
 * @work: LEFT: gives it back
 */
struct lite_hold {
	struct lite_locks *locks;
	struct lite_ctx *ctx;
	u64 owner;
	struct lite_word word;
	u64 incarnation;
	u32 ticket;
	u64 value;
	u64 seen;
	enum lite_hold_state state;
	bool died;
	int verdict;
	u32 n;
	bool arriving;
	bool shared;
	bool managed;
	bool swapped;
	bool was_died;
	bool asked;
	bool entered;
	enum lite_lock_end end;
	struct rb_node node;
	struct list_head list;
	int kicked;
	wait_queue_head_t wait;
	struct delayed_work work;
};

/* No verdict yet. */
#define LITE_LOCK_PENDING 1

struct lite_hold *lite_hold_new(struct lite_locks *locks,
				const struct lite_lock_args *args,
				const struct lite_word *word);
void lite_hold_add(struct rb_root *tree, struct lite_hold *h);
struct lite_hold *lite_hold_in(const struct rb_root *tree,
			       const struct lite_word *word, u64 owner);
int lite_lock_check(const struct lite_lock_args *args);
void lite_lock_give_up(struct lite_hold *h);
int lite_hold_tell(struct lite_hold *h, enum lite_lock_end end, bool *again);
int lite_lock_wait(struct lite_hold *h, const struct lite_lock_args *args);
void lite_lock_take_handlers(struct lite_locks *locks, struct lite_rpc *rpc);
void lite_hold_publish(struct lite_hold *h, struct lite_ctx *ctx);
struct lite_hold *lite_hold_find_locked(struct lite_locks *locks,
					const struct lite_ctx *ctx,
					const struct lite_word *word,
					u64 owner);
void lite_hold_free(struct lite_hold *h);
void lite_hold_leave(struct lite_hold *h, enum lite_lock_end end);
void lite_hold_left_work(struct work_struct *work);
void lite_locks_drop_held(struct lite_locks *locks);
void lite_lock_fill(struct lite_wire_lock *w, const struct lite_hold *h,
		    u32 arg);

/* ---- the home's side, between its files ---------------------------------- */

/**
 * struct lite_lock - a lock that somebody has to wait for, at its home
 * @locks: node's
 * @ref: the table's, those of claims, and that of @work while it is queued
 * @node: in locks->home
 * @word: where it is
 * @n: it is a barrier for so many: those who have arrived are in @queue, those
 *	of a round that is complete in @owners, until they have been told
 * @managed: so is the word: owners and queue say who has it
 * @died: the next owner is told that one before died
 * @ended: nobody shall have it any more
 * @removed: from the table
 * @settling: it is being made so
 * @back: FREE, DIED or ENDED may be in the word already, or not
 * @seen: what is thought to be in the word; it is swapped for that
 * @maybe: a swap of this for MANAGED may have been done
 * @owners: claims that have it: one, or all of them shared
 * @queue: claims that want it, in the order of their coming
 * @n_queued: how many they are
 * @tries: those of them that will not wait
 * @claims: owners and queue by name
 * @early: claims that were given back while it was not known what was in the
 *	word, by name; @status of them is how
 * @work: what takes an operation on the word, or a PROBE
 */
struct lite_lock {
	struct lite_locks *locks;
	struct kref ref;
	struct rb_node node;
	struct lite_word word;
	u32 n;
	bool managed;
	bool settling;
	bool died;
	bool ended;
	bool removed;
	bool back;
	u64 seen;
	u64 maybe;
	struct list_head owners;
	struct list_head queue;
	u32 n_queued;
	struct list_head tries;
	struct rb_root claims;
	struct rb_root early;
	struct delayed_work work;
};

enum lite_claim_state {
	LITE_CLAIM_QUEUED,
	LITE_CLAIM_OWNER,
	LITE_CLAIM_OVER,
};

/**
 * struct lite_claim - somebody who has or wants a lock, at its home
 * @lock: which
 * @ref: that of the tree that it is in, and that of @work while it is queued
 * @name: in lock->claims, or lock->early
 * @list: in lock->owners or lock->queue, or in none when it is OVER
 * @tried: in lock->tries while it is QUEUED
 * @node: of the taker
 * @incarnation: in which life
 * @ticket: number there
 * @counted: for @uid, in the pool of claims
 * @uid: of the taker
 * @state: enum lite_claim_state
 * @shared: with others
 * @try: does not wait
 * @probe: it was found in the word: is it true?
 * @found: it was in the word when that became ours
 * @swept: its node counted as dead, so it is not told anything any more
 * @status: what it is told
 * @work: tells it
 */
struct lite_claim {
	struct lite_lock *lock;
	struct kref ref;
	struct rb_node name;
	struct list_head list;
	struct list_head tried;
	u32 node;
	u64 incarnation;
	u32 ticket;
	bool counted;
	u32 uid;
	enum lite_claim_state state;
	bool shared;
	bool try;
	bool probe;
	bool found;
	bool swept;
	int status;
	struct delayed_work work;
};

/* lock_home.c */
void lite_lock_home_init(struct lite_locks *locks);
void lite_lock_home_shut(struct lite_locks *locks);
void lite_lock_put(struct lite_lock *l);
struct lite_lock *lite_lock_find(struct lite_locks *locks, u64 id, u64 offset,
				 bool barrier);
struct lite_lock *lite_lock_make(struct lite_locks *locks, u64 id, u64 offset,
				 u32 n, gfp_t gfp);
void lite_claim_own(struct lite_lock *l, u32 node, u64 incarnation, u32 ticket);
void lite_claim_end(struct lite_claim *c, enum lite_lock_end end);
void lite_lock_go_on(struct lite_lock *l);
void lite_lock_refuse(struct lite_lock *l, int err);
void lite_lock_remove(struct lite_lock *l);
void lite_lock_queue_work(struct lite_lock *l, unsigned long delay);

/* lock_claim.c */
struct lite_claim *lite_claim_new(struct lite_lock *l, u32 node,
				  u64 incarnation, u32 ticket, gfp_t gfp);
struct lite_claim *lite_claim_admit(struct lite_lock *l, u32 node,
				    const struct lite_wire_lock *w, gfp_t gfp);
struct lite_claim *lite_claim_find(const struct lite_lock *l, u32 node,
				   u64 incarnation, u32 ticket);
void lite_claim_put(struct lite_claim *c);
void lite_claim_queue(struct lite_claim *c);
void lite_claim_have(struct lite_claim *c);
void lite_claim_out(struct lite_claim *c);
int lite_lock_keep_early(struct lite_lock *l, u32 node,
			 const struct lite_wire_lock *w);
bool lite_lock_was_early(struct lite_lock *l, u64 word);
void lite_lock_early_done(struct lite_lock *l);
void lite_claim_trace(const struct lite_claim *c, int what, int status);
void lite_claim_tell(struct lite_claim *c, int status);

/* lock_serve.c */
void lite_lock_home_handlers(struct lite_locks *locks, struct lite_rpc *rpc);

/* lock_settle.c */
void lite_lock_work(struct work_struct *work);
bool lite_life_has_ended(struct lite_locks *locks, u32 node, u64 incarnation);
u64 lite_lock_holder(struct lite_locks *locks, u64 word);

#endif /* _LITE_LOCK_H */
