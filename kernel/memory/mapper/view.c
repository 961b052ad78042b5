// SPDX-License-Identifier: GPL-2.0
/*
 * User mappings of LMRs (mmap): how their pages leave page tables.
 *
 * A page fault (handle/fault.c) puts its view on the mapping's list of views that have pages. When
 * the mapping ends, for whatever reason, lite_mapping_drain() waits for the faults in flight; later
 * faults cannot enter the mapping. It then removes the pages of all listed views from page tables
 * before it returns. The next fault renews the handle, and so finds the LMR's new place and rights.
 *
 * unmap_mapping_range() is enough: it flushes an entry through which a CPU has written from all
 * TLBs under the page table lock. fork() cannot hide a copy from it, because the kernel inserts the
 * child's VMA behind the parent's before it copies entries. Each view has its own inode, so the
 * whole file can be unmapped. Each page has its own reference count (store.c): a page that is
 * pinned when the LMR is freed is not reused before it is unpinned.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/wait_bit.h>

#include "memory/memory.h"
#include "memory/store/store.h"
#include "mapping.h"

/* The view's last VMA is gone. On return nothing uses the view or its inode any more. May sleep. */
void lite_view_exit(struct lite_view *v)
{
	spin_lock(&v->mem->views_lock);
	list_del_init(&v->list);
	v->m = NULL;
	spin_unlock(&v->mem->views_lock);
	/* lite_mapping_zap_work() may still be using the inode. */
	wait_var_event(&v->zapping, !atomic_read(&v->zapping));
}

/* List the view among those with pages of @m, which the caller has entered. Context: process. */
int lite_view_attach(struct lite_view *v, struct lite_mapping *m, bool write)
{
	bool end = v->offset + PAGE_ALIGN(v->length) >= m->length;
	int err = 0;

	spin_lock(&v->mem->views_lock);
	if (!v->m) {
		v->m = m;
		list_add(&v->list, &m->views);
		m->tail |= write && end && !PAGE_ALIGNED(m->length);
	} else if (WARN_ON_ONCE(v->m != m)) {
		/* The handle gets its next mapping only after the previous one was drained. */
		err = -EIO;
	}
	spin_unlock(&v->mem->views_lock);
	return err;
}

/*
 * Find the page at an offset. @n: pages wanted; reduced to contiguous ones. Only the LMR's last
 * page may be partly outside of its extent: the rest holds zeroes or what users have written there.
 * Context: process. Return: the page; ERR_PTR: -ERANGE, -ESTALE, -EREMOTE, -EOPNOTSUPP.
 */
struct page *lite_view_page(const struct lite_mapping *m, u64 offset, size_t *n)
{
	const struct lite_extent *e;
	size_t bytes = *n << PAGE_SHIFT;
	struct page *page;
	u64 in, left;

	if (m->chunked || m->of)
		return ERR_PTR(-EOPNOTSUPP);
	if (offset >= m->length)
		return ERR_PTR(-ERANGE);
	e = lite_extent_at(m, offset);
	if (!m->share[e->share].local)
		return ERR_PTR(m->share[e->share].lost ? -ESTALE : -EREMOTE);
	in = offset - e->start;
	left = e->length - in;
	if (offset + left == m->length)
		left = round_up(left, PAGE_SIZE);
	bytes = min_t(u64, bytes, round_down(left, PAGE_SIZE));
	if (!bytes)
		return ERR_PTR(-EREMOTE);
	page = lite_store_page(m->mem, e->addr + in, &bytes);
	if (!page)
		return ERR_PTR(-EOPNOTSUPP);
	*n = bytes >> PAGE_SHIFT;
	return page;
}

/* Zero the last page beyond the end, where users may have written: RESIZE relies on zeroes. */
static void lite_mapping_wipe(struct lite_mapping *m)
{
	size_t in = offset_in_page(m->length), n = 1;
	struct page *page;

	if (!m->tail)
		return;
	m->tail = false;
	page = lite_view_page(m, m->length - in, &n);
	if (!IS_ERR(page))
		memset(page_address(page) + in, 0, PAGE_SIZE - in);
}

/* Most operations end within this time if their threads have a processor. */
#define LITE_DRAIN_SOON max(HZ / 50, 1)

/* Have the poller, too, take the completions of operations on a mapping. */
static void lite_mapping_attend(const struct lite_mapping *m)
{
	struct lite_conn *conn;
	u32 i;

	lite_fabric_attend(m->mem->fab);
	for (i = 0; i < m->n_shares; i++) {
		struct lite_peer *peer = m->share[i].peer;

		conn = peer ? lite_peer_conn_get(peer) : NULL;
		if (!conn)
			continue;
		lite_conn_attend(conn);
		lite_conn_put(conn);
	}
	conn = lite_cluster_self_conn_tryget(m->mem->cl);
	if (!conn)
		return;
	lite_conn_attend(conn);
	lite_conn_put_live(conn);
}

/* A work item, as this takes long, others wait for it, and a user's thread may lack a processor. */
void lite_mapping_zap_work(struct work_struct *work)
{
	struct lite_mapping *m = container_of(work, struct lite_mapping, zap_work);
	struct lite_memory *mem = m->mem;
	struct lite_view *v;

	for (;;) {
		spin_lock(&mem->views_lock);
		v = list_first_entry_or_null(&m->views, struct lite_view, list);
		if (v) {
			list_del_init(&v->list);
			v->m = NULL;
			atomic_inc(&v->zapping);
		}
		spin_unlock(&mem->views_lock);
		if (!v)
			break;
		unmap_mapping_range(v->inode->i_mapping, 0, 0, 1);
		if (atomic_dec_and_test(&v->zapping))
			wake_up_var(&v->zapping);
	}
	lite_mapping_wipe(m);
}

/*
 * Wait until a mapping that has left ACTIVE is unused: on return no operation is in flight on it,
 * and no page table has a page of it. May sleep.
 */
void lite_mapping_drain(struct lite_mapping *m)
{
	/* Wait for devices, but not for the threads that posted, which may lack a processor. */
	if (!wait_for_completion_timeout(&m->drained, LITE_DRAIN_SOON)) {
		lite_mapping_attend(m);
		wait_for_completion(&m->drained);
		lite_fabric_attend_end(m->mem->fab);
	}
	/* Operations enter a chunk before they leave the LMR, so none can enter one any more. */
	lite_chunks_retire(m);
	/* Else there is nothing to do, or flush_work() waits for another caller's item. */
	if (!list_empty_careful(&m->views) || smp_load_acquire(&m->tail))
		queue_work(m->mem->views_wq, &m->zap_work);
	flush_work(&m->zap_work);
}
