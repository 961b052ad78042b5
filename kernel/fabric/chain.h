/* SPDX-License-Identifier: GPL-2.0 */
/* Chains: many work requests on one queue pair, posted together. See chain.c. */
#ifndef _LITE_FABRIC_CHAIN_H
#define _LITE_FABRIC_CHAIN_H

#include "fabric.h"

/* A work request of a chain; its memory must stay until the chain is posted. */
struct lite_link {
	union {
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
	};
	struct ib_sge sge;
};

/* Work requests for one queue pair. */
struct lite_chain {
	struct lite_qp *qp;       /* of a connection that the chain's owner holds live */
	struct lite_io *io;       /* of all of them */
	struct ib_send_wr *first;
	struct ib_send_wr **last; /* where the next is linked in */
	u32 n;                    /* work requests */
	u32 held;                 /* @io counts these already, to outlast earlier chains */
	u8 prio;                  /* of all of them */
	enum lite_slot_class kind; /* of their slots */
	u32 posted;               /* leading work requests that the device may execute */
	bool cut;                 /* posting stopped early without an error */
};

void lite_chain_init(struct lite_chain *chain, struct lite_qp *qp, struct lite_io *io, u8 prio);
void lite_chain_add(struct lite_chain *chain, struct ib_send_wr *wr);
void lite_chain_touch(struct lite_chain *chain, struct lite_link *link);
void lite_chain_post(struct lite_chain *chain, bool wait);

#endif /* _LITE_FABRIC_CHAIN_H */
