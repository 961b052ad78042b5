/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Chains: many work requests on one queue pair, posted together. See chain.c.
 */
#ifndef _LITE_FABRIC_CHAIN_H
#define _LITE_FABRIC_CHAIN_H

#include "fabric.h"

/**
 * struct lite_link - room for a work request, which must stay until that is posted
 * @rdma: a read or a write
 * @atomic: or an atomic
 * @sge: the local memory
 */
struct lite_link {
	union {
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
	};
	struct ib_sge sge;
};

/**
 * struct lite_chain - work requests for one queue pair
 * @qp: of a connection that the chain's owner holds live
 * @io: of all of them
 * @first: first work request
 * @last: where the next is linked in
 * @n: work requests
 * @posted: leading ones that the device may have executed, or will
 */
struct lite_chain {
	struct lite_qp *qp;
	struct lite_io io;
	struct ib_send_wr *first;
	struct ib_send_wr **last;
	u32 n;
	u32 posted;
};

void lite_chain_init(struct lite_chain *chain, struct lite_qp *qp);
void lite_chain_add(struct lite_chain *chain, struct ib_send_wr *wr);
void lite_chain_post(struct lite_chain *chain);
int lite_chain_wait(struct lite_chain *chain);

#endif /* _LITE_FABRIC_CHAIN_H */
