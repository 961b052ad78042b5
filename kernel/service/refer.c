// SPDX-License-Identifier: GPL-2.0
/*
 * Long requests and replies, at the client.
 *
 * Normal operation: the request is copied into memory of the kernel's, and memory
 * for the reply, as much as there is room for, is made; what goes through the ring
 * is a list of where both are. The server's kernel reads the one when a server
 * takes the request, and writes the other before it answers.
 *
 * Whose it is: the call's, and from when it has a record the slot's, too. The slot
 * lets go of it when the reply has come, or will not come, for sure; when
 * the connection dies, together with the mirror. So a caller that gives up leaves
 * it to the slot, and what comes late is written to memory that nobody has.
 */
#include "service.h"

/**
 * lite_rcall_prepare - have a long request in memory of the kernel's
 * @call: filled in; nothing is held
 *
 * Context: may sleep, and wait for user space; killable.
 * Return: 0, -ENOMEM, -EFAULT, -EINTR; -ENODEV: the node has been stopped
 * meanwhile.
 */
int lite_rcall_prepare(struct lite_rcall *call)
{
	struct lite_bulk *bulk;
	int err;

	if (likely(call->length <= LITE_RPC_BYTES_MAX))
		return 0;
	bulk = lite_bulk_make(call->svc, call->cred->uid, call->length);
	if (IS_ERR(bulk))
		return PTR_ERR(bulk);
	err = lite_bulk_copy(bulk, &call->request, 0, call->length, true);
	if (err)
		lite_bulk_put(bulk);
	else
		call->bulk = bulk;
	return err;
}

/**
 * lite_rcall_bulk_room - memory for a long reply; all of a call's is mapped then
 * @call: its ring is known; it has no record yet
 *
 * Context: may sleep; killable.
 * Return: 0, -ENOMEM, -EINTR.
 */
int lite_rcall_bulk_room(struct lite_rcall *call)
{
	const struct lite_bind *bind = call->bind;
	u32 room = min(call->room, bind->max_reply);
	struct lite_bulk *bulk = call->reply_bulk;
	int err = 0;

	/* What another ring wanted may not do for this one. */
	if (bulk && (room <= LITE_RPC_BYTES_MAX || bulk->bytes < room)) {
		lite_bulk_put(bulk);
		call->reply_bulk = NULL;
	}
	if (room > LITE_RPC_BYTES_MAX && !call->reply_bulk) {
		bulk = lite_bulk_make(call->svc, call->cred->uid, room);
		if (IS_ERR(bulk))
			return PTR_ERR(bulk);
		call->reply_bulk = bulk;
	}
	if (!bind->rp->conn)
		return 0;
	if (call->bulk)
		err = lite_bulk_map(call->bulk);
	if (!err && call->reply_bulk)
		err = lite_bulk_map(call->reply_bulk);
	return err;
}

/**
 * lite_rcall_drop - a call is over, as far as its memory is concerned
 * @call: not begun, or it has ended, or been abandoned
 *
 * Context: process; the caller is active on the node, or nothing is mapped.
 */
void lite_rcall_drop(struct lite_rcall *call)
{
	lite_bulk_put(call->bulk);
	lite_bulk_put(call->reply_bulk);
	call->bulk = NULL;
	call->reply_bulk = NULL;
}

/**
 * lite_rcall_body - how much of a call goes through the ring
 * @call: its ring is known
 * @list: set to the bytes of it that are a list; may be NULL
 *
 * Return: bytes, the larger of request and reply.
 */
u32 lite_rcall_body(const struct lite_rcall *call, u32 *list)
{
	u32 n_request = call->bulk ? call->bulk->n : 0;
	u32 n_reply = call->reply_bulk ? call->reply_bulk->n : 0;
	u32 bytes = n_request + n_reply ?
			    lite_rpc_list_bytes(n_request + n_reply) : 0;

	if (list)
		*list = bytes;
	return lite_rpc_body_bytes(call->length,
				   min(call->room, call->bind->max_reply),
				   bytes, n_request, n_reply);
}

static struct lite_wire_rpc_chunk *
lite_bulk_describe(const struct lite_bulk *bulk, bool mapped,
		   struct lite_wire_rpc_chunk *to)
{
	u32 i;

	for (i = 0; bulk && i < bulk->n; i++)
		*to++ = (struct lite_wire_rpc_chunk){
			/* Not 0 within a node, where nobody looks at it. */
			.addr = cpu_to_le64(mapped ? bulk->chunk[i].dma : 1),
			.bytes = cpu_to_le32(bulk->chunk[i].bytes),
		};
	return to;
}

/**
 * lite_rcall_list - write the list of where a call's memory is
 * @call: it has a record
 * @mem: there, behind the header
 *
 * Return: bytes of it; 0: it needs none.
 */
u32 lite_rcall_list(const struct lite_rcall *call, void *mem)
{
	bool mapped = call->bind->rp->conn;
	struct lite_wire_rpc_bulk *b = mem;
	u32 list;

	lite_rcall_body(call, &list);
	if (likely(!list))
		return 0;
	b->n_request = cpu_to_le32(call->bulk ? call->bulk->n : 0);
	b->n_reply = cpu_to_le32(call->reply_bulk ? call->reply_bulk->n : 0);
	lite_bulk_describe(call->reply_bulk, mapped,
			   lite_bulk_describe(call->bulk, mapped, b->chunk));
	return list;
}
