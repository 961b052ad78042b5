// SPDX-License-Identifier: GPL-2.0
/*
 * Memory operations, carried out at the node that holds the bytes (the source for COPY), for a peer
 * or this node itself, which has checked rights and bounds: Documentation/memory-operations.rst.
 *
 * An operation goes step by step: each enters this node's own mappings (peer_mapping.c), does a
 * little, and leaves, so a REVOKE or RECALL waits for one step at most. After LITE_MEMOP_EXEC_TIME
 * the caller has to call again for the rest. A COPY to another node writes straight from the memory
 * of the LMR: no page is pinned.
 */
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#include "core/memop_rules.h"
#include "memory/io/devop.h"
#include "memory/memory.h"
#include "compat.h"
#include "memop.h"

/* Time per call: for the rest the caller calls again, after checking its rights again. */
#define LITE_MEMOP_EXEC_TIME max(HZ / 100, 1)
/* Bytes of local memory, bytes sent, and bytes fetched for a comparison, per step. */
#define LITE_MEMOP_EXEC_BYTES (64UL << 10)
#define LITE_MEMOP_EXEC_SEND (256UL << 10)
#define LITE_MEMOP_EXEC_FETCH (32UL << 10)
/* Bytes at a time where large packets overtake each other, and get lost. */
#define LITE_MEMOP_EXEC_CAREFUL 1024UL
/* Compare-and-swaps per step. */
#define LITE_MEMOP_EXEC_SWAPS 16

/*
 * Begin to carry out an operation; @mem, @conn and @brief are set. May sleep briefly. Return: 0, or
 * -EHOSTDOWN: the caller's session is over. Call lite_memop_exec_end() in either case.
 */
int lite_memop_exec_begin(struct lite_memop_exec *r)
{
	/* Local operations, which may be many, are not listed: no session waits for them. */
	if (!r->conn)
		return 0;
	spin_lock(&r->mem->work_lock);
	list_add(&r->list, &r->mem->work);
	spin_unlock(&r->mem->work_lock);
	/* A waiter for earlier sessions finds @r on the list, or this finds that @conn is over. */
	return lite_cluster_await_session(r->mem->cl, r->conn);
}

void lite_memop_exec_end(struct lite_memop_exec *r)
{
	if (r->conn) {
		spin_lock(&r->mem->work_lock);
		list_del(&r->list);
		spin_unlock(&r->mem->work_lock);
		wake_up_all(&r->mem->work_wait);
	}
	if (!r->page)
		return;
	if (lite_dma_unmap_page(r->mem->fab, r->dma, PAGE_SIZE << r->order, r->since))
		__free_pages(r->page, r->order);
}

/* Have the brief operations of a session ended, or (@before) all of its peer's other sessions? */
static bool lite_memop_execs_ended(struct lite_memory *mem, struct lite_conn *conn, bool before)
{
	struct lite_memop_exec *r;
	bool ended = true;

	spin_lock(&mem->work_lock);
	list_for_each_entry(r, &mem->work, list) {
		if (before)
			ended &= r->conn == conn || r->conn->from.node != conn->from.node;
		else
			ended &= !r->brief || r->conn != conn;
	}
	spin_unlock(&mem->work_lock);
	return ended;
}

/*
 * Wait for the brief operations of @conn, which is not the peer's session any more: the next
 * session begins here only after them, as after what devices did in @conn. May sleep briefly.
 */
void lite_memop_execs_conn_down(struct lite_memory *mem, struct lite_conn *conn)
{
	wait_event(mem->work_wait, lite_memop_execs_ended(mem, conn, false));
}

/*
 * Wait for operations of earlier sessions of the peer that asks in @conn. If that is its current
 * session, they cannot begin any more, and those that have begun end after a step, or when their
 * time is up. Return: 0; -EHOSTDOWN: it is not the current session, and nothing was waited for.
 */
static int lite_memop_execs_settle(struct lite_memory *mem, struct lite_conn *conn)
{
	int err = lite_cluster_await_session(mem->cl, conn);

	if (!err)
		wait_event(mem->work_wait, lite_memop_execs_ended(mem, conn, true));
	return err;
}

static int lite_memop_exec_wanted(const struct lite_memop_exec *r)
{
	if (r->conn)
		return lite_conn_is_dead(r->conn) ? -EHOSTDOWN : 0;
	return fatal_signal_pending(current) ? -EINTR : 0;
}

/*
 * Carry out an operation for a while, entered nowhere. Return: 0 or a negative errno of the step at
 * @r->done; -EHOSTDOWN: the caller's session is over; -EINTR: the local caller is being killed. If
 * it returns 0 and sets no @status, there is progress.
 */
static int lite_memop_exec(struct lite_memop_exec *r, lite_memop_exec_step *step)
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
		if (r->done && time_after(jiffies, end))
			break;
		if (r->done < length && !r->status)
			ret = lite_memop_exec_wanted(r);
		cond_resched();
	}
	lite_memop_exec_end(r);
	return ret;
}

/* An entered part of an LMR. */
struct lite_memop_cursor {
	struct lite_mapping *m;
	const struct lite_extent *e; /* extent that contains all of it */
	u64 offset;                  /* in the LMR */
};

static bool lite_memop_exec_is_backward(const struct lite_memop_exec *r)
{
	return le32_to_cpu(r->op->flags) & LITE_WIRE_OP_BACKWARD;
}

static u64 lite_memop_exec_packet(const struct lite_memop_exec *r, u64 max)
{
	return le32_to_cpu(r->op->flags) & LITE_WIRE_OP_CAREFUL ? LITE_MEMOP_EXEC_CAREFUL : max;
}

static bool lite_memop_cursor_is_local(const struct lite_memop_cursor *p)
{
	return p->m->share[p->e->share].local;
}

/*
 * Enter for the next bytes of one of the operation's ranges: the first that are left or, going
 * backward, the last. Reduces @n to what is in one extent. Return: 0: call
 * lite_memop_cursor_place() once the length is known, and lite_access_exit(p->m); -ERANGE, or as
 * lite_peer_mapping_enter().
 */
static int lite_memop_cursor_enter(struct lite_memop_exec *r, struct lite_memop_cursor *p,
				   const struct lite_wire_range *range, u64 *n)
{
	u64 offset = le64_to_cpu(range->offset), left = le64_to_cpu(r->op->length) - r->done, end;
	bool backward = lite_memop_exec_is_backward(r);

	if (!backward && check_add_overflow(offset, r->done, &offset))
		return -ERANGE;
	p->m = lite_peer_mapping_enter(r->mem, range, offset, left);
	if (IS_ERR(p->m))
		return PTR_ERR(p->m);
	end = offset + left;
	p->e = lite_extent_at(p->m, backward ? end - 1 : offset);
	*n = min(*n, min(end, p->e->start + p->e->length) - max(offset, p->e->start));
	p->offset = offset;
	return 0;
}

/* Set the offset of a part, now that its length, @n, is known. */
static void lite_memop_cursor_place(struct lite_memop_exec *r, struct lite_memop_cursor *p, u64 n)
{
	if (lite_memop_exec_is_backward(r))
		p->offset += le64_to_cpu(r->op->length) - r->done - n;
}

/* Cut @n to what is contiguous. Return: the local kernel address; NULL: the extents are wrong. */
static void *lite_memop_cursor_address(const struct lite_memop_cursor *p, u64 *n)
{
	size_t size = *n;
	void *mem = lite_mapping_address(p->m, p->e, p->offset - p->e->start, &size);

	*n = size;
	return mem;
}

/*
 * The kernel address of the end of a part. Cuts @n to the contiguous bytes before the end. As
 * contiguous pieces are at least a page, this takes few steps.
 */
static void *lite_memop_cursor_tail(struct lite_memop_cursor *p, u64 *n)
{
	u64 size = *n;
	void *mem;

	for (;;) {
		mem = lite_memop_cursor_address(p, &size);
		if (!mem || size == *n)
			return mem;
		p->offset += size;
		*n -= size;
		size = *n;
	}
}

/*
 * Enter for the next bytes of the first range, and set @n to their number. Return: their address:
 * call lite_access_exit(p->m); ERR_PTR: -EXDEV: not local; -EIO; or as lite_memop_cursor_enter().
 */
static void *lite_memop_cursor_local(struct lite_memop_exec *r, struct lite_memop_cursor *p, u64 *n)
{
	void *mem = ERR_PTR(-EXDEV);
	int err;

	*n = LITE_MEMOP_EXEC_BYTES;
	err = lite_memop_cursor_enter(r, p, &r->op->range, n);
	if (err)
		return ERR_PTR(err);
	if (lite_memop_cursor_is_local(p)) {
		lite_memop_cursor_place(r, p, *n);
		mem = lite_memop_cursor_address(p, n) ?: ERR_PTR(-EIO);
	}
	if (IS_ERR(mem))
		lite_access_exit(p->m);
	return mem;
}

/* Transfer between a remote part and memory at @dma; @other is entered, too. Return: bytes. */
static ssize_t lite_memop_cursor_run(struct lite_memop_cursor *p, struct lite_memop_cursor *other,
				     u32 opcode, u64 dma, u64 n, u64 packet)
{
	struct lite_devop d = {
		.m = p->m,
		.also = other->m,
		.e = p->e,
		.opcode = opcode,
		/* Handlers of these calls wait only for devices, not for turns. */
		.prio = LITE_POST_UNSCHEDULED,
		.stays = true,
		.n = n,
		.offset = p->offset,
		.dma = dma,
	};
	int err = lite_devop_run(&d, packet);

	/* A newer session, or an LMR is about to be changed: the caller sends PREPARE. */
	if (err == -EAGAIN)
		return -ENOLINK;
	return err ?: (ssize_t)n;
}

ssize_t lite_memop_exec_set(struct lite_memop_exec *r)
{
	u32 length = le32_to_cpu(r->op->arg);
	struct lite_memop_cursor p;
	u64 n;
	void *mem = lite_memop_cursor_local(r, &p, &n);

	if (IS_ERR(mem))
		return PTR_ERR(mem);
	lite_pattern_fill(mem, n, lite_pattern_rotate(le64_to_cpu(r->op->operand), length, r->done),
			  length);
	lite_access_exit(p.m);
	return n;
}

ssize_t lite_memop_exec_checksum(struct lite_memop_exec *r)
{
	struct lite_memop_cursor p;
	u64 n;
	void *mem = lite_memop_cursor_local(r, &p, &n);

	if (IS_ERR(mem))
		return PTR_ERR(mem);
	/* CRC32C is inverted before and after. */
	r->value = (u32)~crc32c(~(u32)r->value, mem, n);
	lite_access_exit(p.m);
	return n;
}

static ssize_t lite_memop_copy_local(struct lite_memop_exec *r, struct lite_memop_cursor *to,
				     struct lite_memop_cursor *from, u64 n)
{
	void *t, *f;
	u64 all;

	n = min_t(u64, n, LITE_MEMOP_EXEC_BYTES);
	lite_memop_cursor_place(r, to, n);
	lite_memop_cursor_place(r, from, n);
	if (lite_memop_exec_is_backward(r)) {
		all = n;
		f = lite_memop_cursor_tail(from, &n);
		to->offset += all - n;
		all = n;
		t = f ? lite_memop_cursor_tail(to, &n) : NULL;
		f = t ? f + (all - n) : NULL;
	} else {
		f = lite_memop_cursor_address(from, &n);
		t = f ? lite_memop_cursor_address(to, &n) : NULL;
	}
	if (!t)
		return -EIO;
	memmove(t, f, n);
	return n;
}

static ssize_t lite_memop_copy_send(struct lite_memop_exec *r, struct lite_memop_cursor *to,
				    struct lite_memop_cursor *from, u64 n)
{
	n = min_t(u64, n, lite_memop_exec_packet(r, LITE_MEMOP_EXEC_SEND));
	lite_memop_cursor_place(r, to, n);
	lite_memop_cursor_place(r, from, n);
	return lite_memop_cursor_run(to, from, LITE_OP_WRITE,
				     from->e->addr + (from->offset - from->e->start), n,
				     lite_memop_exec_packet(r, LITE_WR_BYTES_MAX));
}

ssize_t lite_memop_exec_copy(struct lite_memop_exec *r)
{
	u64 n = LITE_MEMOP_EXEC_SEND;
	struct lite_memop_cursor to, from;
	ssize_t ret;

	ret = lite_memop_cursor_enter(r, &from, &r->op->from, &n);
	if (ret)
		return ret;
	ret = lite_memop_cursor_enter(r, &to, &r->op->range, &n);
	if (!ret) {
		if (!lite_memop_cursor_is_local(&from))
			ret = -EXDEV;
		else if (lite_memop_cursor_is_local(&to))
			ret = lite_memop_copy_local(r, &to, &from, n);
		else
			ret = lite_memop_copy_send(r, &to, &from, n);
		lite_access_exit(to.m);
	}
	lite_access_exit(from.m);
	return ret;
}

/* Allocate a buffer to fetch into, as large as useful. */
static int lite_memop_exec_page(struct lite_memop_exec *r)
{
	u64 size = min_t(u64, le64_to_cpu(r->op->length), LITE_MEMOP_EXEC_FETCH);
	int err;

	r->since = lite_dma_since(r->mem->fab);
	r->order = get_order(size);
	r->page = alloc_pages(GFP_KERNEL | __GFP_NOWARN | __GFP_NORETRY, r->order);
	if (!r->page) {
		r->order = 0;
		r->page = alloc_page(GFP_KERNEL);
	}
	if (!r->page)
		return -ENOMEM;
	err = lite_dma_map_page(r->mem->fab, r->page, PAGE_SIZE << r->order, &r->dma);
	if (err) {
		__free_pages(r->page, r->order);
		r->page = NULL;
	}
	return err;
}

static ssize_t lite_memop_compare_parts(struct lite_memop_exec *r, struct lite_memop_cursor *a,
					struct lite_memop_cursor *b, u64 n)
{
	bool fetch = !lite_memop_cursor_is_local(b);
	void *x, *y;
	ssize_t ret;
	size_t same;

	if (!lite_memop_cursor_is_local(a))
		return -EXDEV;
	if (fetch && !r->page)
		return -ENOBUFS;
	lite_memop_cursor_place(r, a, n);
	lite_memop_cursor_place(r, b, n);
	x = lite_memop_cursor_address(a, &n);
	y = fetch ? page_address(r->page) : lite_memop_cursor_address(b, &n);
	if (!x || !y)
		return -EIO;
	if (fetch) {
		n = min_t(u64, n, lite_memop_exec_packet(r, PAGE_SIZE << r->order));
		ret = lite_memop_cursor_run(b, a, LITE_OP_READ, r->dma, n, n);
		if (ret < 0)
			return ret;
	}
	same = lite_first_difference(x, y, n);
	if (same < n)
		r->status = LITE_WIRE_OP_DIFFERENT;
	return same;
}

ssize_t lite_memop_exec_compare(struct lite_memop_exec *r)
{
	struct lite_memop_cursor a, b;
	u64 n = LITE_MEMOP_EXEC_BYTES;
	ssize_t ret;

	ret = lite_memop_cursor_enter(r, &a, &r->op->range, &n);
	if (ret)
		return ret;
	ret = lite_memop_cursor_enter(r, &b, &r->op->from, &n);
	if (!ret) {
		ret = lite_memop_compare_parts(r, &a, &b, n);
		lite_access_exit(b.m);
	}
	lite_access_exit(a.m);
	/* Memory is not allocated while entered. */
	return ret == -ENOBUFS ? lite_memop_exec_page(r) : ret;
}

/* Try some compare-and-swaps. Return: 0: other operations won all of them. */
static ssize_t lite_word_swap(struct lite_memop_exec *r, struct lite_bounce *bounce)
{
	u32 opcode = le32_to_cpu(r->op->arg);
	u64 operand = le64_to_cpu(r->op->operand);
	struct lite_devop d = {
		.opcode = LITE_OP_CMP_SWAP,
		.prio = LITE_POST_UNSCHEDULED,
		.stays = true,
	};
	struct lite_memop_cursor p;
	ssize_t ret = 0;
	u64 n, *word;
	int i;

	word = lite_memop_cursor_local(r, &p, &n);
	if (IS_ERR(word))
		return PTR_ERR(word);
	d.m = p.m;
	d.offset = p.offset;
	/* A guess that the device confirms by comparing. */
	d.operand = READ_ONCE(*word);
	for (i = 0; i < LITE_MEMOP_EXEC_SWAPS && !ret; i++) {
		d.swap = lite_atomic_result(opcode, d.operand, operand);
		ret = lite_atomic_run(&d, bounce);
		if (ret)
			break;
		r->value = *(u64 *)bounce->data;
		if (r->value == d.operand)
			ret = sizeof(u64);
		d.operand = r->value;
		d.posted = false; /* a lost one did nothing */
	}
	lite_access_exit(p.m);
	/* The caller sends PREPARE, which connects this node to itself, or maps anew. */
	return ret == -EUNATCH || ret == -EAGAIN ? -ENOLINK : ret;
}

/*
 * Atomics are done one at a time, so that they do not race each other. Only kernel workers come
 * here: a worker is not long without a processor while others wait for the mutex.
 */
ssize_t lite_memop_exec_atomic(struct lite_memop_exec *r)
{
	struct lite_fabric *fab = r->mem->fab;
	struct mem_cgroup *charged;
	struct lite_bounce *bounce;
	unsigned long end;
	ssize_t ret;

	if (le64_to_cpu(r->op->range.offset) % sizeof(u64) ||
	    le64_to_cpu(r->op->length) != sizeof(u64))
		return -EINVAL;
	if (!fab->atomics)
		return -EOPNOTSUPP;
	/*
	 * Get the page before the mutex, because memory may be waited for. The caller is not
	 * charged: a memory cgroup would throttle this worker, of which there are few.
	 */
	charged = set_active_memcg(NULL);
	bounce = lite_bounce_get(fab);
	set_active_memcg(charged);
	if (!bounce)
		return -EINTR;
	mutex_lock(&r->mem->words_lock);
	end = jiffies + LITE_MEMOP_EXEC_TIME;
	do {
		ret = lite_word_swap(r, bounce);
	} while (!ret && time_before(jiffies, end));
	mutex_unlock(&r->mem->words_lock);
	if (!ret)
		r->status = LITE_WIRE_OP_BUSY;
	lite_bounce_put(fab, bounce);
	return ret;
}

/* As lite_mem_handler, for an operation that is done with @step. */
int lite_serve_memop(struct lite_memory *mem, struct lite_conn *conn, lite_memop_exec_step *step,
		     const void *req, void *reply)
{
	const struct lite_wire_op *op = req;
	struct lite_wire_op_reply *out = reply;
	struct lite_memop_exec r = {
		.mem = mem,
		.conn = conn,
		.op = op,
		.value = le64_to_cpu(op->operand),
	};
	int err;

	err = lite_memop_exec(&r, step);
	if (err == -ENOLINK)
		r.status = LITE_WIRE_OP_UNMAPPED;
	else if (err == -EXDEV)
		r.status = LITE_WIRE_OP_ELSEWHERE;
	else
		out->error = cpu_to_le32(-err);
	out->done = cpu_to_le64(r.done);
	out->value = cpu_to_le64(r.value);
	out->status = cpu_to_le32(r.status);
	return sizeof(*out);
}

int lite_serve_prepare(struct lite_memory *mem, struct lite_conn *conn, const void *req,
		       void *reply)
{
	const struct lite_wire_op *op = req;
	int err = lite_cluster_ready(mem->cl);

	if (err)
		goto out;
	err = conn ? lite_memop_execs_settle(mem, conn) : 0;
	if (!err && op->arg)
		err = lite_atomic_connect(mem);
	if (!err)
		err = lite_peer_mapping_prepare(mem, &op->range);
	if (!err && op->from.id)
		err = lite_peer_mapping_prepare(mem, &op->from);
out:
	/* A node that has left, or is leaving, is as good as down to the peer. */
	return conn && (err == -ENOTCONN || err == -ENODEV) ? -EHOSTDOWN : err;
}
