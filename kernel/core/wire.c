// SPDX-License-Identifier: GPL-2.0
#include "wire.h"
#include "wire_pack.h"
#include "wire_rpc.h"
#include "memop.h"
#include "name.h"

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

u32 lite_call_by(u16 call)
{
	switch (call) {
	case LITE_CALL_ATTACH:
	case LITE_CALL_MEMBERS:
		return LITE_BY_GUEST | LITE_BY_MEMBER;
	case LITE_CALL_JOIN:
		return LITE_BY_GUEST;
	default:
		return LITE_BY_MEMBER;
	}
}

int lite_wire_msg_check(const struct lite_wire_msg *msg)
{
	if (le32_to_cpu(msg->magic) != LITE_WIRE_MAGIC ||
	    msg->version != LITE_WIRE_VERSION || msg->reserved0 ||
	    msg->reserved || le32_to_cpu(msg->error) > 4095 ||
	    le32_to_cpu(msg->length) >
		    lite_call_payload_max(le16_to_cpu(msg->call)))
		return -EPROTO;
	return 0;
}

/* What is reserved must be zero, or it could never be given a meaning. */
static int lite_zero(bool zero)
{
	return zero ? 0 : -EPROTO;
}

static int lite_addr_check(const struct lite_wire_addr *addr)
{
	return addr->reserved ? -EPROTO : 0;
}

static int lite_wire_cred_check(const struct lite_wire_cred *cred)
{
	return le32_to_cpu(cred->n_groups) <= LITE_CRED_GROUPS ? 0 : -EPROTO;
}

static int lite_attach_check(const struct lite_wire_attach *a)
{
	if (a->reserved || a->nqps >= LITE_QPS_MAX)
		return -EPROTO;
	return lite_addr_check(&a->addr);
}

static int lite_create_check(const struct lite_wire_create *c)
{
	u32 n = le32_to_cpu(c->n_nodes);
	u64 length = le64_to_cpu(c->length);
	int len;

	if (!n || n > LITE_SPREAD_MAX || le32_to_cpu(c->map) > 1)
		return -EPROTO;
	if (!length || length > LITE_LMR_SIZE_MAX)
		return -EPROTO;
	if (le32_to_cpu(c->mode) & ~LITE_MODE_MASK)
		return -EPROTO;
	if (c->name[0]) {
		len = lite_name_check(c->name, sizeof(c->name));
		if (len < 0)
			return -EPROTO;
	}
	return lite_wire_cred_check(&c->cred);
}

static int lite_map_check(const struct lite_wire_map *m)
{
	if (le32_to_cpu(m->renew) > 1 ||
	    le32_to_cpu(m->rights) & ~LITE_RIGHTS_ALL)
		return -EPROTO;
	if (m->name[0] && lite_name_check(m->name, sizeof(m->name)) < 0)
		return -EPROTO;
	return lite_wire_cred_check(&m->cred);
}

static int lite_change_check(const struct lite_wire_change *c)
{
	if (c->reserved || le32_to_cpu(c->rights) & ~LITE_RIGHTS_ALL)
		return -EPROTO;
	return lite_wire_cred_check(&c->cred);
}

static int lite_grant_check(const struct lite_wire_grant *g)
{
	if (g->reserved || le32_to_cpu(g->rights) & ~LITE_RIGHTS_ALL ||
	    le32_to_cpu(g->node) > LITE_NODE_ID_MAX)
		return -EPROTO;
	return 0;
}

static int lite_setattr_check(const struct lite_wire_setattr *s)
{
	u32 mode = le32_to_cpu(s->mode);

	if (s->reserved || (mode != LITE_KEEP && mode & ~LITE_MODE_MASK))
		return -EPROTO;
	return lite_change_check(&s->change);
}

static int lite_resize_check(const struct lite_wire_resize *r)
{
	u64 length = le64_to_cpu(r->length);

	if (!length || length > LITE_LMR_SIZE_MAX)
		return -EPROTO;
	return lite_change_check(&r->change);
}

static int lite_move_check(const struct lite_wire_move *m)
{
	u64 offset = le64_to_cpu(m->offset);
	u64 length = le64_to_cpu(m->length);

	if (le32_to_cpu(m->later) > 1 || length > LITE_LMR_SIZE_MAX ||
	    offset > LITE_LMR_SIZE_MAX)
		return -EPROTO;
	return lite_change_check(&m->change);
}

static int lite_mem_copy_check(const struct lite_wire_mem_copy *c, size_t len)
{
	u32 n, i;

	if (len < sizeof(*c))
		return -EPROTO;
	n = le32_to_cpu(c->count);
	if (!n || n > LITE_COPY_EXTENTS_MAX ||
	    len != sizeof(*c) + n * sizeof(c->extent[0]))
		return -EPROTO;
	for (i = 0; i < n; i++) {
		if (!(le64_to_cpu(c->extent[i].length_share) >> 8))
			return -EPROTO;
	}
	return 0;
}

/* Behind a head of @head bytes come @n fences. */
static int lite_fences_check(__le32 n_fences, __le32 all, size_t head,
			     size_t len)
{
	u32 n = le32_to_cpu(n_fences);

	if (n > LITE_FENCES_MAX || le32_to_cpu(all) > 1)
		return -EPROTO;
	return len == head + n * sizeof(struct lite_wire_fence) ? 0 : -EPROTO;
}

static int lite_mem_free_check(const struct lite_wire_mem_free *f, size_t len)
{
	if (len < sizeof(*f))
		return -EPROTO;
	return lite_fences_check(f->n_fences, f->fence_all, sizeof(*f), len);
}

static int lite_mem_fence_check(const struct lite_wire_mem_fence *f, size_t len)
{
	if (len < sizeof(*f))
		return -EPROTO;
	return lite_fences_check(f->n_fences, f->fence_all, sizeof(*f), len);
}

static int lite_op_check(u16 call, const struct lite_wire_op *op)
{
	bool two = call == LITE_CALL_OP_COPY || call == LITE_CALL_OP_COMPARE;
	u64 operand = le64_to_cpu(op->operand);
	u32 arg = le32_to_cpu(op->arg);
	u32 flags = LITE_WIRE_OP_CAREFUL;

	/* To be mapped there may be two, or one. */
	if (call == LITE_CALL_OP_PREPARE)
		two = op->from.id != 0;
	if (!lite_wire_range_ok(&op->range) ||
	    (two ? !lite_wire_range_ok(&op->from) :
		   op->from.id || op->from.home || op->from.reserved))
		return -EPROTO;
	if (call == LITE_CALL_OP_COPY)
		flags |= LITE_WIRE_OP_BACKWARD;
	if (call == LITE_CALL_OP_PREPARE)
		flags = 0;
	if (le32_to_cpu(op->flags) & ~flags || !op->length)
		return -EPROTO;
	if (call == LITE_CALL_OP_SET)
		return lite_pattern_check(operand, arg) ? -EPROTO : 0;
	if (call == LITE_CALL_OP_ATOMIC || (call == LITE_CALL_OP_PREPARE && arg))
		return lite_zero(arg >= LITE_OP_SWAP && arg <= LITE_OP_FETCH_OR);
	if (call == LITE_CALL_OP_CHECKSUM && operand > (u32)~0U)
		return -EPROTO;
	return lite_zero(!arg);
}

/* Calls whose request has one fixed size; the others are below. */
static size_t lite_request_size(u16 call)
{
	switch (call) {
	case LITE_CALL_PING:
		return sizeof(struct lite_wire_ping);
	case LITE_CALL_ATTACH:
		return sizeof(struct lite_wire_attach);
	case LITE_CALL_JOIN:
		return sizeof(struct lite_wire_join);
	case LITE_CALL_MEMBERS:
		return sizeof(struct lite_wire_members);
	case LITE_CALL_LEAVE:
		return sizeof(struct lite_wire_leave);
	case LITE_CALL_NAME_DROP:
	case LITE_CALL_NAME_LOOKUP:
	case LITE_CALL_NAME_FIND:
	case LITE_CALL_NAME_PROBE:
	case LITE_CALL_NAME_WAKE:
		return sizeof(struct lite_wire_name);
	case LITE_CALL_NAME_SYNC:
		return sizeof(struct lite_wire_name_sync);
	case LITE_CALL_NAME_ENTER:
		return sizeof(struct lite_wire_name_enter);
	case LITE_CALL_LMR_CREATE:
		return sizeof(struct lite_wire_create);
	case LITE_CALL_LMR_MAP:
		return sizeof(struct lite_wire_map);
	case LITE_CALL_LMR_EXTENTS:
	case LITE_CALL_MEM_EXTENTS:
		return sizeof(struct lite_wire_extents);
	case LITE_CALL_LMR_UNMAP:
		return sizeof(struct lite_wire_unmap);
	case LITE_CALL_LMR_FREE:
		return sizeof(struct lite_wire_change);
	case LITE_CALL_LMR_GRANT:
		return sizeof(struct lite_wire_set_grant);
	case LITE_CALL_LMR_SETATTR:
		return sizeof(struct lite_wire_setattr);
	case LITE_CALL_LMR_RENAME:
		return sizeof(struct lite_wire_rename);
	case LITE_CALL_LMR_RESIZE:
		return sizeof(struct lite_wire_resize);
	case LITE_CALL_LMR_MOVE:
		return sizeof(struct lite_wire_move);
	case LITE_CALL_LMR_REVOKE:
	case LITE_CALL_LMR_RECALL:
	case LITE_CALL_LMR_AWAIT:
	case LITE_CALL_LMR_GRANTS:
	case LITE_CALL_LMR_STAT:
		return sizeof(struct lite_wire_id);
	case LITE_CALL_LMR_LIST:
		return sizeof(struct lite_wire_list);
	case LITE_CALL_MEM_ALLOC:
		return sizeof(struct lite_wire_mem_alloc);
	case LITE_CALL_MEM_SESSION:
		return sizeof(struct lite_wire_mem_session);
	case LITE_CALL_OP_SET:
	case LITE_CALL_OP_COPY:
	case LITE_CALL_OP_COMPARE:
	case LITE_CALL_OP_CHECKSUM:
	case LITE_CALL_OP_ATOMIC:
	case LITE_CALL_OP_PREPARE:
		return sizeof(struct lite_wire_op);
	default:
		return lite_wire_sync_request_size(call);
	}
}

int lite_wire_request_check(u16 call, const void *payload, size_t len)
{
	size_t size = lite_request_size(call);
	u64 length;

	if (lite_wire_is_rpc(call))
		return lite_wire_rpc_request_check(call, payload, len);
	switch (call) {
	case LITE_CALL_MEM_FREE:
		return lite_mem_free_check(payload, len);
	case LITE_CALL_MEM_COPY:
		return lite_mem_copy_check(payload, len);
	case LITE_CALL_MEM_FENCE:
		return lite_mem_fence_check(payload, len);
	case LITE_CALL_OP_PACK:
		return lite_wire_pack_check(payload, len);
	default:
		break;
	}
	if (!size)
		return -EOPNOTSUPP;
	if (len != size)
		return -EPROTO;

	switch (call) {
	case LITE_CALL_ATTACH:
		return lite_attach_check(payload);
	case LITE_CALL_JOIN:
		if (((const struct lite_wire_join *)payload)->reserved)
			return -EPROTO;
		return lite_addr_check(
			&((const struct lite_wire_join *)payload)->addr);
	case LITE_CALL_LEAVE:
		return lite_zero(
			!((const struct lite_wire_leave *)payload)->reserved);
	case LITE_CALL_LMR_EXTENTS:
	case LITE_CALL_MEM_EXTENTS:
		return lite_zero(
			!((const struct lite_wire_extents *)payload)->reserved);
	case LITE_CALL_LMR_UNMAP:
		return lite_zero(le32_to_cpu(
			((const struct lite_wire_unmap *)payload)->flags) < 4);
	case LITE_CALL_NAME_DROP:
	case LITE_CALL_NAME_LOOKUP:
	case LITE_CALL_NAME_FIND:
	case LITE_CALL_NAME_PROBE:
	case LITE_CALL_NAME_WAKE:
		return lite_name_check(
			       ((const struct lite_wire_name *)payload)->name,
			       LITE_NAME_SIZE) < 0 ? -EPROTO : 0;
	case LITE_CALL_NAME_ENTER:
		return lite_name_check(
			       ((const struct lite_wire_name_enter *)payload)->name,
			       LITE_NAME_SIZE) < 0 ? -EPROTO : 0;
	case LITE_CALL_NAME_SYNC:
		return lite_zero(
			!((const struct lite_wire_name_sync *)payload)->reserved);
	case LITE_CALL_LMR_CREATE:
		return lite_create_check(payload);
	case LITE_CALL_LMR_MAP:
		return lite_map_check(payload);
	case LITE_CALL_LMR_FREE:
		return lite_change_check(payload);
	case LITE_CALL_LMR_GRANT:
		if (lite_grant_check(
			    &((const struct lite_wire_set_grant *)payload)->grant))
			return -EPROTO;
		return lite_change_check(payload);
	case LITE_CALL_LMR_SETATTR:
		return lite_setattr_check(payload);
	case LITE_CALL_LMR_RENAME:
		if (lite_name_check(
			    ((const struct lite_wire_rename *)payload)->name,
			    LITE_NAME_SIZE) < 0)
			return -EPROTO;
		return lite_change_check(payload);
	case LITE_CALL_LMR_RESIZE:
		return lite_resize_check(payload);
	case LITE_CALL_LMR_MOVE:
		return lite_move_check(payload);
	case LITE_CALL_LMR_LIST:
		if (!((const struct lite_wire_list *)payload)->max)
			return -EPROTO;
		return lite_zero(
			!((const struct lite_wire_list *)payload)->reserved);
	case LITE_CALL_MEM_SESSION:
		return lite_zero(
			!((const struct lite_wire_mem_session *)payload)->reserved);
	case LITE_CALL_MEM_ALLOC:
		if (((const struct lite_wire_mem_alloc *)payload)->reserved)
			return -EPROTO;
		length = le64_to_cpu(
			((const struct lite_wire_mem_alloc *)payload)->length);
		return length && length <= LITE_LMR_SIZE_MAX ? 0 : -EPROTO;
	case LITE_CALL_OP_SET:
	case LITE_CALL_OP_COPY:
	case LITE_CALL_OP_COMPARE:
	case LITE_CALL_OP_CHECKSUM:
	case LITE_CALL_OP_ATOMIC:
	case LITE_CALL_OP_PREPARE:
		return lite_op_check(call, payload);
	default:
		return lite_wire_sync_request_check(call, payload);
	}
}

static int lite_array_check(u32 count, size_t max, size_t head, size_t each,
			    size_t len)
{
	if (count > max || len != head + count * each)
		return -EPROTO;
	return 0;
}

static int lite_map_reply_check(const struct lite_wire_map_reply *r)
{
	u32 n = le32_to_cpu(r->n_shares);
	u64 length = le64_to_cpu(r->length);
	u32 i;

	if (!n || n > LITE_SPREAD_MAX || !length || length > LITE_LMR_SIZE_MAX)
		return -EPROTO;
	if (!r->n_extents || le32_to_cpu(r->anonymous) > 1 ||
	    le32_to_cpu(r->n_extents) >
		    (length + LITE_PAGE_SIZE - 1) / LITE_PAGE_SIZE)
		return -EPROTO;
	if (le32_to_cpu(r->rights) & ~LITE_RIGHTS_ALL)
		return -EPROTO;
	for (i = 0; i < n; i++) {
		if (r->share[i].reserved)
			return -EPROTO;
	}
	return 0;
}

static int lite_lmr_check(const struct lite_wire_lmr *l)
{
	u32 n = le32_to_cpu(l->n_shares);

	if (n > LITE_SPREAD_MAX)
		return -EPROTO;
	if (l->name[0] && lite_name_check(l->name, sizeof(l->name)) < 0)
		return -EPROTO;
	return 0;
}

static int lite_list_reply_check(const struct lite_wire_list_reply *r,
				 size_t len)
{
	u32 n, i;

	if (len < sizeof(*r) || le32_to_cpu(r->more) > 1)
		return -EPROTO;
	n = le32_to_cpu(r->count);
	if (lite_array_check(n, LITE_LMRS_PER_REPLY, sizeof(*r),
			     sizeof(r->lmr[0]), len))
		return -EPROTO;
	for (i = 0; i < n; i++) {
		if (lite_lmr_check(&r->lmr[i]))
			return -EPROTO;
	}
	return 0;
}

static int lite_grants_reply_check(const struct lite_wire_grants_reply *r,
				   size_t len)
{
	u32 n, i;

	if (len < sizeof(*r) || r->reserved)
		return -EPROTO;
	n = le32_to_cpu(r->count);
	if (lite_array_check(n, LITE_GRANTS_MAX, sizeof(*r),
			     sizeof(r->grant[0]), len))
		return -EPROTO;
	for (i = 0; i < n; i++) {
		if (lite_grant_check(&r->grant[i]))
			return -EPROTO;
	}
	return 0;
}

static int lite_members_reply_check(const struct lite_wire_members_reply *r,
				    size_t len)
{
	if (len < sizeof(*r) || le32_to_cpu(r->more) > 1)
		return -EPROTO;
	return lite_array_check(le32_to_cpu(r->count), LITE_MEMBERS_PER_REPLY,
				sizeof(*r), sizeof(r->member[0]), len);
}

static int lite_extents_reply_check(const struct lite_wire_extents_reply *r,
				    size_t len)
{
	if (len < sizeof(*r) || !r->count || r->reserved)
		return -EPROTO;
	return lite_array_check(le32_to_cpu(r->count), LITE_EXTENTS_PER_REPLY,
				sizeof(*r), sizeof(r->extent[0]), len);
}

static int lite_op_reply_check(u16 call, const struct lite_wire_op_reply *r)
{
	u32 error = le32_to_cpu(r->error);

	switch (le32_to_cpu(r->status)) {
	case LITE_WIRE_OP_OK:
		return lite_zero(error <= 4095);
	case LITE_WIRE_OP_DIFFERENT:
		return lite_zero(!error && call == LITE_CALL_OP_COMPARE);
	case LITE_WIRE_OP_UNMAPPED:
	case LITE_WIRE_OP_ELSEWHERE:
		return lite_zero(!error);
	case LITE_WIRE_OP_BUSY:
		return lite_zero(!error && call == LITE_CALL_OP_ATOMIC);
	default:
		return -EPROTO;
	}
}

/* Calls whose successful reply has one fixed size. */
static size_t lite_reply_size(u16 call)
{
	switch (call) {
	case LITE_CALL_PING:
		return sizeof(struct lite_wire_ping);
	case LITE_CALL_ATTACH:
		return sizeof(struct lite_wire_attach);
	case LITE_CALL_JOIN:
		return sizeof(struct lite_wire_join_reply);
	case LITE_CALL_NAME_LOOKUP:
	case LITE_CALL_NAME_FIND:
	case LITE_CALL_NAME_ENTER:
		return sizeof(struct lite_wire_name_reply);
	case LITE_CALL_NAME_PROBE:
		return sizeof(struct lite_wire_name_probe_reply);
	case LITE_CALL_LMR_CREATE:
	case LITE_CALL_LMR_MAP:
		return sizeof(struct lite_wire_map_reply);
	case LITE_CALL_LMR_STAT:
		return sizeof(struct lite_wire_stat_reply);
	case LITE_CALL_LMR_MOVE:
		return sizeof(struct lite_wire_move_reply);
	case LITE_CALL_MEM_ALLOC:
		return sizeof(struct lite_wire_mem_alloc_reply);
	case LITE_CALL_MEM_SESSION:
		return sizeof(struct lite_wire_mem_session_reply);
	case LITE_CALL_OP_SET:
	case LITE_CALL_OP_COPY:
	case LITE_CALL_OP_COMPARE:
	case LITE_CALL_OP_CHECKSUM:
	case LITE_CALL_OP_ATOMIC:
		return sizeof(struct lite_wire_op_reply);
	default:
		return lite_wire_sync_reply_size(call);
	}
}

int lite_wire_reply_check(u16 call, const void *payload, size_t len)
{
	if (lite_wire_is_rpc(call))
		return lite_wire_rpc_reply_check(call, payload, len);
	switch (call) {
	case LITE_CALL_MEMBERS:
		return lite_members_reply_check(payload, len);
	case LITE_CALL_LMR_EXTENTS:
	case LITE_CALL_MEM_EXTENTS:
		return lite_extents_reply_check(payload, len);
	case LITE_CALL_LMR_LIST:
		return lite_list_reply_check(payload, len);
	case LITE_CALL_LMR_GRANTS:
		return lite_grants_reply_check(payload, len);
	case LITE_CALL_OP_PACK:
		return lite_wire_pack_reply_check(payload, len);
	default:
		break;
	}
	if (len != lite_reply_size(call))
		return -EPROTO;
	switch (call) {
	case LITE_CALL_ATTACH:
		return lite_attach_check(payload);
	case LITE_CALL_LMR_CREATE:
	case LITE_CALL_LMR_MAP:
		return lite_map_reply_check(payload);
	case LITE_CALL_LMR_STAT:
		return lite_lmr_check(
			&((const struct lite_wire_stat_reply *)payload)->lmr);
	case LITE_CALL_NAME_PROBE:
		return lite_zero(le32_to_cpu(
			((const struct lite_wire_name_probe_reply *)payload)
				->state) <= LITE_WIRE_NAME_TAKEN);
	case LITE_CALL_JOIN:
		if (((const struct lite_wire_join_reply *)payload)->reserved)
			return -EPROTO;
		return lite_addr_check(
			&((const struct lite_wire_join_reply *)payload)->redirect);
	case LITE_CALL_MEM_ALLOC:
		if (!((const struct lite_wire_mem_alloc_reply *)payload)->n_extents)
			return -EPROTO;
		return lite_zero(!((const struct lite_wire_mem_alloc_reply *)
					   payload)->reserved);
	case LITE_CALL_OP_SET:
	case LITE_CALL_OP_COPY:
	case LITE_CALL_OP_COMPARE:
	case LITE_CALL_OP_CHECKSUM:
	case LITE_CALL_OP_ATOMIC:
		return lite_op_reply_check(call, payload);
	default:
		return lite_wire_sync_reply_check(call, payload);
	}
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
