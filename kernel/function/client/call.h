/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The client's side of calls. See service.h for the overview and the locking.
 */
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
	LITE_CLIENT_RING_FILLING,    /* reserved by the caller that posts it */
	LITE_CLIENT_RING_WAITING,
	LITE_CLIENT_RING_ENDED,
	LITE_CLIENT_RING_ABANDONED,  /* to be cancelled; or a message */
	LITE_CLIENT_RING_CANCELLING,
};

/**
 * struct lite_client_ring_slot - a call in flight
 * @state: under rp->lock
 * @oneway: a message: it has no reply
 * @unit: first unit of its record
 * @units: length of its record
 * @room: maximum bytes of a reply
 * @seq: sequence number of the call
 * @part: its user's part of the window, held while the call is in flight;
 *	NULL: root
 * @call: FILLING, WAITING, ENDED: the waiting call
 * @request: memory that the peer reads if the request is not in the record;
 *	with a reference until the reply has come or, if the connection dies,
 *	until the mirror is freed
 * @reply: memory that the peer writes if the reply is not in the record; with
 *	a reference as @request
 */
struct lite_client_ring_slot {
	enum lite_client_ring_slot_state state;
	bool oneway;
	u32 unit;
	u32 units;
	u32 room;
	u64 seq;
	struct lite_pool_part *part;
	struct lite_rcall *call;
	struct lite_area *request;
	struct lite_area *reply;
};

enum lite_client_ring_state {
	LITE_CLIENT_RING_NEW,     /* being bound */
	LITE_CLIENT_RING_LIVE,
	LITE_CLIENT_RING_CLOSING, /* no new calls; unbound when empty */
	LITE_CLIENT_RING_DEAD,
};

/**
 * struct lite_client_ring - a ring, at the client
 * @rp: of the server's connection
 * @ref: held by rp's tables, callers and work items
 * @function: its number
 * @state: under rp->lock, as the fields below
 * @list: in rp->client_rings
 * @line_list: in rp->lines while @line has entries
 * @line: struct lite_rcall, calls waiting for room or, while it is NEW,
 *	for it to be bound
 * @index: number of the ring at the server
 * @cookie: of the function
 * @depth: slots
 * @max_request: bytes
 * @max_reply: bytes
 * @uid: owner of the function
 * @gid: group of the function
 * @mode: access mode of the function
 * @squash: the server treats root of this node as an unprivileged user
 * @area: the mirror
 * @remote: addresses of the ring's chunks
 * @map: which units of it are taken
 * @slots_used: bitmap
 * @used: time of last use, in jiffies
 * @pace: how long calls take
 * @unbind_work: unbinds it when it is CLOSING and empty
 * @slot: the slots
 */
struct lite_client_ring {
	struct lite_rpc_peer *rp;
	struct kref ref;
	u32 function;
	enum lite_client_ring_state state;
	struct list_head list;
	struct list_head line_list;
	struct lite_line line;
	u32 index;
	u64 cookie;
	u32 depth;
	u32 max_request;
	u32 max_reply;
	u32 uid;
	u32 gid;
	u32 mode;
	bool squash;
	struct lite_area *area;
	u64 *remote;
	struct lite_ring_map map;
	u64 slots_used;
	unsigned long used;
	struct lite_pace pace;
	struct work_struct unbind_work;
	struct lite_client_ring_slot slot[LITE_RPC_DEPTH];
};

/**
 * struct lite_rcall - a call
 * @svc: the node's services
 * @node: of the server
 * @function: its number
 * @registration: cookie of the function, or LITE_ANY_REGISTRATION
 * @cred: the caller; NULL: the kernel
 * @request: bytes to send
 * @length: bytes of the request
 * @bulk: copy of a request that is too long for a ring; or NULL
 * @room: maximum bytes of the reply
 * @reply_bulk: memory for a reply that may be too long for a ring; or NULL
 * @by_reference: the reply is in @reply_bulk
 * @copy: of a request that was not in memory, or that is sent later; or NULL
 * @flags: LITE_RPC_NOWAIT, LITE_RPC_ONEWAY, LITE_RCALL_TRY
 * @place: in ring->line, while @line_err is -EINPROGRESS; by uid
 * @line_err: outcome of waiting in line; under rp->lock
 * @part: its user's part of the window, until it passes to the slot
 * @units: length of the record that it needs
 * @deadline: jiffies
 * @ring: its ring, with a reference
 * @slot: its slot; LITE_NO_SLOT: none any more
 * @missing: it was not begun, as part of the request is not in memory:
 *	lite_rcall_copy() and begin it again
 * @status: of the reply: enum lite_rpc_status
 * @user: status that the server returned
 * @reply_len: bytes of the reply
 * @err: reason if there is no reply
 * @done: completed when it has ended, and when it has left the line
 * @ended: called instead of completing @done when the call ends, with rp->lock
 *	held; see async.c
 * @in_turn: called instead of completing @done when it leaves the line, with
 *	rp->lock held
 */
struct lite_rcall {
	struct lite_service *svc;
	u32 node;
	u32 function;
	u64 registration;
	const struct lite_cred *cred;
	struct lite_buf request;
	u32 length;
	struct lite_area *bulk;
	u32 room;
	struct lite_area *reply_bulk;
	bool by_reference;
	void *copy;
	u32 flags;
	struct lite_line_place place;
	int line_err;
	struct lite_pool_part *part;
	u32 units;
	unsigned long deadline;
	struct lite_client_ring *ring;
	u32 slot;
	bool missing;
	u8 status;
	u32 user;
	u32 reply_len;
	int err;
	struct completion done;
	void (*ended)(struct lite_rcall *call);
	void (*in_turn)(struct lite_rcall *call);
};

enum lite_async_state {
	LITE_ASYNC_NEW,     /* begun by the caller's thread */
	LITE_ASYNC_QUEUED,  /* begun by the work item */
	LITE_ASYNC_BEGUN,   /* in flight; can be abandoned */
	LITE_ASYNC_ENDING,  /* owned by the thread ending it */
	LITE_ASYNC_COPYING, /* the work item copies its reply */
	LITE_ASYNC_ENDED,   /* to be collected */
	LITE_ASYNC_GIVEN,   /* owned by the thread collecting it */
};

/**
 * struct lite_async - a call to be collected
 * @call: the call
 * @file: file to collect it from, with a reference
 * @ref: held by the list it is on, by the threads that begin or end it, and by
 *	pending work
 * @list: in file->calls; under file->lock, as @place, @state and @dropped
 * @place: in file->ended if ENDED, else in file->begun; in none if @dropped; by
 *	group
 * @state: says which thread owns it
 * @dropped: it will not be collected; if it is QUEUED, it will not be begun
 * @owner: files_struct of the process that began it
 * @number: of no other call of this node; not 0
 * @cookie: the user's cookie
 * @to: the user's address for the reply
 * @reply: buffer for the reply
 * @work: begins the call, ends it at its deadline, or copies its reply
 * @cred: QUEUED: the caller
 * @memcg: QUEUED: the caller's memcg, charged for reply memory
 */
struct lite_async {
	struct lite_rcall call;
	struct lite_rpc_file *file;
	struct kref ref;
	struct list_head list;
	struct lite_line_place place;
	enum lite_async_state state;
	bool dropped;
	const void *owner;
	u64 number;
	u64 cookie;
	u64 to;
	void *reply;
	struct delayed_work work;
	struct lite_cred cred;
	struct mem_cgroup *memcg;
};

/**
 * struct lite_collector - a thread in COLLECT
 * @place: in file->collectors, until it is woken; by group
 * @news: a call of the group has ended, or all are gone
 */
struct lite_collector {
	struct lite_line_place place;
	struct completion news;
};

#define LITE_NO_SLOT U32_MAX

/* Registration of a call that knows only the function's number. */
#define LITE_ANY_REGISTRATION U64_MAX
/*
 * Otherwise the cookie, cut to what an xarray can store: the peer chooses it.
 */
#define LITE_FOUND_COOKIE LONG_MAX

/*
 * Jiffies to wait for a reply before watching for failed posts. Watching
 * earlier would mostly cost the caller an extra wake-up.
 */
#define LITE_HEED_AFTER (HZ / 50)
/* Attempts per call to find a usable ring. */
#define LITE_RCALL_TRIES 4
/*
 * Used with NOWAIT: do not wait for a ring to be bound or a node to return
 * either.
 */
#define LITE_RCALL_TRY BIT(31)

int lite_client_ring_get(struct lite_rcall *call);
void lite_client_ring_put(struct lite_client_ring *ring);
void lite_client_ring_close(struct lite_client_ring *ring);
void lite_client_ring_close_index(struct lite_rpc_peer *rp, u32 index);
void lite_client_ring_check_empty(struct lite_client_ring *ring);
int lite_client_ring_may_call(const struct lite_client_ring *ring,
			      struct lite_rcall *call);
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
int lite_client_ring_on_reply(struct lite_rpc_peer *rp, u16 index, u16 at,
			      bool done);
void lite_cancel_work(struct work_struct *work);

int lite_service_call(struct lite_service *svc, struct lite_rcall *call,
		      const struct lite_buf *reply);

#endif /* _LITE_SERVICE_CALL_H */
