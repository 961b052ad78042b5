// SPDX-License-Identifier: GPL-2.0
/*
 * Leases: pages of unpinned LMRs that stay where they are for a while
 * (Documentation/interfaces/unpinned.rst, Leases). The writable pages of a chunk are pinned when
 * they are brought in, and unpinned after LITE_LEASE_MS, or when memory is short. Nothing relies on
 * a lease: it only keeps the kernel from taking some pages away.
 *
 * Pages are unpinned under lite_leases.lock. The end of a chunk waits for it, so the chunk stays.
 */
#include <linux/mm.h>
#include <linux/shrinker.h>
#include <linux/slab.h>

#include "compat.h"
#include "memory/memory.h"
#include "store.h"

/*
 * Pin @n pages of a process that were just brought in to be written, if they are still @pages. The
 * caller holds mmap_lock. May sleep. Return: are they pinned?
 */
bool lite_lease_pin(const struct lite_lease_terms *terms, unsigned long addr, struct page **pages,
		    unsigned long n)
{
	unsigned int flags = FOLL_LONGTERM | FOLL_WRITE;
	struct page **got;
	unsigned long i;
	bool ok = false;
	long pinned;

	if (!terms->max)
		return false;
	/* Pinning would migrate such pages, so that the chunk could not be made. */
	for (i = 0; i < n; i++) {
		if (is_zone_movable_page(pages[i]))
			return false;
	}
	if (!lite_locked_charge(terms->user, terms->mm, terms->max, n))
		return false;
	got = kmalloc_array(n, sizeof(*got), GFP_KERNEL);
	if (got) {
		pinned = pin_user_pages_remote(terms->mm, addr, n, flags, got, NULL);
		/* If the pages have changed, the chunk will not be made, either. */
		ok = pinned == (long)n && !memcmp(got, pages, n * sizeof(*got));
		if (!ok && pinned > 0)
			unpin_user_pages(got, pinned);
		kfree(got);
	}
	if (!ok)
		lite_locked_uncharge(terms->user, terms->mm, n);
	return ok;
}

/* Undo lite_lease_pin(). */
void lite_lease_unpin(const struct lite_lease_terms *terms, struct page **pages, unsigned long n)
{
	unpin_user_pages(pages, n);
	lite_locked_uncharge(terms->user, terms->mm, n);
}

/* Begin the lease of a chunk, after lite_lease_pin(). @terms outlive it. Context: process. */
void lite_lease_begin(struct lite_pinned *pin, const struct lite_lease_terms *terms)
{
	struct lite_leases *all = &pin->mem->leases;

	pin->user = terms->user;
	pin->mm = terms->mm;
	pin->lease_end = jiffies + msecs_to_jiffies(LITE_LEASE_MS);
	spin_lock(&all->lock);
	list_add_tail(&pin->lease, &all->list);
	WRITE_ONCE(all->n_pages, all->n_pages + pin->n_pages);
	spin_unlock(&all->lock);
	lite_stat_add(pin->mem->stats, LITE_STAT_LEASED_PAGES, pin->n_pages);
	queue_delayed_work(pin->mem->wq, &all->work, msecs_to_jiffies(LITE_LEASE_MS));
}

static void lite_lease_drop(struct lite_leases *all, struct lite_pinned *pin)
{
	u32 i;

	lockdep_assert_held(&all->lock);
	list_del_init(&pin->lease);
	WRITE_ONCE(all->n_pages, all->n_pages - pin->n_pages);
	/* What was written is marked dirty when the chunk ends. */
	for (i = 0; i < pin->n_runs; i++)
		unpin_user_page_range_dirty_lock(pin->runs[i].page, pin->runs[i].n, false);
	lite_locked_uncharge(pin->user, pin->mm, pin->n_pages);
	lite_stat_add(pin->mem->stats, LITE_STAT_LEASED_PAGES, -(s64)pin->n_pages);
}

/* A chunk ends: end its lease, if it has one. Context: process; does not wait. */
void lite_lease_end(struct lite_pinned *pin)
{
	struct lite_leases *all = &pin->mem->leases;

	spin_lock(&all->lock);
	if (!list_empty(&pin->lease))
		lite_lease_drop(all, pin);
	spin_unlock(&all->lock);
}

static struct lite_pinned *lite_lease_oldest(struct lite_leases *all)
{
	return list_first_entry_or_null(&all->list, struct lite_pinned, lease);
}

static void lite_leases_work(struct work_struct *work)
{
	struct lite_memory *mem = container_of(work, struct lite_memory, leases.work.work);
	struct lite_leases *all = &mem->leases;
	struct lite_pinned *pin;

	spin_lock(&all->lock);
	while ((pin = lite_lease_oldest(all)) && time_after_eq(jiffies, pin->lease_end)) {
		lite_lease_drop(all, pin);
		cond_resched_lock(&all->lock);
	}
	/* A new lease may have queued the work meanwhile, for a later time. */
	if (pin)
		mod_delayed_work(mem->wq, &all->work, pin->lease_end - jiffies);
	spin_unlock(&all->lock);
}

static unsigned long lite_leases_count(struct shrinker *shrinker, struct shrink_control *sc)
{
	struct lite_memory *mem = lite_shrinker_data(shrinker);

	return READ_ONCE(mem->leases.n_pages) ?: SHRINK_EMPTY;
}

/* Does not wait, except for the lock. */
static unsigned long lite_leases_scan(struct shrinker *shrinker, struct shrink_control *sc)
{
	struct lite_memory *mem = lite_shrinker_data(shrinker);
	struct lite_leases *all = &mem->leases;
	struct lite_pinned *pin;
	unsigned long n = 0;

	spin_lock(&all->lock);
	while (n < sc->nr_to_scan && (pin = lite_lease_oldest(all))) {
		n += pin->n_pages;
		lite_lease_drop(all, pin);
	}
	spin_unlock(&all->lock);
	return n ?: SHRINK_STOP;
}

/* Context: may sleep. Return: 0 or -ENOMEM. */
int lite_leases_init(struct lite_memory *mem)
{
	struct lite_leases *all = &mem->leases;

	spin_lock_init(&all->lock);
	INIT_LIST_HEAD(&all->list);
	INIT_DELAYED_WORK(&all->work, lite_leases_work);
	all->shrinker = lite_shrinker_new(lite_leases_count, lite_leases_scan, mem);
	return all->shrinker ? 0 : -ENOMEM;
}

/* No chunks are left. May sleep. */
void lite_leases_exit(struct lite_memory *mem)
{
	lite_shrinker_free(mem->leases.shrinker);
	cancel_delayed_work_sync(&mem->leases.work);
}
