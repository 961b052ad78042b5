// SPDX-License-Identifier: GPL-2.0
/*
 * Claims on locks at the home of their LMR: finding, charging and telling them.
 *
 * The name of a claim is node, ticket and incarnation of the node. The claims
 * of a lock are in a tree by name, and in the list of owners or, in order of
 * arrival, in the queue. A claim that a node has asked for is charged to its
 * user there; one that was found in a word, at most one per lock, is not.
 *
 * Concurrency: see lock_home.c. The work items that tell claims are here.
 */
#include <linux/slab.h>

#include "lock.h"
#include "trace.h"

/*
 * Delay before a GRANT is repeated that was answered by neither yes nor no, or
 * found no session. A taker that still waits asks again in its next session.
 */
#define LITE_TELL_PERIOD (HZ / 4)

static void lite_lock_claim_work(struct work_struct *work);

/* ---- objects ------------------------------------------------------------- */

static void lite_lock_claim_release(struct kref *ref)
{
	struct lite_lock_claim *c =
		container_of(ref, struct lite_lock_claim, ref);

	struct lite_locks *locks = c->lock->locks;

	if (c->counted)
		lite_pool_give(&lite_lock_pools(locks)[LITE_POOL_LOCK_CLAIMS],
			       c->uid, 1);
	lite_stat_dec(locks->stats, LITE_STAT_LOCK_CLAIMS);
	lite_lock_put(c->lock);
	kfree(c);
}

/* Drop a reference to a claim. Context: process. */
void lite_lock_claim_put(struct lite_lock_claim *c)
{
	kref_put(&c->ref, lite_lock_claim_release);
}

/*
 * Make a claim in no list, not charged, with the reference for a tree. Context:
 * may sleep. Return: the claim, or NULL.
 */
struct lite_lock_claim *lite_lock_claim_new(struct lite_lock *l, u32 node,
					    u64 incarnation, u32 ticket,
					    gfp_t gfp)
{
	struct lite_lock_claim *c = kzalloc(sizeof(*c), gfp);

	if (!c)
		return NULL;
	kref_init(&c->ref);
	kref_get(&l->ref);
	c->lock = l;
	c->node = node;
	c->incarnation = incarnation;
	c->ticket = ticket;
	RB_CLEAR_NODE(&c->name);
	INIT_LIST_HEAD(&c->list);
	INIT_LIST_HEAD(&c->tried);
	INIT_DELAYED_WORK(&c->work, lite_lock_claim_work);
	lite_stat_inc(l->locks->stats, LITE_STAT_LOCK_CLAIMS);
	return c;
}

/*
 * Make a claim that @node asks for, and charge it. Context: may sleep.
 *
 * Return: the claim, with the reference for a tree; or ERR_PTR: -EDQUOT: the
 * user has its share of the pool; -ENOMEM.
 */
struct lite_lock_claim *lite_lock_claim_admit(struct lite_lock *l, u32 node,
					      const struct lite_wire_lock *w,
					      gfp_t gfp)
{
	struct lite_pool *pool =
		&lite_lock_pools(l->locks)[LITE_POOL_LOCK_CLAIMS];
	u32 uid = le32_to_cpu(w->uid);
	struct lite_lock_claim *c;
	int err;

	lockdep_assert_held(&l->locks->home_lock);
	err = lite_lock_pool_take(pool, uid);
	if (err)
		return ERR_PTR(err);
	c = lite_lock_claim_new(l, node, le64_to_cpu(w->incarnation),
				le32_to_cpu(w->ticket), gfp);
	if (!c) {
		lite_pool_give(pool, uid, 1);
		return ERR_PTR(-ENOMEM);
	}
	c->counted = true;
	c->uid = uid;
	return c;
}

/* ---- by name ------------------------------------------------------------- */

struct lite_lock_claim_name {
	u32 node;
	u32 ticket;
	u64 incarnation;
};

/* Also compares with a word, which has only a hash of the incarnation. */
static int lite_lock_claim_cmp_word(const void *key, const struct rb_node *node)
{
	const struct lite_lock_claim *c =
		rb_entry(node, struct lite_lock_claim, name);
	const struct lite_lock_claim_name *name = key;

	return lite_order(name->node, c->node) ?:
	       lite_order(name->ticket, c->ticket);
}

static int lite_lock_claim_cmp(const void *key, const struct rb_node *node)
{
	const struct lite_lock_claim *c =
		rb_entry(node, struct lite_lock_claim, name);
	const struct lite_lock_claim_name *name = key;

	return lite_lock_claim_cmp_word(key, node) ?:
	       lite_order(name->incarnation, c->incarnation);
}

static bool lite_lock_claim_less(struct rb_node *a, const struct rb_node *b)
{
	const struct lite_lock_claim *c =
		rb_entry(a, struct lite_lock_claim, name);
	const struct lite_lock_claim_name name = {
		.node = c->node,
		.ticket = c->ticket,
		.incarnation = c->incarnation,
	};

	return lite_lock_claim_cmp(&name, b) < 0;
}

static struct lite_lock_claim *lite_lock_claim_in(const struct rb_root *tree,
						  u32 node, u64 incarnation,
						  u32 ticket)
{
	const struct lite_lock_claim_name name = {
		.node = node,
		.ticket = ticket,
		.incarnation = incarnation,
	};

	return rb_entry_safe(rb_find(&name, tree, lite_lock_claim_cmp),
			     struct lite_lock_claim, name);
}

/* Find a claim, an owner's or a queued one, by name, or NULL. */
struct lite_lock_claim *lite_lock_claim_find(const struct lite_lock *l,
					     u32 node, u64 incarnation,
					     u32 ticket)
{
	lockdep_assert_held(&l->locks->home_lock);
	return lite_lock_claim_in(&l->claims, node, incarnation, ticket);
}

/* ---- owners and queue ---------------------------------------------------- */

static void lite_lock_claim_unlist(struct lite_lock_claim *c)
{
	if (c->state == LITE_CLAIM_QUEUED && !list_empty(&c->list))
		c->lock->n_queued--;
	list_del_init(&c->list);
	list_del_init(&c->tried);
}

/* Append a claim, which is in no list, to the queue. */
void lite_lock_claim_queue(struct lite_lock_claim *c)
{
	struct lite_lock *l = c->lock;

	lockdep_assert_held(&l->locks->home_lock);
	rb_add(&c->name, &l->claims, lite_lock_claim_less);
	list_add_tail(&c->list, &l->queue);
	l->n_queued++;
	if (c->try)
		list_add_tail(&c->tried, &l->tries);
}

/* Make a claim, which is in the queue or in no list, an owner. */
void lite_lock_claim_have(struct lite_lock_claim *c)
{
	struct lite_lock *l = c->lock;

	lockdep_assert_held(&l->locks->home_lock);
	lite_lock_claim_unlist(c);
	if (RB_EMPTY_NODE(&c->name))
		rb_add(&c->name, &l->claims, lite_lock_claim_less);
	c->state = LITE_CLAIM_OWNER;
	list_add_tail(&c->list, &l->owners);
}

/* Take a claim out of owners and queue. The caller gets its reference. */
void lite_lock_claim_out(struct lite_lock_claim *c)
{
	lockdep_assert_held(&c->lock->locks->home_lock);
	lite_lock_claim_unlist(c);
	rb_erase(&c->name, &c->lock->claims);
	RB_CLEAR_NODE(&c->name);
	c->state = LITE_CLAIM_OVER;
}

/* ---- released early ------------------------------------------------------ */

/*
 * Record the RELEASE of a claim that may be in the word, queued or not. A
 * queued claim of that name leaves the queue. Context: may sleep.
 *
 * Return: 0 or -ENOMEM: try again later.
 */
int lite_lock_keep_early(struct lite_lock *l, u32 node,
			 const struct lite_wire_lock *w)
{
	u64 incarnation = le64_to_cpu(w->incarnation);
	u32 ticket = le32_to_cpu(w->ticket);
	struct lite_lock_claim *early, *c;

	c = lite_lock_claim_find(l, node, incarnation, ticket);
	early = lite_lock_claim_in(&l->early, node, incarnation, ticket);
	if (c) {
		lite_lock_claim_trace(c, LITE_TRACE_LOCK_END,
				      le32_to_cpu(w->arg));
		lite_lock_claim_out(c);
	}
	if (c && early) {
		lite_lock_claim_put(c);
	} else if (!early) {
		early = c ?: lite_lock_claim_admit(l, node, w, GFP_KERNEL);
		if (IS_ERR(early))
			return -ENOMEM;
		early->state = LITE_CLAIM_OVER;
		rb_add(&early->name, &l->early, lite_lock_claim_less);
	}
	early->status = le32_to_cpu(w->arg);
	return 0;
}

/* Forget the claims that were released early. */
void lite_lock_early_done(struct lite_lock *l)
{
	struct rb_node *node;

	lockdep_assert_held(&l->locks->home_lock);
	while ((node = rb_first(&l->early))) {
		rb_erase(node, &l->early);
		lite_lock_claim_put(
			rb_entry(node, struct lite_lock_claim, name));
	}
}

/*
 * Has the holder in a word that became MANAGED released it already? Then
 * @l->died or @l->ended is set as its RELEASE said.
 */
bool lite_lock_was_early(struct lite_lock *l, u64 word)
{
	const struct lite_lock_claim_name name = {
		.node = lite_lockword_node(word),
		.ticket = lite_lockword_ticket(word),
	};
	const struct lite_lock_claim *c;
	struct rb_node *node;

	lockdep_assert_held(&l->locks->home_lock);
	rb_for_each(node, &name, &l->early, lite_lock_claim_cmp_word) {
		c = rb_entry(node, struct lite_lock_claim, name);
		if (!lite_lockword_is_of(word, c->incarnation))
			continue;
		l->died |= c->status == LITE_LOCK_DEAD;
		l->ended |= c->status == LITE_LOCK_BROKEN;
		return true;
	}
	return false;
}

void lite_lock_claim_trace(const struct lite_lock_claim *c, int what,
			   int status)
{
	trace_lite_lock(what, c->lock->word.id, c->lock->word.offset, c->node,
			c->ticket, status);
}

/* ---- telling ------------------------------------------------------------- */

/**
 * lite_lock_claim_tell - have work tell a claim's node what became of it
 * @c: claim; home_lock is held
 * @status: 0 or -EOWNERDEAD: it has the lock; else why it never will
 */
void lite_lock_claim_tell(struct lite_lock_claim *c, int status)
{
	struct lite_locks *locks = c->lock->locks;

	lockdep_assert_held(&locks->home_lock);
	WRITE_ONCE(c->status, status);
	kref_get(&c->ref);
	if (mod_delayed_work(locks->tell_wq, &c->work, 0))
		lite_lock_claim_put(c);
}

/* The session for the GRANT; NULL: there is none, or it is this node. */
static struct lite_conn *lite_lock_claim_conn(const struct lite_lock_claim *c)
{
	struct lite_peer *peer = lite_peer_find(c->lock->locks->cl, c->node);
	struct lite_conn *conn;

	if (!peer)
		return NULL;
	conn = lite_peer_conn_get(peer);
	lite_peer_put(peer);
	return conn;
}

static int lite_lock_claim_call(struct lite_lock_claim *c,
				struct lite_conn *conn, int status)
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
		return lite_kcall(conn, &d);
	if (c->node != lite_cluster_id(cl))
		return -EHOSTDOWN;
	return lite_kcall_local(cl->rpc, &d);
}

/* Is the claim's node dead, or was it when the claim was swept? */
static bool lite_lock_claim_is_dead(const struct lite_lock_claim *c)
{
	struct lite_locks *locks = c->lock->locks;

	lockdep_assert_held(&locks->home_lock);
	return c->swept ||
	       lite_life_has_ended(locks, c->node, c->incarnation);
}

static void lite_lock_claim_work(struct work_struct *work)
{
	struct lite_lock_claim *c = container_of(to_delayed_work(work),
					    struct lite_lock_claim, work);
	struct lite_locks *locks = c->lock->locks;
	struct lite_conn *conn;
	int err, status;
	bool dead;

	/*
	 * Get the session before checking for a sweep: a claim swept later is
	 * told in a dead session, where the taker refuses the GRANT, and in no
	 * later one. There the taker may have queued again under the same name
	 * while another claim owns the lock.
	 */
	conn = lite_lock_claim_conn(c);
	mutex_lock(&locks->home_lock);
	dead = lite_lock_claim_is_dead(c);
	status = c->status;
	mutex_unlock(&locks->home_lock);
	err = dead ? -EHOSTDOWN : lite_lock_claim_call(c, conn, status);
	if (conn)
		lite_conn_put(conn);

	mutex_lock(&locks->home_lock);
	/* Check again: a node that has come back counts as alive. */
	dead = lite_lock_claim_is_dead(c);
	if (!err && c->lock->n && c->state == LITE_CLAIM_OWNER) {
		/* The participant has gone on. */
		lite_lock_claim_end(c, LITE_LOCK_CLEAN);
		lite_lock_go_on(c->lock);
	} else if (err && err != -ENOENT && !dead && !locks->closing) {
		/* It is unknown whether the taker got the GRANT: repeat it. */
		if (queue_delayed_work(locks->tell_wq, &c->work,
				       LITE_TELL_PERIOD))
			kref_get(&c->ref);
	} else if (err && !dead && c->found && c->state == LITE_CLAIM_OWNER) {
		/* Only its node knows whether it replaced DIED: ask it. */
		c->probe = true;
		lite_lock_queue_work(c->lock, 0);
	} else if (err && c->state == LITE_CLAIM_OWNER) {
		/* The taker does not want it, or is dead: go on to the next. */
		lite_lock_claim_trace(c, LITE_TRACE_LOCK_REFUSED, err);
		c->swept = dead;
		lite_lock_claim_end(c,
				    dead ? LITE_LOCK_DEAD : LITE_LOCK_UNUSED);
		lite_lock_go_on(c->lock);
	}
	mutex_unlock(&locks->home_lock);
	lite_lock_claim_put(c);
}
