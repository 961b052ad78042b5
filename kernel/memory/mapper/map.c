// SPDX-License-Identifier: GPL-2.0
/*
 * Making mappings. MAP (or CREATE, or OPEN by name) makes the home count this node as a mapper, and
 * its answer has the first extents. They may be used only in sessions with the stores that are
 * older than the MAP; if one is newer, all extents are fetched again
 * (Documentation/memory-safety.rst, Confirmation). A MAP that a REVOKE or RECALL of the LMR has
 * overtaken (struct lite_revoked) is given back and started over.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "memory/memory.h"
#include "memory/store/store.h"
#include "mapping.h"
#include "trace.h"

/* Sessions in which one MAP is tried, and directories that are asked for one name. */
#define LITE_SESSION_TRIES 3
/* How often in a row changes of the LMR, or of one of equal hash, may overtake a MAP. */
#define LITE_MAP_TRIES 1000
/* CREATE finds and zeroes memory, perhaps at many nodes. */
#define LITE_CREATE_TIMEOUT (120 * HZ)
#define LITE_UNDO_TIMEOUT (10 * HZ)

/* Translate the errno of a home: its -ENOTCONN and -ENODEV are about itself. Any context. */
int lite_home_error(struct lite_memory *mem, u32 home, int err)
{
	if ((err == -ENOTCONN || err == -ENODEV) && home != lite_cluster_id(mem->cl))
		return -EHOSTDOWN;
	return err;
}

struct lite_map_begun lite_map_begin(struct lite_memory *mem)
{
	struct lite_map_begun begun = { .life = lite_cluster_life(mem->cl) };

	spin_lock(&mem->map_lock);
	begun.revoked = mem->revoked.count;
	spin_unlock(&mem->map_lock);
	/* No session has this number. One that comes up later has an up_before of at least this. */
	begun.sessions = atomic64_inc_return(&mem->fab->sessions);
	return begun;
}

/* Note the stores' sessions. @before: lite_map_begun.sessions; @newer: set if one came up later. */
static int lite_mapping_shares(struct lite_mapping *m, const struct lite_wire_map_reply *r,
			       u64 before, bool *newer)
{
	struct lite_cluster *cl = m->mem->cl;
	u32 i;

	m->n_shares = le32_to_cpu(r->n_shares);
	m->share = kcalloc(m->n_shares, sizeof(*m->share), GFP_KERNEL_ACCOUNT);
	if (!m->share)
		return -ENOMEM;
	for (i = 0; i < m->n_shares; i++) {
		u64 incarnation = le64_to_cpu(r->share[i].incarnation);
		struct lite_map_share *s = &m->share[i];
		struct lite_conn *conn;

		s->node = le32_to_cpu(r->share[i].node);
		if (s->node == lite_cluster_id(cl)) {
			/* Memory of an earlier incarnation is gone. */
			s->local = incarnation == cl->fab->self.incarnation;
			s->lost = !s->local;
			continue;
		}
		s->peer = lite_peer_find(cl, s->node);
		conn = s->peer ? lite_peer_conn_get(s->peer) : NULL;
		m->early |= !s->peer;
		/* It is out of reach; shares at other nodes can still be used. */
		if (!conn)
			continue;
		if (conn->from.incarnation == incarnation) {
			s->session = conn->session;
			s->up_before = conn->up_before;
		} else if (conn->from.incarnation > incarnation) {
			s->lost = true;
		} else {
			/* The home knows of the store's next life: end this session. */
			lite_conn_kill(conn, -EHOSTDOWN);
		}
		/* The home's does not count: it is the session of the MAP. */
		*newer |= i && conn->up_before >= before;
		lite_conn_put(conn);
	}
	if (m->share[0].node != m->home)
		return -EPROTO;
	if (m->conn)
		m->share[0].session = m->conn->session;
	return 0;
}

/* Call a home in the session @conn; NULL: this node. As lite_kcall(). */
int lite_home_call(struct lite_memory *mem, struct lite_conn *conn, struct lite_call_desc *d)
{
	return conn ? lite_kcall(conn, d) : lite_kcall_local(mem->cl->kcalls, d);
}

/* Fetch the extents that are still missing. */
static int lite_mapping_fetch(struct lite_mapping *m, u32 n_extents)
{
	struct lite_wire_extents req = { .id = cpu_to_le64(m->id) };
	struct lite_wire_extents_reply *r;
	struct lite_call_desc d = {
		LITE_REQUEST(LITE_CALL_LMR_EXTENTS, req),
		.reply_max = LITE_PAYLOAD_MAX,
		.killable = true,
	};
	int err = 0;

	r = kmalloc(LITE_PAYLOAD_MAX, GFP_KERNEL);
	if (!r)
		return -ENOMEM;
	d.reply = r;
	while (!err && m->n_extents < n_extents) {
		req.first = cpu_to_le32(m->n_extents);
		err = lite_home_call(m->mem, m->conn, &d) ?:
		      lite_extents_take(m->extents, &m->n_extents, n_extents, r->extent,
					le32_to_cpu(r->count));
	}
	kfree(r);
	return err;
}

/* @confirm: fetch all anew instead of using those in the answer to the MAP. */
static int lite_mapping_extents(struct lite_mapping *m, const struct lite_wire_map_reply *r,
				bool confirm)
{
	u32 n = le32_to_cpu(r->n_extents), i;
	int err;

	m->extents = kvmalloc_array(n, sizeof(*m->extents), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!m->extents)
		return -ENOMEM;
	err = lite_extents_take(m->extents, &m->n_extents, n, lite_wire_map_extents(r),
				confirm ? 0 : le32_to_cpu(r->n_told));
	if (!err && m->n_extents < n)
		err = lite_mapping_fetch(m, n);
	err = err ?: lite_extent_table_check(m->extents, m->n_extents, m->length, m->n_shares);
	for (i = 0; i < m->n_extents && m->base; i++)
		m->extents[i].start += m->base;
	return err;
}

/*
 * Look up the kernel addresses of local extents once: look-ups get slower the more LMRs there are.
 * If the memory is freed meanwhile, a REVOKE keeps the mapping out of the table. A home cannot gain
 * by sending addresses of others' memory, which it could access itself.
 */
static void lite_mapping_locate(struct lite_mapping *m)
{
	u32 i;

	for (i = 0; i < m->n_extents; i++) {
		const struct lite_extent *e = &m->extents[i];
		size_t n = e->length;
		void *addr;

		cond_resched(); /* an extent may be a single page */
		if (!m->share[e->share].local)
			continue;
		if (!m->local)
			m->local = kvcalloc(m->n_extents, sizeof(*m->local),
					    GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
		/* Without the table, operations look up addresses themselves. */
		if (!m->local)
			return;
		addr = lite_store_whole(m->mem, e->addr, &n);
		if (n == e->length)
			m->local[i] = addr;
	}
}

/* The LMR's mapping takes over the MAP, or is drained. Return: it; NULL: none; -EAGAIN: redo. */
static struct lite_mapping *lite_mapping_known(struct lite_memory *mem, struct lite_conn *conn,
					       u32 home, u64 id, u64 revoked)
{
	struct lite_mapping *m;
	bool usable;

	for (;;) {
		spin_lock(&mem->map_lock);
		m = lite_revoked_since(mem, home, id, revoked) ?
			    ERR_PTR(-EAGAIN) :
			    xa_load(&mem->mappings, lite_mapping_key(home, id));
		if (IS_ERR_OR_NULL(m))
			break;
		usable = m->state == LITE_MAPPING_ACTIVE && lite_mapping_current(m);
		if (usable && m->conn != conn) {
			m = ERR_PTR(-EAGAIN); /* the session of the MAP is over */
			break;
		}
		if (usable && refcount_inc_not_zero(&m->ref)) {
			m->grants++;
			break;
		}
		lite_mapping_end(m, LITE_MAPPING_RETIRED);
		spin_unlock(&mem->map_lock);
		lite_mapping_watch(m);
	}
	spin_unlock(&mem->map_lock);
	return m;
}

/*
 * Publish a mapping. If this node leaves later, lite_memory_forget() finds it. Return: 0; -EAGAIN:
 * a REVOKE overtook it, or the LMR was mapped meanwhile; -ENOTCONN, -ENODEV: this node has left.
 */
static int lite_mapping_enter_table(struct lite_mapping *m, const struct lite_map_begun *begun)
{
	struct lite_memory *mem = m->mem;
	unsigned long key = lite_mapping_key(m->home, m->id);
	int err;

	/* Allocating is not possible under the lock. */
	err = xa_reserve(&mem->mappings, key, GFP_KERNEL);
	if (err)
		return err;
	spin_lock(&mem->map_lock);
	if (lite_revoked_since(mem, m->home, m->id, begun->revoked) ||
	    xa_load(&mem->mappings, key))
		err = -EAGAIN;
	else
		err = lite_cluster_recheck(mem->cl, begun->life);
	if (!err)
		err = xa_err(xa_store(&mem->mappings, key, m, GFP_NOWAIT));
	/* xa_reserve() reserved nothing, as it found a mapping; that has gone since: try again. */
	if (err == -ENOMEM)
		err = -EAGAIN;
	spin_unlock(&mem->map_lock);
	if (err)
		xa_release(&mem->mappings, key);
	return err;
}

/* Make a mapping, still without shares and extents, that owns the MAP of the reply. */
static struct lite_mapping *lite_mapping_new(struct lite_memory *mem, u32 home,
					     struct lite_conn *conn,
					     const struct lite_wire_map_reply *r)
{
	struct lite_mapping *m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);

	if (!m)
		return ERR_PTR(-ENOMEM);
	m->mem = mem;
	refcount_set(&m->ref, 1);
	init_completion(&m->drained);
	atomic_set(&m->watchers, 1);
	INIT_WORK(&m->zap_work, lite_mapping_zap_work);
	INIT_LIST_HEAD(&m->views);
	m->home = home;
	m->home_incarnation = le64_to_cpu(r->share[0].incarnation);
	m->id = le64_to_cpu(r->id);
	m->left.kind = lite_mapping_key(home, m->id);
	m->length = le64_to_cpu(r->length);
	m->of = le64_to_cpu(r->of);
	m->base = le64_to_cpu(r->base);
	m->chunked = !r->n_extents;
	xa_init(&m->chunks);
	m->anonymous = r->anonymous;
	m->generation = le64_to_cpu(r->generation);
	m->grants = 1;
	m->careful = jiffies - MAX_JIFFY_OFFSET;
	if (conn)
		lite_conn_get(conn);
	m->conn = conn;
	lite_stat_inc(mem->stats, LITE_STAT_MAPPINGS);
	return m;
}

/*
 * Turn the reply to a MAP, CHUNK or (@created) CREATE into a mapping. On failure the MAP is given
 * back, which frees an anonymous LMR just created. May sleep; makes calls. Return: as
 * lite_mapping_by_id(); -EAGAIN: overtaken by a REVOKE.
 */
struct lite_mapping *lite_mapping_finish(struct lite_memory *mem, struct lite_conn *conn, u32 home,
					 const struct lite_map_begun *begun,
					 const struct lite_wire_map_reply *r, bool created)
{
	int changes = atomic_read_acquire(&mem->changes);
	struct lite_mapping *m = ERR_PTR(-ENOMEM);
	struct lite_made *made = NULL;
	bool newer = false;
	bool known;
	int err;

	/* An LMR at home here needs no record: it lives as long as its MAPs are counted. */
	if (created && conn && r->anonymous) {
		made = lite_made_new(home, r);
		if (!made)
			goto err_give_back;
	}
	m = lite_mapping_known(mem, conn, home, le64_to_cpu(r->id), begun->revoked);
	known = m;
	if (!known)
		m = lite_mapping_new(mem, home, conn, r);
	if (IS_ERR(m))
		goto err_give_back;
	lite_made_use(m, &made);
	/* The mapping had one: the home has used one id for two LMRs. */
	if (made && m->made != made)
		kfree(made);
	/* The home contradicts its earlier answer: is it a chunk, and which? */
	if (known && (m->of != le64_to_cpu(r->of) || m->base != le64_to_cpu(r->base) ||
		      (m->of && m->length != le64_to_cpu(r->length)))) {
		lite_mapping_put(m);
		return ERR_PTR(-EPROTO);
	}
	if (known)
		return m;
	err = lite_mapping_shares(m, r, begun->sessions, &newer);
	if (!err && !m->chunked)
		err = lite_mapping_extents(m, r, newer);
	if (!err) {
		lite_mapping_locate(m);
		err = lite_mapping_enter_table(m, begun);
	}
	if (!err) {
		trace_lite_map(home, m->id, m->length);
		/* Members have changed since, and retire_work may not have seen @m in the table. */
		if (m->early && atomic_read_acquire(&mem->changes) != changes)
			queue_work(mem->wq, &mem->retire_work);
		return m;
	}
	/* Replies from before and after a change do not match: try again if there was one. */
	spin_lock(&mem->map_lock);
	if (lite_revoked_since(mem, home, m->id, begun->revoked))
		err = -EAGAIN;
	spin_unlock(&mem->map_lock);
	lite_mapping_put(m);
	return ERR_PTR(err);

err_give_back:
	kfree(made);
	lite_mapping_give_back(mem, conn, le64_to_cpu(r->id), 1, created ? LITE_UNMAP_LAST : 0);
	return m;
}

/* Free a named LMR that was created but not mapped. (An anonymous one ends with its MAP.) */
static void lite_create_undo(struct lite_memory *mem, struct lite_conn *conn, u64 id,
			     const struct lite_wire_cred *owner)
{
	struct lite_wire_change req = {
		.id = cpu_to_le64(id),
		.rights = cpu_to_le32(LITE_RIGHTS_ALL),
		.cred = *owner,
	};
	struct lite_call_desc d = {
		LITE_REQUEST(LITE_CALL_LMR_FREE, req),
		.timeout = LITE_UNDO_TIMEOUT,
	};

	lite_home_call(mem, conn, &d);
}

/* Give back a MAP: the reply came after its caller had gone. May sleep. */
void lite_map_late(void *ctx, struct lite_conn *conn, const void *reply)
{
	const struct lite_wire_map_reply *r = reply;

	/* Without shares nothing was mapped. */
	if (r->n_shares)
		lite_mapping_give_back(ctx, conn, le64_to_cpu(r->id), 1, 0);
}

static void lite_create_late(void *ctx, struct lite_conn *conn, const void *reply)
{
	const struct lite_wire_map_reply *r = reply;

	lite_mapping_give_back(ctx, conn, le64_to_cpu(r->id), 1, LITE_UNMAP_LAST);
}

/* The session with a home; NULL: this node. @wait: wait while the home is suspect. */
static int lite_home_conn(struct lite_memory *mem, u32 home, bool wait, struct lite_conn **conn)
{
	struct lite_peer *peer;
	int err = 0;

	*conn = NULL;
	if (home == lite_cluster_id(mem->cl))
		return 0;
	peer = lite_peer_find(mem->cl, home);
	if (!peer)
		return -EHOSTUNREACH;
	if (wait)
		err = lite_peer_await(peer);
	*conn = lite_peer_conn_get(peer);
	if (*conn)
		err = 0;
	else if (err != -EINTR)
		err = lite_peer_has_left(peer) ? -EHOSTUNREACH : -EHOSTDOWN;
	lite_peer_put(peer);
	return err;
}

/* A MAP, CREATE or OPEN. */
struct lite_map_ask {
	u16 call;
	const void *req;
	u32 len;
	struct lite_payer *payer; /* or NULL */
	u32 home;    /* to ask. OPEN: the directory; set to the home */
	u64 id;      /* set to the LMR's */
	u32 granted; /* set to the rights granted */
};

/* NULL: there is an LMR (see @q), but only its home can map it (OPEN), or no map is wanted. */
static struct lite_mapping *lite_mapping_ask(struct lite_memory *mem, struct lite_map_ask *q)
{
	bool create = q->call == LITE_CALL_LMR_CREATE;
	bool open = q->call == LITE_CALL_NAME_OPEN;
	const struct lite_wire_create *c = q->req;
	struct lite_wire_map_reply *r;
	struct lite_call_desc d = {
		.call = q->call,
		.req = q->req,
		.len = q->len,
		.reply_max = LITE_PAYLOAD_MAX,
		.timeout = create ? LITE_CREATE_TIMEOUT : 0,
		.killable = true,
		.late = !create ? lite_map_late : c->map ? lite_create_late : NULL,
		.late_ctx = mem,
		.held = q->payer ? &q->payer->ref : NULL,
		.release = lite_payer_release,
	};
	struct lite_mapping *m = NULL;
	struct lite_map_begun begun;
	struct lite_conn *conn;
	int tries = 0;
	int err;

	r = kmalloc(LITE_PAYLOAD_MAX, GFP_KERNEL);
	if (!r)
		return ERR_PTR(-ENOMEM);
	d.reply = r;
again:
	/* OPEN does not wait for the directory: other nodes know where the LMR is, too. */
	err = lite_home_conn(mem, q->home, !open, &conn);
	if (err) {
		kfree(r);
		return ERR_PTR(err);
	}
	begun = lite_map_begin(mem);
	err = lite_home_call(mem, conn, &d);
	/* The end of the session undoes the call, unless it may have created a named LMR. */
	if (err == -EHOSTDOWN && conn && lite_conn_is_dead(conn) &&
	    !(create && c->name[0] && d.sent) && lite_cluster_is_live(mem->cl, q->home) &&
	    ++tries < LITE_SESSION_TRIES) {
		lite_conn_put(conn);
		goto again;
	}
	if (err) {
		m = ERR_PTR(lite_home_error(mem, q->home, err));
	} else {
		q->granted = le32_to_cpu(r->rights);
		q->id = le64_to_cpu(r->id);
		if (r->n_shares && (!create || c->map))
			m = lite_mapping_finish(mem, conn, q->home, &begun, r, create);
		else
			q->home = le32_to_cpu(r->home);
		if (IS_ERR(m) && m != ERR_PTR(-EAGAIN) && create && !r->anonymous)
			lite_create_undo(mem, conn, le64_to_cpu(r->id), &c->cred);
	}
	if (conn)
		lite_conn_put(conn);
	kfree(r);
	return m;
}

/*
 * Wait until an LMR is not being changed, or its home is out of reach: asking for it again tells
 * which. May sleep; killable. Return: 0; -EINTR; -ENOTCONN, -ENODEV: this node leaves or stops.
 */
int lite_mapping_await(struct lite_memory *mem, u32 home, u64 id)
{
	struct lite_wire_id req = { .id = cpu_to_le64(id) };
	struct lite_call_desc d = {
		LITE_REQUEST(LITE_CALL_LMR_AWAIT, req),
		.killable = true,
	};

	if (lite_cluster_call(mem->cl, home, &d) == -EINTR || fatal_signal_pending(current))
		return -EINTR;
	return lite_cluster_ready(mem->cl);
}

/*
 * Map the LMR @id of @home. @name: that it must have; all of @rights are granted, or none. NULL:
 * any; granted are those of @rights that the user has. @cred: user to map it for; NULL, with no
 * @rights: this kernel. @granted: set to the rights granted; may be NULL. May sleep; killable.
 * Return: a mapping with a reference for a handle, or ERR_PTR: -ENOENT, -EACCES, -EHOSTDOWN,
 * -EHOSTUNREACH; -EBUSY: being changed, ask again after lite_mapping_await(); and others.
 */
struct lite_mapping *lite_mapping_by_id(struct lite_memory *mem, u32 home, u64 id, const char *name,
					const struct lite_cred *cred, u32 rights, u32 *granted)
{
	struct lite_wire_map req = {
		.id = cpu_to_le64(id),
		.rights = cpu_to_le32(rights),
		.renew = cpu_to_le32(!name),
	};
	struct lite_map_ask q = {
		LITE_REQUEST(LITE_CALL_LMR_MAP, req),
		.home = home,
	};
	struct lite_mapping *m;
	int tries = 0;

	if (name)
		strscpy(req.name, name, sizeof(req.name));
	if (cred)
		lite_wire_cred_put(&req.cred, cred);
	do {
		m = lite_mapping_ask(mem, &q);
	} while (m == ERR_PTR(-EAGAIN) && ++tries < LITE_MAP_TRIES &&
		 !fatal_signal_pending(current));
	/* Only memory operations map chunks by id: offsets in a handle are not those of a chunk. */
	if (!IS_ERR(m) && m->of && cred) {
		lite_mapping_put(m);
		m = ERR_PTR(-EPROTO);
	}
	if (granted)
		*granted = q.granted;
	return m == ERR_PTR(-EAGAIN) ? ERR_PTR(-EBUSY) : m;
}

/*
 * Map an LMR by name for a user, with all of @rights or none, if the name's directory can. May
 * sleep, but does not wait while the directory is suspect; killable. Return: a mapping with a
 * reference for a handle; NULL: ask @home for @id, which are set; ERR_PTR: -EACCES, -EINTR; any
 * other errno: the directory was no help, and all homes have to be asked.
 */
struct lite_mapping *lite_mapping_open(struct lite_memory *mem, const char *name,
				       const struct lite_cred *cred, u32 rights, u32 *home, u64 *id)
{
	struct lite_wire_map req = { .rights = cpu_to_le32(rights) };
	struct lite_map_ask q = {
		LITE_REQUEST(LITE_CALL_NAME_OPEN, req),
	};
	struct lite_mapping *m;
	int tries = 0;
	int err;

	strscpy(req.name, name, sizeof(req.name));
	lite_wire_cred_put(&req.cred, cred);
	do {
		q.home = lite_name_directory(mem, name);
		m = lite_mapping_ask(mem, &q);
		err = PTR_ERR_OR_ZERO(m);
	} while ((err == -EAGAIN || lite_name_is_down(err)) && ++tries < LITE_SESSION_TRIES);
	*home = q.home;
	*id = q.id;
	return m;
}

/*
 * Create an LMR at @home and, if @req says so, map it. @payer: pays for memory at this node. @id:
 * set, if it was created; @granted: set to the rights granted to its creator. May sleep; killable.
 * Return: as lite_mapping_by_id(), or any error of creating it; NULL: it was created, but not
 * mapped: @req says so, or it was changed too soon: map it by @id (an anonymous one is gone).
 */
struct lite_mapping *lite_mapping_create(struct lite_memory *mem, u32 home,
					 struct lite_wire_create *req, struct lite_payer *payer,
					 u64 *id, u32 *granted)
{
	struct lite_map_ask q = {
		LITE_REQUEST(LITE_CALL_LMR_CREATE, *req),
		.payer = payer,
		.home = home,
	};
	struct lite_mapping *m;
	int tries = 0;

	/* If it was changed before it was mapped, an anonymous LMR is gone: create another. */
	do {
		m = lite_mapping_ask(mem, &q);
	} while (m == ERR_PTR(-EAGAIN) && !req->name[0] && ++tries < LITE_MAP_TRIES);
	*id = q.id;
	*granted = q.granted;
	return m == ERR_PTR(-EAGAIN) && *id ? NULL : m;
}
