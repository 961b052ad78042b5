// SPDX-License-Identifier: GPL-2.0
/*
 * Small reads and writes, many in a message, at their caller's node.
 *
 * Normal operation: a work request costs a software device thousands of instructions at either end,
 * whatever its size; a message is two of them. So many small reads and writes for one node go
 * together, in calls to its kernel (OP_PACK). As with memory operations (memop.c), that kernel
 * works through mappings of its own (pack_serve.c), and no LMR is entered here meanwhile. The
 * operations are unordered, as posted ones are.
 *
 * If a message is refused, or no call can be sent soon, the operations are done one by one, and the
 * context sends no messages for a while (LITE_PACK_PAUSE). If the node has merely not mapped an
 * LMR, it is asked to map it, in the background.
 *
 * Recovery: reads and writes are idempotent, so all operations may be repeated, but only when the
 * first attempt is over. A message that is not answered in time ends the session, as an operation
 * does. After that the peer begins none of its messages, and ends those in progress before it uses
 * the next session (lite_memop_execs_conn_down()). This node may use the next session first. So
 * before operations are repeated it sends PREPARE, which the peer answers only in that session
 * (lite_pack_settle()). If PREPARE fails, their outcome is reported as unknown.
 */
#include <linux/slab.h>

#include "memory/memop/memop.h"
#include "memory/memory.h"
#include "pack.h"
#include "vector.h"

/* Time to wait for a slot of a call; later, posting is quicker. */
#define LITE_PACK_SLOT_TIME max(HZ / 50, 1)

/* Messages in flight at a time: as many as there are slots for such calls. */
#define LITE_PACK_MSGS 2

struct lite_pack_msg {
	bool sent;                                    /* in flight */
	u32 n;
	u32 n_ranges;
	u32 out;                                      /* bytes of the request on the wire */
	u32 in;                                       /* bytes to be read */
	const struct lite_wave_op *of[LITE_PACK_RANGES]; /* for each LMR, an operation on it */
	const struct lite_wave_op *w[LITE_PACK_OPS];
	u8 range[LITE_PACK_OPS];                      /* for each operation, index of its LMR */
	struct lite_call_desc call;
	u8 reply[LITE_WORK_PAYLOAD_MAX] __aligned(8); /* the reply on the wire */
};

/* Operations on their way to a node. */
struct lite_pack {
	struct lite_memory *mem;
	struct lite_conn *conn;
	unsigned long deadline;   /* jiffies */
	int err;                  /* first error, or one that has ended the session */
	u32 done;                 /* operations done */
	struct lite_pack_msg *at; /* the current message */
	struct lite_pack_msg msg[LITE_PACK_MSGS];
	u8 request[LITE_WORK_PAYLOAD_MAX] __aligned(8); /* for encoding a message */
};

static void lite_pack_prepare_work(struct work_struct *work)
{
	struct lite_packs *packs = container_of(work, struct lite_packs, prepare);
	struct lite_memory *mem = container_of(packs, struct lite_memory, packs);
	struct lite_call_desc d = {
		LITE_REQUEST(LITE_CALL_OP_PREPARE, packs->op),
		.timeout = mem->fab->op_timeout,
		.slot_timeout = LITE_PACK_SLOT_TIME,
	};

	lite_cluster_call(mem->cl, packs->node, &d);
	clear_bit_unlock(0, &packs->busy);
}

/* Have the node map an LMR. One request at a time: the next refused message asks again. */
static void lite_pack_prepare(struct lite_pack *p, const struct lite_wire_range *range)
{
	struct lite_packs *packs = &p->mem->packs;

	if (test_and_set_bit_lock(0, &packs->busy))
		return;
	packs->node = p->conn->from.node;
	packs->op = (struct lite_wire_op){ .range = *range, .length = cpu_to_le64(1) };
	queue_work(p->mem->wq, &packs->prepare);
}

void lite_packs_init(struct lite_memory *mem)
{
	INIT_WORK(&mem->packs.prepare, lite_pack_prepare_work);
}

/* No operation is in flight. May sleep. */
void lite_packs_exit(struct lite_memory *mem)
{
	cancel_work_sync(&mem->packs.prepare);
	kfree(mem->packs.spare);
}

static void lite_pack_clear(struct lite_pack_msg *msg)
{
	msg->n = 0;
	msg->n_ranges = 0;
	msg->out = 0;
	msg->in = 0;
}

static u32 lite_pack_encode(struct lite_pack *p, const struct lite_pack_msg *msg)
{
	struct lite_wire_pack *head = (void *)p->request;
	struct lite_wire_range *range = (void *)(head + 1);
	struct lite_wire_pack_op *op = (void *)(range + msg->n_ranges);
	u8 *bytes = (void *)(op + msg->n);
	u32 i;

	head->n_ranges = cpu_to_le32(msg->n_ranges);
	head->n_ops = cpu_to_le32(msg->n);
	for (i = 0; i < msg->n_ranges; i++)
		range[i] = *msg->of[i]->range;
	for (i = 0; i < msg->n; i++) {
		const struct lite_wave_op *w = msg->w[i];
		bool write = w->op->opcode == LITE_OP_WRITE;

		op[i] = (struct lite_wire_pack_op){
			.offset = cpu_to_le64(w->op->offset),
			.length = cpu_to_le16(w->op->length),
			.range = msg->range[i],
			.write = write,
		};
		if (!write)
			continue;
		memcpy(bytes, w->data, w->op->length);
		bytes += w->op->length;
	}
	return bytes - p->request;
}

static void lite_pack_scatter(const struct lite_pack_msg *msg)
{
	const u8 *bytes = msg->reply + sizeof(struct lite_wire_pack_reply);
	u32 i;

	for (i = 0; i < msg->n; i++) {
		const struct lite_wave_op *w = msg->w[i];

		if (w->op->opcode == LITE_OP_WRITE)
			continue;
		memcpy(w->data, bytes, w->op->length);
		bytes += w->op->length;
	}
}

static int lite_pack_take(struct lite_pack *p, struct lite_pack_msg *msg)
{
	const struct lite_wire_pack_reply *r = (void *)msg->reply;
	u32 at = le32_to_cpu(r->at);

	if (!r->error && !r->status) {
		if (msg->call.reply_len != sizeof(*r) + msg->in)
			return -EPROTO;
		lite_pack_scatter(msg);
		p->done += msg->n;
		return 0;
	}
	if (at >= msg->n)
		return -EPROTO;
	if (le32_to_cpu(r->status) == LITE_WIRE_OP_UNMAPPED)
		lite_pack_prepare(p, msg->of[msg->range[at]]->range);
	return -EAGAIN;
}

/* Wait for the answer to a message, if it is in flight. */
static void lite_pack_finish(struct lite_pack *p, struct lite_pack_msg *msg)
{
	struct lite_call_desc *d = &msg->call;
	unsigned long quarter;
	int err;

	if (!msg->sent)
		return;
	msg->sent = false;
	/* Without an answer the session ends, so allow for this thread being late. */
	quarter = lite_pack_time(p->mem->fab);
	d->timeout = max_t(long, p->deadline + 3 * quarter - jiffies, quarter);
	err = lite_kcall_end(p->conn, d);
	if (!err)
		err = lite_pack_take(p, msg);
	/* Other errors come from the handler, so it has ended. */
	if (d->sent && (err == -EHOSTDOWN || err == -ETIMEDOUT || err == -EPROTO)) {
		lite_conn_kill(p->conn, err);
		p->err = err == -EPROTO ? -EHOSTDOWN : err;
	} else if (err && !p->err) {
		p->err = -EAGAIN;
	}
}

/* Send the current message. The other one becomes current, once it is answered. */
static void lite_pack_send(struct lite_pack *p)
{
	struct lite_pack_msg *msg = p->at;
	struct lite_pack_msg *other = &p->msg[msg == &p->msg[0]];
	int err;

	if (time_after_eq(jiffies, p->deadline)) {
		p->err = -EAGAIN;
		return;
	}
	msg->call = (struct lite_call_desc){
		.call = LITE_CALL_OP_PACK,
		.req = p->request,
		.len = lite_pack_encode(p, msg),
		.reply = msg->reply,
		.reply_max = sizeof(msg->reply),
		.slot_timeout = LITE_PACK_SLOT_TIME,
		/* Do not wait for a slot while holding one. */
		.no_wait = other->sent,
	};
	err = lite_kcall_begin(p->conn, &msg->call);
	if (err == -EAGAIN) {
		lite_pack_finish(p, other);
		/* The thread may have been without a processor. */
		if (!p->err && time_after_eq(jiffies, p->deadline))
			p->err = -EAGAIN;
		if (p->err)
			return;
		msg->call.no_wait = false;
		err = lite_kcall_begin(p->conn, &msg->call);
	}
	msg->sent = !err;
	if (err && !p->err)
		p->err = -EAGAIN;
	lite_pack_finish(p, other);
	lite_pack_clear(other);
	p->at = other;
}

/*
 * Index of an LMR in the message, or the next free one. @m was left, and is only compared: all
 * mappings of a wave were entered at the same time, so no two had the same address.
 */
static u32 lite_pack_range(const struct lite_pack_msg *msg, const struct lite_mapping *m)
{
	u32 i = msg->n_ranges;

	/* Backwards: it is mostly the last one. */
	while (i-- > 0) {
		if (msg->of[i]->m == m)
			return i;
	}
	return msg->n_ranges;
}

static bool lite_pack_fits(const struct lite_pack_msg *msg, u32 range, bool write, u32 length)
{
	u32 out = msg->out + sizeof(struct lite_wire_pack_op) + (write ? length : 0);

	if (range == msg->n_ranges)
		out += sizeof(struct lite_wire_range);
	return msg->n < LITE_PACK_OPS && range < LITE_PACK_RANGES && out <= LITE_PACK_OUT_MAX &&
	       msg->in + (write ? 0 : length) <= LITE_PACK_IN_MAX;
}

/* Add an operation. Sends the current message first if it does not fit. */
static void lite_pack_add(struct lite_pack *p, const struct lite_wave_op *w)
{
	bool write = w->op->opcode == LITE_OP_WRITE;
	u32 range = lite_pack_range(p->at, w->m);
	u32 length = w->op->length;
	struct lite_pack_msg *msg;

	if (!lite_pack_fits(p->at, range, write, length)) {
		lite_pack_send(p);
		if (p->err)
			return;
		range = 0;
	}
	msg = p->at;
	if (range == msg->n_ranges) {
		msg->of[msg->n_ranges++] = w;
		msg->out += sizeof(struct lite_wire_range);
	}
	msg->range[msg->n] = range;
	msg->w[msg->n++] = w;
	msg->out += sizeof(struct lite_wire_pack_op);
	if (write)
		msg->out += length;
	else
		msg->in += length;
}

/*
 * Carry out operations of a wave (of the @n, those of chain @to) in messages to their node; the
 * caller holds the session @conn. Offsets and rights were checked when the wave was entered; each
 * has 1 to LITE_PACK_BYTES bytes. @deadline: jiffies, for all messages. May sleep, in calls of
 * LITE_LANE_WORK. Return: 0: all are done; -EAGAIN: do them all in another way: some may have been
 * done, and none is in flight. Other: the session is over, the outcome unknown, and messages may
 * still be carried out: see lite_pack_settle().
 */
int lite_pack_run(struct lite_memory *mem, struct lite_conn *conn, const struct lite_wave_op *w,
		  u32 n, u32 to, unsigned long deadline)
{
	struct lite_pack *p = xchg(&mem->packs.spare, NULL);
	int err;
	u32 i;

	p = p ?: kmalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
	if (!p)
		return -EAGAIN;
	p->mem = mem;
	p->conn = conn;
	p->deadline = deadline;
	p->err = 0;
	p->done = 0;
	for (i = 0; i < LITE_PACK_MSGS; i++)
		p->msg[i].sent = false;
	p->at = &p->msg[0];
	lite_pack_clear(p->at);
	for (i = 0; i < n && !p->err; i++) {
		if (w[i].to == to)
			lite_pack_add(p, &w[i]);
	}
	if (!p->err && p->at->n)
		lite_pack_send(p);
	for (i = 0; i < LITE_PACK_MSGS; i++)
		lite_pack_finish(p, &p->msg[i]);
	err = p->err;
	if (!err)
		lite_stat_add(mem->stats, LITE_STAT_PACKED, p->done);
	if (cmpxchg(&mem->packs.spare, NULL, p))
		kfree(p);
	return err;
}

/*
 * Wait until @node carries out no message of this node: lite_pack_run() has failed, and the session
 * is over. Waits while @node is suspect. May sleep; killable; makes calls; entered nowhere. Return:
 * 0; an errno: the outcome is unknown.
 */
int lite_pack_settle(struct lite_memory *mem, u32 node)
{
	/* Name an LMR that @node never had, so that nothing is mapped. */
	const struct lite_wire_op op = {
		.range = { .id = cpu_to_le64(1), .home = cpu_to_le32(node) },
		.length = cpu_to_le64(1),
	};
	int err = lite_memop_prepare(mem, node, &op);

	/* PREPARE looks for the LMR last, after it has waited. */
	if (err == -ENOENT || err == -ESTALE)
		return 0;
	err = lite_cluster_ready(mem->cl) ?: err;
	return err == -EHOSTUNREACH ? -EHOSTDOWN : err;
}
