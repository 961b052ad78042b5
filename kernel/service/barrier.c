// SPDX-License-Identifier: GPL-2.0
/*
 * Barriers in words of LMRs.
 *
 * Normal operation: who comes tells the home of the LMR (ARRIVE), and waits, as
 * for a lock. When as many have come as are to come, the home tells each of them
 * (GRANT), and the next round begins.
 *
 * Recovery: as of locks. An arrival is a claim; it is repeated in each session
 * with the home, and counts once. Nobody counts who is not there any more, but
 * for who went when all had come:
 *
 *   a caller who gives up has the home take it out first (RELEASE); if the home
 *   says that all have come he goes on with them
 *   an ARRIVE is not given up before it is answered, or its session over; and in
 *   a session that is over nothing is entered: so none comes after the RELEASE
 *   of the same claim
 *   as long as an earlier claim from here could not be taken out, because the
 *   home was out of reach, nobody arrives anew from here
 *   claims of nodes that are no more are swept; who comes back, and has been
 *   entered before, is not entered anew: perhaps all had come
 *
 * The home's part is in lock_home.c.
 */
#include "../wait.h"
#include "lock.h"

/* Does the home perhaps count somebody who has gone from here? */
static bool lite_barrier_is_left(struct lite_locks *locks,
				 const struct lite_word *word)
{
	bool found;

	spin_lock(&locks->lock);
	/* Arrivals have no owners. */
	found = lite_hold_in(&locks->left_barriers, word, 0);
	spin_unlock(&locks->lock);
	/* It is not waited for when it is down: that is an error of its own. */
	return found && lite_cluster_is_live(locks->cl, word->home);
}

/* Wait for that. @left: of the caller's time; made less. */
static int lite_barrier_await_left(struct lite_locks *locks,
				   const struct lite_word *word,
				   unsigned long *left)
{
	long ret;

	ret = lite_wait_is_command() ?
		      wait_event_interruptible_timeout(
			      locks->left_wait,
			      !lite_barrier_is_left(locks, word), *left) :
		      wait_event_killable_timeout(
			      locks->left_wait,
			      !lite_barrier_is_left(locks, word), *left);
	if (ret < 0)
		return -EINTR;
	*left = ret;
	return ret ? 0 : -ETIMEDOUT;
}

/**
 * lite_barrier_wait - wait until all have come
 * @locks: node's
 * @args: where, how many, how long
 *
 * Context: may sleep; killable.
 * Return: 0: they have; otherwise as LITE_IOC_BARRIER.
 */
int lite_barrier_wait(struct lite_locks *locks,
		      const struct lite_lock_args *args)
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
		/* The home needs nothing more of it. */
		lite_hold_free(h);
		return 0;
	}
	lite_lock_give_up(h);
	/* We counted as down. */
	if (err == -ENOLCK)
		err = -EHOSTDOWN;
	/* It may be us who went. */
	if (err == -EHOSTDOWN)
		err = lite_cluster_ready(locks->cl) ?: err;
	return err;
}
