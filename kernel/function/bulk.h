/* SPDX-License-Identifier: GPL-2.0 */
/* Requests and replies that bypass rings: bulk.c, refer.c, serve_bulk.c */
#ifndef _LITE_SERVICE_BULK_H
#define _LITE_SERVICE_BULK_H

#include <linux/kref.h>
#include <linux/workqueue.h>

#include "wire/wire_rpc.h"

struct lite_buf;
struct lite_fabric;
struct lite_rcall;
struct lite_request;
struct lite_service;

/* 1/LITE_BULK_SHARE of the machine's memory is the limit for bulks. */
#define LITE_BULK_SHARE 4

/**
 * struct lite_bulk - kernel memory for a long request or reply
 * @ref: calls, slots, requests
 * @svc: node's
 * @uid: user it counts for
 * @fab: fabric for which it is mapped; NULL: not mapped
 * @since: for lite_dma_unmap_page()
 * @lost: unmapping failed: it can be read, but is never freed
 * @bytes: usable size
 * @put_work: frees it for lite_bulk_put_later()
 * @n: chunks
 * @chunk: contiguous pages, and their DMA address
 */
struct lite_bulk {
	struct kref ref;
	struct lite_service *svc;
	struct lite_fabric *fab;
	u32 uid;
	u32 since;
	bool lost;
	u32 bytes;
	struct work_struct put_work;
	u32 n;
	struct {
		struct page *page;
		u32 bytes;
		u64 dma;
	} chunk[];
};

struct lite_bulk *lite_bulk_make(struct lite_service *svc, u32 uid, u32 bytes);
void lite_bulk_put(struct lite_bulk *bulk);
void lite_bulk_put_later(struct lite_bulk *bulk);
int lite_bulk_map(struct lite_bulk *bulk);
void lite_bulk_unmap(struct lite_bulk *bulk);
size_t lite_bulk_copy_nofault(const struct lite_bulk *bulk,
			      const struct lite_buf *buf, size_t at, size_t n,
			      bool in);
int lite_bulk_copy(const struct lite_bulk *bulk, const struct lite_buf *buf,
		   size_t at, size_t n, bool in);
void lite_bulk_move(struct lite_bulk *to, const struct lite_bulk *from,
		    size_t n);
void *lite_bulk_view(const struct lite_bulk *bulk);
void lite_bulk_unview(void *view);

/* The caller's side: refer.c */
int lite_rcall_prepare(struct lite_rcall *call);
int lite_rcall_bulk_room(struct lite_rcall *call);
void lite_rcall_drop(struct lite_rcall *call);
u32 lite_rcall_body(const struct lite_rcall *call, u32 *list);
u32 lite_rcall_list(const struct lite_rcall *call, void *mem);

/* The server's side: serve_bulk.c */
int lite_request_list(struct lite_request *req, u32 unit,
		      const struct lite_wire_rpc *h);
int lite_request_fetch(struct lite_request *req, bool killable);
int lite_request_give(struct lite_request *req, struct lite_bulk *bulk,
		      u32 length, bool killable);

#endif /* _LITE_SERVICE_BULK_H */
