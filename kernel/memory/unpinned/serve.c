// SPDX-License-Identifier: GPL-2.0
/*
 * Chunks of unpinned LMRs for mappers: LMR_CHUNK.
 *
 * A mapper of the LMR names a byte. If no chunk has it, one is made: pages are brought in, mapped
 * for the device, and made an LMR of their own that enters the table of chunks if the process still
 * has the pages then. The mapper is counted before it is answered, as for MAP.
 */
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "memory/home/home.h"
#include "memory/memory.h"
#include "unpinned.h"

/* Attempts per call; the mapper asks again after a pause. */
#define LITE_CHUNK_TRIES 4

/* Make the LMR of a chunk, of pages that were brought in. */
static int lite_chunk_lmr(struct lite_chunk *c, struct lite_bring *b)
{
	struct lite_unpinned *u = c->u;
	struct lite_memory *mem = u->mem;
	unsigned long life = lite_cluster_life(mem->cl);
	struct lite_origin from = {
		.of = u->owner->id,
		.base = (u64)b->first << PAGE_SHIFT,
	};
	struct lite_wire_create *req;
	struct lite_pinned *pin;
	struct lite_alloc *alloc;
	int err = lite_cluster_ready(mem->cl);

	if (err)
		return err;
	req = kzalloc(sizeof(*req), GFP_KERNEL);
	if (!req)
		return -ENOMEM;
	req->length = cpu_to_le64((u64)(b->end - b->first) << PAGE_SHIFT);
	req->cred.uid = cpu_to_le32(u->uid);
	pin = lite_pinned_borrow(mem, b->pages, b->end - b->first, b->writable);
	if (!IS_ERR(pin) && b->leased) {
		lite_lease_begin(pin, &u->lease);
		b->leased = false;
	}
	alloc = IS_ERR(pin) ? ERR_CAST(pin) : lite_pinned_adopt(mem, pin, u->uid);
	if (IS_ERR(alloc)) {
		kfree(req);
		return PTR_ERR(alloc);
	}
	from.alloc = alloc;
	c->lmr = lite_home_create(mem, NULL, req, &from, life, NULL);
	kfree(req);
	if (!IS_ERR(c->lmr)) {
		c->alloc = alloc;
		return 0;
	}
	lite_store_free(alloc);
	return PTR_ERR(c->lmr);
}

/* Make a chunk of pages that were brought in. */
static int lite_chunk_new(struct lite_unpinned *u, struct lite_bring *b)
{
	struct lite_chunk *c = kzalloc(sizeof(*c), GFP_KERNEL_ACCOUNT);
	int err;

	if (!c)
		return -ENOMEM;
	kref_init(&c->ref);
	init_completion(&c->ended);
	c->u = u;
	c->first = b->first;
	c->n = b->end - b->first;
	c->writable = b->writable;
	atomic_inc(&u->mem->n_chunks);
	err = lite_chunk_lmr(c, b);
	if (err) {
		kfree(c);
		lite_chunk_uncount(u->mem);
		return err;
	}
	c->parent = u->owner;
	refcount_inc(&c->parent->ref);
	err = lite_chunk_add(c, b);
	/* The chunk's LMR is still closed, so no node has mapped it. */
	if (err) {
		lite_pinned_unmap(u->mem, c->alloc->pinned, c->alloc->since);
		lite_chunk_drop(c);
	}
	return err;
}

/* Make a chunk with a page (@alone: only that). Return: 0: look it up; -EAGAIN: retry; or errno. */
static int lite_chunk_make(struct lite_unpinned *u, unsigned long page, bool write, bool alone)
{
	struct lite_bring *b = kzalloc(sizeof(*b), GFP_KERNEL);
	struct mem_cgroup *memcg, *own;
	int err;

	if (!b)
		return -ENOMEM;
	b->page = page;
	b->write = write;
	err = lite_bring_begin(u, b, alone);
	if (!err) {
		/* Charge it to the process's memory cgroup. */
		memcg = get_mem_cgroup_from_mm(u->mm);
		own = set_active_memcg(memcg);
		err = lite_bring_pages(u, b) ?: lite_chunk_new(u, b);
		if (b->leased)
			lite_lease_unpin(&u->lease, b->pages, b->end - b->first);
		set_active_memcg(own);
		mem_cgroup_put(memcg);
		lite_bring_end(u, b);
	}
	if (!err)
		lite_stat_inc(u->mem->stats, LITE_STAT_CHUNK_FAULTS);
	kfree(b);
	return err;
}

/* The LMR of the chunk that has a page, with a reference, or NULL. */
static struct lite_lmr *lite_chunk_get(struct lite_unpinned *u, unsigned long page, bool write,
				       bool *writable)
{
	struct lite_lmr *lmr = NULL;
	struct lite_chunk *c;

	spin_lock(&u->lock);
	c = lite_chunk_at(u, page);
	if (c && !c->ending && (c->writable || !write)) {
		lmr = c->lmr;
		refcount_inc(&lmr->ref);
		*writable = c->writable;
	}
	spin_unlock(&u->lock);
	return lmr;
}

static int lite_chunk_answer(struct lite_lmr *lmr, struct lite_conn *conn, bool writable,
			     void *reply)
{
	const struct lite_wire_map map = { .renew = cpu_to_le32(1) };
	u32 rights;

	return lite_mapper_add(lmr, conn, &map, &rights) ?:
	       lite_map_answer(lmr, conn, writable ? LITE_RIGHT_WRITE : 0, reply);
}

static int lite_chunk_serve(struct lite_unpinned *u, struct lite_conn *conn, unsigned long page,
			    bool write, void *reply)
{
	struct lite_lmr *lmr;
	bool writable;
	int tries, ret;

	/* One more round to look up what the last attempt has made. */
	for (tries = 0; tries <= LITE_CHUNK_TRIES; tries++) {
		lmr = lite_chunk_get(u, page, write, &writable);
		if (lmr) {
			ret = lite_chunk_answer(lmr, conn, writable, reply);
			/* The chunk may have no mapper: then nothing else ends it. */
			if (ret < 0)
				lite_chunk_unused(lmr);
			lite_lmr_put(lmr);
			/* The chunk has ended meanwhile. */
			if (ret != -ENOENT)
				return ret;
		} else if (tries < LITE_CHUNK_TRIES) {
			/* If neighbouring pages keep changing, bring in this page alone. */
			ret = lite_chunk_make(u, page, write, tries >= LITE_CHUNK_TRIES / 2);
			if (ret == -EBUSY && !tries)
				lite_unpinned_await(u);
			else if (ret && ret != -EAGAIN)
				return ret;
		}
	}
	return -EAGAIN;
}

int lite_serve_chunk(struct lite_memory *mem, struct lite_conn *conn, const void *req, void *reply)
{
	const struct lite_wire_chunk *c = req;
	struct lite_lmr *lmr = lite_lmr_get(mem, le64_to_cpu(c->id));
	u64 page = le64_to_cpu(c->offset) >> PAGE_SHIFT;
	int ret = 0;

	if (!lmr)
		return -ENOENT;
	/* The mapper checks its users' rights: when it maps the LMR, and when they change. */
	spin_lock(&lmr->lock);
	if (!lite_mapper_known(lmr, conn) || lmr->closed)
		ret = -ENOENT;
	else if (!lmr->unpinned || page >= lmr->unpinned->n_pages)
		ret = -EINVAL;
	spin_unlock(&lmr->lock);
	if (!ret)
		ret = lite_chunk_serve(lmr->unpinned, conn, page, le32_to_cpu(c->write), reply);
	lite_lmr_put(lmr);
	/* -EAGAIN is not sent to other nodes. */
	return ret == -EAGAIN ? -EBUSY : ret;
}
