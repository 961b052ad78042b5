// SPDX-License-Identifier: GPL-2.0
/*
 * Chunks of unpinned LMRs at their mappers: Documentation/interfaces/unpinned.rst, How it works.
 *
 * The mapping of an unpinned LMR has no extents, but a table of its chunks' mappings by first page,
 * which grows with use. A chunk's mapping that has ended stays there until another one takes its
 * place. An operation enters the LMR, then the chunk, and then leaves the LMR. So once the LMR's
 * gate is closed and nothing is in flight on its mapping, no operation enters a chunk any more, and
 * retiring the chunks leaves none in use (lite_mapping_drain()).
 */
#include <linux/sched.h>
#include <linux/slab.h>

#include "memory/memory.h"
#include "mapping.h"

static bool lite_chunk_usable(const struct lite_mapping *c, u64 at, bool write)
{
	return at - c->base < c->length && !(write && c->read_only) &&
	       READ_ONCE(c->state) == LITE_MAPPING_ACTIVE && lite_mapping_current(c);
}

/* A chunk that has the byte @at and can be used now, or NULL. Called under RCU. */
static struct lite_mapping *lite_chunk_find(struct lite_mapping *m, u64 at, bool write)
{
	unsigned long first = (at & ~(LITE_CHUNK_BYTES - 1)) >> PAGE_SHIFT, i = first;
	struct lite_mapping *c = xa_load(&m->chunks, first);

	/* Most chunks fill their block, so the one at its start has the byte. */
	if (likely(c && lite_chunk_usable(c, at, write)))
		return c;
	xa_for_each_range(&m->chunks, i, c, first, at >> PAGE_SHIFT) {
		if (lite_chunk_usable(c, at, write))
			return c;
	}
	return NULL;
}

/*
 * Enter the chunk of @m, an entered LMR, that has the byte @at. @write: it must be writable. Any
 * context. Return: the chunk's mapping, for lite_access_exit(); ERR_PTR(-EAGAIN): none is usable.
 */
struct lite_mapping *lite_chunk_enter(struct lite_mapping *m, u64 at, bool write)
{
	struct lite_mapping *c;

	rcu_read_lock();
	c = lite_chunk_find(m, at, write);
	if (unlikely(!c || !lite_ops_tryget(c)))
		c = ERR_PTR(-EAGAIN);
	rcu_read_unlock();
	return c;
}

/*
 * Make a mapping from the home's answer, and enter it in the table of @m. The extents need no
 * confirmation: the home is their only store, and answered in the session in which it counts this
 * node. May sleep; may call the home.
 */
static int lite_chunk_take(struct lite_mapping *m, const struct lite_map_begun *begun,
			   const struct lite_wire_map_reply *r)
{
	struct lite_mapping *chunk, *old;
	int err;

	chunk = lite_mapping_finish(m->mem, m->conn, m->home, begun, r, false);
	if (IS_ERR(chunk))
		return PTR_ERR(chunk);
	WRITE_ONCE(chunk->read_only, !(le32_to_cpu(r->rights) & LITE_RIGHT_WRITE));
	old = xa_store(&m->chunks, chunk->base >> PAGE_SHIFT, chunk, GFP_KERNEL_ACCOUNT);
	err = xa_err(old);
	if (err)
		old = chunk;
	if (old)
		lite_mapping_put(old);
	return err;
}

/* Has the home answered with a chunk of @m that has the byte @at? */
static bool lite_chunk_fits(const struct lite_mapping *m, u64 at,
			    const struct lite_wire_map_reply *r)
{
	u64 base = le64_to_cpu(r->base), length = le64_to_cpu(r->length);
	u64 block = at & ~(LITE_CHUNK_BYTES - 1);

	return le64_to_cpu(r->of) == m->id && le64_to_cpu(r->id) != m->id &&
	       PAGE_ALIGNED(base) && PAGE_ALIGNED(length) && base >= block &&
	       at - base < length && length <= LITE_CHUNK_BYTES - (base - block) &&
	       base + length <= m->length;
}

static int lite_chunk_ask(struct lite_mapping *m, u64 at, bool write)
{
	struct lite_wire_chunk req = {
		.id = cpu_to_le64(m->id),
		.offset = cpu_to_le64(at),
		.write = cpu_to_le32(write),
	};
	struct lite_wire_map_reply *reply = kmalloc(LITE_PAYLOAD_MAX, GFP_KERNEL);
	struct lite_call_desc d = {
		LITE_REQUEST(LITE_CALL_LMR_CHUNK, req),
		.reply = reply,
		.reply_max = LITE_PAYLOAD_MAX,
		.killable = true,
		.by_worker = true, /* the handler takes mmap_lock of the owner's process */
		.late = lite_map_late,
		.late_ctx = m->mem,
	};
	struct lite_map_begun begun;
	int err;

	if (!reply)
		return -ENOMEM;
	begun = lite_map_begin(m->mem);
	/* In the session in which the home counts this node as a mapper of the LMR. */
	err = lite_home_call(m->mem, m->conn, &d);
	if (m->conn)
		err = lite_home_error(m->mem, m->home, err);
	if (!err && !lite_chunk_fits(m, at, reply)) {
		/* The home counts a MAP of an unknown chunk: only ending the session undoes it. */
		err = -EPROTO;
		if (m->conn)
			lite_conn_kill(m->conn, err);
	}
	if (!err)
		err = lite_chunk_take(m, &begun, reply);
	kfree(reply);
	return err;
}

/*
 * Map the chunk of an unpinned LMR that has the byte @at, which is in bounds. @m: the LMR's
 * mapping, with a reference. @write: it must be writable. @stale: mapping that was found unusable;
 * only compared. @pause: jiffies to wait if the home is busy. May sleep; killable; makes calls;
 * nothing is entered. Return: 0: try again to enter it; -ENOENT: the LMR was freed or is being
 * changed, or the home does not count this node as a mapper; -EFAULT: no such memory; -EOPNOTSUPP:
 * it cannot be unpinned; -EDQUOT, -ENOSPC, -ENOMEM: here or at the home; -EINTR, -ETIMEDOUT,
 * -EHOSTDOWN.
 */
int lite_chunk_reach(struct lite_mapping *m, u64 at, bool write, const struct lite_mapping *stale,
		     unsigned long pause)
{
	struct lite_mapping *c;
	int err;

	rcu_read_lock();
	c = lite_chunk_find(m, at, write);
	/* Done, unless this is still @stale: its session cannot be used, so map it anew. */
	if (c && (c != stale || !refcount_inc_not_zero(&c->ref))) {
		rcu_read_unlock();
		return 0;
	}
	rcu_read_unlock();
	if (c) {
		lite_mapping_retire(c);
		lite_mapping_put(c);
	}
	err = lite_chunk_ask(m, at, write);
	/* A REVOKE came before the answer, or the process is changing its memory. */
	if (err == -EAGAIN || err == -EBUSY) {
		schedule_timeout_killable(pause);
		return fatal_signal_pending(current) ? -EINTR : 0;
	}
	/* The next attempt notices that the session is over. */
	return err == -EHOSTDOWN && !lite_mapping_current(m) ? 0 : err;
}

/*
 * Retire the chunks of @m, or revoke them if it is revoked, and drain them. @m has left ACTIVE, and
 * nothing is in flight on it. May sleep; makes no calls.
 */
void lite_chunks_retire(struct lite_mapping *m)
{
	struct lite_memory *mem = m->mem;
	unsigned long i = 0, key;
	struct lite_mapping *c;

	if (!m->chunked)
		return;
	for (;; i++) {
		rcu_read_lock();
		c = xa_find(&m->chunks, &i, ULONG_MAX, XA_PRESENT);
		key = c ? lite_mapping_key(c->home, c->id) : 0;
		rcu_read_unlock();
		if (!c)
			return;
		/* A chunk that has left mem->mappings is drained. */
		spin_lock(&mem->map_lock);
		c = xa_load(&mem->mappings, key);
		if (c)
			lite_mapping_end(c, m->state);
		spin_unlock(&mem->map_lock);
		if (c)
			lite_mapping_watch(c);
		cond_resched();
	}
}
