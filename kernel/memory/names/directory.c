// SPDX-License-Identifier: GPL-2.0
/*
 * Finding the LMR of a name, and the directory: Documentation/names.rst, Finding. The directory's
 * entries (mem->directory) are soft state, which homes enter anew. An entry may be replaced if its
 * home is down, or if the node that enters another has asked that home and found the old one stale:
 * ids are never reused, so it stays stale.
 */
#include "core/name.h"
#include "memory/memory.h"

/* Attempts if directories die, or have stale entries. */
#define LITE_DIRECTORY_TRIES 3
/* Time after which names that could not be entered are tried again. */
#define LITE_PUBLISH_PAUSE (5 * HZ)

/* The directory of a name. Context: any process. */
u32 lite_name_directory(struct lite_memory *mem, const char *name)
{
	return lite_cluster_directory(mem->cl, lite_name_hash(name, strlen(name)));
}

/* Ask the directory, or the next one if that dies meanwhile. */
static int lite_directory_find(struct lite_memory *mem, const char *name,
			       struct lite_wire_name_reply *at)
{
	int tries = 0;
	int err;

	do {
		err = lite_name_call(mem, lite_name_directory(mem, name), LITE_CALL_NAME_FIND,
				     name, 0, at, sizeof(*at), false);
	} while (lite_name_is_down(err) && ++tries < LITE_DIRECTORY_TRIES);
	return err;
}

struct lite_homes_find {
	struct lite_memory *mem;
	const char *name;
	struct lite_wire_name_reply *at;
	int unknown;
};

/* Return: 0: ask the next node; 1: found; -EINTR. */
static int lite_homes_answer(void *ctx, u32 node, int err, const void *reply)
{
	const struct lite_wire_name_reply *r = reply;
	struct lite_wire_name_reply again;
	struct lite_homes_find *f = ctx;

	if (err == -EHOSTDOWN) {
		r = &again;
		err = lite_name_call(f->mem, node, LITE_CALL_NAME_FIND, f->name, 0, &again,
				     sizeof(again), true);
	}
	/* A node may be wrong about another home, which is asked, too. */
	if (!err && le32_to_cpu(r->home) == node) {
		*f->at = *r;
		return 1;
	}
	/* The LMRs of a home that is down are out of reach: not found. */
	if (err && err != -ENOENT && !lite_name_is_down(err))
		f->unknown = err;
	return err == -EINTR ? err : 0;
}

static int lite_homes_find(struct lite_memory *mem, const char *name,
			   struct lite_wire_name_reply *at)
{
	struct lite_homes_find f = {
		.mem = mem,
		.name = name,
		.at = at,
		.unknown = -ENOENT,
	};
	struct lite_name_at own;
	int err;

	if (lite_local_find(mem, name, &own)) {
		at->home = cpu_to_le32(own.home);
		at->id = cpu_to_le64(own.id);
		return 0;
	}
	err = lite_name_call_all(mem, LITE_CALL_NAME_FIND, name, 0, sizeof(*at), lite_homes_answer,
				 &f);
	if (err)
		return err < 0 ? err : 0;
	/* Without another member in reach, the name may exist elsewhere. */
	if (f.unknown == -ENOENT && lite_cluster_is_cut_off(mem->cl))
		return -EHOSTDOWN;
	return f.unknown;
}

/*
 * Find the home of a name's LMR, and its id there. @ask_all: skip the directory, ask all homes. May
 * sleep; killable; makes leaf calls. Return: 0; -ENOENT; -EHOSTDOWN: not here, and all other
 * members are down; -EINTR; the error of a home that could not be asked.
 */
int lite_name_lookup(struct lite_memory *mem, const char *name, bool ask_all, u32 *home, u64 *id)
{
	struct lite_wire_name_reply at;
	int err = -ENOENT;

	if (!ask_all)
		err = lite_directory_find(mem, name, &at);
	if (err)
		err = lite_homes_find(mem, name, &at);
	if (err)
		return err;
	*home = le32_to_cpu(at.home);
	*id = le64_to_cpu(at.id);
	return 0;
}

/*
 * Enter the name of an LMR homed here at the directory @node. @uid: its owner, charged for the
 * entry; @at: an entry known to be stale, which may be replaced; home 0: none; set to the entry now
 * there: this LMR's, or another's. May sleep; makes a leaf call. Return: 0 or a negative errno.
 */
int lite_directory_enter(struct lite_memory *mem, u32 node, const char *name, u64 id, u32 uid,
			 struct lite_name_at *at)
{
	struct lite_wire_name_enter req = {
		.home = cpu_to_le32(lite_cluster_id(mem->cl)),
		.id = cpu_to_le64(id),
		.uid = cpu_to_le32(uid),
		.was_home = cpu_to_le32(at->home),
		.was_id = cpu_to_le64(at->id),
	};
	struct lite_wire_name_reply reply;
	/*
	 * Not killable: an abandoned call might enter the name after DROP. One that times out still
	 * may. The entry is stale then, as its home says when asked, but its owner pays for it
	 * until it is replaced or the session ends.
	 */
	struct lite_call_desc d = {
		LITE_REQUEST(LITE_CALL_NAME_ENTER, req),
		LITE_REPLY(reply),
	};
	int err;

	strscpy(req.name, name, sizeof(req.name));
	err = lite_cluster_call(mem->cl, node, &d);
	if (!err) {
		at->home = le32_to_cpu(reply.home);
		at->id = le64_to_cpu(reply.id);
	}
	return err;
}

/* A directory, and this node's session with it; 0: it is this node. */
struct lite_directory {
	u32 node;
	u64 session;
};

/* Does a name have to be entered at a directory? @d: set to the right one. */
static bool lite_publish_wanted(struct lite_memory *mem, const struct lite_name_entry *entry,
				struct lite_directory *d)
{
	u64 incarnation;

	if (entry->state != LITE_NAME_CONFIRMED)
		return false;
	d->node = lite_name_directory(mem, entry->name);
	d->session = lite_cluster_session(mem->cl, d->node, &incarnation);
	return entry->published != d->node || entry->session != d->session;
}

/* The next entry that was not tried in this run, or NULL. */
static struct lite_name_entry *lite_publish_try(struct lite_names *local, u32 run)
{
	struct lite_name_entry *entry;

	lockdep_assert_held(&local->lock);
	entry = list_first_entry_or_null(&local->all, struct lite_name_entry, list);
	/* Tried entries go to the tail; new ones come in at the head. */
	if (!entry || entry->tried == run)
		return NULL;
	entry->tried = run;
	list_move_tail(&entry->list, &local->all);
	/* Its claim may wait for a member that has come or gone. */
	if (entry->state != LITE_NAME_CONFIRMED)
		lite_name_wake_locked(local, entry->name);
	return entry;
}

/*
 * Find the next entry to publish that was not tried in this run; or NULL. The entry stays, and its
 * LMR and uid do not change, until lite_publish_end().
 */
static struct lite_name_entry *lite_publish_next(struct lite_memory *mem, u32 run,
						 struct lite_directory *d)
{
	struct lite_names *local = &mem->local;
	struct lite_name_entry *entry;
	int looked = 0;

	spin_lock(&local->lock);
	while ((entry = lite_publish_try(local, run)) && !lite_publish_wanted(mem, entry, d)) {
		if (++looked % LITE_NAMES_LOOK)
			continue;
		spin_unlock(&local->lock);
		cond_resched();
		spin_lock(&local->lock);
	}
	WRITE_ONCE(local->publishing, entry);
	spin_unlock(&local->lock);
	return entry;
}

/* @d: where it has been entered; NULL: that failed. */
static void lite_publish_end(struct lite_memory *mem, struct lite_name_entry *entry,
			     const struct lite_directory *d)
{
	spin_lock(&mem->local.lock);
	if (d) {
		entry->published = d->node;
		entry->session = d->session;
	}
	WRITE_ONCE(mem->local.publishing, NULL);
	spin_unlock(&mem->local.lock);
	/* Few waiters: lite_local_del() of this entry, and so of one LMR. */
	wake_up_all(&mem->local.published);
}

/*
 * Enter a name at its directory. Return: 0: the directory has an entry for it, maybe another home's
 * that took the name while out of reach (look-ups find the LMR entered first); a negative errno.
 */
static int lite_publish(struct lite_memory *mem, const struct lite_name_entry *entry, u32 node)
{
	struct lite_wire_name_probe_reply reply;
	struct lite_name_at at = {};
	u64 id = entry->at.id;
	int tries = 0;
	int err;

	do {
		err = lite_directory_enter(mem, node, entry->name, id, entry->uid, &at);
		if (err || lite_name_is_at(&at, entry->at.home, id))
			return err;
		/* A stale entry of this home: only this LMR has the name here. */
		if (at.home == entry->at.home)
			continue;
		err = lite_name_call(mem, at.home, LITE_CALL_NAME_PROBE, entry->name, id, &reply,
				     sizeof(reply), true);
		if (err)
			return err;
		if (le32_to_cpu(reply.state) != LITE_WIRE_NAME_FREE)
			return 0;
	} while (++tries < LITE_DIRECTORY_TRIES);
	return -EAGAIN;
}

/* Have all nodes drop what this node entered in older sessions. */
static void lite_names_sync(struct lite_memory *mem)
{
	struct lite_wire_name_sync req = {};
	struct lite_call_desc d = {
		LITE_REQUEST(LITE_CALL_NAME_SYNC, req),
	};

	lite_cluster_call_all(mem->cl, 0, false, &d, NULL, NULL);
}

/* Enter this node's names at their present directories. */
void lite_names_publish_work(struct work_struct *work)
{
	struct lite_memory *mem = container_of(work, struct lite_memory, publish_work.work);
	int changes = atomic_read_acquire(&mem->changes);
	u32 run = ++mem->local.runs;
	struct lite_name_entry *entry;
	struct lite_directory d;
	bool failed = false;
	int err;

	while ((entry = lite_publish_next(mem, run, &d))) {
		err = lite_publish(mem, entry, d.node);
		lite_publish_end(mem, entry, err ? NULL : &d);
		/* A directory without room has to do without the name. */
		failed |= err && err != -EDQUOT && err != -ENOSPC;
		cond_resched();
	}
	/* Only if all names were entered: SYNC makes directories drop the rest. */
	if (!failed && changes == atomic_read_acquire(&mem->changes))
		lite_names_sync(mem);
	/* Try again later: there may be no change of members to trigger that. */
	if (failed && !lite_cluster_ready(mem->cl))
		queue_delayed_work(mem->wq, &mem->publish_work, LITE_PUBLISH_PAUSE);
}

/* Publish a confirmed name of an LMR homed here if its directory does not have it. */
void lite_names_publish(struct lite_memory *mem, const char *name)
{
	struct lite_name_entry *entry;
	struct lite_directory d;
	bool wanted;

	spin_lock(&mem->local.lock);
	entry = lite_names_lookup_locked(&mem->local, name);
	wanted = entry && lite_publish_wanted(mem, entry, &d);
	spin_unlock(&mem->local.lock);
	if (wanted)
		mod_delayed_work(mem->wq, &mem->publish_work, 0);
}

static bool lite_name_is_before(struct lite_memory *mem, const struct lite_name_entry *entry,
				u32 home, u64 session)
{
	return entry->at.home == home && entry->session < session;
}

/*
 * Is an entry of an @incarnation that is over? The next one may have a session already, and names
 * entered in it stay; those of an earlier session are stale.
 */
static bool lite_name_is_lost(struct lite_memory *mem, const struct lite_name_entry *entry,
			      u32 home, u64 incarnation)
{
	u64 session, now;

	if (entry->at.home != home)
		return false;
	/* As the table is locked, a session that has entered names is seen here, or is over. */
	session = lite_cluster_session(mem->cl, home, &now);
	return !session || now <= incarnation || entry->session < session;
}

/* A home's incarnation is over: remove its names. May sleep. */
void lite_names_lost(struct lite_memory *mem, u32 home, u64 incarnation)
{
	lite_names_drop(mem, &mem->directory, lite_name_is_lost, home, incarnation);
}

static int lite_name_reply(const struct lite_name_at *at, struct lite_wire_name_reply *r)
{
	r->home = cpu_to_le32(at->home);
	r->id = cpu_to_le64(at->id);
	return sizeof(*r);
}

int lite_serve_name_enter(struct lite_memory *mem, struct lite_conn *conn, const void *req,
			  void *reply)
{
	struct lite_names *names = &mem->directory;
	const struct lite_wire_name_enter *e = req;
	u32 home = conn ? conn->from.node : lite_cluster_id(mem->cl);
	u64 session = conn ? conn->session : 0;
	struct lite_name_entry *entry, *new;
	u64 id = le64_to_cpu(e->id);
	int ret;

	if (!home || le32_to_cpu(e->home) != home)
		return -ESTALE; /* of the caller's last life */
	/* Wait until the home is up here: before that, other homes could replace the entry. */
	ret = conn ? lite_cluster_await_session(mem->cl, conn) : 0;
	if (ret)
		return ret;
	new = lite_name_entry_new(names, e->name, home, id,
				  lite_uid_charged(le32_to_cpu(e->uid),
						   conn && mem->root_squash));
	spin_lock(&names->lock);
	entry = lite_names_lookup_locked(names, e->name);
	if (entry && lite_name_is_at(&entry->at, home, id)) {
		entry->session = max(session, entry->session);
	} else if (IS_ERR(new)) {
		ret = PTR_ERR(new);
	} else if (!entry) {
		new->session = session;
		ret = lite_names_insert_locked(mem, names, new);
		if (!ret)
			swap(entry, new);
	} else if (lite_name_is_at(&entry->at, le32_to_cpu(e->was_home), le64_to_cpu(e->was_id)) ||
		   !lite_cluster_is_live(mem->cl, entry->at.home)) {
		entry->at = new->at;
		entry->session = session;
		/* Both have the same size, so freeing @new uncharges the old uid. */
		swap(entry->uid, new->uid);
	}
	if (!ret)
		ret = lite_name_reply(&entry->at, reply);
	spin_unlock(&names->lock);
	if (!IS_ERR(new))
		lite_name_entry_free(names, new);
	return ret;
}

int lite_serve_name_drop(struct lite_memory *mem, struct lite_conn *conn, const void *req,
			 void *reply)
{
	const struct lite_wire_name *n = req;
	u32 home = conn ? conn->from.node : lite_cluster_id(mem->cl);
	struct lite_name_entry *entry;

	if (le32_to_cpu(n->home) != home)
		return -ESTALE; /* of the caller's last life */
	spin_lock(&mem->directory.lock);
	entry = lite_names_lookup_locked(&mem->directory, n->name);
	if (entry && !lite_name_is_at(&entry->at, home, le64_to_cpu(n->id)))
		entry = NULL;
	if (entry)
		lite_names_remove_locked(mem, &mem->directory, entry);
	spin_unlock(&mem->directory.lock);
	lite_name_entry_free(&mem->directory, entry);
	/* A claim of this node may wait for the name. */
	lite_name_wake(mem, n->name);
	return 0;
}

int lite_serve_name_sync(struct lite_memory *mem, struct lite_conn *conn, const void *req,
			 void *reply)
{
	if (!conn)
		return -EBADMSG;
	lite_names_drop(mem, &mem->directory, lite_name_is_before, conn->from.node, conn->session);
	return 0;
}

/* Find a name of an LMR homed here, or that this node knows as its directory. Context: process. */
bool lite_name_known(struct lite_memory *mem, const char *name, struct lite_name_at *at)
{
	struct lite_name_entry *entry;
	u64 incarnation, session = 0;

	/* Local names are always right. */
	if (lite_local_find(mem, name, at))
		return true;
	spin_lock(&mem->directory.lock);
	entry = lite_names_lookup_locked(&mem->directory, name);
	if (entry) {
		*at = entry->at;
		session = entry->session;
	}
	spin_unlock(&mem->directory.lock);
	/* An entry of an older session is stale: its home may have dropped it since. */
	return session && session == lite_cluster_session(mem->cl, at->home, &incarnation);
}

int lite_serve_name_find(struct lite_memory *mem, struct lite_conn *conn, const void *req,
			 void *reply)
{
	const struct lite_wire_name *n = req;
	struct lite_name_at at;

	if (!lite_name_known(mem, n->name, &at))
		return -ENOENT;
	return lite_name_reply(&at, reply);
}
