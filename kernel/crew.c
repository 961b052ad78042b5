// SPDX-License-Identifier: GPL-2.0
#include "crew.h"

#define LITE_CREW_WORKERS 256

/* Make a crew of @n workers, an eighth for root, from @wq, which the crew owns from now on. */
void lite_crew_init_on(struct lite_crew *crew, struct workqueue_struct *wq, u32 n)
{
	spin_lock_init(&crew->lock);
	lite_line_init(&crew->line);
	lite_pool_init(&crew->workers, n, n / 8);
	crew->wq = wq;
}

/* Make a crew with a workqueue @name. May sleep. Return: 0 or -ENOMEM. */
int lite_crew_init(struct lite_crew *crew, const char *name)
{
	/* More items than workers: timers need room, too, and NUMA nodes may share the limit. */
	struct workqueue_struct *wq = alloc_workqueue(name, WQ_UNBOUND, WQ_MAX_ACTIVE);

	lite_crew_init_on(crew, wq, LITE_CREW_WORKERS);
	return wq ? 0 : -ENOMEM;
}

/* Wait until no job is in line or running, nor any job that these queue. May sleep. */
void lite_crew_flush(struct lite_crew *crew)
{
	/* While jobs are in line, at least one has a worker. */
	while (lite_pool_used(&crew->workers))
		flush_workqueue(crew->wq);
	/* Jobs that are past lite_crew_done() may still run. */
	flush_workqueue(crew->wq);
}

/* Undo lite_crew_init(): no more jobs are queued. May sleep until they are done. */
void lite_crew_exit(struct lite_crew *crew)
{
	lite_crew_flush(crew);
	destroy_workqueue(crew->wq);
	lite_pool_exit(&crew->workers);
}

/*
 * Prepare a job of @uid, as pools count it, with memory of @gfp. A worker calls @run, which calls
 * lite_crew_done(). Return: 0 or -ENOMEM.
 */
int lite_crew_job_init(struct lite_crew *crew, struct lite_crew_job *job, u32 uid, work_func_t run,
		       gfp_t gfp)
{
	job->place = (struct lite_line_place){ .kind = uid };
	INIT_WORK(&job->work, run);
	job->part = lite_pool_hold(&crew->workers, uid, gfp);
	return job->part ? 0 : -ENOMEM;
}

/* Undo lite_crew_job_init(); the job is neither in line nor running. Also with spinlocks held. */
void lite_crew_job_exit(struct lite_crew *crew, struct lite_crew_job *job)
{
	lite_pool_drop(&crew->workers, job->part);
}

static struct lite_crew_job *lite_crew_job_of(struct lite_line_place *place)
{
	return container_of(place, struct lite_crew_job, place);
}

/* Take a worker for a job in line. Return: the job; NULL: no job may have one. */
static struct lite_crew_job *lite_crew_next(struct lite_crew *crew)
{
	struct lite_line_place *place;
	struct lite_crew_job *job;

	lockdep_assert_held(&crew->lock);
	list_for_each_entry(place, &crew->line.firsts, firsts) {
		job = lite_crew_job_of(place);
		if (!lite_pool_take_part(&crew->workers, job->part, 1))
			return job;
		/* If even a user without workers gets none, only root may. This bounds the loop. */
		if (!job->part->has)
			break;
	}
	place = lite_line_first(&crew->line, 0);
	job = place ? lite_crew_job_of(place) : NULL;
	return job && !lite_pool_take_part(&crew->workers, job->part, 1) ? job : NULL;
}

static void lite_crew_go_on(struct lite_crew *crew)
{
	struct lite_crew_job *job;

	lockdep_assert_held(&crew->lock);
	while ((job = lite_crew_next(crew))) {
		lite_line_leave(&job->place);
		queue_work(crew->wq, &job->work);
	}
}

/*
 * Queue a job, which runs once more if it is running. Context: process, also with spinlocks held.
 * Return: false: it was queued already.
 */
bool lite_crew_queue(struct lite_crew *crew, struct lite_crew_job *job)
{
	bool queue;

	spin_lock(&crew->lock);
	queue = !job->place.line && !work_pending(&job->work);
	if (queue) {
		lite_line_enter(&crew->line, &job->place, false);
		lite_crew_go_on(crew);
	}
	spin_unlock(&crew->lock);
	return queue;
}

/*
 * Take a job out of the queue; if it runs, it goes on. Context: process, also with spinlocks held.
 * Return: was it queued?
 */
bool lite_crew_cancel(struct lite_crew *crew, struct lite_crew_job *job)
{
	bool queued;

	spin_lock(&crew->lock);
	queued = job->place.line;
	if (queued) {
		lite_line_leave(&job->place);
	} else if (cancel_work(&job->work)) {
		queued = true;
		lite_pool_give_part(&crew->workers, job->part, 1);
		lite_crew_go_on(crew);
	}
	spin_unlock(&crew->lock);
	return queued;
}

/* Called by a job at its end, to free its worker. @job may be freed after that. */
void lite_crew_done(struct lite_crew *crew, struct lite_crew_job *job)
{
	spin_lock(&crew->lock);
	lite_pool_give_part(&crew->workers, job->part, 1);
	lite_crew_go_on(crew);
	spin_unlock(&crew->lock);
}
