// SPDX-License-Identifier: GPL-2.0
/*
 * Unpinned LMRs at their home: the table of chunks, and how chunks end. Registering notes where the
 * memory is; serve.c makes chunks when mappers ask for them. Before the kernel takes a page away
 * from the process, it calls lite_unpinned_invalidate() and waits until no node can reach the page.
 * Documentation/interfaces/unpinned.rst says how, and how long; memory-safety.rst, what keeps the
 * making of a chunk and the taking of its pages apart, and why nothing is allocated from a chunk's
 * mark to its end.
 *
 * One thread ends a chunk: it marks the chunk, which stays in the table until no node can reach its
 * pages. Other threads wait for that, so only a kernel thread may do it, which is sure to get a
 * processor: kernel threads that reclaim memory do it themselves, a worker does it for all others.
 *
 * The kernel removes a notifier only at a moment when no invalidation of the process is under way.
 * A process can put that off for ever, so the wait is left to workers that users share (a crew).
 * The notifier outlives the LMR, and perhaps the node: the jobs touch neither.
 */
#include <linux/sched/mm.h>
#include <linux/sched/user.h>
#include <linux/slab.h>

#include "memory/home/home.h"
#include "memory/memory.h"
#include "unpinned.h"
#include "wait.h"

/* Waits until invalidations are over; for all nodes. */
static struct lite_crew lite_quiets;

/* Unpinned LMRs that have ended, but still watch the memory of a process. */
static struct {
	spinlock_t lock;
	struct rb_root by_mm;
} lite_partings = { .lock = __SPIN_LOCK_UNLOCKED(lite_partings.lock), .by_mm = RB_ROOT };

/* Context: may sleep. Return: 0 or -ENOMEM. */
int lite_unpinned_init(void)
{
	return lite_crew_init(&lite_quiets, "lite-quiet");
}

/* All nodes are stopped. May sleep until no process is changing memory that was an unpinned LMR. */
void lite_unpinned_exit(void)
{
	lite_crew_exit(&lite_quiets);
}

static void lite_chunk_release(struct kref *ref)
{
	kfree(container_of(ref, struct lite_chunk, ref));
}

/* Free what a chunk has that no node can reach. */
static void lite_chunk_work(struct work_struct *work)
{
	struct lite_chunk *c = container_of(work, struct lite_chunk, work);
	struct lite_memory *mem = c->u->mem;

	lite_home_finish(c->lmr);
	lite_lmr_put(c->lmr);
	lite_store_free(c->alloc);
	lite_lmr_put(c->parent);
	kref_put(&c->ref, lite_chunk_release);
	lite_chunk_uncount(mem);
}

/* A chunk is freed, or the kernel no longer waits for one: lower mem->n_chunks. */
void lite_chunk_uncount(struct lite_memory *mem)
{
	if (atomic_dec_and_test(&mem->n_chunks))
		wake_up_var(&mem->n_chunks);
}

/*
 * Free a chunk that is not in the table and that no node can reach, and put its references @lmr,
 * @parent and @alloc. Context: process; does not wait.
 */
void lite_chunk_drop(struct lite_chunk *c)
{
	INIT_WORK(&c->work, lite_chunk_work);
	queue_work(c->u->mem->wq, &c->work);
}

/* The first chunk that has pages of a range, from index @i on; or NULL. */
static struct lite_chunk *lite_chunk_next(struct lite_unpinned *u, unsigned long *i,
					  unsigned long first, unsigned long last)
{
	struct lite_chunk *c;

	lockdep_assert_held(&u->lock);
	*i = max(*i, round_down(first, LITE_CHUNK_PAGES));
	for (c = xa_find(&u->chunks, i, last, XA_PRESENT); c;
	     c = xa_find_after(&u->chunks, i, last, XA_PRESENT)) {
		if (c->first + c->n > first)
			return c;
	}
	return NULL;
}

/* The chunk that has a page, or NULL. With u->lock. */
struct lite_chunk *lite_chunk_at(struct lite_unpinned *u, unsigned long page)
{
	unsigned long i = 0;

	return lite_chunk_next(u, &i, page, page);
}

static void lite_unpinned_release(struct kref *ref)
{
	struct lite_unpinned *u = container_of(ref, struct lite_unpinned, ref);

	lite_crew_job_exit(&lite_quiets, &u->quiet);
	lite_crew_job_exit(&lite_quiets, &u->part);
	xa_destroy(&u->chunks);
	mmdrop(u->mm);
	if (u->lease.max)
		free_uid(u->lease.user);
	kfree(u);
}

/* Have a worker note when the invalidations that have begun are over. Allocates nothing. */
static void lite_unpinned_ask(struct lite_unpinned *u)
{
	kref_get(&u->ref);
	if (!lite_crew_queue(&lite_quiets, &u->quiet))
		kref_put(&u->ref, lite_unpinned_release);
}

/* May an invalidation of these pages still be going on? If so, have a worker find out. */
static bool lite_unpinned_upset(struct lite_unpinned *u, unsigned long first, unsigned long last)
{
	u32 i;

	lockdep_assert_held(&u->lock);
	for (i = 0; i < u->n_upsets; i++) {
		if (u->upset[i].first <= last && first <= u->upset[i].last) {
			lite_unpinned_ask(u);
			return true;
		}
	}
	return false;
}

/*
 * Choose the pages of a new chunk (sets @b->first and @b->end), and begin to bring them in. @alone:
 * @b->page only. May sleep. Return: 0, then lite_bring_end() must follow; -EAGAIN: a chunk, perhaps
 * an ending one, has @b->page; -EBUSY: the process's memory is being changed there; -EFAULT: the
 * chunk that has it is read-only, and must be writable; -ENOENT: the LMR is ending.
 */
int lite_bring_begin(struct lite_unpinned *u, struct lite_bring *b, bool alone)
{
	unsigned long i = 0, last;
	struct lite_chunk *c;
	int err = 0;

	b->first = alone ? b->page : round_down(b->page, LITE_CHUNK_PAGES);
	b->end = alone ? b->page + 1 : min(b->first + LITE_CHUNK_PAGES, u->n_pages);
	b->still.mm = u->mm;
	b->still.invalidate_seq = 0;
	last = b->end - 1;
	spin_lock(&u->lock);
	if (u->dying)
		err = -ENOENT;
	else if (lite_unpinned_upset(u, b->first, last))
		err = -EBUSY;
	while (!err && (c = lite_chunk_next(u, &i, b->first, last))) {
		if (c->first > b->page)
			b->end = min(b->end, c->first);
		else if (c->first + c->n <= b->page)
			b->first = c->first + c->n;
		else
			/* The page is still read-only: mprotect(2) would have ended the chunk. */
			err = b->write && !c->writable && !c->ending ? -EFAULT : -EAGAIN;
		i++;
	}
	if (!err)
		list_add(&b->list, &u->brings);
	spin_unlock(&u->lock);
	return err;
}

/* Undo lite_bring_begin(). */
void lite_bring_end(struct lite_unpinned *u, struct lite_bring *b)
{
	spin_lock(&u->lock);
	list_del(&b->list);
	spin_unlock(&u->lock);
}

/*
 * Enter a chunk in the table, and let nodes map it, if the process still has its pages (@b). May
 * sleep. Return: 0; -EAGAIN: it has not, or another chunk has some; -ENOENT: the LMR ends; -ENOMEM.
 */
int lite_chunk_add(struct lite_chunk *c, const struct lite_bring *b)
{
	struct lite_unpinned *u = c->u;
	unsigned long i = 0;
	int err;

	/* Allocate now, because the lock is a spinlock. */
	err = xa_reserve(&u->chunks, c->first, GFP_KERNEL_ACCOUNT);
	if (err)
		return err;
	spin_lock(&u->lock);
	if (u->dying)
		err = -ENOENT;
	else if (b->still.invalidate_seq ||
		 lite_chunk_next(u, &i, c->first, c->first + c->n - 1))
		err = -EAGAIN;
	else if (xa_is_err(xa_store(&u->chunks, c->first, c, GFP_NOWAIT)))
		/* A chunk at this index has just ended, and the reserved memory went with it. */
		err = -EAGAIN;
	if (!err) {
		c->alloc->pinned->exposed = true;
		spin_lock(&c->lmr->lock);
		c->lmr->closed = false;
		spin_unlock(&c->lmr->lock);
	} else if (!xa_load(&u->chunks, c->first)) {
		/* Under the lock, or it might be the place of another chunk that is added. */
		xa_release(&u->chunks, c->first);
	}
	spin_unlock(&u->lock);
	if (!err)
		lite_stat_inc(u->mem->stats, LITE_STAT_CHUNKS);
	return err;
}

/* No node can reach the chunk any more: end it. */
static void lite_chunk_finish(struct lite_chunk *c)
{
	struct lite_unpinned *u = c->u;

	lite_pinned_unmap(u->mem, c->alloc->pinned, c->alloc->since);
	spin_lock(&u->lock);
	xa_erase(&u->chunks, c->first);
	spin_unlock(&u->lock);
	lite_stat_dec(u->mem->stats, LITE_STAT_CHUNKS);
	complete_all(&c->ended);
	lite_chunk_drop(c);
}

/* Wait for chunks that other threads are ending. */
static void lite_chunks_await(struct lite_unpinned *u, unsigned long first, unsigned long last)
{
	struct lite_chunk *c;
	unsigned long i = 0;
	bool ending;

	do {
		spin_lock(&u->lock);
		c = lite_chunk_next(u, &i, first, last);
		ending = c && c->ending;
		if (ending)
			kref_get(&c->ref);
		spin_unlock(&u->lock);
		if (ending) {
			wait_for_completion(&c->ended);
			kref_put(&c->ref, lite_chunk_release);
		}
		i++;
		cond_resched();
	} while (c);
}

/* Pages to be taken from all nodes; on the stack of the thread that waits. */
struct lite_taking {
	struct work_struct work;
	struct completion done; /* completed in the worker's last access */
	struct lite_unpinned *u;
	unsigned long first;
	unsigned long last;
	bool kernel;            /* the kernel waits; mem->n_chunks has been raised */
	bool here;              /* the thread that waits does the work itself */
	ktime_t begun;
};

/*
 * Take the pages: tell all mappers at once, each of all its chunks, and wait until they have let go
 * or are fenced (lite_ends_tell()). Allocates nothing.
 */
static void lite_taking_work(struct work_struct *work)
{
	struct lite_taking *t = container_of(work, struct lite_taking, work);
	unsigned int noreclaim = memalloc_noreclaim_save();
	struct lite_unpinned *u = t->u;
	struct lite_memory *mem = u->mem;
	struct lite_chunk *c, *tmp;
	unsigned long i = 0;
	LIST_HEAD(chunks);
	LIST_HEAD(ends);

	/* The lock is dropped for each chunk, because there may be very many. */
	do {
		spin_lock(&u->lock);
		c = lite_chunk_next(u, &i, t->first, t->last);
		if (c && !c->ending) {
			c->ending = true;
			list_add_tail(&c->list, &chunks);
		}
		spin_unlock(&u->lock);
		i++;
		cond_resched();
	} while (c);
	list_for_each_entry(c, &chunks, list) {
		lite_chunk_close(c->lmr, &ends);
		cond_resched();
	}
	lite_ends_tell(mem, &ends);
	list_for_each_entry_safe(c, tmp, &chunks, list) {
		list_del(&c->list);
		lite_chunk_finish(c);
		cond_resched();
	}
	lite_chunks_await(u, t->first, t->last);
	if (t->kernel) {
		lite_stat_inc(mem->stats, LITE_STAT_CHUNK_ENDS);
		lite_stat_add(mem->stats, LITE_STAT_CHUNK_WAIT,
			      ktime_to_us(ktime_sub(ktime_get(), t->begun)));
		lite_chunk_uncount(mem);
	}
	memalloc_noreclaim_restore(noreclaim);
	complete(&t->done);
}

/* Is this thread sure to get a processor? No: user threads, kernel threads in user cgroups. */
static bool lite_taking_here(void)
{
	return current->flags & PF_KTHREAD && !current->mm && task_nice(current) <= 0;
}

/*
 * Begin to take pages @t->first to @t->last. A worker marks the chunks, as other threads wait for
 * those, unless this thread is sure to get a processor. With u->lock, or active on the node.
 */
static void lite_taking_begin(struct lite_taking *t)
{
	INIT_WORK_ONSTACK(&t->work, lite_taking_work);
	init_completion(&t->done);
	t->begun = ktime_get();
	/* Decide this once: root may change the thread's nice value. */
	t->here = lite_taking_here();
	if (!t->here)
		queue_work(t->u->mem->takes_wq, &t->work);
}

/* Wait until the pages are taken. The node may be gone then, and is not touched. May sleep. */
static void lite_taking_end(struct lite_taking *t)
{
	if (t->here)
		lite_taking_work(&t->work);
	else
		wait_for_completion(&t->done);
	destroy_work_on_stack(&t->work);
}

static void lite_chunk_unused_work(struct work_struct *work)
{
	/* This queues @work again, for lite_chunk_work(). */
	lite_chunk_finish(container_of(work, struct lite_chunk, work));
}

/*
 * The LMR of a chunk may have lost its last mapper: if so, have the chunk end, because nothing else
 * may end it for long. May sleep; waits for nothing.
 */
void lite_chunk_unused(struct lite_lmr *lmr)
{
	unsigned long page = lmr->base >> PAGE_SHIFT;
	struct lite_lmr *parent = lite_lmr_get(lmr->mem, lmr->of);
	struct lite_unpinned *u;
	struct lite_chunk *c;

	/* NULL: the unpinned LMR, and so the chunk, has ended. */
	if (!parent)
		return;
	u = parent->unpinned;
	spin_lock(&u->lock);
	c = lite_chunk_at(u, page);
	if (c && c->lmr == lmr && !c->ending && lite_chunk_close_unused(lmr)) {
		c->ending = true;
		/* By a worker: the kernel may wait for it, and this may be a thread of any user. */
		INIT_WORK(&c->work, lite_chunk_unused_work);
		queue_work(u->mem->ends_wq, &c->work);
	}
	spin_unlock(&u->lock);
	lite_lmr_put(parent);
}

/* Note that an invalidation begins. If there are too many, merge it with the last one. */
static void lite_unpinned_note(struct lite_unpinned *u, unsigned long first, unsigned long last)
{
	struct lite_upset *upset = &u->upset[u->n_upsets];
	struct lite_bring *b;

	lockdep_assert_held(&u->lock);
	if (u->n_upsets < LITE_UPSETS) {
		u->n_upsets++;
	} else {
		upset--;
		first = min(first, upset->first);
		last = max(last, upset->last);
	}
	*upset = (struct lite_upset){ .number = ++u->upsets, .first = first, .last = last };
	list_for_each_entry(b, &u->brings, list) {
		/* lite_bring_locked() may be reducing the range. */
		if (READ_ONCE(b->first) <= last && first < READ_ONCE(b->end))
			WRITE_ONCE(b->still.invalidate_seq, 1);
	}
}

/* Wait until the invalidations, which may wait for mappers, are over, and forget them. */
static void lite_unpinned_quiet(struct work_struct *work)
{
	struct lite_unpinned *u = container_of(work, struct lite_unpinned, quiet.work);
	u32 i, n = 0;
	u64 begun;

	spin_lock(&u->lock);
	begun = u->upsets;
	spin_unlock(&u->lock);
	mmu_interval_read_begin(&u->notifier);
	spin_lock(&u->lock);
	for (i = 0; i < u->n_upsets; i++) {
		if (u->upset[i].number > begun)
			u->upset[n++] = u->upset[i];
	}
	u->n_upsets = n;
	WRITE_ONCE(u->quieted, begun);
	spin_unlock(&u->lock);
	smp_mb(); /* wake_up_var() looks for waiters without the lock */
	wake_up_var(&u->quieted);
	lite_crew_done(&lite_quiets, &u->quiet);
	kref_put(&u->ref, lite_unpinned_release);
}

/* Wait a jiffy at most for the invalidations that have begun: mostly the worker only has to run. */
void lite_unpinned_await(struct lite_unpinned *u)
{
	u64 begun;

	spin_lock(&u->lock);
	begun = u->upsets;
	spin_unlock(&u->lock);
	wait_var_event_timeout(&u->quieted, READ_ONCE(u->quieted) >= begun, 1);
}

static bool lite_unpinned_invalidate(struct mmu_interval_notifier *notifier,
				     const struct mmu_notifier_range *range, unsigned long seq)
{
	struct lite_unpinned *u = container_of(notifier, struct lite_unpinned, notifier);
	unsigned long end = min(range->end, u->addr + (u->n_pages << PAGE_SHIFT));
	unsigned long first = (max(range->start, u->addr) - u->addr) >> PAGE_SHIFT;
	unsigned long last = (end - 1 - u->addr) >> PAGE_SHIFT, i = 0;
	/* Only the OOM reaper must not wait: it then leaves the memory to the process's end. */
	bool blocks = mmu_notifier_range_blockable(range), any;
	struct lite_taking t = { .u = u, .first = first, .last = last, .kernel = true };

	spin_lock(&u->lock);
	mmu_interval_set_seq(notifier, seq);
	lite_unpinned_note(u, first, last);
	/* Now, so that the next fault need not ask first. */
	if (!u->dying)
		lite_unpinned_ask(u);
	any = lite_chunk_next(u, &i, first, last);
	if (any && blocks) {
		/* A chunk keeps the node. If another thread ends the last one, the count does. */
		atomic_inc(&u->mem->n_chunks);
		lite_taking_begin(&t);
	}
	spin_unlock(&u->lock);
	if (any && blocks)
		lite_taking_end(&t);
	return !any || blocks;
}

static const struct mmu_interval_notifier_ops lite_unpinned_ops = {
	.invalidate = lite_unpinned_invalidate,
};

LITE_TREE(lite_parting, struct lite_unpinned, parting, mm,
	  lite_order(*(const unsigned long *)key, *(const unsigned long *)has))

/* Do very many ended LMRs still watch the memory of a process, and so delay its changes? */
static bool lite_partings_many(const struct mm_struct *mm)
{
	struct rb_node *node;
	u32 n = 0;

	spin_lock(&lite_partings.lock);
	rb_for_each(node, &mm, &lite_partings.by_mm, lite_parting_cmp) {
		if (++n == LITE_UNPINNED_PARTING)
			break;
	}
	spin_unlock(&lite_partings.lock);
	return node;
}

/* Stop watching the process's memory. Waits until no thread is changing that. */
static void lite_unpinned_part(struct work_struct *work)
{
	struct lite_unpinned *u = container_of(work, struct lite_unpinned, part.work);

	mmu_interval_notifier_remove(&u->notifier);
	spin_lock(&lite_partings.lock);
	rb_erase(&u->parting, &lite_partings.by_mm);
	spin_unlock(&lite_partings.lock);
	lite_crew_done(&lite_quiets, &u->part);
	kref_put(&u->ref, lite_unpinned_release);
}

/*
 * Note memory of the current process, whole pages, for an unpinned LMR; touches neither the pages
 * nor @mem. @leased: pages may be pinned for a while when they are used. Waits for locks of the
 * process's memory, so call it outside the gate. May sleep; killable. Return: an object for
 * lite_unpinned_enter() or lite_unpinned_drop(); ERR_PTR: -EFAULT, -EOPNOTSUPP, -ENOMEM; -EBUSY:
 * too many ended LMRs watch the memory; -ERESTARTNOINTR (an io_uring command: -EINTR): a signal.
 */
struct lite_unpinned *lite_unpinned_new(struct lite_memory *mem, unsigned long addr, u64 length,
					bool leased)
{
	struct lite_unpinned *u;
	int err;

	if (!access_ok((void __user *)addr, length))
		return ERR_PTR(-EFAULT);
	err = lite_unpinned_check(current->mm, addr, addr + length);
	if (err)
		return ERR_PTR(err);
	if (lite_partings_many(current->mm))
		return ERR_PTR(-EBUSY);
	u = kzalloc(sizeof(*u), GFP_KERNEL_ACCOUNT);
	if (!u)
		return ERR_PTR(-ENOMEM);
	kref_init(&u->ref);
	u->mem = mem;
	u->mm = current->mm;
	u->addr = addr;
	u->n_pages = length >> PAGE_SHIFT;
	INIT_LIST_HEAD(&u->reg.list);
	INIT_LIST_HEAD(&u->brings);
	spin_lock_init(&u->lock);
	xa_init(&u->chunks);
	err = lite_crew_job_init(&lite_quiets, &u->quiet, lite_current_uid(), lite_unpinned_quiet,
				 GFP_KERNEL);
	if (err)
		goto err_free;
	err = lite_crew_job_init(&lite_quiets, &u->part, lite_current_uid(), lite_unpinned_part,
				 GFP_KERNEL);
	if (err)
		goto err_quiet;
	/* The kernel does not report an invalidation that began before: note one of all pages. */
	spin_lock(&u->lock);
	lite_unpinned_note(u, 0, u->n_pages - 1);
	spin_unlock(&u->lock);
	err = mmu_interval_notifier_insert(&u->notifier, u->mm, addr, length, &lite_unpinned_ops);
	/* A signal came before the mm had its first notifier: restart the system call. */
	if (err == -EINTR && !lite_wait_is_command())
		err = -ERESTARTNOINTR;
	if (err)
		goto err_part;
	mmgrab(u->mm);
	u->lease.mm = u->mm;
	/* The rest of the limit is for what must be pinned. */
	u->lease.max = leased ? lite_locked_limit() / 2 : 0;
	if (u->lease.max)
		u->lease.user = get_uid(current_user());
	/* Now, so that the first fault need not wait for the answer. */
	lite_unpinned_ask(u);
	return u;

err_part:
	lite_crew_job_exit(&lite_quiets, &u->part);
err_quiet:
	lite_crew_job_exit(&lite_quiets, &u->quiet);
err_free:
	kfree(u);
	return ERR_PTR(err);
}

/* Undo lite_unpinned_new(), if not entered or after the end. Does not touch the node, or wait. */
void lite_unpinned_drop(struct lite_unpinned *u)
{
	spin_lock(&lite_partings.lock);
	rb_add(&u->parting, &lite_partings.by_mm, lite_parting_less);
	spin_unlock(&lite_partings.lock);
	lite_crew_queue(&lite_quiets, &u->part);
}

/* Note the LMR that owns the memory, before that LMR is published. */
void lite_unpinned_begin(struct lite_unpinned *u, struct lite_lmr *owner, u64 id)
{
	u->owner = owner;
	u->reg.lmr = id;
}

/* Take all pages from all nodes, which may ask for them again. May sleep; allocates nothing. */
void lite_unpinned_recall(struct lite_unpinned *u)
{
	struct lite_taking t = { .u = u, .first = 0, .last = u->n_pages - 1 };

	lite_taking_begin(&t);
	lite_taking_end(&t);
}

/* The LMR ends: take all pages from all nodes. Called once. May sleep. */
void lite_unpinned_end(struct lite_unpinned *u)
{
	spin_lock(&u->lock);
	u->dying = true;
	spin_unlock(&u->lock);
	lite_unpinned_recall(u);
	write_lock(&u->mem->runs_lock);
	list_del(&u->reg.list);
	rb_erase(&u->node, &u->mem->unpinned);
	write_unlock(&u->mem->runs_lock);
}

/*
 * Free the object, and end it first if its LMR has not; NULL and ERR_PTR are ignored. May sleep,
 * but does not wait for changes of the process's memory.
 */
void lite_unpinned_free(struct lite_unpinned *u)
{
	if (IS_ERR_OR_NULL(u))
		return;
	if (!u->dying)
		lite_unpinned_end(u);
	lite_limit_give(&u->mem->limit, u->uid, sizeof(*u));
	lite_unpinned_drop(u);
}
