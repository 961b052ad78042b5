// SPDX-License-Identifier: GPL-2.0
/*
 * Chains: many one-sided operations on one queue pair, posted together.
 *
 * Normal operation: the poster takes up to LITE_CHAIN_STEP free send slots at
 * once and posts as many work requests with one call. Only the last is
 * signalled: a queue pair completes in order. Its slot records the slots before
 * it (lite_wr.before) and frees them with its own. The rest is posted in the
 * same way; while it waits for a slot, all work requests that hold slots are
 * posted. A few slots are spared for other posters: when only those are free, a
 * chain takes one at a time.
 *
 * Recovery: after a work request fails, all later ones complete with an error,
 * signalled or not. The completion of an unsignalled one ends the connection
 * and completes no slot (its lite_wr.io is NULL): the poster gets the error
 * from the last one. When that frees all slots, an earlier completion may still
 * be on its way to its handler in another thread, and find its slot taken
 * again. The new owner cannot post, because the connection was dead before the
 * slot came free; so there, too, the slot is completed once, with an error.
 *
 * If the device takes only some of the work requests, no completion tells when
 * it is done with them: lite_qp_abort() completes the last slot, after the
 * queue pair is destroyed.
 */
#include "chain.h"
#include "slot.h"

/* Links posted at a time: few completions, but slots come free soon enough. */
#define LITE_CHAIN_STEP (LITE_SQ_DEPTH / 2)
/* Slots spared for single posts, such as messages of functions. */
#define LITE_CHAIN_SPARE (LITE_SQ_SMALL / 8)

/*
 * Begin a chain. The caller holds the connection live until lite_chain_wait().
 */
void lite_chain_init(struct lite_chain *chain, struct lite_qp *qp)
{
	chain->qp = qp;
	lite_io_init(&chain->io);
	chain->first = NULL;
	chain->last = &chain->first;
	chain->n = 0;
	chain->posted = 0;
}

static void lite_chain_add(struct lite_chain *chain, struct lite_link *link,
			   enum ib_wr_opcode op, u64 dma, u32 length)
{
	struct ib_send_wr *wr = &link->rdma.wr;

	link->sge = (struct ib_sge){
		.addr = dma,
		.length = length,
		.lkey = chain->qp->conn->fab->lkey,
	};
	wr->next = NULL;
	wr->sg_list = &link->sge;
	wr->num_sge = 1;
	wr->opcode = op;
	wr->ex.imm_data = 0;
	*chain->last = wr;
	chain->last = &wr->next;
	chain->n++;
}

/**
 * lite_chain_rdma - add an RDMA read or write
 * @chain: not posted yet
 * @link: memory for it
 * @op: IB_WR_RDMA_READ or IB_WR_RDMA_WRITE
 * @dma: local address
 * @length: bytes, at least one
 * @raddr: remote address, checked by the caller: the key covers all memory
 */
void lite_chain_rdma(struct lite_chain *chain, struct lite_link *link,
		     enum ib_wr_opcode op, u64 dma, u32 length, u64 raddr)
{
	lite_chain_add(chain, link, op, dma, length);
	link->rdma.remote_addr = raddr;
	link->rdma.rkey = chain->qp->conn->rkey;
}

/**
 * lite_chain_atomic - add a remote atomic operation on 8 bytes
 * @chain: not posted yet
 * @link: memory for it
 * @op: IB_WR_ATOMIC_FETCH_AND_ADD or IB_WR_ATOMIC_CMP_AND_SWP
 * @dma: local address for the old value, 8 bytes
 * @raddr: remote address, a multiple of 8, checked by the caller
 * @operand: addend, or the value expected
 * @swap: the new value
 */
void lite_chain_atomic(struct lite_chain *chain, struct lite_link *link,
		       enum ib_wr_opcode op, u64 dma, u64 raddr, u64 operand,
		       u64 swap)
{
	lite_chain_add(chain, link, op, dma, sizeof(u64));
	link->atomic.remote_addr = raddr;
	link->atomic.compare_add = operand;
	link->atomic.swap = swap;
	link->atomic.compare_add_mask = 0;
	link->atomic.swap_mask = 0;
	link->atomic.rkey = chain->qp->conn->rkey;
}

/* Post a link for @slot and for each slot in its @before; returns the rest. */
static struct ib_send_wr *lite_chain_submit(struct lite_chain *chain,
					    struct ib_send_wr *first, int slot,
					    int *err)
{
	struct lite_qp *qp = chain->qp;
	u64 before = qp->wr[slot].before;
	struct ib_send_wr *send = first, *rest;
	u32 n = 1;

	for (; before; before &= before - 1) {
		send->wr_cqe = &qp->wr[__ffs64(before)].cqe;
		send->send_flags = 0;
		send = send->next;
		n++;
	}
	send->wr_cqe = &qp->wr[slot].cqe;
	send->send_flags = IB_SEND_SIGNALED;
	rest = send->next;
	send->next = NULL;
	*err = lite_qp_submit(qp, &qp->wr[slot], &chain->io, first, n);
	/* On other errors the device may have taken some of them. */
	if (*err != -EHOSTDOWN)
		chain->posted += n;
	return rest;
}

/* With a slot, post as many as there are slots for; returns the rest. */
static struct ib_send_wr *lite_chain_flush(struct lite_chain *chain,
					   struct ib_send_wr *first, int slot,
					   int *err)
{
	chain->qp->wr[slot].before =
		lite_slots_take(chain->qp,
				min_t(u32, chain->n - chain->posted,
				      LITE_CHAIN_STEP) - 1,
				LITE_CHAIN_SPARE);
	return lite_chain_submit(chain, first, slot, err);
}

/* The rest of a chain, waiting for a slot. */
struct lite_chain_turn {
	struct lite_turn turn;
	struct lite_chain *chain;
	struct ib_send_wr *rest;
	int err;
};

static void lite_chain_turn_post(struct lite_turn *turn, int slot)
{
	struct lite_chain_turn *t = container_of(turn, struct lite_chain_turn,
						 turn);

	t->rest = lite_chain_flush(t->chain, t->rest, slot, &t->err);
}

/* Post at least one, and as many as there are slots for; returns the rest. */
static struct ib_send_wr *lite_chain_step(struct lite_chain *chain,
					  struct ib_send_wr *first, int *err)
{
	struct lite_chain_turn t = {
		.turn.post = lite_chain_turn_post,
		.chain = chain,
		.rest = first,
	};
	int slot = lite_slot_take(chain->qp, LITE_SLOT_SMALL);

	if (slot >= 0)
		return lite_chain_flush(chain, first, slot, err);
	*err = lite_slot_wait(chain->qp, LITE_SLOT_SMALL, &t.turn) ?: t.err;
	return t.rest;
}

/*
 * Post a chain of any number of links. lite_chain_wait() must follow; it
 * returns the error, if any. May sleep when the send queue is full.
 */
void lite_chain_post(struct lite_chain *chain)
{
	struct ib_send_wr *rest = chain->first;
	int err = 0;

	while (rest && !err)
		rest = lite_chain_step(chain, rest, &err);
	if (err)
		cmpxchg(&chain->io.status, 0, err);
}

/**
 * lite_chain_wait - wait until the device is done with a chain
 * @chain: posted
 *
 * Context: may sleep; uninterruptible, as lite_io_wait().
 * Return: 0 if all were executed. Otherwise a negative errno: for the first
 * lite_chain.posted the outcome is unknown; the others were not executed.
 */
int lite_chain_wait(struct lite_chain *chain)
{
	lite_io_wait(&chain->io, chain->qp);
	return chain->io.status;
}
