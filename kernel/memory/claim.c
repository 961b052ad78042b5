// SPDX-License-Identifier: GPL-2.0
/*
 * Taking a name for an LMR, and giving it up. What is true of names is at the
 * homes: each knows those of its own LMRs (mem->local).
 *
 * Of several homes that want one name exactly one gets it:
 *
 *   1. raise a flag: the name is entered in the own table, CLAIMING
 *   2. ask every other member that is not down (PROBE). TAKEN: give up, EEXIST.
 *      BUSY, its flag is up too: the lower node id has precedence. Who has it
 *      waits, with its flag up; who has not lowers its flag (YIELDING), waits,
 *      and begins again.
 *   3. enter the name at the directory, which knows of homes that have lost
 *      sight of each other but not of it
 *   4. members came or went meanwhile: again from 2, with the flag still up
 *
 * Then the name is reserved, and lite_name_confirm() makes it TAKEN when there
 * is an LMR that can be found by it.
 *
 * Why never two: between raising its flag for the last time and having the
 * name, each has seen the other's flag down. The one that raised its flag last
 * has asked the other after that, when that one's flag had been up already, or
 * the name taken. It does not matter whom either takes for the directory. It
 * does matter that each asks the other, if the other asks it: a PROBE is
 * answered only in a session that this node itself has in use, and whoever has
 * just been heard of counts as suspect, and is waited for
 * (lite_cluster_await_session(), struct lite_peer.fresh).
 *
 * Why not none: one that waits with its flag up waits for higher ids only, so
 * there is no circle; the highest of them waits for nobody. EEXIST is said only
 * when somebody has the name: reserved is BUSY, not TAKEN, for its LMR may not
 * come to be, and then one of those who wait gets the name.
 *
 * A home that is down is not asked. Its LMRs are out of reach, and their names
 * are free. A home that dies while its flag is up is down soon.
 *
 * Waiting: each change of an entry is an event (lite_names_event()). A node
 * that was told BUSY is told of the next change, by DROP or WAKE; should that
 * get lost, there is a time-out. Of several LMRs of one home that want one name
 * one claims it, and the others wait for what becomes of that.
 */
#include <linux/slab.h>

#include "../core/name.h"
#include "memory.h"

/* How long a claim may take, with all waiting for others. */
#define LITE_CLAIM_TIMEOUT (60 * HZ)
/* Look again after this time, if no event has come. */
#define LITE_CLAIM_POLL HZ
/* A call that failed for want of memory is tried so often. */
#define LITE_TELL_TRIES 3

/**
 * struct lite_claim - a claim under way
 * @mem: node's
 * @name: wanted
 * @id: for this LMR of ours
 * @uid: its owner, whom to charge
 * @self: our node
 * @deadline: jiffies
 */
struct lite_claim {
	struct lite_memory *mem;
	const char *name;
	u64 id;
	u32 uid;
	u32 self;
	unsigned long deadline;
};

/* ---- events -------------------------------------------------------------- */

/**
 * lite_names_event - whoever waits for a name shall look again
 * @mem: node's
 *
 * Context: any process.
 */
void lite_names_event(struct lite_memory *mem)
{
	/* After what changed: whoever sees the number sees that. */
	atomic_inc_return(&mem->local.events);
	wake_up_all(&mem->local.wait);
}

static int lite_claim_wait(const struct lite_claim *c, int events)
{
	struct lite_names *local = &c->mem->local;
	long left = c->deadline - jiffies;

	if (left <= 0)
		return -ETIMEDOUT;
	if (wait_event_killable_timeout(local->wait,
					atomic_read(&local->events) != events,
					min_t(long, left, LITE_CLAIM_POLL)) < 0)
		return -EINTR;
	return lite_cluster_ready(c->mem->cl);
}

/* Tell all members: by DROP that a name is free, by WAKE to look again. */
static void lite_name_tell(struct lite_memory *mem, u16 call, const char *name,
			   u64 id)
{
	u32 self = lite_cluster_id(mem->cl);
	u32 node = 0;

	while ((node = lite_cluster_next(mem->cl, node))) {
		int tries = 0;

		if (call == LITE_CALL_NAME_WAKE && node == self)
			continue;
		while (lite_name_call(mem, node, call, name, id, NULL, 0) ==
			       -ENOMEM &&
		       ++tries < LITE_TELL_TRIES)
			cond_resched();
	}
}

/* ---- our own table ------------------------------------------------------- */

static struct lite_name_entry *lite_claim_entry(const struct lite_claim *c)
{
	struct lite_name_entry *entry;

	entry = lite_names_lookup_locked(&c->mem->local, c->name);
	return entry && entry->id == c->id ? entry : NULL;
}

/* Raise our flag, when no other LMR of ours has its own up. */
static int lite_claim_begin(const struct lite_claim *c)
{
	struct lite_names *local = &c->mem->local;
	struct lite_name_entry *entry, *new;
	int events, err;

	new = lite_name_entry_new(local, c->name, c->self, c->id, c->uid);
	if (IS_ERR(new))
		return PTR_ERR(new);
	new->state = LITE_NAME_CLAIMING;
	do {
		events = atomic_read(&local->events);
		mutex_lock(&local->lock);
		entry = lite_names_lookup_locked(local, c->name);
		if (!entry)
			err = lite_names_insert_locked(c->mem, local, new);
		else if (entry->state == LITE_NAME_CONFIRMED)
			err = -EEXIST;
		else
			err = -EINPROGRESS;
		mutex_unlock(&local->lock);
		if (!err)
			return 0;
	} while (err == -EINPROGRESS && !(err = lite_claim_wait(c, events)));
	lite_name_entry_free(local, new);
	return err;
}

/*
 * The flag goes up or down, or the name is ours. Return: false: our entry is
 * gone, for the LMR was freed.
 */
static bool lite_claim_set(const struct lite_claim *c,
			   enum lite_name_state state)
{
	struct lite_names *local = &c->mem->local;
	struct lite_name_entry *entry;
	bool awaited = false;

	mutex_lock(&local->lock);
	entry = lite_claim_entry(c);
	if (entry) {
		entry->state = state;
		awaited = entry->awaited;
		entry->awaited = false;
	}
	mutex_unlock(&local->lock);
	lite_names_event(c->mem);
	if (awaited)
		lite_name_tell(c->mem, LITE_CALL_NAME_WAKE, c->name, c->id);
	return entry;
}

/* ---- claiming ------------------------------------------------------------ */

/*
 * What a node has of the name, if it is not down: then EHOSTDOWN or
 * EHOSTUNREACH.
 */
static int lite_claim_probe(const struct lite_claim *c, u32 node, u32 *state)
{
	struct lite_wire_name_probe_reply reply;
	int events, err;

	for (;;) {
		events = atomic_read(&c->mem->local.events);
		err = lite_name_call(c->mem, node, LITE_CALL_NAME_PROBE,
				     c->name, c->id, &reply, sizeof(reply));
		if (!err)
			*state = le32_to_cpu(reply.state);
		if (err != -EHOSTDOWN ||
		    !lite_cluster_is_live(c->mem->cl, node))
			return err;
		/* Its sessions broke, one after the other. */
		err = lite_claim_wait(c, events);
		if (err)
			return err;
	}
}

/* Wait until the flag of a node is down: 0; -EEXIST: it has the name now. */
static int lite_claim_settle(const struct lite_claim *c, u32 node)
{
	int events, err;
	u32 state;

	for (;;) {
		events = atomic_read(&c->mem->local.events);
		err = lite_claim_probe(c, node, &state);
		if (err)
			return err;
		if (state != LITE_WIRE_NAME_BUSY)
			return state == LITE_WIRE_NAME_TAKEN ? -EEXIST : 0;
		err = lite_claim_wait(c, events);
		if (err)
			return err;
	}
}

/* 0: this node does not have the name; 1: it has precedence. */
static int lite_claim_ask(const struct lite_claim *c, u32 node)
{
	u32 state;
	int err;

	if (node > c->self)
		return lite_claim_settle(c, node);
	err = lite_claim_probe(c, node, &state);
	if (err)
		return err;
	switch (state) {
	case LITE_WIRE_NAME_TAKEN:
		return -EEXIST;
	case LITE_WIRE_NAME_BUSY:
		return 1;
	default:
		return 0;
	}
}

/* Likewise, of all members; @other is the one that has precedence. */
static int lite_claim_ask_all(const struct lite_claim *c, u32 *other)
{
	struct lite_cluster *cl = c->mem->cl;
	u32 node = 0;
	int err;

	while ((node = lite_cluster_next(cl, node))) {
		if (node == c->self)
			continue;
		err = lite_claim_ask(c, node);
		/* Down: what it has is out of everybody's reach. */
		if (err && err != -EHOSTDOWN && err != -EHOSTUNREACH) {
			*other = node;
			return err;
		}
	}
	return 0;
}

/* Note where our name is entered, so that it is not entered again for nothing. */
static void lite_claim_entered(const struct lite_claim *c, u32 node,
			       u64 session)
{
	struct lite_name_entry *entry;

	mutex_lock(&c->mem->local.lock);
	entry = lite_claim_entry(c);
	if (entry) {
		entry->published = node;
		entry->session = session;
	}
	mutex_unlock(&c->mem->local.lock);
}

/*
 * Enter the name at the directory, likewise. What stands there may be what
 * somebody has dropped: the home says whether it is.
 */
static int lite_claim_enter(const struct lite_claim *c, u32 *other)
{
	struct lite_name_at was = {}, is;
	struct lite_memory *mem = c->mem;
	unsigned long patience = jiffies + 2 * mem->cl->dead;
	u64 session;
	int events;
	u32 node;
	int err;

	for (;;) {
		/* A node that has left has no directory but itself. */
		err = lite_cluster_ready(mem->cl);
		if (err)
			return err;
		events = atomic_read(&mem->local.events);
		node = lite_cluster_directory(
			mem->cl, lite_name_hash(c->name, strlen(c->name)));
		session = lite_directory_session(mem, node);
		err = lite_directory_enter(mem, node, c->name, c->id, c->uid,
					   &was, &is);
		if (err == -EHOSTDOWN || err == -EHOSTUNREACH) {
			/* There is another one when that is noticed. */
			err = lite_claim_wait(c, events);
			if (err)
				return err;
			continue;
		}
		if (err)
			return err;
		if (is.home == c->self && is.id == c->id) {
			lite_claim_entered(c, node, session);
			return 0;
		}
		/* Of us no other can have it: our flag is up. */
		if (is.home != c->self) {
			err = lite_claim_ask(c, is.home);
			*other = is.home;
			/*
			 * Down, or not heard of, but not for the directory:
			 * soon for both of us, or else who knows.
			 */
			if ((err == -EHOSTDOWN || err == -EHOSTUNREACH) &&
			    time_before(jiffies, patience)) {
				err = lite_claim_wait(c, events);
				if (err)
					return err;
				continue;
			}
			if (err)
				return err == -EHOSTUNREACH ? -EHOSTDOWN : err;
		}
		was = is;
		if (time_after(jiffies, c->deadline))
			return -ETIMEDOUT;
	}
}

/* With our flag up: 0: the name is reserved. */
static int lite_claim_win(const struct lite_claim *c)
{
	struct lite_memory *mem = c->mem;
	int changes, err;
	u32 other = 0;

	for (;;) {
		changes = atomic_read_acquire(&mem->changes);
		err = lite_claim_ask_all(c, &other);
		if (!err)
			err = lite_claim_enter(c, &other);
		if (err < 0)
			return err;
		/* Whoever came meanwhile may not have been asked. */
		if (!err && changes == atomic_read_acquire(&mem->changes))
			return 0;
		if (err) {
			lite_claim_set(c, LITE_NAME_YIELDING);
			err = lite_claim_settle(c, other);
			if (err && err != -EHOSTDOWN && err != -EHOSTUNREACH)
				return err;
			lite_claim_set(c, LITE_NAME_CLAIMING);
		}
		if (time_after(jiffies, c->deadline))
			return -ETIMEDOUT;
	}
}

/* Does any directory know of our claim, or may it? */
static bool lite_claim_is_known(const struct lite_claim *c)
{
	struct lite_name_entry *entry;
	bool known;

	mutex_lock(&c->mem->local.lock);
	entry = lite_claim_entry(c);
	known = entry && entry->published;
	mutex_unlock(&c->mem->local.lock);
	return known;
}

/* Take our entry out, when the publisher has let go of it. */
static bool lite_local_del(const struct lite_claim *c)
{
	struct lite_names *local = &c->mem->local;
	struct lite_name_entry *entry;
	bool awaited = false;

	for (;;) {
		mutex_lock(&local->lock);
		entry = lite_claim_entry(c);
		if (!entry || entry != local->publishing)
			break;
		mutex_unlock(&local->lock);
		/* Else a directory would be told what is not true any more. */
		wait_event(local->wait, READ_ONCE(local->publishing) != entry);
	}
	if (entry) {
		awaited = entry->awaited;
		lite_names_remove_locked(c->mem, local, entry);
	}
	mutex_unlock(&local->lock);
	lite_names_event(c->mem);
	return awaited;
}

/**
 * lite_name_reserve - take a name for an LMR of ours that is yet to be made
 * @mem: node's
 * @name: name
 * @id: the LMR
 * @uid: its owner, who is charged for the entries
 *
 * Nobody finds the LMR by it before lite_name_confirm(), and nobody else gets
 * it before lite_name_drop(); one of them must follow.
 *
 * Context: may sleep; killable; calls leaf calls.
 * Return: 0; -EEXIST: there is an LMR of that name; -EHOSTDOWN: there may be
 * one, at a node that cannot be asked; -ETIMEDOUT: somebody did not answer, or
 * another claim did not come to an end; -EDQUOT, -ENOSPC, here or at the
 * directory; -EINTR; -ENOTCONN, -ENODEV: the node is
 * leaving or stopping; other negative errnos.
 */
int lite_name_reserve(struct lite_memory *mem, const char *name, u64 id,
		      u32 uid)
{
	const struct lite_claim c = {
		.mem = mem,
		.name = name,
		.id = id,
		.uid = uid,
		.self = lite_cluster_id(mem->cl),
		.deadline = jiffies + LITE_CLAIM_TIMEOUT,
	};
	int err = lite_claim_begin(&c);

	if (err)
		return err;
	err = lite_claim_win(&c);
	/* What else it says when it leaves is no news. */
	if (err && err != -EEXIST && err != -EINTR)
		err = lite_cluster_ready(mem->cl) ?: err;
	/* An answer that did not come may have been about something done. */
	if (err && (err != -EEXIST || lite_claim_is_known(&c)))
		lite_name_drop(mem, name, id);
	else if (err && lite_local_del(&c))
		lite_name_tell(mem, LITE_CALL_NAME_WAKE, name, id);
	return err;
}

/**
 * lite_name_confirm - the LMR of a name that was reserved can be found
 * @mem: node's
 * @name: name
 * @id: the LMR
 *
 * Context: may sleep; calls leaf calls.
 */
void lite_name_confirm(struct lite_memory *mem, const char *name, u64 id)
{
	const struct lite_claim c = {
		.mem = mem,
		.name = name,
		.id = id,
		.self = lite_cluster_id(mem->cl),
	};

	/* Freed already? Then its name has been dropped. */
	if (!lite_claim_set(&c, LITE_NAME_CONFIRMED))
		return;
	/* The publisher passes over what is not confirmed. */
	lite_names_publish(mem, name);
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
	const struct lite_claim c = { .mem = mem, .name = name, .id = id };

	lite_local_del(&c);
	/*
	 * All of them: a member may have been the directory before others came,
	 * and be it again. Where it does not arrive the session is over, and
	 * the entry of an old session is known to be a hint.
	 */
	lite_name_tell(mem, LITE_CALL_NAME_DROP, name, id);
}

/* ---- for others ---------------------------------------------------------- */

static int lite_serve_name_probe(void *priv, struct lite_conn *conn,
				 const void *req, u32 len, void *reply,
				 u32 *reply_len)
{
	struct lite_memory *mem = priv;
	struct lite_name_entry *entry;
	const struct lite_wire_name *n = req;
	struct lite_wire_name_probe_reply *r = reply;
	u32 state = LITE_WIRE_NAME_FREE;
	int err;

	if (!conn || le32_to_cpu(n->home) != conn->from.node)
		return -EBADMSG;
	/* If it can ask us, our next claim must ask it. */
	err = lite_cluster_await_session(mem->cl, conn);
	if (err)
		return err;
	mutex_lock(&mem->local.lock);
	entry = lite_names_lookup_locked(&mem->local, n->name);
	if (entry && entry->state == LITE_NAME_CONFIRMED) {
		state = LITE_WIRE_NAME_TAKEN;
	} else if (entry && entry->state == LITE_NAME_CLAIMING) {
		state = LITE_WIRE_NAME_BUSY;
		entry->awaited = true;
	}
	mutex_unlock(&mem->local.lock);
	r->state = cpu_to_le32(state);
	*reply_len = sizeof(*r);
	return 0;
}

static int lite_serve_name_wake(void *priv, struct lite_conn *conn,
				const void *req, u32 len, void *reply,
				u32 *reply_len)
{
	lite_names_event(priv);
	return 0;
}

static int lite_serve_name_find(void *priv, struct lite_conn *conn,
				const void *req, u32 len, void *reply,
				u32 *reply_len)
{
	struct lite_memory *mem = priv;
	const struct lite_wire_name *n = req;
	struct lite_wire_name_reply *r = reply;
	struct lite_name_at at;

	if (!lite_local_find(mem, n->name, &at))
		return -ENOENT;
	r->home = cpu_to_le32(at.home);
	r->id = cpu_to_le64(at.id);
	*reply_len = sizeof(*r);
	return 0;
}

/**
 * lite_local_find - which LMR of ours has a name?
 * @mem: node's
 * @name: name
 * @at: set if there is one
 *
 * Context: may sleep.
 * Return: whether there is one.
 */
bool lite_local_find(struct lite_memory *mem, const char *name,
		     struct lite_name_at *at)
{
	struct lite_name_entry *entry;
	bool found;

	mutex_lock(&mem->local.lock);
	entry = lite_names_lookup_locked(&mem->local, name);
	found = entry && entry->state == LITE_NAME_CONFIRMED;
	if (found) {
		at->home = entry->home;
		at->id = entry->id;
	}
	mutex_unlock(&mem->local.lock);
	return found;
}

void lite_claim_handlers(struct lite_memory *mem)
{
	struct lite_rpc *rpc = mem->cl->rpc;

	lite_rpc_handle(rpc, LITE_CALL_NAME_PROBE, lite_serve_name_probe, mem);
	lite_rpc_handle(rpc, LITE_CALL_NAME_WAKE, lite_serve_name_wake, mem);
	lite_rpc_handle(rpc, LITE_CALL_NAME_FIND, lite_serve_name_find, mem);
}
