// SPDX-License-Identifier: GPL-2.0
/*
 * The format of each call: one row of a table, which all functions look up.
 * The checks see a payload of the right size, with a valid number of entries,
 * and with its reserved bytes zero.
 */
#include "core/lockword.h"
#include "core/memop_rules.h"
#include "core/name.h"
#include "wire.h"
#include "wire_pack.h"
#include "wire_rpc.h"

#define LITE_ERRNO_MAX 4095U

/**
 * struct lite_form - what a payload looks like
 * @size: bytes, without entries
 * @open: entries follow that only @ok can check
 * @zero: offset of the reserved bytes, which must be 0
 * @n_zero: number of reserved bytes
 * @count: offset of the number of entries
 * @each: bytes per entry; 0: there are none
 * @min: minimum number of entries
 * @max: maximum number of entries
 * @ok: checks the rest; NULL: nothing to check
 */
struct lite_form {
	u16 size;
	bool open;
	u16 zero;
	u16 n_zero;
	u16 count;
	u16 each;
	u16 min;
	u16 max;
	bool (*ok)(const struct lite_payload *p);
};

/**
 * struct lite_call_row - a call
 * @lane: enum lite_lane
 * @by: nodes that may make it, LITE_BY_*; 0: members
 * @request: payload of a request
 * @reply: payload of a successful reply
 */
struct lite_call_row {
	u8 lane;
	u8 by;
	struct lite_form request;
	struct lite_form reply;
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

	if (!data || len < sizeof(*hdr))
		return -EPROTO;
	if (le32_to_cpu(hdr->magic) != LITE_WIRE_MAGIC)
		return -EPROTO;
	if (hdr->version != LITE_WIRE_VERSION)
		return -EPROTONOSUPPORT;
	if (hdr->kind < LITE_CM_HELLO || hdr->kind > LITE_CM_REFUSE)
		return -EPROTO;
	if (len < size[hdr->kind] || hdr->reserved)
		return -EPROTO;
	if (!hdr->nqps || hdr->nqps > LITE_QPS_MAX)
		return -EPROTO;
	*kind = (enum lite_cm_kind)hdr->kind;
	return 0;
}

/* ---- payloads ------------------------------------------------------------ */

static bool lite_wire_name_ok(const char *name)
{
	return lite_name_check(name, LITE_NAME_SIZE) >= 0;
}

static bool lite_wire_length_ok(u64 length)
{
	return length && length <= LITE_LMR_SIZE_MAX;
}

static bool lite_wire_cred_ok(const struct lite_wire_cred *cred)
{
	return le32_to_cpu(cred->n_groups) <= LITE_CRED_GROUPS;
}

/* For payloads that begin with an address. */
static bool lite_addr_ok(const struct lite_payload *p)
{
	const struct lite_wire_addr *addr = p->data;

	return !addr->reserved;
}

static bool lite_attach_ok(const struct lite_payload *p)
{
	const struct lite_wire_attach *a = p->data;

	return a->nqps < LITE_QPS_MAX && lite_addr_ok(p);
}

static bool lite_members_reply_ok(const struct lite_payload *p)
{
	const struct lite_wire_members_reply *r = p->data;

	return le32_to_cpu(r->more) <= 1;
}

/* ENTER begins like the others. */
static bool lite_name_ok(const struct lite_payload *p)
{
	const struct lite_wire_name *n = p->data;

	return lite_wire_name_ok(n->name);
}

static bool lite_name_probe_reply_ok(const struct lite_payload *p)
{
	const struct lite_wire_name_probe_reply *r = p->data;

	return le32_to_cpu(r->state) <= LITE_WIRE_NAME_TAKEN;
}

static bool lite_create_ok(const struct lite_payload *p)
{
	const struct lite_wire_create *c = p->data;
	u32 n = le32_to_cpu(c->n_nodes);

	return n && n <= LITE_SPREAD_MAX && le32_to_cpu(c->map) <= 1 &&
	       lite_wire_length_ok(le64_to_cpu(c->length)) &&
	       !(le32_to_cpu(c->mode) & ~LITE_MODE_MASK) &&
	       (!c->name[0] || lite_wire_name_ok(c->name)) &&
	       lite_wire_cred_ok(&c->cred);
}

static bool lite_map_ok(const struct lite_payload *p)
{
	const struct lite_wire_map *m = p->data;

	return le32_to_cpu(m->renew) <= 1 &&
	       !(le32_to_cpu(m->rights) & ~LITE_RIGHTS_ALL) &&
	       (!m->name[0] || lite_wire_name_ok(m->name)) &&
	       lite_wire_cred_ok(&m->cred);
}

static bool lite_map_reply_ok(const struct lite_payload *p)
{
	const struct lite_wire_map_reply *r = p->data;
	u64 length = le64_to_cpu(r->length);
	u32 n = le32_to_cpu(r->n_shares);
	u32 i;

	if (!n || n > LITE_SPREAD_MAX || !lite_wire_length_ok(length) ||
	    !r->n_extents || le32_to_cpu(r->anonymous) > 1 ||
	    le32_to_cpu(r->n_extents) >
		    (length + LITE_PAGE_SIZE - 1) / LITE_PAGE_SIZE ||
	    le32_to_cpu(r->rights) & ~LITE_RIGHTS_ALL)
		return false;
	for (i = 0; i < n; i++) {
		if (r->share[i].reserved)
			return false;
	}
	return true;
}

static bool lite_unmap_ok(const struct lite_payload *p)
{
	const struct lite_wire_unmap *u = p->data;

	return le32_to_cpu(u->flags) < 4;
}

/* Requests for changes begin with it. */
static bool lite_change_ok(const struct lite_payload *p)
{
	const struct lite_wire_change *c = p->data;

	return !c->reserved && !(le32_to_cpu(c->rights) & ~LITE_RIGHTS_ALL) &&
	       lite_wire_cred_ok(&c->cred);
}

static bool lite_wire_grant_ok(const struct lite_wire_grant *g)
{
	return !g->reserved && !(le32_to_cpu(g->rights) & ~LITE_RIGHTS_ALL) &&
	       le32_to_cpu(g->node) <= LITE_NODE_ID_MAX;
}

static bool lite_grant_ok(const struct lite_payload *p)
{
	const struct lite_wire_set_grant *g = p->data;

	return lite_wire_grant_ok(&g->grant) && lite_change_ok(p);
}

static bool lite_grants_reply_ok(const struct lite_payload *p)
{
	const struct lite_wire_grants_reply *r = p->data;
	u32 i;

	for (i = 0; i < le32_to_cpu(r->count); i++) {
		if (!lite_wire_grant_ok(&r->grant[i]))
			return false;
	}
	return true;
}

static bool lite_setattr_ok(const struct lite_payload *p)
{
	const struct lite_wire_setattr *s = p->data;
	u32 mode = le32_to_cpu(s->mode);

	return (mode == LITE_KEEP || !(mode & ~LITE_MODE_MASK)) &&
	       lite_change_ok(p);
}

static bool lite_rename_ok(const struct lite_payload *p)
{
	const struct lite_wire_rename *r = p->data;

	return lite_wire_name_ok(r->name) && lite_change_ok(p);
}

static bool lite_resize_ok(const struct lite_payload *p)
{
	const struct lite_wire_resize *r = p->data;

	return lite_wire_length_ok(le64_to_cpu(r->length)) && lite_change_ok(p);
}

static bool lite_move_ok(const struct lite_payload *p)
{
	const struct lite_wire_move *m = p->data;

	return le32_to_cpu(m->later) <= 1 &&
	       le64_to_cpu(m->length) <= LITE_LMR_SIZE_MAX &&
	       le64_to_cpu(m->offset) <= LITE_LMR_SIZE_MAX && lite_change_ok(p);
}

static bool lite_lmr_ok(const struct lite_wire_lmr *l)
{
	return le32_to_cpu(l->n_shares) <= LITE_SPREAD_MAX &&
	       (!l->name[0] || lite_wire_name_ok(l->name));
}

static bool lite_stat_reply_ok(const struct lite_payload *p)
{
	const struct lite_wire_stat_reply *r = p->data;

	return lite_lmr_ok(&r->lmr);
}

static bool lite_list_ok(const struct lite_payload *p)
{
	const struct lite_wire_list *l = p->data;

	return l->max;
}

static bool lite_list_reply_ok(const struct lite_payload *p)
{
	const struct lite_wire_list_reply *r = p->data;
	u32 i;

	if (le32_to_cpu(r->more) > 1)
		return false;
	for (i = 0; i < le32_to_cpu(r->count); i++) {
		if (!lite_lmr_ok(&r->lmr[i]))
			return false;
	}
	return true;
}

static bool lite_mem_alloc_ok(const struct lite_payload *p)
{
	const struct lite_wire_mem_alloc *a = p->data;

	return lite_wire_length_ok(le64_to_cpu(a->length));
}

static bool lite_mem_alloc_reply_ok(const struct lite_payload *p)
{
	const struct lite_wire_mem_alloc_reply *r = p->data;

	return r->n_extents;
}

static bool lite_mem_copy_ok(const struct lite_payload *p)
{
	const struct lite_wire_mem_copy *c = p->data;
	u32 i;

	for (i = 0; i < le32_to_cpu(c->count); i++) {
		if (!(le64_to_cpu(c->extent[i].length_share) >> 8))
			return false;
	}
	return true;
}

static bool lite_mem_free_ok(const struct lite_payload *p)
{
	const struct lite_wire_mem_free *f = p->data;

	return le32_to_cpu(f->fence_all) <= 1;
}

static bool lite_mem_fence_ok(const struct lite_payload *p)
{
	const struct lite_wire_mem_fence *f = p->data;

	return le32_to_cpu(f->fence_all) <= 1;
}

static bool lite_op_ok(const struct lite_payload *p)
{
	const struct lite_wire_op *op = p->data;
	bool prepare = p->call == LITE_CALL_OP_PREPARE;
	/* PREPARE has one or two ranges. */
	bool two = p->call == LITE_CALL_OP_COPY ||
		   p->call == LITE_CALL_OP_COMPARE || (prepare && op->from.id);
	u32 flags = prepare ? 0 : LITE_WIRE_OP_CAREFUL;
	u32 arg = le32_to_cpu(op->arg);

	if (!lite_wire_range_ok(&op->range) ||
	    (two ? !lite_wire_range_ok(&op->from) :
		   op->from.id || op->from.home || op->from.reserved))
		return false;
	if (p->call == LITE_CALL_OP_COPY)
		flags |= LITE_WIRE_OP_BACKWARD;
	if (le32_to_cpu(op->flags) & ~flags || !op->length)
		return false;
	switch (p->call) {
	case LITE_CALL_OP_SET:
		return !lite_pattern_check(le64_to_cpu(op->operand), arg);
	case LITE_CALL_OP_CHECKSUM:
		return !arg && le64_to_cpu(op->operand) <= (u32)~0U;
	case LITE_CALL_OP_ATOMIC:
		return arg >= LITE_OP_SWAP && arg <= LITE_OP_FETCH_OR;
	default:
		return !arg || (prepare && arg >= LITE_OP_SWAP &&
				arg <= LITE_OP_FETCH_OR);
	}
}

static bool lite_op_reply_ok(const struct lite_payload *p)
{
	const struct lite_wire_op_reply *r = p->data;

	switch (le32_to_cpu(r->status)) {
	case LITE_WIRE_OP_OK:
		return le32_to_cpu(r->error) <= LITE_ERRNO_MAX;
	case LITE_WIRE_OP_DIFFERENT:
		return !r->error && p->call == LITE_CALL_OP_COMPARE;
	case LITE_WIRE_OP_UNMAPPED:
	case LITE_WIRE_OP_ELSEWHERE:
		return !r->error;
	case LITE_WIRE_OP_BUSY:
		return !r->error && p->call == LITE_CALL_OP_ATOMIC;
	default:
		return false;
	}
}

static bool lite_lock_ok(const struct lite_payload *p)
{
	const struct lite_wire_lock *l = p->data;
	u32 ticket = le32_to_cpu(l->ticket);
	u32 arg = le32_to_cpu(l->arg);

	if (!l->id || !ticket || ticket > LITE_TICKET_MAX ||
	    le64_to_cpu(l->offset) % sizeof(u64) ||
	    (l->value && p->call != LITE_CALL_LOCK_WAIT))
		return false;
	switch (p->call) {
	case LITE_CALL_LOCK_WAIT:
		return !(arg & ~(LITE_WIRE_LOCK_SHARED | LITE_WIRE_LOCK_TRY));
	case LITE_CALL_LOCK_GRANT:
		return !l->uid && arg <= LITE_ERRNO_MAX;
	case LITE_CALL_LOCK_RELEASE:
		return arg <= LITE_LOCK_UNUSED;
	case LITE_CALL_BARRIER_ARRIVE:
		arg &= ~LITE_WIRE_BARRIER_AGAIN;
		return arg && arg <= LITE_BARRIER_MAX;
	default:
		return !l->uid && !arg;
	}
}

static bool lite_lock_probe_reply_ok(const struct lite_payload *p)
{
	const struct lite_wire_lock_probe_reply *r = p->data;

	return le32_to_cpu(r->state) <= LITE_WIRE_LOCK_BROKEN;
}

/* ---- the table ----------------------------------------------------------- */

#define SIZE(type) .size = sizeof(struct lite_wire_##type)
#define ZERO(type)                                                             \
	.zero = offsetof(struct lite_wire_##type, reserved),                   \
	.n_zero = sizeof_field(struct lite_wire_##type, reserved)
#define ENTRIES(type, n, entry)                                                \
	.count = offsetof(struct lite_wire_##type, n),                         \
	.each = sizeof_field(struct lite_wire_##type, entry[0])

/* Payloads: empty; fixed; with reserved bytes; with entries; with both. */
#define NONE { .size = 0 }
#define FORM(type, check) { SIZE(type), .ok = check }
#define FORM0(type, check) { SIZE(type), ZERO(type), .ok = check }
#define LIST(type, n, entry, least, most, check)                               \
	{ SIZE(type), ENTRIES(type, n, entry), .min = least, .max = most,      \
	  .ok = check }
#define LIST0(type, n, entry, least, most, check)                              \
	{ SIZE(type), ZERO(type), ENTRIES(type, n, entry), .min = least,       \
	  .max = most, .ok = check }
#define OPEN(type, check) { SIZE(type), .open = true, .ok = check }

#define CALL(name, in, req, rep)                                               \
	[LITE_CALL_##name] = {                                                 \
		.lane = LITE_LANE_##in,                                        \
		.request = req,                                                \
		.reply = rep,                                                  \
	}

/* clang-format off */
static const struct lite_call_row lite_calls[] = {
	CALL(PING, SHORT, FORM(ping, NULL), FORM(ping, NULL)),
	[LITE_CALL_ATTACH] = {
		.lane = LITE_LANE_SHORT,
		.by = LITE_BY_GUEST | LITE_BY_MEMBER,
		.request = FORM0(attach, lite_attach_ok),
		.reply = FORM0(attach, lite_attach_ok),
	},
	[LITE_CALL_JOIN] = {
		.lane = LITE_LANE_SHORT,
		.by = LITE_BY_GUEST,
		.request = FORM0(join, lite_addr_ok),
		.reply = FORM0(join_reply, lite_addr_ok),
	},
	[LITE_CALL_MEMBERS] = {
		.lane = LITE_LANE_SHORT,
		.by = LITE_BY_GUEST | LITE_BY_MEMBER,
		.request = FORM(members, NULL),
		.reply = LIST(members_reply, count, member, 0,
			      LITE_MEMBERS_PER_REPLY, lite_members_reply_ok),
	},
	CALL(LEAVE, SHORT, FORM0(leave, NULL), NONE),
	CALL(NAME_DROP, SHORT, FORM(name, lite_name_ok), NONE),
	CALL(NAME_LOOKUP, SHORT, FORM(name, lite_name_ok),
	     FORM(name_reply, NULL)),
	CALL(NAME_FIND, SHORT, FORM(name, lite_name_ok), FORM(name_reply, NULL)),
	CALL(NAME_SYNC, SHORT, FORM0(name_sync, NULL), NONE),
	CALL(NAME_PROBE, SHORT, FORM(name, lite_name_ok),
	     FORM(name_probe_reply, lite_name_probe_reply_ok)),
	CALL(NAME_WAKE, SHORT, FORM(name, lite_name_ok), NONE),
	CALL(NAME_ENTER, SHORT, FORM(name_enter, lite_name_ok),
	     FORM(name_reply, NULL)),
	CALL(LMR_CREATE, CALLER, FORM(create, lite_create_ok),
	     FORM(map_reply, lite_map_reply_ok)),
	CALL(LMR_MAP, SHORT, FORM(map, lite_map_ok),
	     FORM(map_reply, lite_map_reply_ok)),
	CALL(LMR_EXTENTS, SHORT, FORM0(extents, NULL),
	     LIST0(extents_reply, count, extent, 1, LITE_EXTENTS_PER_REPLY,
		   NULL)),
	CALL(LMR_UNMAP, CALLER, FORM(unmap, lite_unmap_ok), NONE),
	CALL(LMR_FREE, CALLER, FORM(change, lite_change_ok), NONE),
	CALL(LMR_REVOKE, REVOKE, FORM(id, NULL), NONE),
	CALL(LMR_STAT, SHORT, FORM(id, NULL),
	     FORM(stat_reply, lite_stat_reply_ok)),
	CALL(LMR_LIST, SHORT, FORM0(list, lite_list_ok),
	     LIST(list_reply, count, lmr, 0, LITE_LMRS_PER_REPLY,
		  lite_list_reply_ok)),
	CALL(LMR_GRANT, CALLER, FORM(set_grant, lite_grant_ok), NONE),
	CALL(LMR_GRANTS, SHORT, FORM(id, NULL),
	     LIST0(grants_reply, count, grant, 0, LITE_GRANTS_MAX,
		   lite_grants_reply_ok)),
	CALL(LMR_SETATTR, CALLER, FORM0(setattr, lite_setattr_ok), NONE),
	CALL(LMR_RENAME, CALLER, FORM(rename, lite_rename_ok), NONE),
	CALL(LMR_RESIZE, CALLER, FORM(resize, lite_resize_ok), NONE),
	CALL(LMR_MOVE, CALLER, FORM(move, lite_move_ok), FORM(move_reply, NULL)),
	CALL(LMR_RECALL, REVOKE, FORM(id, NULL), NONE),
	CALL(LMR_AWAIT, AWAIT, FORM(id, NULL), NONE),
	CALL(MEM_ALLOC, ALLOC, FORM0(mem_alloc, lite_mem_alloc_ok),
	     FORM0(mem_alloc_reply, lite_mem_alloc_reply_ok)),
	CALL(MEM_EXTENTS, SHORT, FORM0(extents, NULL),
	     LIST0(extents_reply, count, extent, 1, LITE_EXTENTS_PER_REPLY,
		   NULL)),
	CALL(MEM_FREE, REVOKE,
	     LIST(mem_free, n_fences, fence, 0, LITE_FENCES_MAX,
		  lite_mem_free_ok), NONE),
	CALL(MEM_COPY, ALLOC,
	     LIST(mem_copy, count, extent, 1, LITE_COPY_EXTENTS_MAX,
		  lite_mem_copy_ok), NONE),
	CALL(MEM_FENCE, REVOKE,
	     LIST(mem_fence, n_fences, fence, 0, LITE_FENCES_MAX,
		  lite_mem_fence_ok), NONE),
	CALL(MEM_SESSION, SHORT, FORM0(mem_session, NULL),
	     FORM(mem_session_reply, NULL)),
	CALL(OP_SET, WORK, FORM(op, lite_op_ok),
	     FORM(op_reply, lite_op_reply_ok)),
	CALL(OP_COPY, WORK, FORM(op, lite_op_ok),
	     FORM(op_reply, lite_op_reply_ok)),
	CALL(OP_COMPARE, WORK, FORM(op, lite_op_ok),
	     FORM(op_reply, lite_op_reply_ok)),
	CALL(OP_CHECKSUM, WORK, FORM(op, lite_op_ok),
	     FORM(op_reply, lite_op_reply_ok)),
	CALL(OP_ATOMIC, WORK, FORM(op, lite_op_ok),
	     FORM(op_reply, lite_op_reply_ok)),
	CALL(OP_PREPARE, AWAIT, FORM(op, lite_op_ok), NONE),
	CALL(OP_PACK, WORK, OPEN(pack, lite_pack_ok),
	     OPEN(pack_reply, lite_pack_reply_ok)),
	CALL(RPC_BIND, ALLOC, FORM0(rpc_bind, lite_rpc_bind_ok),
	     LIST(rpc_bind_reply, n_chunks, chunk, 1, LITE_RPC_CHUNKS_MAX,
		  lite_rpc_bind_reply_ok)),
	CALL(RPC_UNBIND, SHORT, FORM0(rpc_unbind, NULL), NONE),
	CALL(RPC_CANCEL, SHORT,
	     LIST0(rpc_cancel, count, which, 1, LITE_RPC_CANCELS_MAX, NULL),
	     LIST0(rpc_cancel_reply, count, cancelled, 0, LITE_RPC_CANCELS_MAX,
		   lite_rpc_cancel_reply_ok)),
	CALL(RPC_FIND, SHORT, FORM0(rpc_find, lite_rpc_find_ok),
	     FORM(rpc_func, lite_rpc_func_ok)),
	CALL(RPC_GONE, SHORT, FORM0(rpc_unbind, NULL), NONE),
	CALL(LOCK_WAIT, SHORT, FORM0(lock, lite_lock_ok), NONE),
	CALL(LOCK_GRANT, SHORT, FORM0(lock, lite_lock_ok), NONE),
	CALL(LOCK_RELEASE, SHORT, FORM0(lock, lite_lock_ok), NONE),
	CALL(LOCK_PROBE, SHORT, FORM0(lock, lite_lock_ok),
	     FORM0(lock_probe_reply, lite_lock_probe_reply_ok)),
	CALL(BARRIER_ARRIVE, SHORT, FORM0(lock, lite_lock_ok), NONE),
};

/* clang-format on */

/* The row of an unknown call has no request size. */
static const struct lite_call_row *lite_call_row(u16 call)
{
	static const struct lite_call_row unknown = {
		.lane = LITE_LANE_SHORT,
	};

	if (call >= ARRAY_SIZE(lite_calls) ||
	    !lite_calls[call].request.size)
		return &unknown;
	return &lite_calls[call];
}

enum lite_lane lite_call_lane(u16 call)
{
	return (enum lite_lane)lite_call_row(call)->lane;
}

u32 lite_call_by(u16 call)
{
	u32 by = lite_call_row(call)->by;

	return by ? by : LITE_BY_MEMBER;
}

int lite_wire_msg_check(const struct lite_wire_msg *msg)
{
	if (le32_to_cpu(msg->magic) != LITE_WIRE_MAGIC ||
	    msg->version != LITE_WIRE_VERSION || msg->reserved0 ||
	    msg->reserved || le32_to_cpu(msg->error) > LITE_ERRNO_MAX ||
	    le32_to_cpu(msg->length) >
		    lite_call_payload_max(le16_to_cpu(msg->call)))
		return -EPROTO;
	return 0;
}

static bool lite_form_ok(const struct lite_form *f,
			 const struct lite_payload *p)
{
	const u8 *bytes = p->data;
	size_t size = f->size;
	__le32 count;
	u32 i, n;

	if (p->len < size)
		return false;
	if (f->each) {
		memcpy(&count, bytes + f->count, sizeof(count));
		n = le32_to_cpu(count);
		if (n < f->min || n > f->max)
			return false;
		size += (size_t)n * f->each;
	}
	if (!f->open && p->len != size)
		return false;
	for (i = 0; i < f->n_zero; i++) {
		if (bytes[f->zero + i])
			return false;
	}
	return !f->ok || f->ok(p);
}

int lite_wire_request_check(u16 call, const void *payload, size_t len)
{
	const struct lite_payload p = { .call = call,
					.data = payload,
					.len = len };
	const struct lite_form *f = &lite_call_row(call)->request;

	if (!f->size)
		return -EOPNOTSUPP;
	return lite_form_ok(f, &p) ? 0 : -EPROTO;
}

int lite_wire_reply_check(u16 call, const void *payload, size_t len)
{
	const struct lite_payload p = { .call = call,
					.data = payload,
					.len = len };

	return lite_form_ok(&lite_call_row(call)->reply, &p) ? 0 : -EPROTO;
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
