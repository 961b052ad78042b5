// SPDX-License-Identifier: GPL-2.0
#include "wire_pack.h"

int lite_wire_pack_check(const struct lite_wire_pack *p, size_t len)
{
	u32 n_ranges, n_ops, i, in = 0;
	const struct lite_wire_pack_op *op;
	size_t out;

	if (len < sizeof(*p))
		return -EPROTO;
	n_ranges = le32_to_cpu(p->n_ranges);
	n_ops = le32_to_cpu(p->n_ops);
	if (!n_ranges || n_ranges > LITE_PACK_RANGES || !n_ops ||
	    n_ops > LITE_PACK_OPS)
		return -EPROTO;
	out = sizeof(*p) + n_ranges * sizeof(struct lite_wire_range) +
	      n_ops * sizeof(*op);
	if (len < out)
		return -EPROTO;
	for (i = 0; i < n_ranges; i++) {
		const struct lite_wire_range *r = &lite_wire_pack_ranges(p)[i];

		if (!lite_wire_range_ok(r) || r->offset)
			return -EPROTO;
	}
	for (i = 0; i < n_ops; i++) {
		u32 length;

		op = &lite_wire_pack_ops(p)[i];
		length = le16_to_cpu(op->length);
		if (!length || length > LITE_PACK_BYTES ||
		    op->range >= n_ranges || op->write > 1)
			return -EPROTO;
		if (op->write)
			out += length;
		else
			in += length;
	}
	return len == out && in <= LITE_PACK_IN_MAX ? 0 : -EPROTO;
}

int lite_wire_pack_reply_check(const struct lite_wire_pack_reply *r, size_t len)
{
	u32 error, status;

	if (len < sizeof(*r) || r->reserved)
		return -EPROTO;
	error = le32_to_cpu(r->error);
	status = le32_to_cpu(r->status);
	if (!error && status == LITE_WIRE_OP_OK)
		return r->at ? -EPROTO : 0;
	/* One or the other, and nothing else. */
	if (len != sizeof(*r) || le32_to_cpu(r->at) >= LITE_PACK_OPS)
		return -EPROTO;
	if (error)
		return error <= 4095 && status == LITE_WIRE_OP_OK ? 0 : -EPROTO;
	return status == LITE_WIRE_OP_UNMAPPED ||
			       status == LITE_WIRE_OP_ELSEWHERE ? 0 : -EPROTO;
}
