/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wire protocol. All of it is little-endian, begins with magic and version, has no implicit
 * padding, and is checked by the functions below before any other code looks at it. It has two
 * carriers: RDMA CM private data while connecting (lite_cm_*), then messages in call slots, written
 * by RDMA write-with-immediate (struct lite_wire_msg and the payload of its call). This file is the
 * reference; Documentation/wire-protocol.rst gives an overview.
 */
#ifndef _LITE_WIRE_H
#define _LITE_WIRE_H

#include "core/types.h"
#include "lane.h"
#include "core/rights.h"
#include "wire_sync.h"

#define LITE_WIRE_MAGIC 0x4554494cU /* "LITE" */
#define LITE_WIRE_VERSION 17

#define LITE_NONCE_SIZE 16
#define LITE_MAC_SIZE 32
#define LITE_PROOF_SIZE 16

#define LITE_QPS_MAX 4

enum lite_cm_kind {
	LITE_CM_HELLO = 1,     /* request: sender's identity and nonce */
	LITE_CM_CHALLENGE = 2, /* reject: responder's nonce and proof */
	LITE_CM_CONNECT = 3,   /* request: sender's proof */
	LITE_CM_ACCEPT = 4,    /* reply: key and slots */
	LITE_CM_REFUSE = 5,    /* reject: the reason */
};

struct lite_cm_hdr {
	__le32 magic;
	__u8 version;
	__u8 kind;
	__u8 nqps;     /* queue pairs that the sender wants, 1..LITE_QPS_MAX */
	__u8 quirks;   /* enum lite_cm_quirk of the sender's device */
} __packed;

/* What a peer must know of a device: see kernel/fabric/quirks.h. */
enum lite_cm_quirk {
	LITE_CM_REPEATS = 1,     /* it may send a message twice */
	LITE_CM_FETCH_APART = 2, /* it needs a queue pair for reads */
	LITE_CM_QUIRKS = 3,
};

/* The sender. Id 0 is a guest, which may only ATTACH, JOIN and ask for MEMBERS. */
struct lite_cm_ident {
	__le16 node;
	__le16 port;
	__le64 incarnation;
} __packed;

struct lite_cm_hello {
	struct lite_cm_hdr hdr;
	struct lite_cm_ident from;
	__u8 nonce[LITE_NONCE_SIZE];
} __packed;

struct lite_cm_challenge {
	struct lite_cm_hdr hdr;
	__u8 nonce[LITE_NONCE_SIZE];
	__u8 mac[LITE_MAC_SIZE];
} __packed;

struct lite_cm_connect {
	struct lite_cm_hdr hdr;
	struct lite_cm_ident from;
	__u8 nonce[LITE_NONCE_SIZE]; /* that of the hello */
	__u8 proof[LITE_PROOF_SIZE];
} __packed;

struct lite_cm_accept {
	struct lite_cm_hdr hdr;
	struct lite_cm_ident from;
	__le32 rkey;
	__le64 requests;             /* address of LITE_SLOT_COUNT slots */
	__le64 replies;              /* the same, for replies to the sender */
	__u8 mac[LITE_MAC_SIZE];
} __packed;

struct lite_cm_refuse {
	struct lite_cm_hdr hdr;
	__le32 error;                /* errno, positive */
} __packed;

/* RDMA CM has room for 56 bytes in a request, and for 148 in a reject. */
static_assert(sizeof(struct lite_cm_hello) == 36, "hello");
static_assert(sizeof(struct lite_cm_challenge) == 56, "challenge");
static_assert(sizeof(struct lite_cm_connect) == 52, "connect");
static_assert(sizeof(struct lite_cm_accept) == 72, "accept");
static_assert(sizeof(struct lite_cm_refuse) == 12, "refuse");

/*
 * Check received private data, which RDMA CM pads with zeroes, and set @kind. Return: 0; -EPROTO;
 * -EPROTONOSUPPORT for another protocol version.
 */
int lite_cm_check(const void *data, size_t len, enum lite_cm_kind *kind);

enum lite_call {
	LITE_CALL_PING = 1,
	LITE_CALL_ATTACH = 2,
	LITE_CALL_JOIN = 3,
	LITE_CALL_MEMBERS = 4,
	LITE_CALL_LEAVE = 5,
	LITE_CALL_NAME_DROP = 17,   /* a name has changed; a directory forgets LMR @id, if not 0 */
	LITE_CALL_NAME_FIND = 19,   /* asks a home; or a directory, which may be wrong */
	LITE_CALL_NAME_SYNC = 20,   /* a home has entered all its names */
	LITE_CALL_NAME_PROBE = 21,  /* asks a home, while the caller's claim is visible */
	LITE_CALL_NAME_ENTER = 23,  /* tells the directory */
	LITE_CALL_NAME_OPEN = 24,   /* asks the directory; maps the LMR if its home is there, too */
	LITE_CALL_LMR_CREATE = 32,
	LITE_CALL_LMR_MAP = 33,
	LITE_CALL_LMR_EXTENTS = 34,
	LITE_CALL_LMR_UNMAP = 35,
	LITE_CALL_LMR_FREE = 36,
	LITE_CALL_LMR_REVOKE = 37,
	LITE_CALL_LMR_STAT = 38,
	LITE_CALL_LMR_LIST = 39,
	LITE_CALL_LMR_GRANT = 40,
	LITE_CALL_LMR_GRANTS = 41,
	LITE_CALL_LMR_SETATTR = 42,
	LITE_CALL_LMR_RENAME = 43,
	LITE_CALL_LMR_RESIZE = 44,
	LITE_CALL_LMR_MOVE = 45,
	LITE_CALL_LMR_RECALL = 46,  /* to a mapper: map anew */
	LITE_CALL_LMR_AWAIT = 47,   /* wait until it is not being changed */
	LITE_CALL_MEM_ALLOC = 48,
	LITE_CALL_MEM_EXTENTS = 49,
	LITE_CALL_MEM_FREE = 50,
	LITE_CALL_MEM_COPY = 51,
	LITE_CALL_MEM_SESSION = 53,
	LITE_CALL_LMR_CHUNK = 54,
	LITE_CALL_LMR_ENDS = 55,
	LITE_CALL_OP_SET = 64,
	LITE_CALL_OP_COPY = 65,
	LITE_CALL_OP_COMPARE = 66,
	LITE_CALL_OP_CHECKSUM = 67,
	LITE_CALL_OP_ATOMIC = 68,
	LITE_CALL_OP_PREPARE = 69, /* map the ranges of a later OP_* */
	LITE_CALL_OP_PACK = 70,    /* many reads and writes: wire_pack.h */
	LITE_CALL_RPC_BIND = 72,   /* make a ring for a function */
	LITE_CALL_RPC_UNBIND = 73,
	LITE_CALL_RPC_CANCEL = 74, /* these calls were abandoned */
	LITE_CALL_RPC_FIND = 75,   /* what is that function? */
	LITE_CALL_RPC_GONE = 76,   /* to a client: it has no server now */
	LITE_CALL_LOCK_WAIT = 80,    /* to the home: request, or arrival at a barrier */
	LITE_CALL_LOCK_GRANT = 81,   /* from the home: granted, or an error */
	LITE_CALL_LOCK_RELEASE = 82, /* to the home: release, or give up */
	LITE_CALL_LOCK_PROBE = 83,   /* from the home: is it still held? */
};

/* The lane of a call; SHORT if it is unknown. */
enum lite_lane lite_call_lane(u16 call);

/* Nodes that may make a call: a guest, which has id 0; a member. */
#define LITE_BY_GUEST 1U
#define LITE_BY_MEMBER 2U
u32 lite_call_by(u16 call);

/* Heads every message; a reply repeats @call and @seq of its request. */
struct lite_wire_msg {
	__le32 magic;
	__u8 version;
	__u8 reserved0;
	__le16 call;
	__le32 length;   /* of the payload, bytes */
	__le32 error;    /* reply: errno, positive, 0 for success */
	__le64 seq;
	__le64 reserved;
} __packed;

static inline u32 lite_call_payload_max(u16 call)
{
	return lite_lane_bytes[lite_call_lane(call)] - LITE_SLOT_HEAD;
}

/* Entries that fit into a payload of LITE_PAYLOAD_MAX, behind its head. */
#define LITE_ENTRIES_MAX(head, entry)                                                              \
	((LITE_PAYLOAD_MAX - sizeof(struct head)) / sizeof(struct entry))

struct lite_wire_addr {
	__u8 ip[16];     /* IPv6, or IPv4 mapped into it */
	__le16 port;
	__le16 reserved;
} __packed;

struct lite_wire_qp {
	__le32 qpn;
	__le32 psn;
} __packed;

/* Data of the node that connects; the reply has those of the other node. */
struct lite_wire_attach {
	struct lite_wire_addr addr;
	__le32 rkey;
	__le64 requests;
	__le64 replies;
	__le16 node;
	__u8 nqps;       /* further queue pairs, in @qp */
	__u8 reserved;
	__le64 incarnation;
	struct lite_wire_qp qp[LITE_QPS_MAX];
} __packed;

struct lite_wire_ping {
	__le64 members;  /* digest of the member list */
} __packed;

struct lite_wire_join {
	struct lite_wire_addr addr;
	__le16 node;     /* id wanted, 0: any */
	__le16 reserved;
	__le64 incarnation;
} __packed;

struct lite_wire_join_reply {
	struct lite_wire_addr redirect; /* port 0: accepted */
	__le16 node;                    /* id given */
	__le16 reserved;
	__le64 incarnation;             /* to use; older ones look stale */
} __packed;

enum lite_member_flags {
	LITE_MEMBER_LEFT = 1 << 0,
	LITE_MEMBER_DOWN = 1 << 1,
	LITE_MEMBER_RESERVED = 1 << 2, /* for a joiner, with the incarnation promised to it */
};

struct lite_wire_member {
	struct lite_wire_addr addr;
	__le16 node;
	__le16 flags;    /* enum lite_member_flags */
	__le64 incarnation;
} __packed;

struct lite_wire_members {
	__le32 after;    /* request: ids above this */
} __packed;

struct lite_wire_members_reply {
	__le32 count;
	__le32 more;     /* 1: ask again after the last id */
	struct lite_wire_member member[];
} __packed;

#define LITE_MEMBERS_PER_REPLY LITE_ENTRIES_MAX(lite_wire_members_reply, lite_wire_member)

struct lite_wire_name_sync {
	__le64 reserved;
} __packed;

struct lite_wire_leave {
	__le16 node;
	__le16 reserved;
	__le64 incarnation;
} __packed;

struct lite_wire_cred {
	__le32 uid;
	__le32 gid;
	__le32 n_groups;
	__le32 groups[LITE_CRED_GROUPS];
} __packed;

struct lite_wire_name {
	__le32 home;     /* of DROP, PROBE: the caller, else -ESTALE */
	__le64 id;
	char name[LITE_NAME_SIZE];
} __packed;

struct lite_wire_name_reply {
	__le32 home;
	__le64 id;
} __packed;

/* Enter a name. It replaces the entry @was_home, @was_id, or one of a home that is down. */
struct lite_wire_name_enter {
	__le32 home;     /* the caller, else -ESTALE */
	__le64 id;
	char name[LITE_NAME_SIZE];
	__le32 was_home; /* 0: nothing */
	__le64 was_id;
	__le32 uid;      /* the LMR's owner; charged for the entry */
} __packed;

enum lite_wire_name_state {
	LITE_WIRE_NAME_FREE = 0,
	LITE_WIRE_NAME_BUSY = 1,  /* claimed, or an LMR is being created */
	LITE_WIRE_NAME_TAKEN = 2,
};

struct lite_wire_name_probe_reply {
	__le32 state;    /* enum lite_wire_name_state */
} __packed;

struct lite_wire_create {
	__le64 length;
	__le32 mode;
	__le32 map;      /* 1: map it for the caller as well */
	struct lite_wire_cred cred;
	__le32 n_nodes;
	__le32 nodes[LITE_SPREAD_MAX];
	char name[LITE_NAME_SIZE]; /* empty: anonymous */
} __packed;

struct lite_wire_map {
	__le64 id;       /* OPEN: 0 */
	__le32 rights;
	__le32 renew;    /* 1: grant those of @rights that are still allowed */
	struct lite_wire_cred cred;
	char name[LITE_NAME_SIZE]; /* name it must have; empty: any, but not for OPEN */
} __packed;

/* One node of an LMR. */
struct lite_wire_share {
	__le32 node;
	__le32 reserved;
	__le64 incarnation;
} __packed;

struct lite_wire_extent {
	__le64 addr;
	__le64 length_share; /* length << 8 | share */
} __packed;

/* Shares and first extents follow. A directory that is not the home sets only @id and @home. */
struct lite_wire_map_reply {
	__le64 id;
	__le64 length;
	__le32 n_extents; /* 0: it is unpinned, and mapped in chunks */
	__le32 n_shares;
	__le32 rights;   /* granted */
	__le32 anonymous;
	__le64 generation; /* changes whenever a RECALL is needed */
	__le32 n_told;   /* extents that follow, at most LITE_MAP_ENTRIES with the shares */
	__le32 home;
	__le64 of;       /* id of the LMR of which it is a chunk; 0: none */
	__le64 base;     /* its offset there */
	struct lite_wire_share share[];
} __packed;

static inline const struct lite_wire_extent *
lite_wire_map_extents(const struct lite_wire_map_reply *r)
{
	return (const struct lite_wire_extent *)(r->share + le32_to_cpu(r->n_shares));
}

struct lite_wire_extents {
	__le64 id;
	__le32 first;
	__le32 reserved;
} __packed;

struct lite_wire_extents_reply {
	__le32 count;
	__le32 reserved;
	struct lite_wire_extent extent[];
} __packed;

#define LITE_EXTENTS_PER_REPLY LITE_ENTRIES_MAX(lite_wire_extents_reply, lite_wire_extent)
/* Shares and extents, which have the same size, in a reply to MAP. */
#define LITE_MAP_ENTRIES LITE_ENTRIES_MAX(lite_wire_map_reply, lite_wire_extent)
static_assert(sizeof(struct lite_wire_share) == sizeof(struct lite_wire_extent), "share");

/* Maximum pages of a chunk: its extents fit into a reply, and a batch of a transfer into it. */
#define LITE_CHUNK_PAGES 64U

/* Map the chunk that has a byte of an unpinned LMR. The reply is LMR_MAP's, with all extents. */
struct lite_wire_chunk {
	__le64 id;     /* of the LMR */
	__le64 offset; /* of the byte */
	__le32 write;  /* 1: it must be writable */
	__le32 reserved;
} __packed;

/* LMR_REVOKE of several chunks at once. */
struct lite_wire_ends {
	__le32 count;
	__le32 reserved;
	__le64 chunk[]; /* ids of their LMRs */
} __packed;

/* What a slot of LITE_LANE_ENDS has room for. */
#define LITE_ENDS_PER_CALL 15U

static_assert(1 + LITE_CHUNK_PAGES <= LITE_MAP_ENTRIES, "chunk");

enum lite_wire_unmap_flags {
	LITE_UNMAP_UNCLEAN = 1 << 0, /* a failed operation may still be in flight */
	LITE_UNMAP_LAST = 1 << 1,    /* no handle is left at its creator: free it if anonymous */
};

struct lite_wire_unmap {
	__le64 id;
	__le32 count;    /* number of successful MAPs that it ends */
	__le32 flags;    /* enum lite_wire_unmap_flags */
} __packed;

/* All entries are for one LMR, or for chunks. */
struct lite_wire_unmaps {
	__le32 count;
	__le32 reserved;
	struct lite_wire_unmap unmap[];
} __packed;

#define LITE_UNMAPS_PER_CALL LITE_ENTRIES_MAX(lite_wire_unmaps, lite_wire_unmap)

/* Heads every request to change an LMR; alone, it is a request to free one. */
struct lite_wire_change {
	__le64 id;
	__le32 rights;   /* of the handle used; all: no handle, by name */
	__le32 reserved;
	struct lite_wire_cred cred;
	char name[LITE_NAME_SIZE]; /* that it must have; empty: any */
} __packed;

struct lite_wire_grant {
	__le32 uid;
	__le32 node;
	__le32 rights;
	__le32 reserved;
} __packed;

struct lite_wire_set_grant {
	struct lite_wire_change change;
	struct lite_wire_grant grant;
} __packed;

struct lite_wire_grants_reply {
	__le32 count;
	__le32 reserved;
	struct lite_wire_grant grant[];
} __packed;

struct lite_wire_setattr {
	struct lite_wire_change change;
	__le32 uid;      /* LITE_KEEP: do not change */
	__le32 gid;
	__le32 mode;
	__le32 reserved;
} __packed;

struct lite_wire_rename {
	struct lite_wire_change change;
	char name[LITE_NAME_SIZE];
} __packed;

struct lite_wire_resize {
	struct lite_wire_change change;
	__le64 length;
} __packed;

struct lite_wire_move {
	struct lite_wire_change change;
	__le64 offset;   /* bytes */
	__le64 length;   /* 0: up to the end */
	__le32 node;
	__le32 later;    /* 1: not the first step: no -ERANGE if it has shrunk */
} __packed;

struct lite_wire_move_reply {
	__le64 next;     /* all requested bytes before this offset are moved */
	__le64 length;   /* of the LMR */
} __packed;

struct lite_wire_id {
	__le64 id;
} __packed;

struct lite_wire_lmr {
	__le64 id;
	__le64 length;
	__le32 uid;
	__le32 gid;
	__le32 mode;
	__le32 n_extents;
	__le32 n_shares;
	__le32 n_mappers;
	char name[LITE_NAME_SIZE];
} __packed;

struct lite_wire_stat_reply {
	struct lite_wire_lmr lmr;
	__le32 nodes[LITE_SPREAD_MAX];
} __packed;

struct lite_wire_list {
	__le64 after;    /* ids above this */
	__le32 max;      /* maximum number of entries, not 0 */
	__le32 reserved;
} __packed;

struct lite_wire_list_reply {
	__le32 count;
	__le32 more;
	struct lite_wire_lmr lmr[];
} __packed;

#define LITE_LMRS_PER_REPLY LITE_ENTRIES_MAX(lite_wire_list_reply, lite_wire_lmr)

struct lite_wire_mem_alloc {
	__le64 lmr;      /* id at the home, which is the caller */
	__le64 length;
	__le32 uid;      /* user to charge */
	__le32 reserved;
} __packed;

struct lite_wire_mem_alloc_reply {
	__le64 id;
	__le32 n_extents;
	__le32 reserved;
} __packed;

/* Fence these nodes from the memory of the store, and then free an allocation, or none. */
struct lite_wire_mem_free {
	__le64 id;       /* 0: none */
	__le32 n_fences;
	__le32 fence_all;
	__le32 fence[];  /* node ids */
} __packed;

/* Copy part of an allocation to other memory of the same home. */
struct lite_wire_mem_copy {
	__le64 id;       /* of the source */
	__le64 offset;   /* in it, bytes */
	__le32 node;     /* of the destination */
	__le32 count;
	__le64 session;  /* session to use with it; 0: same node */
	__le64 to;       /* id of the destination there */
	struct lite_wire_extent extent[];
} __packed;

/* Which session does a store have with the node to which it is to copy? */
struct lite_wire_mem_session {
	__le32 node;
	__le32 reserved;
	__le64 incarnation;
} __packed;

struct lite_wire_mem_session_reply {
	__le64 session;
} __packed;

#define LITE_COPY_EXTENTS_MAX LITE_ENTRIES_MAX(lite_wire_mem_copy, lite_wire_extent)

/* Maximum number of node ids: they fit into a payload, and a home may search them under a lock. */
#define LITE_FENCES_MAX 128U

/* A part of an LMR, as memory operations name it. */
struct lite_wire_range {
	__le64 id;          /* of the LMR at its home; 0: there is no range */
	__le64 incarnation; /* of the home that gave the id */
	__le64 generation;  /* of the LMR, when it was checked */
	__le64 offset;
	__le32 home;
	__le32 reserved;
} __packed;

enum lite_wire_op_flags {
	LITE_WIRE_OP_BACKWARD = 1 << 0, /* COPY: the last bytes first */
	LITE_WIRE_OP_CAREFUL = 1 << 1,  /* use small packets */
};

/* Sent to the node with the bytes (of @from for COPY, else of @range), which may do only a part. */
struct lite_wire_op {
	struct lite_wire_range range;
	struct lite_wire_range from; /* COPY, COMPARE; optional in PREPARE */
	__le64 length;
	__le64 operand; /* SET: pattern; CHECKSUM: seed; ATOMIC: operand */
	__le32 arg;     /* SET: pattern length; ATOMIC, PREPARE: opcode */
	__le32 flags;   /* enum lite_wire_op_flags */
} __packed;

enum lite_wire_op_status {
	LITE_WIRE_OP_OK,        /* success, or @error */
	LITE_WIRE_OP_DIFFERENT, /* COMPARE: the bytes at @done differ */
	LITE_WIRE_OP_UNMAPPED,  /* the caller has to PREPARE first */
	LITE_WIRE_OP_ELSEWHERE, /* this node does not hold these bytes */
	LITE_WIRE_OP_BUSY,      /* ATOMIC: lost all races */
};

struct lite_wire_op_reply {
	__le64 done;    /* bytes, from the end if BACKWARD */
	__le64 value;   /* CHECKSUM: so far; ATOMIC: old value */
	__le32 error;   /* after @done bytes: errno, positive */
	__le32 status;  /* enum lite_wire_op_status, at @done */
} __packed;

static_assert(sizeof(struct lite_wire_msg) == 32, "msg");
static_assert(sizeof(struct lite_wire_mem_free) + LITE_FENCES_MAX * sizeof(__le32) <=
		      LITE_PAYLOAD_MAX, "fences");
static_assert(sizeof(struct lite_wire_attach) == 84, "attach");
static_assert(sizeof(struct lite_wire_create) <= LITE_PAYLOAD_MAX, "create");
static_assert(sizeof(struct lite_wire_map_reply) <= LITE_PAYLOAD_MAX, "map");
static_assert(sizeof(struct lite_wire_lmr) == 296, "lmr");
static_assert(sizeof(struct lite_wire_rename) <= LITE_PAYLOAD_MAX, "rename");
static_assert(LITE_ENTRIES_MAX(lite_wire_grants_reply, lite_wire_grant) >= LITE_GRANTS_MAX, "acl");

/*
 * Check a copy, out of the peer's reach, of the header of a message, the payload of a request, or
 * that of a successful reply: sizes, counts against sizes, NUL of names, bits that must be 0.
 * Handlers check the meaning. Return: 0; -EPROTO; -EOPNOTSUPP: a request of an unknown call.
 */
int lite_wire_msg_check(const struct lite_wire_msg *msg);
int lite_wire_request_check(u16 call, const void *payload, size_t len);
int lite_wire_reply_check(u16 call, const void *payload, size_t len);

/* The errno of a reply; -EIO if it has a meaning within this kernel or between it and its users. */
static inline int lite_wire_error(u32 error)
{
	if (error > EHWPOISON || error == EAGAIN || error == EBADMSG || error == EINPROGRESS)
		return -EIO;
	return -(int)error;
}

/*
 * The same for a peer's reason to refuse a connection. -ETIMEDOUT and -EINTR, which only this node
 * can know, become -EIO, too, and 0 becomes -EPROTO.
 */
int lite_wire_refusal(u32 error);

/* Read credentials that lite_wire_request_check() has checked. */
void lite_wire_cred_get(struct lite_cred *cred, const struct lite_wire_cred *w);
void lite_wire_cred_put(struct lite_wire_cred *w, const struct lite_cred *cred);

/* An extent's length and share in one word: there are fewer than 256 shares. */
static inline __le64 lite_wire_length_share(u64 length, u32 share)
{
	return cpu_to_le64(length << 8 | share);
}

#endif /* _LITE_WIRE_H */
