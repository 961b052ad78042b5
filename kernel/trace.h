/* SPDX-License-Identifier: GPL-2.0 */
/* Tracepoints: all changes of state, operations and calls. None contains an address or a key. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM lite

#if !defined(_LITE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _LITE_TRACE_H

#include <linux/tracepoint.h>
#include <linux/types.h>

/* State: enum lite_conn_state, 3: fenced, 4: gone. Cause, figure (if dead): enum lite_end_cause. */
TRACE_EVENT(lite_conn,
	TP_PROTO(u64 session, u32 node, int state, int reason, int cause, u64 figure),
	TP_ARGS(session, node, state, reason, cause, figure),
	TP_STRUCT__entry(
		__field(u64, session)
		__field(u32, node)
		__field(int, state)
		__field(int, reason)
		__field(int, cause)
		__field(u64, figure)
	),
	TP_fast_assign(
		__entry->session = session;
		__entry->node = node;
		__entry->state = state;
		__entry->reason = reason;
		__entry->cause = cause;
		__entry->figure = figure;
	),
	TP_printk("session=%llu node=%u state=%s reason=%d cause=%s figure=%llu",
		  __entry->session, __entry->node,
		  __print_symbolic(__entry->state, { 0, "new" }, { 1, "up" }, { 2, "dead" },
				   { 3, "fenced" }, { 4, "gone" }),
		  __entry->reason,
		  __print_symbolic(__entry->cause, { 0, "none" }, { 1, "silence" },
				   { 2, "op_timeout" }, { 3, "transport" }, { 4, "revoke" },
				   { 5, "call" }, { 6, "message" }, { 7, "device" }, { 8, "peer" },
				   { 9, "fence" }, { 10, "replaced" }, { 11, "leave" }),
		  __entry->figure)
);

/* Work requests are posted after they have waited for their turn. Times in ns. */
TRACE_EVENT(lite_turn,
	TP_PROTO(u64 session, u64 tenant, u32 class, u32 bytes, u64 waited),
	TP_ARGS(session, tenant, class, bytes, waited),
	TP_STRUCT__entry(
		__field(u64, session)
		__field(u64, tenant)
		__field(u32, class)
		__field(u32, bytes)
		__field(u64, waited)
	),
	TP_fast_assign(
		__entry->session = session;
		__entry->tenant = tenant;
		__entry->class = class;
		__entry->bytes = bytes;
		__entry->waited = waited;
	),
	TP_printk("session=%llu tenant=%#llx class=%u bytes=%u waited=%llu",
		  __entry->session, __entry->tenant, __entry->class, __entry->bytes,
		  __entry->waited)
);

/* State: enum lite_node_state. */
TRACE_EVENT(lite_member,
	TP_PROTO(u32 self, u32 node, u64 incarnation, int state),
	TP_ARGS(self, node, incarnation, state),
	TP_STRUCT__entry(
		__field(u32, self)
		__field(u32, node)
		__field(u64, incarnation)
		__field(int, state)
	),
	TP_fast_assign(
		__entry->self = self;
		__entry->node = node;
		__entry->incarnation = incarnation;
		__entry->state = state;
	),
	TP_printk("self=%u node=%u incarnation=%llu state=%s",
		  __entry->self, __entry->node, __entry->incarnation,
		  __print_symbolic(__entry->state, { 0, "idle" }, { 1, "joining" }, { 2, "up" },
				   { 3, "leaving" }, { 4, "down" }, { 5, "stopped" }))
);

DECLARE_EVENT_CLASS(lite_call_class,
	TP_PROTO(u64 session, u32 node, u16 call, int err),
	TP_ARGS(session, node, call, err),
	TP_STRUCT__entry(
		__field(u64, session)
		__field(u32, node)
		__field(u16, call)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->session = session;
		__entry->node = node;
		__entry->call = call;
		__entry->err = err;
	),
	TP_printk("session=%llu node=%u call=%u err=%d",
		  __entry->session, __entry->node, __entry->call, __entry->err)
);

/* A call to a peer's kernel has ended. */
DEFINE_EVENT(lite_call_class, lite_call,
	TP_PROTO(u64 session, u32 node, u16 call, int err),
	TP_ARGS(session, node, call, err));

/* A user's call of a function has ended. */
TRACE_EVENT(lite_rpc,
	TP_PROTO(u32 node, u32 function, u32 length, u32 reply, int err),
	TP_ARGS(node, function, length, reply, err),
	TP_STRUCT__entry(
		__field(u32, node)
		__field(u32, function)
		__field(u32, length)
		__field(u32, reply)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->node = node;
		__entry->function = function;
		__entry->length = length;
		__entry->reply = reply;
		__entry->err = err;
	),
	TP_printk("node=%u function=%u length=%u reply=%u err=%d", __entry->node,
		  __entry->function, __entry->length, __entry->reply, __entry->err)
);

/* A peer's call has been served. */
DEFINE_EVENT(lite_call_class, lite_serve,
	TP_PROTO(u64 session, u32 node, u16 call, int err),
	TP_ARGS(session, node, call, err));

DECLARE_EVENT_CLASS(lite_lmr_class,
	TP_PROTO(u32 home, u64 id, u64 length),
	TP_ARGS(home, id, length),
	TP_STRUCT__entry(
		__field(u32, home)
		__field(u64, id)
		__field(u64, length)
	),
	TP_fast_assign(
		__entry->home = home;
		__entry->id = id;
		__entry->length = length;
	),
	TP_printk("home=%u id=%llu length=%llu", __entry->home, __entry->id, __entry->length)
);

#define LITE_LMR_EVENT(name)						\
	DEFINE_EVENT(lite_lmr_class, name,				\
		TP_PROTO(u32 home, u64 id, u64 length), TP_ARGS(home, id, length))

/* At the home. */
LITE_LMR_EVENT(lite_lmr_create);
LITE_LMR_EVENT(lite_lmr_dying);
LITE_LMR_EVENT(lite_lmr_free);

/* At a mapper. */
LITE_LMR_EVENT(lite_map);
LITE_LMR_EVENT(lite_unmap);
LITE_LMR_EVENT(lite_revoked);
LITE_LMR_EVENT(lite_retired);

/* A user's operation has ended. */
TRACE_EVENT(lite_op,
	TP_PROTO(int opcode, u64 lh, u64 offset, u64 length, int err),
	TP_ARGS(opcode, lh, offset, length, err),
	TP_STRUCT__entry(
		__field(int, opcode)
		__field(u64, lh)
		__field(u64, offset)
		__field(u64, length)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->opcode = opcode;
		__entry->lh = lh;
		__entry->offset = offset;
		__entry->length = length;
		__entry->err = err;
	),
	TP_printk("op=%s lh=%llx offset=%llu length=%llu err=%d",
		  __print_symbolic(__entry->opcode, { 1, "read" }, { 2, "write" },
				   { 3, "fetch-add" }, { 4, "cmp-swap" }, { 5, "swap" },
				   { 6, "fetch-and" }, { 7, "fetch-or" }, { 8, "set" },
				   { 9, "copy" }, { 10, "compare" }, { 11, "checksum" },
				   { 12, "fence" }),
		  __entry->lh, __entry->offset, __entry->length, __entry->err)
);

/* At the node that takes the lock. */
#define LITE_TRACE_LOCK_TAKE 0    /* taken, or not */
#define LITE_TRACE_LOCK_BACK 1    /* released, or not yet */
/* At the home: claims are queued, granted, and end. */
#define LITE_TRACE_LOCK_QUEUE 2
#define LITE_TRACE_LOCK_FOUND 3   /* the lock word named it */
#define LITE_TRACE_LOCK_GRANT 4
#define LITE_TRACE_LOCK_REFUSED 5 /* not wanted any more */
#define LITE_TRACE_LOCK_END 6

/* A claim on a lock: ticket of node. Status: errno, or enum lite_lock_end. */
TRACE_EVENT(lite_lock,
	TP_PROTO(int what, u64 id, u64 offset, u32 node, u32 ticket, int status),
	TP_ARGS(what, id, offset, node, ticket, status),
	TP_STRUCT__entry(
		__field(int, what)
		__field(u64, id)
		__field(u64, offset)
		__field(u32, node)
		__field(u32, ticket)
		__field(int, status)
	),
	TP_fast_assign(
		__entry->what = what;
		__entry->id = id;
		__entry->offset = offset;
		__entry->node = node;
		__entry->ticket = ticket;
		__entry->status = status;
	),
	TP_printk("%s id=%llu offset=%llu node=%u ticket=%u status=%d",
		  __print_symbolic(__entry->what, { 0, "take" }, { 1, "back" }, { 2, "queue" },
				   { 3, "found" }, { 4, "grant" }, { 5, "refused" }, { 6, "end" }),
		  __entry->id, __entry->offset, __entry->node, __entry->ticket, __entry->status)
);

#endif /* _LITE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
