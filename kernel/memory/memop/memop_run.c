// SPDX-License-Identifier: GPL-2.0
/*
 * Carrying out memory operations: their progress, and their access to memory.
 *
 * An operation goes step by step. Each step enters our own mappings
 * (peer_mapping.c), does a little, and leaves; between steps it checks whether
 * to go on. So a REVOKE or RECALL here waits for one step at most; one at the
 * caller for LITE_MEMOP_EXEC_TIME and a step.
 */
#include <linux/sched/signal.h>

#include "memory/handle/ctx.h"
#include "memory/memory.h"

/**
 * lite_memop_exec_begin - begin to carry out an operation
 * @r: @mem, @conn and @brief are set
 *
 * Context: may sleep briefly.
 * Return: 0 or -EHOSTDOWN: the caller's session is over; call
 * lite_memop_exec_end() in either case.
 */
int lite_memop_exec_begin(struct lite_memop_exec *r)
{
	spin_lock(&r->mem->work_lock);
	list_add(&r->list, &r->mem->work);
	spin_unlock(&r->mem->work_lock);
	/*
	 * If a waiter for earlier sessions did not see us on the list, we see
	 * here that our session is over.
	 */
	return r->conn ? lite_cluster_await_session(r->mem->cl, r->conn) : 0;
}

/* End an operation that lite_memop_exec_begin() was called for. */
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

/*
 * Have the brief operations of a session ended, or else (@before) all of its
 * peer's earlier sessions?
 */
static bool lite_memop_execs_ended(struct lite_memory *mem,
				   struct lite_conn *conn, bool before)
{
	struct lite_memop_exec *r;
	bool ended = true;

	spin_lock(&mem->work_lock);
	list_for_each_entry(r, &mem->work, list) {
		if (before)
			ended &= !r->conn || r->conn == conn ||
				 r->conn->from.node != conn->from.node;
		else
			ended &= !r->brief || r->conn != conn;
	}
	spin_unlock(&mem->work_lock);
	return ended;
}

/**
 * lite_memop_execs_conn_down - wait for the brief operations of a dead session
 * @mem: the node's memory
 * @conn: not the peer's session any more
 *
 * Orders the next session of the peer behind them, as it is behind what
 * devices did in this one: both end before the next session begins here.
 *
 * Context: may sleep briefly.
 */
void lite_memop_execs_conn_down(struct lite_memory *mem, struct lite_conn *conn)
{
	wait_event(mem->work_wait, lite_memop_execs_ended(mem, conn, false));
}

/**
 * lite_memop_execs_settle - wait for operations of a peer's earlier sessions
 * @mem: the node's memory
 * @conn: session in which the peer asks
 *
 * If that is the current session, operations of earlier ones cannot begin any
 * more. Those that have begun end after a step, or when their time is up.
 *
 * Context: may sleep.
 * Return: 0; -EHOSTDOWN: it is not the current session; has not waited.
 */
int lite_memop_execs_settle(struct lite_memory *mem, struct lite_conn *conn)
{
	int err = lite_cluster_await_session(mem->cl, conn);

	if (!err)
		wait_event(mem->work_wait,
			   lite_memop_execs_ended(mem, conn, true));
	return err;
}

static int lite_memop_exec_wanted(const struct lite_memop_exec *r)
{
	if (r->conn)
		return lite_conn_is_dead(r->conn) ? -EHOSTDOWN : 0;
	return fatal_signal_pending(current) ? -EINTR : 0;
}

/**
 * lite_memop_exec - carry out an operation for a while
 * @r: all set but its private fields
 * @step: does part of it
 *
 * Context: may sleep; entered nowhere.
 * Return: 0 or a negative errno of the step at @r->done; -EHOSTDOWN: the
 * caller's session is over; -EINTR: the local caller is being killed. After 0
 * without a status there is progress.
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
		/* The caller calls again for the rest. */
		if (r->done && time_after(jiffies, end))
			break;
		/* The caller may have gone. */
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
 * @range: one of its ranges
 * @n: bytes, reduced to what is in one extent
 *
 * These are the first of the remaining bytes or, if it goes backward, the
 * last.
 *
 * Context: any process.
 * Return: 0, then call lite_access_exit(p->m); -ERANGE; or as
 * lite_peer_mapping_enter().
 */
int lite_memop_cursor_enter(struct lite_memop_exec *r,
			    struct lite_memop_cursor *p,
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

/* Set the offset of an entered part, once its length is known. */
void lite_memop_cursor_place(struct lite_memop_exec *r,
			     struct lite_memop_cursor *p, u64 n)
{
	if (lite_memop_exec_is_backward(r))
		p->offset += le64_to_cpu(r->op->length) - r->done - n;
}

/**
 * lite_memop_cursor_address - the kernel address of local memory
 * @p: placed
 * @n: bytes, reduced to what is contiguous there
 *
 * Return: address; NULL: the LMR's home has sent wrong extents.
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
 * lite_memop_cursor_local - enter for the next bytes of the first range, if
 * local
 * @r: operation
 * @p: set
 * @n: set to the number of bytes
 *
 * Context: any process.
 * Return: address, then call lite_access_exit(p->m); ERR_PTR: -EXDEV: they are
 * at another node; -EIO; or as lite_memop_cursor_enter().
 */
void *lite_memop_cursor_local(struct lite_memop_exec *r,
			      struct lite_memop_cursor *p, u64 *n)
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
