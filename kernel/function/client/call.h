/* SPDX-License-Identifier: GPL-2.0 */
/* The client's side of calls. See service.h for the overview and the locking. */
#ifndef _LITE_SERVICE_CALL_H
#define _LITE_SERVICE_CALL_H

#include "core/ring.h"
#include "function/area.h"
#include "line.h"
#include "memory/handle/ctx.h"
#include "memory/memory.h"
#include "wire/wire_rpc.h"

struct lite_area;
struct lite_rcall;
struct lite_rpc_file;
struct lite_rpc_peer;
struct lite_service;

enum lite_client_ring_slot_state {
	LITE_CLIENT_RING_FREE,
	LITE_CLIENT_RING_FILLING, /* reserved by the caller that posts it */
	LITE_CLIENT_RING_WAITING,
	LITE_CLIENT_RING_ENDED,
	LITE_CLIENT_RING_ABANDONED, /* to be cancelled; or a message */
	LITE_CLIENT_RING_CANCELLING,
};

/* A call in flight */
struct lite_client_ring_slot {
	enum lite_client_ring_slot_state state; /* under rp->lock */
	bool oneway; /* a message: it has no reply */
	u32 unit; /* first unit of its record */
	u32 units; /* length of its record */
	u32 room; /* maximum bytes of a reply */
	u64 seq; /* sequence number of the call */
	/* its user's part of the window, held while the call is in flight; NULL: root */
	struct lite_pool_part *part;
	struct lite_rcall *call; /* FILLING, WAITING, ENDED: the waiting call */
	/*
	 * memory that the peer reads if the request is not in the record; with a reference until
	 * the reply has come or, if the connection dies, until the mirror is freed
	 */
	struct lite_area *request;
	/*
	 * memory that the peer writes if the reply is not in the record; with a reference as
	 * @request
	 */
	struct lite_area *reply;
};

enum lite_client_ring_state {
	LITE_CLIENT_RING_NEW, /* being bound */
	LITE_CLIENT_RING_LIVE,
	LITE_CLIENT_RING_CLOSING, /* no new calls; unbound when empty */
	LITE_CLIENT_RING_DEAD,
};

/* A ring, at the client */
struct lite_client_ring {
	struct lite_rpc_peer *rp; /* of the server's connection */
	struct kref ref; /* held by rp's tables, callers and work items */
	u32 function; /* its number */
	enum lite_client_ring_state state; /* under rp->lock, as the fields below */
	struct list_head list; /* in rp->client_rings */
	struct list_head line_list; /* in rp->lines while @line has entries */
	/* struct lite_rcall, calls waiting for room or, while it is NEW, for it to be bound */
	struct list_head line;
	u32 index; /* number of the ring at the server */
	u64 cookie; /* of the function */
	u32 depth; /* slots */
	u32 max_request; /* bytes */
	u32 max_reply; /* bytes */
	u32 uid; /* owner of the function */
	u32 gid; /* group of the function */
	u32 mode; /* access mode of the function */
	/* the server treats root of this node as an unprivileged user */
	bool squash;
	struct lite_area *area; /* the mirror */
	u64 *remote; /* addresses of the ring's chunks */
	struct lite_ring_map map; /* which units of it are taken */
	u64 slots_used; /* bitmap */
	unsigned long used; /* time of last use, in jiffies */
	struct lite_pace pace; /* how long calls take */
	struct work_struct unbind_work; /* unbinds it when it is CLOSING and empty */
	struct lite_client_ring_slot slot[LITE_RPC_DEPTH]; /* the slots */
};

/* A call */
struct lite_rcall {
	struct lite_service *svc; /* the node's services */
	u32 node; /* of the server */
	u32 function; /* its number */
	u64 registration; /* cookie of the function, or LITE_ANY_REGISTRATION */
	const struct lite_cred *cred; /* the caller; NULL: the kernel */
	struct lite_buf request; /* bytes to send */
	u32 length; /* bytes of the request */
	struct lite_area *bulk; /* copy of a request that is too long for a ring; or NULL */
	u32 room; /* maximum bytes of the reply */
	/* memory for a reply that may be too long for a ring; or NULL */
	struct lite_area *reply_bulk;
	bool by_reference; /* the reply is in @reply_bulk */
	/* of a request that was not in memory, or that is sent later; or NULL */
	void *copy;
	u32 flags; /* LITE_RPC_NOWAIT, LITE_RPC_ONEWAY, LITE_RCALL_TRY */
	struct list_head line; /* in ring->line, while @line_err is -EINPROGRESS */
	int line_err; /* outcome of waiting in line; under rp->lock */
	/* its user's part of the window, until it passes to the slot */
	struct lite_pool_part *part;
	u32 units; /* length of the record that it needs */
	unsigned long deadline; /* jiffies */
	struct lite_client_ring *ring; /* its ring, with a reference */
	u32 slot; /* its slot; LITE_NO_SLOT: none any more */
	/*
	 * it was not begun, as part of the request is not in memory: lite_rcall_copy() and begin it
	 * again
	 */
	bool missing;
	u8 status; /* of the reply: enum lite_rpc_status */
	u32 user; /* status that the server returned */
	u32 reply_len; /* bytes of the reply */
	int err; /* reason if there is no reply */
	/* completed when it has ended, and when it has left the line */
	struct completion done;
	/* called instead of completing @done when the call ends, with rp->lock held; see async.c */
	void (*ended)(struct lite_rcall *call);
	/* called instead of completing @done when it leaves the line, with rp->lock held */
	void (*in_turn)(struct lite_rcall *call);
};

enum lite_async_state {
	LITE_ASYNC_NEW, /* begun by the caller's thread */
	LITE_ASYNC_QUEUED, /* begun by the work item */
	LITE_ASYNC_BEGUN, /* in flight; can be abandoned */
	LITE_ASYNC_ENDING, /* owned by the thread ending it */
	LITE_ASYNC_COPYING, /* the work item copies its reply */
	LITE_ASYNC_ENDED, /* to be collected */
	LITE_ASYNC_GIVEN, /* owned by the thread collecting it */
};

/* A call to be collected */
struct lite_async {
	struct lite_rcall call; /* the call */
	struct lite_rpc_file *file; /* file to collect it from, with a reference */
	/* held by the list it is on, by the threads that begin or end it, and by pending work */
	struct kref ref;
	/* in file->ended if ENDED, else in file->calls; under file->lock, as @state and @dropped */
	struct list_head list;
	enum lite_async_state state; /* says which thread owns it */
	/* it will not be collected; if it is QUEUED, it will not be begun */
	bool dropped;
	u32 group; /* group to collect it with */
	const void *owner; /* files_struct of the process that began it */
	u64 number; /* of no other call of this node; not 0 */
	u64 cookie; /* the user's cookie */
	u64 to; /* the user's address for the reply */
	void *reply; /* buffer for the reply */
	/* begins the call, ends it at its deadline, or copies its reply */
	struct delayed_work work;
	struct lite_cred cred; /* QUEUED: the caller */
	struct mem_cgroup *memcg; /* QUEUED: the caller's memcg, charged for reply memory */
};

/* A thread in COLLECT */
struct lite_collector {
	struct lite_line_place place; /* in file->collectors, until it is woken; by group */
	struct completion news; /* a call of the group has ended, or all are gone */
};

#define LITE_NO_SLOT U32_MAX

/* Registration of a call that knows only the function's number. */
#define LITE_ANY_REGISTRATION U64_MAX
/* Otherwise the cookie, cut to what an xarray can store: the peer chooses it. */
#define LITE_FOUND_COOKIE LONG_MAX

/*
 * Jiffies to wait for a reply before watching for failed posts. Watching earlier would mostly cost
 * the caller an extra wake-up.
 */
#define LITE_HEED_AFTER (HZ / 50)
/* Attempts per call to find a usable ring. */
#define LITE_RCALL_TRIES 4
/* Used with NOWAIT: do not wait for a ring to be bound or a node to return either. */
#define LITE_RCALL_TRY BIT(31)

int lite_client_ring_get(struct lite_rcall *call);
void lite_client_ring_put(struct lite_client_ring *ring);
void lite_client_ring_close(struct lite_client_ring *ring);
void lite_client_ring_close_index(struct lite_rpc_peer *rp, u32 index);
void lite_client_ring_check_empty(struct lite_client_ring *ring);
int lite_client_ring_may_call(const struct lite_client_ring *ring, struct lite_rcall *call);
bool lite_client_ring_is_stale(struct lite_rcall *call);
void lite_client_rings_idle(struct lite_rpc_peer *rp);
void lite_client_rings_down(struct lite_rpc_peer *rp);
void lite_client_rings_gone(struct lite_rpc_peer *rp);

int lite_ring_wait_take(struct lite_rcall *call);
int lite_ring_wait_look(struct lite_rcall *call, int leave);
int lite_ring_wait_wait(struct lite_rcall *call);
void lite_ring_wait_enter_new(struct lite_rcall *call);
void lite_ring_wait_move(struct lite_rpc_peer *rp);
void lite_ring_wait_end(struct lite_client_ring *ring, int err);
void lite_slot_drop(struct lite_client_ring_slot *s);
void lite_slot_free(struct lite_client_ring *ring, u32 slot);
void lite_slot_end(struct lite_client_ring *ring, u32 slot, int err);

int lite_rcall_prepare(struct lite_rcall *call);
int lite_rcall_copy(struct lite_rcall *call);
void lite_rcall_drop(struct lite_rcall *call);
u32 lite_rcall_body(const struct lite_rcall *call, u32 *list);
int lite_rcall_begin(struct lite_rcall *call);
void lite_rcall_unqueue(struct lite_rcall *call);
int lite_rcall_result(const struct lite_rcall *call);
bool lite_rcall_abandon(struct lite_rcall *call, int err);
void lite_rcall_free_slot(struct lite_rcall *call);
void lite_rcall_unbind(struct lite_rcall *call);
void lite_rcall_finish(struct lite_rcall *call);
const void *lite_rcall_reply(const struct lite_rcall *call);
int lite_client_ring_on_reply(struct lite_rpc_peer *rp, u16 index, u16 at, bool done);
void lite_cancel_work(struct work_struct *work);

int lite_service_call(struct lite_service *svc, struct lite_rcall *call,
		      const struct lite_buf *reply);

#endif /* _LITE_SERVICE_CALL_H */
