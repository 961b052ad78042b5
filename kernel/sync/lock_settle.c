// SPDX-License-Identifier: GPL-2.0
/*
 * The home's operations on the word of a lock.
 *
 * Normal operation: when a claim waits, swap whatever is in the word for MANAGED; the old value
 * names the holder. A PROBE asks the holder's node to confirm its claim: the process may have ended
 * without knowing the outcome of its swap. While claims wait, owners are probed from time to time:
 * if a program writes to the word, a holder may release it without the home's notice. When there is
 * neither owner nor queue, swap MANAGED for FREE.
 *
 * Recovery: a swap of unknown outcome is repeated until the outcome is known (@maybe, @back). The
 * waiters get the error at once.
 *
 * What cannot run concurrently: two operations on one lock, because each lock has one job.
 */
#include <linux/slab.h>

#include "lock.h"
#include "trace.h"

#define LITE_SETTLE_PERIOD HZ
/* Number of other values that a worker finds in the word before it yields. */
#define LITE_SETTLE_SWAPS 16

/*
 * The incarnation of the holder in a HELD word; 0: it is over, or counts as over. Its node counts
 * as live if it may have taken the lock in a connection that is no session here yet. Any context.
 */
u64 lite_lock_holder(struct lite_locks *locks, u64 word)
{
	u32 node = lite_lockword_node(word);
	u64 incarnation = lite_cluster_incarnation(locks->cl, node);

	return lite_lockword_is_of(word, incarnation) &&
			       lite_cluster_may_act(locks->cl, node) ?
		       incarnation : 0;
}

/* Drops home_lock during the operation. */
static int lite_lock_word_swap(struct lite_lock *l, u64 expected, u64 desired,
			       u64 *old, bool *posted)
{
	struct lite_locks *locks = l->locks;
	int err;

	mutex_unlock(&locks->home_lock);
	err = lite_word_cmp_swap(locks->mem, &l->word, expected, desired, old, posted);
	mutex_lock(&locks->home_lock);
	/* This node is leaving or stopping, which frees its LMRs. */
	if (err == -ENOTCONN || err == -ENODEV)
		err = -EIDRM;
	return err;
}

/* An operation on the word failed: all waiters get the error. */
static void lite_lock_settle_failed(struct lite_lock *l, int err)
{
	lite_lock_refuse(l, err);
	if (l->removed)
		return;
	/* Claims may have come meanwhile. */
	if (!list_empty(&l->queue))
		lite_lock_queue_work(l, 0);
	else if (!lite_lock_is_final(err) && (l->maybe || l->back))
		lite_lock_queue_work(l, LITE_SETTLE_PERIOD);
	else
		lite_lock_remove(l);
}

/*
 * @word was HELD, and is MANAGED now. If the holder's RELEASE has come already (EARLY), set l->died
 * or l->ended as it says. Other EARLY claims were not in the word. lite_lock_go_on() ends them all.
 * Return: has it come?
 */
static bool lite_lock_was_early(struct lite_lock *l, u64 word)
{
	struct lite_claim_name at = {};
	struct lite_lock_claim *c;
	bool was = false;

	/* The word has only a hash of the life: look in each life that has claims. */
	while ((c = lite_lock_claim_after(l, &at))) {
		at = c->name;
		at.ticket = lite_lockword_ticket(word);
		if (at.node == lite_lockword_node(word) &&
		    lite_lockword_is_of(word, at.incarnation)) {
			c = lite_lock_claim_find(l, &at);
			if (c && c->state == LITE_CLAIM_EARLY) {
				l->died |= c->status == LITE_LOCK_DEAD;
				l->ended |= c->status == LITE_LOCK_BROKEN;
				was = true;
			}
		}
		/* To the next life. */
		at.ticket = U32_MAX;
	}
	return was;
}

/* Enter the holder that was found in the word as owner. */
static void lite_lock_claim_own(struct lite_lock *l, u64 word, u64 incarnation)
{
	const struct lite_claim_name name = {
		.node = lite_lockword_node(word),
		.ticket = lite_lockword_ticket(word),
		.incarnation = incarnation,
	};
	struct lite_lock_claim *c = lite_lock_claim_find(l, &name);
	bool asked = c;

	if (!asked)
		c = lite_lock_claim_found(l, &name);
	lite_lock_claim_move(c, LITE_CLAIM_OWNER);
	/* If the taker refuses a GRANT (a late WAIT may cause one), PROBE it. */
	c->found = true;
	lite_lock_claim_trace(c, asked ? LITE_TRACE_LOCK_GRANT : LITE_TRACE_LOCK_FOUND, 0);
	if (asked) {
		/* The taker did not know the outcome of its swap. */
		lite_lock_claim_tell(c, 0);
	} else {
		c->probe = true;
		lite_lock_queue_work(l, 0);
	}
}

/* The word is MANAGED now. @was: its value before. */
static void lite_lock_settled(struct lite_lock *l, u64 was)
{
	bool held = lite_lockword_kind(was) == LITE_LOCKWORD_HELD;
	u64 incarnation;

	l->maybe = 0;
	l->back = false;
	l->managed = true;
	l->died |= lite_lockword_kind(was) == LITE_LOCKWORD_DIED;
	if (held && !lite_lock_was_early(l, was)) {
		incarnation = lite_lock_holder(l->locks, was);
		if (incarnation)
			lite_lock_claim_own(l, was, incarnation);
		else
			l->died = true;
	}
	lite_lock_go_on(l);
}

/* The value to try first; 0 is FREE. A wrong @seen only costs a swap. */
static u64 lite_lock_guess(const struct lite_lock *l)
{
	enum lite_lockword_kind kind = lite_lockword_kind(l->seen);

	return kind == LITE_LOCKWORD_HELD || kind == LITE_LOCKWORD_DIED ? l->seen : 0;
}

static void lite_lock_settle(struct lite_lock *l)
{
	u64 managed = lite_lockword(LITE_LOCKWORD_MANAGED);
	u64 guess = l->maybe ?: lite_lock_guess(l);
	int swaps = 0;
	bool posted;
	u64 old;
	int err;

	for (;;) {
		/* The holder may see MANAGED, and send RELEASE, before this thread goes on. */
		l->settling = true;
		err = lite_lock_word_swap(l, guess, managed, &old, &posted);
		l->settling = false;
		if (l->removed)
			return;
		if (err) {
			/* If nothing was posted, an earlier @maybe stands. */
			if (posted && guess)
				l->maybe = guess;
			lite_lock_settle_failed(l, err);
			return;
		}
		if (old != managed && l->back) {
			/* The hand-back was done after all: the word has carried died and ended. */
			l->back = false;
			l->died = false;
			l->ended = false;
		}
		if (old == guess || old == managed) {
			lite_lock_settled(l, old == guess ? old : l->maybe);
			return;
		}
		/* The word was not @maybe, so that earlier swap was not done. */
		l->maybe = 0;
		err = lite_lock_step(old) == LITE_LOCK_UNLOCKABLE ? -ENOTRECOVERABLE :
		      lite_lock_step(old) == LITE_LOCK_NONE ? -EINVAL : 0;
		if (err)
			lite_lock_refuse(l, err);
		if (list_empty(&l->queue))
			lite_lock_remove(l);
		if (l->removed)
			return;
		if (++swaps == LITE_SETTLE_SWAPS) {
			/* The word keeps changing: retry later. */
			l->seen = old;
			lite_lock_queue_work(l, 1);
			return;
		}
		/* Never swap what is no lock. Claims may have come: look again. */
		guess = err ? 0 : old;
	}
}

/* Neither owner nor queue: give the word back. */
static void lite_lock_hand_back(struct lite_lock *l)
{
	enum lite_lock_end end = l->ended ? LITE_LOCK_BROKEN :
				 l->died ? LITE_LOCK_DEAD : LITE_LOCK_CLEAN;
	bool posted;
	u64 old;
	int err;

	/* Before the swap: a claim that comes meanwhile is settled after it. */
	l->managed = false;
	err = lite_lock_word_swap(l, lite_lockword(LITE_LOCKWORD_MANAGED),
				  lite_lock_after(end), &old, &posted);
	if (l->removed)
		return;
	if (err) {
		l->back = true;
		lite_lock_settle_failed(l, err);
		return;
	}
	/* The word carries died and ended now. */
	l->back = false;
	l->died = false;
	l->ended = false;
	if (list_empty(&l->queue))
		lite_lock_remove(l);
	else
		lite_lock_queue_work(l, 0);
}

/* Ask a claim's node (PROBE). @end: set to how the claim ends; 0: not yet. */
static int lite_lock_claim_ask(struct lite_lock_claim *c, enum lite_lock_end *end)
{
	struct lite_wire_lock_probe_reply reply = {};
	struct lite_wire_lock req = lite_lock_wire(
		&c->lock->word, c->name.incarnation, c->name.ticket, 0);
	struct lite_call_desc d = {
		LITE_REQUEST(LITE_CALL_LOCK_PROBE, req),
		LITE_REPLY(reply),
	};
	/* Do not wait for a suspect node: it is probed again later. */
	int err = lite_cluster_call(c->lock->locks->cl, c->name.node, &d);

	*end = le32_to_cpu(reply.end);
	return err;
}

static void lite_lock_probe(struct lite_lock *l)
{
	struct lite_locks *locks = l->locks;
	struct lite_lock_claim *c = list_first_entry_or_null(
		&l->owners, struct lite_lock_claim, list);
	enum lite_lock_end end;
	int err;

	/* Probe only a claim found in the word, or for which others have waited. */
	if (!c || (!c->probe && list_empty(&l->queue)))
		return;
	refcount_inc(&c->ref);
	mutex_unlock(&locks->home_lock);
	err = lite_lock_claim_ask(c, &end);
	mutex_lock(&locks->home_lock);
	/* Disregard the answer: the node's next life may have given it. */
	if (lite_lock_claim_is_dead(c)) {
		c->swept = true;
		err = 0;
		end = LITE_LOCK_DEAD;
	}
	/* The claim may have ended meanwhile. */
	if (c->state != LITE_CLAIM_OWNER || l->removed)
		goto out;
	if (err) {
		lite_lock_queue_work(l, LITE_SETTLE_PERIOD);
		goto out;
	}
	c->probe = false;
	/* If the lock is shared, the next probe asks another owner. */
	list_move_tail(&c->list, &l->owners);
	if (end)
		lite_lock_claim_end(c, end);
	lite_lock_go_on(l);
out:
	lite_lock_claim_put(c);
}

void lite_lock_job(struct work_struct *work)
{
	struct lite_lock *l = container_of(work, struct lite_lock, job.work);
	struct lite_locks *locks = l->locks;

	/* Allocated here because home_lock must not wait for memory. */
	l->spare = kzalloc(sizeof(*l->spare), GFP_KERNEL | __GFP_NOFAIL);
	mutex_lock(&locks->home_lock);
	if (l->more)
		lite_lock_go_on(l);
	/* If there is more, the job is queued again. */
	if (l->removed || l->more)
		goto out;
	l->busy = true;
	/* @maybe is of a later swap than @back: the word may have got another holder in between. */
	if (!l->managed && list_empty(&l->queue) && l->back && !l->maybe)
		lite_lock_hand_back(l);
	else if (!l->managed && (!list_empty(&l->queue) || l->maybe))
		lite_lock_settle(l);
	else if (!l->managed)
		lite_lock_remove(l);
	else if (list_empty(&l->owners) && list_empty(&l->queue))
		lite_lock_hand_back(l);
	else
		lite_lock_probe(l);
	l->busy = false;
out:
	mutex_unlock(&locks->home_lock);
	kfree(l->spare);
	lite_crew_done(&locks->words, &l->job);
	lite_lock_put(l);
}
