// SPDX-License-Identifier: GPL-2.0
/*
 * Workqueues and handlers of a node's calls between kernels, and the slots of a connection. Memory
 * that the peer writes (req_in, rep_in) is freed with the last reference to the connection, after
 * the fence.
 */
#include <linux/slab.h>

#include "kcall.h"

/* Workers of each lane for calls of this node to itself. */
#define LITE_LOCAL_WORKERS 16

/*
 * Prepare to make and to serve calls. @kcalls: zeroed; @timeout: jiffies, for calls that set none.
 * Context: may sleep. Return: 0 or -ENOMEM.
 */
int lite_kcall_init(struct lite_kcalls *kcalls, struct lite_stats __percpu *stats,
		    unsigned long timeout)
{
	/*
	 * One for each lane: handlers wait only for those of later lanes, here or on other nodes,
	 * so no queue is full of waiters for its own items. Heartbeats must not wait for a worker
	 * nor, if there is no memory to make one, for a rescuer that is busy with slow handlers.
	 * Each peer can occupy four workers of CALLER for minutes: allow as many as possible.
	 */
	static const struct {
		const char *name;
		unsigned int flags;
	} queues[LITE_LANES] = {
		[LITE_LANE_AWAIT] = { "lite-first", WQ_UNBOUND },
		[LITE_LANE_CALLER] = { "lite-calls", WQ_UNBOUND },
		[LITE_LANE_ALLOC] = { "lite-allocs", WQ_UNBOUND | WQ_MEM_RECLAIM },
		[LITE_LANE_REVOKE] = { "lite-revokes", WQ_UNBOUND | WQ_MEM_RECLAIM },
		[LITE_LANE_ENDS] = { "lite-ends", WQ_UNBOUND | WQ_MEM_RECLAIM },
		[LITE_LANE_WORK] = { "lite-work", WQ_UNBOUND | WQ_MEM_RECLAIM },
		[LITE_LANE_SHORT] = { "lite-short-calls", WQ_UNBOUND | WQ_MEM_RECLAIM },
	};
	int lane;

	kcalls->stats = stats;
	kcalls->timeout = timeout;
	atomic64_set(&kcalls->seq, 0);
	for (lane = 0; lane < LITE_LANES; lane++) {
		kcalls->wq[lane] = alloc_workqueue(queues[lane].name, queues[lane].flags,
						   WQ_MAX_ACTIVE);
		if (!kcalls->wq[lane]) {
			lite_kcall_exit(kcalls);
			return -ENOMEM;
		}
		lite_crew_init_on(&kcalls->local[lane], kcalls->wq[lane], LITE_LOCAL_WORKERS);
	}
	return 0;
}

/* Wait for the handlers that run; all connections are dying. May sleep. */
void lite_kcall_flush(struct lite_kcalls *kcalls)
{
	int lane;

	for (lane = 0; lane < LITE_LANES; lane++)
		flush_workqueue(kcalls->wq[lane]);
}

/* Undo lite_kcall_init(), also if it failed; all connections are gone. May sleep. */
void lite_kcall_exit(struct lite_kcalls *kcalls)
{
	int lane;

	for (lane = 0; lane < LITE_LANES; lane++) {
		if (kcalls->wq[lane])
			lite_crew_exit(&kcalls->local[lane]);
	}
}

/* Set the handler of a call; @kcalls is not serving yet. */
void lite_kcall_handle(struct lite_kcalls *kcalls, enum lite_call call, lite_handler *fn,
		       void *priv)
{
	kcalls->handler[call].fn = fn;
	kcalls->handler[call].priv = priv;
}

static int lite_slots_init(struct lite_conn *conn, struct lite_slots *slots)
{
	slots->since = lite_dma_since(conn->fab);
	slots->page = alloc_pages(GFP_KERNEL | __GFP_ZERO, get_order(LITE_SLOTS_BYTES));
	if (!slots->page)
		return -ENOMEM;
	if (lite_dma_map_page(conn->fab, slots->page, LITE_SLOTS_BYTES, &slots->dma)) {
		__free_pages(slots->page, get_order(LITE_SLOTS_BYTES));
		slots->page = NULL;
		return -ENOMEM;
	}
	return 0;
}

static void lite_slots_exit(struct lite_conn *conn, struct lite_slots *slots)
{
	if (!slots->page)
		return;
	if (lite_dma_unmap_page(conn->fab, slots->dma, LITE_SLOTS_BYTES, slots->since))
		__free_pages(slots->page, get_order(LITE_SLOTS_BYTES));
	slots->page = NULL;
}

/*
 * Make the slots of a connection, before it connects. May sleep. Return: 0 or -ENOMEM;
 * lite_kcall_conn_release() frees what was made.
 */
int lite_kcall_conn_init(struct lite_kcalls *kcalls, struct lite_conn *conn)
{
	struct lite_kcall_conn *rc = kzalloc(sizeof(*rc), GFP_KERNEL);
	int err;

	if (!rc)
		return -ENOMEM;
	rc->kcalls = kcalls;
	rc->conn = conn;
	spin_lock_init(&rc->lock);
	lite_kcall_slots_init(rc);
	err = lite_kcall_serve_init(rc);
	lite_beat_init(rc);
	/* Pairs with lite_kcall_conn_down(), which may run already. */
	smp_store_release(&conn->kcall, rc);
	err = err ?:
	      lite_slots_init(conn, &rc->req_in) ?:
	      lite_slots_init(conn, &rc->rep_in) ?:
	      lite_slots_init(conn, &rc->req_out) ?:
	      lite_slots_init(conn, &rc->rep_out);
	if (err)
		return err;
	conn->slots_in.requests = rc->req_in.dma;
	conn->slots_in.replies = rc->rep_in.dma;
	lite_beat_start(rc);
	return 0;
}

/*
 * Stop the beat, if it was started, of a connection that is gone: the last reference may be put
 * after the workqueues of this layer are destroyed. May sleep.
 */
void lite_kcall_conn_gone(struct lite_conn *conn)
{
	struct lite_kcall_conn *rc = conn->kcall;

	if (rc)
		cancel_delayed_work_sync(&rc->beat.work);
}

/* Free the slots of a connection that is fenced and has no references. */
void lite_kcall_conn_release(struct lite_conn *conn)
{
	struct lite_kcall_conn *rc = conn->kcall;

	lite_slots_exit(conn, &rc->req_in);
	lite_slots_exit(conn, &rc->rep_in);
	lite_slots_exit(conn, &rc->req_out);
	lite_slots_exit(conn, &rc->rep_out);
	kfree(rc->requests);
	conn->kcall = NULL;
	kfree(rc);
}

/* Handle a message of the peer, announced by @imm. Process context; does not sleep. */
void lite_kcall_recv(struct lite_conn *conn, u32 imm)
{
	struct lite_kcall_conn *rc = conn->kcall;
	enum lite_imm_kind kind;
	u16 ring, slot;

	lite_imm_decode(imm, &kind, &ring, &slot);
	if (ring || (kind != LITE_IMM_REQUEST && kind != LITE_IMM_REPLY) ||
	    slot >= LITE_SLOT_COUNT) {
		pr_warn_ratelimited("lite: malformed immediate from node %u\n", conn->from.node);
		lite_conn_kill(conn, -EPROTO);
		return;
	}
	if (kind == LITE_IMM_REQUEST)
		lite_kcall_on_request(rc, slot);
	else
		lite_kcall_on_reply(rc, slot);
}

/*
 * Write the message in a slot to the peer, and announce it. The caller holds the connection live.
 * Process context; does not sleep. Return: 0, or a negative errno, with which @io ends, too.
 */
int lite_kcall_post_live(struct lite_kcall_conn *rc, enum lite_imm_kind kind, u32 slot,
			 struct lite_io *io)
{
	const bool request = kind == LITE_IMM_REQUEST;
	struct lite_slots *from = request ? &rc->req_out : &rc->rep_out;
	struct lite_conn *conn = rc->conn;
	struct lite_wire_msg *msg = lite_slot_data(from, slot);
	struct ib_sge sge = {
		.addr = from->dma + lite_slot_offset(slot),
		.length = sizeof(*msg) + le32_to_cpu(msg->length),
		.lkey = conn->fab->lkey,
	};

	return lite_conn_send(conn, request ? slot : LITE_SLOT_COUNT + slot, io, &sge,
			      (request ? conn->requests : conn->replies) + lite_slot_offset(slot),
			      lite_imm_encode(kind, 0, slot));
}
