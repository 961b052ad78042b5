// SPDX-License-Identifier: GPL-2.0
/*
 * Atomics that no device can do (swap, fetch-and, fetch-or), asked for by threads of this node.
 *
 * A worker carries them out, one at a time (lite_word_run()). The mutex that serialises them with
 * those of peers is held while waiting for the device: a thread of a user could be throttled then,
 * and would hold up all others.
 *
 * What runs concurrently: threads that ask, and the work item. lite_words.line_lock decides: a
 * job in line belongs to the thread that asks, which may be killed; else to the work item.
 */
#include "memory/memory.h"
#include "memop.h"
#include "wait.h"

/* An atomic of a thread of this node: in line until the work item has begun it. */
struct lite_word_job {
	struct lite_line_place place;
	struct lite_memop_exec *r;
	struct completion done;
	ssize_t ret;
};

static void lite_words_queue(struct lite_words *words)
{
	struct lite_memory *mem = container_of(words, struct lite_memory, words);

	queue_work(mem->cl->rpc->wq[LITE_LANE_WORK], &words->work);
}

/* Carry out the first in line; users take turns. It stays in line while it waits for the mutex. */
static void lite_words_work(struct work_struct *work)
{
	struct lite_words *words = container_of(work, struct lite_words, work);
	struct lite_word_job *job = NULL;
	struct lite_line_place *place;

	mutex_lock(&words->lock);
	spin_lock(&words->line_lock);
	place = lite_line_take(&words->line);
	spin_unlock(&words->line_lock);
	if (place) {
		job = container_of(place, struct lite_word_job, place);
		job->ret = lite_word_run(job->r);
	}
	mutex_unlock(&words->lock);
	if (!job)
		return;
	/* Peers' operations, which share these workers, get their turn before the next. */
	lite_words_queue(words);
	complete(&job->done);
}

/*
 * Have an atomic of this thread, which has entered no LMR, carried out. Killable until it begins,
 * which it has to within the time-out of an operation.
 */
ssize_t lite_word_ask(struct lite_memop_exec *r)
{
	struct lite_words *words = &r->mem->words;
	struct lite_word_job job = {
		.place.kind = lite_current_uid(),
		.r = r,
		.done = COMPLETION_INITIALIZER_ONSTACK(job.done),
	};
	bool left;
	long done;

	spin_lock(&words->line_lock);
	lite_line_enter(&words->line, &job.place, false);
	spin_unlock(&words->line_lock);
	lite_words_queue(words);
	done = lite_wait_done_timeout(&job.done, r->mem->fab->op_timeout);
	if (done > 0)
		return job.ret;
	spin_lock(&words->line_lock);
	left = job.place.line;
	lite_line_leave(&job.place);
	spin_unlock(&words->line_lock);
	if (left)
		return done ? -EINTR : -ETIMEDOUT;
	wait_for_completion(&job.done);
	return job.ret;
}

void lite_words_init(struct lite_words *words)
{
	mutex_init(&words->lock);
	spin_lock_init(&words->line_lock);
	lite_line_init(&words->line);
	INIT_WORK(&words->work, lite_words_work);
}
