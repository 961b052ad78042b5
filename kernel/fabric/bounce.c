// SPDX-License-Identifier: GPL-2.0
/*
 * Bounce pages: small transfers are copied through a page that stays mapped for DMA while the node
 * runs, which saves pinning and mapping.
 *
 * There is a pool per CPU, to which its pages return. If a CPU's pool is empty, the caller takes a
 * page from another pool. If all are empty, a page is made for the caller, charged to its memory
 * cgroup, and freed after use: the caller must not depend on other threads, which keep pages until
 * they get a processor and their turn (turn.c), and may have many in flight (issue.c). Without
 * memory for one (a cgroup at its limit, a full IOMMU), the caller tries again each jiffy, if it
 * may sleep.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "fabric.h"
#include "wait.h"

#define LITE_BOUNCES_PER_CPU 64

/* @free: a bit for each free page. */
struct lite_bounce_pool {
	atomic64_t free;
	struct lite_bounce bounce[LITE_BOUNCES_PER_CPU];
};

/* Map @page, which may be NULL, for @b. On failure frees it, and leaves @b as it was. */
static bool lite_bounce_map(struct lite_fabric *fab, struct lite_bounce *b, struct page *page)
{
	u32 since = lite_dma_since(fab);

	if (!page)
		return false;
	if (lite_dma_map_page(fab, page, LITE_BOUNCE_SIZE, &b->dma)) {
		__free_page(page);
		return false;
	}
	b->since = since;
	b->data = page_address(page);
	return true;
}

static void lite_bounce_unmap(struct lite_fabric *fab, struct lite_bounce *b)
{
	if (lite_dma_unmap_page(fab, b->dma, LITE_BOUNCE_SIZE, b->since))
		free_page((unsigned long)b->data);
}

static int lite_bounce_fill(struct lite_fabric *fab, struct lite_bounce_pool *pool, int cpu)
{
	int i;

	for (i = 0; i < LITE_BOUNCES_PER_CPU; i++) {
		struct page *page = alloc_pages_node(cpu_to_node(cpu), GFP_KERNEL, 0);
		struct lite_bounce *b = &pool->bounce[i];

		if (!lite_bounce_map(fab, b, page))
			return -ENOMEM;
		b->pool = pool;
		b->bit = BIT_ULL(i);
		atomic64_or(b->bit, &pool->free);
	}
	return 0;
}

/* Make the pools. May sleep. Return: 0 or -ENOMEM; lite_bounce_exit() frees what was made. */
int lite_bounce_init(struct lite_fabric *fab)
{
	int cpu, err;

	fab->bounce = alloc_percpu(struct lite_bounce_pool);
	if (!fab->bounce)
		return -ENOMEM;
	BUILD_BUG_ON(LITE_BOUNCES_PER_CPU > 8 * sizeof(atomic64_t));
	/* CPUs that come online later take from the other pools. */
	for_each_online_cpu(cpu) {
		err = lite_bounce_fill(fab, per_cpu_ptr(fab->bounce, cpu), cpu);
		if (err)
			return err;
	}
	return 0;
}

/* Free the pools; nothing is in flight. May sleep. */
void lite_bounce_exit(struct lite_fabric *fab)
{
	int cpu, i;

	if (!fab->bounce)
		return;
	for_each_possible_cpu(cpu) {
		struct lite_bounce_pool *pool = per_cpu_ptr(fab->bounce, cpu);

		for (i = 0; i < LITE_BOUNCES_PER_CPU; i++) {
			struct lite_bounce *b = &pool->bounce[i];

			if (b->data)
				lite_bounce_unmap(fab, b);
		}
	}
	free_percpu(fab->bounce);
	fab->bounce = NULL;
}

static __always_inline struct lite_bounce *lite_bounce_take(struct lite_bounce_pool *pool)
{
	s64 free = atomic64_read(&pool->free);
	int i;

	do {
		if (!free)
			return NULL;
		i = __ffs64(free);
	} while (!atomic64_try_cmpxchg_acquire(&pool->free, &free, free & ~BIT_ULL(i)));
	return &pool->bounce[i];
}

static struct lite_bounce *lite_bounce_steal(struct lite_fabric *fab)
{
	struct lite_bounce *b;
	int cpu;

	for_each_possible_cpu(cpu) {
		b = lite_bounce_take(per_cpu_ptr(fab->bounce, cpu));
		if (b)
			return b;
	}
	return NULL;
}

/* Take a bounce page. Process context. Return: NULL: none is free. */
struct lite_bounce *lite_bounce_tryget(struct lite_fabric *fab)
{
	struct lite_bounce *b = lite_bounce_take(raw_cpu_ptr(fab->bounce));

	if (!b)
		b = lite_bounce_steal(fab);
	if (b)
		lite_stat_inc(fab->stats, LITE_STAT_SLOTS_BUSY);
	return b;
}

/* Make a page that is in no pool, or NULL. */
static struct lite_bounce *lite_bounce_make(struct lite_fabric *fab, gfp_t gfp)
{
	struct lite_bounce *b = kzalloc(sizeof(*b), gfp | __GFP_ACCOUNT | __GFP_NOWARN);

	if (!b || !lite_bounce_map(fab, b, alloc_page(gfp | __GFP_ACCOUNT | __GFP_NOWARN))) {
		kfree(b);
		return NULL;
	}
	lite_stat_inc(fab->stats, LITE_STAT_SLOTS_BUSY);
	return b;
}

/* Take a bounce page, or wait for one. May sleep. Return: NULL: lite_given_up(). */
struct lite_bounce *lite_bounce_get(struct lite_fabric *fab)
{
	gfp_t gfp = GFP_KERNEL;
	struct lite_bounce *b;

	/* Only the first attempt may have the OOM killer look for a process of the cgroup. */
	while (!(b = lite_bounce_tryget(fab) ?: lite_bounce_make(fab, gfp)) && !lite_given_up()) {
		gfp |= __GFP_NORETRY;
		memalloc_retry_wait(GFP_KERNEL);
	}
	return b;
}

/* Take a bounce page. Process context. Return: NULL: there is no memory for one just now. */
struct lite_bounce *lite_bounce_get_nowait(struct lite_fabric *fab)
{
	return lite_bounce_tryget(fab) ?: lite_bounce_make(fab, GFP_NOWAIT);
}

/* Give a bounce page back; nothing is in flight on it. Process context, preemptible or not. */
void lite_bounce_put(struct lite_fabric *fab, struct lite_bounce *b)
{
	lite_stat_dec(fab->stats, LITE_STAT_SLOTS_BUSY);
	if (unlikely(!b->pool)) {
		lite_bounce_unmap(fab, b);
		kfree(b);
		return;
	}
	/* Accesses to the page come first; pairs with lite_bounce_take(). */
	smp_mb__before_atomic();
	atomic64_or(b->bit, &b->pool->free);
}

/*
 * An operation with a bounce page has failed; the caller gives the page back afterwards. If a fence
 * has failed, the device may still access the page, so another page replaces it; without memory for
 * one, lite_bounce_put() does not free the slot. Does not sleep.
 */
void lite_bounce_failed(struct lite_fabric *fab, struct lite_bounce *b)
{
	u64 dma = b->dma;
	u32 since = b->since;

	if (likely(since == lite_dma_since(fab)) || !b->pool)
		return;
	if (lite_bounce_map(fab, b, alloc_page(GFP_NOWAIT | __GFP_NOWARN)))
		lite_dma_unmap_page(fab, dma, LITE_BOUNCE_SIZE, since);
	else
		b->bit = 0;
}
