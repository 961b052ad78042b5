// SPDX-License-Identifier: GPL-2.0
/*
 * Chains: many one-sided operations on one queue pair, posted together.
 *
 * Normal operation: the poster takes up to LITE_POST_STEP free send slots at once and posts as many
 * work requests with one call. Only the last is signalled, because a queue pair completes in order.
 * Its slot records the slots before it (lite_wr.before) and frees them with its own. The rest is
 * posted in the same way; a poster that waits for a slot holds none without a posted work request.
 * A few slots are spared for other posters: when only those are free, a chain takes one at a time.
 *
 * Recovery: after a work request fails, all later ones complete with an error, signalled or not.
 * The completion of an unsignalled one ends the connection but completes no slot (its lite_wr.io is
 * NULL): the poster gets the error from the last one, which frees all slots of the chain. A thread
 * that still handles an earlier completion may find its slot in use again. The new owner has posted
 * nothing, because the connection was dead before the slot came free: it gets an error, once.
 *
 * If the device takes only some of the work requests, the signalled one is not among them. So
 * lite_qp_abort() completes the last slot, after the queue pair is destroyed.
 */
#include "chain.h"
#include "slot.h"

/*
 * Begin a chain that is posted with priority @prio (LITE_POST_PRIO) and @io, after lite_io_init().
 * The caller holds the connection live until lite_io_wait() returns.
 */
void lite_chain_init(struct lite_chain *chain, struct lite_qp *qp, struct lite_io *io, u8 prio)
{
	*chain = (struct lite_chain){
		.qp = qp,
		.io = io,
		.prio = prio,
		.kind = LITE_SLOT_SMALL,
		.last = &chain->first,
	};
}

/* Add a work request to a chain; its memory stays until the chain is posted. */
void lite_chain_add(struct lite_chain *chain, struct ib_send_wr *wr)
{
	wr->next = NULL;
	*chain->last = wr;
	chain->last = &wr->next;
	chain->n++;
}

/* Add a read without effect: see lite_qp_touch(). */
void lite_chain_touch(struct lite_chain *chain, struct lite_link *link)
{
	u64 raddr = lite_conn_scratch(chain->qp->conn, &link->sge);

	lite_rdma_wr(&link->rdma, chain->qp, IB_WR_RDMA_READ, &link->sge, 1, raddr, 0);
	lite_chain_add(chain, &link->rdma.wr);
}

/*
 * Post a chain of any length. lite_io_wait() must follow. With @wait, may sleep when the send queue
 * is full. Sets @cut if not all could be posted without waiting, or the io has given up waiting
 * (lite_io_hooks.stale). Work requests after the first @posted are not executed; if the io's status
 * is an error, the outcome of the others is unknown.
 */
void lite_chain_post(struct lite_chain *chain, bool wait)
{
	struct lite_post post = {
		.qp = chain->qp,
		.io = chain->io,
		.send = chain->first,
		.n = chain->n,
		.kind = chain->kind,
		.prio = chain->prio,
	};
	int err;

	lite_io_expect(chain->io, chain->n - chain->held);
	err = lite_qp_post_list(&post, wait);
	chain->posted = post.posted;
	chain->cut = err == -EAGAIN;
	if (err && !chain->cut)
		cmpxchg(&chain->io->status, 0, err);
}
