/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A crew: workers for jobs that may take long, because they wait for other nodes. A user may have
 * any number of jobs, but no user gets all workers, which are a pool (pool.h). The other jobs are
 * in a line, where users take turns.
 */
#ifndef _LITE_CREW_H
#define _LITE_CREW_H

#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "line.h"
#include "pool.h"

struct lite_crew {
	spinlock_t lock; /* protects @line; outside of the pool's lock; process context only */
	struct lite_line line; /* jobs that no worker has taken, by uid */
	struct lite_pool workers;
	/*
	 * Also runs timers that queue jobs. A timer waits for nothing, so it takes no worker of the
	 * pool. Its owner stops it before lite_crew_exit().
	 */
	struct workqueue_struct *wq;
};

struct lite_crew_job {
	struct lite_line_place place;
	struct lite_pool_part *part; /* its user's part of the workers */
	struct work_struct work;
};

int lite_crew_init(struct lite_crew *crew, const char *name);
void lite_crew_init_on(struct lite_crew *crew, struct workqueue_struct *wq, u32 n);
void lite_crew_flush(struct lite_crew *crew);
void lite_crew_exit(struct lite_crew *crew);

int lite_crew_job_init(struct lite_crew *crew, struct lite_crew_job *job, u32 uid, work_func_t run,
		       gfp_t gfp);
void lite_crew_job_exit(struct lite_crew *crew, struct lite_crew_job *job);
bool lite_crew_queue(struct lite_crew *crew, struct lite_crew_job *job);
bool lite_crew_cancel(struct lite_crew *crew, struct lite_crew_job *job);
void lite_crew_done(struct lite_crew *crew, struct lite_crew_job *job);

#endif /* _LITE_CREW_H */
