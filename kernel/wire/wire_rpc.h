/* SPDX-License-Identifier: GPL-2.0 */
/* The wire protocol of functions: calls between kernels about them, and the records in rings. */
#ifndef _LITE_WIRE_RPC_H
#define _LITE_WIRE_RPC_H

#include <uapi/lite_priority.h>
#include <uapi/lite_rpc.h>

#include "core/name.h"
#include "wire.h"

#define LITE_RPC_HEADER 64U
#define LITE_RPC_CHUNKS_MAX 64U /* of a ring */

struct lite_wire_rpc_bind {
	__le32 function;
	__le32 reserved;
} __packed;

struct lite_wire_rpc_func {
	__le64 cookie;      /* unique to this registration */
	__le32 function;
	__le32 uid;
	__le32 gid;
	__le32 mode;
	__le32 max_request;
	__le32 max_reply;
	__le32 squash;      /* 1: root of other nodes is unprivileged */
	__le32 reserved;
} __packed;

struct lite_wire_rpc_bind_reply {
	struct lite_wire_rpc_func func;
	__le32 ring;        /* its number, used in immediates */
	__le32 depth;       /* slots */
	__le32 chunk_bytes;
	__le32 n_chunks;
	__le64 chunk[];     /* addresses of the chunks */
} __packed;

/* UNBIND, and GONE */
struct lite_wire_rpc_unbind {
	__le32 ring;
	__le32 reserved;
} __packed;

struct lite_wire_rpc_find {
	__le32 function;    /* if @name is empty */
	__le32 reserved;
	char name[LITE_FUNCTION_NAME_SIZE];
} __packed;

struct lite_wire_rpc_which {
	__le32 ring;
	__le32 slot;
	__le64 seq;
} __packed;

struct lite_wire_rpc_cancel {
	__le32 count;
	__le32 reserved;
	struct lite_wire_rpc_which which[];
} __packed;

#define LITE_RPC_CANCELS_MAX LITE_ENTRIES_MAX(lite_wire_rpc_cancel, lite_wire_rpc_which)

/* Outcome of CANCEL, per call. */
enum lite_rpc_cancelled {
	LITE_RPC_REPLIED,   /* there was or will be a reply */
	LITE_RPC_CANCELLED, /* there will be no reply */
};

struct lite_wire_rpc_cancel_reply {
	__le32 count;
	__le32 reserved;
	__le32 cancelled[];
} __packed;

enum lite_rpc_flags {
	LITE_RPC_F_ONEWAY = 1 << 0, /* request: a message; its reply is empty */
	/*
	 * Request: struct lite_wire_rpc_bulk follows the header, and then the request, unless it is
	 * in chunks. Reply: it is in the chunks that the request has named.
	 */
	LITE_RPC_F_BULK = 1 << 1,
};

/* A piece of the client's memory, by DMA address. */
struct lite_wire_rpc_chunk {
	__le64 addr;
	__le32 bytes;
	__le32 reserved;
} __packed;

/* Where a request or reply that does not go through the ring is, or goes to. */
struct lite_wire_rpc_bulk {
	__le32 n_request;   /* chunks of the request; 0: it is in the record */
	__le32 n_reply;     /* chunks for the reply; 0: it fits in the record */
	struct lite_wire_rpc_chunk chunk[]; /* request's, then reply's */
} __packed;

#define LITE_RPC_BULK_CHUNKS_MAX 1023U /* of a request, and of a reply */
#define LITE_RPC_BULK_INLINE 4096U /* longest reply that uses the ring although there are chunks */

static inline u32 lite_rpc_list_bytes(u32 chunks)
{
	return sizeof(struct lite_wire_rpc_bulk) + chunks * sizeof(struct lite_wire_rpc_chunk);
}

/* May records of a function have chunk lists? */
static inline bool lite_rpc_has_lists(u32 max_request, u32 max_reply)
{
	return max_request > LITE_RPC_BYTES_MAX || max_reply > LITE_RPC_BYTES_MAX;
}

/* Bytes behind the header of the longest record of a function. */
static inline u32 lite_rpc_body_max(u32 max_request, u32 max_reply)
{
	if (lite_rpc_has_lists(max_request, max_reply))
		return LITE_RPC_BYTES_MAX + lite_rpc_list_bytes(2 * LITE_RPC_BULK_CHUNKS_MAX);
	return max_request > max_reply ? max_request : max_reply;
}

/* Bytes behind the header of a call's record. @list: bytes of its chunk list, 0: none. */
static inline u32 lite_rpc_body_bytes(u32 length, u32 room, u32 list, u32 n_request, u32 n_reply)
{
	u32 in = list + (n_request ? 0 : length);
	u32 out = n_reply && room > LITE_RPC_BULK_INLINE ? LITE_RPC_BULK_INLINE : room;

	return in > out ? in : out;
}

enum lite_rpc_status {
	LITE_RPC_OK,
	LITE_RPC_REFUSED,  /* the function is not served; no server has seen the request */
	LITE_RPC_RESET,    /* the server that took the request dropped it */
	LITE_RPC_TOO_LONG, /* the reply has @length, more than the caller's room */
	LITE_RPC_STATUSES,
};

/* Heads a record: a request or, later, the reply to it. */
struct lite_wire_rpc {
	__le32 magic;
	__u8 version;
	__u8 status;        /* reply: enum lite_rpc_status; request: priority of both */
	__le16 slot;
	__le64 seq;         /* of the call; the reply repeats it */
	__le32 length;      /* bytes that follow */
	__le32 room;        /* request: maximum length of the reply */
	__le64 reply;       /* request: DMA address for the reply's header */
	__le32 uid;         /* request: the caller's */
	__le32 gid;
	__le32 flags;       /* enum lite_rpc_flags */
	__le32 user;        /* reply: status from the server */
	__le64 reserved[2];
} __packed;

static_assert(sizeof(struct lite_wire_rpc) == LITE_RPC_HEADER, "rpc");
static_assert(sizeof(struct lite_wire_rpc_bind_reply) + LITE_RPC_CHUNKS_MAX * sizeof(__le64) <=
	      LITE_PAYLOAD_MAX, "bind");

/*
 * Check a copy, out of the peer's reach, of a record's header. The caller checks lengths against
 * the room there is. Return: 0 or -EPROTO.
 */
int lite_wire_rpc_check(const struct lite_wire_rpc *h, bool request);

/*
 * Check a list of @n_request chunks for @length bytes of a request, and then @n_reply for up to
 * @room bytes of the reply. The caller checks that these numbers are allowed, and that the list is
 * within the record. Return: 0 or -EPROTO.
 */
int lite_wire_rpc_bulk_check(const struct lite_wire_rpc_chunk *chunk, u32 n_request, u32 n_reply,
			     u32 length, u32 room);

static inline int lite_function_name_check(const char *name)
{
	return lite_name_check(name, LITE_FUNCTION_NAME_SIZE);
}

#endif /* _LITE_WIRE_RPC_H */
