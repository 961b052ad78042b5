// SPDX-License-Identifier: GPL-2.0
/*
 * Memory for LMRs: physically contiguous pieces, as large as the page allocator provides, zeroed
 * and mapped for the device.
 *
 * Pages are charged (limit.c) before they are allocated and uncharged after they are freed. The
 * store frees them when the home asks for it, once every mapper has let go or is fenced; when the
 * home's incarnation is over; or when the home never learned of them (lite_store_session_gone()).
 *
 * A piece that a process maps is split into pages with a reference count each. They are freed one
 * by one: a page that is still in a page table or pinned is reused only after its last reference is
 * gone, its neighbours at once. Otherwise one pinned page could keep 4 MB that no limit counts.
 */
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "memory/memory.h"
#include "store.h"

/* 4 MB: within the limit of the page allocator on all supported kernels. */
#define LITE_PIECE_ORDER 10
/* Entries looked at per hold of the table's lock. */
#define LITE_STORE_LOOK 64
/* Initial size of the table of pieces. */
#define LITE_PIECES_FIRST 64
/* Metadata of a piece: table entries. */
#define LITE_PIECE_COST (sizeof(struct lite_piece) + sizeof(struct lite_extent))

/*
 * Grow a table, if it is full, to have room for one more entry of @size bytes. @n: entries in use;
 * @room: entries allocated, updated; @first: entries to allocate at first. May sleep. Return: the
 * table, which may have moved; NULL: no memory, and @table is unchanged.
 */
void *lite_table_grow(void *table, size_t size, u32 n, u32 *room, u32 first)
{
	u32 more = *room ? *room * 2 : first;
	void *larger;

	if (n < *room)
		return table;
	larger = kvmalloc_array(more, size, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!larger)
		return NULL;
	if (n)
		memcpy(larger, table, n * size);
	kvfree(table);
	*room = more;
	return larger;
}

static void lite_piece_free(const struct lite_piece *p)
{
	unsigned long i;

	if (!page_private(p->page)) {
		__free_pages(p->page, p->order);
		return;
	}
	/* Split by lite_store_page(): pages still pinned stay in use. */
	set_page_private(p->page, 0);
	for (i = 0; i < 1UL << p->order; i++)
		__free_page(p->page + i);
}

static bool lite_piece_less(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct lite_piece, rb)->dma < rb_entry(b, struct lite_piece, rb)->dma;
}

/* Enter pieces, which must not move any more, in the tree for lite_piece_find(). May sleep. */
static void lite_pieces_enter(struct lite_memory *mem, struct lite_alloc *alloc)
{
	u32 i;

	for (i = 0; i < alloc->n_pieces; i++) {
		write_lock(&mem->runs_lock);
		rb_add(&alloc->pieces[i].rb, &mem->pieces, lite_piece_less);
		write_unlock(&mem->runs_lock);
		cond_resched();
	}
}

static int lite_pieces_alloc(struct lite_memory *mem, struct lite_alloc *alloc)
{
	/* Zeroed: never leak old contents. Fail rather than wake the OOM killer. */
	const gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN | __GFP_RETRY_MAYFAIL;
	u64 left = alloc->bytes >> PAGE_SHIFT;
	u32 order = min_t(u32, LITE_PIECE_ORDER, ilog2(mem->fab->map_max >> PAGE_SHIFT));
	u32 first = min_t(u64, left, LITE_PIECES_FIRST);
	struct lite_piece piece, *pieces;
	u32 room = 0;
	int err;

	while (left) {
		if (lite_given_up())
			return -EINTR;
		pieces = lite_table_grow(alloc->pieces, sizeof(*pieces), alloc->n_pieces, &room,
					 first);
		if (!pieces)
			return -ENOMEM;
		alloc->pieces = pieces;
		while (left < 1ULL << order)
			order--;
		/* Do not try hard for large pieces. */
		piece.page = alloc_pages(order ? (gfp & ~__GFP_RETRY_MAYFAIL) | __GFP_NORETRY : gfp,
					 order);
		if (!piece.page) {
			if (!order--)
				return -ENOMEM;
			continue;
		}
		piece.order = order;
		set_page_private(piece.page, 0);
		err = lite_dma_map_page(mem->fab, piece.page, PAGE_SIZE << order, &piece.dma);
		if (err) {
			lite_piece_free(&piece);
			/* Smaller pieces may still find room in the IOMMU. */
			if (!order--)
				return err;
			continue;
		}
		alloc->pieces[alloc->n_pieces++] = piece;
		left -= 1ULL << order;
		cond_resched();
	}
	return 0;
}

/*
 * Allocate @n extents, and charge @cost bytes of metadata for each but the first, which
 * lite_store_new() has charged. May sleep. Return: 0; -ENOSPC, -EDQUOT, -ENOMEM.
 */
int lite_store_extents(struct lite_alloc *alloc, u32 n, size_t cost)
{
	u64 bytes = (u64)(n - 1) * cost;
	int err = 0;

	if (bytes)
		err = lite_limit_take(&alloc->mem->limit, alloc->uid, bytes);
	if (err)
		return err;
	alloc->charged += bytes;
	alloc->extents = kvmalloc_array(n, sizeof(*alloc->extents),
					GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	return alloc->extents ? 0 : -ENOMEM;
}

/*
 * Drop a reference; NULL is ignored. The last put unmaps and frees the pages; by then no node can
 * reach them. A copy in flight may hold a reference a little longer. May sleep.
 */
void lite_store_free(struct lite_alloc *alloc)
{
	struct lite_memory *mem;
	u64 lost = 0;
	u32 i;

	if (!alloc || !refcount_dec_and_test(&alloc->ref))
		return;
	mem = alloc->mem;
	for (i = 0; i < alloc->n_pieces; i++) {
		struct lite_piece *p = &alloc->pieces[i];
		size_t size = PAGE_SIZE << p->order;

		write_lock(&mem->runs_lock);
		rb_erase(&p->rb, &mem->pieces);
		write_unlock(&mem->runs_lock);
		if (lite_dma_unmap_page(mem->fab, p->dma, size, alloc->since))
			lite_piece_free(p);
		else
			lost += size;
		cond_resched();
	}
	if (alloc->pinned || alloc->blocks) {
		write_lock(&mem->runs_lock);
		list_del_init(&alloc->reg.list);
		write_unlock(&mem->runs_lock);
	} else {
		lite_stat_add(mem->stats, LITE_STAT_LMR_BYTES, -(s64)alloc->bytes);
	}
	if (alloc->pinned)
		lite_pinned_free(mem, alloc->pinned, alloc->since);
	for (i = 0; i < alloc->n_blocks; i++)
		lite_store_free(alloc->blocks[i]);
	kvfree(alloc->blocks);
	lite_stat_dec(mem->stats, LITE_STAT_ALLOCS);
	kvfree(alloc->pieces);
	kvfree(alloc->extents);
	lite_limit_free(&mem->limit, alloc->uid, alloc, alloc->charged);
	lite_limit_lose(&mem->limit, lost);
}

static struct lite_alloc *lite_store_find(struct lite_memory *mem, u64 id, u32 home)
{
	struct lite_alloc *alloc = xa_load(&mem->allocs, id);

	lockdep_assert_held(&mem->allocs.xa_lock);
	return alloc && alloc->home == home ? alloc : NULL;
}

/*
 * Find memory of @home. @take: also remove it from the table. Context: process. Return: the memory,
 * with a reference for lite_store_free() (with @take, the table's), or NULL.
 */
struct lite_alloc *lite_store_get(struct lite_memory *mem, u64 id, u32 home, bool take)
{
	struct lite_alloc *alloc;

	xa_lock(&mem->allocs);
	alloc = lite_store_find(mem, id, home);
	if (alloc && take)
		__xa_erase(&mem->allocs, id);
	else if (alloc)
		refcount_inc(&alloc->ref);
	xa_unlock(&mem->allocs);
	return alloc;
}

/*
 * Enter memory into the table, which takes a reference of its own; or, if @err says that it is
 * incomplete, free it. May sleep. Return: @alloc; ERR_PTR(@err or -ENOMEM): the reference is gone.
 */
struct lite_alloc *lite_store_enter(struct lite_alloc *alloc, int err)
{
	if (!err) {
		refcount_inc(&alloc->ref);
		err = xa_err(xa_store(&alloc->mem->allocs, alloc->id, alloc, GFP_KERNEL_ACCOUNT));
		if (!err)
			return alloc;
		lite_store_free(alloc);
	}
	lite_store_free(alloc);
	return ERR_PTR(err);
}

/*
 * Allocate the object for @bytes (whole pages) without the memory. Charge @charged bytes for the
 * pages (@bytes or 0), and the metadata of the object and of one piece. May sleep. Return: the
 * object, for lite_store_enter() or lite_store_free(); ERR_PTR: -ENOSPC, -EDQUOT, -ENOMEM.
 */
struct lite_alloc *lite_store_new(struct lite_memory *mem, u32 home, u64 home_incarnation,
				  u64 bytes, u64 charged, u32 uid)
{
	struct lite_alloc *alloc;

	charged += sizeof(*alloc) + LITE_INDEX_COST + LITE_PIECE_COST;
	alloc = lite_limit_alloc(&mem->limit, uid, sizeof(*alloc), charged);
	if (IS_ERR(alloc))
		return alloc;
	refcount_set(&alloc->ref, 1);
	INIT_LIST_HEAD(&alloc->reg.list);
	alloc->mem = mem;
	alloc->id = atomic64_inc_return(&mem->ids);
	alloc->home = home;
	alloc->home_incarnation = home_incarnation;
	alloc->uid = uid;
	alloc->bytes = bytes;
	alloc->charged = charged;
	lite_stat_inc(mem->stats, LITE_STAT_ALLOCS);
	return alloc;
}

/*
 * Refuse early an allocation that would only push other users out of memory. Before that, free kept
 * blocks of arenas, which count as used. May sleep. Return: 0, -ENOMEM.
 */
int lite_store_room(struct lite_memory *mem, u32 uid, u64 bytes)
{
	long free = max(si_mem_available(), 0L);
	u64 wanted = bytes >> PAGE_SHIFT;

	if (wanted <= free)
		return 0;
	/* Do not look again: per-CPU counters may be late in showing what was freed. */
	wanted = (wanted - free) << PAGE_SHIFT;
	return mem->limit.spare && mem->limit.spare(&mem->limit, uid, true, wanted) ? 0 : -ENOMEM;
}

/*
 * Allocate @bytes of memory (whole pages, not 0), but do not enter it in the table. May sleep;
 * killable. Return: the memory, for lite_store_free(); ERR_PTR: -ENOSPC, -EDQUOT, -ENOMEM, -EINTR.
 */
struct lite_alloc *lite_store_make(struct lite_memory *mem, u32 home, u64 home_incarnation,
				   u64 bytes, u32 uid)
{
	struct lite_alloc *alloc;
	int err;
	u32 i;

	alloc = lite_store_new(mem, home, home_incarnation, bytes, bytes, uid);
	if (IS_ERR(alloc))
		return alloc;
	alloc->since = lite_dma_since(mem->fab);
	lite_stat_add(mem->stats, LITE_STAT_LMR_BYTES, bytes);
	err = lite_store_room(mem, uid, bytes) ?: lite_pieces_alloc(mem, alloc);
	lite_pieces_enter(mem, alloc);
	err = err ?: lite_store_extents(alloc, alloc->n_pieces, LITE_PIECE_COST);
	for (i = 0; i < alloc->n_pieces && !err; i++)
		lite_extent_append(alloc->extents, &alloc->n_extents, alloc->pieces[i].dma,
				   PAGE_SIZE << alloc->pieces[i].order, 0);
	if (err) {
		lite_store_free(alloc);
		return ERR_PTR(err);
	}
	return alloc;
}

/*
 * Allocate @length bytes, not 0, for a part of an LMR, and enter them in the table. @session: of
 * the request; 0: this node is the home. May sleep; killable. Return: the memory, with a reference
 * for lite_store_free() (the table's may go any time); ERR_PTR: -ENOSPC, -EDQUOT, -ENOMEM, -EINTR.
 */
struct lite_alloc *lite_store_alloc(struct lite_memory *mem, u32 home, u64 home_incarnation,
				    u64 session, u64 length, u32 uid)
{
	struct lite_alloc *alloc;

	alloc = lite_store_make(mem, home, home_incarnation, round_up(length, PAGE_SIZE), uid);
	if (IS_ERR(alloc))
		return alloc;
	alloc->session = session;
	return lite_store_enter(alloc, 0);
}

/* Copy out the piece that contains a device address. @n: reduced to its bytes from there on. */
static bool lite_piece_find(struct lite_memory *mem, u64 dma, size_t *n, struct lite_piece *piece)
{
	const struct lite_piece *p;
	struct rb_node *rb;

	read_lock(&mem->runs_lock);
	rb = mem->pieces.rb_node;
	while (rb) {
		p = rb_entry(rb, struct lite_piece, rb);
		if (dma >= p->dma && dma - p->dma < PAGE_SIZE << p->order)
			break;
		rb = dma < p->dma ? rb->rb_left : rb->rb_right;
	}
	if (rb) {
		*piece = *p;
		*n = min_t(u64, *n, p->dma + (PAGE_SIZE << p->order) - dma);
	}
	read_unlock(&mem->runs_lock);
	return rb;
}

/*
 * Find the page at a device address, for a page table. @n: bytes wanted; reduced to what is
 * contiguous. A page in a page table can be pinned, so it needs its own reference count: the first
 * call splits the piece. Most pieces are never split. Context: process; the caller keeps the memory
 * from being freed. Return: the page; NULL: not the store's own memory, or not a whole page.
 */
struct page *lite_store_page(struct lite_memory *mem, u64 dma, size_t *n)
{
	struct lite_piece p;

	if (!lite_piece_find(mem, dma, n, &p) || !PAGE_ALIGNED(dma - p.dma) || *n < PAGE_SIZE)
		return NULL;
	spin_lock(&mem->split_lock);
	if (!page_private(p.page)) {
		split_page(p.page, p.order);
		set_page_private(p.page, 1);
	}
	spin_unlock(&mem->split_lock);
	return p.page + ((dma - p.dma) >> PAGE_SHIFT);
}

/*
 * Does only the store have references to the pages? The memory is in no page table and no node can
 * reach it; so if the answer is yes, it stays yes. Context: any.
 */
bool lite_store_unpinned(const struct lite_alloc *alloc)
{
	unsigned long i;
	u32 k;

	for (k = 0; k < alloc->n_pieces; k++) {
		const struct lite_piece *p = &alloc->pieces[k];

		/* Never in a page table; see lite_store_page(). */
		if (!page_private(p->page))
			continue;
		for (i = 0; i < 1UL << p->order; i++)
			if (page_count(p->page + i) != 1)
				return false;
	}
	/* Order after all uses by other references. Pairs with the release in put_page(). */
	smp_acquire__after_ctrl_dep();
	return true;
}

/* Zero memory that only the caller can access. May sleep. */
void lite_store_zero(const struct lite_alloc *alloc)
{
	u32 i;

	for (i = 0; i < alloc->n_pieces; i++) {
		memset(page_address(alloc->pieces[i].page), 0, PAGE_SIZE << alloc->pieces[i].order);
		cond_resched();
	}
}

/* As lite_store_address(), but of the store's own memory only. */
static void *lite_piece_address(struct lite_memory *mem, u64 dma, size_t *n)
{
	struct lite_piece p;

	return lite_piece_find(mem, dma, n, &p) ? page_address(p.page) + (dma - p.dma) : NULL;
}

/*
 * Translate device address @dma of this store, registered memory included, to the kernel's address.
 * @n: bytes wanted; reduced to what is contiguous. Context: process; the caller keeps the memory
 * from being freed. Return: the address; NULL: @dma is not in use here.
 */
void *lite_store_address(struct lite_memory *mem, u64 dma, size_t *n)
{
	return lite_piece_address(mem, dma, n) ?: lite_pinned_address(mem, dma, n);
}

/*
 * As lite_store_address(), but @n may extend over several pieces, if they follow each other for the
 * device and for the kernel. For tables of addresses. May sleep.
 */
void *lite_store_whole(struct lite_memory *mem, u64 dma, size_t *n)
{
	size_t want = *n, more;
	void *base = lite_piece_address(mem, dma, n);

	if (!base)
		return lite_pinned_address(mem, dma, n);
	for (; *n < want; *n += more) {
		more = want - *n;
		if (lite_piece_address(mem, dma + *n, &more) != base + *n)
			break;
		cond_resched();
	}
	return base;
}

/*
 * Remove the next entry from @id on: of an incarnation of a home or, if @session is not 0, an
 * unconfirmed one of that session. A handler that enters one later checks that session.
 */
static struct lite_alloc *lite_store_take_next(struct lite_memory *mem, unsigned long *id, u32 home,
					       u64 incarnation, u64 session)
{
	struct lite_alloc *alloc;
	u32 looked;
	bool found;

	do {
		found = false;
		looked = 0;
		xa_lock(&mem->allocs);
		xa_for_each_start(&mem->allocs, *id, alloc, *id) {
			found = session ? alloc->session == session && !alloc->confirmed :
					  alloc->home == home &&
						  alloc->home_incarnation == incarnation;
			if (found)
				__xa_erase(&mem->allocs, *id);
			if (found || ++looked == LITE_STORE_LOOK)
				break;
		}
		xa_unlock(&mem->allocs);
		cond_resched();
	} while (!found && alloc);
	return alloc;
}

/*
 * An incarnation of a home is over: free its memory. The store does not know the mappers, which may
 * not have noticed yet: so it fences all peers, which can connect again at once, and retires this
 * node's own mappings from @home. May sleep.
 */
void lite_store_lost(struct lite_memory *mem, u32 home, u64 incarnation)
{
	struct lite_alloc *alloc;
	bool fenced = false;
	unsigned long id = 0;

	while ((alloc = lite_store_take_next(mem, &id, home, incarnation, 0))) {
		if (!fenced) {
			lite_cluster_fence(mem->cl, LITE_ALL_NODES, NULL);
			mem->rooms->retire_home(mem, home);
		}
		fenced = true;
		lite_store_free(alloc);
	}
}

/*
 * A session is over: free memory of it that the home has not confirmed. No mapper can know it: the
 * home tells mappers where memory is only after reading all extents. May sleep.
 */
void lite_store_session_gone(struct lite_memory *mem, u64 session)
{
	struct lite_alloc *alloc;
	unsigned long id = 0;

	while ((alloc = lite_store_take_next(mem, &id, 0, 0, session)))
		lite_store_free(alloc);
}

/* Free all remaining memory. No peer may be connected. */
void lite_store_exit(struct lite_memory *mem)
{
	struct lite_alloc *alloc;
	unsigned long id;

	xa_for_each(&mem->allocs, id, alloc) {
		/* NULL: another thread has removed it, and frees it. */
		lite_store_free(xa_erase(&mem->allocs, id));
	}
}

/* Put @n extents into a message. Context: any. */
void lite_extents_copy(struct lite_wire_extent *to, const struct lite_extent *from, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		to[i].addr = cpu_to_le64(from[i].addr);
		to[i].length_share = lite_wire_length_share(from[i].length, from[i].share);
	}
}

/* Fill a reply with extents of a table, from @first (below @n) on, that fit. Return: its length. */
u32 lite_extents_put(struct lite_wire_extents_reply *r, const struct lite_extent *table, u32 n,
		     u32 first)
{
	u32 count = min_t(u32, n - first, LITE_EXTENTS_PER_REPLY);

	lite_extents_copy(r->extent, table + first, count);
	r->count = cpu_to_le32(count);
	return struct_size(r, extent, count);
}

/* Append what a message has to a table of *@n extents. Return: 0; -EPROTO: more than @max. */
int lite_extents_take(struct lite_extent *table, u32 *n, u32 max,
		      const struct lite_wire_extent *told, u32 count)
{
	u64 ls, at = *n ? table[*n - 1].start + table[*n - 1].length : 0;

	if (count > max - *n)
		return -EPROTO;
	for (; count--; at += ls >> 8, told++) {
		ls = le64_to_cpu(told->length_share);
		table[(*n)++] = (struct lite_extent){
			.start = at,
			.length = ls >> 8,
			.addr = le64_to_cpu(told->addr),
			.share = ls & 0xff,
		};
	}
	return 0;
}

int lite_serve_mem_alloc(struct lite_memory *mem, struct lite_conn *conn, const void *req,
			 void *reply)
{
	const struct lite_wire_mem_alloc *a = req;
	struct lite_wire_mem_alloc_reply *r = reply;
	u32 uid = le32_to_cpu(a->uid);
	struct mem_cgroup *payer, *own;
	struct lite_alloc *alloc;

	if (!conn)
		return -EBADMSG;
	payer = lite_payer_find(mem, conn->from.node, le64_to_cpu(a->lmr), uid);
	own = set_active_memcg(payer);
	alloc = lite_store_alloc(mem, conn->from.node, conn->from.incarnation, conn->session,
				 le64_to_cpu(a->length),
				 lite_uid_charged(uid, mem->root_squash));
	set_active_memcg(own);
	mem_cgroup_put(payer);
	if (IS_ERR(alloc))
		return PTR_ERR(alloc);
	r->id = cpu_to_le64(alloc->id);
	r->n_extents = cpu_to_le32(alloc->n_extents);
	lite_store_free(alloc);
	/* The session may have ended before the memory was in the table. */
	if (lite_conn_is_dead(conn))
		lite_store_session_gone(mem, conn->session);
	return sizeof(*r);
}

int lite_serve_mem_extents(struct lite_memory *mem, struct lite_conn *conn, const void *req,
			   void *reply)
{
	const struct lite_wire_extents *e = req;
	u32 first = le32_to_cpu(e->first);
	struct lite_alloc *alloc;
	int ret = -ENOENT;

	if (!conn)
		return -EBADMSG;
	/* Without the lock, lite_store_lost() might free it meanwhile. */
	xa_lock(&mem->allocs);
	alloc = lite_store_find(mem, le64_to_cpu(e->id), conn->from.node);
	if (alloc && first < alloc->n_extents) {
		ret = lite_extents_put(reply, alloc->extents, alloc->n_extents, first);
		if (first + LITE_EXTENTS_PER_REPLY >= alloc->n_extents)
			alloc->confirmed = true;
	}
	xa_unlock(&mem->allocs);
	return ret;
}

/* Fence nodes from this store's memory. Return: 0 or -EIO. */
static int lite_store_fence(struct lite_memory *mem, struct lite_conn *home,
			    const struct lite_wire_mem_free *f)
{
	u32 n = le32_to_cpu(f->n_fences), i;
	int err = 0;

	/* Spare the request's session, for the reply: it is alive, so no operation in it failed. */
	for (i = 0; i < n; i++)
		err = lite_cluster_fence(mem->cl, le32_to_cpu(f->fence[i]), home) ?: err;
	if (f->fence_all)
		err = lite_cluster_fence(mem->cl, LITE_ALL_NODES, home);
	/* This node may be one of the lost mappers. */
	if (f->fence_all || n)
		mem->rooms->retire_home(mem, home->from.node);
	return err;
}

int lite_serve_mem_free(struct lite_memory *mem, struct lite_conn *conn, const void *req,
			void *reply)
{
	const struct lite_wire_mem_free *f = req;
	struct lite_alloc *alloc;
	int err;

	if (!conn)
		return -EBADMSG;
	/*
	 * NULL: a repeated request. Fence all the same: the first request's handler may still be
	 * fencing, and the home names no nodes to fence in the requests that follow.
	 */
	alloc = lite_store_get(mem, le64_to_cpu(f->id), conn->from.node, true);
	/* If a fence fails, lite_dma_unmap_page() quarantines the pages. */
	err = lite_store_fence(mem, conn, f);
	lite_store_free(alloc);
	/* A home that only fences goes on using the memory, so it gets the result. */
	return f->id ? 0 : err;
}
