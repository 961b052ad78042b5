/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Inboxes: requests that a process takes without a call, and reads in place.
 *
 *   inbox.c      their life; requests into them, and out again
 *   inbox_map.c  which rings the process sees, and when not any more
 *   inbox_kept.c those whose callers have given up
 *   inbox_next.c giving requests back, and waiting for more
 *
 * Locking: svc->lock protects all but what page tables have; that is lite_inbox.map,
 * a mutex inside of mmap_lock, and outside of i_mmap_rwsem, locks of page tables
 * and svc->lock.
 */
#ifndef _LITE_SERVICE_INBOX_H
#define _LITE_SERVICE_INBOX_H

#include "../core/inbox.h"
#include "service.h"

/* What lite_recv_waiter.err says of one who waits for an inbox. */
#define LITE_INBOX_CAME 1

struct inode;
struct vm_fault;

/**
 * struct lite_inbox - requests for one function in an open file
 * @ref: the mapped file's, its views', the zap work's
 * @file: open file's, with a reference
 * @server: whose inbox it is; NULL: it is shut. Under svc->lock, as the next ones
 * @owner: the process, as files_struct
 * @queue: shared with it
 * @depth: requests in it and taken from it, at most
 * @held: of them, are
 * @unseen: it is not mapped any more
 * @req: by number of the entry: requests that are held
 * @waiters: struct lite_recv_waiter
 * @views: struct lite_inbox_view, by slot
 * @ring_bytes: of each ring
 * @slots: places for rings
 * @zap_work: takes out what has ended
 * @map: a view that is there when somebody has it stays so
 * @inode: of the mapped file; NULL: it is gone; under @map
 */
struct lite_inbox {
	struct kref ref;
	struct lite_rpc_file *file;
	struct lite_server *server;
	const void *owner;
	struct lite_inbox_queue queue;
	u32 depth;
	u32 held;
	bool unseen;
	struct lite_request *req[LITE_INBOX_DEPTH_MAX];
	struct list_head waiters;
	struct xarray views;
	u32 ring_bytes;
	u32 slots;
	struct work_struct zap_work;
	struct mutex map;
	struct inode *inode;
};

/**
 * struct lite_inbox_view - a ring, as an inbox shows it
 * @inbox: with a reference
 * @area: the ring's memory, with a reference
 * @of_ring: in ring->views, until it has ended
 * @slot: where it is
 * @held: requests in it that the process has, or may take
 * @ended: there will be no more; when there are none it is zapped
 * @zapped: no page of it gets into a page table any more; under inbox->map
 */
struct lite_inbox_view {
	struct lite_inbox *inbox;
	struct lite_area *area;
	struct list_head of_ring;
	u32 slot;
	u32 held;
	bool ended;
	bool zapped;
};

struct lite_inbox *lite_inbox_make(struct lite_rpc_file *file, u32 function,
				   u32 depth, u32 uid);
void lite_inbox_put_ref(struct lite_inbox *inbox);
void lite_inbox_shut(struct lite_inbox *inbox, int err);
void lite_inboxes_shut(struct lite_rpc_file *file, const void *owner);
void lite_inboxes_stop(struct lite_rpc_file *file);
void lite_inbox_drain(struct lite_func *func);
void lite_inboxes_drain(struct lite_rpc_file *file);
void lite_inbox_leave(struct lite_request *req);
void lite_inbox_unsee(struct lite_inbox *inbox, bool exited);
bool lite_inbox_ready(struct lite_inbox *inbox);

struct lite_inbox_view *lite_inbox_view(struct lite_inbox *inbox,
					struct lite_ring *ring);
void lite_inbox_view_leave(struct lite_inbox_view *view);
void lite_inbox_view_end(struct lite_inbox_view *view);
void lite_inbox_ring_end(struct lite_ring *ring);
void lite_inbox_zap_work(struct work_struct *work);
int lite_inbox_fault(struct lite_inbox *inbox, struct vm_fault *vmf);
void lite_inbox_mapped(struct lite_inbox *inbox, struct inode *inode);
void lite_inbox_unmapped(struct lite_inbox *inbox, bool exited);

int lite_file_next(struct lite_rpc_file *file, struct lite_ioc_rpc_next *n,
		   struct lite_gate *gate);

/* Bytes of the rings, as they are mapped. */
static inline u64 lite_inbox_rings_bytes(const struct lite_inbox *inbox)
{
	return (u64)inbox->slots * inbox->ring_bytes;
}

#endif /* _LITE_SERVICE_INBOX_H */
