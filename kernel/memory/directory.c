// SPDX-License-Identifier: GPL-2.0
/*
 * Finding the LMR of a name. For speed, the directory of a name - the node that
 * rendezvous hashing over those that are up draws it to - knows which home has
 * it (mem->directory); it also keeps homes from taking one name that do not see
 * each other, but both see it (claim.c).
 *
 * The directory is soft state. When members come or go, homes enter their
 * names at the new directories in the background (lite_names_publish_work());
 * whoever does not find a name meanwhile asks all homes. So no name is lost with
 * a node but those of its own LMRs.
 *
 * A home enters its names again in each session with a directory, so an entry
 * of an older session may be one whose DROP was lost. It answers no look-up,
 * and when the home has entered all that it has (NAME_SYNC) it is taken out.
 * An entry may be replaced by whoever has asked its home and heard that it is
 * not true: ids are never used twice, so what is not true any more will not
 * become true again.
 */
#include <linux/slab.h>

#include "../core/name.h"
#include "memory.h"

/* How often the directory may die while it is being asked. */
#define LITE_DIRECTORY_TRIES 3

/* ---- looking up ---------------------------------------------------------- */

/* Ask the directory; a new one when the old one died meanwhile. */
static int lite_directory_find(struct lite_memory *mem, const char *name,
			       struct lite_name_at *at)
{
	u64 hash = lite_name_hash(name, strlen(name));
	struct lite_wire_name_reply reply;
	int tries = 0;
	int err;

	do {
		err = lite_name_call(mem, lite_cluster_directory(mem->cl, hash),
				     LITE_CALL_NAME_LOOKUP, name, 0, &reply,
				     sizeof(reply));
	} while ((err == -EHOSTDOWN || err == -EHOSTUNREACH) &&
		 ++tries < LITE_DIRECTORY_TRIES);
	if (!err) {
		at->home = le32_to_cpu(reply.home);
		at->id = le64_to_cpu(reply.id);
	}
	return err;
}

/* Ask all homes. */
static int lite_homes_find(struct lite_memory *mem, const char *name,
			   struct lite_name_at *at)
{
	struct lite_wire_name_reply reply;
	int unknown = -ENOENT;
	u32 node = 0;
	int err;

	while ((node = lite_cluster_next(mem->cl, node))) {
		err = lite_name_call(mem, node, LITE_CALL_NAME_FIND, name, 0,
				     &reply, sizeof(reply));
		if (!err) {
			at->home = node;
			at->id = le64_to_cpu(reply.id);
			return 0;
		}
		if (err == -EINTR)
			return err;
		/* What is at a home that is down is not there. */
		if (err != -ENOENT && err != -EHOSTDOWN && err != -EHOSTUNREACH)
			unknown = err;
	}
	/* Who sees nobody any more cannot say that there is no such name. */
	if (unknown == -ENOENT && lite_cluster_is_cut_off(mem->cl))
		unknown = -EHOSTDOWN;
	return unknown;
}

/**
 * lite_name_lookup - find the LMR of a name
 * @mem: node's
 * @name: name
 * @ask_all: do not believe the directory
 * @home: set to its home
 * @id: set to its id there
 *
 * Context: may sleep; killable; calls leaf calls.
 * Return: 0; -ENOENT; -EHOSTDOWN: not here, and all other members are down;
 * -EINTR; what a home said that could not be asked.
 */
int lite_name_lookup(struct lite_memory *mem, const char *name, bool ask_all,
		     u32 *home, u64 *id)
{
	struct lite_name_at at;
	int err = -ENOENT;

	if (!ask_all)
		err = lite_directory_find(mem, name, &at);
	if (err)
		err = lite_homes_find(mem, name, &at);
	if (err)
		return err;
	*home = at.home;
	*id = at.id;
	return 0;
}

/* ---- entering ------------------------------------------------------------ */

/**
 * lite_directory_session - our session with a directory
 * @mem: node's
 * @node: its id
 *
 * Context: any process.
 * Return: number of the session; 0: it has none, or is this node.
 */
u64 lite_directory_session(struct lite_memory *mem, u32 node)
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

/**
 * lite_directory_enter - enter a name of ours at a directory
 * @mem: node's
 * @node: the directory
 * @name: name
 * @id: LMR of ours
 * @uid: its owner, who is charged for the entry
 * @was: not true any more: may be replaced; home 0: nothing
 * @is: set to what stands there now; ours, unless another was there
 *
 * Context: may sleep; calls a leaf call.
 * Return: 0 or a negative errno.
 */
int lite_directory_enter(struct lite_memory *mem, u32 node, const char *name,
			 u64 id, u32 uid, const struct lite_name_at *was,
			 struct lite_name_at *is)
{
	struct lite_wire_name_enter req = {
		.home = cpu_to_le32(lite_cluster_id(mem->cl)),
		.id = cpu_to_le64(id),
		.uid = cpu_to_le32(uid),
		.was_home = cpu_to_le32(was->home),
		.was_id = cpu_to_le64(was->id),
	};
	struct lite_wire_name_reply reply;
	/* Not killable: one that nobody waits for would be lost. */
	struct lite_call_desc d = {
		.call = LITE_CALL_NAME_ENTER,
		.req = &req,
		.len = sizeof(req),
		.reply = &reply,
		.reply_max = sizeof(reply),
	};
	int err;

	strscpy(req.name, name, sizeof(req.name));
	err = lite_cluster_call(mem->cl, node, &d);
	if (!err) {
		is->home = le32_to_cpu(reply.home);
		is->id = le64_to_cpu(reply.id);
	}
	return err;
}

/* ---- members come and go ------------------------------------------------- */

/* One entry of ours that is being published. */
struct lite_publishing {
	u32 node;
	u64 session;
	u64 id;
	u32 uid;
	char name[LITE_NAME_SIZE];
};

/* Is it entered where it belongs? If not, @p is set to where that is. */
static bool lite_publish_wanted(struct lite_memory *mem,
				const struct lite_name_entry *entry,
				struct lite_publishing *p)
{
	u64 hash = lite_name_hash(entry->name, strlen(entry->name));

	if (entry->state != LITE_NAME_CONFIRMED)
		return false;
	p->node = lite_cluster_directory(mem->cl, hash);
	p->session = lite_directory_session(mem, p->node);
	return entry->published != p->node || entry->session != p->session;
}

/* The next entry that has not been tried in this run, or NULL. */
static struct lite_name_entry *lite_publish_try(struct lite_names *local,
						u32 run)
{
	struct lite_name_entry *entry;

	lockdep_assert_held(&local->lock);
	entry = list_first_entry_or_null(&local->all, struct lite_name_entry,
					 list);
	/* What has been tried goes to the end, and what is new comes first. */
	if (!entry || entry->tried == run)
		return NULL;
	entry->tried = run;
	list_move_tail(&entry->list, &local->all);
	return entry;
}

/*
 * The next entry that is to be published and has not been tried in this run. It
 * stays until lite_publish_end().
 */
static bool lite_publish_next(struct lite_memory *mem, u32 run,
			      struct lite_publishing *p)
{
	struct lite_names *local = &mem->local;
	struct lite_name_entry *entry;

	mutex_lock(&local->lock);
	while ((entry = lite_publish_try(local, run)) &&
	       !lite_publish_wanted(mem, entry, p)) {
		/* They may be many, and creators want the lock. */
		if (need_resched()) {
			mutex_unlock(&local->lock);
			cond_resched();
			mutex_lock(&local->lock);
		}
	}
	if (entry) {
		p->id = entry->id;
		p->uid = entry->uid;
		strscpy(p->name, entry->name, sizeof(p->name));
		WRITE_ONCE(local->publishing, entry);
	}
	mutex_unlock(&local->lock);
	return entry;
}

static void lite_publish_end(struct lite_memory *mem, bool done,
			     const struct lite_publishing *p)
{
	struct lite_names *local = &mem->local;

	mutex_lock(&local->lock);
	if (done) {
		local->publishing->published = p->node;
		local->publishing->session = p->session;
	}
	WRITE_ONCE(local->publishing, NULL);
	mutex_unlock(&local->lock);
	/* For those who wait to take the entry out. */
	lite_names_event(mem);
}

/*
 * 0 also when another home has the name: each may have taken it when it did not
 * see the other. Who comes first at the directory is found there.
 */
static int lite_publish(struct lite_memory *mem,
			const struct lite_publishing *p)
{
	struct lite_name_at was = {}, is;
	struct lite_wire_name_probe_reply reply;
	int tries = 0;
	int err;

	do {
		err = lite_directory_enter(mem, p->node, p->name, p->id, p->uid,
					   &was, &is);
		if (err || (is.home == lite_cluster_id(mem->cl) &&
			    is.id == p->id))
			return err;
		was = is;
		/* Of ours, only this one has the name. */
		if (is.home == lite_cluster_id(mem->cl))
			continue;
		err = lite_name_call(mem, is.home, LITE_CALL_NAME_PROBE,
				     p->name, p->id, &reply, sizeof(reply));
		if (err)
			return err;
		if (le32_to_cpu(reply.state) != LITE_WIRE_NAME_FREE)
			return 0;
	} while (++tries < LITE_DIRECTORY_TRIES);
	return -EAGAIN;
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
	int changes = atomic_read_acquire(&mem->changes);
	u32 run = ++mem->local.runs;
	struct lite_publishing p;
	bool failed = false;
	int err;

	while (lite_publish_next(mem, run, &p)) {
		err = lite_publish(mem, &p);
		lite_publish_end(mem, !err, &p);
		/* What it has no room for it does not know in any case. */
		failed |= err && err != -EDQUOT && err != -ENOSPC;
		cond_resched();
	}
	/* Else somebody would forget what it does not know anew. */
	if (!failed && changes == atomic_read_acquire(&mem->changes))
		lite_names_sync(mem);
}

/**
 * lite_names_publish - see to it that a name stands where it belongs
 * @mem: node's
 * @name: of an LMR of ours, confirmed
 *
 * Context: may sleep.
 */
void lite_names_publish(struct lite_memory *mem, const char *name)
{
	struct lite_name_entry *entry;
	struct lite_publishing p;
	bool wanted;

	mutex_lock(&mem->local.lock);
	entry = lite_names_lookup_locked(&mem->local, name);
	wanted = entry && lite_publish_wanted(mem, entry, &p);
	mutex_unlock(&mem->local.lock);
	if (wanted)
		queue_work(mem->wq, &mem->publish_work);
}

/* ---- the directory ------------------------------------------------------- */

/**
 * lite_names_drop_home - the directory forgets the names of a home
 * @mem: node's
 * @home: its id
 * @but_session: keep those that it entered in this session, or a later one; 0:
 *	its life is over
 *
 * Context: may sleep.
 */
void lite_names_drop_home(struct lite_memory *mem, u32 home, u64 but_session)
{
	struct lite_names *names = &mem->directory;
	struct lite_name_entry *entry, *tmp;

	mutex_lock(&names->lock);
	list_for_each_entry_safe(entry, tmp, &names->all, list) {
		if (entry->home == home &&
		    (!but_session || entry->session < but_session))
			lite_names_remove_locked(mem, names, entry);
	}
	mutex_unlock(&names->lock);
}

static int lite_serve_name_enter(void *priv, struct lite_conn *conn,
				 const void *req, u32 len, void *reply,
				 u32 *reply_len)
{
	struct lite_memory *mem = priv;
	struct lite_names *names = &mem->directory;
	const struct lite_wire_name_enter *e = req;
	struct lite_wire_name_reply *r = reply;
	u32 home = conn ? conn->from.node : lite_cluster_id(mem->cl);
	u64 session = conn ? conn->session : 0;
	struct lite_name_entry *entry, *new;
	u64 id = le64_to_cpu(e->id);
	int err;

	if (!home || le32_to_cpu(e->home) != home)
		return -EBADMSG;
	/* Nobody shall take it for the name of a home that is not up. */
	err = conn ? lite_cluster_await_session(mem->cl, conn) : 0;
	if (err)
		return err;
	new = lite_name_entry_new(names, e->name, home, id,
				  le32_to_cpu(e->uid));
	mutex_lock(&names->lock);
	entry = lite_names_lookup_locked(names, e->name);
	if (entry && entry->home == home && entry->id == id) {
		entry->session = max(session, entry->session);
	} else if (IS_ERR(new)) {
		err = PTR_ERR(new);
	} else if (!entry) {
		new->session = session;
		err = lite_names_insert_locked(mem, names, new);
		if (!err)
			swap(entry, new);
	} else if ((entry->home == le32_to_cpu(e->was_home) &&
		    entry->id == le64_to_cpu(e->was_id)) ||
		   !lite_cluster_is_live(mem->cl, entry->home)) {
		entry->home = home;
		entry->id = id;
		entry->session = session;
		/* Both are of one size, and the other is given back. */
		swap(entry->uid, new->uid);
	}
	if (!err) {
		r->home = cpu_to_le32(entry->home);
		r->id = cpu_to_le64(entry->id);
		*reply_len = sizeof(*r);
	}
	mutex_unlock(&names->lock);
	if (!IS_ERR(new))
		lite_name_entry_free(names, new);
	return err;
}

static int lite_serve_name_drop(void *priv, struct lite_conn *conn,
				const void *req, u32 len, void *reply,
				u32 *reply_len)
{
	struct lite_memory *mem = priv;
	const struct lite_wire_name *n = req;
	u32 home = conn ? conn->from.node : lite_cluster_id(mem->cl);
	struct lite_name_entry *entry;

	if (le32_to_cpu(n->home) != home)
		return -EBADMSG;
	mutex_lock(&mem->directory.lock);
	entry = lite_names_lookup_locked(&mem->directory, n->name);
	if (entry && entry->home == home && entry->id == le64_to_cpu(n->id))
		lite_names_remove_locked(mem, &mem->directory, entry);
	mutex_unlock(&mem->directory.lock);
	/* Some claim of ours may wait for the name. */
	lite_names_event(mem);
	return 0;
}

static int lite_serve_name_sync(void *priv, struct lite_conn *conn,
				const void *req, u32 len, void *reply,
				u32 *reply_len)
{
	if (!conn)
		return -EBADMSG;
	lite_names_drop_home(priv, conn->from.node, conn->session);
	return 0;
}

static int lite_serve_name_lookup(void *priv, struct lite_conn *conn,
				  const void *req, u32 len, void *reply,
				  u32 *reply_len)
{
	struct lite_memory *mem = priv;
	const struct lite_wire_name *n = req;
	struct lite_wire_name_reply *r = reply;
	struct lite_name_entry *entry;
	struct lite_name_at at = {};
	u64 session = 0;

	/* Of our own LMRs we know. */
	if (!lite_local_find(mem, n->name, &at)) {
		mutex_lock(&mem->directory.lock);
		entry = lite_names_lookup_locked(&mem->directory, n->name);
		if (entry) {
			at.home = entry->home;
			at.id = entry->id;
			session = entry->session;
		}
		mutex_unlock(&mem->directory.lock);
		/* Its home may have dropped it since. */
		if (!session || session != lite_directory_session(mem, at.home))
			return -ENOENT;
	}
	r->home = cpu_to_le32(at.home);
	r->id = cpu_to_le64(at.id);
	*reply_len = sizeof(*r);
	return 0;
}

void lite_directory_handlers(struct lite_memory *mem)
{
	struct lite_rpc *rpc = mem->cl->rpc;

	lite_rpc_handle(rpc, LITE_CALL_NAME_ENTER, lite_serve_name_enter, mem);
	lite_rpc_handle(rpc, LITE_CALL_NAME_DROP, lite_serve_name_drop, mem);
	lite_rpc_handle(rpc, LITE_CALL_NAME_SYNC, lite_serve_name_sync, mem);
	lite_rpc_handle(rpc, LITE_CALL_NAME_LOOKUP, lite_serve_name_lookup, mem);
}
