// SPDX-License-Identifier: GPL-2.0
/*
 * Claims on locks at the home of their LMR: finding, charging, ending and telling them.
 *
 * The claims of a lock are in a tree by name, and in the list of their state. A claim that a node
 * has asked for is charged to its user; one that was found in a word, at most one per lock, is not.
 *
 * Concurrency: see lock_home.c. The work items that tell claims are here.
 */
#include <linux/slab.h>

#include "lock.h"
#include "trace.h"

/* Delay before a GRANT is repeated. A taker that still waits also asks in its next session. */
#define LITE_TELL_PERIOD (HZ / 4)

static void lite_lock_claim_job(struct work_struct *work);
static void lite_lock_claim_due(struct work_struct *work);

/* Drop a reference to a claim. Context: process. */
void lite_lock_claim_put(struct lite_lock_claim *c)
{
	struct lite_locks *locks = c->lock->locks;

	if (!refcount_dec_and_test(&c->ref))
		return;
	if (c->counted)
		lite_pool_give(lite_lock_pool(locks, LITE_POOL_LOCK_CLAIMS), c->uid, 1);
	lite_crew_job_exit(&locks->tells, &c->job);
	lite_stat_dec(locks->stats, LITE_STAT_LOCK_CLAIMS);
	lite_lock_put(c->lock);
	kfree(c);
}

LITE_TREE(lite_lock_claim_tree, struct lite_lock_claim, node, name,
	  memcmp(key, has, sizeof(struct lite_claim_name)))

/* Find a claim that is not OVER, or NULL; @l may be NULL. */
struct lite_lock_claim *lite_lock_claim_find(const struct lite_lock *l,
					     const struct lite_claim_name *name)
{
	if (!l)
		return NULL;
	lockdep_assert_held(&l->locks->home_lock);
	return lite_lock_claim_tree_find(name, &l->claims);
}

/* The claim with the next name after @name, in the order of the tree, or NULL. */
struct lite_lock_claim *lite_lock_claim_after(const struct lite_lock *l,
					      const struct lite_claim_name *name)
{
	lockdep_assert_held(&l->locks->home_lock);
	return lite_lock_claim_tree_after(name, &l->claims);
}

/*
 * Make a claim of a user, not counted, in zeroed memory @c (NULL: none), with the reference for the
 * tree; the caller puts it into a state. Return: the claim, or NULL: @c has been freed.
 */
static struct lite_lock_claim *lite_lock_claim_new(struct lite_lock *l, struct lite_lock_claim *c,
						   const struct lite_claim_name *name, u32 uid)
{
	lockdep_assert_held(&l->locks->home_lock);
	if (!c)
		return NULL;
	if (lite_crew_job_init(&l->locks->tells, &c->job, uid, lite_lock_claim_job, GFP_ATOMIC)) {
		kfree(c);
		return NULL;
	}
	refcount_set(&c->ref, 1);
	refcount_inc(&l->ref);
	c->lock = l;
	c->name = *name;
	INIT_LIST_HEAD(&c->list);
	INIT_LIST_HEAD(&c->tried);
	INIT_DELAYED_WORK(&c->timer, lite_lock_claim_due);
	rb_add(&c->node, &l->claims, lite_lock_claim_tree_less);
	lite_stat_inc(l->locks->stats, LITE_STAT_LOCK_CLAIMS);
	return c;
}

/*
 * As lite_lock_claim_new(), for a claim found in the word. Its user is not known: telling it counts
 * for the user of l->tellers, which needs no memory. At most once in each run of the lock's job.
 */
struct lite_lock_claim *lite_lock_claim_found(struct lite_lock *l,
					      const struct lite_claim_name *name)
{
	struct lite_lock_claim *c = l->spare;

	l->spare = NULL;
	return lite_lock_claim_new(l, c, name, l->tellers->uid);
}

/*
 * As lite_lock_claim_new(), for a claim that a node asks for, counted for @uid. Return: the claim,
 * or ERR_PTR: -EDQUOT: the user has its share of the pool; -ENOMEM.
 */
struct lite_lock_claim *lite_lock_claim_admit(struct lite_lock *l,
					      const struct lite_claim_name *name, u32 uid)
{
	struct lite_pool *pool = lite_lock_pool(l->locks, LITE_POOL_LOCK_CLAIMS);
	struct lite_lock_claim *c;
	int err;

	err = lite_lock_pool_take(pool, uid, GFP_ATOMIC);
	if (err)
		return ERR_PTR(err);
	c = lite_lock_claim_new(l, kzalloc(sizeof(*c), LITE_LOCK_GFP), name, uid);
	if (!c) {
		lite_pool_give(pool, uid, 1);
		return ERR_PTR(-ENOMEM);
	}
	c->counted = true;
	c->uid = uid;
	return c;
}

/* Change the state of a claim. With OVER the caller gets the reference of the tree. */
void lite_lock_claim_move(struct lite_lock_claim *c, enum lite_lock_claim_state state)
{
	struct lite_lock *l = c->lock;

	lockdep_assert_held(&l->locks->home_lock);
	if (c->state == LITE_CLAIM_QUEUED)
		l->n_queued--;
	list_del_init(&c->list);
	list_del_init(&c->tried);
	c->state = state;
	switch (state) {
	case LITE_CLAIM_QUEUED:
		list_add_tail(&c->list, &l->queue);
		l->n_queued++;
		if (c->try)
			list_add_tail(&c->tried, &l->tries);
		break;
	case LITE_CLAIM_OWNER:
		list_add_tail(&c->list, &l->owners);
		break;
	case LITE_CLAIM_EARLY:
		list_add_tail(&c->list, &l->early);
		break;
	case LITE_CLAIM_OVER:
		rb_erase(&c->node, &l->claims);
		break;
	}
}

/* End a claim, and tell it @status unless that is 0. May free it. */
void lite_lock_claim_over(struct lite_lock_claim *c, int status)
{
	lite_lock_claim_move(c, LITE_CLAIM_OVER);
	if (status)
		lite_lock_claim_tell(c, status);
	lite_lock_claim_put(c);
}

/*
 * End a claim that is an owner or in the queue, and drop its reference. The caller calls
 * lite_lock_go_on() afterwards. home_lock is held.
 */
void lite_lock_claim_end(struct lite_lock_claim *c, enum lite_lock_end end)
{
	struct lite_lock *l = c->lock;

	/* The claim was given up before it was told of a death: tell the next one. */
	if (end == LITE_LOCK_UNUSED && c->status == -EOWNERDEAD)
		end = LITE_LOCK_DEAD;
	if (c->state == LITE_CLAIM_OWNER && !c->shared) {
		l->died |= end == LITE_LOCK_DEAD;
		l->ended |= end == LITE_LOCK_BROKEN;
	}
	lite_lock_claim_trace(c, LITE_TRACE_LOCK_END, end);
	lite_lock_claim_over(c, 0);
}

/*
 * Is the claim's node dead, or was it when the claim was swept? A node that is down loses its
 * locks, even if it returns in the same life. It does not lose its place in complete rounds of
 * barriers: not knowing that a round is complete, it would arrive again. home_lock is held.
 */
bool lite_lock_claim_is_dead(const struct lite_lock_claim *c)
{
	struct lite_cluster *cl = c->lock->locks->cl;

	if (lite_cluster_incarnation(cl, c->name.node) != c->name.incarnation)
		return true;
	if (c->lock->n && c->state == LITE_CLAIM_OWNER)
		return false;
	return c->swept || !lite_cluster_may_act(cl, c->name.node);
}

void lite_lock_claim_trace(const struct lite_lock_claim *c, int what, int status)
{
	trace_lite_lock(what, c->lock->word.id, c->lock->word.offset,
			c->name.node, c->name.ticket, status);
}

/* The reference of the timer becomes the job's. */
static void lite_lock_claim_due(struct work_struct *work)
{
	struct lite_lock_claim *c = container_of(to_delayed_work(work),
						 struct lite_lock_claim, timer);

	if (!lite_crew_queue(&c->lock->locks->tells, &c->job))
		lite_lock_claim_put(c);
}

/*
 * Have a worker tell a claim's node what became of it. @status: 0 or -EOWNERDEAD: it has the lock;
 * else why it never will. home_lock is held.
 */
void lite_lock_claim_tell(struct lite_lock_claim *c, int status)
{
	struct lite_locks *locks = c->lock->locks;

	lockdep_assert_held(&locks->home_lock);
	WRITE_ONCE(c->status, status);
	if (cancel_delayed_work(&c->timer))
		lite_lock_claim_put(c);
	refcount_inc(&c->ref);
	if (!lite_crew_queue(&locks->tells, &c->job))
		lite_lock_claim_put(c);
}

/* Send a GRANT in session @conn; NULL: there is none, or the claim is this node's. */
static int lite_lock_claim_call(struct lite_lock_claim *c, struct lite_conn *conn, int status)
{
	struct lite_cluster *cl = c->lock->locks->cl;
	struct lite_wire_lock req = lite_lock_wire(
		&c->lock->word, c->name.incarnation, c->name.ticket, -status);
	struct lite_call_desc d = {
		LITE_REQUEST(LITE_CALL_LOCK_GRANT, req),
	};

	if (conn)
		return lite_kcall(conn, &d);
	if (c->name.node != lite_cluster_id(cl))
		return -EHOSTDOWN;
	return lite_kcall_local(cl->kcalls, &d);
}

static void lite_lock_claim_job(struct work_struct *work)
{
	struct lite_lock_claim *c = container_of(work, struct lite_lock_claim, job.work);
	struct lite_locks *locks = c->lock->locks;
	struct lite_conn *conn;
	int err, status;
	bool dead;

	/*
	 * Get the session before checking whether the claim was swept. If it is swept later, the
	 * GRANT is sent in a dead session, where the taker refuses it. In a newer session the taker
	 * may have queued again under the same name while another claim owns the lock.
	 */
	conn = lite_cluster_conn_get(locks->cl, c->name.node);
	mutex_lock(&locks->home_lock);
	dead = lite_lock_claim_is_dead(c);
	status = c->status;
	mutex_unlock(&locks->home_lock);
	err = dead ? -EHOSTDOWN : lite_lock_claim_call(c, conn, status);
	lite_conn_put(conn);

	mutex_lock(&locks->home_lock);
	/* Check again: the node may have died, or come back, during the call. */
	dead = lite_lock_claim_is_dead(c);
	c->told |= !err && c->state == LITE_CLAIM_OWNER;
	if (!err && c->lock->n && c->state == LITE_CLAIM_OWNER) {
		/* The participant has gone on. */
		lite_lock_claim_end(c, LITE_LOCK_CLEAN);
		lite_lock_go_on(c->lock);
	} else if (err && err != -ENOENT && !dead && !locks->closing) {
		/* The taker may not have got the GRANT: repeat it, here or in the sweep. */
		if (lite_cluster_is_live(locks->cl, c->name.node) &&
		    queue_delayed_work(locks->tells.wq, &c->timer, LITE_TELL_PERIOD))
			refcount_inc(&c->ref);
	} else if (err && !dead && c->found && c->state == LITE_CLAIM_OWNER) {
		/* Only the claim's node knows whether its swap replaced DIED: ask. */
		c->probe = true;
		lite_lock_queue_work(c->lock, 0);
	} else if (err && c->state == LITE_CLAIM_OWNER) {
		/* The taker does not want the lock, or is dead: go on to the next. */
		lite_lock_claim_trace(c, LITE_TRACE_LOCK_REFUSED, err);
		c->swept = dead;
		lite_lock_claim_end(c, dead ? LITE_LOCK_DEAD : LITE_LOCK_UNUSED);
		lite_lock_go_on(c->lock);
	}
	mutex_unlock(&locks->home_lock);
	lite_crew_done(&locks->tells, &c->job);
	lite_lock_claim_put(c);
}
