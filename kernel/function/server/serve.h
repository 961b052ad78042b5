/* SPDX-License-Identifier: GPL-2.0 */
/* The server's side of calls. See service.h for the overview and the locking. */
#ifndef _LITE_FUNCTION_SERVE_H
#define _LITE_FUNCTION_SERVE_H

#include "memory/memory.h"
#include "function/area.h"

struct lite_func {
	struct lite_service *svc;
	refcount_t ref;			/* of the table, of rings, of @handler */
	u32 number;
	u64 cookie;			/* of this registration */
	char name[LITE_FUNCTION_NAME_SIZE]; /* or empty */
	struct rb_node by_name;		/* in svc->names, if it has a name and is not @dead */
	u32 uid;			/* owner */
	u32 gid;
	u32 mode;			/* permission to call */
	u32 flags;			/* LITE_RPC_SHARED */
	u32 max_request;		/* bytes */
	u32 max_reply;
	u32 ring_size;			/* bytes; 0: lite_ring_area() chooses */
	bool dead;			/* no longer served; under svc->lock, as the next ones */
	struct list_head servers;	/* struct lite_server, in turns */
	u32 n_servers;
	struct list_head queue;		/* requests to be received */
	struct list_head rings;		/* of its clients */
	struct lite_kfunc *handler;	/* of a kernel client, instead of @servers; else NULL */
};

/* A function served by an open file. */
struct lite_server {
	struct lite_func *func;
	struct lite_rpc_file *file;
	struct list_head of_func;	/* in func->servers */
	struct list_head of_file;	/* in file->servers */
	struct list_head waiters;	/* struct lite_recv_waiter, for @func only */
};

/* The owner of a request. */
enum lite_request_state {
	LITE_REQ_FREE,		/* the client; the slot is unused */
	LITE_REQ_QUEUED,	/* its function's queue */
	LITE_REQ_BUSY,		/* a thread that copies or posts, or rp->answers */
	LITE_REQ_TAKEN,		/* an open file */
};

/* A request, in its slot of a ring. */
struct lite_request {
	struct lite_ring *ring;
	struct list_head list;		/* in func->queue, file->taken or rp->answers */
	enum lite_request_state state;	/* under svc->lock */
	bool cancelled;			/* BUSY: CANCEL has told the caller to expect an answer */
	u8 status;			/* in rp->answers: the status to answer */
	u32 unit;			/* its record */
	u32 gen;			/* serial number in this node; makes tokens unique */
	u64 seq;			/* of the call */
	u32 length;			/* bytes */
	u32 room;			/* bytes that the caller takes as a reply */
	u32 list_bytes;			/* of the chunk list, between header and request */
	u32 n_request;			/* chunks of the request; 0: it is in the record */
	u32 n_reply;			/* chunks for the reply; 0: it fits into the record */
	struct lite_area *data;		/* the fetched request, or NULL; while BUSY, the owner's */
	bool by_reference;		/* BUSY: the reply has been written to its chunks */
	u64 reply;			/* address of the record in the mirror */
	u32 uid;			/* of the caller */
	u32 gid;
	u32 flags;			/* enum lite_rpc_flags */
	u8 prio;			/* of RDMA for a long request or reply: LITE_POST_PRIO */
	struct lite_rpc_file *file;	/* TAKEN: the open file that has it */
	const void *owner;		/* TAKEN: files_struct of the process */
	struct lite_kfunc *kfunc;	/* BUSY: the kernel client's function that handles it */
	u32 user;			/* in rp->answers: the server's status for the caller */
	struct work_struct work;	/* runs @kfunc */
};

/* A thread that waits for a request. */
struct lite_recv_waiter {
	struct list_head list;		/* file->waiters or server->waiters, until it is @done */
	struct lite_request *req;	/* the request, BUSY */
	int err;			/* or why there is none */
	struct completion done;		/* completed with either */
};

int lite_func_register(struct lite_service *svc, struct lite_rpc_file *file, struct lite_kfunc *kf,
		       const struct lite_cred *cred, struct lite_ioc_rpc_register *r);
void lite_func_unregister_kernel(struct lite_func *func);
int lite_func_unregister(struct lite_rpc_file *file, u32 number, bool any);
void lite_func_stop(struct lite_rpc_file *file);
struct lite_server *lite_server_find(struct lite_rpc_file *file, u32 number);
bool lite_func_is_like(const struct lite_func *a, const struct lite_func *b);
struct lite_func *lite_func_find(struct lite_service *svc, u32 number, const char *name);
void lite_func_put(struct lite_func *func);
void lite_func_queue(struct lite_func *func, struct lite_request *req, bool first);

/* A function that a kernel client serves: kfunc.c */
struct lite_kfunc {
	struct lite_func *func;		/* with a reference */
	lite_kfunc_handler handler;
	void *priv;			/* argument of @handler */
	bool is_short;			/* the receive handler may run @handler */
	bool ending;			/* requests that wait are refused */
	u32 max_reply;			/* bytes */
	struct workqueue_struct *wq;	/* runs @handler */
	atomic_t running;		/* handlers, plus one until it is unregistered */
};

bool lite_kfunc_queue(struct lite_func *func, struct lite_request *req, bool now);
void lite_kfunc_now(struct lite_request *req);
struct lite_kfunc *lite_kfunc_new(struct lite_service *svc, const struct lite_kfunc_params *p);
void lite_kfunc_end(struct lite_kfunc *kf);

/* Tokens: gen (32 bits) | ring id (24) | slot (8) */
#define LITE_RING_ID_MAX 0xffffffU

/* A ring, at the server. */
struct lite_ring {
	struct lite_rpc_peer *rp;	/* of the client's connection */
	struct lite_func *func;		/* replaced by lite_ring_func(); under svc->lock */
	struct list_head of_func;	/* in func->rings; under svc->lock */
	struct work_struct gone_work;	/* tells the client that @func is dead */
	u32 number;			/* of the function */
	refcount_t ref;			/* of the table, @gone_work, requests that are not FREE */
	u32 index;			/* in immediates, and in rp->rings */
	u32 id;				/* in tokens, and in svc->rings */
	struct lite_area *area;		/* its memory */
	bool gone;			/* unbound, or its connection is dead; under svc->lock */
	struct lite_request req[LITE_RPC_DEPTH];
};

struct lite_ring *lite_ring_make(struct lite_rpc_peer *rp, u32 function);
void lite_ring_put(struct lite_ring *ring);
void lite_ring_tell_gone(struct lite_ring *ring);
int lite_ring_end(struct lite_ring *ring, bool down);
int lite_ring_cancel(struct lite_rpc_peer *rp, u32 index, u32 slot, u64 seq);
int lite_ring_on_request(struct lite_rpc_peer *rp, u16 index, u16 unit);
void lite_request_free(struct lite_request *req);
void lite_request_answer(struct lite_request *req, u8 status, u32 length, u32 user);
void lite_answer_work(struct work_struct *work);
void lite_request_post(struct lite_request *req, u8 status, u32 length, u32 user);

/* Length up to which a reply goes into the record. */
static inline u32 lite_request_inline(const struct lite_request *req)
{
	return req->n_reply ? min(req->room, LITE_RPC_BULK_INLINE) : req->room;
}

/* Long requests and replies: serve_bulk.c */
int lite_request_list(struct lite_request *req, u32 unit, const struct lite_wire_rpc *h);
int lite_request_fetch(struct lite_request *req, u32 uid, bool killable);
int lite_request_give(struct lite_request *req, struct lite_area *bulk, u32 length, bool killable);

static inline u32 lite_request_slot(const struct lite_request *req)
{
	return req - req->ring->req;
}

/* ring_call.c */
lite_handler lite_serve_bind, lite_serve_cancel, lite_serve_find, lite_serve_gone,
	lite_serve_unbind;
void lite_ring_gone_work(struct work_struct *work);

#endif /* _LITE_FUNCTION_SERVE_H */
