/* SPDX-License-Identifier: GPL-2.0 */
/* Small reads and writes, many in a message. pack.c, pack_serve.c */
#ifndef _LITE_PACK_H
#define _LITE_PACK_H

#include "wire/wire_pack.h"
#include "kcall/kcall.h"
#include "memory/mapper/mapping.h"

struct lite_memory;
struct lite_pack;

/*
 * Fewer operations are posted: a call, with the threads that make and serve
 * it, costs as much as five operations of 64 bytes, or six to seven of
 * LITE_PACK_BYTES.
 */
#define LITE_PACK_MIN 8

/**
 * struct lite_packs - messages of a node
 * @prepare: has a node map an LMR that it could not work on
 * @spare: cached room for messages, or NULL
 * @busy: bit 0: @prepare is queued, and owns the next two
 * @node: node to ask
 * @op: request, which names the LMR
 */
struct lite_packs {
	struct lite_pack *spare;
	struct work_struct prepare;
	unsigned long busy;
	u32 node;
	struct lite_wire_op op;
};

/* Jiffies that a caller may wait for its messages, in total. */
static inline unsigned long lite_pack_time(const struct lite_fabric *fab)
{
	return max(fab->op_timeout / 2, 1UL);
}

/* Messages in flight at a time: as many as there are slots for such calls. */
#define LITE_PACK_MSGS 2

/**
 * struct lite_pack_msg - a message
 * @sent: in flight
 * @n: number of operations
 * @n_ranges: number of LMRs
 * @out: bytes of the request on the wire
 * @in: bytes to be read
 * @m: the LMRs, entered
 * @op: operations
 * @data: per operation: its bytes, or room for them
 * @call: the call that sends it
 * @reply: the reply on the wire
 */
struct lite_pack_msg {
	bool sent;
	u32 n;
	u32 n_ranges;
	u32 out;
	u32 in;
	struct lite_mapping *m[LITE_PACK_RANGES];
	struct lite_wire_pack_op op[LITE_PACK_OPS];
	void *data[LITE_PACK_OPS];
	struct lite_call_desc call;
	u8 reply[LITE_WORK_PAYLOAD_MAX] __aligned(8);
};

/**
 * struct lite_pack - operations on their way to a node
 * @mem: our node's memory
 * @conn: session with the node
 * @deadline: jiffies
 * @err: first error, or one that has ended the session
 * @done: number of operations done
 * @at: the current message
 * @msg: messages
 * @request: buffer for encoding a request
 */
struct lite_pack {
	struct lite_memory *mem;
	struct lite_conn *conn;
	unsigned long deadline;
	int err;
	u32 done;
	struct lite_pack_msg *at;
	struct lite_pack_msg msg[LITE_PACK_MSGS];
	u8 request[LITE_WORK_PAYLOAD_MAX] __aligned(8);
};

/**
 * lite_pack_may - may an operation go in a message?
 * @fab: the node's fabric
 * @m: its LMR, entered
 * @opcode: enum lite_opcode
 * @length: bytes
 *
 * Only on software devices: there the other node's processor carries it out
 * either way, and a work request of Soft-RoCE costs more than the rest of the
 * operation.
 */
static inline bool lite_pack_may(const struct lite_fabric *fab,
				 const struct lite_mapping *m, u32 opcode,
				 u32 length)
{
	return fab->quirks.soft && length <= LITE_PACK_BYTES &&
	       (opcode == LITE_OP_READ || opcode == LITE_OP_WRITE) &&
	       !time_before(jiffies, READ_ONCE(m->pack_after));
}

void lite_packs_init(struct lite_memory *mem);
void lite_packs_exit(struct lite_memory *mem);
struct lite_pack *lite_pack_get(struct lite_memory *mem);
void lite_pack_put(struct lite_memory *mem, struct lite_pack *p);
void lite_pack_begin(struct lite_pack *p, struct lite_memory *mem,
		     struct lite_conn *conn, unsigned long deadline);
bool lite_pack_add(struct lite_pack *p, struct lite_mapping *m, bool write,
		   u64 offset, u32 length, void *data);
int lite_pack_end(struct lite_pack *p);
int lite_pack_settle(struct lite_memory *mem, u32 node);

/* pack_serve.c */
void lite_pack_handlers(struct lite_memory *mem);

#endif /* _LITE_PACK_H */
