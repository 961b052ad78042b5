// SPDX-License-Identifier: GPL-2.0
/*
 * Names of LMRs. What is true is at the homes: each knows the names of its own
 * LMRs (mem->local). For speed, and as arbiter between two homes that want the
 * same name, the directory of a name - the node that rendezvous hashing draws
 * it to - knows which home has it (mem->directory).
 *
 * The directory is soft state. When members come or go, homes claim their
 * names at the new directories in the background; whoever does not find a name
 * meanwhile asks all homes. A home claims again in each session with a
 * directory, so an entry of an older session is a hint that may be stale; when
 * the home has claimed all that it has (NAME_SYNC) it is taken out.
 */
#include <linux/slab.h>

#include "../core/name.h"
#include "memory.h"

/* How often the directory may die while it is being asked. */
#define LITE_DIRECTORY_TRIES 3

void lite_names_init(struct lite_names *names, bool directory)
{
	mutex_init(&names->lock);
	xa_init(&names->table);
	names->directory = directory;
}

/**
 * lite_names_exit - forget all names
 * @mem: node's
 * @names: table
 *
 * Context: may sleep.
 */
void lite_names_exit(struct lite_memory *mem, struct lite_names *names)
{
	struct lite_name_entry *entry, *next;
	unsigned long hash;

	mutex_lock(&names->lock);
	xa_for_each(&names->table, hash, entry) {
		for (; entry; entry = next) {
			next = entry->next;
			lite_stat_dec(mem->stats, LITE_STAT_NAMES);
			kfree(entry);
		}
	}
	xa_destroy(&names->table);
	mutex_unlock(&names->lock);
}

static struct lite_name_entry *lite_names_lookup(struct lite_names *names,
						 const char *name, u64 hash)
{
	struct lite_name_entry *entry;

	lockdep_assert_held(&names->lock);
	entry = xa_load(&names->table, hash);
	while (entry && strcmp(entry->name, name))
		entry = entry->next;
	return entry;
}

/* May a claim replace what the table says? */
static bool lite_name_stale(struct lite_memory *mem,
			    const struct lite_name_entry *entry)
{
	struct lite_peer *peer;
	struct lite_conn *conn;
	bool stale = false;

	if (!entry->session)
		return false;
	peer = lite_peer_find(mem->cl, entry->home);
	if (!peer)
		return true;
	conn = lite_peer_conn_get(peer);
	if (conn) {
		/* The claimer has asked this home, and it does not have it. */
		stale = conn->session != entry->session;
		lite_conn_put(conn);
	}
	lite_peer_put(peer);
	return stale;
}

/**
 * lite_names_add - enter a name
 * @mem: node's
 * @names: table
 * @name: name
 * @home: of the LMR
 * @id: of the LMR at its home
 * @session: in which the home asks; 0: we are the home
 *
 * Context: may sleep.
 * Return: 0, also when it is there already; -EEXIST: another LMR has it;
 * -ENOMEM.
 */
int lite_names_add(struct lite_memory *mem, struct lite_names *names,
		   const char *name, u32 home, u64 id, u64 session)
{
	u64 hash = lite_name_hash(name, strlen(name));
	struct lite_name_entry *entry, *new;
	int err = 0;

	new = kzalloc(sizeof(*new), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	mutex_lock(&names->lock);
	entry = lite_names_lookup(names, name, hash);
	/*
	 * In the directory a home may correct itself: a DROP may be lost. Ids
	 * only grow, so that a claim that is late corrects nothing.
	 */
	if (entry && (entry->home != home ||
		      (entry->id != id &&
		       !(names->directory && id > entry->id))) &&
	    !lite_name_stale(mem, entry)) {
		err = -EEXIST;
	} else if (entry) {
		if (entry->home == home)
			session = max(session, entry->session);
		entry->home = home;
		entry->id = id;
		entry->session = session;
	} else {
		strscpy(new->name, name, sizeof(new->name));
		new->home = home;
		new->id = id;
		new->session = session;
		new->next = xa_load(&names->table, hash);
		err = xa_err(xa_store(&names->table, hash, new, GFP_KERNEL));
		if (!err) {
			lite_stat_inc(mem->stats, LITE_STAT_NAMES);
			new = NULL;
		}
	}
	mutex_unlock(&names->lock);
	kfree(new);
	return err;
}

/*
 * Take out the entries of a home and of one hash that match: of @name, unless
 * NULL; of @id, unless 0; older than @but_session, unless 0.
 */
static void lite_names_prune(struct lite_memory *mem, struct lite_names *names,
			     unsigned long hash, const char *name, u32 home,
			     u64 id, u64 but_session)
{
	struct lite_name_entry *head = xa_load(&names->table, hash);
	struct lite_name_entry **at = &head;

	lockdep_assert_held(&names->lock);
	while (*at) {
		struct lite_name_entry *entry = *at;

		if (entry->home != home || (id && entry->id != id) ||
		    (name && strcmp(entry->name, name)) ||
		    (but_session && entry->session >= but_session)) {
			at = &entry->next;
			continue;
		}
		*at = entry->next;
		lite_stat_dec(mem->stats, LITE_STAT_NAMES);
		kfree(entry);
	}
	/* Replaces what is there already, or erases: needs no memory. */
	if (head)
		xa_store(&names->table, hash, head, GFP_KERNEL);
	else
		xa_erase(&names->table, hash);
}

/**
 * lite_names_del - take out a name, if it is that LMR's
 * @mem: node's
 * @names: table
 * @name: name
 * @home: of the LMR
 * @id: of the LMR
 *
 * Context: may sleep.
 */
void lite_names_del(struct lite_memory *mem, struct lite_names *names,
		    const char *name, u32 home, u64 id)
{
	mutex_lock(&names->lock);
	lite_names_prune(mem, names, lite_name_hash(name, strlen(name)), name,
			 home, id, 0);
	mutex_unlock(&names->lock);
}

/**
 * lite_names_drop_home - forget the names of a home
 * @mem: node's
 * @names: table
 * @home: its id
 * @but_session: keep those that it claimed in this session, or a later one; 0:
 *	its life is over
 *
 * Context: may sleep.
 */
void lite_names_drop_home(struct lite_memory *mem, struct lite_names *names,
			  u32 home, u64 but_session)
{
	struct lite_name_entry *entry;
	unsigned long hash;

	mutex_lock(&names->lock);
	xa_for_each(&names->table, hash, entry)
		lite_names_prune(mem, names, hash, NULL, home, 0, but_session);
	mutex_unlock(&names->lock);
}

/**
 * lite_names_find - look a name up
 * @names: table
 * @name: name
 * @home: set to the home of its LMR
 * @id: set to its id there
 *
 * Context: may sleep.
 * Return: 0 or -ENOENT.
 */
int lite_names_find(struct lite_names *names, const char *name, u32 *home,
		    u64 *id)
{
	struct lite_name_entry *entry;
	int err = -ENOENT;

	mutex_lock(&names->lock);
	entry = lite_names_lookup(names, name,
				  lite_name_hash(name, strlen(name)));
	if (entry) {
		*home = entry->home;
		*id = entry->id;
		err = 0;
	}
	mutex_unlock(&names->lock);
	return err;
}

/* ---- asking others ------------------------------------------------------- */

static int lite_name_call(struct lite_memory *mem, u32 node, u16 call,
			  const char *name, u64 id,
			  struct lite_wire_name_reply *reply)
{
	struct lite_wire_name req = {
		.home = cpu_to_le32(lite_cluster_id(mem->cl)),
		.id = cpu_to_le64(id),
	};
	struct lite_call_desc d = {
		.call = call,
		.req = &req,
		.len = sizeof(req),
		.reply = reply,
		.reply_max = reply ? sizeof(*reply) : 0,
		/* A claim or a drop that nobody waits for would be lost. */
		.killable = call == LITE_CALL_NAME_LOOKUP ||
			    call == LITE_CALL_NAME_FIND,
	};

	strscpy(req.name, name, sizeof(req.name));
	/* A home that is only out of reach for a moment is one all the same. */
	if (call == LITE_CALL_NAME_FIND)
		return lite_cluster_call_patiently(mem->cl, node, &d);
	return lite_cluster_call(mem->cl, node, &d);
}

/* Ask the directory; a new one when the old one died meanwhile. */
static int lite_directory_call(struct lite_memory *mem, u16 call,
			       const char *name, u64 id,
			       struct lite_wire_name_reply *reply)
{
	u64 hash = lite_name_hash(name, strlen(name));
	int tries = 0;
	int err;

	do {
		err = lite_name_call(mem, lite_cluster_directory(mem->cl, hash),
				     call, name, id, reply);
	} while ((err == -EHOSTDOWN || err == -EHOSTUNREACH) &&
		 ++tries < LITE_DIRECTORY_TRIES);
	return err;
}

/* Ask all homes. */
static int lite_homes_find(struct lite_memory *mem, const char *name,
			   u32 *home, u64 *id)
{
	struct lite_wire_name_reply reply;
	u32 node = 0;
	int err;

	while ((node = lite_cluster_next(mem->cl, node))) {
		err = lite_name_call(mem, node, LITE_CALL_NAME_FIND, name, 0,
				     &reply);
		if (err == -EINTR || err == -ENOMEM)
			return err;
		if (err)
			continue;
		*home = node;
		*id = le64_to_cpu(reply.id);
		return 0;
	}
	return -ENOENT;
}

/**
 * lite_name_claim - take a name for an LMR of ours
 * @mem: node's
 * @name: name
 * @id: the LMR
 *
 * Context: may sleep; calls leaf calls.
 * Return: 0; -EEXIST: it is taken; other negative errnos.
 */
int lite_name_claim(struct lite_memory *mem, const char *name, u64 id)
{
	u32 self = lite_cluster_id(mem->cl);
	struct lite_wire_name_reply reply;
	u32 node = 0;
	int err;

	err = lite_names_add(mem, &mem->local, name, self, id, 0);
	if (err)
		return err;
	/* A directory that is new may not have heard of all names yet. */
	while (!err && (node = lite_cluster_next(mem->cl, node))) {
		if (node == self)
			continue;
		err = lite_name_call(mem, node, LITE_CALL_NAME_FIND, name, 0,
				     &reply);
		if (!err)
			err = -EEXIST;
		else if (err == -ENOENT || err == -EHOSTDOWN ||
			 err == -EHOSTUNREACH)
			err = 0;
	}
	if (!err)
		err = lite_directory_call(mem, LITE_CALL_NAME_CLAIM, name, id,
					  NULL);
	/* A claim that failed may have arrived all the same. */
	if (err == -EEXIST)
		lite_names_del(mem, &mem->local, name, self, id);
	else if (err)
		lite_name_drop(mem, name, id);
	return err;
}

/**
 * lite_name_drop - give the name of an LMR of ours up
 * @mem: node's
 * @name: name
 * @id: the LMR
 *
 * Context: may sleep; calls leaf calls.
 */
void lite_name_drop(struct lite_memory *mem, const char *name, u64 id)
{
	u32 node = 0;

	lite_names_del(mem, &mem->local, name, lite_cluster_id(mem->cl), id);
	/*
	 * All of them: a member may have been the directory before others came,
	 * and be it again. Where it does not arrive the session is over, and
	 * the entry of an old session is known to be a hint.
	 */
	while ((node = lite_cluster_next(mem->cl, node))) {
		int tries = 0;

		while (lite_name_call(mem, node, LITE_CALL_NAME_DROP, name, id,
				      NULL) == -ENOMEM &&
		       ++tries < LITE_DIRECTORY_TRIES)
			cond_resched();
	}
}

/**
 * lite_name_lookup - find the LMR of a name
 * @mem: node's
 * @name: name
 * @ask_all: do not believe the directory
 * @home: set to its home
 * @id: set to its id there
 *
 * Context: may sleep; calls leaf calls.
 * Return: 0 or -ENOENT.
 */
int lite_name_lookup(struct lite_memory *mem, const char *name, bool ask_all,
		     u32 *home, u64 *id)
{
	struct lite_wire_name_reply reply;

	if (!ask_all && !lite_directory_call(mem, LITE_CALL_NAME_LOOKUP, name,
					     0, &reply)) {
		*home = le32_to_cpu(reply.home);
		*id = le64_to_cpu(reply.id);
		return 0;
	}
	return lite_homes_find(mem, name, home, id);
}

/* ---- members come and go ------------------------------------------------- */

static u64 lite_directory_session(struct lite_memory *mem, u32 node)
{
	struct lite_peer *peer = lite_peer_find(mem->cl, node);
	struct lite_conn *conn;
	u64 session = 0;

	if (!peer)
		return 0;
	conn = lite_peer_conn_get(peer);
	if (conn) {
		session = conn->session;
		lite_conn_put(conn);
	}
	lite_peer_put(peer);
	return session;
}

/* What anybody has of us from an older session is no more. */
static void lite_names_sync(struct lite_memory *mem)
{
	struct lite_wire_name_sync req = {};
	struct lite_call_desc d = {
		.call = LITE_CALL_NAME_SYNC,
		.req = &req,
		.len = sizeof(req),
	};
	u32 node = 0;

	while ((node = lite_cluster_next(mem->cl, node)))
		if (node != lite_cluster_id(mem->cl))
			lite_cluster_call(mem->cl, node, &d);
}

/* Tell the directories of today about our names. */
void lite_names_publish_work(struct work_struct *work)
{
	struct lite_memory *mem = container_of(work, struct lite_memory,
					       publish_work);
	int changes = atomic_read(&mem->changes);
	bool failed = false;
	struct lite_lmr *lmr;
	unsigned long id;
	u64 session;
	u32 node;
	int err;

	xa_for_each(&mem->lmrs, id, lmr) {
		lmr = lite_lmr_get(mem, id);
		if (!lmr)
			continue;
		node = lite_cluster_directory(mem->cl,
					      lite_name_hash(lmr->name,
							     strlen(lmr->name)));
		session = lite_directory_session(mem, node);
		err = -EEXIST;
		if (lmr->name[0] && (lmr->published != node ||
				     lmr->published_session != session))
			err = lite_name_call(mem, node, LITE_CALL_NAME_CLAIM,
					     lmr->name, lmr->id, NULL);
		failed |= err && err != -EEXIST;
		if (!err) {
			lmr->published = node;
			lmr->published_session = session;
			/* Freed meanwhile? Its name was dropped before. */
			if (READ_ONCE(lmr->dying))
				lite_name_call(mem, node, LITE_CALL_NAME_DROP,
					       lmr->name, lmr->id, NULL);
		}
		lite_lmr_put(lmr);
		cond_resched();
	}
	/* Else somebody would forget what it does not know anew. */
	if (!failed && changes == atomic_read(&mem->changes))
		lite_names_sync(mem);
}

/* ---- for others ---------------------------------------------------------- */

static int lite_serve_name_claim(void *priv, struct lite_conn *conn,
				 const void *req, u32 len, void *reply,
				 u32 *reply_len)
{
	struct lite_memory *mem = priv;
	const struct lite_wire_name *n = req;
	u32 home = conn ? conn->from.node : lite_cluster_id(mem->cl);

	if (le32_to_cpu(n->home) != home)
		return -EBADMSG;
	return lite_names_add(mem, &mem->directory, n->name, home,
			      le64_to_cpu(n->id), conn ? conn->session : 0);
}

static int lite_serve_name_drop(void *priv, struct lite_conn *conn,
				const void *req, u32 len, void *reply,
				u32 *reply_len)
{
	struct lite_memory *mem = priv;
	const struct lite_wire_name *n = req;
	u32 home = conn ? conn->from.node : lite_cluster_id(mem->cl);

	if (le32_to_cpu(n->home) != home)
		return -EBADMSG;
	lite_names_del(mem, &mem->directory, n->name, home, le64_to_cpu(n->id));
	return 0;
}

static int lite_serve_name_sync(void *priv, struct lite_conn *conn,
				const void *req, u32 len, void *reply,
				u32 *reply_len)
{
	struct lite_memory *mem = priv;

	if (!conn)
		return -EBADMSG;
	lite_names_drop_home(mem, &mem->directory, conn->from.node,
			     conn->session);
	return 0;
}

static int lite_serve_name_in(struct lite_names *names,
			      const struct lite_wire_name *n,
			      struct lite_wire_name_reply *r, u32 *reply_len)
{
	u32 home;
	u64 id;
	int err = lite_names_find(names, n->name, &home, &id);

	if (err)
		return err;
	r->home = cpu_to_le32(home);
	r->id = cpu_to_le64(id);
	*reply_len = sizeof(*r);
	return 0;
}

static int lite_serve_name_lookup(void *priv, struct lite_conn *conn,
				  const void *req, u32 len, void *reply,
				  u32 *reply_len)
{
	struct lite_memory *mem = priv;

	return lite_serve_name_in(&mem->directory, req, reply, reply_len);
}

static int lite_serve_name_find(void *priv, struct lite_conn *conn,
				const void *req, u32 len, void *reply,
				u32 *reply_len)
{
	struct lite_memory *mem = priv;

	return lite_serve_name_in(&mem->local, req, reply, reply_len);
}

void lite_names_handlers(struct lite_memory *mem)
{
	struct lite_rpc *rpc = mem->cl->rpc;

	lite_rpc_handle(rpc, LITE_CALL_NAME_CLAIM, lite_serve_name_claim, mem);
	lite_rpc_handle(rpc, LITE_CALL_NAME_DROP, lite_serve_name_drop, mem);
	lite_rpc_handle(rpc, LITE_CALL_NAME_LOOKUP, lite_serve_name_lookup, mem);
	lite_rpc_handle(rpc, LITE_CALL_NAME_FIND, lite_serve_name_find, mem);
	lite_rpc_handle(rpc, LITE_CALL_NAME_SYNC, lite_serve_name_sync, mem);
}
