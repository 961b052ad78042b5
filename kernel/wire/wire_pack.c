// SPDX-License-Identifier: GPL-2.0
#include "wire_pack.h"

bool lite_pack_ok(const struct lite_payload *p)
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
	for (i = 0; i < n_ops; i++) {
		u32 length;

		op = &lite_wire_pack_ops(w)[i];
		length = le16_to_cpu(op->length);
		if (!length || length > LITE_PACK_BYTES || op->range >= n_ranges || op->write > 1)
			return false;
		if (op->write)
			out += length;
		else
			in += length;
	}
	return p->len == out && in <= LITE_PACK_IN_MAX;
}

bool lite_pack_reply_ok(const struct lite_payload *p)
{
	const struct lite_wire_pack_reply *r = p->data;
	u32 error = le32_to_cpu(r->error);
	u32 status = le32_to_cpu(r->status);

	if (r->reserved)
		return false;
	if (!error && status == LITE_WIRE_OP_OK)
		return !r->at;
	/* One or the other, and nothing else. */
	if (p->len != sizeof(*r) || le32_to_cpu(r->at) >= LITE_PACK_OPS)
		return false;
	if (error)
		return error <= 4095 && status == LITE_WIRE_OP_OK;
	return status == LITE_WIRE_OP_UNMAPPED || status == LITE_WIRE_OP_ELSEWHERE;
}
