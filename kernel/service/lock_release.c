// SPDX-License-Identifier: GPL-2.0
/*
 * Giving locks back.
 *
 * Normal operation: swap one's claim for FREE; when the word is MANAGED, because
 * somebody waits, tell the home (RELEASE), which passes the lock on.
 *
 * Recovery: what cannot be given back now is LEFT: tried again in the
 * background whenever members change, and now and then while the home is up,
 * until it is known to be over, one way or the other; so is the lock of a process
 * that has died, and what one left that gave up taking it. A RELEASE may be
 * repeated: it names a claim, not the lock.
 */
#include <linux/slab.h>

#include "../trace.h"
#include "lock.h"

/* What is left is tried so often, at least. */
#define LITE_LEFT_PERIOD HZ
/* Sessions in which a swap is tried. */
#define LITE_LOCK_BACK_TRIES 4

/*
 * The word back to what it is without us. -EINPROGRESS: the home has it.
 * @again: an earlier attempt may have done it.
 */
static int lite_hold_swap_back(struct lite_hold *h, enum lite_lock_end end,
			       bool *again)
{
	bool posted;
	int tries = 0;
	int err;
	u64 old;

	do {
		err = lite_word_cmp_swap(h->locks->mem, &h->word, h->value,
					 lite_lock_after(end), &old, &posted);
		*again |= err && posted;
	} while (err == -EHOSTDOWN && posted &&
		 ++tries < LITE_LOCK_BACK_TRIES);
	if (err || old == h->value)
		return err;
	if (lite_lockword_kind(old) == LITE_LOCKWORD_MANAGED)
		return -EINPROGRESS;
	return -ENOLCK;
}

/**
 * lite_hold_tell - have the home end a claim
 * @h: claim
 * @end: how
 * @again: set if an earlier attempt may have done it; else left as it is
 *
 * Context: may sleep; killable.
 * Return: 0; -ENOLCK: it is none; -EALREADY: all have come to the barrier;
 * -EIDRM, -ESTALE, -ERANGE; -EHOSTDOWN and others.
 */
int lite_hold_tell(struct lite_hold *h, enum lite_lock_end end, bool *again)
{
	struct lite_wire_lock req;
	struct lite_call_desc d = {
		.call = LITE_CALL_LOCK_RELEASE,
		.req = &req,
		.len = sizeof(req),
		.killable = true,
	};
	struct lite_cluster *cl = h->locks->cl;
	int tries = 0;
	int err;

	lite_lock_fill(&req, h, end);
	for (;;) {
		d.sent = false;
		err = lite_cluster_call(cl, h->word.home, &d);
		*again |= err && d.sent && err != -ENOLCK;
		if (err != -EHOSTDOWN || ++tries == LITE_LOCK_BACK_TRIES)
			break;
		err = lite_cluster_await(cl, h->word.home);
		if (err)
			break;
	}
	if (err == -ENOENT)
		err = lite_home_gone(h->locks->mem, h->word.home,
				     h->word.incarnation);
	/* It has left, with its LMRs. */
	if (err == -EHOSTUNREACH)
		err = -ESTALE;
	return err;
}

/* Has its lock gone with its home? One that is merely down may come back. */
static bool lite_hold_is_lost(struct lite_hold *h)
{
	struct lite_locks *locks = h->locks;
	struct lite_peer *peer;
	bool lost;

	if (h->word.home == lite_cluster_id(locks->cl))
		return h->word.incarnation != locks->mem->fab->self.incarnation;
	peer = lite_peer_find(locks->cl, h->word.home);
	if (!peer)
		return true;
	lost = READ_ONCE(peer->left) ||
	       READ_ONCE(peer->incarnation) != h->word.incarnation;
	lite_peer_put(peer);
	return lost;
}

/* Is there anything that could still be done? */
static bool lite_hold_is_pending(struct lite_hold *h, int err)
{
	switch (err) {
	case 0:
	case -ENOLCK:
	case -EALREADY:
	case -EIDRM:
	case -ESTALE:
	case -ERANGE:
	case -EINVAL:
	case -ENOTCONN:
	case -ENODEV:
	case -EOPNOTSUPP:
		return false;
	default:
		return !lite_hold_is_lost(h);
	}
}

/* Give it back, if that can be done now. -ENOLCK: it was not ours any more. */
static int lite_hold_release(struct lite_hold *h, enum lite_lock_end end)
{
	struct lite_locks *locks = h->locks;
	bool again = false;
	int err = 0;

	if (h->incarnation != locks->mem->fab->self.incarnation)
		err = -ENOLCK;
	else if (h->swapped && !h->managed)
		err = lite_hold_swap_back(h, end, &again);
	else
		err = -EINPROGRESS;
	/* Also when it was not in the word: the home may know of us. */
	if (err == -EINPROGRESS || (err == -ENOLCK && h->asked))
		err = lite_hold_tell(h, end, &again);
	if (err == -ENOLCK && again)
		err = 0;
	trace_lite_lock(LITE_TRACE_LOCK_BACK, h->word.id, h->word.offset,
			lite_cluster_id(locks->cl), h->ticket, err);
	return err;
}

/**
 * lite_hold_leave - have a claim given back when that is possible
 * @h: in no list; not the caller's any more
 * @end: how it ends
 *
 * Context: any process.
 */
void lite_hold_leave(struct lite_hold *h, enum lite_lock_end end)
{
	struct lite_locks *locks = h->locks;
	bool closing;

	spin_lock(&locks->lock);
	closing = locks->closing;
	if (!closing) {
		h->state = LITE_HOLD_LEFT;
		h->end = end;
		h->ctx = NULL;
		h->kicked = atomic_read(&locks->changes);
		list_add_tail(&h->list, &locks->left);
		if (h->n)
			lite_hold_add(&locks->left_barriers, h);
		queue_delayed_work(locks->wq, &h->work, 0);
	}
	spin_unlock(&locks->lock);
	/* A node that stops has left its cluster: the others know. */
	if (closing)
		lite_hold_free(h);
}

void lite_hold_left_work(struct work_struct *work)
{
	struct lite_hold *h = container_of(to_delayed_work(work),
					   struct lite_hold, work);
	struct lite_locks *locks = h->locks;
	bool pending = lite_hold_is_pending(h, lite_hold_release(h, h->end));

	spin_lock(&locks->lock);
	if (pending && !locks->closing) {
		/*
		 * Unless a change has queued it already, as the home's coming
		 * back will, should it be down.
		 */
		if (lite_cluster_is_live(locks->cl, h->word.home))
			queue_delayed_work(locks->wq, &h->work,
					   LITE_LEFT_PERIOD);
		spin_unlock(&locks->lock);
		return;
	}
	list_del(&h->list);
	if (h->n)
		rb_erase(&h->node, &locks->left_barriers);
	spin_unlock(&locks->lock);
	/* A change may have queued it just before it was out of the list. */
	cancel_delayed_work(&h->work);
	lite_hold_free(h);
	wake_up_all(&locks->left_wait);
}

/* Nobody finds it any more. */
static void lite_hold_unpublish(struct lite_hold *h)
{
	lockdep_assert_held(&h->locks->lock);
	h->state = LITE_HOLD_ENDING;
	rb_erase(&h->node, &h->ctx->locks);
	list_del_init(&h->list);
	h->ctx->n_locks--;
}

/* Take a lock from its holder; NULL: it is not his. */
static struct lite_hold *lite_hold_take_back(struct lite_locks *locks,
					     struct lite_ctx *ctx,
					     const struct lite_word *word,
					     u64 owner)
{
	struct lite_hold *h;

	spin_lock(&locks->lock);
	h = lite_hold_find_locked(locks, ctx, word, owner);
	if (h)
		lite_hold_unpublish(h);
	spin_unlock(&locks->lock);
	return h;
}

/**
 * lite_lock_release - give a lock back
 * @locks: node's
 * @ctx: context of the holder
 * @lh: handle of it, which may have lost its rights
 * @offset: in the LMR
 * @owner: which holder of the context
 *
 * Context: may sleep; killable.
 * Return: 0; -EPERM: it is not the holder's; otherwise as LITE_IOC_UNLOCK: the
 * holder does not have it any more, whatever is returned.
 */
int lite_lock_release(struct lite_locks *locks, struct lite_ctx *ctx, u64 lh,
		      u64 offset, u64 owner)
{
	enum lite_lock_end end = LITE_LOCK_CLEAN;
	struct lite_word word;
	struct lite_hold *h;
	int err;

	err = lite_word_of(ctx, lh, offset, &word);
	if (err)
		return err;
	h = lite_hold_take_back(locks, ctx, &word, owner);
	if (!h)
		return -EPERM;
	/* Who shares it cannot make it good, and need not. */
	if (h->died && !h->shared)
		end = LITE_LOCK_BROKEN;
	err = lite_hold_release(h, end);
	if (lite_hold_is_pending(h, err))
		lite_hold_leave(h, end);
	else
		lite_hold_free(h);
	return err;
}

/**
 * lite_lock_consistent - what a lock protects has been put in order
 * @locks: node's
 * @ctx: context of the holder
 * @lh: handle
 * @offset: in the LMR
 * @owner: which holder of the context
 *
 * Context: any process.
 * Return: 0; -EBADF; -EPERM: it is not the holder's, or he shares it; -EINVAL: it
 * was in order.
 */
int lite_lock_consistent(struct lite_locks *locks, struct lite_ctx *ctx, u64 lh,
			 u64 offset, u64 owner)
{
	struct lite_word word;
	struct lite_hold *h;
	int err;

	err = lite_word_of(ctx, lh, offset, &word);
	if (err)
		return err;
	spin_lock(&locks->lock);
	h = lite_hold_find_locked(locks, ctx, &word, owner);
	if (!h || h->shared)
		err = -EPERM;
	else if (!h->died)
		err = -EINVAL;
	else
		h->died = false;
	spin_unlock(&locks->lock);
	return err;
}

static struct lite_hold *lite_hold_first_of(struct lite_locks *locks,
					    struct lite_ctx *ctx)
{
	struct lite_hold *h;

	spin_lock(&locks->lock);
	h = rb_entry_safe(rb_first(&ctx->locks), struct lite_hold, node);
	if (h)
		lite_hold_unpublish(h);
	spin_unlock(&locks->lock);
	return h;
}

/* Would giving it back mean waiting for its home? */
static bool lite_hold_is_far(const struct lite_hold *h)
{
	struct lite_peer *peer = lite_peer_find(h->locks->cl, h->word.home);
	bool far = peer && lite_peer_is_suspect(peer);

	if (peer)
		lite_peer_put(peer);
	return far;
}

/**
 * lite_locks_ctx_gone - a process has ended, or closed its file: give its locks
 * back for it
 * @locks: node's
 * @ctx: context; no call on it is under way
 *
 * Context: may sleep.
 */
void lite_locks_ctx_gone(struct lite_locks *locks, struct lite_ctx *ctx)
{
	enum lite_lock_end end;
	struct lite_hold *h;
	bool slow = false;

	while ((h = lite_hold_first_of(locks, ctx))) {
		end = h->shared ? LITE_LOCK_CLEAN : LITE_LOCK_DEAD;
		/* If one takes long the others shall not wait for it. */
		slow = slow || lite_hold_is_far(h) ||
		       lite_hold_is_pending(h, lite_hold_release(h, end));
		if (slow)
			lite_hold_leave(h, end);
		else
			lite_hold_free(h);
	}
}

/**
 * lite_locks_drop_held - forget the locks of all contexts
 * @locks: node's; closing
 *
 * Context: may sleep.
 */
void lite_locks_drop_held(struct lite_locks *locks)
{
	struct lite_hold *h, *next;

	/* Nobody is in a call, and no contexts are closed any more. */
	list_for_each_entry_safe(h, next, &locks->held, list) {
		rb_erase(&h->node, &h->ctx->locks);
		list_del_init(&h->list);
		lite_hold_free(h);
		cond_resched();
	}
}
