/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls of functions between processes (and kernel clients) of all nodes.
 * Documentation/rpc.rst tells the story: functions, rings, records, slots.
 *
 *   func.c     functions: who serves them, who waits for requests
 *   kfunc.c    those that kernel clients serve
 *   area.c     the memory of rings and mirrors
 *   ring.c     the server's side of a ring: requests come in, answers go out
 *   ring_call.c BIND, UNBIND, CANCEL, FIND, served
 *   bind.c     the client's side: from BIND to UNBIND
 *   line.c     slots and records, and who waits for them
 *   call.c     calls
 *   reply.c    their replies come in; cancel.c: nobody waits for them any more
 *   async.c    calls that are collected later
 *   multi.c    one call to several nodes
 *   bulk.c     memory for what is too long for a ring
 *   refer.c    the client's side of that; serve_bulk.c the server's
 *   file.c     what an open file has of all this
 *   recv.c     taking requests and answering them
 *   inbox*.c   taking them without a call (inbox.h)
 *   service.c  life of the layer, and of its part of a connection
 *
 * A node's calls to itself take the same ways: its "connection" is a struct
 * lite_rpc_peer without one, ring and mirror are the same memory, and an immediate
 * is a function call.
 *
 * Locking: svc->lock protects all of the server's side: functions, queues, who
 * waits, states of requests. rp->lock protects the client's side of a connection:
 * its binds, slots, records, lines. They are spinlocks of process context, held
 * for moments, and not nested in each other. Receive handlers take both, one
 * after the other; so nothing is posted, and nobody's memory is copied, with one
 * held.
 */
#ifndef _LITE_SERVICE_H
#define _LITE_SERVICE_H

#include <linux/poll.h>

#include "../core/ring.h"
#include "../core/wire_rpc.h"
#include "../memory/memory.h"
#include "bulk.h"

struct lite_service;
struct lite_rpc_file;
struct lite_rpc_peer;
struct lite_ring;
struct lite_bind;
struct lite_rcall;
struct lite_inbox;
struct lite_inbox_view;

/* Memory for rings that a node gives, of all it has: one part in so many. */
#define LITE_RINGS_SHARE 16
#define LITE_RINGS_BYTES_MAX (64UL << 20)
/* Functions of a node. */
#define LITE_FUNCTIONS_MAX 4096
/* A ring that nobody uses for that long is given back. */
#define LITE_BIND_IDLE (10 * HZ)

/* When @ms, 0 meaning for ever, are over for sure. */
static inline unsigned long lite_rpc_deadline(u32 ms)
{
	/* Of the present jiffy a part is over. */
	return jiffies + (ms ? msecs_to_jiffies(ms) + 1 : MAX_JIFFY_OFFSET);
}

/* ---- memory: area.c ------------------------------------------------------ */

/**
 * struct lite_area - a ring, or the mirror of one
 * @ref: a local ring and its mirror are one area
 * @fab: mapped for its device; NULL: a local one
 * @chunk_bytes: whole pages
 * @n: chunks
 * @chunk: kernel addresses
 * @dma: what the device calls them
 */
struct lite_area {
	struct kref ref;
	struct lite_service *svc;
	struct lite_fabric *fab;
	u32 chunk_bytes;
	u32 n;
	struct {
		void *mem;
		u64 dma;
	} chunk[];
};

struct lite_area *lite_area_make(struct lite_service *svc,
				 struct lite_fabric *fab, u32 chunk_bytes,
				 u32 n);
void lite_area_put(struct lite_area *area);

static inline u32 lite_area_units(const struct lite_area *area)
{
	return area->chunk_bytes / LITE_RING_UNIT * area->n;
}

/* A unit's chunk, and the bytes before it there. */
static inline u32 lite_area_chunk(const struct lite_area *area, u32 unit,
				  u32 *offset)
{
	u32 per = area->chunk_bytes / LITE_RING_UNIT;

	*offset = unit % per * LITE_RING_UNIT;
	return unit / per;
}

static inline void *lite_area_at(const struct lite_area *area, u32 unit)
{
	u32 offset, chunk = lite_area_chunk(area, unit, &offset);

	return area->chunk[chunk].mem + offset;
}

static inline u64 lite_area_dma(const struct lite_area *area, u32 unit)
{
	u32 offset, chunk = lite_area_chunk(area, unit, &offset);

	return area->chunk[chunk].dma + offset;
}

/* ---- functions: func.c --------------------------------------------------- */

/**
 * struct lite_func - a function that is served here
 * @svc: node's
 * @ref: the table's, rings', requests' that are not free
 * @number: its number
 * @cookie: of this registration
 * @name: or empty
 * @uid: owner
 * @gid: owner's group
 * @mode: who may call
 * @flags: LITE_RPC_SHARED
 * @max_request: bytes
 * @max_reply: bytes
 * @ring_size: bytes
 * @dead: nobody serves it any more; under svc->lock, as the rest
 * @servers: struct lite_server: who serves it, in turns
 * @queue: requests that wait to be taken
 * @rings: of its clients
 * @handler: of a kernel client, instead of @servers; NULL: there is none
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
	struct list_head queue;
	struct list_head rings;
	struct lite_kfunc *handler;
};

/**
 * struct lite_server - an open file serves a function
 * @func: which
 * @file: who
 * @of_func: in func->servers
 * @of_file: in file->servers
 * @inbox: where requests are put; or NULL
 */
struct lite_server {
	struct lite_func *func;
	struct lite_rpc_file *file;
	struct list_head of_func;
	struct list_head of_file;
	struct lite_inbox *inbox;
};

/**
 * enum lite_request_state - who has a request
 * @LITE_REQ_FREE: the client; the slot is not in use
 * @LITE_REQ_QUEUED: its function's queue
 * @LITE_REQ_BUSY: a thread, which copies, or posts
 * @LITE_REQ_TAKEN: an open file
 * @LITE_REQ_ANSWER: svc->answers
 * @LITE_REQ_FREED: rp->freed
 */
enum lite_request_state {
	LITE_REQ_FREE,
	LITE_REQ_QUEUED,
	LITE_REQ_BUSY,
	LITE_REQ_TAKEN,
	LITE_REQ_ANSWER,
	LITE_REQ_FREED,
};

/**
 * struct lite_request - a request, in its slot of a ring
 * @ring: whose
 * @list: func->queue, file->taken or svc->answers
 * @state: under svc->lock
 * @cancelled: while BUSY: the caller has been told that a reply comes, so one
 *	has to
 * @kept: it waits for none, but has been told that the record is not free
 * @status: ANSWER: what to say
 * @unit: its record
 * @gen: TAKEN: number of the taking, in this node: makes tokens differ
 * @seq: of the call
 * @length: bytes
 * @room: for the reply
 * @list_bytes: between header and request: addresses of what is not in the record
 * @n_request: chunks of the request there; 0: it is in the record
 * @n_reply: chunks for the reply there, behind them; 0: it fits into the record
 * @data: BUSY, QUEUED: the request, if it has been fetched; of who is BUSY with it
 * @by_reference: BUSY: the reply has been written into the chunks for it
 * @reply: address of the record in the mirror
 * @uid: of the caller
 * @gid: of the caller
 * @flags: enum lite_rpc_flags
 * @file: TAKEN: who has it
 * @owner: TAKEN: the process, as files_struct
 * @view: where its process reads it; NULL: it has a copy
 * @number: there: of its entry
 * @kfunc: BUSY: whose handler runs, or will
 * @user: ANSWER: what the server says
 * @work: runs it, or posts the answer
 */
struct lite_request {
	struct lite_ring *ring;
	struct list_head list;
	enum lite_request_state state;
	bool cancelled;
	bool kept;
	u8 status;
	u32 unit;
	u32 gen;
	u64 seq;
	u32 length;
	u32 room;
	u32 list_bytes;
	u32 n_request;
	u32 n_reply;
	struct lite_bulk *data;
	bool by_reference;
	u64 reply;
	u32 uid;
	u32 gid;
	u32 flags;
	struct lite_rpc_file *file;
	const void *owner;
	struct lite_inbox_view *view;
	u64 number;
	struct lite_kfunc *kfunc;
	u32 user;
	struct work_struct work;
};

/**
 * struct lite_recv_waiter - a thread that waits for a request, or for its inbox
 * @list: in file->waiters, or inbox->waiters, until it has one
 * @function: only for this one; 0: any
 * @req: what it got, BUSY
 * @err: or why there is none; LITE_INBOX_CAME: there is, in the inbox
 * @done: completed with either
 */
struct lite_recv_waiter {
	struct list_head list;
	u32 function;
	struct lite_request *req;
	int err;
	struct completion done;
};

int lite_func_register(struct lite_rpc_file *file, const struct lite_cred *cred,
		       struct lite_ioc_rpc_register *r);
int lite_func_register_kernel(struct lite_service *svc, struct lite_kfunc *kf,
			      const struct lite_ioc_rpc_register *r);
void lite_func_unregister_kernel(struct lite_func *func);
int lite_func_unregister(struct lite_rpc_file *file, u32 number);
void lite_func_leave_all(struct lite_rpc_file *file);
struct lite_func *lite_func_find(struct lite_service *svc, u32 number,
				 const char *name);
void lite_func_put(struct lite_func *func);
struct lite_server *lite_server_find(struct lite_rpc_file *file, u32 number);
void lite_func_serve(struct lite_func *func);
void lite_func_queue(struct lite_func *func, struct lite_request *req,
		     bool first);
void lite_func_describe(const struct lite_func *func,
			struct lite_wire_rpc_func *out);

/**
 * struct lite_kfunc - a function that a kernel client serves: kfunc.c
 * @func: the function, with a reference
 * @handler: what serves it
 * @priv: for it
 * @is_short: it runs where the request comes in
 * @max_reply: bytes
 * @running: handlers, and one until it is unregistered
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

/* ---- the server's side: ring.c, ring_call.c ------------------------------ */

/**
 * struct lite_ring - a ring, at the server
 * @rp: of the client's connection
 * @func: whose requests; another one of that number follows it: under svc->lock
 * @of_func: in func->rings, likewise
 * @gone_work: tells the client that @func is dead
 * @number: of the function
 * @ref: the table's, and one for each request that is not FREE
 * @index: in immediates, and in rp->rings
 * @id: in tokens, and in svc->rings
 * @area: its memory
 * @blind: what the client adds to addresses in headers, which servers may see
 * @views: struct lite_inbox_view: who sees it; under svc->lock
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
	u64 blind;
	struct list_head views;
	bool gone;
	struct lite_request req[LITE_RPC_DEPTH];
};

struct lite_ring *lite_ring_make(struct lite_rpc_peer *rp, u32 function);
void lite_ring_put(struct lite_ring *ring);
u32 lite_func_ring_bytes(const struct lite_func *func, u32 *chunk);
void lite_ring_tell_gone(struct lite_ring *ring);
int lite_ring_end(struct lite_ring *ring, bool down);
int lite_ring_cancel(struct lite_rpc_peer *rp, u32 index, u32 slot, u64 seq);
int lite_ring_on_request(struct lite_rpc_peer *rp, u16 index, u16 unit);
void lite_request_free(struct lite_request *req);
void lite_request_freed(struct lite_request *req);
void lite_request_tell_freed(struct lite_request *req);
void lite_freed_work(struct work_struct *work);
void lite_request_answer(struct lite_request *req, u8 status);
void lite_answer_work(struct work_struct *work);
int lite_request_post(struct lite_request *req, u8 status, u32 length,
		      u32 user);
void lite_request_post_soon(struct lite_request *req, u8 status, u32 length,
			    u32 user);
/* Bytes of a reply for which there is room in the record. */
static inline u32 lite_request_inline(const struct lite_request *req)
{
	return req->n_reply ? min(req->room, LITE_RPC_BULK_INLINE) : req->room;
}

u64 lite_request_token(const struct lite_request *req);
struct lite_request *lite_request_by_token(struct lite_rpc_file *file,
					   u64 token);
void lite_ring_handlers(struct lite_service *svc);
void lite_ring_gone_work(struct work_struct *work);
bool lite_bind_is_stale(struct lite_rcall *call);

/* ---- the client's side: bind.c, line.c, call.c, async.c ------------------ */

enum lite_bind_slot_state {
	LITE_BIND_FREE,
	LITE_BIND_FILLING,    /* of who is about to post it, and nobody else */
	LITE_BIND_WAITING,
	LITE_BIND_ENDED,
	LITE_BIND_ABANDONED,  /* to be cancelled; a message: it is not */
	LITE_BIND_CANCELLING,
	LITE_BIND_KEPT,       /* not under way; until FREED */
};

/**
 * struct lite_bind_slot - a call under way
 * @state: under rp->lock
 * @oneway: a message
 * @unit: its record
 * @units: of it
 * @room: bytes of a reply that fit
 * @seq: of the call
 * @call: who waits: FILLING, WAITING, ENDED
 * @request: memory that the peer reads, if it is not in the record; with a
 *	reference until the reply has come, or as long as the mirror
 * @reply: memory that the peer writes, likewise
 */
struct lite_bind_slot {
	enum lite_bind_slot_state state;
	bool oneway;
	u32 unit;
	u32 units;
	u32 room;
	u64 seq;
	struct lite_rcall *call;
	struct lite_bulk *request;
	struct lite_bulk *reply;
};

enum lite_bind_state {
	LITE_BIND_NEW,     /* being bound */
	LITE_BIND_LIVE,
	LITE_BIND_CLOSING, /* no new calls; unbound when none is under way */
	LITE_BIND_DEAD,
};

/**
 * struct lite_bind - a ring, at the client
 * @rp: of the server's connection
 * @ref: rp's tables, callers, work
 * @function: which
 * @state: under rp->lock, as the rest
 * @err: NEW to DEAD: why
 * @ready: completed when it is NEW no more
 * @list: in rp->binds
 * @line_list: in rp->lines, while there is somebody in @line
 * @line: struct lite_liner: who waits for room
 * @index: number of the ring
 * @cookie: of the function
 * @depth: slots
 * @max_request: bytes
 * @max_reply: bytes
 * @uid: owner of the function
 * @gid: likewise
 * @mode: likewise
 * @squash: root of this node is nobody there
 * @area: mirror
 * @remote: addresses of the ring's chunks
 * @blind: is added to addresses in headers
 * @map: what of it is taken
 * @slots_used: bits
 * @under_way: of their calls, count in the window; those that are KEPT do not
 * @used: jiffies, when it was last used
 * @typical_ns: how long calls have been taking lately
 * @unbind_work: when CLOSING and empty
 * @slot: they
 */
struct lite_bind {
	struct lite_rpc_peer *rp;
	struct kref ref;
	u32 function;
	enum lite_bind_state state;
	int err;
	struct completion ready;
	struct list_head list;
	struct list_head line_list;
	struct list_head line;
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
	u64 blind;
	struct lite_ring_map map;
	u64 slots_used;
	u32 under_way;
	unsigned long used;
	u64 typical_ns;
	struct work_struct unbind_work;
	struct lite_bind_slot slot[LITE_RPC_DEPTH];
};

/**
 * struct lite_rcall - a call
 * @svc: node's
 * @node: of the server
 * @function: of it
 * @cred: the caller; NULL: the kernel
 * @request: bytes to send
 * @length: of them
 * @bulk: they, if they are too many for a ring; or NULL
 * @room: for the reply
 * @reply_bulk: it, likewise
 * @by_reference: the reply is there
 * @flags: LITE_RPC_NOWAIT, LITE_RPC_ONEWAY, LITE_RCALL_TRY
 * @deadline: jiffies
 * @gate: the node, which is let go while user memory is waited for; or NULL
 * @bind: where it is, with a reference
 * @slot: its slot
 * @missing: it was not begun, for its request is not all in memory
 * @status: of the reply: enum lite_rpc_status
 * @user: what the server said
 * @reply_len: bytes of the reply
 * @err: or why there is none
 * @done: completed when it has ended
 * @ended: called instead, with rp->lock held; see async.c
 */
struct lite_rcall {
	struct lite_service *svc;
	u32 node;
	u32 function;
	const struct lite_cred *cred;
	struct lite_buf request;
	u32 length;
	struct lite_bulk *bulk;
	u32 room;
	struct lite_bulk *reply_bulk;
	bool by_reference;
	u32 flags;
	unsigned long deadline;
	struct lite_bind *bind;
	u32 slot;
	bool missing;
	u8 status;
	u32 user;
	u32 reply_len;
	int err;
	struct completion done;
	void (*ended)(struct lite_rcall *call);
};

/* Rings that may turn out to be of no use, for one call. */
#define LITE_RCALL_TRIES 4
/* With NOWAIT: not even for a ring to be bound, or a node to come back. */
#define LITE_RCALL_TRY BIT(31)

int lite_bind_get(struct lite_rcall *call);
void lite_bind_put(struct lite_bind *bind);
void lite_bind_close(struct lite_bind *bind);
void lite_bind_close_index(struct lite_rpc_peer *rp, u32 index);
void lite_bind_check_empty(struct lite_bind *bind);
int lite_bind_may_call(const struct lite_bind *bind, struct lite_rcall *call);
void lite_binds_idle(struct lite_rpc_peer *rp, bool all);
void lite_binds_down(struct lite_rpc_peer *rp);
void lite_binds_gone(struct lite_rpc_peer *rp);

int lite_line_take(struct lite_rcall *call);
void lite_line_move(struct lite_rpc_peer *rp);
void lite_line_end(struct lite_bind *bind, int err);
void lite_window_leave(struct lite_bind *bind);
void lite_slot_drop(struct lite_bind_slot *s);
void lite_slot_free(struct lite_bind *bind, u32 slot);
void lite_slot_end(struct lite_bind *bind, u32 slot, int err);
void lite_slot_keep(struct lite_bind *bind, u32 slot);
int lite_binds_freed(struct lite_rpc_peer *rp,
		     const struct lite_wire_rpc_cancel *c);

int lite_rcall_begin(struct lite_rcall *call);
int lite_rcall_fault_in(const struct lite_rcall *call);
bool lite_service_watch(struct lite_service *svc, struct completion *done,
			u64 end);
bool lite_rcall_heed(const struct lite_rcall *call);
void lite_rcall_unheed(const struct lite_rcall *call);
void lite_rcall_wait(struct lite_rcall *call, bool killable);
int lite_rcall_result(const struct lite_rcall *call);
bool lite_rcall_abandon(struct lite_rcall *call, int err);
const void *lite_rcall_reply(const struct lite_rcall *call);
void lite_rcall_finish(struct lite_rcall *call);
int lite_rcall_fetch(struct lite_rcall *call, const struct lite_buf *to,
		     void **copy, size_t *done);
int lite_rcall_store(const struct lite_rcall *call, const struct lite_buf *to,
		     void *copy, size_t done);
int lite_bind_on_reply(struct lite_rpc_peer *rp, u16 index, u16 slot,
		       bool done);
void lite_cancel_work(struct work_struct *work);

int lite_service_call(struct lite_service *svc, struct lite_rcall *call,
		      const struct lite_buf *reply);

/* ---- open files: file.c, recv.c, async.c --------------------------------- */

/**
 * struct lite_rpc_file - what an open file serves, has taken, and has called
 * @svc: node's
 * @ref: the file's, and those of its asynchronous calls
 * @list: in svc->files
 * @shut: takes nothing any more; under svc->lock, as the next ones
 * @servers: struct lite_server
 * @n_servers: how many
 * @n_inboxes: of them, have an inbox
 * @taken: requests
 * @waiters: struct lite_recv_waiter
 * @gap_ns: how long RECV has been waiting lately
 * @watching: bit 0: one of @waiters is awake
 * @wait: for poll(2), and COLLECT
 * @lock: protects the next ones; inside of rp->lock
 * @calls: struct lite_async, under way
 * @ended: those that have ended
 * @n_calls: in both
 * @expire: ends those that take too long
 * @expiring: it is to run, at
 * @expire_at: jiffies
 */
struct lite_rpc_file {
	struct lite_service *svc;
	struct kref ref;
	struct list_head list;
	bool shut;
	struct list_head servers;
	u32 n_servers;
	u32 n_inboxes;
	struct list_head taken;
	struct list_head waiters;
	u64 gap_ns;
	unsigned long watching;
	wait_queue_head_t wait;
	spinlock_t lock;
	struct list_head calls;
	struct list_head ended;
	u32 n_calls;
	struct delayed_work expire;
	bool expiring;
	unsigned long expire_at;
};

struct lite_rpc_file *lite_rpc_file_new(struct lite_service *svc);
void lite_rpc_file_put(struct lite_rpc_file *file);
void lite_rpc_file_flush(struct lite_rpc_file *file, const void *owner);
void lite_rpc_file_shut(struct lite_rpc_file *file);
__poll_t lite_rpc_file_poll(struct lite_rpc_file *file, struct file *filp,
			    poll_table *table);

int lite_user_fault_in(const struct lite_buf *buf, size_t from, size_t n,
		       bool write);
void lite_file_untake(struct lite_rpc_file *file, u64 token);
struct lite_request *lite_recv_wait(struct lite_rpc_file *file,
				    struct lite_recv_waiter *w,
				    unsigned long deadline);
int lite_file_recv(struct lite_rpc_file *file, struct lite_ioc_rpc_recv *r,
		   struct lite_gate *gate);
int lite_file_call(struct lite_rpc_file *file, struct lite_ioc_rpc_call *c,
		   const struct lite_cred *cred, struct lite_gate *gate);
int lite_file_collect(struct lite_rpc_file *file,
		      struct lite_ioc_rpc_collect *c, struct lite_gate *gate);
void lite_async_expire_work(struct work_struct *work);
void lite_async_shut(struct lite_rpc_file *file);
int lite_service_find(struct lite_service *svc, struct lite_ioc_rpc_find *f);

/* ---- the layer: service.c ------------------------------------------------ */

/**
 * struct lite_rpc_peer - both sides of a connection, or of this node to itself
 * @svc: node's
 * @conn: NULL: this node
 * @list: in svc->peers
 * @io: of what is posted and not waited for
 * @rings: the server's side, by index; changed under svc->lock
 * @down: no new rings; under svc->lock
 * @freed: requests that were kept; likewise
 * @freed_work: tells the peer of them
 * @lock: protects the client's side, the next ones
 * @dead: no new calls
 * @window: calls that may yet be under way
 * @binds: struct lite_bind, those that are not DEAD
 * @by_index: LIVE and CLOSING ones
 * @lines: struct lite_bind, those with somebody in line; in turns
 * @cancel_work: tells the peer of ABANDONED calls
 */
struct lite_rpc_peer {
	struct lite_service *svc;
	struct lite_conn *conn;
	struct list_head list;
	struct lite_io io;
	struct xarray rings;
	bool down;
	struct list_head freed;
	struct work_struct freed_work;
	spinlock_t lock;
	bool dead;
	u32 window;
	struct list_head binds;
	struct xarray by_index;
	struct list_head lines;
	struct work_struct cancel_work;
};

/**
 * struct lite_service - the services of a node
 * @cl: node's
 * @mem: node's
 * @fab: node's
 * @stats: node's
 * @local: calls of this node to itself
 * @cookies: of functions; differ from life to life
 * @seqs: of calls
 * @lock: protects the server's side
 * @stopping: nobody waits any more
 * @functions: by number
 * @n_functions: of them
 * @next_function: where to look for a number that is free
 * @rings: by id
 * @taken: requests, so far
 * @files: struct lite_rpc_file
 * @answers: requests to be answered by @answer_work
 * @ring_bytes: memory of rings, and of what describes them
 * @ring_limit: of it
 * @bulk_bytes: memory of struct lite_bulk
 * @bulk_limit: of it
 * @wq: workqueue: cancels, answers, unbinding
 * @kwq: handlers of kernel clients
 * @idle_work: gives back what nobody uses
 * @leg_threads: that are beginning calls
 * @peers_lock: protects the next one
 * @peers: struct lite_rpc_peer
 */
struct lite_service {
	struct lite_cluster *cl;
	struct lite_memory *mem;
	struct lite_fabric *fab;
	struct lite_stats __percpu *stats;
	struct lite_rpc_peer local;
	atomic64_t cookies;
	atomic64_t seqs;
	spinlock_t lock;
	bool stopping;
	struct xarray functions;
	u32 n_functions;
	u32 next_function;
	struct xarray rings;
	u32 taken;
	struct list_head files;
	struct list_head answers;
	struct work_struct answer_work;
	atomic64_t ring_bytes;
	u64 ring_limit;
	atomic64_t bulk_bytes;
	u64 bulk_limit;
	struct workqueue_struct *wq;
	struct workqueue_struct *kwq;
	struct delayed_work idle_work;
	atomic_t leg_threads;
	spinlock_t peers_lock;
	struct list_head peers;
};

int lite_service_init(struct lite_service *svc, struct lite_memory *mem,
		      struct lite_rpc *rpc);
void lite_service_stop(struct lite_service *svc);
void lite_service_shut(struct lite_service *svc);
void lite_service_exit(struct lite_service *svc);

/* For the fabric (struct lite_fabric_ops). */
int lite_service_conn_init(struct lite_service *svc, struct lite_conn *conn);
void lite_service_conn_release(struct lite_conn *conn);
void lite_service_conn_down(struct lite_conn *conn);
void lite_service_conn_gone(struct lite_conn *conn);
void lite_service_recv(struct lite_conn *conn, u32 imm);

int lite_rpc_peer_post(struct lite_rpc_peer *rp, struct lite_area *area,
		       u32 unit, u32 bytes, u64 raddr, u32 imm, bool nowait);

#endif /* _LITE_SERVICE_H */
