// SPDX-License-Identifier: GPL-2.0
#include "wire_rpc.h"

/* Are these valid chunks, with at least @bytes, which may be 0, in all? */
static bool lite_rpc_chunks_ok(const struct lite_wire_rpc_chunk *chunk, u32 n, u32 bytes)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < n; i++) {
		if (!chunk[i].addr || !chunk[i].bytes || chunk[i].reserved)
			return false;
		sum += le32_to_cpu(chunk[i].bytes);
	}
	return sum >= bytes;
}

int lite_wire_rpc_bulk_check(const struct lite_wire_rpc_chunk *chunk, u32 n_request, u32 n_reply,
			     u32 length, u32 room)
{
	if (n_request ? !lite_rpc_chunks_ok(chunk, n_request, length) :
			!n_reply || length > LITE_RPC_BYTES_MAX)
		return -EPROTO;
	if (n_reply ? !lite_rpc_chunks_ok(chunk + n_request, n_reply, room) :
		      room > LITE_RPC_BYTES_MAX)
		return -EPROTO;
	return 0;
}

static bool lite_rpc_request_ok(const struct lite_wire_rpc *h)
{
	u32 flags = le32_to_cpu(h->flags);
	u32 most = flags & LITE_RPC_F_BULK ? LITE_RPC_BULK_MAX : LITE_RPC_BYTES_MAX;

	return h->status <= LITE_PRIORITY_MAX && !h->user && h->reply &&
	       !(flags & ~(LITE_RPC_F_ONEWAY | LITE_RPC_F_BULK)) &&
	       le32_to_cpu(h->length) <= most && le32_to_cpu(h->room) <= most;
}

/* Only a successful reply with bytes can be in chunks. */
static bool lite_rpc_reply_ok(const struct lite_wire_rpc *h)
{
	u32 flags = le32_to_cpu(h->flags);

	if (flags && (flags != LITE_RPC_F_BULK || h->status != LITE_RPC_OK || !h->length))
		return false;
	return !h->room && !h->reply && !h->uid && !h->gid && h->status < LITE_RPC_STATUSES;
}

int lite_wire_rpc_check(const struct lite_wire_rpc *h, bool request)
{
	if (le32_to_cpu(h->magic) != LITE_WIRE_MAGIC || h->version != LITE_WIRE_VERSION ||
	    h->reserved[0] || h->reserved[1] || le16_to_cpu(h->slot) >= LITE_RPC_DEPTH)
		return -EPROTO;
	return (request ? lite_rpc_request_ok(h) : lite_rpc_reply_ok(h)) ? 0 : -EPROTO;
}
