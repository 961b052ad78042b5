// SPDX-License-Identifier: GPL-2.0
/*
 * Long requests and replies, at the client.
 *
 * Normal operation: the request is copied into kernel memory, and memory is
 * allocated for the longest possible reply. A list of both goes through the
 * ring. The server's kernel reads the request by RDMA when a server receives
 * it, and writes the reply by RDMA before it answers.
 *
 * Lifetime: the call has a reference to both bulks, and its slot has one, too,
 * from when it has a record. The slot drops it when the reply has come or
 * cannot come any more, or together with the mirror when the connection ends.
 * So a late reply to a caller that has given up is written to memory that is
 * not in use otherwise.
 */
#include "function/service.h"

/**
 * lite_rcall_prepare - copy a long request into kernel memory
 * @call: filled in; holds nothing yet
 *
 * Context: may sleep, and wait for user space; killable.
 * Return: 0, -ENOMEM, -EFAULT, -EINTR; -ENODEV: the node was stopped meanwhile.
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
 * lite_rcall_bulk_room - allocate memory for a long reply, and map all bulks
 * @call: has a ring, but no record yet
 *
 * Context: may sleep; killable.
 * Return: 0, -ENOMEM, -EINTR.
 */
int lite_rcall_bulk_room(struct lite_rcall *call)
{
	const struct lite_client_ring *ring = call->ring;
	u32 room = min(call->room, ring->max_reply);
	struct lite_bulk *bulk = call->reply_bulk;
	int err = 0;

	/* A bulk made for another ring may be too small, or not needed. */
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
	if (!ring->rp->conn)
		return 0;
	if (call->bulk)
		err = lite_bulk_map(call->bulk);
	if (!err && call->reply_bulk)
		err = lite_bulk_map(call->reply_bulk);
	return err;
}

/**
 * lite_rcall_drop - drop a call's references to its bulks
 * @call: not begun, ended or abandoned
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
 * lite_rcall_body - bytes behind the header in a call's record
 * @call: has a ring
 * @list: set to the bytes of its chunk list; may be NULL
 *
 * Return: bytes; the larger of request and reply.
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
				   min(call->room, call->ring->max_reply),
				   bytes, n_request, n_reply);
}

static struct lite_wire_rpc_chunk *
lite_bulk_describe(const struct lite_bulk *bulk, bool mapped,
		   struct lite_wire_rpc_chunk *to)
{
	u32 i;

	for (i = 0; bulk && i < bulk->n; i++)
		*to++ = (struct lite_wire_rpc_chunk){
			/* Unused within a node, but must not be 0. */
			.addr = cpu_to_le64(mapped ? bulk->chunk[i].dma : 1),
			.bytes = cpu_to_le32(bulk->chunk[i].bytes),
		};
	return to;
}

/**
 * lite_rcall_list - write the chunk list of a call
 * @call: has a record
 * @mem: in the record, behind the header
 *
 * Return: bytes; 0: the call needs no list.
 */
u32 lite_rcall_list(const struct lite_rcall *call, void *mem)
{
	bool mapped = call->ring->rp->conn;
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
