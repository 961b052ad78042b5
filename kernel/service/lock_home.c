// SPDX-License-Identifier: GPL-2.0
/*
 * Locks at the home of their LMR: who has one, who waits, who is next.
 *
 * Normal operation: a WAIT enters a claim at the end of the queue. When the word
 * is MANAGED (lock_settle.c makes it so), the first of the queue becomes the
 * owner as soon as there is none, or together with others who share it, and is
 * told by a GRANT. A RELEASE ends a claim. With neither owner nor queue the word
 * is given up again, and the lock forgotten.
 *
 * Recovery: a claim whose node's life is over ends with it; so does one of which
 * the node says, when it is granted, that there is nobody any more. A GRANT is
 * repeated until it is answered or the node's life is over.
 *
 * What runs concurrently: handlers, the items that tell claims, the one of each
 * lock that works on its word, and the sweep. All of them look, and change what
 * they see, under home_lock; none keeps it while it waits for anybody.
 */
#include <linux/slab.h>

#include "../trace.h"
#include "lock.h"

/* While others wait an owner is asked so often whether it is one. */
#define LITE_PROBE_PERIOD (2 * HZ)

/* ---- objects ------------------------------------------------------------- */

static void lite_lock_release_ref(struct kref *ref)
{
	struct lite_lock *l = container_of(ref, struct lite_lock, ref);
	struct lite_locks *locks = l->locks;

	kfree(l);
	/* The workqueue outlives us, and so does what it belongs to. */
	if (atomic_dec_and_test(&locks->objects))
		wake_up_var(&locks->objects);
}

/**
 * lite_lock_put - give back a reference to a lock
 * @l: lock
 *
 * Context: any process.
 */
void lite_lock_put(struct lite_lock *l)
{
	kref_put(&l->ref, lite_lock_release_ref);
}

struct lite_lock_key {
	u64 id;
	u64 offset;
	bool barrier;
};

static int lite_lock_cmp_id(const void *key, const struct rb_node *node)
{
	return lite_order(*(const u64 *)key,
			  rb_entry(node, struct lite_lock, node)->word.id);
}

static int lite_lock_cmp(const void *key, const struct rb_node *node)
{
	const struct lite_lock *l = rb_entry(node, struct lite_lock, node);
	const struct lite_lock_key *k = key;

	return lite_lock_cmp_id(&k->id, node) ?:
	       lite_order(k->offset, l->word.offset) ?:
	       lite_order(k->barrier, !!l->n);
}

static bool lite_lock_less(struct rb_node *a, const struct rb_node *b)
{
	const struct lite_lock *l = rb_entry(a, struct lite_lock, node);
	const struct lite_lock_key key = {
		.id = l->word.id,
		.offset = l->word.offset,
		.barrier = l->n,
	};

	return lite_lock_cmp(&key, b) < 0;
}

/**
 * lite_lock_find - a lock that somebody waits for, or a barrier
 * @locks: node's; home_lock is held
 * @id: of the LMR
 * @offset: of the word
 * @barrier: which of both
 *
 * Return: it, good while home_lock is held, or NULL.
 */
struct lite_lock *lite_lock_find(struct lite_locks *locks, u64 id, u64 offset,
				 bool barrier)
{
	const struct lite_lock_key key = {
		.id = id,
		.offset = offset,
		.barrier = barrier,
	};

	lockdep_assert_held(&locks->home_lock);
	return rb_entry_safe(rb_find(&key, &locks->home, lite_lock_cmp),
			     struct lite_lock, node);
}

/**
 * lite_lock_make - a lock that nobody waits for yet
 * @locks: node's; home_lock is held
 * @id: of the LMR
 * @offset: of the word
 * @n: it is a barrier for so many; 0: a lock
 * @gfp: of its memory
 *
 * Context: may sleep.
 * Return: it; the tree has the reference; or NULL. lite_lock_go_on() is to
 * follow.
 */
struct lite_lock *lite_lock_make(struct lite_locks *locks, u64 id, u64 offset,
				 u32 n, gfp_t gfp)
{
	struct lite_lock *l = kzalloc(sizeof(*l), gfp);

	lockdep_assert_held(&locks->home_lock);
	if (!l)
		return NULL;
	l->locks = locks;
	atomic_inc(&locks->objects);
	kref_init(&l->ref);
	l->word = (struct lite_word){
		.home = lite_cluster_id(locks->cl),
		.incarnation = locks->mem->fab->self.incarnation,
		.id = id,
		.offset = offset,
	};
	INIT_LIST_HEAD(&l->owners);
	INIT_LIST_HEAD(&l->queue);
	INIT_LIST_HEAD(&l->tries);
	l->claims = RB_ROOT;
	l->early = RB_ROOT;
	l->n = n;
	INIT_DELAYED_WORK(&l->work, lite_lock_work);
	rb_add(&l->node, &locks->home, lite_lock_less);
	return l;
}

/**
 * lite_lock_remove - forget a lock
 * @l: nobody has it or waits for it; home_lock is held
 */
void lite_lock_remove(struct lite_lock *l)
{
	lockdep_assert_held(&l->locks->home_lock);
	if (l->removed)
		return;
	l->removed = true;
	lite_lock_early_done(l);
	rb_erase(&l->node, &l->locks->home);
	if (cancel_delayed_work(&l->work))
		lite_lock_put(l);
	lite_lock_put(l);
}

/**
 * lite_lock_queue_work - there is something to do on the word, or to be asked
 * @l: lock; home_lock is held
 * @delay: jiffies, unless it is queued already
 */
void lite_lock_queue_work(struct lite_lock *l, unsigned long delay)
{
	bool queued;

	lockdep_assert_held(&l->locks->home_lock);
	kref_get(&l->ref);
	/* Now is now; later is later only if it has not been now before. */
	if (delay)
		queued = !queue_delayed_work(l->locks->wq, &l->work, delay);
	else
		queued = mod_delayed_work(l->locks->wq, &l->work, 0);
	if (queued)
		lite_lock_put(l);
}

/* ---- who is next --------------------------------------------------------- */

/* It is out of owners and queue; who asked is told, if @status is not 0. */
static void lite_claim_over(struct lite_claim *c, int status)
{
	lite_claim_out(c);
	if (status)
		lite_claim_tell(c, status);
	lite_claim_put(c);
}

/**
 * lite_claim_end - somebody does not have a lock, or want it, any more
 * @c: claim of an owner, or in the queue; home_lock is held
 * @end: how it ends
 *
 * Not the caller's any more. lite_lock_go_on() is to follow.
 */
void lite_claim_end(struct lite_claim *c, enum lite_lock_end end)
{
	struct lite_lock *l = c->lock;

	lockdep_assert_held(&l->locks->home_lock);
	/* One who was to be told, and never knew, leaves that to the next. */
	if (end == LITE_LOCK_UNUSED && c->status == -EOWNERDEAD)
		end = LITE_LOCK_DEAD;
	if (c->state == LITE_CLAIM_OWNER && !c->shared) {
		l->died |= end == LITE_LOCK_DEAD;
		l->ended |= end == LITE_LOCK_BROKEN;
	}
	lite_claim_trace(c, LITE_TRACE_LOCK_END, end);
	lite_claim_over(c, 0);
}

static void lite_claim_grant(struct lite_claim *c)
{
	struct lite_lock *l = c->lock;

	lite_claim_have(c);
	lite_stat_inc(l->locks->stats, LITE_STAT_LOCK_GRANTS);
	lite_claim_trace(c, LITE_TRACE_LOCK_GRANT, l->died ? -EOWNERDEAD : 0);
	lite_claim_tell(c, l->died ? -EOWNERDEAD : 0);
	/* Who shares it cannot make it good: all are told until somebody can. */
	if (!c->shared)
		l->died = false;
}

/**
 * lite_lock_refuse - nobody who waits will have it
 * @l: lock; home_lock is held
 * @err: what they are told
 */
void lite_lock_refuse(struct lite_lock *l, int err)
{
	struct lite_claim *c, *next;

	lockdep_assert_held(&l->locks->home_lock);
	list_for_each_entry_safe(c, next, &l->queue, list)
		lite_claim_over(c, err);
}

/* Have all come? Then they go. The first of them: others may be of the next round. */
static void lite_barrier_go_on(struct lite_lock *l)
{
	struct lite_claim *c, *next;
	u32 n = l->n;

	if (l->n_queued >= n) {
		list_for_each_entry_safe(c, next, &l->queue, list) {
			if (!n--)
				break;
			lite_claim_grant(c);
		}
	}
	if (list_empty(&l->queue) && list_empty(&l->owners))
		lite_lock_remove(l);
}

/**
 * lite_lock_go_on - do what can be done for a lock
 * @l: lock that has changed; home_lock is held
 */
void lite_lock_go_on(struct lite_lock *l)
{
	struct lite_claim *c, *owner, *next;

	lockdep_assert_held(&l->locks->home_lock);
	if (l->removed)
		return;
	if (l->n) {
		lite_barrier_go_on(l);
		return;
	}
	if (l->ended)
		lite_lock_refuse(l, -ENOTRECOVERABLE);
	while (l->managed && !list_empty(&l->queue)) {
		c = list_first_entry(&l->queue, struct lite_claim, list);
		owner = list_first_entry_or_null(&l->owners, struct lite_claim,
						 list);
		if (!lite_lock_fits(owner, owner && owner->shared, c->shared))
			break;
		lite_claim_grant(c);
	}
	if (l->managed) {
		list_for_each_entry_safe(c, next, &l->tries, tried)
			lite_claim_over(c, -EBUSY);
	}
	/*
	 * The word is to be made ours, or not to be it any more; or it is to be
	 * asked, some time later, whether who has it still has.
	 */
	if (!l->managed || (list_empty(&l->owners) && list_empty(&l->queue)))
		lite_lock_queue_work(l, 0);
	else if (!list_empty(&l->queue))
		lite_lock_queue_work(l, LITE_PROBE_PERIOD);
}

/**
 * lite_claim_own - somebody was found to have a lock when it became ours
 * @l: lock; managed; home_lock is held
 * @node: who
 * @incarnation: in which life
 * @ticket: number of his claim there
 *
 * Context: may sleep.
 */
void lite_claim_own(struct lite_lock *l, u32 node, u64 incarnation, u32 ticket)
{
	struct lite_claim *c = lite_claim_find(l, node, incarnation, ticket);

	lockdep_assert_held(&l->locks->home_lock);
	if (c) {
		/* He did not know whether he had got it, and asked. */
		lite_claim_have(c);
		c->found = true;
		lite_claim_trace(c, LITE_TRACE_LOCK_GRANT, 0);
		lite_claim_tell(c, 0);
		return;
	}
	c = lite_claim_new(l, node, incarnation, ticket,
			   GFP_KERNEL | __GFP_NOFAIL);
	lite_claim_have(c);
	c->probe = true;
	/* What he has asked before may come yet, and have him told. */
	c->found = true;
	lite_claim_trace(c, LITE_TRACE_LOCK_FOUND, 0);
	lite_lock_queue_work(l, 0);
}

/* ---- news ---------------------------------------------------------------- */

static bool lite_lock_sweep_list(struct lite_locks *locks,
				 struct list_head *list)
{
	struct lite_claim *c, *next;
	bool found = false;

	list_for_each_entry_safe(c, next, list, list) {
		if (!lite_life_has_ended(locks, c->node, c->incarnation))
			continue;
		c->swept = true;
		lite_claim_end(c, LITE_LOCK_DEAD);
		found = true;
	}
	return found;
}

/* Members have changed: whose life is over has no claims. */
static void lite_locks_sweep(struct work_struct *work)
{
	struct lite_locks *locks = container_of(work, struct lite_locks, sweep);
	struct rb_node *node, *next;
	struct lite_lock *l;
	bool found;

	mutex_lock(&locks->home_lock);
	for (node = rb_first(&locks->home); node; node = next) {
		next = rb_next(node);
		l = rb_entry(node, struct lite_lock, node);
		found = lite_lock_sweep_list(locks, &l->owners);
		found |= lite_lock_sweep_list(locks, &l->queue);
		if (found)
			lite_lock_go_on(l);
		cond_resched();
	}
	mutex_unlock(&locks->home_lock);
}

/* Forget it, and all claims on it. */
static void lite_lock_drop(struct lite_lock *l, int err)
{
	struct lite_claim *c, *next;

	lite_lock_refuse(l, err);
	list_for_each_entry_safe(c, next, &l->owners, list)
		lite_claim_over(c, 0);
	lite_lock_remove(l);
}

/**
 * lite_locks_lmr_cut - an LMR at home here has become shorter, or was freed
 * @locks: node's
 * @id: of the LMR
 * @length: that it has now; 0: it is gone
 *
 * Context: may sleep.
 */
void lite_locks_lmr_cut(struct lite_locks *locks, u64 id, u64 length)
{
	struct rb_node *node, *next;
	struct lite_lock *l;

	mutex_lock(&locks->home_lock);
	node = rb_find_first(&id, &locks->home, lite_lock_cmp_id);
	for (; node; node = next) {
		next = rb_next_match(&id, node, lite_lock_cmp_id);
		l = rb_entry(node, struct lite_lock, node);
		if (lite_atomic_check(l->word.offset, sizeof(u64), length))
			lite_lock_drop(l, length ? -ERANGE : -EIDRM);
		cond_resched();
	}
	mutex_unlock(&locks->home_lock);
}

/* ---- life ---------------------------------------------------------------- */

void lite_lock_home_init(struct lite_locks *locks)
{
	mutex_init(&locks->home_lock);
	locks->home = RB_ROOT;
	INIT_WORK(&locks->sweep, lite_locks_sweep);
}

/**
 * lite_lock_home_shut - forget all locks
 * @locks: node's; closing
 *
 * Context: may sleep.
 */
void lite_lock_home_shut(struct lite_locks *locks)
{
	struct rb_node *node;

	mutex_lock(&locks->home_lock);
	while ((node = rb_first(&locks->home))) {
		lite_lock_drop(rb_entry(node, struct lite_lock, node), -EIDRM);
		cond_resched();
	}
	mutex_unlock(&locks->home_lock);
	/* Items that work for them; those that wait to try again do not long. */
	wait_var_event(&locks->objects, !atomic_read(&locks->objects));
}
