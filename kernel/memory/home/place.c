// SPDX-License-Identifier: GPL-2.0
/*
 * Where the bytes of an LMR are, at its home: parts, and tables made of them. Parts are moved, cut
 * off and added as wholes, and given back in release.c. A long share has several, of about 1/64 of
 * it but at least 4 MB each, because a move blocks users of the LMR for one part at a time.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "memory/memory.h"
#include "memory/store/store.h"
#include "home.h"

#define LITE_PART_MIN (4ULL << 20)
#define LITE_PARTS_PER_SHARE 64

/* Bytes, whole pages, of the largest part of a share of @length bytes, which is not 0. */
u64 lite_part_max(u64 length)
{
	return max(LITE_PART_MIN,
		   roundup_pow_of_two(DIV64_U64_ROUND_UP(length, LITE_PARTS_PER_SHARE)));
}

/* Give a part the memory @a of this node. Return: 0; -ENOMEM, but the part owns @a even then. */
int lite_part_fill(struct lite_part *part, const struct lite_alloc *a)
{
	part->alloc = a->id;
	part->extents = kvmalloc_array(a->n_extents, sizeof(*part->extents),
				       GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!part->extents)
		return -ENOMEM;
	part->n_extents = a->n_extents;
	memcpy(part->extents, a->extents, a->n_extents * sizeof(*part->extents));
	return 0;
}

static int lite_part_alloc_local(struct lite_lmr *lmr, struct lite_part *part)
{
	struct lite_alloc *a;
	int err;

	a = lite_store_alloc(lmr->mem, part->at.node, part->at.incarnation, 0, part->bytes,
			     lmr->acl.uid);
	if (IS_ERR(a))
		return PTR_ERR(a);
	err = lite_part_fill(part, a);
	lite_store_free(a);
	return err;
}

static void lite_part_alloc_late(void *ctx, struct lite_conn *conn, const void *reply)
{
	const struct lite_wire_mem_alloc_reply *r = reply;
	struct lite_part *part = kzalloc(sizeof(*part), GFP_KERNEL | __GFP_NOFAIL);

	part->at.node = conn->from.node;
	part->at.incarnation = conn->from.incarnation;
	part->alloc = le64_to_cpu(r->id);
	lite_part_release(ctx, part);
}

static int lite_part_alloc_remote(struct lite_lmr *lmr, struct lite_part *part, u32 *n_extents)
{
	struct lite_wire_mem_alloc req = {
		.lmr = cpu_to_le64(lmr->id),
		.length = cpu_to_le64(part->bytes),
		.uid = cpu_to_le32(lmr->acl.uid),
	};
	struct lite_wire_mem_alloc_reply reply;
	struct lite_call_desc d = {
		LITE_REQUEST(LITE_CALL_MEM_ALLOC, req),
		LITE_REPLY(reply),
		.uid = lmr->acl.uid,
		.life = part->at.incarnation,
		.timeout = 60 * HZ, /* it may have to zero a lot of memory */
		.killable = true,
		.once = true,
		.late = lite_part_alloc_late,
		.late_ctx = lmr->mem,
	};
	int err = lite_cluster_call_patiently(lmr->mem->cl, part->at.node, &d);

	if (err)
		return err;
	part->alloc = le64_to_cpu(reply.id);
	*n_extents = le32_to_cpu(reply.n_extents);
	return *n_extents > part->bytes >> PAGE_SHIFT ? -EPROTO : 0;
}

static int lite_part_extents_remote(struct lite_lmr *lmr, struct lite_part *part, u32 n_extents)
{
	struct lite_wire_extents req = { .id = cpu_to_le64(part->alloc) };
	struct lite_wire_extents_reply *r;
	struct lite_call_desc d = {
		LITE_REQUEST(LITE_CALL_MEM_EXTENTS, req),
		.reply_max = LITE_PAYLOAD_MAX,
		.life = part->at.incarnation,
		.killable = true,
	};
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
		err = lite_cluster_call(lmr->mem->cl, part->at.node, &d) ?:
		      lite_extents_take(part->extents, &part->n_extents, n_extents, r->extent,
					le32_to_cpu(r->count));
	}
	kfree(r);
	err = err ?: lite_extent_table_check(part->extents, part->n_extents, part->bytes, 1);
	for (i = 0; !err && i < part->n_extents; i++)
		err = part->extents[i].length % PAGE_SIZE ? -EPROTO : 0;
	/* The store took the memory back when the session of the request ended. */
	return err == -ENOENT ? -EHOSTDOWN : err;
}

/* Add a new part, which has no memory yet, to @r. Return: the part; NULL: out of memory. */
struct lite_part *lite_part_add(struct lite_replace *r, const struct lite_share *at, u64 length)
{
	struct lite_part *part = kzalloc(sizeof(*part), GFP_KERNEL_ACCOUNT);

	if (!part)
		return NULL;
	part->at = *at;
	part->local = at->node == lite_cluster_id(r->lmr->mem->cl);
	part->bytes = round_up(length, PAGE_SIZE);
	list_add_tail(&part->list, &r->parts);
	r->n++;
	return part;
}

/*
 * Take memory for a range of an LMR at one node, and add the parts to @r. @length: bytes;
 * @max: most bytes of a part, whole pages. May sleep; makes leaf calls. Return: 0 or a negative
 * errno: -ESTALE: the incarnation is over; -ENOENT: the LMR is being freed; -ENOTCONN, -ENODEV: the
 * node is leaving or stopping. In any case the caller releases @r->parts.
 */
int lite_parts_make(struct lite_replace *r, const struct lite_share *at, u64 length, u64 max)
{
	struct lite_lmr *lmr = r->lmr;
	struct lite_part *part;
	int err = 0;
	u32 n;

	if (length && at->node == lite_cluster_id(lmr->mem->cl))
		err = lite_limit_room(&lmr->mem->limit, lmr->acl.uid, round_up(length, PAGE_SIZE));
	while (length && !err) {
		/* Freeing and leaving must not wait for hundreds of gigabytes. */
		if (READ_ONCE(lmr->dying))
			return -ENOENT;
		err = lite_cluster_ready(lmr->mem->cl);
		if (err)
			return err;
		part = lite_part_add(r, at, min(length, max));
		if (!part)
			return -ENOMEM;
		length -= min(length, max);
		err = part->local ? lite_part_alloc_local(lmr, part) :
		      lite_part_alloc_remote(lmr, part, &n) ?:
		      lite_part_extents_remote(lmr, part, n);
	}
	return err;
}

/*
 * Have the stores kept the new parts, as far as this node knows? Making and filling them may have
 * taken minutes. Any context. Return: 0; -ESTALE: one has a new incarnation; -EHOSTDOWN: one has
 * left.
 */
int lite_parts_check(const struct lite_replace *r)
{
	const struct lite_part *part;
	u64 now;

	list_for_each_entry(part, &r->parts, list) {
		now = part->local ? part->at.incarnation :
				    lite_cluster_incarnation(r->lmr->mem->cl, part->at.node);
		if (now != part->at.incarnation)
			return now ? -ESTALE : -EHOSTDOWN;
	}
	return 0;
}

/*
 * Find the incarnation of a node that is to hold memory. May sleep while the node is suspect;
 * killable. Return: 0; -EHOSTUNREACH: not a member; -EHOSTDOWN; -EINTR.
 */
int lite_share_find(struct lite_memory *mem, u32 node, struct lite_share *at)
{
	int err;

	at->node = node;
	at->incarnation = mem->fab->self.incarnation;
	if (node == lite_cluster_id(mem->cl))
		return 0;
	err = lite_cluster_await_for(mem->cl, node, LITE_PATIENCE);
	if (err && err != -EHOSTDOWN)
		return err;
	/* Look even after -EHOSTDOWN: the node may be up again. */
	return lite_cluster_session(mem->cl, node, &at->incarnation) ? 0 : -EHOSTDOWN;
}

/* Add a part. Its extents are whole pages, and may end beyond the @length bytes of the LMR. */
static int lite_place_append(struct lite_place *place, const struct lite_part *part, u64 length)
{
	u64 left = min(part->bytes, length - place->length);
	u32 share, i;

	for (share = 0; share < place->n_shares; share++) {
		if (lite_share_is(&place->share[share], &part->at))
			break;
	}
	if (share == LITE_SPREAD_MAX)
		return -ENOSPC;
	if (share == place->n_shares)
		place->share[place->n_shares++] = part->at;
	place->home_stores |= part->local;
	place->length += left;
	for (i = 0; i < part->n_extents && left; i++) {
		u64 bytes = min(part->extents[i].length, left);

		lite_extent_append(place->extents, &place->n_extents,
				   part->extents[i].addr, bytes, share);
		left -= bytes;
	}
	return 0;
}

/*
 * Make the place that an LMR of @length bytes gets when @r is applied to its present one, if any.
 * Charges the LMR's owner for the structures of place and parts. May sleep. Return: the place, for
 * lite_place_free(); ERR_PTR: -ENOMEM; -ENOSPC: too many nodes, or a limit; -EDQUOT.
 */
struct lite_place *lite_place_new(const struct lite_replace *r, u64 length)
{
	const struct lite_place *old = r->lmr->place;
	u32 max = (old ? old->n_parts - r->gone : 0) + r->n;
	u32 shares = min(max + 1, (u32)LITE_SPREAD_MAX);
	struct lite_memory *mem = r->lmr->mem;
	struct lite_part **part, *new;
	struct lite_place *place;
	size_t size, extents = 0;
	u64 charged;
	int err = 0;
	u32 n = 0;
	u32 i;

	part = kvmalloc_array(max, sizeof(*part), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!part)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < r->first; i++)
		part[n++] = old->part[i];
	list_for_each_entry(new, &r->parts, list)
		part[n++] = new;
	for (i = r->first + r->gone; n < max; i++)
		part[n++] = old->part[i];
	for (i = 0; i < n; i++)
		extents += part[i]->n_extents;
	extents *= sizeof(*place->extents);
	size = struct_size(place, share, shares) + extents;
	charged = size + extents + n * (sizeof(*part) + sizeof(**part));
	place = lite_limit_alloc(&mem->limit, r->lmr->acl.uid, size, charged);
	if (IS_ERR(place)) {
		kvfree(part);
		return place;
	}
	place->uid = r->lmr->acl.uid;
	place->charged = charged;
	place->n_parts = n;
	place->part = part;
	place->extents = (void *)&place->share[shares];
	place->share[0].node = lite_cluster_id(mem->cl);
	place->share[0].incarnation = mem->fab->self.incarnation;
	place->n_shares = 1;
	for (i = 0; i < n && !err; i++) {
		err = lite_place_append(place, part[i], length);
		cond_resched();
	}
	if (!err)
		return place;
	lite_place_free(r->lmr, place);
	return ERR_PTR(err);
}

/* Free a place that no LMR uses, or NULL. Leaves its parts alone. */
void lite_place_free(struct lite_lmr *lmr, struct lite_place *place)
{
	if (!place)
		return;
	kvfree(place->part);
	lite_limit_free(&lmr->mem->limit, place->uid, place, place->charged);
}
