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

/*
 * A node that is alive has answered with something else than yes or no, or has no
 * session at the moment; if it still waits it asks again as soon as it has one.
 */
#define LITE_TELL_PERIOD (HZ / 4)
/* While others wait an owner is asked so often whether it is one. */
#define LITE_PROBE_PERIOD (2 * HZ)

static void lite_claim_work(struct work_struct *work);

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

static void lite_claim_release(struct kref *ref)
{
	struct lite_claim *c = container_of(ref, struct lite_claim, ref);

	lite_stat_dec(c->lock->locks->stats, LITE_STAT_LOCK_CLAIMS);
	lite_lock_put(c->lock);
	kfree(c);
}

/**
 * lite_claim_put - give back a reference to a claim
 * @c: claim
 *
 * Context: any process.
 */
void lite_claim_put(struct lite_claim *c)
{
	kref_put(&c->ref, lite_claim_release);
}

static unsigned long lite_lock_key(u64 id, u64 offset)
{
	return id << 20 ^ offset;
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
	struct lite_lock *l;

	lockdep_assert_held(&locks->home_lock);
	hash_for_each_possible(locks->home, l, hash, lite_lock_key(id, offset)) {
		if (l->word.id == id && l->word.offset == offset &&
		    !!l->n == barrier)
			return l;
	}
	return NULL;
}

/**
 * lite_lock_make - a lock that nobody waits for yet
 * @locks: node's; home_lock is held
 * @id: of the LMR
 * @offset: of the word
 *
 * Context: may sleep.
 * Return: it; the table has the reference; or NULL. lite_lock_go_on() is to
 * follow.
 */
struct lite_lock *lite_lock_make(struct lite_locks *locks, u64 id, u64 offset)
{
	struct lite_lock *l = kzalloc(sizeof(*l), GFP_KERNEL);

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
	INIT_LIST_HEAD(&l->early);
	INIT_DELAYED_WORK(&l->work, lite_lock_work);
	hash_add(locks->home, &l->hash, lite_lock_key(id, offset));
	locks->n_home++;
	return l;
}

/**
 * lite_lock_early_done - claims that were given back early are not asked for
 * any more
 * @l: lock; home_lock is held
 */
void lite_lock_early_done(struct lite_lock *l)
{
	struct lite_claim *c, *next;

	lockdep_assert_held(&l->locks->home_lock);
	list_for_each_entry_safe(c, next, &l->early, list) {
		list_del_init(&c->list);
		lite_claim_put(c);
	}
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
	hash_del(&l->hash);
	l->locks->n_home--;
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

/**
 * lite_claim_new - a claim in no list
 * @l: lock
 * @node: whose
 * @incarnation: in which life
 * @ticket: its number there
 * @gfp: of its memory
 *
 * Return: it, with a reference for a list, or NULL.
 */
struct lite_claim *lite_claim_new(struct lite_lock *l, u32 node,
				  u64 incarnation, u32 ticket, gfp_t gfp)
{
	struct lite_claim *c = kzalloc(sizeof(*c), gfp);

	if (!c)
		return NULL;
	kref_init(&c->ref);
	kref_get(&l->ref);
	c->lock = l;
	c->node = node;
	c->incarnation = incarnation;
	c->ticket = ticket;
	INIT_LIST_HEAD(&c->list);
	INIT_DELAYED_WORK(&c->work, lite_claim_work);
	lite_stat_inc(l->locks->stats, LITE_STAT_LOCK_CLAIMS);
	return c;
}

/**
 * lite_claim_in - a claim in a list
 * @list: of a lock; home_lock is held
 * @node: whose
 * @incarnation: in which life
 * @ticket: its number there
 *
 * Return: the claim, or NULL.
 */
struct lite_claim *lite_claim_in(struct list_head *list, u32 node,
				 u64 incarnation, u32 ticket)
{
	struct lite_claim *c;

	list_for_each_entry(c, list, list) {
		if (c->node == node && c->incarnation == incarnation &&
		    c->ticket == ticket)
			return c;
	}
	return NULL;
}

/**
 * lite_claim_find - a claim on a lock
 * @l: lock; home_lock is held
 * @node: whose
 * @incarnation: in which life
 * @ticket: its number there
 *
 * Return: the claim, or NULL.
 */
struct lite_claim *lite_claim_find(struct lite_lock *l, u32 node,
				   u64 incarnation, u32 ticket)
{
	lockdep_assert_held(&l->locks->home_lock);
	return lite_claim_in(&l->owners, node, incarnation, ticket) ?:
	       lite_claim_in(&l->queue, node, incarnation, ticket);
}

/**
 * lite_claim_trace - something has happened to a claim
 * @c: claim
 * @what: LITE_TRACE_LOCK_*
 * @status: errno, or how it ends
 */
void lite_claim_trace(const struct lite_claim *c, int what, int status)
{
	trace_lite_lock(what, c->lock->word.id, c->lock->word.offset, c->node,
			c->ticket, status);
}

/* ---- telling ------------------------------------------------------------- */

/**
 * lite_claim_tell - have its node told what has become of a claim
 * @c: claim; home_lock is held
 * @status: 0, -EOWNERDEAD: it has the lock; or why it will not
 */
void lite_claim_tell(struct lite_claim *c, int status)
{
	struct lite_locks *locks = c->lock->locks;

	lockdep_assert_held(&locks->home_lock);
	WRITE_ONCE(c->status, status);
	kref_get(&c->ref);
	if (mod_delayed_work(locks->tell_wq, &c->work, 0))
		lite_claim_put(c);
}

/* The session to tell it in; NULL: there is none, or it is this node. */
static struct lite_conn *lite_claim_conn(const struct lite_claim *c)
{
	struct lite_peer *peer = lite_peer_find(c->lock->locks->cl, c->node);
	struct lite_conn *conn;

	if (!peer)
		return NULL;
	conn = lite_peer_conn_get(peer);
	lite_peer_put(peer);
	return conn;
}

static int lite_claim_call(struct lite_claim *c, struct lite_conn *conn,
			   int status)
{
	struct lite_lock *l = c->lock;
	struct lite_cluster *cl = l->locks->cl;
	struct lite_wire_lock req = {
		.id = cpu_to_le64(l->word.id),
		.offset = cpu_to_le64(l->word.offset),
		.incarnation = cpu_to_le64(c->incarnation),
		.ticket = cpu_to_le32(c->ticket),
		.arg = cpu_to_le32(-status),
	};
	struct lite_call_desc d = {
		.call = LITE_CALL_LOCK_GRANT,
		.req = &req,
		.len = sizeof(req),
	};

	if (conn)
		return lite_rpc_call(conn, &d);
	if (c->node != lite_cluster_id(cl))
		return -EHOSTDOWN;
	return lite_rpc_call_local(cl->rpc, &d);
}

/* Is there nobody to be told? */
static bool lite_claim_is_dead(const struct lite_claim *c)
{
	struct lite_locks *locks = c->lock->locks;

	lockdep_assert_held(&locks->home_lock);
	return c->swept ||
	       lite_life_has_ended(locks, c->node, c->incarnation);
}

static void lite_claim_work(struct work_struct *work)
{
	struct lite_claim *c = container_of(to_delayed_work(work),
					    struct lite_claim, work);
	struct lite_locks *locks = c->lock->locks;
	struct lite_conn *conn;
	int err, status;
	bool dead;

	/*
	 * The session first: who is swept after that does not hear of it in
	 * this one, and in the next one it is not said any more. There he may
	 * have asked again, under the same name, and others have the lock.
	 */
	conn = lite_claim_conn(c);
	mutex_lock(&locks->home_lock);
	dead = lite_claim_is_dead(c);
	status = c->status;
	mutex_unlock(&locks->home_lock);
	err = dead ? -EHOSTDOWN : lite_claim_call(c, conn, status);
	if (conn)
		lite_conn_put(conn);

	mutex_lock(&locks->home_lock);
	/* Looked at anew: once he is back, and has asked again, he counts. */
	dead = lite_claim_is_dead(c);
	if (!err && c->lock->n && c->state == LITE_CLAIM_OWNER) {
		/* He has gone on. */
		lite_claim_end(c, LITE_LOCK_CLEAN);
		lite_lock_go_on(c->lock);
	} else if (err && err != -ENOENT && !dead && !locks->closing) {
		/* It may have heard us, or not: say it again. */
		if (queue_delayed_work(locks->tell_wq, &c->work,
				       LITE_TELL_PERIOD))
			kref_get(&c->ref);
	} else if (err && !dead && c->found && c->state == LITE_CLAIM_OWNER) {
		/* What was in the word before him he knows, and is asked. */
		c->probe = true;
		lite_lock_queue_work(c->lock, 0);
	} else if (err && c->state == LITE_CLAIM_OWNER) {
		/* The lock is for the next one. */
		lite_claim_trace(c, LITE_TRACE_LOCK_REFUSED, err);
		c->swept = dead;
		lite_claim_end(c, dead ? LITE_LOCK_DEAD : LITE_LOCK_UNUSED);
		lite_lock_go_on(c->lock);
	}
	mutex_unlock(&locks->home_lock);
	lite_claim_put(c);
}

/* ---- who is next --------------------------------------------------------- */

/* It is out of owners and queue; who asked is told, if @status is not 0. */
static void lite_claim_over(struct lite_claim *c, int status)
{
	c->state = LITE_CLAIM_OVER;
	list_del_init(&c->list);
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

	c->state = LITE_CLAIM_OWNER;
	list_move_tail(&c->list, &l->owners);
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
	u32 n = 0;

	list_for_each_entry(c, &l->queue, list)
		n++;
	if (n >= l->n) {
		n = l->n;
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
		list_for_each_entry_safe(c, next, &l->queue, list) {
			if (c->try)
				lite_claim_over(c, -EBUSY);
		}
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
		c->state = LITE_CLAIM_OWNER;
		c->found = true;
		list_move_tail(&c->list, &l->owners);
		lite_claim_trace(c, LITE_TRACE_LOCK_GRANT, 0);
		lite_claim_tell(c, 0);
		return;
	}
	c = lite_claim_new(l, node, incarnation, ticket,
			   GFP_KERNEL | __GFP_NOFAIL);
	c->state = LITE_CLAIM_OWNER;
	c->probe = true;
	/* What he has asked before may come yet, and have him told. */
	c->found = true;
	list_add_tail(&c->list, &l->owners);
	lite_claim_trace(c, LITE_TRACE_LOCK_FOUND, 0);
	lite_lock_queue_work(l, 0);
}

/**
 * lite_lock_was_early - has the holder in a word given it back already?
 * @l: lock; home_lock is held
 * @word: HELD; it was in the word when that became ours
 *
 * Return: true; then what he left of the lock is noted.
 */
bool lite_lock_was_early(struct lite_lock *l, u64 word)
{
	struct lite_claim *c;

	lockdep_assert_held(&l->locks->home_lock);
	list_for_each_entry(c, &l->early, list) {
		if (c->node != lite_lockword_node(word) ||
		    c->ticket != lite_lockword_ticket(word) ||
		    !lite_lockword_is_of(word, c->incarnation))
			continue;
		l->died |= c->status == LITE_LOCK_DEAD;
		l->ended |= c->status == LITE_LOCK_BROKEN;
		return true;
	}
	return false;
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
	struct hlist_node *next;
	struct lite_lock *l;
	bool found;
	int bucket;

	mutex_lock(&locks->home_lock);
	hash_for_each_safe(locks->home, bucket, next, l, hash) {
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
	struct hlist_node *next;
	struct lite_lock *l;
	int bucket;

	mutex_lock(&locks->home_lock);
	if (!locks->n_home)
		goto out;
	hash_for_each_safe(locks->home, bucket, next, l, hash) {
		if (l->word.id == id &&
		    lite_atomic_check(l->word.offset, sizeof(u64), length))
			lite_lock_drop(l, length ? -ERANGE : -EIDRM);
	}
out:
	mutex_unlock(&locks->home_lock);
}

/* ---- life ---------------------------------------------------------------- */

void lite_lock_home_init(struct lite_locks *locks)
{
	mutex_init(&locks->home_lock);
	hash_init(locks->home);
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
	struct hlist_node *next;
	struct lite_lock *l;
	int bucket;

	mutex_lock(&locks->home_lock);
	hash_for_each_safe(locks->home, bucket, next, l, hash)
		lite_lock_drop(l, -EIDRM);
	mutex_unlock(&locks->home_lock);
	/* Items that work for them; those that wait to try again do not long. */
	wait_var_event(&locks->objects, !atomic_read(&locks->objects));
}
