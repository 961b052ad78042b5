/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The server's side of calls: ring memory, functions, requests, rings. See
 * service.h for an overview and the locking.
 */
#ifndef _LITE_SERVICE_SERVE_H
#define _LITE_SERVICE_SERVE_H

#include "core/ring.h"
#include "wire/wire_rpc.h"
#include "memory/memory.h"
#include "function/area.h"

struct lite_ring;
struct lite_rpc_file;
struct lite_rpc_peer;
struct lite_service;

/* ---- functions: func.c --------------------------------------------------- */

/**
 * struct lite_func - a function that is served here
 * @svc: node's
 * @ref: of the table, rings and their requests
 * @number: its number
 * @cookie: of this registration
 * @name: or empty
 * @uid: owner
 * @gid: owner's group
 * @mode: permission to call
 * @flags: LITE_RPC_SHARED
 * @max_request: bytes
 * @max_reply: bytes
 * @ring_size: bytes
 * @dead: no longer served; under svc->lock, as the next ones
 * @servers: struct lite_server, in turns
 * @n_servers: entries of @servers
 * @queue: requests to be received
 * @rings: of its clients
 * @handler: of a kernel client, instead of @servers; else NULL
 */
struct lite_func {
	struct lite_service *svc;
	struct kref ref;
	u32 number;
	u64 cookie;
	char name[LITE_FUNCTION_NAME_SIZE];
	u32 uid;
	u32 gid;
	u32 mode;
	u32 flags;
	u32 max_request;
	u32 max_reply;
	u32 ring_size;
	bool dead;
	struct list_head servers;
	u32 n_servers;
	struct list_head queue;
	struct list_head rings;
	struct lite_kfunc *handler;
};

/**
 * struct lite_server - a function served by an open file
 * @func: the function
 * @file: the open file's
 * @of_func: in func->servers
 * @of_file: in file->servers
 * @waiters: struct lite_recv_waiter, threads of @file that wait for requests
 *	of @func only
 */
struct lite_server {
	struct lite_func *func;
	struct lite_rpc_file *file;
	struct list_head of_func;
	struct list_head of_file;
	struct list_head waiters;
};

/**
 * enum lite_request_state - what owns a request
 * @LITE_REQ_FREE: the client; the slot is unused
 * @LITE_REQ_QUEUED: its function's queue
 * @LITE_REQ_BUSY: a thread that copies or posts, or rp->answers
 * @LITE_REQ_TAKEN: an open file
 */
enum lite_request_state {
	LITE_REQ_FREE,
	LITE_REQ_QUEUED,
	LITE_REQ_BUSY,
	LITE_REQ_TAKEN,
};

/**
 * struct lite_request - a request, in its slot of a ring
 * @ring: contains it
 * @list: in func->queue, file->taken or rp->answers
 * @state: under svc->lock
 * @cancelled: while BUSY: CANCEL has told the caller to expect an answer
 * @status: in rp->answers: the status to answer
 * @unit: its record
 * @gen: serial number in this node; makes tokens unique
 * @seq: of the call
 * @length: bytes
 * @room: bytes that the caller takes as a reply
 * @list_bytes: of the chunk list, between header and request
 * @n_request: chunks of the request in the list; 0: it is in the record
 * @n_reply: chunks for the reply in the list; 0: it fits into the record
 * @data: BUSY, QUEUED: the fetched request, or NULL; used by the thread that
 *	has it BUSY
 * @by_reference: BUSY: the reply has been written to its chunks
 * @reply: address of the record in the mirror
 * @uid: of the caller
 * @gid: of the caller
 * @flags: enum lite_rpc_flags
 * @file: TAKEN: the open file's
 * @owner: TAKEN: the process, as files_struct
 * @kfunc: BUSY: the kernel client's function that handles it
 * @user: in rp->answers: the server's status for the caller
 * @work: runs @kfunc
 */
struct lite_request {
	struct lite_ring *ring;
	struct list_head list;
	enum lite_request_state state;
	bool cancelled;
	u8 status;
	u32 unit;
	u32 gen;
	u64 seq;
	u32 length;
	u32 room;
	u32 list_bytes;
	u32 n_request;
	u32 n_reply;
	struct lite_area *data;
	bool by_reference;
	u64 reply;
	u32 uid;
	u32 gid;
	u32 flags;
	struct lite_rpc_file *file;
	const void *owner;
	struct lite_kfunc *kfunc;
	u32 user;
	struct work_struct work;
};

/**
 * struct lite_recv_waiter - a thread that waits for a request
 * @list: in file->waiters or server->waiters, until it gets a result
 * @req: the request, BUSY
 * @err: or why there is none
 * @done: completed with either
 */
struct lite_recv_waiter {
	struct list_head list;
	struct lite_request *req;
	int err;
	struct completion done;
};

int lite_func_register(struct lite_service *svc, struct lite_rpc_file *file,
		       struct lite_kfunc *kf, const struct lite_cred *cred,
		       struct lite_ioc_rpc_register *r);
void lite_func_unregister_kernel(struct lite_func *func);
int lite_func_unregister(struct lite_rpc_file *file, u32 number);
void lite_func_leave_all(struct lite_rpc_file *file);
void lite_func_stop(struct lite_rpc_file *file);
struct lite_server *lite_server_find(struct lite_rpc_file *file, u32 number);
struct lite_func *lite_func_find(struct lite_service *svc, u32 number,
				 const char *name);
void lite_func_put(struct lite_func *func);
void lite_func_queue(struct lite_func *func, struct lite_request *req,
		     bool first);

/**
 * struct lite_kfunc - a function that a kernel client serves: kfunc.c
 * @func: the function, with a reference
 * @handler: the client's
 * @priv: argument of @handler
 * @is_short: the receive handler may run @handler
 * @max_reply: bytes
 * @running: handlers that run or will, plus one until it is unregistered
 */
struct lite_kfunc {
	struct lite_func *func;
	lite_kfunc_handler handler;
	void *priv;
	bool is_short;
	u32 max_reply;
	atomic_t running;
};

bool lite_kfunc_queue(struct lite_func *func, struct lite_request *req,
		      bool now);
void lite_kfunc_now(struct lite_request *req);
struct lite_kfunc *lite_kfunc_new(struct lite_service *svc,
				  const struct lite_kfunc_params *p);
void lite_kfunc_end(struct lite_kfunc *kf);

/* ---- rings: server_ring.c, ring_call.c ------------------------------------ */

/* Tokens: gen (32 bits) | ring id (24) | slot (8) */
#define LITE_RING_ID_MAX 0xffffffU

/**
 * struct lite_ring - a ring, at the server
 * @rp: of the client's connection
 * @func: its function; replaced by lite_ring_func(); under svc->lock
 * @of_func: in func->rings; under svc->lock
 * @gone_work: tells the client that @func is dead
 * @number: of the function
 * @ref: the table's, and one for each request that is not FREE
 * @index: in immediates, and in rp->rings
 * @id: in tokens, and in svc->rings
 * @area: its memory
 * @gone: unbound, or its connection is dead; under svc->lock
 * @req: the slots
 */
struct lite_ring {
	struct lite_rpc_peer *rp;
	struct lite_func *func;
	struct list_head of_func;
	struct work_struct gone_work;
	u32 number;
	struct kref ref;
	u32 index;
	u32 id;
	struct lite_area *area;
	bool gone;
	struct lite_request req[LITE_RPC_DEPTH];
};

struct lite_ring *lite_ring_make(struct lite_rpc_peer *rp, u32 function);
void lite_ring_put(struct lite_ring *ring);
void lite_ring_tell_gone(struct lite_ring *ring);
int lite_ring_end(struct lite_ring *ring, bool down);
int lite_ring_cancel(struct lite_rpc_peer *rp, u32 index, u32 slot, u64 seq);
int lite_ring_on_request(struct lite_rpc_peer *rp, u16 index, u16 unit);
void lite_request_free(struct lite_request *req);
void lite_request_answer(struct lite_request *req, u8 status, u32 length,
			 u32 user);
void lite_answer_work(struct work_struct *work);
void lite_request_post(struct lite_request *req, u8 status, u32 length,
		       u32 user);

/* Bytes of a reply that fit into the record. */
static inline u32 lite_request_inline(const struct lite_request *req)
{
	return req->n_reply ? min(req->room, LITE_RPC_BULK_INLINE) : req->room;
}

/* Long requests and replies: serve_bulk.c */
int lite_request_list(struct lite_request *req, u32 unit,
		      const struct lite_wire_rpc *h);
int lite_request_fetch(struct lite_request *req, bool killable);
int lite_request_give(struct lite_request *req, struct lite_area *bulk,
		      u32 length, bool killable);

static inline u32 lite_request_slot(const struct lite_request *req)
{
	return req - req->ring->req;
}

void lite_ring_handlers(struct lite_service *svc);
int lite_rpc_peer_call(struct lite_rpc_peer *rp, struct lite_call_desc *d);
void lite_ring_gone_work(struct work_struct *work);

#endif /* _LITE_SERVICE_SERVE_H */
