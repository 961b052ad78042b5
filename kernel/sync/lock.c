// SPDX-License-Identifier: GPL-2.0
/*
 * Taking locks, and init and exit of this part of a node.
 *
 * Normal operation: the device swaps FREE for the claim's own value, using the caller's handle. If
 * the lock is taken, the claim waits (lock_wait.c).
 *
 * Recovery: a swap of unknown outcome is repeated in the next session; the word then shows whether
 * it was done. Without a next session the claim is released in the background (lite_hold_leave()).
 * A home that finds a claim in the word sends a PROBE.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "memory/io/io.h"
#include "lock.h"
#include "trace.h"
#include "wait.h"

/* Attempts per swap, across sessions. */
#define LITE_LOCK_TRIES 6
/* Number of other values that a taker finds in the word before it asks the home. */
#define LITE_LOCK_SWAPS 8

struct lite_hold_key {
	const struct lite_word *word;
	u64 owner;
};

static int lite_hold_cmp(const void *key, const struct rb_node *node)
{
	const struct lite_hold *h = rb_entry(node, struct lite_hold, node);
	const struct lite_hold_key *k = key;

	return lite_order(k->owner, h->owner) ?:
	       lite_order(k->word->offset, h->word.offset) ?:
	       lite_order(k->word->id, h->word.id) ?:
	       lite_order(k->word->home, h->word.home) ?:
	       lite_order(k->word->incarnation, h->word.incarnation);
}

static bool lite_hold_less(struct rb_node *a, const struct rb_node *b)
{
	const struct lite_hold *h = rb_entry(a, struct lite_hold, node);
	const struct lite_hold_key key = { .word = &h->word, .owner = h->owner };

	return lite_hold_cmp(&key, b) < 0;
}

void lite_hold_add(struct rb_root *tree, struct lite_hold *h)
{
	lockdep_assert_held(&h->locks->lock);
	rb_add(&h->node, tree, lite_hold_less);
}

/* Find @owner's claim on @word in a tree, or NULL. locks->lock is held. */
struct lite_hold *lite_hold_in(const struct rb_root *tree, const struct lite_word *word, u64 owner)
{
	const struct lite_hold_key key = { .word = word, .owner = owner };

	return rb_entry_safe(rb_find(&key, tree, lite_hold_cmp), struct lite_hold, node);
}

/*
 * Make a claim, in state TAKING. May sleep. Return: it, or ERR_PTR: -EDQUOT: the user has its share
 * of the pool; -ENOMEM.
 */
struct lite_hold *lite_hold_new(struct lite_locks *locks, const struct lite_lock_args *args,
				const struct lite_word *word)
{
	struct lite_pool *pool = lite_lock_pool(locks, LITE_POOL_LOCKS);
	struct lite_hold *h;
	int err;

	err = lite_lock_pool_take(pool, word->uid, GFP_KERNEL);
	if (err)
		return ERR_PTR(err);
	h = kzalloc(sizeof(*h), GFP_KERNEL_ACCOUNT);
	if (!h)
		goto err_give;
	if (lite_crew_job_init(&locks->lefts, &h->job, word->uid, lite_hold_left_job, GFP_KERNEL))
		goto err_free;
	h->locks = locks;
	h->owner = args->owner;
	h->word = *word;
	h->n = args->n;
	h->shared = args->shared;
	h->state = LITE_HOLD_TAKING;
	h->incarnation = locks->mem->fab->self.incarnation;
	init_waitqueue_head(&h->wait);
	INIT_DELAYED_WORK(&h->timer, lite_hold_left_due);
	/* Cyclic: a late message may still name a recently used ticket. */
	err = xa_alloc_cyclic(&locks->tickets, &h->ticket, h, XA_LIMIT(1, LITE_TICKET_MAX),
			      &locks->next_ticket, GFP_KERNEL_ACCOUNT);
	if (err < 0)
		goto err_job;
	h->value = lite_lockword_held(lite_cluster_id(locks->cl), h->incarnation, h->ticket);
	lite_stat_inc(locks->stats, LITE_STAT_LOCKS);
	return h;

err_job:
	lite_crew_job_exit(&locks->lefts, &h->job);
err_free:
	kfree(h);
err_give:
	lite_pool_give(pool, word->uid, 1);
	return ERR_PTR(-ENOMEM);
}

/* Free a claim that is in no tree. Context: process. */
void lite_hold_free(struct lite_hold *h)
{
	struct lite_locks *locks = h->locks;

	/* A handler that has found the claim by its ticket uses it under the lock. */
	spin_lock(&locks->lock);
	xa_erase(&locks->tickets, h->ticket);
	spin_unlock(&locks->lock);
	lite_stat_dec(locks->stats, LITE_STAT_LOCKS);
	lite_pool_give(lite_lock_pool(locks, LITE_POOL_LOCKS), h->word.uid, 1);
	lite_crew_job_exit(&locks->lefts, &h->job);
	kfree(h);
}

/* Make a lock that was taken visible to UNLOCK. Context: process. */
static void lite_hold_publish(struct lite_hold *h, struct lite_ctx *ctx)
{
	struct lite_locks *locks = h->locks;

	spin_lock(&locks->lock);
	h->ctx = ctx;
	h->state = LITE_HOLD_HELD;
	lite_hold_add(&ctx->locks, h);
	ctx->n_locks++;
	spin_unlock(&locks->lock);
}

static struct lite_access lite_lock_access(const struct lite_lock_args *args)
{
	return (struct lite_access){
		.ctx = args->ctx,
		.lh = args->lh,
		.right = LITE_RIGHT_ATOMIC | LITE_RIGHT_WRITE,
	};
}

/* Check that the handle may use the word. May sleep; killable. Return: see lite_atomic_may(). */
int lite_lock_check(const struct lite_lock_args *args)
{
	const struct lite_access a = lite_lock_access(args);

	return lite_atomic_may(&a, args->offset, sizeof(u64));
}

/* What to do about the word's value. Return: 0: swap it; -EINPROGRESS: ask the home; else fail. */
static int lite_lock_judge(struct lite_hold *h, const struct lite_lock_args *args, u64 word)
{
	switch (lite_lock_step(word)) {
	case LITE_LOCK_SWAP:
		return 0;
	case LITE_LOCK_ASK:
		/*
		 * If the home is asked, it takes the word over. A mere try avoids that, unless the
		 * holder may be dead.
		 */
		if (args->try && lite_lockword_kind(word) == LITE_LOCKWORD_HELD &&
		    lite_lock_holder(h->locks, word))
			return -EBUSY;
		return -EINPROGRESS;
	case LITE_LOCK_UNLOCKABLE:
		return -ENOTRECOVERABLE;
	default:
		return -EINVAL;
	}
}

/*
 * Try to take the lock without the home. Return: 0; -EINPROGRESS: ask the home; other errnos. In
 * any case h->swapped says whether the claim's value may be in the word.
 */
static int lite_lock_swap(struct lite_hold *h, const struct lite_lock_args *args)
{
	const struct lite_access a = lite_lock_access(args);
	struct lite_op op = {
		.opcode = LITE_OP_CMP_SWAP,
		.offset = args->offset,
		.length = sizeof(u64),
		.swap = h->value,
	};
	u64 old, expected = 0;
	int backs = 0;
	bool posted;
	int tries = 0;
	int swaps = 0;
	int err;

	for (;;) {
		h->was_died = expected != 0;
		op.operand = expected;
		err = lite_atomic(&a, &op, &posted);
		if (err) {
			h->swapped |= posted;
			if (err != -EHOSTDOWN || ++tries == LITE_LOCK_TRIES ||
			    lite_access_await(&a, &backs))
				return err;
			continue;
		}
		old = op.result;
		if (old == expected || old == h->value) {
			h->swapped = true;
			h->died = h->was_died;
			return 0;
		}
		/* Only the home replaces a claim's value, and only by MANAGED. */
		if (lite_lockword_kind(old) != LITE_LOCKWORD_MANAGED)
			h->swapped = false;
		h->seen = old;
		err = lite_lock_judge(h, args, old);
		if (err)
			return err;
		if (lite_given_up())
			return -EINTR;
		/* The word keeps changing: let the home queue the claim. */
		if (++swaps == LITE_LOCK_SWAPS)
			return -EINPROGRESS;
		expected = old;
	}
}

/* End a claim that did not become a usable lock. Takes over @h. Context: process. */
void lite_lock_give_up(struct lite_hold *h)
{
	if (!h->swapped && !h->asked && !h->managed)
		lite_hold_free(h);
	else
		lite_hold_leave(h, h->died || (h->swapped && h->was_died) ?
					   LITE_LOCK_DEAD : LITE_LOCK_UNUSED);
}

/*
 * Take a lock. May sleep; killable. Return: 0; -EOWNERDEAD: the caller has it, and a previous owner
 * died; otherwise as LITE_IOC_LOCK.
 */
int lite_lock_take(struct lite_locks *locks, const struct lite_lock_args *args)
{
	struct lite_word word;
	struct lite_hold *h;
	bool again, full;
	int err;

	err = lite_word_of(args->ctx, args->lh, args->offset, &word) ?:
	      lite_cluster_ready(locks->cl);
	if (err)
		return err;
	spin_lock(&locks->lock);
	again = lite_hold_in(&args->ctx->locks, &word, args->owner);
	full = args->ctx->n_locks >= LITE_LOCKS_MAX;
	spin_unlock(&locks->lock);
	if (again)
		return args->try ? -EBUSY : -EDEADLK;
	if (full)
		return -EMFILE;
	h = lite_hold_new(locks, args, &word);
	if (IS_ERR(h))
		return PTR_ERR(h);
	/* The word has room for one holder: only the home can share the lock. */
	err = args->shared ? lite_lock_check(args) ?: -EINPROGRESS : lite_lock_swap(h, args);
	if (err == -EINPROGRESS) {
		err = lite_lock_wait(h, args);
		/* The handle may have lost its rights during the wait. */
		if (!err)
			err = lite_lock_check(args);
		/* The lock is taken even if the handle cannot be checked. */
		if (err == -EHOSTDOWN && h->managed)
			err = 0;
	}
	/* A dying caller never uses the lock: the next owner must not be told of a death. */
	if (!err && lite_given_up())
		err = -EINTR;
	if (!err && h->died)
		err = -EOWNERDEAD;
	/* Perhaps this node itself has left or is stopping. */
	if (err == -EHOSTDOWN)
		err = lite_cluster_ready(locks->cl) ?: err;
	trace_lite_lock(LITE_TRACE_LOCK_TAKE, word.id, word.offset,
			lite_cluster_id(locks->cl), h->ticket, err);
	if (err && err != -EOWNERDEAD) {
		lite_lock_give_up(h);
		return err;
	}
	lite_stat_inc(locks->stats, LITE_STAT_LOCKS_TAKEN);
	lite_hold_publish(h, args->ctx);
	return err;
}

/* Initialize the zeroed @locks. May sleep. Return: 0 or -ENOMEM. */
int lite_locks_init(struct lite_locks *locks, struct lite_memory *mem)
{
	/* Claims of 512 bytes, or 1 KB with a lock of their own, in at most 1/16 of memory. */
	u64 limit = min_t(u64, 262144, (u64)totalram_pages() * PAGE_SIZE / 16 / 512);

	locks->mem = mem;
	locks->cl = mem->cl;
	locks->stats = mem->stats;
	spin_lock_init(&locks->lock);
	xa_init_flags(&locks->tickets, XA_FLAGS_ALLOC1);
	locks->left_barriers = RB_ROOT;
	lite_crowd_init(&locks->left_wait);
	lite_pool_init(lite_lock_pool(locks, LITE_POOL_LOCKS), limit, limit / 8);
	lite_pool_init(lite_lock_pool(locks, LITE_POOL_LOCK_CLAIMS), limit, limit / 8);
	if (lite_crew_init(&locks->words, "lite-locks"))
		return -ENOMEM;
	if (lite_crew_init(&locks->tells, "lite-grants"))
		goto err_words;
	if (lite_crew_init(&locks->lefts, "lite-left"))
		goto err_tells;
	lite_kcall_handle(mem->cl->kcalls, LITE_CALL_LOCK_GRANT, lite_serve_lock_grant, locks);
	lite_kcall_handle(mem->cl->kcalls, LITE_CALL_LOCK_PROBE, lite_serve_lock_probe, locks);
	lite_lock_home_init(locks);
	return 0;

err_tells:
	lite_crew_exit(&locks->tells);
err_words:
	lite_crew_exit(&locks->words);
	return -ENOMEM;
}

/*
 * Wake the claims that wait for a change, and release LEFT ones. A claim that begins to wait
 * meanwhile may be missed. It needs no wake-up, because it sees the change.
 */
static void lite_holds_kick(struct lite_locks *locks)
{
	unsigned long ticket = 0;
	struct lite_hold *h;

	do {
		spin_lock(&locks->lock);
		h = xa_find_after(&locks->tickets, &ticket, ULONG_MAX, XA_PRESENT);
		if (h && h->state == LITE_HOLD_WAITING)
			wake_up(&h->wait);
		else if (h && h->state == LITE_HOLD_LEFT)
			lite_crew_queue(&locks->lefts, &h->job);
		spin_unlock(&locks->lock);
		cond_resched();
	} while (h);
}

/* A member or a session has come or gone. May sleep; work items look at the claims. */
void lite_locks_changed(struct lite_locks *locks)
{
	/* Before waking the waiters, which compare it. */
	atomic_inc_return(&locks->changes);
	lite_holds_kick(locks);
	spin_lock(&locks->lock);
	if (!locks->closing)
		queue_work(locks->tells.wq, &locks->sweep);
	spin_unlock(&locks->lock);
	lite_crowd_wake(&locks->left_wait);
}

/* Forget all locks: no calls are under way, and all sessions have ended. May sleep. */
void lite_locks_shut(struct lite_locks *locks)
{
	unsigned long ticket;
	struct lite_hold *h;

	spin_lock(&locks->lock);
	locks->closing = true;
	spin_unlock(&locks->lock);
	/* LEFT claims end now, released or not. */
	lite_holds_kick(locks);
	lite_lock_home_shut(locks);
	lite_crew_flush(&locks->lefts);
	lite_crew_flush(&locks->words);
	/* A sweep may still be queued, with nothing left to sweep. */
	lite_crew_flush(&locks->tells);
	/* All that remain are HELD. */
	xa_for_each(&locks->tickets, ticket, h) {
		rb_erase(&h->node, &h->ctx->locks);
		lite_hold_free(h);
		cond_resched();
	}
}

/* Undo lite_locks_init() after lite_locks_shut(), when no handler is running. May sleep. */
void lite_locks_exit(struct lite_locks *locks)
{
	/* Jobs of one crew queue those of another, but none are left. */
	lite_crew_exit(&locks->lefts);
	lite_crew_exit(&locks->words);
	lite_crew_exit(&locks->tells);
	xa_destroy(&locks->tickets);
}
