// SPDX-License-Identifier: GPL-2.0
/*
 * Barriers in words of LMRs.
 *
 * Normal operation: a participant sends ARRIVE to the home of the LMR, and waits as for a lock.
 * When as many have arrived as are expected, the home (lock_home.c) sends each of them a GRANT, and
 * the next round begins.
 *
 * Recovery: as for locks. An arrival is a claim; ARRIVE is repeated in each session with the home,
 * and counts once. A departed participant does not count, unless the round was already complete:
 *
 * - A caller that gives up first has the home remove its claim (RELEASE). If the home answers that
 *   the round is complete, the caller goes on.
 * - The caller waits until ARRIVE is answered or its session is over, and the home enters nothing
 *   from a session that is over. So no ARRIVE is entered after the RELEASE of the same claim.
 * - While an earlier claim from this node could not be removed, because the home is out of reach,
 *   no new one is sent.
 * - Claims of nodes that are down are swept, and not entered again when their node comes back, if
 *   it knows that they had been entered. But claims of a complete round are kept for the life of
 *   their node: it may repeat an ARRIVE of which it got no answer, which must not count for the
 *   next round.
 */
#include "lock.h"
#include "wait.h"

/* May the home still count a departed participant of this node? */
static bool lite_barrier_is_left(struct lite_locks *locks, const struct lite_word *word)
{
	bool found;

	spin_lock(&locks->lock);
	/* The owner of arrivals is 0. */
	found = lite_hold_in(&locks->left_barriers, word, 0);
	spin_unlock(&locks->lock);
	/* If the home is down, the caller gets that error instead. */
	return found && lite_cluster_is_live(locks->cl, word->home);
}

/* Wait for the removal. @left: jiffies left, reduced. */
static int lite_barrier_await_left(struct lite_locks *locks, const struct lite_word *word,
				   unsigned long *left)
{
	long ret;

	ret = lite_crowd_wait_timeout(&locks->left_wait, !lite_barrier_is_left(locks, word), *left);
	if (ret < 0)
		return -EINTR;
	*left = ret;
	return ret ? 0 : -ETIMEDOUT;
}

/*
 * Wait until all participants have arrived. May sleep; killable. Return: 0; otherwise as
 * LITE_IOC_BARRIER.
 */
int lite_barrier_wait(struct lite_locks *locks, const struct lite_lock_args *args)
{
	struct lite_lock_args rest = *args;
	struct lite_word word;
	struct lite_hold *h;
	int err;

	if (!args->n || args->n > LITE_BARRIER_MAX)
		return -EINVAL;
	err = lite_word_of(args->ctx, args->lh, args->offset, &word) ?:
	      lite_cluster_ready(locks->cl) ?:
	      lite_barrier_await_left(locks, &word, &rest.timeout) ?:
	      lite_lock_check(args);
	if (err)
		return err;
	h = lite_hold_new(locks, args, &word);
	if (IS_ERR(h))
		return PTR_ERR(h);
	err = lite_lock_wait(h, &rest);
	if (!err) {
		/* The home's claim ends with its GRANT. */
		lite_hold_free(h);
		return 0;
	}
	lite_lock_give_up(h);
	/* The home has counted this node as down. */
	if (err == -ENOLCK)
		err = -EHOSTDOWN;
	/* Perhaps it is this node that has left or stops. */
	if (err == -EHOSTDOWN)
		err = lite_cluster_ready(locks->cl) ?: err;
	return err;
}
