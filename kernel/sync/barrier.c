// SPDX-License-Identifier: GPL-2.0
/*
 * Barriers in words of LMRs.
 *
 * Normal operation: a participant asks the home, and waits as for a lock. When as many have arrived
 * as are expected, the home (lock_home.c) sends each of them a GRANT.
 *
 * Recovery: as for locks; locks.rst says which departed participants count. A participant waits
 * until its arrival is answered or the session is over, and the home enters nothing from a session
 * that is over. So the home enters no arrival after the RELEASE of the same claim.
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
	/* If the home is down, do not wait: the caller gets that error. */
	return found && lite_cluster_is_live(locks->cl, word->home);
}

/* Wait until the home counts no departed participant of this node. @left: jiffies, reduced. */
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

/* Wait until all participants have arrived. May sleep; killable. Return: as LITE_IOC_BARRIER. */
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
	      lite_lock_check(args) ?:
	      lite_barrier_await_left(locks, &word, &rest.timeout);
	if (err)
		return err;
	h = lite_hold_new(locks, args, &word);
	if (IS_ERR(h))
		return PTR_ERR(h);
	err = lite_lock_wait(h, &rest);
	if (!err) {
		/* The claim at the home ends with its GRANT. */
		lite_hold_free(h);
		return 0;
	}
	lite_lock_give_up(h);
	/* The home has counted this node as down. */
	if (err == -ENOLCK)
		err = -EHOSTDOWN;
	/* Perhaps this node itself has left or is stopping. */
	if (err == -EHOSTDOWN)
		err = lite_cluster_ready(locks->cl) ?: err;
	return err;
}
