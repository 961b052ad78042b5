// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings: what this node, as a mapper, knows of an LMR, shared by all
 * handles. map.c makes them.
 *
 * A mapping stays in mem->mappings until nothing is in flight on it, whatever
 * its state, so that a REVOKE finds it and waits for it. Releasing the last
 * reference gives back the MAPs that the home counts; after a REVOKE, or the
 * end of the session, it counts none.
 */
#include <linux/slab.h>

#include "memory/home/home.h"
#include "memory/memory.h"
#include "memory/store/store.h"
#include "trace.h"
#include "view.h"

static void lite_mapping_drained(struct percpu_ref *ref)
{
	complete_all(&container_of(ref, struct lite_mapping, ops)->drained);
}

static void lite_mapping_free_rcu(struct work_struct *work)
{
	struct lite_mapping *m = container_of(to_rcu_work(work),
					      struct lite_mapping, rcu);
	struct lite_memory *mem = m->mem;
	u32 i;

	percpu_ref_exit(&m->ops);
	for (i = 0; m->share && i < m->n_shares; i++) {
		if (m->share[i].peer)
			lite_peer_put(m->share[i].peer);
	}
	if (m->conn)
		lite_conn_put(m->conn);
	kvfree(m->local);
	kvfree(m->extents);
	kfree(m->share);
	kfree(m);
	lite_stat_dec(mem->stats, LITE_STAT_MAPPINGS);
}

/*
 * Leave ACTIVE, if that was not done before. The caller, which needs no
 * reference, calls lite_mapping_watch() next, without the lock.
 */
void lite_mapping_end(struct lite_mapping *m, enum lite_mapping_state state)
{
	lockdep_assert_held(&m->mem->map_lock);
	atomic_inc(&m->watchers);
	if (m->state != LITE_MAPPING_ACTIVE)
		return;
	WRITE_ONCE(m->state, state);
	if (state == LITE_MAPPING_REVOKED)
		trace_lite_revoked(m->home, m->id, m->length);
	else
		trace_lite_retired(m->home, m->id, m->length);
	percpu_ref_kill(&m->ops);
	if (m->lent)
		lite_peer_mapping_kick(m);
}

static unsigned long lite_mapping_left_key(const struct rb_node *node)
{
	const struct lite_mapping *m =
		rb_entry(node, struct lite_mapping, left);

	return lite_mapping_key(m->home, m->id);
}

static bool lite_mapping_left_less(struct rb_node *a, const struct rb_node *b)
{
	return lite_mapping_left_key(a) < lite_mapping_left_key(b);
}

static int lite_mapping_left_cmp(const void *key, const struct rb_node *node)
{
	unsigned long wanted = *(const unsigned long *)key;
	unsigned long has = lite_mapping_left_key(node);

	return wanted < has ? -1 : wanted > has;
}

/*
 * Drained, it need not be found any more. But its LMR may be mapped again
 * before the last handle lets go of this mapping and the home learns that it is
 * unclean: mem->unclean keeps it for the answer to a REVOKE until then.
 */
static void lite_mapping_unlist(struct lite_mapping *m)
{
	unsigned long key = lite_mapping_key(m->home, m->id);

	lockdep_assert_held(&m->mem->map_lock);
	if (xa_load(&m->mem->mappings, key) == m)
		xa_erase(&m->mem->mappings, key);
	if (READ_ONCE(m->unclean) && RB_EMPTY_NODE(&m->left))
		rb_add(&m->left, &m->mem->unclean, lite_mapping_left_less);
}

/*
 * May a failed operation of a drained mapping of an LMR still be executed,
 * without its home knowing?
 */
bool lite_mapping_was_unclean(const struct lite_memory *mem, u32 home, u64 id)
{
	unsigned long key = lite_mapping_key(home, id);

	lockdep_assert_held(&mem->map_lock);
	return rb_find(&key, &mem->unclean, lite_mapping_left_cmp);
}

/*
 * Drain a mapping after lite_mapping_end(), which has raised @watchers: that
 * keeps it in place of a reference. Returns true if it is unclean. May sleep.
 */
bool lite_mapping_watch(struct lite_mapping *m)
{
	bool unclean;

	lite_mapping_drain(m);
	spin_lock(&m->mem->map_lock);
	lite_mapping_unlist(m);
	spin_unlock(&m->mem->map_lock);
	unclean = READ_ONCE(m->unclean);
	if (atomic_dec_and_test(&m->watchers))
		wake_up_var(&m->watchers);
	return unclean;
}

/* Retire a mapping, with a reference, and drain it. May sleep. */
void lite_mapping_retire(struct lite_mapping *m)
{
	spin_lock(&m->mem->map_lock);
	lite_mapping_end(m, LITE_MAPPING_RETIRED);
	spin_unlock(&m->mem->map_lock);
	lite_mapping_watch(m);
}

/*
 * Retire and drain all mappings of LMRs of a home; 0: of all homes. Handles map
 * their LMRs again when they are used. May sleep.
 */
void lite_mapping_retire_home(struct lite_memory *mem, u32 home)
{
	unsigned long last = home ? lite_mapping_key(home, U64_MAX) : ULONG_MAX;
	struct lite_mapping *m;
	unsigned long key;

	do {
		key = lite_mapping_key(home, 0);
		spin_lock(&mem->map_lock);
		m = xa_find(&mem->mappings, &key, last, XA_PRESENT);
		if (m)
			lite_mapping_end(m, LITE_MAPPING_RETIRED);
		spin_unlock(&mem->map_lock);
		/* Takes it out of the table: the next one found is another. */
		if (m)
			lite_mapping_watch(m);
		cond_resched();
	} while (m);
}

/*
 * Retire and drain mappings with a dead session to the home. Operations would
 * notice it themselves; accesses through page tables do not, and the home may
 * free the LMR without asking this node. May sleep.
 */
void lite_mappings_retire_work(struct work_struct *work)
{
	struct lite_memory *mem = container_of(work, struct lite_memory,
					       retire_work);
	struct lite_mapping *m;
	unsigned long key = 0;
	bool dead;

	do {
		spin_lock(&mem->map_lock);
		m = xa_find_after(&mem->mappings, &key, ULONG_MAX, XA_PRESENT);
		dead = m && !lite_mapping_current(m);
		if (dead)
			lite_mapping_end(m, LITE_MAPPING_RETIRED);
		spin_unlock(&mem->map_lock);
		if (dead)
			lite_mapping_watch(m);
		cond_resched();
	} while (m);
}

/**
 * lite_mapping_give_back - give MAPs back to a home
 * @mem: node's
 * @conn: session with the home in which they were made; NULL: this node
 * @id: of the LMR
 * @count: how many
 * @flags: enum lite_wire_unmap_flags
 *
 * A home that may go on counting them loses the session. Not so if the call
 * only timed out in line for a slot: users' slow calls can fill the line.
 *
 * Context: may sleep, for as long as it takes to get a slot; makes a call.
 * Return: true if the home has been told; false: the session is over.
 */
bool lite_mapping_give_back(struct lite_memory *mem, struct lite_conn *conn,
			    u64 id, u32 count, u32 flags)
{
	struct lite_wire_unmap req = {
		.id = cpu_to_le64(id),
		.count = cpu_to_le32(count),
		.flags = cpu_to_le32(flags),
	};
	struct lite_call_desc d = {
		.call = LITE_CALL_LMR_UNMAP,
		.req = &req,
		.len = sizeof(req),
		.timeout = 30 * HZ,
	};
	int err;

	/* A call to this node itself cannot fail. */
	if (!conn) {
		lite_home_unmap_own(mem, id, count, flags);
		return true;
	}
	do {
		err = lite_kcall(conn, &d);
	} while (err == -ETIMEDOUT && !d.sent && !lite_conn_is_dead(conn));
	if (err)
		lite_conn_kill(conn, err);
	return !err;
}

static void lite_mapping_release(struct kref *ref)
{
	struct lite_mapping *m = container_of(ref, struct lite_mapping, ref);
	struct lite_memory *mem = m->mem;
	struct lite_made *made;
	bool told = true;

	lite_mapping_retire(m);
	spin_lock(&mem->map_lock);
	made = lite_made_detach(m);
	spin_unlock(&mem->map_lock);
	wait_var_event(&m->watchers, !atomic_read(&m->watchers));
	/* A revoked LMR is gone; there is nothing to give back. */
	if (m->state != LITE_MAPPING_REVOKED)
		told = lite_mapping_give_back(
			mem, m->conn, m->id, m->grants,
			(m->unclean ? LITE_UNMAP_UNCLEAN : 0) |
				(made ? LITE_UNMAP_LAST : 0));
	if (made)
		lite_made_over(mem, made, told);
	spin_lock(&mem->map_lock);
	if (!RB_EMPTY_NODE(&m->left))
		rb_erase(&m->left, &mem->unclean);
	spin_unlock(&mem->map_lock);
	trace_lite_unmap(m->home, m->id, m->length);
	INIT_RCU_WORK(&m->rcu, lite_mapping_free_rcu);
	queue_rcu_work(mem->wq, &m->rcu);
}

/* Drop a reference. May sleep; the last one drains it and calls the home. */
void lite_mapping_put(struct lite_mapping *m)
{
	kref_put(&m->ref, lite_mapping_release);
}

/**
 * lite_mapping_address - kernel address of local memory of an LMR
 * @m: its mapping, entered
 * @e: a local extent of it
 * @in: bytes from the start of @e, less than its length
 * @n: bytes wanted; shortened to what is contiguous
 *
 * Context: any.
 * Return: the address, or NULL: the home has sent a wrong address.
 */
void *lite_mapping_address(const struct lite_mapping *m,
			   const struct lite_extent *e, u64 in, size_t *n)
{
	void *base = m->local ? m->local[e - m->extents] : NULL;

	if (unlikely(!base))
		return lite_store_address(m->mem, e->addr + in, n);
	*n = min_t(u64, *n, e->length - in);
	return base + in;
}

/**
 * lite_mapping_new - make a mapping from the reply to a MAP, without extents
 * @mem: node's
 * @home: home of the LMR
 * @conn: session of the MAP; NULL: this node
 * @r: the reply
 *
 * Context: may sleep.
 * Return: the mapping, not in the table, with one reference, counting one MAP;
 * or NULL.
 */
struct lite_mapping *lite_mapping_new(struct lite_memory *mem, u32 home,
				      struct lite_conn *conn,
				      const struct lite_wire_map_reply *r)
{
	struct lite_mapping *m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);

	if (!m)
		return NULL;
	/* Not per CPU: mappings are many, and most are used by few CPUs. */
	if (percpu_ref_init(&m->ops, lite_mapping_drained,
			    PERCPU_REF_INIT_ATOMIC, GFP_KERNEL)) {
		kfree(m);
		return NULL;
	}
	m->mem = mem;
	kref_init(&m->ref);
	init_completion(&m->drained);
	RB_CLEAR_NODE(&m->left);
	mutex_init(&m->zap);
	INIT_LIST_HEAD(&m->views);
	m->home = home;
	m->home_incarnation = le64_to_cpu(r->share[0].incarnation);
	m->id = le64_to_cpu(r->id);
	m->length = le64_to_cpu(r->length);
	m->anonymous = r->anonymous;
	m->generation = le64_to_cpu(r->generation);
	m->grants = 1;
	m->careful = jiffies - MAX_JIFFY_OFFSET;
	m->pack_after = jiffies;
	if (conn)
		lite_conn_get(conn);
	m->conn = conn;
	lite_stat_inc(mem->stats, LITE_STAT_MAPPINGS);
	return m;
}
