// SPDX-License-Identifier: GPL-2.0
/*
 * Cancelling: a server is told of calls that nobody waits for any more, and says of
 * each whether a reply comes all the same.
 */
#include <linux/slab.h>

#include "service.h"

static u32 lite_cancels_gather(struct lite_rpc_peer *rp,
			       struct lite_wire_rpc_cancel *c)
{
	struct lite_bind *bind;
	u32 n = 0, i;

	spin_lock(&rp->lock);
	list_for_each_entry(bind, &rp->binds, list) {
		for (i = 0; i < LITE_RPC_DEPTH && bind->slots_used; i++) {
			struct lite_bind_slot *s = &bind->slot[i];

			if (s->state != LITE_BIND_ABANDONED || s->oneway)
				continue;
			if (n == LITE_RPC_CANCELS_MAX)
				break;
			s->state = LITE_BIND_CANCELLING;
			c->which[n++] = (struct lite_wire_rpc_which){
				.ring = cpu_to_le32(bind->index),
				.slot = cpu_to_le32(i),
				.seq = cpu_to_le64(s->seq),
			};
		}
	}
	if (rp->dead)
		n = 0;
	spin_unlock(&rp->lock);
	c->count = cpu_to_le32(n);
	return n;
}

/* Those that are cancelled are free; of the others the reply comes, or is here. */
static void lite_cancels_done(struct lite_rpc_peer *rp,
			      const struct lite_wire_rpc_cancel *c,
			      const struct lite_wire_rpc_cancel_reply *r)
{
	u32 n = le32_to_cpu(c->count);
	struct lite_bind *bind;
	u32 i, slot;

	spin_lock(&rp->lock);
	for (i = 0; i < n; i++) {
		slot = le32_to_cpu(c->which[i].slot);
		bind = xa_load(&rp->by_index, le32_to_cpu(c->which[i].ring));
		if (!bind ||
		    bind->slot[slot].state != LITE_BIND_CANCELLING ||
		    bind->slot[slot].seq != le64_to_cpu(c->which[i].seq))
			continue;
		if (le32_to_cpu(r->cancelled[i]) == LITE_RPC_CANCELLED)
			lite_slot_free(bind, slot);
	}
	spin_unlock(&rp->lock);
}

/* Within a node: nothing that could fail, for nothing else would free them. */
static void lite_cancels_local(struct lite_rpc_peer *rp,
			       const struct lite_wire_rpc_cancel *c,
			       struct lite_wire_rpc_cancel_reply *r)
{
	u32 n = le32_to_cpu(c->count);
	u32 i;
	int ret;

	for (i = 0; i < n; i++) {
		const struct lite_wire_rpc_which *w = &c->which[i];

		ret = lite_ring_cancel(rp, le32_to_cpu(w->ring),
				       le32_to_cpu(w->slot),
				       le64_to_cpu(w->seq));
		r->cancelled[i] = cpu_to_le32(max(ret, LITE_RPC_REPLIED));
	}
	r->count = c->count;
}

static int lite_cancel_some(struct lite_rpc_peer *rp,
			    struct lite_wire_rpc_cancel *c,
			    struct lite_wire_rpc_cancel_reply *r)
{
	u32 n = lite_cancels_gather(rp, c);
	struct lite_call_desc d = {
		.call = LITE_CALL_RPC_CANCEL,
		.req = c,
		.len = struct_size(c, which, n),
		.reply = r,
		.reply_max = LITE_PAYLOAD_MAX,
		.slot_timeout = LITE_SLOT_SURELY,
	};
	int err = 0;

	if (!n)
		return 0;
	lite_stat_add(rp->svc->stats, LITE_STAT_RPC_CANCELS, n);
	if (rp->conn)
		err = lite_rpc_call(rp->conn, &d);
	else
		lite_cancels_local(rp, c, r);
	if (!err && le32_to_cpu(r->count) != n)
		err = -EPROTO;
	if (err)
		return err;
	lite_cancels_done(rp, c, r);
	return n;
}

/**
 * lite_cancel_work - tell a peer of those who do not wait any more
 * @work: of a struct lite_rpc_peer
 */
void lite_cancel_work(struct work_struct *work)
{
	struct lite_rpc_peer *rp = container_of(work, struct lite_rpc_peer,
						cancel_work);
	struct lite_wire_rpc_cancel_reply *r;
	struct lite_wire_rpc_cancel *c;
	int ret;

	c = kzalloc(LITE_PAYLOAD_MAX, GFP_KERNEL | __GFP_NOFAIL);
	r = kmalloc(LITE_PAYLOAD_MAX, GFP_KERNEL | __GFP_NOFAIL);
	do {
		ret = lite_cancel_some(rp, c, r);
	} while (ret > 0);
	/* Then the end of the connection gets the records back. */
	if (ret && rp->conn)
		lite_conn_kill(rp->conn, ret);
	kfree(c);
	kfree(r);
}
