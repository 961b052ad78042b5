/* SPDX-License-Identifier: GPL-2.0 */
/* The store: memory given to homes. store.c, copy.c */
#ifndef _LITE_STORE_H
#define _LITE_STORE_H

#include "core/extent.h"
#include "wire/wire.h"

struct lite_memory;
struct lite_pinned;

struct lite_piece {
	struct page *page;
	u64 dma;
	u32 order;
};

/**
 * struct lite_alloc - memory given to a home
 * @ref: of the table, of the caller that took it out, of copies in flight
 * @mem: memory layer
 * @id: unique on this node
 * @home: node that it was given to
 * @home_incarnation: incarnation of @home
 * @session: session of the request; 0: this node is the home
 * @confirmed: the home has read all extents, so it knows that it has the memory
 * @uid: charged user
 * @bytes: whole pages
 * @since: lite_dma_since() before it was mapped
 * @charged: bytes: the pages, unless @pinned, and metadata
 * @n_pieces: entries in @pieces
 * @pieces: the pages
 * @n_extents: entries in @extents
 * @extents: the pieces or runs, merged, as published; share is 0
 * @pinned: process memory instead of @pieces, not in our limits; the home is
 *	this node (pinned.c). Or NULL
 */
struct lite_alloc {
	struct kref ref;
	struct lite_memory *mem;
	u64 id;
	u32 home;
	u64 home_incarnation;
	u64 session;
	bool confirmed;
	u32 uid;
	u64 bytes;
	u32 since;
	u64 charged;
	u32 n_pieces;
	struct lite_piece *pieces;
	u32 n_extents;
	struct lite_extent *extents;
	struct lite_pinned *pinned;
};

struct lite_alloc *lite_store_new(struct lite_memory *mem, u32 home,
				  u64 home_incarnation, u64 bytes, u64 charged,
				  u32 uid);
void *lite_table_grow(void *table, size_t size, u32 n, u32 *room, u32 first);
int lite_store_extents(struct lite_alloc *alloc, u32 n, size_t cost);
struct lite_alloc *lite_store_alloc(struct lite_memory *mem, u32 home,
				    u64 home_incarnation, u64 session,
				    u64 length, u32 uid);
int lite_store_enter(struct lite_memory *mem, struct lite_alloc *alloc);
void lite_store_free(struct lite_memory *mem, struct lite_alloc *alloc);
struct lite_alloc *lite_store_take(struct lite_memory *mem, u64 id, u32 home);
void lite_store_lost(struct lite_memory *mem, u32 home, u64 incarnation);
void lite_store_session_gone(struct lite_memory *mem, u64 session);
void *lite_store_address(struct lite_memory *mem, u64 dma, size_t *n);
struct page *lite_store_page(struct lite_memory *mem, u64 dma, size_t *n);
void *lite_store_own_address(struct lite_memory *mem, u64 dma, size_t *n);
void lite_store_exit(struct lite_memory *mem);
u32 lite_extents_put(struct lite_wire_extents_reply *r,
		     const struct lite_extent *table, u32 n, u32 first);
void lite_store_handlers(struct lite_memory *mem);
struct lite_alloc *lite_store_get(struct lite_memory *mem, u64 id, u32 home);
void lite_copy_handlers(struct lite_memory *mem);

#endif /* _LITE_STORE_H */
