// SPDX-License-Identifier: GPL-2.0
/*
 * Locks at the home of their LMR: owners, queue, and the order of grants.
 *
 * Normal operation: a WAIT appends a claim to the queue. Once the word is
 * MANAGED (lock_settle.c), the first claim in the queue becomes the owner as
 * soon as there is none, or joins owners that share with it, and is told by a
 * GRANT. A RELEASE ends a claim. Without owner and queue the word is handed
 * back and the lock forgotten.
 *
 * Recovery: a claim ends with the life of its node, and when its node answers
 * the GRANT that the claim is over. A GRANT is repeated until it is answered or
 * the node's life is over.
 *
 * What runs concurrently: handlers, the work items that tell claims, the work
 * item of each lock that operates on its word, and the sweep. All of them look
 * and change under home_lock, and drop it while they wait for a call or an
 * operation.
 */
#include <linux/slab.h>

#include "memory/io/word.h"
#include "lock.h"
#include "trace.h"

/* How often an owner is probed while claims wait, in jiffies. */
#define LITE_PROBE_PERIOD (2 * HZ)

/* ---- objects ------------------------------------------------------------- */

static void lite_lock_release_ref(struct kref *ref)
{
	struct lite_lock *l = container_of(ref, struct lite_lock, ref);
	struct lite_locks *locks = l->locks;

	kfree(l);
	/* Still there: lite_locks_exit() waits for the work items first. */
	if (atomic_dec_and_test(&locks->objects))
		wake_up_var(&locks->objects);
}

/* Drop a reference to a lock. Context: process. */
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

/*
 * Find a lock with waiters, or a barrier. Return: it, valid while home_lock is
 * held, or NULL.
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

/*
 * Make a lock, or a barrier for @n. The caller must call lite_lock_go_on()
 * afterwards. Context: may sleep. Return: it, referenced by the tree only, or
 * NULL.
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

/* Forget a lock that has neither owner nor queue. */
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

/* Queue the work on a lock's word, or a PROBE. @delay: jiffies. */
void lite_lock_queue_work(struct lite_lock *l, unsigned long delay)
{
	bool queued;

	lockdep_assert_held(&l->locks->home_lock);
	kref_get(&l->ref);
	/* A delay must not postpone work that is already queued. */
	if (delay)
		queued = !queue_delayed_work(l->locks->wq, &l->work, delay);
	else
		queued = mod_delayed_work(l->locks->wq, &l->work, 0);
	if (queued)
		lite_lock_put(l);
}

/* ---- the order of grants ------------------------------------------------- */

/* Take a claim out of owners and queue; tell it @status unless that is 0. */
static void lite_lock_claim_over(struct lite_lock_claim *c, int status)
{
	lite_lock_claim_out(c);
	if (status)
		lite_lock_claim_tell(c, status);
	lite_lock_claim_put(c);
}

/**
 * lite_lock_claim_end - end a claim on a lock
 * @c: claim of an owner, or in the queue; its reference is dropped here
 * @end: how it ends
 *
 * The caller must call lite_lock_go_on() afterwards. home_lock is held.
 */
void lite_lock_claim_end(struct lite_lock_claim *c, enum lite_lock_end end)
{
	struct lite_lock *l = c->lock;

	lockdep_assert_held(&l->locks->home_lock);
	/* It never learnt of the death that it was to be told: pass it on. */
	if (end == LITE_LOCK_UNUSED && c->status == -EOWNERDEAD)
		end = LITE_LOCK_DEAD;
	if (c->state == LITE_CLAIM_OWNER && !c->shared) {
		l->died |= end == LITE_LOCK_DEAD;
		l->ended |= end == LITE_LOCK_BROKEN;
	}
	lite_lock_claim_trace(c, LITE_TRACE_LOCK_END, end);
	lite_lock_claim_over(c, 0);
}

static void lite_lock_claim_grant(struct lite_lock_claim *c)
{
	struct lite_lock *l = c->lock;

	lite_lock_claim_have(c);
	lite_stat_inc(l->locks->stats, LITE_STAT_LOCK_GRANTS);
	lite_lock_claim_trace(c, LITE_TRACE_LOCK_GRANT,
			      l->died ? -EOWNERDEAD : 0);
	lite_lock_claim_tell(c, l->died ? -EOWNERDEAD : 0);
	/*
	 * A shared owner cannot make the lock consistent: keep telling until
	 * there is an exclusive one.
	 */
	if (!c->shared)
		l->died = false;
}

/* End all claims in the queue; @err is what the takers are told. */
void lite_lock_refuse(struct lite_lock *l, int err)
{
	struct lite_lock_claim *c, *next;

	lockdep_assert_held(&l->locks->home_lock);
	list_for_each_entry_safe(c, next, &l->queue, list)
		lite_lock_claim_over(c, err);
}

/*
 * Complete a round when enough have arrived. Only the first @n claims go on:
 * the rest is of the next round.
 */
static void lite_barrier_go_on(struct lite_lock *l)
{
	struct lite_lock_claim *c, *next;
	u32 n = l->n;

	if (l->n_queued >= n) {
		list_for_each_entry_safe(c, next, &l->queue, list) {
			if (!n--)
				break;
			lite_lock_claim_grant(c);
		}
	}
	if (list_empty(&l->queue) && list_empty(&l->owners))
		lite_lock_remove(l);
}

/* Grant what can be granted after a change, and queue the work to be done. */
void lite_lock_go_on(struct lite_lock *l)
{
	struct lite_lock_claim *c, *owner, *next;

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
		c = list_first_entry(&l->queue, struct lite_lock_claim, list);
		owner = list_first_entry_or_null(&l->owners,
						 struct lite_lock_claim, list);
		if (!lite_lock_fits(owner, owner && owner->shared, c->shared))
			break;
		lite_lock_claim_grant(c);
	}
	if (l->managed) {
		list_for_each_entry_safe(c, next, &l->tries, tried)
			lite_lock_claim_over(c, -EBUSY);
	}
	/*
	 * Either the word has to be taken over or handed back, or an owner has
	 * to be probed later because others wait for it.
	 */
	if (!l->managed || (list_empty(&l->owners) && list_empty(&l->queue)))
		lite_lock_queue_work(l, 0);
	else if (!list_empty(&l->queue))
		lite_lock_queue_work(l, LITE_PROBE_PERIOD);
}

/* Enter the holder that was found in the word as owner. Context: may sleep. */
void lite_lock_claim_own(struct lite_lock *l, u32 node, u64 incarnation,
			 u32 ticket)
{
	struct lite_lock_claim *c =
		lite_lock_claim_find(l, node, incarnation, ticket);

	lockdep_assert_held(&l->locks->home_lock);
	if (c) {
		/* The taker did not know the outcome of its swap, and asked. */
		lite_lock_claim_have(c);
		c->found = true;
		lite_lock_claim_trace(c, LITE_TRACE_LOCK_GRANT, 0);
		lite_lock_claim_tell(c, 0);
		return;
	}
	c = lite_lock_claim_new(l, node, incarnation, ticket,
				GFP_KERNEL | __GFP_NOFAIL);
	lite_lock_claim_have(c);
	c->probe = true;
	/* A WAIT that it sent before may still arrive, and be granted. */
	c->found = true;
	lite_lock_claim_trace(c, LITE_TRACE_LOCK_FOUND, 0);
	lite_lock_queue_work(l, 0);
}

/* ---- changes ------------------------------------------------------------- */

static bool lite_lock_sweep_list(struct lite_locks *locks,
				 struct list_head *list)
{
	struct lite_lock_claim *c, *next;
	bool found = false;

	list_for_each_entry_safe(c, next, list, list) {
		if (!lite_life_has_ended(locks, c->node, c->incarnation))
			continue;
		c->swept = true;
		lite_lock_claim_end(c, LITE_LOCK_DEAD);
		found = true;
	}
	return found;
}

/* Members have changed: end the claims of nodes that are dead. */
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

/* Forget a lock and all its claims. */
static void lite_lock_drop(struct lite_lock *l, int err)
{
	struct lite_lock_claim *c, *next;

	lite_lock_refuse(l, err);
	list_for_each_entry_safe(c, next, &l->owners, list)
		lite_lock_claim_over(c, 0);
	lite_lock_remove(l);
}

/**
 * lite_locks_lmr_cut - a local LMR has become shorter, or was freed
 * @locks: the node's
 * @id: of the LMR
 * @length: new length, bytes; 0: it was freed
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

/* Forget all locks; @locks is closing. Context: may sleep. */
void lite_lock_home_shut(struct lite_locks *locks)
{
	struct rb_node *node;

	mutex_lock(&locks->home_lock);
	while ((node = rb_first(&locks->home))) {
		lite_lock_drop(rb_entry(node, struct lite_lock, node), -EIDRM);
		cond_resched();
	}
	mutex_unlock(&locks->home_lock);
	/* Work items may refer to locks; a retry that is queued runs soon. */
	wait_var_event(&locks->objects, !atomic_read(&locks->objects));
}
