// SPDX-License-Identifier: GPL-2.0
/*
 * Memory operations that are carried out here: how one goes on, and how it gets
 * at memory.
 *
 * An operation goes step by step. Each step enters our own mappings (peer_mapping.c),
 * does a little, and leaves; between steps it looks whether it should go on. So
 * a REVOKE or RECALL here waits for a step at most; one at the caller for
 * LITE_MEMOP_EXEC_TIME and a step.
 */
#include <linux/sched/signal.h>

#include "memory/handle/ctx.h"
#include "memory/memory.h"

/**
 * lite_memop_exec_begin - begin to carry something out
 * @r: @mem, @conn and @brief are set
 *
 * Context: may sleep, for a moment.
 * Return: 0 or -EHOSTDOWN: the caller's session is over; lite_memop_exec_end() is to
 * follow in any case.
 */
int lite_memop_exec_begin(struct lite_memop_exec *r)
{
	spin_lock(&r->mem->work_lock);
	list_add(&r->list, &r->mem->work);
	spin_unlock(&r->mem->work_lock);
	/* Who is not seen by those who wait for it sees that the session is over. */
	return r->conn ? lite_cluster_await_session(r->mem->cl, r->conn) : 0;
}

/**
 * lite_memop_exec_end - it has ended
 * @r: begun
 *
 * Context: process.
 */
void lite_memop_exec_end(struct lite_memop_exec *r)
{
	spin_lock(&r->mem->work_lock);
	list_del(&r->list);
	spin_unlock(&r->mem->work_lock);
	wake_up_all(&r->mem->work_wait);
	if (!r->page)
		return;
	if (lite_dma_unmap_page(r->mem->fab, r->dma, PAGE_SIZE << r->order,
				r->since))
		__free_pages(r->page, r->order);
}

static bool lite_memop_execs_brief_ended(struct lite_memory *mem,
				  struct lite_conn *conn)
{
	struct lite_memop_exec *r;
	bool ended = true;

	spin_lock(&mem->work_lock);
	list_for_each_entry(r, &mem->work, list) {
		if (r->brief && r->conn == conn)
			ended = false;
	}
	spin_unlock(&mem->work_lock);
	return ended;
}

/**
 * lite_memop_execs_conn_down - a session is over: wait for what is done at once in it
 * @mem: node's
 * @conn: nobody's session any more
 *
 * So what its peer does in the next session comes after that, as it comes after
 * what devices did in this one: both are over before the next one begins here.
 *
 * Context: may sleep, for a moment.
 */
void lite_memop_execs_conn_down(struct lite_memory *mem, struct lite_conn *conn)
{
	wait_event(mem->work_wait, lite_memop_execs_brief_ended(mem, conn));
}

static bool lite_memop_execs_settled(struct lite_memory *mem, struct lite_conn *conn)
{
	struct lite_memop_exec *r;
	bool settled = true;

	spin_lock(&mem->work_lock);
	list_for_each_entry(r, &mem->work, list) {
		if (r->conn && r->conn != conn &&
		    r->conn->from.node == conn->from.node)
			settled = false;
	}
	spin_unlock(&mem->work_lock);
	return settled;
}

/**
 * lite_memop_execs_settle - wait for what is done in earlier sessions of a peer
 * @mem: node's
 * @conn: in which it asks
 *
 * When that is its session, what has not begun in others will not begin any
 * more. What has begun ends after a step, or with its time.
 *
 * Context: may sleep.
 * Return: 0; -EHOSTDOWN: it is not, and nothing was waited for.
 */
int lite_memop_execs_settle(struct lite_memory *mem, struct lite_conn *conn)
{
	int err = lite_cluster_await_session(mem->cl, conn);

	if (!err)
		wait_event(mem->work_wait, lite_memop_execs_settled(mem, conn));
	return err;
}

static int lite_memop_exec_wanted(const struct lite_memop_exec *r)
{
	if (r->conn)
		return lite_conn_is_dead(r->conn) ? -EHOSTDOWN : 0;
	return fatal_signal_pending(current) ? -EINTR : 0;
}

/**
 * lite_memop_exec - carry an operation out, for a while
 * @r: all set but what it keeps itself
 * @step: does some of it
 *
 * Context: may sleep; entered nowhere.
 * Return: 0 or a negative errno of the step at @r->done; -EHOSTDOWN: the
 * caller's session is over; -EINTR: so is the caller, who is here. After 0
 * without a status something is done.
 */
int lite_memop_exec(struct lite_memop_exec *r, lite_memop_exec_step step)
{
	unsigned long end = jiffies + LITE_MEMOP_EXEC_TIME;
	u64 length = le64_to_cpu(r->op->length);
	ssize_t ret = lite_memop_exec_begin(r);

	while (!ret && !r->status && r->done < length) {
		ret = step(r);
		if (ret < 0)
			break;
		r->done += ret;
		ret = 0;
		/* The rest is for another call. */
		if (r->done && time_after(jiffies, end))
			break;
		/* Nobody may be waiting for it any more. */
		if (r->done < length && !r->status)
			ret = lite_memop_exec_wanted(r);
		cond_resched();
	}
	lite_memop_exec_end(r);
	return ret;
}

/* ---- memory -------------------------------------------------------------- */

/**
 * lite_memop_cursor_enter - enter for the next bytes of a range
 * @r: operation
 * @p: set
 * @range: of it
 * @n: bytes, shortened to what is in one extent
 *
 * They are the first of what is left or, of what is done backward, the last.
 *
 * Context: any process.
 * Return: 0, then lite_access_exit(p->m) is to follow; as lite_peer_mapping_enter().
 */
int lite_memop_cursor_enter(struct lite_memop_exec *r, struct lite_memop_cursor *p,
		    const struct lite_wire_range *range, u64 *n)
{
	u64 left = le64_to_cpu(r->op->length) - r->done;
	bool backward = lite_memop_exec_is_backward(r);
	u64 offset = le64_to_cpu(range->offset);
	u64 end;

	if (!backward && check_add_overflow(offset, r->done, &offset))
		return -ERANGE;
	p->m = lite_peer_mapping_enter(r->mem, range, offset, left);
	if (IS_ERR(p->m))
		return PTR_ERR(p->m);
	if (backward) {
		end = offset + left;
		p->e = lite_extent_at(p->m, end - 1);
		*n = min(*n, end - max(offset, p->e->start));
	} else {
		end = offset + left;
		p->e = lite_extent_at(p->m, offset);
		end = min(end, p->e->start + p->e->length);
		*n = min(*n, end - offset);
	}
	p->offset = offset;
	return 0;
}

/**
 * lite_memop_cursor_place - say where it begins, now that its length is known
 * @r: operation
 * @p: entered
 * @n: bytes
 */
void lite_memop_cursor_place(struct lite_memop_exec *r, struct lite_memop_cursor *p, u64 n)
{
	if (lite_memop_exec_is_backward(r))
		p->offset += le64_to_cpu(r->op->length) - r->done - n;
}

/**
 * lite_memop_cursor_address - the kernel's address of local memory
 * @p: placed
 * @n: bytes, shortened to what is contiguous there
 *
 * Return: address; NULL: the LMR's home has told what is not so.
 */
void *lite_memop_cursor_address(const struct lite_memop_cursor *p, u64 *n)
{
	size_t size = *n;
	void *mem = lite_mapping_address(p->m, p->e, p->offset - p->e->start,
					 &size);

	*n = size;
	return mem;
}

/**
 * lite_memop_cursor_local - enter for the next bytes of the first range, in local memory
 * @r: operation
 * @p: set
 * @n: set to bytes
 *
 * Context: any process.
 * Return: address, then lite_access_exit(p->m) is to follow; ERR_PTR: -EXDEV:
 * they are elsewhere; as lite_peer_mapping_enter().
 */
void *lite_memop_cursor_local(struct lite_memop_exec *r, struct lite_memop_cursor *p, u64 *n)
{
	void *mem;
	int err;

	*n = LITE_MEMOP_EXEC_BYTES;
	err = lite_memop_cursor_enter(r, p, &r->op->range, n);
	if (err)
		return ERR_PTR(err);
	if (!lite_memop_cursor_is_local(p)) {
		mem = ERR_PTR(-EXDEV);
	} else {
		lite_memop_cursor_place(r, p, *n);
		mem = lite_memop_cursor_address(p, n) ?: ERR_PTR(-EIO);
	}
	if (IS_ERR(mem))
		lite_access_exit(p->m);
	return mem;
}
