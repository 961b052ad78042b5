/* SPDX-License-Identifier: GPL-2.0 */
/* OP_PACK: many small reads and writes in one call, to the node that holds the bytes. */
#ifndef _LITE_WIRE_PACK_H
#define _LITE_WIRE_PACK_H

#include "wire.h"

/* Maximum bytes of an operation; maximum operations and LMRs of a call. */
#define LITE_PACK_BYTES 256U
#define LITE_PACK_OPS 64U
#define LITE_PACK_RANGES 8U

/*
 * Followed by @n_ranges struct lite_wire_range, which name LMRs and have no offset; @n_ops struct
 * lite_wire_pack_op; and the bytes of the writes, in order.
 */
struct lite_wire_pack {
	__le32 n_ranges;
	__le32 n_ops;
} __packed;

struct lite_wire_pack_op {
	__le64 offset;   /* in the LMR */
	__le16 length;
	__u8 range;      /* index of its range */
	__u8 write;      /* 1, or 0: read */
} __packed;

/* The bytes of the reads follow, in order; on failure none, and any write may have been done. */
struct lite_wire_pack_reply {
	__le32 error;    /* errno, positive */
	__le32 status;   /* LITE_WIRE_OP_OK, _UNMAPPED, _ELSEWHERE */
	__le32 at;       /* index of the operation that failed; 0 on success */
	__le32 reserved;
} __packed;

#define LITE_PACK_OUT_MAX                                                      \
	((u32)(LITE_WORK_PAYLOAD_MAX - sizeof(struct lite_wire_pack)))
#define LITE_PACK_IN_MAX                                                       \
	((u32)(LITE_WORK_PAYLOAD_MAX -                                         \
	       sizeof(struct lite_wire_pack_reply)))

static inline bool lite_wire_range_ok(const struct lite_wire_range *r)
{
	return r->id && r->home && !r->reserved;
}

static inline const struct lite_wire_range *lite_wire_pack_ranges(const struct lite_wire_pack *p)
{
	return (const struct lite_wire_range *)(p + 1);
}

static inline const struct lite_wire_pack_op *lite_wire_pack_ops(const struct lite_wire_pack *p)
{
	return (const struct lite_wire_pack_op *)(lite_wire_pack_ranges(p) +
						  le32_to_cpu(p->n_ranges));
}

static inline const void *lite_wire_pack_bytes(const struct lite_wire_pack *p)
{
	return lite_wire_pack_ops(p) + le32_to_cpu(p->n_ops);
}

#endif /* _LITE_WIRE_PACK_H */
