// SPDX-License-Identifier: GPL-2.0
/*
 * Giving out node ids: the member's side of joining (join.c).
 *
 * The coordinator, the member with the lowest id that is not down, gives a joiner an id and
 * reserves it (LITE_PEER_RESERVED) until the joiner connects or the reservation expires. Other
 * members redirect the joiner. A suspect stays coordinator, as it may be giving out ids: a second
 * one could give out the same. A joiner may become the coordinator, so it takes over the members'
 * reservations (members.c).
 */
#include "cluster.h"

/* The coordinator, not the joiner's earlier life. cl->lock is held. Return: NULL: this node. */
static struct lite_peer *lite_coordinator(struct lite_cluster *cl,
					  const struct lite_wire_addr *joiner)
{
	struct lite_peer *peer;
	unsigned long id;

	xa_for_each(&cl->peers, id, peer) {
		if (id > lite_cluster_id(cl))
			break;
		if (!lite_peer_has_left(peer) && lite_peer_is_live(peer) &&
		    !lite_addr_equal(&peer->addr, joiner))
			return peer;
	}
	return NULL;
}

/* The latest life that has had an id, or was promised it. None can follow the greatest number. */
static u64 lite_id_past(const struct lite_peer *peer)
{
	return max(peer->incarnation, peer->promised);
}

/* The peer that was last known at this address, has not left, and may come back. */
static struct lite_peer *lite_peer_at(struct lite_cluster *cl, const struct lite_wire_addr *addr)
{
	struct lite_peer *peer;
	unsigned long id;

	xa_for_each(&cl->peers, id, peer) {
		if (peer->life != LITE_PEER_LEFT && lite_addr_equal(&peer->addr, addr) &&
		    lite_id_past(peer) != U64_MAX)
			return peer;
	}
	return NULL;
}

static bool lite_id_is_free(struct lite_cluster *cl, u32 id)
{
	struct lite_peer *peer = xa_load(&cl->peers, id);

	return id != lite_cluster_id(cl) &&
	       (!peer || (peer->life == LITE_PEER_LEFT && lite_id_past(peer) != U64_MAX));
}

/* Return: @wanted or, if that is 0, the lowest free id; -EEXIST; -ENOSPC. */
static int lite_free_id(struct lite_cluster *cl, u32 wanted)
{
	u32 id;

	if (wanted)
		return lite_id_is_free(cl, wanted) ? wanted : -EEXIST;
	for (id = 1; id <= LITE_NODE_ID_MAX; id++) {
		if (lite_id_is_free(cl, id))
			return id;
	}
	return -ENOSPC;
}

/* Find an id for a joiner and reserve it; the caller ends @old. cl->lock is held. */
static int lite_place_keep(struct lite_cluster *cl, u32 wanted, u64 *incarnation,
			   const struct lite_wire_addr *addr, struct lite_conn **old)
{
	struct lite_peer *peer = lite_peer_at(cl, addr);
	int id;

	/* A node that crashed and comes back gets its old id, unless it wants another. */
	if (peer && wanted && wanted != peer->id)
		peer = NULL;
	id = peer ? peer->id : lite_free_id(cl, wanted);
	if (id < 0)
		return id;
	peer = xa_load(&cl->peers, id);
	if (!peer) {
		peer = lite_peer_make(cl, id, *incarnation, addr);
		if (IS_ERR(peer))
			return PTR_ERR(peer);
		peer->life = LITE_PEER_RESERVED;
	} else {
		/* Clocks differ: exceed the id's last life, and what was promised before. */
		*incarnation = max(*incarnation, lite_id_past(peer) + 1);
		/* The old life only loses its session: the incarnation changes with ATTACH. */
		*old = lite_peer_conn_get(peer);
		if (peer->life == LITE_PEER_LEFT)
			WRITE_ONCE(peer->life, LITE_PEER_REUSED);
		/* A previous owner that returns is not found by its address: it gets another id. */
		if (peer->life != LITE_PEER_MEMBER) {
			xa_lock(&cl->peers);
			peer->addr = *addr;
			xa_unlock(&cl->peers);
		}
	}
	peer->promised = *incarnation;
	peer->expires = jiffies + LITE_PLACE_TIMEOUT;
	return id;
}

int lite_serve_join(void *priv, struct lite_conn *conn, u16 call, const void *req, void *reply)
{
	struct lite_cluster *cl = priv;
	const struct lite_wire_join *j = req;
	struct lite_wire_join_reply *r = reply;
	struct lite_conn *old = NULL;
	struct lite_peer *coordinator;
	u64 incarnation;
	int ret = 0;

	if (!conn)
		return -EBADMSG;
	if (!lite_addr_ok(&j->addr))
		return -EINVAL;

	mutex_lock(&cl->lock);
	coordinator = lite_coordinator(cl, &j->addr);
	if (conn->joined) {
		/* A reply may reserve an id: one per connection. */
		ret = -EBADMSG;
	} else if (cl->state != LITE_NODE_UP) {
		ret = -ENOTCONN;
	} else if (coordinator) {
		r->redirect = coordinator->addr;
	} else {
		conn->joined = true;
		/* S64_MAX is later than any clock, but lives can follow it. */
		incarnation = min_t(u64, le64_to_cpu(j->incarnation), S64_MAX);
		ret = lite_place_keep(cl, le16_to_cpu(j->node), &incarnation, &j->addr, &old);
		if (ret > 0) {
			r->node = cpu_to_le16(ret);
			r->incarnation = cpu_to_le64(incarnation);
		}
	}
	mutex_unlock(&cl->lock);
	lite_conn_replace(old, false);
	if (ret < 0)
		return ret;
	return sizeof(*r);
}
