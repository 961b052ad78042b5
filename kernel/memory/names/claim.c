// SPDX-License-Identifier: GPL-2.0
/*
 * Taking a name for an LMR, and giving it up. Documentation/names.rst, Claiming, has the steps, and
 * why exactly one of several homes that claim a name gets it. The entry in mem->local is CLAIMING
 * while this node's flag is up, and YIELDING while it is down. Once the name finds the LMR it is
 * CONFIRMED, and the answer to PROBE is TAKEN.
 *
 * Claims at a home wait in a line, by name (line.h); the first of each name proceeds. A change of
 * the name, here or at a node that has answered BUSY (it sends DROP), wakes only the first, as a
 * user may have any number of claims. One that leaves the line wakes the next, so when the name is
 * taken, the waiters are told one by one. Each also looks again after a while: a message may be
 * lost, and the thread before it may be without a processor for long.
 */
#include <linux/completion.h>

#include "memory/memory.h"

/* Limit for a whole claim, all waits included. */
#define LITE_CLAIM_TIMEOUT (60 * HZ)
/* Look again after this time without an event. */
#define LITE_CLAIM_POLL HZ
/* Attempts at a call that fails with -ENOMEM. */
#define LITE_TELL_TRIES 3

struct lite_name_claim {
	struct lite_memory *mem;
	const char *name;
	u64 id;                 /* the LMR, homed here */
	u32 uid;                /* its owner, charged for the entries */
	unsigned long life;     /* of this node: lite_cluster_life() */
	u32 self;               /* id of this node in that life */
	u32 other;              /* node that has precedence, if one has */
	unsigned long deadline; /* jiffies */
	struct lite_line_place place; /* in the line, until the claim ends */
	struct completion event; /* the name has changed since the claim last began to look */
};

static u64 lite_name_kind(struct lite_names *local, const char *name)
{
	return siphash(name, strlen(name), &local->key);
}

/* Have the first claim on a name look again. */
void lite_name_wake_locked(struct lite_names *local, const char *name)
{
	struct lite_line_place *first;
	struct lite_name_claim *c;

	lockdep_assert_held(&local->lock);
	first = lite_line_first(&local->claims, lite_name_kind(local, name));
	c = first ? container_of(first, struct lite_name_claim, place) : NULL;
	if (c && !completion_done(&c->event))
		complete(&c->event);
}

/* The same without the lock: the name has changed, here or elsewhere. Context: process. */
void lite_name_wake(struct lite_memory *mem, const char *name)
{
	spin_lock(&mem->local.lock);
	lite_name_wake_locked(&mem->local, name);
	spin_unlock(&mem->local.lock);
}

/* Wait until the name has changed since the last wait, or since the claim entered the line. */
static int lite_name_claim_wait(struct lite_name_claim *c)
{
	long left = c->deadline - jiffies;

	if (left <= 0)
		return -ETIMEDOUT;
	left = min_t(long, left, LITE_CLAIM_POLL);
	if (lite_wait_done_timeout(&c->event, left) < 0)
		return -EINTR;
	return lite_cluster_recheck(c->mem->cl, c->life);
}

/*
 * Tell all members that a name has changed. @id: the LMR here that no longer has it, so that
 * directories forget it; 0: its LMR may still have it.
 */
static void lite_name_tell(struct lite_memory *mem, const char *name, u64 id)
{
	u32 self = lite_cluster_id(mem->cl);
	int tries = 0;

	while (id &&
	       lite_name_call(mem, self, LITE_CALL_NAME_DROP, name, id, NULL, 0,
			      false) == -ENOMEM &&
	       ++tries < LITE_TELL_TRIES)
		cond_resched();
	lite_name_call_all(mem, LITE_CALL_NAME_DROP, name, id, 0, NULL, NULL);
}

static struct lite_name_entry *lite_name_claim_entry(const struct lite_name_claim *c)
{
	struct lite_name_entry *entry = lite_names_lookup_locked(&c->mem->local, c->name);

	return entry && entry->at.id == c->id ? entry : NULL;
}

/* Raise this node's flag once no other LMR here claims the name. The caller leaves the line. */
static int lite_name_claim_begin(struct lite_name_claim *c)
{
	struct lite_names *local = &c->mem->local;
	struct lite_name_entry *entry, *new;
	int err;

	new = lite_name_entry_new(local, c->name, c->self, c->id, c->uid);
	if (IS_ERR(new))
		return PTR_ERR(new);
	new->state = LITE_NAME_CLAIMING;
	do {
		spin_lock(&local->lock);
		entry = lite_names_lookup_locked(local, c->name);
		if (!entry)
			err = lite_names_insert_locked(c->mem, local, new);
		else if (entry->state == LITE_NAME_CONFIRMED)
			err = -EEXIST;
		else
			err = -EINPROGRESS;
		if (!err || (err == -EINPROGRESS && !c->place.line))
			lite_line_enter(&local->claims, &c->place, !err);
		spin_unlock(&local->lock);
		if (!err)
			return 0;
	} while (err == -EINPROGRESS && !(err = lite_name_claim_wait(c)));
	lite_name_entry_free(local, new);
	return err;
}

/* Change the entry's state and tell waiters. Return: false: it is gone, as the LMR was freed. */
static bool lite_name_claim_set(const struct lite_name_claim *c, enum lite_name_state state)
{
	struct lite_names *local = &c->mem->local;
	struct lite_name_entry *entry;
	bool awaited = false;

	spin_lock(&local->lock);
	entry = lite_name_claim_entry(c);
	if (entry) {
		entry->state = state;
		awaited = entry->awaited;
		entry->awaited = false;
	}
	lite_name_wake_locked(local, c->name);
	spin_unlock(&local->lock);
	if (awaited)
		lite_name_tell(c->mem, c->name, 0);
	return entry;
}

/*
 * Ask a node for the name's state, and wait while its flag is up, unless it has precedence and
 * @settle is false. Return: 0: the node does not have the name; 1: it has precedence; -EEXIST: it
 * has taken the name; other errnos, see lite_name_is_down().
 */
static int lite_name_claim_ask(struct lite_name_claim *c, u32 node, bool settle)
{
	struct lite_wire_name_probe_reply reply = {};
	u32 state;
	int err;

	do {
		err = lite_name_call(c->mem, node, LITE_CALL_NAME_PROBE, c->name, c->id, &reply,
				     sizeof(reply), true);
		state = le32_to_cpu(reply.state);
		if (!err && state != LITE_WIRE_NAME_BUSY)
			return state == LITE_WIRE_NAME_TAKEN ? -EEXIST : 0;
		if (!err && !settle && node < c->self)
			return 1;
		/* If the node is not down, sessions broke during the call: try again. */
		if (err && (err != -EHOSTDOWN || !lite_cluster_is_live(c->mem->cl, node)))
			return err;
		err = lite_name_claim_wait(c);
	} while (!err);
	return err;
}

static int lite_name_claim_answer(void *ctx, u32 node, int err, const void *reply)
{
	const struct lite_wire_name_probe_reply *r = reply;
	struct lite_name_claim *c = ctx;

	if (!err && le32_to_cpu(r->state) == LITE_WIRE_NAME_FREE)
		return 0;
	/* The node may claim the name, or has not answered: ask again, and wait. */
	err = lite_name_claim_ask(c, node, false);
	/* The LMRs of a node that is down are out of reach. */
	if (lite_name_is_down(err))
		return 0;
	c->other = node;
	return err;
}

/* Record where the name is entered, so the publisher need not enter it. */
static void lite_name_claim_entered(const struct lite_name_claim *c, u32 node, u64 session)
{
	struct lite_name_entry *entry;

	spin_lock(&c->mem->local.lock);
	entry = lite_name_claim_entry(c);
	if (entry) {
		entry->published = node;
		entry->session = session;
	}
	spin_unlock(&c->mem->local.lock);
}

/* Enter the name at the directory. Return: 0; 1: @c->other has precedence; a negative errno. */
static int lite_name_claim_enter(struct lite_name_claim *c)
{
	struct lite_memory *mem = c->mem;
	unsigned long patience = jiffies + 2 * mem->cl->dead;
	struct lite_name_at at = {}, was;
	u64 incarnation, session;
	u32 node;
	int err;

	for (;;) {
		/* After leaving, this node would be its own directory. */
		err = lite_cluster_recheck(mem->cl, c->life);
		if (err)
			return err;
		was = at;
		node = lite_name_directory(mem, c->name);
		session = lite_cluster_session(mem->cl, node, &incarnation);
		err = lite_directory_enter(mem, node, c->name, c->id, c->uid, &at);
		if (!err && lite_name_is_at(&at, c->self, c->id)) {
			lite_name_claim_entered(c, node, session);
			return 0;
		}
		if (lite_name_is_down(err))
			/* Once this node notices that, it finds another directory. */
			goto wait;
		if (err)
			return err;
		/* This node's is stale, as its flag is up. Another may be stale: ask its home. */
		if (at.home != c->self) {
			c->other = at.home;
			err = lite_name_claim_ask(c, at.home, false);
		}
		/* A home is down or unknown here, but not at the directory: let both agree. */
		if (lite_name_is_down(err) && time_before(jiffies, patience))
			goto wait;
		if (err)
			return err == -EHOSTUNREACH ? -EHOSTDOWN : err;
		if (time_after(jiffies, c->deadline))
			return -ETIMEDOUT;
		continue;
wait:
		at = was;
		err = lite_name_claim_wait(c);
		if (err)
			return err;
	}
}

/* Get the name reserved, with this node's flag up. Return: 0 or a negative errno. */
static int lite_name_claim_win(struct lite_name_claim *c)
{
	struct lite_memory *mem = c->mem;
	int changes, err;

	for (;;) {
		changes = atomic_read_acquire(&mem->changes);
		err = lite_name_call_all(mem, LITE_CALL_NAME_PROBE, c->name, c->id,
					 sizeof(struct lite_wire_name_probe_reply),
					 lite_name_claim_answer, c) ?:
		      lite_name_claim_enter(c);
		if (err < 0)
			return err;
		/* A member that came meanwhile may not have been asked. */
		if (!err && changes == atomic_read_acquire(&mem->changes))
			return 0;
		if (err) {
			lite_name_claim_set(c, LITE_NAME_YIELDING);
			err = lite_name_claim_ask(c, c->other, true);
			if (err && !lite_name_is_down(err))
				return err;
			lite_name_claim_set(c, LITE_NAME_CLAIMING);
		}
		if (time_after(jiffies, c->deadline))
			return -ETIMEDOUT;
	}
}

/* Remove the claim's entry once the publisher is done with it. Return: must nodes be told? */
static bool lite_local_del(const struct lite_name_claim *c)
{
	struct lite_names *local = &c->mem->local;
	struct lite_name_entry *entry;
	bool tell = false;

	for (;;) {
		spin_lock(&local->lock);
		entry = lite_name_claim_entry(c);
		if (!entry || entry != local->publishing)
			break;
		spin_unlock(&local->lock);
		/* Otherwise the publisher would enter a dropped name. */
		wait_event(local->published, READ_ONCE(local->publishing) != entry);
	}
	if (entry) {
		tell = entry->published || entry->awaited;
		lite_names_remove_locked(c->mem, local, entry);
		lite_name_wake_locked(local, c->name);
	}
	spin_unlock(&local->lock);
	lite_name_entry_free(local, entry);
	return tell;
}

/*
 * Reserve a name for an LMR homed here, which is being made or renamed. @uid: its owner, charged
 * for the entries. The name finds the LMR only after lite_name_confirm(), and is blocked for other
 * LMRs until lite_name_drop(); the caller makes one of these calls. May sleep; killable; makes leaf
 * calls. Return: 0; -EEXIST: an LMR has the name; -EHOSTDOWN: a node that cannot be asked may have
 * it; -ETIMEDOUT: a node did not answer, or another claim did not end; -EDQUOT, -ENOSPC, here or at
 * the directory; -EINTR; -ENOTCONN, -ENODEV: this life of the node is over; other negative errnos.
 */
int lite_name_reserve(struct lite_memory *mem, const char *name, u64 id, u32 uid)
{
	unsigned long life = lite_cluster_life(mem->cl);
	struct lite_name_claim c = {
		.mem = mem,
		.name = name,
		.id = id,
		.uid = uid,
		.life = life,
		.self = lite_cluster_id(mem->cl),
		.deadline = jiffies + LITE_CLAIM_TIMEOUT,
		.place.kind = lite_name_kind(&mem->local, name),
		.event = COMPLETION_INITIALIZER_ONSTACK(c.event),
	};
	int err = lite_name_claim_begin(&c);
	bool begun = !err;

	if (!err)
		err = lite_name_claim_win(&c);
	/* Leave the line: the next claim has its turn. */
	spin_lock(&mem->local.lock);
	lite_line_leave(&c.place);
	lite_name_wake_locked(&mem->local, name);
	spin_unlock(&mem->local.lock);
	if (!err || !begun)
		return err;
	/* If this life of the node is over, that explains any other error. */
	if (err != -EEXIST && err != -EINTR)
		err = lite_cluster_recheck(mem->cl, life) ?: err;
	/* A call that was not answered may have entered the name, too. */
	if (lite_local_del(&c) || err != -EEXIST)
		lite_name_tell(mem, name, id);
	return err;
}

/* Let a reserved name find its LMR, before lite_name_confirm() tells waiters. Context: process. */
void lite_name_show(struct lite_memory *mem, const char *name, u64 id)
{
	const struct lite_name_claim c = { .mem = mem, .name = name, .id = id };
	struct lite_name_entry *entry;

	spin_lock(&mem->local.lock);
	entry = lite_name_claim_entry(&c);
	if (entry)
		entry->state = LITE_NAME_CONFIRMED;
	spin_unlock(&mem->local.lock);
}

/* Make a reserved name find its LMR. May sleep; makes leaf calls. */
void lite_name_confirm(struct lite_memory *mem, const char *name, u64 id)
{
	const struct lite_name_claim c = { .mem = mem, .name = name, .id = id };

	/* If the LMR was freed meanwhile, the name was dropped. */
	if (!lite_name_claim_set(&c, LITE_NAME_CONFIRMED))
		return;
	/* The publisher skipped it while it was not confirmed. */
	lite_names_publish(mem, name);
}

/* Give up a name that is reserved, or that an LMR here has. May sleep; makes leaf calls. */
void lite_name_drop(struct lite_memory *mem, const char *name, u64 id)
{
	const struct lite_name_claim c = { .mem = mem, .name = name, .id = id };

	lite_local_del(&c);
	/*
	 * Tell all: a member may have been the directory before others joined, and become it again.
	 * If DROP does not arrive, the session is over, and entries of old sessions answer no
	 * look-up.
	 */
	lite_name_tell(mem, name, id);
}

int lite_serve_name_probe(struct lite_memory *mem, struct lite_conn *conn, const void *req,
			  void *reply)
{
	struct lite_name_entry *entry;
	const struct lite_wire_name *n = req;
	struct lite_wire_name_probe_reply *r = reply;
	u32 state = LITE_WIRE_NAME_FREE;
	int err;

	/* A request of the caller's last life, which a slow thread has sent in the next one. */
	if (!conn || le32_to_cpu(n->home) != conn->from.node)
		return -ESTALE;
	/* A node that can ask this one must be asked by this node's next claim. */
	err = lite_cluster_await_session(mem->cl, conn);
	if (err)
		return err;
	spin_lock(&mem->local.lock);
	entry = lite_names_lookup_locked(&mem->local, n->name);
	if (entry && entry->state == LITE_NAME_CONFIRMED) {
		state = LITE_WIRE_NAME_TAKEN;
	} else if (entry && entry->state == LITE_NAME_CLAIMING) {
		state = LITE_WIRE_NAME_BUSY;
		entry->awaited = true;
	}
	spin_unlock(&mem->local.lock);
	r->state = cpu_to_le32(state);
	return sizeof(*r);
}

/* Look up a confirmed name of an LMR homed here. Context: process. */
bool lite_local_find(struct lite_memory *mem, const char *name, struct lite_name_at *at)
{
	struct lite_name_entry *entry;
	bool found;

	spin_lock(&mem->local.lock);
	entry = lite_names_lookup_locked(&mem->local, name);
	found = entry && entry->state == LITE_NAME_CONFIRMED;
	if (found)
		*at = entry->at;
	spin_unlock(&mem->local.lock);
	return found;
}
