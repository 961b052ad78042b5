// SPDX-License-Identifier: GPL-2.0
/*
 * Locks at the home of their LMR: requests of takers, owners, queue, and the order of grants.
 *
 * Normal operation: a WAIT appends a claim to the queue. Once the word is MANAGED (lock_settle.c),
 * the first claim in the queue becomes the owner as soon as there is none, or joins owners that
 * share with it, and is told by a GRANT. A RELEASE ends a claim. When neither owner nor queue is
 * left, the word is handed back and the lock forgotten.
 *
 * Recovery: a claim ends with the life of its node, or when its node answers a GRANT that the claim
 * is over. A GRANT is repeated until it is answered or the node's life is over.
 *
 * What runs concurrently: handlers, the work items that tell claims, the job of each lock that
 * operates on its word, and the sweep. All of them work under home_lock, and drop it while they
 * wait for a call or an operation.
 */
#include <linux/slab.h>

#include "memory/home/home.h"
#include "lock.h"
#include "trace.h"

/* How often an owner is probed while claims wait, in jiffies. */
#define LITE_PROBE_PERIOD (2 * HZ)

/* How many locks to look at, or claims of one to grant or end, before dropping home_lock. */
#define LITE_LOCK_WALK 64

/* Drop a reference to a lock. Context: process. */
void lite_lock_put(struct lite_lock *l)
{
	struct lite_locks *locks = l->locks;

	if (!refcount_dec_and_test(&l->ref))
		return;
	lite_crew_job_exit(&locks->words, &l->job);
	lite_pool_drop(&locks->tells.workers, l->tellers);
	kfree(l);
	/* @locks still exists: lite_locks_exit() waits for the jobs first. */
	if (atomic_dec_and_test(&locks->objects))
		wake_up_var(&locks->objects);
}

/* Ordered by the bytes of the key, so that the locks of one LMR are side by side. */
LITE_TREE(lite_lock_tree, struct lite_lock, node, key,
	  memcmp(key, has, sizeof(struct lite_lock_key)))

static struct lite_lock_key lite_lock_key(const struct lite_wire_lock *w, bool barrier)
{
	return (struct lite_lock_key){
		.id = le64_to_cpu(w->id),
		.offset = le64_to_cpu(w->offset),
		.barrier = barrier,
	};
}

/* Find the lock with waiters, or the barrier, of a request, or NULL. home_lock is held. */
static struct lite_lock *lite_lock_find(struct lite_locks *locks, const struct lite_wire_lock *w,
					bool barrier)
{
	const struct lite_lock_key key = lite_lock_key(w, barrier);

	lockdep_assert_held(&locks->home_lock);
	return lite_lock_tree_find(&key, &locks->home);
}

/* The reference of the timer becomes the job's. */
static void lite_lock_due(struct work_struct *work)
{
	struct lite_lock *l = container_of(to_delayed_work(work), struct lite_lock, timer);

	if (!lite_crew_queue(&l->locks->words, &l->job))
		lite_lock_put(l);
}

/*
 * Make a lock, or a barrier for @n, referenced by the tree only; the caller calls lite_lock_go_on()
 * afterwards. Return: it or NULL.
 */
static struct lite_lock *lite_lock_make(struct lite_locks *locks,
					const struct lite_wire_lock *w, u32 uid, u32 n)
{
	struct lite_lock *l = kzalloc(sizeof(*l), LITE_LOCK_GFP);

	lockdep_assert_held(&locks->home_lock);
	if (!l)
		return NULL;
	l->tellers = lite_pool_hold(&locks->tells.workers, uid, GFP_ATOMIC);
	if (!l->tellers)
		goto err;
	if (lite_crew_job_init(&locks->words, &l->job, uid, lite_lock_job, GFP_ATOMIC))
		goto err_tellers;
	l->locks = locks;
	atomic_inc(&locks->objects);
	refcount_set(&l->ref, 1);
	l->key = lite_lock_key(w, n);
	l->word = (struct lite_word){
		.home = lite_cluster_id(locks->cl),
		.incarnation = locks->mem->fab->self.incarnation,
		.id = l->key.id,
		.offset = l->key.offset,
	};
	INIT_LIST_HEAD(&l->owners);
	INIT_LIST_HEAD(&l->queue);
	INIT_LIST_HEAD(&l->tries);
	INIT_LIST_HEAD(&l->early);
	l->claims = RB_ROOT;
	l->n = n;
	INIT_DELAYED_WORK(&l->timer, lite_lock_due);
	rb_add(&l->node, &locks->home, lite_lock_tree_less);
	return l;

err_tellers:
	lite_pool_drop(&locks->tells.workers, l->tellers);
err:
	kfree(l);
	return NULL;
}

/* End at most @n claims of a list. Return: how many of @n are left. */
static u32 lite_lock_end_some(struct list_head *list, int status, u32 n)
{
	struct lite_lock_claim *c;

	while (n && (c = list_first_entry_or_null(list, struct lite_lock_claim, list))) {
		lite_lock_claim_over(c, c->told ? 0 : status);
		n--;
	}
	return n;
}

/*
 * For the lock's job: end as many claims as the queue has now, and tell the takers @err. home_lock
 * is dropped now and then: claims may come, or the lock may be removed.
 */
void lite_lock_refuse(struct lite_lock *l, int err)
{
	struct mutex *lock = &l->locks->home_lock;
	u32 n = l->n_queued, some;

	lockdep_assert_held(lock);
	while (n && !list_empty(&l->queue)) {
		some = min_t(u32, n, LITE_LOCK_WALK);
		lite_lock_end_some(&l->queue, err, some);
		n -= some;
		if (!n)
			break;
		mutex_unlock(lock);
		cond_resched();
		mutex_lock(lock);
	}
}

/* Forget a lock that has neither owner nor queue. If many claims are early, its job ends them. */
void lite_lock_remove(struct lite_lock *l)
{
	lockdep_assert_held(&l->locks->home_lock);
	if (l->removed)
		return;
	l->removed = true;
	rb_erase(&l->node, &l->locks->home);
	if (cancel_delayed_work(&l->timer))
		lite_lock_put(l);
	if (lite_crew_cancel(&l->locks->words, &l->job))
		lite_lock_put(l);
	lite_lock_go_on(l);
	lite_lock_put(l);
}

/* Have the lock's job operate on the word, or PROBE, in @delay jiffies. */
void lite_lock_queue_work(struct lite_lock *l, unsigned long delay)
{
	bool queued;

	lockdep_assert_held(&l->locks->home_lock);
	refcount_inc(&l->ref);
	if (delay) {
		queued = queue_delayed_work(l->locks->words.wq, &l->timer, delay);
	} else {
		if (cancel_delayed_work(&l->timer))
			lite_lock_put(l);
		queued = lite_crew_queue(&l->locks->words, &l->job);
	}
	if (!queued)
		lite_lock_put(l);
}

static void lite_lock_claim_grant(struct lite_lock_claim *c)
{
	struct lite_lock *l = c->lock;

	lite_lock_claim_move(c, LITE_CLAIM_OWNER);
	lite_stat_inc(l->locks->stats, LITE_STAT_LOCK_GRANTS);
	lite_lock_claim_trace(c, LITE_TRACE_LOCK_GRANT, l->died ? -EOWNERDEAD : 0);
	lite_lock_claim_tell(c, l->died ? -EOWNERDEAD : 0);
	/* Only an exclusive owner can make the lock consistent: tell all until then. */
	if (!c->shared)
		l->died = false;
}

/* Complete a round when l->n have arrived; further arrivals are of the next round. */
static void lite_barrier_go_on(struct lite_lock *l)
{
	struct lite_lock_claim *c, *next;
	u32 n = l->n;

	if (l->n_queued >= n) {
		/* The sweep may not have got to the claims of a node that is down. */
		list_for_each_entry_safe(c, next, &l->queue, list) {
			if (lite_lock_claim_is_dead(c)) {
				c->swept = true;
				lite_lock_claim_end(c, LITE_LOCK_DEAD);
			}
		}
	}
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

/*
 * Grant or refuse some claims in the queue, and end early ones once the word is known or the lock
 * removed: at most @n. Return: how many of @n are left.
 */
static u32 lite_lock_serve_some(struct lite_lock *l, u32 n)
{
	struct lite_lock_claim *c, *owner;

	if (l->ended)
		n = lite_lock_end_some(&l->queue, -ENOTRECOVERABLE, n);
	for (; n && l->managed && !list_empty(&l->queue); n--) {
		c = list_first_entry(&l->queue, struct lite_lock_claim, list);
		owner = list_first_entry_or_null(&l->owners, struct lite_lock_claim, list);
		if (lite_lock_claim_is_dead(c)) {
			/* The sweep has not got to this claim yet. */
			c->swept = true;
			lite_lock_claim_end(c, LITE_LOCK_DEAD);
		} else if (lite_lock_fits(owner, owner && owner->shared, c->shared)) {
			lite_lock_claim_grant(c);
		} else if (c->try) {
			/* Refuse it: claims behind it may fit. */
			lite_lock_claim_over(c, -EBUSY);
		} else {
			break;
		}
	}
	while (n && l->managed &&
	       (c = list_first_entry_or_null(&l->tries, struct lite_lock_claim, tried))) {
		lite_lock_claim_over(c, -EBUSY);
		n--;
	}
	if (l->managed || l->removed)
		n = lite_lock_end_some(&l->early, 0, n);
	return n;
}

/*
 * Hand the lock over after a change: grant what can be granted, and queue work on the word. If
 * there are many claims to grant or end, the lock's job does the rest, even of a removed lock.
 */
void lite_lock_go_on(struct lite_lock *l)
{
	lockdep_assert_held(&l->locks->home_lock);
	if (l->n && !l->removed) {
		lite_barrier_go_on(l);
		return;
	}
	l->more = !lite_lock_serve_some(l, LITE_LOCK_WALK);
	if (l->more) {
		lite_lock_queue_work(l, 0);
		return;
	}
	if (l->removed)
		return;
	/* The word is untouched, and no claim is left. */
	if (!l->managed && !l->busy && !l->maybe && !l->back && list_empty(&l->queue)) {
		lite_lock_remove(l);
		return;
	}
	/* Take over or hand back the word; or probe an owner later, as others wait for it. */
	if (!l->managed || (list_empty(&l->owners) && list_empty(&l->queue)))
		lite_lock_queue_work(l, 0);
	else if (!list_empty(&l->queue))
		lite_lock_queue_work(l, LITE_PROBE_PERIOD);
}

/*
 * Set @name to the claim of a request. Return: 0; -ESTALE: it is of an earlier life of the taker's
 * node (a slow thread may send it in a session of the next life); -EBADMSG.
 */
static int lite_lock_claim_named(struct lite_locks *locks, struct lite_conn *conn,
				 const struct lite_wire_lock *w, struct lite_claim_name *name)
{
	u64 incarnation = conn ? conn->from.incarnation : locks->mem->fab->self.incarnation;

	name->node = conn ? conn->from.node : lite_cluster_id(locks->cl);
	name->ticket = le32_to_cpu(w->ticket);
	name->incarnation = le64_to_cpu(w->incarnation);
	if (name->incarnation != incarnation)
		return -ESTALE;
	return name->node ? 0 : -EBADMSG;
}

/* The user that a request is charged to. */
static u32 lite_lock_uid(const struct lite_locks *locks, const struct lite_claim_name *name,
			 const struct lite_wire_lock *w)
{
	bool squash = locks->mem->root_squash && name->node != lite_cluster_id(locks->cl);

	return lite_uid_charged(le32_to_cpu(w->uid), squash);
}

/*
 * Is the word there? If it is cut off later, lite_locks_lmr_cut(), which takes home_lock after the
 * cut, finds the claim. Does not take lmr->lock, which a user's thread may hold for long.
 */
static int lite_lock_exists(struct lite_locks *locks, const struct lite_wire_lock *w)
{
	struct lite_lmr *lmr = lite_lmr_get(locks->mem, le64_to_cpu(w->id));
	int err;

	lockdep_assert_held(&locks->home_lock);
	if (!lmr)
		return -ENOENT;
	err = READ_ONCE(lmr->dying) ? -ENOENT :
				      lite_atomic_check(le64_to_cpu(w->offset), sizeof(u64),
							READ_ONCE(lmr->length));
	lite_lmr_put(lmr);
	return err;
}

static int lite_lock_enter(struct lite_locks *locks, const struct lite_claim_name *name,
			   const struct lite_wire_lock *w)
{
	u32 flags = le32_to_cpu(w->arg);
	u32 n = le32_to_cpu(w->n);
	u32 uid = lite_lock_uid(locks, name, w);
	struct lite_lock_claim *c;
	struct lite_lock *l;
	int err;

	lockdep_assert_held(&locks->home_lock);
	if (locks->closing)
		return -ESHUTDOWN;
	err = lite_lock_exists(locks, w);
	if (err)
		return err;
	l = lite_lock_find(locks, w, n);
	c = lite_lock_claim_find(l, name);
	if (c && c->state == LITE_CLAIM_OWNER) {
		/*
		 * Repeat the GRANT, which may have been lost. Do not check n: a barrier's queue may
		 * already be of a round with another number.
		 */
		lite_lock_claim_tell(c, c->status);
		return 0;
	}
	/* The claim was released; or the home confirmed the arrival, and has swept it. */
	if (c ? c->state == LITE_CLAIM_EARLY : flags & LITE_WIRE_LOCK_AGAIN)
		return -ENOLCK;
	/* While claims are queued the number of participants is fixed. */
	if (l && l->n != n && !list_empty(&l->queue))
		return -EINVAL;
	if (!l)
		l = lite_lock_make(locks, w, uid, n);
	if (!l)
		return -ENOMEM;
	l->n = n;
	if (!c) {
		c = lite_lock_claim_admit(l, name, uid);
		if (IS_ERR(c)) {
			/* Removes a lock that was just made. */
			lite_lock_go_on(l);
			return PTR_ERR(c);
		}
		c->shared = n || flags & LITE_WIRE_LOCK_SHARED;
		c->try = flags & LITE_WIRE_LOCK_TRY;
		lite_lock_claim_move(c, LITE_CLAIM_QUEUED);
		l->seen = le64_to_cpu(w->value);
		lite_lock_claim_trace(c, LITE_TRACE_LOCK_QUEUE, c->shared);
	}
	lite_lock_go_on(l);
	return 0;
}

static int lite_serve_lock_wait(void *priv, struct lite_conn *conn, u16 call, const void *req,
				void *reply)
{
	struct lite_locks *locks = priv;
	struct lite_claim_name name;
	int err;

	err = lite_lock_claim_named(locks, conn, req, &name);
	/* The end of a session sweeps its claims only if it is published here, too. */
	if (!err && conn)
		err = lite_cluster_await_session(locks->cl, conn);
	if (err)
		return err;
	mutex_lock(&locks->home_lock);
	/* Once the session is dead, the taker may have ended the claim in a later one. */
	err = conn && lite_conn_is_dead(conn) ? -EHOSTDOWN :
						lite_lock_enter(locks, &name, req);
	mutex_unlock(&locks->home_lock);
	return err;
}

/* Keep the RELEASE of claim @c (NULL: unknown), which may be in the word. Return: 0 or -ENOMEM. */
static int lite_lock_keep_early(struct lite_lock *l, struct lite_lock_claim *c,
				const struct lite_claim_name *name, const struct lite_wire_lock *w)
{
	u32 uid = lite_lock_uid(l->locks, name, w);
	u32 end = le32_to_cpu(w->arg);
	bool known = c;

	if (!known)
		c = lite_lock_claim_admit(l, name, uid);
	if (IS_ERR(c))
		return -ENOMEM;
	lite_lock_claim_move(c, LITE_CLAIM_EARLY);
	c->status = end;
	if (known) {
		lite_lock_claim_trace(c, LITE_TRACE_LOCK_END, end);
		lite_lock_go_on(l);
	}
	return 0;
}

static int lite_serve_lock_release(void *priv, struct lite_conn *conn, u16 call, const void *req,
				   void *reply)
{
	const struct lite_wire_lock *w = req;
	struct lite_locks *locks = priv;
	struct lite_claim_name name;
	struct lite_lock_claim *c;
	struct lite_lock *l, *b;
	bool early;
	int err;

	err = lite_lock_claim_named(locks, conn, w, &name);
	if (err)
		return err;
	mutex_lock(&locks->home_lock);
	l = lite_lock_find(locks, w, false);
	b = lite_lock_find(locks, w, true);
	c = lite_lock_claim_find(l, &name) ?: lite_lock_claim_find(b, &name);
	/* During a takeover even a queued claim may be in the word, by a swap before it asked. */
	early = l && (l->settling || l->maybe);
	if (c)
		early = c->state == LITE_CLAIM_EARLY ||
			(early && c->lock == l && c->state == LITE_CLAIM_QUEUED);
	if (early) {
		err = lite_lock_keep_early(l, c, &name, w);
	} else if (!c) {
		err = lite_lock_exists(locks, w) ?: -ENOLCK;
	} else if (c->lock == b && c->state == LITE_CLAIM_OWNER) {
		err = -EALREADY;
	} else {
		l = c->lock;
		lite_lock_claim_end(c, le32_to_cpu(w->arg));
		lite_lock_go_on(l);
	}
	mutex_unlock(&locks->home_lock);
	return err;
}

/*
 * Call @step for all locks or, if @id is not 0, those of an LMR. @step may remove the lock; if it
 * returns true, the lock is still there, and @step is called for it again. Drops home_lock now and
 * then: locks that are entered meanwhile may be missed.
 */
static void lite_locks_walk(struct lite_locks *locks, u64 id,
			    bool (*step)(struct lite_lock *l, u64 arg), u64 arg)
{
	struct lite_lock_key key = { .id = id };
	struct lite_lock *l, *next;
	bool again;
	int n;

	do {
		mutex_lock(&locks->home_lock);
		next = lite_lock_tree_find(&key, &locks->home) ?:
		       lite_lock_tree_after(&key, &locks->home);
		again = false;
		for (n = 0; next && (!id || next->key.id == id) && n < LITE_LOCK_WALK && !again;
		     n++) {
			l = next;
			next = rb_entry_safe(rb_next(&l->node), struct lite_lock, node);
			again = step(l, arg);
			if (again)
				next = l;
		}
		if (next)
			key = next->key;
		mutex_unlock(&locks->home_lock);
		cond_resched();
	} while ((again || n == LITE_LOCK_WALK) && next);
}

/*
 * End claims of dead nodes: look at some claims at a time, behind l->at. Meanwhile
 * lite_lock_serve_some() grants dead nodes nothing. If a node dies after its claims were looked at,
 * the sweep runs again. Claims of a living node are skipped together, except at barriers:
 * participants of a complete round are told again, as their node may have been down.
 */
static bool lite_lock_sweep(struct lite_lock *l, u64 arg)
{
	struct lite_lock_claim *c;
	int n = 0;

	while ((c = lite_lock_claim_after(l, &l->at))) {
		/* This claim stays, and so does the lock. */
		if (n++ == LITE_LOCK_WALK)
			return true;
		l->at = c->name;
		if (lite_lock_claim_is_dead(c)) {
			if (c->state == LITE_CLAIM_EARLY)
				continue;
			l->swept = true;
			c->swept = true;
			lite_lock_claim_end(c, LITE_LOCK_DEAD);
		} else if (!l->n) {
			l->at.ticket = U32_MAX;
		} else if (c->state == LITE_CLAIM_OWNER &&
			   lite_cluster_is_live(l->locks->cl, c->name.node)) {
			lite_lock_claim_tell(c, c->status);
		}
	}
	l->at = (struct lite_claim_name){};
	if (l->swept) {
		l->swept = false;
		lite_lock_go_on(l);
	}
	return false;
}

static void lite_locks_sweep(struct work_struct *work)
{
	struct lite_locks *locks = container_of(work, struct lite_locks, sweep);

	lite_locks_walk(locks, 0, lite_lock_sweep, 0);
}

/*
 * Forget a lock and all its claims; no claims are entered any more. If claims that are left for the
 * next call are granted meanwhile, their takers find that the word is gone. An owner that does not
 * know it yet is told @err instead: otherwise, if the LMR grows again, a late GRANT may give it the
 * lock while another claim has the new word. (A GRANT that is being sent still may.) Participants
 * of a complete round of a barrier are not told. Return: true: claims are left.
 */
static bool lite_lock_drop(struct lite_lock *l, int err)
{
	u32 left = lite_lock_end_some(&l->queue, err, LITE_LOCK_WALK);

	left = lite_lock_end_some(&l->owners, l->n ? 0 : err, left);
	left = lite_lock_end_some(&l->early, 0, left);
	if (left)
		lite_lock_remove(l);
	return !left;
}

static bool lite_lock_cut(struct lite_lock *l, u64 length)
{
	return lite_atomic_check(l->word.offset, sizeof(u64), length) &&
	       lite_lock_drop(l, length ? -ERANGE : -EIDRM);
}

struct lite_locks_cut {
	struct work_struct work;
	struct lite_locks *locks;
	u64 id;
	u64 length;
};

static void lite_locks_cut_work(struct work_struct *work)
{
	const struct lite_locks_cut *cut = container_of(work, struct lite_locks_cut, work);

	lite_locks_walk(cut->locks, cut->id, lite_lock_cut, cut->length);
}

/* A local LMR has become shorter, or was freed: @length is 0. May sleep. */
void lite_locks_lmr_cut(struct lite_locks *locks, u64 id, u64 length)
{
	struct lite_locks_cut cut = { .locks = locks, .id = id, .length = length };

	if (current->flags & PF_KTHREAD) {
		lite_locks_cut_work(&cut.work);
		return;
	}
	/* In a worker: a user's thread may get no processor for long. */
	INIT_WORK_ONSTACK(&cut.work, lite_locks_cut_work);
	queue_work(locks->tells.wq, &cut.work);
	flush_work(&cut.work);
	destroy_work_on_stack(&cut.work);
}

void lite_lock_home_init(struct lite_locks *locks)
{
	struct lite_kcalls *kcalls = locks->cl->kcalls;

	mutex_init(&locks->home_lock);
	locks->home = RB_ROOT;
	INIT_WORK(&locks->sweep, lite_locks_sweep);
	lite_kcall_handle(kcalls, LITE_CALL_LOCK_WAIT, lite_serve_lock_wait, locks);
	lite_kcall_handle(kcalls, LITE_CALL_LOCK_RELEASE, lite_serve_lock_release, locks);
}

/* Forget all locks; @locks is closing. May sleep. */
void lite_lock_home_shut(struct lite_locks *locks)
{
	struct rb_node *node;

	mutex_lock(&locks->home_lock);
	while ((node = rb_first(&locks->home))) {
		lite_lock_drop(rb_entry(node, struct lite_lock, node), -EIDRM);
		cond_resched();
	}
	mutex_unlock(&locks->home_lock);
	/* Jobs may still refer to locks; a queued retry runs soon. */
	wait_var_event(&locks->objects, !atomic_read(&locks->objects));
}
