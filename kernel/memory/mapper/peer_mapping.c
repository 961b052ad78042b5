// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings for memory operations that peers ask for (Documentation/memory-operations.rst, Access to
 * memory). A short list holds references to mappings for a while, for the next operation.
 * Operations enter through mem->mappings without that reference, so a mapping can be dropped from
 * the list at any time. If there is none, the caller has the LMR mapped
 * (lite_peer_mapping_prepare(), which makes calls) and tries again.
 */
#include "memory/memory.h"
#include "mapping.h"

#define LITE_PEER_MAPPING_MAX 64
#define LITE_PEER_MAPPING_IDLE (5 * HZ)
#define LITE_PEER_MAPPING_IDLE_ANONYMOUS HZ
/* Idle mappings are looked for at this interval. */
#define LITE_PEER_MAPPING_PERIOD HZ
/* Sessions may change while an LMR is mapped. */
#define LITE_PREPARE_TRIES 4

static bool lite_peer_mapping_is_idle(const struct lite_mapping *m)
{
	unsigned long idle = m->anonymous ? LITE_PEER_MAPPING_IDLE_ANONYMOUS :
					    LITE_PEER_MAPPING_IDLE;

	return m->state != LITE_MAPPING_ACTIVE ||
	       time_after(jiffies, READ_ONCE(m->peer_used) + idle);
}

/* Take the least recently used mapping, of idle and dead ones or of @all, off the list; or NULL. */
static struct lite_mapping *lite_peer_mapping_take(struct lite_memory *mem, bool all)
{
	struct lite_mapping *m, *oldest = NULL;

	lockdep_assert_held(&mem->map_lock);
	list_for_each_entry(m, &mem->peer_mappings.list, peer_list) {
		if (!all && !lite_peer_mapping_is_idle(m))
			continue;
		if (!oldest || time_before(READ_ONCE(m->peer_used), READ_ONCE(oldest->peer_used)))
			oldest = m;
	}
	if (!oldest)
		return NULL;
	list_del(&oldest->peer_list);
	oldest->for_peers = false;
	mem->peer_mappings.n--;
	return oldest;
}

static void lite_peer_mapping_reap(struct lite_memory *mem, bool all)
{
	struct lite_mapping *m;

	do {
		spin_lock(&mem->map_lock);
		m = lite_peer_mapping_take(mem, all);
		spin_unlock(&mem->map_lock);
		if (m)
			lite_mapping_put(m);
		cond_resched();
	} while (m);
}

static void lite_peer_mapping_work(struct work_struct *work)
{
	struct lite_memory *mem = container_of(work, struct lite_memory, peer_mappings.work.work);

	lite_peer_mapping_reap(mem, false);
	spin_lock(&mem->map_lock);
	if (mem->peer_mappings.n && !mem->peer_mappings.closed)
		queue_delayed_work(mem->wq, &mem->peer_mappings.work, LITE_PEER_MAPPING_PERIOD);
	spin_unlock(&mem->map_lock);
}

void lite_peer_mapping_init(struct lite_memory *mem)
{
	INIT_LIST_HEAD(&mem->peer_mappings.list);
	INIT_DELAYED_WORK(&mem->peer_mappings.work, lite_peer_mapping_work);
}

/* A mapping on the list has left ACTIVE: have it dropped. */
void lite_peer_mapping_kick(struct lite_mapping *m)
{
	struct lite_memory *mem = m->mem;

	lockdep_assert_held(&mem->map_lock);
	if (!mem->peer_mappings.closed)
		mod_delayed_work(mem->wq, &mem->peer_mappings.work, 0);
}

/* Drop all kept mappings. May sleep; calls homes. */
void lite_peer_mapping_drop(struct lite_memory *mem)
{
	lite_peer_mapping_reap(mem, true);
}

/* Drop all kept mappings, and keep none from now on. May sleep; calls homes. */
void lite_peer_mapping_close(struct lite_memory *mem)
{
	spin_lock(&mem->map_lock);
	mem->peer_mappings.closed = true;
	spin_unlock(&mem->map_lock);
	cancel_delayed_work_sync(&mem->peer_mappings.work);
	lite_peer_mapping_drop(mem);
}

/* Put a mapping on the list, with a reference of its own, or refresh it if it is there. */
static void lite_peer_mapping_keep(struct lite_mapping *m)
{
	struct lite_memory *mem = m->mem;
	struct lite_mapping *out = NULL;

	spin_lock(&mem->map_lock);
	WRITE_ONCE(m->peer_used, jiffies);
	if (!m->for_peers && !mem->peer_mappings.closed && m->state == LITE_MAPPING_ACTIVE) {
		if (mem->peer_mappings.n == LITE_PEER_MAPPING_MAX)
			out = lite_peer_mapping_take(mem, true);
		refcount_inc(&m->ref);
		list_add_tail(&m->peer_list, &mem->peer_mappings.list);
		m->for_peers = true;
		mem->peer_mappings.n++;
		queue_delayed_work(mem->wq, &mem->peer_mappings.work, LITE_PEER_MAPPING_PERIOD);
	}
	spin_unlock(&mem->map_lock);
	if (out)
		lite_mapping_put(out);
}

/*
 * Enter an LMR without a handle. @range: only its home, id and incarnation are used. Context: any.
 * Return: the mapping, for lite_ops_put(); ERR_PTR: -ENOLINK: call lite_peer_mapping_prepare()
 * first; -ESTALE: the home has a new incarnation; -EOPNOTSUPP: only chunks of an unpinned LMR can
 * be entered; -EINVAL.
 */
struct lite_mapping *lite_mapping_enter(struct lite_memory *mem,
					const struct lite_wire_range *range)
{
	u32 home = le32_to_cpu(range->home);
	u64 id = le64_to_cpu(range->id);
	struct lite_mapping *m;
	int err;

	/* Mappings are freed a grace period after leaving the table. */
	rcu_read_lock();
	m = xa_load(&mem->mappings, lite_mapping_key(home, id));
	if (m && !lite_ops_tryget(m))
		m = NULL;
	rcu_read_unlock();
	if (!m)
		return ERR_PTR(-ENOLINK);
	if (m->home != home || m->id != id)
		err = -EINVAL;
	else if (m->home_incarnation != le64_to_cpu(range->incarnation))
		err = -ESTALE;
	else if (m->chunked)
		err = -EOPNOTSUPP;
	else if (!lite_mapping_current(m))
		err = -ENOLINK;
	else
		return m;
	lite_ops_put(m);
	return ERR_PTR(err);
}

/*
 * Enter an LMR for a peer's operation on @length bytes of it, but only in the generation in which
 * the peer checked its right: a late request (its caller was killed, say) must not run after a
 * change that took the right away. Context: any. Return: as lite_mapping_enter(); -ERANGE.
 */
struct lite_mapping *lite_peer_mapping_enter(struct lite_memory *mem,
					     const struct lite_wire_range *range, u64 offset,
					     u64 length)
{
	struct lite_mapping *m = lite_mapping_enter(mem, range);
	int err;

	if (IS_ERR(m))
		return m;
	err = m->generation != le64_to_cpu(range->generation) ?
		      -ENOLINK :
		      lite_mapping_bounds(m, offset, length);
	if (err) {
		lite_ops_put(m);
		return ERR_PTR(err);
	}
	WRITE_ONCE(m->peer_used, jiffies);
	return m;
}

/* A usable mapping, with a reference, or NULL. */
static struct lite_mapping *lite_peer_mapping_find(struct lite_memory *mem, u32 home, u64 id)
{
	struct lite_mapping *m;

	spin_lock(&mem->map_lock);
	m = xa_load(&mem->mappings, lite_mapping_key(home, id));
	if (m && (m->state != LITE_MAPPING_ACTIVE || !lite_mapping_current(m) ||
		  !refcount_inc_not_zero(&m->ref)))
		m = NULL;
	spin_unlock(&mem->map_lock);
	return m;
}

/* Wait for suspect nodes. Return: is the mapping bound to the sessions that then exist? */
static bool lite_peer_mapping_settled(struct lite_mapping *m)
{
	bool settled = true;
	u64 session;
	u32 i;

	for (i = 0; i < m->n_shares; i++) {
		struct lite_map_share *s = &m->share[i];

		if (!s->peer || s->lost)
			continue;
		if (lite_peer_is_suspect(s->peer))
			lite_peer_await(s->peer);
		session = lite_peer_session(s->peer);
		/* While a node is out of reach, mapping again does not help. */
		settled &= !session || session == s->session;
	}
	return settled && lite_mapping_current(m);
}

/*
 * Map an LMR in the present sessions, after waiting for its suspect nodes. May sleep; killable;
 * makes calls. Return: 0; -ENOENT: it was freed; -EBUSY: it is being changed, which is not waited
 * for; -ESTALE: the home has a new incarnation; -EHOSTDOWN, -EHOSTUNREACH, -ENOMEM, -EINTR and
 * others.
 */
int lite_peer_mapping_prepare(struct lite_memory *mem, const struct lite_wire_range *range)
{
	u32 home = le32_to_cpu(range->home);
	u64 id = le64_to_cpu(range->id);
	struct lite_mapping *m;
	int tries, err;
	bool made;

	for (tries = 0; tries < LITE_PREPARE_TRIES; tries++) {
		m = lite_peer_mapping_find(mem, home, id);
		made = !m;
		if (made)
			m = lite_mapping_by_id(mem, home, id, NULL, NULL, 0, NULL);
		if (IS_ERR(m))
			return PTR_ERR(m);
		err = -EAGAIN;
		if (m->home_incarnation != le64_to_cpu(range->incarnation))
			err = -ESTALE;
		else if (lite_peer_mapping_settled(m))
			err = 0;
		else if (fatal_signal_pending(current))
			err = -EINTR;
		else
			lite_mapping_retire(m);
		if (!err && (made || !m->anonymous))
			lite_peer_mapping_keep(m);
		lite_mapping_put(m);
		if (err != -EAGAIN)
			return err;
	}
	return -EHOSTDOWN;
}
