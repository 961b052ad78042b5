// SPDX-License-Identifier: GPL-2.0
/*
 * Chains: many one-sided operations on one queue pair, posted together.
 *
 * Normal operation: up to LITE_CHAIN_STEP free slots of the send queue are taken
 * at once, and so many work requests posted with one call of the device, of which
 * only the last is signalled: a queue pair completes them in order. Its slot
 * knows the slots before it (lite_wr.before), and gives them back with its own.
 * What is left is posted likewise; while it is in line for a slot, those that it
 * waits for have all been posted. A few slots are left to others; when only those
 * are free one is taken at a time.
 *
 * Recovery: a work request that fails completes with an error, and so do all
 * after it, whether signalled or not. The error of an unsignalled one ends the
 * connection, and finds nobody to tell (lite_wr.io is NULL): the poster learns of
 * it from the last one. When that completes, and so all slots come free, the
 * completion of one before it may still be on its way to its handler, in another
 * thread. It then meets whoever has the slot next, who will not get to post: the
 * connection was dead before the slot came free. So there, too, each claim of a
 * slot is completed once, with an error.
 *
 * When the device takes only some of those that it is given, nothing tells when it
 * is done with them. Then the last slot is completed by lite_qp_abort(), after
 * the queue pair was destroyed.
 */
#include "chain.h"
#include "slot.h"

/* So many links are posted at a time: few completions, but not too late. */
#define LITE_CHAIN_STEP (LITE_SQ_DEPTH / 2)
/* Slots for those who post one at a time: messages of functions, say. */
#define LITE_CHAIN_SPARE (LITE_SQ_SMALL / 8)

/**
 * lite_chain_init - begin a chain
 * @chain: without links
 * @qp: of a connection that the caller holds live until lite_chain_wait()
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
 * @link: room for it
 * @op: IB_WR_RDMA_READ or IB_WR_RDMA_WRITE
 * @dma: memory of this node
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
 * @link: room for it
 * @op: IB_WR_ATOMIC_FETCH_AND_ADD or IB_WR_ATOMIC_CMP_AND_SWP
 * @dma: where the old value goes, 8 bytes
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

/* Post links: one for @slot, and as many before it as there are slots before. */
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
	/* Of several that the device has refused it may have taken some. */
	if (*err != -EHOSTDOWN)
		chain->posted += n;
	return rest;
}

/* With a slot, post as many as there is room for; returns the rest. */
static struct ib_send_wr *lite_chain_go(struct lite_chain *chain,
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

/* The rest of a chain, in line. */
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

	t->rest = lite_chain_go(t->chain, t->rest, slot, &t->err);
}

/* Post as many as there is room for, and at least one; returns the rest. */
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
		return lite_chain_go(chain, first, slot, err);
	*err = lite_slot_wait(chain->qp, LITE_SLOT_SMALL, &t.turn) ?: t.err;
	return t.rest;
}

/**
 * lite_chain_post - post a chain
 * @chain: of any number of links
 *
 * Whether that went well tells lite_chain_wait(), which is called in any case.
 *
 * Context: may sleep when the send queue is full.
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
 * As lite_io_wait().
 *
 * Context: may sleep.
 * Return: 0 when all have been carried out. A negative errno: of the first
 * lite_chain.posted that is unknown, the others have not been.
 */
int lite_chain_wait(struct lite_chain *chain)
{
	lite_io_wait(&chain->io, chain->qp);
	return chain->io.status;
}
