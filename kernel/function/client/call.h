/* SPDX-License-Identifier: GPL-2.0 */
/* The client's side of calls. See service.h for the overview and the locking. */
#ifndef _LITE_FUNCTION_CALL_H
#define _LITE_FUNCTION_CALL_H

#include "crew.h"
#include "function/area.h"
#include "memory/io/io.h"

enum lite_client_ring_slot_state {
	LITE_CLIENT_RING_FREE,
	LITE_CLIENT_RING_FILLING,	/* reserved by the caller that posts it */
	LITE_CLIENT_RING_WAITING,
	LITE_CLIENT_RING_ENDED,
	LITE_CLIENT_RING_ABANDONED,	/* to be cancelled (ring->cancels); or a message */
	LITE_CLIENT_RING_CANCELLING,
};

struct lite_client_ring_slot {
	enum lite_client_ring_slot_state state; /* under rp->lock */
	u32 unit;			/* first unit of its record */
	u32 units;			/* length of its record */
	u32 room;			/* maximum bytes of a reply */
	u64 seq;			/* sequence number of the call */
	struct lite_pool_part *part;	/* its user's part of the window; NULL: root */
	struct lite_rcall *call;	/* FILLING, WAITING, ENDED: its call */
	/*
	 * Bulks that the peer reads or writes, if request or reply is not in the record. Held until
	 * the reply comes or, if the connection dies, until the mirror is freed.
	 */
	struct lite_area *request;
	struct lite_area *reply;
};

enum lite_client_ring_state {
	LITE_CLIENT_RING_NEW,		/* being bound */
	LITE_CLIENT_RING_LIVE,
	LITE_CLIENT_RING_CLOSING,	/* no new calls; unbound when empty */
	LITE_CLIENT_RING_DEAD,
};

/* A ring, at the client. */
struct lite_client_ring {
	struct lite_rpc_peer *rp;	/* of the server's connection */
	refcount_t ref;			/* held by rp's tables, callers and work items */
	u32 function;
	enum lite_client_ring_state state; /* under rp->lock, as the fields below */
	u64 key;			/* @function, and the maker's uid while it is NEW */
	struct rb_node by_function;	/* in rp->by_function, by @key, if NEW or LIVE */
	struct list_head line_list;	/* in rp->lines while @line has entries */
	struct list_head cancel_list;	/* in rp->cancels while there are @cancels */
	struct lite_line line;		/* struct lite_rcall, waiting for room */
	struct lite_line binding;	/* struct lite_rcall, waiting for BIND or its outcome */
	u32 index;			/* number of the ring at the server */
	u64 cookie;			/* of the function */
	u32 depth;			/* slots */
	u32 max_request;		/* bytes */
	u32 max_reply;
	struct lite_acl acl;		/* of the function */
	bool squash;			/* the server does not trust root of this node */
	struct lite_area *area;		/* the mirror */
	u64 *remote;			/* addresses of the ring's chunks */
	struct lite_ring_map map;	/* units of the ring that are taken */
	u32 limit;			/* from lite_ring_limit() */
	u64 slots_used;			/* bitmap */
	u64 cancels;			/* bitmap of slots that are to be cancelled */
	unsigned long used;		/* time of last use, in jiffies */
	struct lite_pace pace;		/* how long calls take */
	struct work_struct line_work;	/* ends the calls in @line when it is not LIVE any more */
	struct work_struct unbind_work;	/* unbinds it when it is CLOSING and empty */
	struct lite_client_ring_slot slot[LITE_RPC_DEPTH];
};

/* A call. */
struct lite_rcall {
	struct lite_service *svc;
	u32 node;			/* of the server */
	u32 function;
	u64 registration;		/* cookie of the function, or LITE_ANY_REGISTRATION */
	const struct lite_cred *cred;
	struct lite_buf request;	/* bytes to send */
	u32 length;			/* of the request */
	struct lite_area *bulk;		/* copy of a request that is too long for a ring; or NULL */
	u32 room;			/* maximum bytes of the reply */
	struct lite_area *reply_bulk;	/* for a reply that may be too long for a ring; or NULL */
	bool by_reference;		/* the reply is in @reply_bulk */
	void *copy;			/* of a request that was not present, or is sent later */
	u32 flags;			/* LITE_RPC_NOWAIT, LITE_RPC_ONEWAY, LITE_RCALL_TRY */
	u8 prio;			/* of request and reply: LITE_POST_PRIO */
	struct lite_line_place place;	/* in a line of @ring, by uid; see @line_err */
	int line_err;			/* -EINPROGRESS: in line; else the outcome; rp->lock */
	struct lite_pool_part *part;	/* its user's part of the window, until the slot has it */
	u32 units;			/* length of the record that it needs */
	unsigned long deadline;		/* jiffies */
	struct lite_client_ring *ring;	/* with a reference */
	u32 slot;			/* or LITE_NO_SLOT */
	bool here;			/* @node is this node, even if its id changes */
	bool missing;			/* not begun, as part of the request is absent: copy it */
	u8 status;			/* of the reply: enum lite_rpc_status */
	u32 user;			/* status that the server returned */
	u32 reply_len;
	int err;			/* reason if there is no reply */
	struct completion done;		/* completed when the call ends, or leaves the line */
	/* If set, these are called instead of completing @done, with rp->lock held. */
	void (*ended)(struct lite_rcall *call);
	void (*in_turn)(struct lite_rcall *call);	/* has left the line */
};

enum lite_async_state {
	LITE_ASYNC_NEW,		/* begun by the caller's thread */
	LITE_ASYNC_QUEUED,	/* to be begun by its job */
	LITE_ASYNC_BEGINNING,	/* owned by its job */
	LITE_ASYNC_BEGUN,	/* in flight; can be abandoned */
	LITE_ASYNC_ENDING,	/* owned by the thread ending it */
	LITE_ASYNC_COPYING,	/* the work item copies its reply */
	LITE_ASYNC_ENDED,	/* to be collected */
	LITE_ASYNC_GIVEN,	/* owned by the thread collecting it */
};

/* A call to be collected. */
struct lite_async {
	struct lite_rcall call;
	struct lite_rpc_file *file;	/* to collect it from, with a reference */
	refcount_t ref;			/* of the list, of threads, of pending work */
	struct list_head list;		/* in file->calls; under file->lock, as the next ones */
	/* In file->ended if ENDED, else in file->begun; in none if @dropped. By group. */
	struct lite_line_place place;
	enum lite_async_state state;	/* which thread owns it */
	bool dropped;			/* not to be collected */
	const void *owner;		/* files_struct of the process that began it */
	struct mm_struct *mm;		/* where @to is; NULL: a kernel thread's */
	u64 number;			/* unique on this node; not 0 */
	u64 cookie;			/* the user's */
	u64 to;				/* the user's address for the reply */
	void *reply;
	u32 uid;			/* charged with @cost bytes */
	u32 cost;
	struct delayed_work work;	/* ends it at the deadline, copies a reply */
	struct lite_crew_job job;	/* QUEUED: begins it */
	struct lite_cred cred;		/* QUEUED: the caller's */
	const struct cred *as;		/* QUEUED: the caller's, by which posts are scheduled */
	struct mem_cgroup *memcg;	/* QUEUED: the caller's, charged for reply memory */
};

/* A thread in COLLECT. */
struct lite_collector {
	struct lite_line_place place;	/* in file->collectors, until it is woken; by group */
	struct completion news;		/* a call of the group has ended, or all are gone */
};

#define LITE_NO_SLOT U32_MAX

/* Registration of a call that knows only the function's number. */
#define LITE_ANY_REGISTRATION U64_MAX
/* Otherwise it is a cookie, which the peer chooses, cut to what an xarray can store. */
#define LITE_FOUND_COOKIE LONG_MAX

/* Attempts per call to find a usable ring. */
#define LITE_RCALL_TRIES 4
/* With NOWAIT: do not wait for BIND, for a node to return or for a turn either. */
#define LITE_RCALL_TRY BIT(31)

int lite_client_ring_get(struct lite_rcall *call);
void lite_client_ring_put(struct lite_client_ring *ring);
void lite_client_ring_close_locked(struct lite_client_ring *ring);
void lite_client_ring_close(struct lite_client_ring *ring);
void lite_client_ring_close_index(struct lite_rpc_peer *rp, u32 index);
void lite_client_ring_check_empty(struct lite_client_ring *ring);
bool lite_client_ring_lets(const struct lite_client_ring *ring, const struct lite_rcall *call);
int lite_client_ring_may_call(const struct lite_client_ring *ring, struct lite_rcall *call);
int lite_client_ring_ask(struct lite_rcall *call);
void lite_client_rings_idle(struct lite_rpc_peer *rp);
void lite_client_rings_down(struct lite_rpc_peer *rp);
void lite_client_rings_gone(struct lite_rpc_peer *rp);

int lite_ring_wait_take(struct lite_rcall *call);
int lite_ring_wait_look(struct lite_rcall *call, int leave);
int lite_ring_wait_sleep(struct lite_rcall *call);
void lite_ring_wait_end(struct lite_client_ring *ring, struct lite_line *line, int err);
void lite_ring_wait_close(struct lite_client_ring *ring);
void lite_ring_line_work(struct work_struct *work);
void lite_lines_work(struct work_struct *work);
void lite_slot_drop(struct lite_client_ring_slot *s);
void lite_slot_free(struct lite_client_ring *ring, u32 slot);
void lite_slot_end(struct lite_client_ring *ring, u32 slot, int err);

int lite_rcall_prepare(struct lite_rcall *call);
int lite_rcall_copy(struct lite_rcall *call);
void lite_rcall_drop(struct lite_rcall *call);
u32 lite_rcall_body(const struct lite_rcall *call);
int lite_rcall_begin(struct lite_rcall *call);
void lite_rcall_unqueue(struct lite_rcall *call);
int lite_rcall_result(const struct lite_rcall *call);
bool lite_rcall_abandon(struct lite_rcall *call, struct lite_client_ring *ring, int err);
void lite_rcall_free_slot(struct lite_rcall *call);
void lite_rcall_unbind(struct lite_rcall *call);
void lite_rcall_finish(struct lite_rcall *call);
void *lite_rcall_record(const struct lite_rcall *call);
int lite_client_ring_on_reply(struct lite_rpc_peer *rp, u16 index, u16 slot);
void lite_cancel_drop(struct lite_client_ring *ring, u32 slot);
void lite_cancel_work(struct work_struct *work);

int lite_service_call(struct lite_rcall *call, const struct lite_buf *reply);

/* What COLLECT reports of an ended call. */
static inline void lite_async_tell(const struct lite_async *a, struct lite_ioc_rpc_collect *c)
{
	const struct lite_rcall *call = &a->call;

	c->error = lite_rcall_result(call);
	c->reply_len = !call->err ? call->reply_len : 0;
	/* The address is of the process that began the call. */
	if (c->flags & LITE_RPC_INTO && c->reply_len && a->mm != current->mm) {
		c->error = -EFAULT;
		c->reply_len = 0;
	}
	c->status = call->user;
	c->node = call->node;
	c->function = call->function;
	c->cookie = a->cookie;
}

#endif /* _LITE_FUNCTION_CALL_H */
