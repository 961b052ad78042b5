// SPDX-License-Identifier: GPL-2.0
/*
 * The format of each call: a row of lite_calls[]. Rules in the row check single fields. A function
 * checks what depends on several, in a payload of the right size that has passed the rules.
 */
#include "core/handle.h"
#include "core/lockword.h"
#include "core/memop_rules.h"
#include "core/name.h"
#include "core/ring.h"
#include "imm.h"
#include "wire.h"
#include "wire_pack.h"
#include "wire_rpc.h"

#define LITE_ERRNO_MAX 4095U

struct lite_payload {
	const void *data;
	size_t len;
	u32 arg; /* lite_form.arg */
};

enum lite_rule_kind {
	LITE_RULE_END = 0,
	LITE_RULE_NUMBER, /* from @min to @max */
	LITE_RULE_BITS,   /* no other bits than those of @max */
	LITE_RULE_KEEP,   /* BITS, or LITE_KEEP */
	LITE_RULE_NAME,   /* a name, of at least @min bytes (0 or 1) */
	LITE_RULE_PART,   /* a structure with the rules @part */
};

/* What may be in a field. */
struct lite_rule {
	u8 kind;  /* enum lite_rule_kind */
	u16 size; /* bytes of the field; at most 8 for a number */
	u16 at;   /* its offset */
	u64 min;
	u64 max;
	const struct lite_rule *part;
};

/* The format of a payload. */
struct lite_form {
	u16 size;  /* bytes, without entries */
	bool open; /* entries follow that only @ok can check */
	u16 count; /* offset of the number of entries, which is from @min to @max */
	u16 each;  /* bytes per entry; 0: there are none */
	u16 min;
	u16 max;
	const struct lite_rule *rules; /* of its fields, or NULL */
	const struct lite_rule *entry; /* of the fields of each entry, or NULL */
	bool (*ok)(const struct lite_payload *p); /* checks the rest, or NULL */
	u32 arg; /* for @ok */
};

struct lite_call_row {
	u8 lane; /* enum lite_lane */
	u8 by;   /* nodes that may make the call, LITE_BY_* */
	struct lite_form request;
	struct lite_form reply; /* if successful */
};

int lite_cm_check(const void *data, size_t len, enum lite_cm_kind *kind)
{
	static const size_t size[] = {
		[LITE_CM_HELLO] = sizeof(struct lite_cm_hello),
		[LITE_CM_CHALLENGE] = sizeof(struct lite_cm_challenge),
		[LITE_CM_CONNECT] = sizeof(struct lite_cm_connect),
		[LITE_CM_ACCEPT] = sizeof(struct lite_cm_accept),
		[LITE_CM_REFUSE] = sizeof(struct lite_cm_refuse),
	};
	const struct lite_cm_hdr *hdr = data;

	if (!data || len < sizeof(*hdr) || le32_to_cpu(hdr->magic) != LITE_WIRE_MAGIC)
		return -EPROTO;
	if (hdr->version != LITE_WIRE_VERSION)
		return -EPROTONOSUPPORT;
	if (hdr->kind < LITE_CM_HELLO || hdr->kind > LITE_CM_REFUSE || len < size[hdr->kind] ||
	    hdr->quirks & ~LITE_CM_QUIRKS || !hdr->nqps || hdr->nqps > LITE_QPS_MAX)
		return -EPROTO;
	*kind = (enum lite_cm_kind)hdr->kind;
	return 0;
}

static bool lite_map_reply_ok(const struct lite_payload *p)
{
	const struct lite_wire_map_reply *r = p->data;
	u64 length = le64_to_cpu(r->length);
	u32 extents = le32_to_cpu(r->n_extents);
	u32 told = le32_to_cpu(r->n_told);
	u32 n = le32_to_cpu(r->n_shares);
	u32 i;

	if (p->len != sizeof(*r) + (n + told) * sizeof(r->share[0]) || !r->id ||
	    le64_to_cpu(r->id) > LITE_LMR_ID_MAX)
		return false;
	for (i = 0; i < n; i++) {
		if (r->share[i].reserved)
			return false;
	}
	if (!r->of && r->base)
		return false;
	/* An unpinned LMR is stored by its home only, and is no chunk. */
	if (!extents && (n > 1 || r->of))
		return false;
	return told <= extents && length &&
	       extents <= (length + LITE_PAGE_SIZE - 1) / LITE_PAGE_SIZE;
}

static bool lite_open_reply_ok(const struct lite_payload *p)
{
	const struct lite_wire_map_reply *r = p->data;

	/* The reply of a directory that is not the home. */
	if (!r->n_shares)
		return p->len == sizeof(*r) && !r->n_told && !r->length && !r->n_extents &&
		       !r->rights && !r->base;
	return lite_map_reply_ok(p);
}

static bool lite_chunk_reply_ok(const struct lite_payload *p)
{
	const struct lite_wire_map_reply *r = p->data;

	return r->n_told == r->n_extents && lite_map_reply_ok(p);
}

static bool lite_op_has_ranges(const struct lite_wire_op *op, u32 n)
{
	return lite_wire_range_ok(&op->range) &&
	       (n == 2 ? lite_wire_range_ok(&op->from) :
			 !op->from.id && !op->from.home && !op->from.reserved);
}

/* @arg: its ranges. */
static bool lite_op_ok(const struct lite_payload *p)
{
	return lite_op_has_ranges(p->data, p->arg);
}

static bool lite_op_set_ok(const struct lite_payload *p)
{
	const struct lite_wire_op *op = p->data;

	return lite_op_ok(p) &&
	       !lite_pattern_check(le64_to_cpu(op->operand), le32_to_cpu(op->arg));
}

/* One or two ranges, and the opcode of an atomic or none. */
static bool lite_op_prepare_ok(const struct lite_payload *p)
{
	const struct lite_wire_op *op = p->data;

	return (!op->arg || le32_to_cpu(op->arg) >= LITE_OP_SWAP) &&
	       lite_op_has_ranges(op, op->from.id ? 2 : 1);
}

/* @arg: the status that only this operation has, or LITE_WIRE_OP_OK. */
static bool lite_op_reply_ok(const struct lite_payload *p)
{
	const struct lite_wire_op_reply *r = p->data;
	u32 status = le32_to_cpu(r->status);

	if (status == LITE_WIRE_OP_OK)
		return le32_to_cpu(r->error) <= LITE_ERRNO_MAX;
	return !r->error && (status == LITE_WIRE_OP_UNMAPPED || status == LITE_WIRE_OP_ELSEWHERE ||
			     status == p->arg);
}

static bool lite_lock_wait_ok(const struct lite_payload *p)
{
	const struct lite_wire_lock *l = p->data;
	u32 arg = le32_to_cpu(l->arg);

	/* An arrival at a barrier. */
	if (l->n)
		return !(arg & ~LITE_WIRE_LOCK_AGAIN) && !l->value;
	return !(arg & ~(LITE_WIRE_LOCK_SHARED | LITE_WIRE_LOCK_TRY));
}

static bool lite_pack_ok(const struct lite_payload *p)
{
	const struct lite_wire_pack *w = p->data;
	u32 n_ranges = le32_to_cpu(w->n_ranges);
	u32 n_ops = le32_to_cpu(w->n_ops);
	const struct lite_wire_pack_op *op;
	size_t out;
	u32 i, in = 0;

	if (!n_ranges || n_ranges > LITE_PACK_RANGES || !n_ops || n_ops > LITE_PACK_OPS)
		return false;
	out = sizeof(*w) + n_ranges * sizeof(struct lite_wire_range) + n_ops * sizeof(*op);
	if (p->len < out)
		return false;
	for (i = 0; i < n_ranges; i++) {
		const struct lite_wire_range *r = &lite_wire_pack_ranges(w)[i];

		if (!lite_wire_range_ok(r) || r->offset)
			return false;
	}
	op = lite_wire_pack_ops(w);
	for (i = 0; i < n_ops; i++, op++) {
		u32 length = le16_to_cpu(op->length);

		if (!length || length > LITE_PACK_BYTES || op->range >= n_ranges || op->write > 1)
			return false;
		if (op->write)
			out += length;
		else
			in += length;
	}
	return p->len == out && in <= LITE_PACK_IN_MAX;
}

static bool lite_pack_reply_ok(const struct lite_payload *p)
{
	const struct lite_wire_pack_reply *r = p->data;
	u32 error = le32_to_cpu(r->error);
	u32 status = le32_to_cpu(r->status);

	if (r->reserved)
		return false;
	if (!error && status == LITE_WIRE_OP_OK)
		return !r->at;
	/* Either an error or a status, and no bytes. */
	if (p->len != sizeof(*r) || le32_to_cpu(r->at) >= LITE_PACK_OPS)
		return false;
	if (error)
		return error <= LITE_ERRNO_MAX && status == LITE_WIRE_OP_OK;
	return status == LITE_WIRE_OP_UNMAPPED || status == LITE_WIRE_OP_ELSEWHERE;
}

static bool lite_rpc_find_ok(const struct lite_payload *p)
{
	const struct lite_wire_rpc_find *f = p->data;

	/* Either a number or a name. */
	if (!f->name[0])
		return f->function && le32_to_cpu(f->function) <= LITE_FUNCTION_MAX;
	return !f->function && lite_function_name_check(f->name) >= 0;
}

static bool lite_rpc_bind_reply_ok(const struct lite_payload *p)
{
	const struct lite_wire_rpc_bind_reply *r = p->data;
	u32 n = le32_to_cpu(r->n_chunks);
	u32 bytes = le32_to_cpu(r->chunk_bytes);
	u32 most = lite_rpc_body_max(le32_to_cpu(r->func.max_request),
				     le32_to_cpu(r->func.max_reply));

	/* Chunks are whole pages and hold the longest record; every unit has a number. */
	return bytes && !(bytes % LITE_PAGE_SIZE) && bytes >= LITE_RPC_HEADER + most &&
	       bytes <= LITE_RING_UNITS_MAX * LITE_RING_UNIT / n;
}

#define FIELD(k, type, ...)                                                    \
	.kind = LITE_RULE_##k,                                                 \
	.at = offsetof(struct lite_wire_##type, __VA_ARGS__),                  \
	.size = sizeof_field(struct lite_wire_##type, __VA_ARGS__)
#define NUMBER(type, field, least, most)                                       \
	{ FIELD(NUMBER, type, field), .min = least, .max = most }
#define UPTO(type, field, most) NUMBER(type, field, 0, most)
#define NONZERO(type, field) NUMBER(type, field, 1, U64_MAX)
#define ZERO(type, field) NUMBER(type, field, 0, 0)
#define LENGTH(type) NUMBER(type, length, 1, LITE_LMR_SIZE_MAX)
#define BITS(type, field, bits) { FIELD(BITS, type, field), .max = bits }
#define KEEP(type, field, bits) { FIELD(KEEP, type, field), .max = bits }
/* A name. NAME0: it may be empty. */
#define NAME(type) { FIELD(NAME, type, name), .min = 1 }
#define NAME0(type) { FIELD(NAME, type, name) }
#define CRED(type) UPTO(type, cred.n_groups, LITE_CRED_GROUPS)
#define PART(type, field, of) { FIELD(PART, type, field), .part = of }
#define END { .kind = LITE_RULE_END }

#define RULES(...) .rules = (const struct lite_rule[]){ __VA_ARGS__, END }
#define EACH(...) .entry = (const struct lite_rule[]){ __VA_ARGS__, END }
/* Entries that are numbers. */
#define VALUES(bytes, least, most)                                                                 \
	EACH({ .kind = LITE_RULE_NUMBER, .size = bytes, .min = least, .max = most })
#define ENTRIES(type, n, field, least, most)                                   \
	.count = offsetof(struct lite_wire_##type, n),                         \
	.each = sizeof_field(struct lite_wire_##type, field[0]),               \
	.min = least, .max = most

#define NONE { .size = 0 }
#define PLAIN(type) { .size = sizeof(struct lite_wire_##type) }
#define FORM(type, ...) { .size = sizeof(struct lite_wire_##type), __VA_ARGS__ }

#define CALL(name, in, req, rep)                                                                   \
	[LITE_CALL_##name] = { .lane = LITE_LANE_##in, .by = LITE_BY_MEMBER,                       \
			       .request = req, .reply = rep }
#define CALL_BY(nodes, name, in, req, rep)                                                         \
	[LITE_CALL_##name] = { .lane = LITE_LANE_##in, .by = nodes, .request = req, .reply = rep }

/* clang-format off */
static const struct lite_rule lite_change_rules[] = {
	ZERO(change, reserved), BITS(change, rights, LITE_RIGHTS_ALL), CRED(change),
	NAME0(change), END
};

static const struct lite_rule lite_grant_rules[] = {
	ZERO(grant, reserved), BITS(grant, rights, LITE_RIGHTS_ALL),
	UPTO(grant, node, LITE_NODE_ID_MAX), END
};

static const struct lite_rule lite_lmr_rules[] = {
	NUMBER(lmr, id, 1, LITE_LMR_ID_MAX), UPTO(lmr, n_shares, LITE_SPREAD_MAX), NAME0(lmr), END
};

static const struct lite_rule lite_claim_rules[] = {
	NONZERO(lock, id), BITS(lock, offset, ~7ULL),
	NUMBER(lock, ticket, 1, LITE_TICKET_MAX), END
};

static const struct lite_rule lite_func_rules[] = {
	NONZERO(rpc_func, cookie), NUMBER(rpc_func, function, 1, LITE_FUNCTION_MAX),
	BITS(rpc_func, mode, LITE_MODE_MASK), UPTO(rpc_func, max_request, LITE_RPC_BULK_MAX),
	UPTO(rpc_func, max_reply, LITE_RPC_BULK_MAX), UPTO(rpc_func, squash, 1),
	ZERO(rpc_func, reserved), END
};

/* Any payload with @reserved 0. */
#define ANY(type) FORM(type, RULES(ZERO(type, reserved)))
#define ATTACH                                                                                     \
	FORM(attach, RULES(ZERO(attach, addr.reserved), ZERO(attach, reserved),                    \
			   UPTO(attach, nqps, LITE_QPS_MAX - 1)))
#define NAMED FORM(name, RULES(NAME(name)))
#define CHANGE(type, ...)                                                                          \
	FORM(type, RULES(PART(type, change, lite_change_rules), __VA_ARGS__))
/* Only LMR_CHUNK and LMR_MAP map chunks (@of): no handle or name stands for one. */
#define MAPPED(check, ...)                                                                         \
	FORM(map_reply, .open = true,                                                              \
	     RULES(UPTO(map_reply, length, LITE_LMR_SIZE_MAX), UPTO(map_reply, anonymous, 1),      \
		   UPTO(map_reply, n_told, LITE_MAP_ENTRIES),                                      \
		   UPTO(map_reply, base, LITE_LMR_SIZE_MAX),                                       \
		   BITS(map_reply, rights, LITE_RIGHTS_ALL), __VA_ARGS__),                         \
	     .ok = check)
#define EXTENTS                                                                                    \
	FORM(extents_reply, RULES(ZERO(extents_reply, reserved)),                                  \
	     ENTRIES(extents_reply, count, extent, 1, LITE_EXTENTS_PER_REPLY))
#define OP(ranges, check, bits, ...)                                                               \
	FORM(op, RULES(NONZERO(op, length), BITS(op, flags, bits), __VA_ARGS__),                   \
	     .ok = check, .arg = ranges)
#define OP_REPLY(status) FORM(op_reply, .ok = lite_op_reply_ok, .arg = status)
#define LOCK(...)                                                                                  \
	FORM(lock, RULES(PART(lock, id, lite_claim_rules), ZERO(lock, value), ZERO(lock, n),       \
			 __VA_ARGS__))

/* The handler is no part of a row, but registered by its layer: this file is below all of them. */
static const struct lite_call_row lite_calls[] = {
	CALL(PING, SHORT, PLAIN(ping), PLAIN(ping)),
	CALL_BY(LITE_BY_GUEST | LITE_BY_MEMBER, ATTACH, SHORT, ATTACH, ATTACH),
	CALL_BY(LITE_BY_GUEST, JOIN, SHORT,
		FORM(join, RULES(ZERO(join, addr.reserved), ZERO(join, reserved))),
		FORM(join_reply, RULES(ZERO(join_reply, redirect.reserved),
				       ZERO(join_reply, reserved)))),
	CALL_BY(LITE_BY_GUEST | LITE_BY_MEMBER, MEMBERS, SHORT, PLAIN(members),
		FORM(members_reply, RULES(UPTO(members_reply, more, 1)),
		     ENTRIES(members_reply, count, member, 0, LITE_MEMBERS_PER_REPLY))),
	CALL(LEAVE, SHORT, ANY(leave), NONE),
	CALL(NAME_DROP, SHORT, NAMED, NONE),
	CALL(NAME_FIND, SHORT, NAMED, PLAIN(name_reply)),
	CALL(NAME_SYNC, SHORT, ANY(name_sync), NONE),
	CALL(NAME_PROBE, SHORT, NAMED,
	     FORM(name_probe_reply, RULES(UPTO(name_probe_reply, state, LITE_WIRE_NAME_TAKEN)))),
	CALL(NAME_ENTER, SHORT, FORM(name_enter, RULES(NAME(name_enter))), PLAIN(name_reply)),
	CALL(NAME_OPEN, SHORT,
	     FORM(map, RULES(ZERO(map, id), ZERO(map, renew), NAME(map), CRED(map),
			     BITS(map, rights, LITE_RIGHTS_ALL))),
	     MAPPED(lite_open_reply_ok, UPTO(map_reply, n_shares, LITE_SPREAD_MAX),
		    ZERO(map_reply, of))),
	CALL(LMR_CREATE, CALLER,
	     FORM(create, RULES(NUMBER(create, n_nodes, 1, LITE_SPREAD_MAX), UPTO(create, map, 1),
				LENGTH(create), BITS(create, mode, LITE_MODE_MASK),
				NAME0(create), CRED(create))),
	     MAPPED(lite_map_reply_ok, NUMBER(map_reply, n_shares, 1, LITE_SPREAD_MAX),
		    ZERO(map_reply, of))),
	CALL(LMR_MAP, SHORT,
	     FORM(map, RULES(UPTO(map, renew, 1), NAME0(map), CRED(map),
			     BITS(map, rights, LITE_RIGHTS_ALL))),
	     MAPPED(lite_map_reply_ok, NUMBER(map_reply, n_shares, 1, LITE_SPREAD_MAX))),
	CALL(LMR_EXTENTS, SHORT, ANY(extents), EXTENTS),
	CALL(LMR_UNMAP, CALLER,
	     FORM(unmaps, RULES(ZERO(unmaps, reserved)),
		  ENTRIES(unmaps, count, unmap, 1, LITE_UNMAPS_PER_CALL),
		  EACH(BITS(unmap, flags, LITE_UNMAP_UNCLEAN | LITE_UNMAP_LAST))), NONE),
	CALL(LMR_FREE, CALLER, FORM(change, RULES(PART(change, id, lite_change_rules))), NONE),
	CALL(LMR_REVOKE, REVOKE, PLAIN(id), NONE),
	CALL(LMR_STAT, SHORT, PLAIN(id),
	     FORM(stat_reply, RULES(PART(stat_reply, lmr, lite_lmr_rules)))),
	CALL(LMR_LIST, SHORT, FORM(list, RULES(NONZERO(list, max), ZERO(list, reserved))),
	     FORM(list_reply, RULES(UPTO(list_reply, more, 1)),
		  ENTRIES(list_reply, count, lmr, 0, LITE_LMRS_PER_REPLY),
		  .entry = lite_lmr_rules)),
	CALL(LMR_GRANT, CALLER, CHANGE(set_grant, PART(set_grant, grant, lite_grant_rules)), NONE),
	CALL(LMR_GRANTS, SHORT, PLAIN(id),
	     FORM(grants_reply, RULES(ZERO(grants_reply, reserved)),
		  ENTRIES(grants_reply, count, grant, 0, LITE_GRANTS_MAX),
		  .entry = lite_grant_rules)),
	CALL(LMR_SETATTR, CALLER,
	     CHANGE(setattr, KEEP(setattr, mode, LITE_MODE_MASK), ZERO(setattr, reserved)), NONE),
	CALL(LMR_RENAME, CALLER, CHANGE(rename, NAME(rename)), NONE),
	CALL(LMR_RESIZE, CALLER, CHANGE(resize, LENGTH(resize)), NONE),
	CALL(LMR_MOVE, CALLER,
	     CHANGE(move, UPTO(move, later, 1), UPTO(move, length, LITE_LMR_SIZE_MAX),
		    UPTO(move, offset, LITE_LMR_SIZE_MAX)),
	     PLAIN(move_reply)),
	CALL(LMR_RECALL, REVOKE, PLAIN(id), NONE),
	CALL(LMR_AWAIT, AWAIT, PLAIN(id), NONE),
	CALL(MEM_ALLOC, ALLOC,
	     FORM(mem_alloc, RULES(LENGTH(mem_alloc), ZERO(mem_alloc, reserved))),
	     FORM(mem_alloc_reply, RULES(NONZERO(mem_alloc_reply, n_extents),
					 ZERO(mem_alloc_reply, reserved)))),
	CALL(MEM_EXTENTS, SHORT, ANY(extents), EXTENTS),
	CALL(MEM_FREE, REVOKE,
	     FORM(mem_free, RULES(UPTO(mem_free, fence_all, 1)),
		  ENTRIES(mem_free, n_fences, fence, 0, LITE_FENCES_MAX)), NONE),
	/* Extents are not empty: the length is above the 8 bits of the share. */
	CALL(MEM_COPY, ALLOC,
	     FORM(mem_copy, ENTRIES(mem_copy, count, extent, 1, LITE_COPY_EXTENTS_MAX),
		  EACH(NUMBER(extent, length_share, 1 << 8, U64_MAX))), NONE),
	CALL(LMR_CHUNK, ALLOC, FORM(chunk, RULES(UPTO(chunk, write, 1), ZERO(chunk, reserved))),
	     MAPPED(lite_chunk_reply_ok, NUMBER(map_reply, n_shares, 1, 1),
		    NONZERO(map_reply, of))),
	CALL(LMR_ENDS, ENDS,
	     FORM(ends, RULES(ZERO(ends, reserved)),
		  ENTRIES(ends, count, chunk, 1, LITE_ENDS_PER_CALL)), NONE),
	CALL(MEM_SESSION, SHORT, ANY(mem_session), PLAIN(mem_session_reply)),
	CALL(OP_SET, WORK,
	     OP(1, lite_op_set_ok, LITE_WIRE_OP_CAREFUL, NUMBER(op, arg, 1, LITE_PATTERN_MAX)),
	     OP_REPLY(LITE_WIRE_OP_OK)),
	CALL(OP_COPY, WORK,
	     OP(2, lite_op_ok, LITE_WIRE_OP_CAREFUL | LITE_WIRE_OP_BACKWARD, ZERO(op, arg)),
	     OP_REPLY(LITE_WIRE_OP_OK)),
	CALL(OP_COMPARE, WORK, OP(2, lite_op_ok, LITE_WIRE_OP_CAREFUL, ZERO(op, arg)),
	     OP_REPLY(LITE_WIRE_OP_DIFFERENT)),
	CALL(OP_CHECKSUM, WORK,
	     OP(1, lite_op_ok, LITE_WIRE_OP_CAREFUL, ZERO(op, arg), UPTO(op, operand, (u32)~0U)),
	     OP_REPLY(LITE_WIRE_OP_OK)),
	CALL(OP_ATOMIC, WORK,
	     OP(1, lite_op_ok, LITE_WIRE_OP_CAREFUL,
		NUMBER(op, arg, LITE_OP_SWAP, LITE_OP_FETCH_OR)),
	     OP_REPLY(LITE_WIRE_OP_BUSY)),
	CALL(OP_PREPARE, AWAIT, OP(0, lite_op_prepare_ok, 0, UPTO(op, arg, LITE_OP_FETCH_OR)),
	     NONE),
	CALL(OP_PACK, WORK, FORM(pack, .open = true, .ok = lite_pack_ok),
	     FORM(pack_reply, .open = true, .ok = lite_pack_reply_ok)),
	CALL(RPC_BIND, ALLOC,
	     FORM(rpc_bind, RULES(NUMBER(rpc_bind, function, 1, LITE_FUNCTION_MAX),
				  ZERO(rpc_bind, reserved))),
	     FORM(rpc_bind_reply,
		  RULES(PART(rpc_bind_reply, func, lite_func_rules),
			UPTO(rpc_bind_reply, ring, LITE_IMM_RING_MAX),
			NUMBER(rpc_bind_reply, depth, 1, LITE_RPC_DEPTH)),
		  ENTRIES(rpc_bind_reply, n_chunks, chunk, 1, LITE_RPC_CHUNKS_MAX),
		  VALUES(sizeof(__le64), 1, U64_MAX), .ok = lite_rpc_bind_reply_ok)),
	CALL(RPC_UNBIND, SHORT, ANY(rpc_unbind), NONE),
	CALL(RPC_CANCEL, SHORT,
	     FORM(rpc_cancel, RULES(ZERO(rpc_cancel, reserved)),
		  ENTRIES(rpc_cancel, count, which, 1, LITE_RPC_CANCELS_MAX)),
	     FORM(rpc_cancel_reply, RULES(ZERO(rpc_cancel_reply, reserved)),
		  ENTRIES(rpc_cancel_reply, count, cancelled, 0, LITE_RPC_CANCELS_MAX),
		  VALUES(sizeof(__le32), 0, LITE_RPC_CANCELLED))),
	CALL(RPC_FIND, SHORT,
	     FORM(rpc_find, RULES(ZERO(rpc_find, reserved)), .ok = lite_rpc_find_ok),
	     FORM(rpc_func, RULES(PART(rpc_func, cookie, lite_func_rules)))),
	CALL(RPC_GONE, SHORT, ANY(rpc_unbind), NONE),
	CALL(LOCK_WAIT, SHORT,
	     FORM(lock, RULES(PART(lock, id, lite_claim_rules), UPTO(lock, n, LITE_BARRIER_MAX)),
		  .ok = lite_lock_wait_ok), NONE),
	CALL(LOCK_GRANT, SHORT, LOCK(ZERO(lock, uid), UPTO(lock, arg, LITE_ERRNO_MAX)), NONE),
	CALL(LOCK_RELEASE, SHORT, LOCK(UPTO(lock, arg, LITE_LOCK_UNUSED)), NONE),
	CALL(LOCK_PROBE, SHORT, LOCK(ZERO(lock, uid), ZERO(lock, arg)),
	     FORM(lock_probe_reply, RULES(UPTO(lock_probe_reply, end, LITE_LOCK_UNUSED),
					  ZERO(lock_probe_reply, reserved)))),
};

/* clang-format on */

/* The row of an unknown call has no request size. */
static const struct lite_call_row *lite_call_row(u16 call)
{
	static const struct lite_call_row unknown = { .lane = LITE_LANE_SHORT,
						      .by = LITE_BY_MEMBER };

	if (call >= ARRAY_SIZE(lite_calls) || !lite_calls[call].request.size)
		return &unknown;
	return &lite_calls[call];
}

enum lite_lane lite_call_lane(u16 call)
{
	return (enum lite_lane)lite_call_row(call)->lane;
}

u32 lite_call_by(u16 call)
{
	return lite_call_row(call)->by;
}

int lite_wire_msg_check(const struct lite_wire_msg *msg)
{
	if (le32_to_cpu(msg->magic) != LITE_WIRE_MAGIC || msg->version != LITE_WIRE_VERSION ||
	    msg->reserved0 || msg->reserved || le32_to_cpu(msg->error) > LITE_ERRNO_MAX ||
	    le32_to_cpu(msg->length) > lite_call_payload_max(le16_to_cpu(msg->call)))
		return -EPROTO;
	return 0;
}

static bool lite_rules_ok(const struct lite_rule *rule, const u8 *data)
{
	for (; rule && rule->kind; rule++) {
		const u8 *at = data + rule->at;
		__le64 raw = 0;
		u64 value;
		bool ok;

		memcpy(&raw, at, rule->size < sizeof(raw) ? rule->size : sizeof(raw));
		value = le64_to_cpu(raw);
		switch (rule->kind) {
		case LITE_RULE_NUMBER:
			ok = value >= rule->min && value <= rule->max;
			break;
		case LITE_RULE_KEEP:
			ok = value == LITE_KEEP || !(value & ~rule->max);
			break;
		case LITE_RULE_BITS:
			ok = !(value & ~rule->max);
			break;
		case LITE_RULE_NAME:
			ok = (!rule->min && !*at) ||
			     lite_name_check((const char *)at, LITE_NAME_SIZE) >= 0;
			break;
		default:
			ok = lite_rules_ok(rule->part, at);
		}
		if (!ok)
			return false;
	}
	return true;
}

static bool lite_form_ok(const struct lite_form *f, const void *payload, size_t len)
{
	const struct lite_payload p = { .data = payload, .len = len, .arg = f->arg };
	const u8 *bytes = payload;
	size_t size = f->size;
	__le32 count;
	u32 i, n = 0;

	if (len < size)
		return false;
	if (f->each) {
		memcpy(&count, bytes + f->count, sizeof(count));
		n = le32_to_cpu(count);
		if (n < f->min || n > f->max)
			return false;
		size += (size_t)n * f->each;
	}
	if ((!f->open && len != size) || !lite_rules_ok(f->rules, bytes))
		return false;
	for (i = 0; i < n; i++) {
		if (!lite_rules_ok(f->entry, bytes + f->size + i * f->each))
			return false;
	}
	return !f->ok || f->ok(&p);
}

int lite_wire_request_check(u16 call, const void *payload, size_t len)
{
	const struct lite_form *f = &lite_call_row(call)->request;

	if (!f->size)
		return -EOPNOTSUPP;
	return lite_form_ok(f, payload, len) ? 0 : -EPROTO;
}

int lite_wire_reply_check(u16 call, const void *payload, size_t len)
{
	return lite_form_ok(&lite_call_row(call)->reply, payload, len) ? 0 : -EPROTO;
}

int lite_wire_refusal(u32 error)
{
	if (!error)
		return -EPROTO;
	if (error == ETIMEDOUT || error == EINTR)
		return -EIO;
	return lite_wire_error(error);
}

void lite_wire_cred_get(struct lite_cred *cred, const struct lite_wire_cred *w)
{
	u32 i;

	cred->uid = le32_to_cpu(w->uid);
	cred->gid = le32_to_cpu(w->gid);
	cred->n_groups = le32_to_cpu(w->n_groups);
	for (i = 0; i < cred->n_groups && i < LITE_CRED_GROUPS; i++)
		cred->groups[i] = le32_to_cpu(w->groups[i]);
}

void lite_wire_cred_put(struct lite_wire_cred *w, const struct lite_cred *cred)
{
	u32 i;

	memset(w, 0, sizeof(*w));
	w->uid = cpu_to_le32(cred->uid);
	w->gid = cpu_to_le32(cred->gid);
	w->n_groups = cpu_to_le32(cred->n_groups);
	for (i = 0; i < cred->n_groups && i < LITE_CRED_GROUPS; i++)
		w->groups[i] = cpu_to_le32(cred->groups[i]);
}
