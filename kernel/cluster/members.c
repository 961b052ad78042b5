// SPDX-License-Identifier: GPL-2.0
/*
 * The member list: its digest, its exchange, and merging.
 *
 * A node pulls the list when it joins, and when a heartbeat shows a digest other than its own.
 * Merging never forgets: a member is gone only when it has said so (LEFT) or has shown a newer
 * incarnation.
 *
 * The list also has the ids that are reserved for joiners. Only a joiner takes these over: it may
 * get the lowest id, and then gives out ids from the moment it is UP. A member that sees such a
 * joiner up reserves no more ids, and the joiner pulls the member's list after that.
 */
#include <linux/slab.h>

#include "cluster.h"

static u64 lite_member_hash(u32 id, u64 incarnation)
{
	u64 x = incarnation * 0x9e3779b97f4a7c15ULL + id;

	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9ULL;
	return x ^ (x >> 32);
}

/* A number that is equal for equal member lists. May sleep. */
u64 lite_members_digest(struct lite_cluster *cl)
{
	struct lite_peer *peer;
	unsigned long id;
	u64 digest;

	mutex_lock(&cl->lock);
	digest = lite_member_hash(cl->fab->self.node, cl->fab->self.incarnation);
	xa_for_each(&cl->peers, id, peer) {
		if (peer->life == LITE_PEER_MEMBER)
			digest += lite_member_hash(id, peer->incarnation);
	}
	mutex_unlock(&cl->lock);
	return digest;
}

static void lite_member_fill(struct lite_wire_member *m, u32 id, u64 incarnation,
			     const struct lite_wire_addr *addr, u16 flags)
{
	m->addr = *addr;
	m->node = cpu_to_le16(id);
	m->incarnation = cpu_to_le64(incarnation);
	m->flags = cpu_to_le16(flags);
}

int lite_serve_members(void *priv, struct lite_conn *conn, u16 call, const void *req, void *reply)
{
	struct lite_cluster *cl = priv;
	const struct lite_wire_members *m = req;
	struct lite_wire_members_reply *r = reply;
	u32 after = le32_to_cpu(m->after);
	u32 self = lite_cluster_id(cl);
	struct lite_peer *peer;
	unsigned long id;
	u32 n = 0;

	mutex_lock(&cl->lock);
	/* This node comes first, out of order: it is always in the list. */
	if (!after)
		lite_member_fill(&r->member[n++], self,
				 cl->fab->self.incarnation, &cl->fab->addr, 0);
	xa_for_each_start(&cl->peers, id, peer, after + 1) {
		u64 incarnation = peer->incarnation;
		u16 flags = 0;

		if (n == LITE_MEMBERS_PER_REPLY) {
			r->more = cpu_to_le32(1);
			break;
		}
		if (peer->life > LITE_PEER_LEFT) {
			flags |= LITE_MEMBER_RESERVED;
			incarnation = peer->promised;
		} else if (peer->life == LITE_PEER_LEFT) {
			flags |= LITE_MEMBER_LEFT;
		}
		/* A suspect is not DOWN: other nodes are to wait for it, too. */
		if (!lite_peer_is_live(peer))
			flags |= LITE_MEMBER_DOWN;
		lite_member_fill(&r->member[n++], id, incarnation, &peer->addr, flags);
	}
	mutex_unlock(&cl->lock);
	r->count = cpu_to_le32(n);
	return struct_size(r, member, n);
}

/* Another node has listed a life that is new here: expect it, unless it has left. */
static void lite_member_expect(struct lite_peer *peer, u16 flags)
{
	lockdep_assert_held(&peer->cl->lock);
	if (flags & LITE_MEMBER_LEFT)
		return;
	if (!(flags & LITE_MEMBER_DOWN)) {
		peer->heard = jiffies;
		/* Not while this node stops: the monitor would not end the wait. */
		if (peer->wait == LITE_PEER_DOWN && lite_cluster_connects(peer->cl))
			WRITE_ONCE(peer->wait, LITE_PEER_FRESH);
	}
	lite_peer_retry(peer, 0);
}

/* As a joiner, take over a member's reservation. cl->lock is held. Return: 0 or -ENOMEM. */
static int lite_member_reserve(struct lite_cluster *cl, struct lite_peer *peer, u32 id,
			       u64 incarnation, const struct lite_wire_addr *addr)
{
	if (cl->state != LITE_NODE_JOINING)
		return 0;
	if (!peer) {
		peer = lite_peer_make(cl, id, incarnation, addr);
		if (IS_ERR(peer))
			return PTR_ERR(peer);
		WRITE_ONCE(peer->life, LITE_PEER_RESERVED);
	} else if (peer->life == LITE_PEER_MEMBER ||
		   incarnation <= max(peer->incarnation, peer->promised)) {
		return 0;
	} else if (peer->life == LITE_PEER_LEFT) {
		WRITE_ONCE(peer->life, LITE_PEER_REUSED);
	}
	xa_lock(&cl->peers);
	peer->addr = *addr;
	xa_unlock(&cl->peers);
	peer->promised = incarnation;
	peer->expires = jiffies + LITE_PLACE_TIMEOUT;
	return 0;
}

/* Is a listed life, not a reservation, newer than what is known here? cl->lock is held. */
static bool lite_member_is_news(const struct lite_peer *peer, u64 incarnation)
{
	/* A joiner may have connected to the other node first. */
	return incarnation > peer->incarnation ||
	       (incarnation == peer->incarnation && peer->life == LITE_PEER_RESERVED);
}

/* Merge one entry of another node's list. */
static int lite_member_merge(struct lite_cluster *cl, const struct lite_wire_member *m)
{
	u16 flags = le16_to_cpu(m->flags);
	u64 incarnation = le64_to_cpu(m->incarnation);
	u32 id = le16_to_cpu(m->node);
	struct lite_conn *kill = NULL;
	struct lite_peer *peer;
	u64 old = incarnation;
	bool lost = false;
	int err = 0;

	if (!id || !lite_addr_ok(&m->addr))
		return -EPROTO;

	mutex_lock(&cl->lock);
	peer = xa_load(&cl->peers, id);
	if (id == lite_cluster_id(cl)) {
		/* Other nodes' view of this node does not change it. */
	} else if (flags & LITE_MEMBER_RESERVED) {
		err = lite_member_reserve(cl, peer, id, incarnation, &m->addr);
	} else if (!peer) {
		/* Enter even a member that has left: the id's next life must be later. */
		peer = lite_peer_make(cl, id, incarnation, &m->addr);
		if (IS_ERR(peer))
			err = PTR_ERR(peer);
		else if (flags & LITE_MEMBER_LEFT)
			WRITE_ONCE(peer->life, LITE_PEER_LEFT);
		else
			lite_member_expect(peer, flags);
	} else if (lite_member_is_news(peer, incarnation)) {
		kill = lite_peer_conn_get(peer);
		lost = lite_peer_renew(peer, incarnation, &m->addr, &old);
		if (flags & LITE_MEMBER_LEFT)
			WRITE_ONCE(peer->life, LITE_PEER_LEFT);
		lite_member_expect(peer, flags);
	} else if (flags & LITE_MEMBER_LEFT) {
		lost = lite_peer_leave(peer, incarnation);
		if (lost)
			kill = lite_peer_conn_get(peer);
	}
	mutex_unlock(&cl->lock);
	lite_conn_replace(kill, false);
	if (lost)
		cl->ops->peer_lost(cl->priv, id, old);
	return err;
}

/*
 * Merge a peer's member list into this node's, until @deadline (jiffies). May sleep; killable.
 * Return: 0 or -errno.
 */
int lite_members_pull(struct lite_cluster *cl, struct lite_conn *conn, unsigned long deadline)
{
	struct lite_wire_members_reply *r;
	struct lite_wire_members req = {};
	struct lite_call_desc d = {
		LITE_REQUEST(LITE_CALL_MEMBERS, req),
		.reply_max = LITE_PAYLOAD_MAX,
		.deadline = deadline,
		.killable = true,
	};
	u32 i, id, last = 0;
	bool more;
	int err;

	r = kmalloc(LITE_PAYLOAD_MAX, GFP_KERNEL);
	if (!r)
		return -ENOMEM;
	d.reply = r;
	do {
		req.after = cpu_to_le32(last);
		err = lite_kcall(conn, &d);
		if (err)
			break;
		more = r->more;
		for (i = 0; i < le32_to_cpu(r->count) && !err; i++) {
			err = lite_member_merge(cl, &r->member[i]);
			id = le16_to_cpu(r->member[i].node);
			if (!i && !last)
				continue; /* the peer itself, out of order */
			if (!err && id <= last)
				err = -EPROTO; /* the list would never end */
			last = id;
		}
		if (!err && more && le32_to_cpu(r->count) < 2)
			err = -EPROTO; /* no progress either */
	} while (!err && more);
	kfree(r);
	return err;
}

/* The directory for lite_name_hash() @hash: the id of one of the nodes that are up. */
u32 lite_cluster_directory(struct lite_cluster *cl, u64 hash)
{
	u32 best = lite_cluster_id(cl);
	u64 most = lite_rendezvous_weight(hash, best);
	struct lite_peer *peer;
	unsigned long id;
	u64 weight;

	rcu_read_lock();
	xa_for_each(&cl->peers, id, peer) {
		if (!lite_peer_is_up(peer))
			continue;
		weight = lite_rendezvous_weight(hash, id);
		if (weight > most || (weight == most && id < best)) {
			most = weight;
			best = id;
		}
	}
	rcu_read_unlock();
	return best;
}

/* Number of members that are up, including this node; 0 while in no cluster. */
u32 lite_cluster_up(struct lite_cluster *cl)
{
	struct lite_peer *peer;
	unsigned long id;
	u32 n;

	n = READ_ONCE(cl->state) == LITE_NODE_UP;
	rcu_read_lock();
	xa_for_each(&cl->peers, id, peer)
		n += lite_peer_is_up(peer);
	rcu_read_unlock();
	return n;
}

/* The lowest id above @after that is up or suspect, including this node; or 0. */
u32 lite_cluster_next(struct lite_cluster *cl, u32 after)
{
	u32 self = lite_cluster_id(cl);
	struct lite_peer *peer;
	unsigned long id;
	u32 next = self > after ? self : 0;

	rcu_read_lock();
	xa_for_each_start(&cl->peers, id, peer, (unsigned long)after + 1) {
		if (next && id > next)
			break;
		if (lite_peer_is_live(peer)) {
			next = id;
			break;
		}
	}
	rcu_read_unlock();
	return next;
}
