// SPDX-License-Identifier: GPL-2.0
/*
 * Where the bytes of an LMR are, at its home: parts, and tables made of the
 * parts.
 *
 * A part is a range that is one allocation at one store. Parts are moved, cut
 * off and added as wholes. A long share consists of several, each up to 1/64 of
 * it, and at least 4 MB: a move blocks users of the LMR for one part at a time.
 * Parts are given back in release.c.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "memory/memory.h"
#include "memory/store/store.h"
#include "home.h"

#define LITE_PART_MIN (4ULL << 20)
#define LITE_PARTS_PER_SHARE 64

/* ---- making parts -------------------------------------------------------- */

/* Largest part of a share of @length bytes, which is not 0; whole pages. */
u64 lite_part_max(u64 length)
{
	return max(LITE_PART_MIN, roundup_pow_of_two(DIV64_U64_ROUND_UP(
					  length, LITE_PARTS_PER_SHARE)));
}

/*
 * Make a part of @a, memory of this node. Return: 0; -ENOMEM, and @part still
 * owns @a.
 */
int lite_part_fill(struct lite_part *part, const struct lite_alloc *a)
{
	part->alloc = a->id;
	part->extents = kvmalloc_array(a->n_extents, sizeof(*part->extents),
				       GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!part->extents)
		return -ENOMEM;
	part->n_extents = a->n_extents;
	memcpy(part->extents, a->extents,
	       a->n_extents * sizeof(*part->extents));
	return 0;
}

static int lite_part_alloc_local(struct lite_lmr *lmr, struct lite_part *part)
{
	struct lite_alloc *a;
	int err;

	a = lite_store_alloc(lmr->mem, part->node, part->incarnation, 0,
			     part->length, lmr->acl.uid);
	if (IS_ERR(a))
		return PTR_ERR(a);
	err = lite_part_fill(part, a);
	lite_store_free(lmr->mem, a);
	return err;
}

static void lite_part_alloc_late(void *ctx, struct lite_conn *conn,
				 const void *reply)
{
	const struct lite_wire_mem_alloc_reply *r = reply;
	const struct lite_part part = {
		.node = conn->from.node,
		.incarnation = conn->from.incarnation,
		.alloc = le64_to_cpu(r->id),
	};

	lite_part_release(ctx, &part);
}

static int lite_part_alloc_remote(struct lite_lmr *lmr, struct lite_part *part,
				  u32 *n_extents)
{
	struct lite_wire_mem_alloc req = {
		.lmr = cpu_to_le64(lmr->id),
		.length = cpu_to_le64(part->length),
		.uid = cpu_to_le32(lmr->acl.uid),
	};
	struct lite_wire_mem_alloc_reply reply;
	struct lite_call_desc d = {
		.call = LITE_CALL_MEM_ALLOC,
		.req = &req,
		.len = sizeof(req),
		.reply = &reply,
		.reply_max = sizeof(reply),
		.life = part->incarnation,
		.timeout = 60 * HZ, /* it may have to zero a lot of memory */
		.killable = true,
		.late = lite_part_alloc_late,
		.late_ctx = lmr->mem,
	};
	int err = lite_cluster_call_once(lmr->mem->cl, part->node, &d);

	if (err)
		return err;
	part->alloc = le64_to_cpu(reply.id);
	*n_extents = le32_to_cpu(reply.n_extents);
	if (*n_extents > DIV_ROUND_UP_ULL(part->length, PAGE_SIZE))
		return -EPROTO;
	return 0;
}

static int lite_part_extents_remote(struct lite_lmr *lmr,
				    struct lite_part *part, u32 n_extents)
{
	struct lite_wire_extents req = { .id = cpu_to_le64(part->alloc) };
	struct lite_wire_extents_reply *r;
	struct lite_call_desc d = {
		.call = LITE_CALL_MEM_EXTENTS,
		.req = &req,
		.len = sizeof(req),
		.reply_max = LITE_PAYLOAD_MAX,
		.life = part->incarnation,
		.killable = true,
	};
	u64 length = 0;
	int err = 0;
	u32 i;

	r = kmalloc(LITE_PAYLOAD_MAX, GFP_KERNEL);
	part->extents = kvmalloc_array(n_extents, sizeof(*part->extents),
				       GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!r || !part->extents)
		err = -ENOMEM;
	d.reply = r;
	while (!err && part->n_extents < n_extents) {
		req.first = cpu_to_le32(part->n_extents);
		err = lite_cluster_call(lmr->mem->cl, part->node, &d);
		if (!err && le32_to_cpu(r->count) > n_extents - part->n_extents)
			err = -EPROTO;
		for (i = 0; !err && i < le32_to_cpu(r->count); i++) {
			struct lite_extent *e =
				&part->extents[part->n_extents++];

			*e = (struct lite_extent){
				.addr = le64_to_cpu(r->extent[i].addr),
				.length = le64_to_cpu(r->extent[i].length_share)
					  >> 8,
			};
			if (!e->length || e->length % PAGE_SIZE ||
			    e->length > LITE_LMR_SIZE_MAX)
				err = -EPROTO;
			length += e->length;
		}
	}
	kfree(r);
	if (!err && length != round_up(part->length, PAGE_SIZE))
		err = -EPROTO;
	/* Unknown: taken back when the session of the request ended. */
	return err == -ENOENT ? -EHOSTDOWN : err;
}

/**
 * lite_part_make - take memory for a part of an LMR
 * @lmr: LMR
 * @part: to fill
 * @node: where
 * @incarnation: expected incarnation of @node
 * @length: bytes, not 0
 *
 * Context: may sleep; makes leaf calls.
 * Return: 0 or a negative errno, -ESTALE if the incarnation is over. In any
 * case lite_parts_release() gives back what @part has.
 */
int lite_part_make(struct lite_lmr *lmr, struct lite_part *part, u32 node,
		   u64 incarnation, u64 length)
{
	u32 n;

	*part = (struct lite_part){
		.node = node,
		.incarnation = incarnation,
		.local = node == lite_cluster_id(lmr->mem->cl),
		.length = length,
	};
	if (part->local)
		return lite_part_alloc_local(lmr, part);
	return lite_part_alloc_remote(lmr, part, &n) ?:
	       lite_part_extents_remote(lmr, part, n);
}

/**
 * lite_parts_make - take memory for a range of an LMR at one node
 * @lmr: LMR
 * @parts: array that parts are added to; reallocated
 * @n: its length, updated
 * @node: where
 * @incarnation: expected incarnation of @node
 * @length: bytes, not 0
 *
 * Context: may sleep; makes leaf calls.
 * Return: 0 or a negative errno, -ENOENT if @lmr is being freed meanwhile. In
 * any case the caller releases what @parts has.
 */
int lite_parts_make(struct lite_lmr *lmr, struct lite_part **parts, u32 *n,
		    u32 node, u64 incarnation, u64 length)
{
	const u64 max = lite_part_max(length);
	u32 more = DIV64_U64_ROUND_UP(length, max);
	struct lite_part *all;
	int err = 0;

	if (node == lite_cluster_id(lmr->mem->cl))
		err = lite_limit_room(&lmr->mem->limit, lmr->acl.uid,
				      round_up(length, PAGE_SIZE));
	if (err)
		return err;
	all = kvcalloc((size_t)*n + more, sizeof(*all), GFP_KERNEL_ACCOUNT);
	if (!all)
		return -ENOMEM;
	if (*n)
		memcpy(all, *parts, *n * sizeof(*all));
	kvfree(*parts);
	*parts = all;
	while (length && !err) {
		u64 bytes = min(length, max);

		/* Freeing must not wait for hundreds of gigabytes. */
		if (READ_ONCE(lmr->dying))
			return -ENOENT;
		err = lite_part_make(lmr, &all[(*n)++], node, incarnation,
				     bytes);
		length -= bytes;
	}
	return err;
}

/**
 * lite_node_incarnation - incarnation of a node that is to hold memory
 * @mem: memory layer
 * @node: its id
 * @incarnation: set
 *
 * Context: may sleep while the node is suspect; killable.
 * Return: 0; -EHOSTUNREACH: not a member; -EHOSTDOWN; -EINTR.
 */
int lite_node_incarnation(struct lite_memory *mem, u32 node, u64 *incarnation)
{
	int err;

	if (node == lite_cluster_id(mem->cl)) {
		*incarnation = mem->fab->self.incarnation;
		return 0;
	}
	err = lite_cluster_await(mem->cl, node);
	if (err && err != -EHOSTDOWN)
		return err;
	/* It may be up again. */
	return lite_cluster_session(mem->cl, node, incarnation) ? 0 :
								  -EHOSTDOWN;
}

/* ---- tables -------------------------------------------------------------- */

/* Most shares that so many parts can have, and the home's. */
static u32 lite_place_shares(u32 n_parts)
{
	return min(n_parts + 1, (u32)LITE_SPREAD_MAX);
}

/* Index of the share that a part belongs to, added if new; or -ENOSPC. */
static int lite_place_share(struct lite_place *place,
			    const struct lite_part *part)
{
	u32 i;

	for (i = 0; i < place->n_shares; i++) {
		if (place->share[i].node == part->node &&
		    place->share[i].incarnation == part->incarnation)
			return i;
	}
	if (i == LITE_SPREAD_MAX)
		return -ENOSPC;
	place->share[i] = (struct lite_share){
		.node = part->node,
		.incarnation = part->incarnation,
	};
	place->n_shares++;
	return i;
}

/* The extents are whole pages, and may end after the part. */
static void lite_place_append(struct lite_place *place,
			      const struct lite_part *part, u32 share)
{
	u64 left = part->length;
	u32 i;

	for (i = 0; i < part->n_extents && left; i++) {
		u64 length = min(part->extents[i].length, left);

		lite_extent_append(place->extents, &place->n_extents,
				   part->extents[i].addr, length, share);
		left -= length;
	}
	place->length += part->length;
}

/**
 * lite_place_new - make the tables for a list of parts
 * @lmr: LMR homed here
 * @parts: in order; copied, but their extents are shared
 * @n: number of parts, not 0
 *
 * Charges the LMR's owner for the tables and for the extents of @parts.
 *
 * Context: may sleep.
 * Return: the place, for lite_place_free(); ERR_PTR: -ENOMEM; -ENOSPC: too many
 * nodes, or a limit; -EDQUOT.
 */
struct lite_place *lite_place_new(struct lite_lmr *lmr,
				  const struct lite_part *parts, u32 n)
{
	const size_t size = struct_size((struct lite_place *)NULL, share,
					lite_place_shares(n));
	struct lite_place *place;
	size_t extents = 0;
	u64 charged;
	int share;
	u32 i;

	for (i = 0; i < n; i++)
		extents += parts[i].n_extents;
	charged = size + n * sizeof(*parts) +
		  2 * extents * sizeof(*place->extents);
	share = lite_limit_take(&lmr->mem->limit, lmr->acl.uid, charged);
	if (share)
		return ERR_PTR(share);
	place = kzalloc(size, GFP_KERNEL_ACCOUNT);
	if (!place) {
		lite_limit_give(&lmr->mem->limit, lmr->acl.uid, charged);
		return ERR_PTR(-ENOMEM);
	}
	place->limit = &lmr->mem->limit;
	place->uid = lmr->acl.uid;
	place->charged = charged;
	place->part = kvmalloc_array(n, sizeof(*parts),
				     GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	place->extents = kvmalloc_array(extents, sizeof(*place->extents),
					GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!place->part || !place->extents) {
		lite_place_free(place);
		return ERR_PTR(-ENOMEM);
	}
	memcpy(place->part, parts, n * sizeof(*parts));
	place->n_parts = n;
	place->share[0] = (struct lite_share){
		.node = lite_cluster_id(lmr->mem->cl),
		.incarnation = lmr->mem->fab->self.incarnation,
	};
	place->n_shares = 1;
	for (i = 0; i < n; i++) {
		share = lite_place_share(place, &parts[i]);
		if (share < 0) {
			lite_place_free(place);
			return ERR_PTR(share);
		}
		lite_place_append(place, &parts[i], share);
	}
	return place;
}

/* Free tables that no LMR uses, or NULL. Leaves the parts alone. */
void lite_place_free(struct lite_place *place)
{
	if (!place)
		return;
	lite_limit_give(place->limit, place->uid, place->charged);
	kvfree(place->part);
	kvfree(place->extents);
	kfree(place);
}
