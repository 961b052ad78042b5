// SPDX-License-Identifier: GPL-2.0
/*
 * Giving out ids: what a member does for those who join (join.c).
 *
 * The coordinator, the lowest id that is not down, gives a joiner an id and keeps
 * the place (a tentative peer) until the joiner comes, or does not. Others send
 * the joiner on to it.
 *
 * A suspect remains coordinator, for it may be giving out ids itself, which we
 * would give out again.
 */
#include <linux/ktime.h>

#include "cluster.h"

/* How long the coordinator keeps a place. */
#define LITE_PLACE_TIMEOUT (30 * HZ)

/*
 * The lowest id that is not down; NULL: ourselves. Cluster locked. Who asks for a
 * place at the address of a member is that member's next life.
 */
static struct lite_peer *lite_coordinator(struct lite_cluster *cl,
					  const struct sockaddr_storage *joiner)
{
	struct lite_peer *peer;
	unsigned long id;

	xa_for_each(&cl->peers, id, peer) {
		if (id > lite_cluster_id(cl))
			break;
		if (!peer->left && lite_peer_is_live(peer) &&
		    !lite_addr_equal(&peer->addr, joiner))
			return peer;
	}
	return NULL;
}

/* Who has lived at this address and is not known to have left. */
static struct lite_peer *lite_peer_at(struct lite_cluster *cl,
				      const struct sockaddr_storage *addr)
{
	struct lite_peer *peer;
	unsigned long id;

	xa_for_each(&cl->peers, id, peer) {
		if (!peer->left && lite_addr_equal(&peer->addr, addr))
			return peer;
	}
	return NULL;
}

static u32 lite_lowest_free_id(struct lite_cluster *cl)
{
	u32 id;

	for (id = 1; id <= LITE_NODE_ID_MAX; id++) {
		struct lite_peer *peer = xa_load(&cl->peers, id);

		if (id != lite_cluster_id(cl) && (!peer || peer->left))
			return id;
	}
	return 0;
}

/* Find an id for a joiner and keep it. Cluster locked. */
static int lite_place_keep(struct lite_cluster *cl, u32 wanted,
			   u64 *incarnation,
			   const struct sockaddr_storage *addr,
			   struct lite_conn **old)
{
	struct lite_peer *peer = lite_peer_at(cl, addr);
	u32 id;

	/* One that crashed and came back gets the id that it had. */
	if (peer && wanted && wanted != peer->id)
		peer = NULL;
	id = peer ? peer->id : wanted ?: lite_lowest_free_id(cl);
	if (!id)
		return -ENOSPC;
	if (id == lite_cluster_id(cl))
		return -EEXIST;
	if (!peer) {
		peer = xa_load(&cl->peers, id);
		if (peer && !peer->left)
			return -EEXIST;
	}
	/*
	 * Clocks differ, and are set: later than the last life with that id, and
	 * than what was said to who asked for this place before.
	 */
	if (peer)
		*incarnation = max(*incarnation, peer->incarnation + 1);
	if (!peer) {
		peer = lite_peer_make(cl, id, *incarnation, addr);
		if (IS_ERR(peer))
			return PTR_ERR(peer);
		peer->tentative = true;
	} else {
		/*
		 * Its incarnation changes when it attaches; until then its
		 * old life merely has no session any more.
		 */
		*old = lite_peer_conn_get(peer);
		if (peer->left) {
			peer->left = false;
			peer->tentative = true;
			peer->reused = true;
		}
		/* Who lived there has another place when it comes again. */
		if (peer->tentative)
			peer->addr = *addr;
	}
	peer->expires = jiffies + LITE_PLACE_TIMEOUT;
	return id;
}

int lite_serve_join(void *priv, struct lite_conn *conn, const void *req,
		    u32 len, void *reply, u32 *reply_len)
{
	struct lite_cluster *cl = priv;
	const struct lite_wire_join *j = req;
	struct lite_wire_join_reply *r = reply;
	struct lite_conn *old = NULL;
	struct lite_peer *coordinator;
	struct sockaddr_storage addr;
	u64 incarnation;
	int ret;

	if (!conn)
		return -EBADMSG;
	ret = lite_addr_from_wire(&addr, &j->addr);
	if (ret)
		return ret;

	mutex_lock(&cl->lock);
	coordinator = lite_coordinator(cl, &addr);
	if (cl->state != LITE_NODE_UP) {
		ret = -ENOTCONN;
	} else if (coordinator) {
		lite_addr_to_wire(&r->redirect, &coordinator->addr);
	} else {
		incarnation = le64_to_cpu(j->incarnation);
		ret = lite_place_keep(cl, le16_to_cpu(j->node), &incarnation,
				      &addr, &old);
		if (ret > 0) {
			r->node = cpu_to_le16(ret);
			r->incarnation = cpu_to_le64(incarnation);
		}
	}
	mutex_unlock(&cl->lock);
	if (old) {
		lite_conn_end(old, LITE_END_REPLACED, 0, -EHOSTDOWN);
		lite_conn_put(old);
	}
	if (ret < 0)
		return ret;
	*reply_len = sizeof(*r);
	return 0;
}
