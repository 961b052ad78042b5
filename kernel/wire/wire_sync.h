/* SPDX-License-Identifier: GPL-2.0 */
/* The wire protocol of locks and barriers; included by wire.h. */
#ifndef _LITE_WIRE_SYNC_H
#define _LITE_WIRE_SYNC_H

#include "core/types.h"

enum lite_wire_lock_flags {
	LITE_WIRE_LOCK_SHARED = 1 << 0,
	LITE_WIRE_LOCK_TRY = 1 << 1, /* fail with EBUSY instead of waiting */
	LITE_WIRE_LOCK_AGAIN = 1 << 2, /* barrier: an earlier WAIT has entered the claim */
};

/* A claim on a lock, or an arrival at a barrier. */
struct lite_wire_lock {
	__le64 id;          /* of the LMR at its home */
	__le64 offset;      /* of the word */
	__le64 incarnation; /* of the node that makes the claim */
	__le64 value;       /* WAIT: value read from the word; else 0 */
	__le32 ticket;      /* number of the claim at that node, not 0 */
	/* WAIT: lite_wire_lock_flags; GRANT: errno, positive; RELEASE: lite_lock_end; PROBE: 0 */
	__le32 arg;
	__le32 uid;         /* WAIT, RELEASE: user of the claim; else 0 */
	__le32 n;           /* WAIT: participants of the barrier, 0: a lock; else 0 */
} __packed;

struct lite_wire_lock_probe_reply {
	__le32 end;         /* enum lite_lock_end; 0: a RELEASE will follow */
	__le32 reserved;
} __packed;

static_assert(sizeof(struct lite_wire_lock) == 48, "lock");

#endif /* _LITE_WIRE_SYNC_H */
