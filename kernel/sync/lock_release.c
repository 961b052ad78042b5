// SPDX-License-Identifier: GPL-2.0
/*
 * Releasing locks.
 *
 * Normal operation: swap the claim's value for FREE. If the word is MANAGED
 * because claims wait, send RELEASE to the home, which passes the lock on.
 *
 * Recovery: a lock that cannot be released now is LEFT: a work item retries
 * when members change, and every second while the home is up, until the lock is
 * released or known to be lost. So are locks of dead processes, and claims
 * given up while taking. RELEASE may be repeated: it names a claim, not the
 * lock.
 */
#include <linux/slab.h>

#include "memory/handle/ctx.h"
#include "memory/io/word.h"
#include "lock.h"
#include "trace.h"

/* Jiffies between attempts while the home is up. */
#define LITE_LEFT_PERIOD HZ
/* Attempts per swap or RELEASE, across sessions. */
#define LITE_LOCK_BACK_TRIES 4

/*
 * Put the word back. @again: set if an earlier attempt may have done it.
 *
 * Return: 0; -EINPROGRESS: MANAGED, ask the home; -ENOLCK; other errnos.
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
 * @end: how it ends
 * @again: set if an earlier attempt may have done it; else left as it is
 *
 * Context: may sleep; killable.
 * Return: 0; -ENOLCK: no such claim; -EALREADY: the barrier is complete;
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
	/* The home has left, which frees its LMRs. */
	if (err == -EHOSTUNREACH)
		err = -ESTALE;
	return err;
}

/* Has the lock gone with its home? A home that is just down may return. */
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
	lost = lite_peer_has_left(peer) ||
	       READ_ONCE(peer->incarnation) != h->word.incarnation;
	lite_peer_put(peer);
	return lost;
}

/* After @err, is the claim still to be ended? */
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

/* Release a lock, if possible now. -ENOLCK: it was not ours any more. */
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
	/* Even if it is not in the word: the home may have our claim. */
	if (err == -EINPROGRESS || (err == -ENOLCK && h->asked))
		err = lite_hold_tell(h, end, &again);
	if (err == -ENOLCK && again)
		err = 0;
	trace_lite_lock(LITE_TRACE_LOCK_BACK, h->word.id, h->word.offset,
			lite_cluster_id(locks->cl), h->ticket, err);
	return err;
}

/*
 * End a claim in the background. Takes over @h, which is in no list. Context:
 * process.
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
	/* This node has left its cluster: the homes have ended its claims. */
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
		 * While the home is down only a change, such as its return,
		 * queues the work.
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
	/* A change may have queued it just before it left the list. */
	cancel_delayed_work(&h->work);
	lite_hold_free(h);
	wake_up_all(&locks->left_wait);
}

static void lite_hold_unpublish(struct lite_hold *h)
{
	lockdep_assert_held(&h->locks->lock);
	h->state = LITE_HOLD_ENDING;
	rb_erase(&h->node, &h->ctx->locks);
	list_del_init(&h->list);
	h->ctx->n_locks--;
}

/* Unpublish a holder's lock for its release; NULL: it has none. */
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
 * lite_lock_release - release a lock
 * @locks: the node's
 * @ctx: context of the holder
 * @lh: handle, which may have lost its rights
 * @offset: in the LMR
 * @owner: number of the holder in @ctx
 *
 * Context: may sleep; killable.
 * Return: 0; -EPERM: the holder does not have it; otherwise as LITE_IOC_UNLOCK.
 * Whatever is returned, the holder no longer has it.
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
	/* Only an exclusive owner has to make it consistent. */
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
 * lite_lock_consistent - mark a lock as consistent after an owner's death
 * @locks: the node's
 * @ctx: context of the holder
 * @lh: handle
 * @offset: in the LMR
 * @owner: number of the holder in @ctx
 *
 * Context: process.
 * Return: 0; -EBADF; -EPERM: the holder does not have it, or shares it;
 * -EINVAL: it is consistent.
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

/* Would a release have to wait for the home? */
static bool lite_hold_is_far(const struct lite_hold *h)
{
	struct lite_peer *peer = lite_peer_find(h->locks->cl, h->word.home);
	bool far = peer && lite_peer_is_suspect(peer);

	if (peer)
		lite_peer_put(peer);
	return far;
}

/*
 * Release all locks of a context on which no call is under way. Context: may
 * sleep.
 */
void lite_locks_ctx_gone(struct lite_locks *locks, struct lite_ctx *ctx)
{
	enum lite_lock_end end;
	struct lite_hold *h;
	bool slow = false;

	while ((h = lite_hold_first_of(locks, ctx))) {
		end = h->shared ? LITE_LOCK_CLEAN : LITE_LOCK_DEAD;
		/* Once one is slow, leave the rest to the background. */
		slow = slow || lite_hold_is_far(h) ||
		       lite_hold_is_pending(h, lite_hold_release(h, end));
		if (slow)
			lite_hold_leave(h, end);
		else
			lite_hold_free(h);
	}
}

/*
 * Free the HELD claims of all contexts; @locks is closing. Context: may sleep.
 */
void lite_locks_drop_held(struct lite_locks *locks)
{
	struct lite_hold *h, *next;

	list_for_each_entry_safe(h, next, &locks->held, list) {
		rb_erase(&h->node, &h->ctx->locks);
		list_del_init(&h->list);
		lite_hold_free(h);
		cond_resched();
	}
}
