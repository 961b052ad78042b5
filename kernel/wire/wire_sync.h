/* SPDX-License-Identifier: GPL-2.0 */
/* The wire protocol of locks and barriers; included by wire.h. */
#ifndef _LITE_WIRE_SYNC_H
#define _LITE_WIRE_SYNC_H

#include "core/types.h"

enum lite_wire_lock_flags {
	LITE_WIRE_LOCK_SHARED = 1 << 0,
	LITE_WIRE_LOCK_TRY = 1 << 1, /* fail with EBUSY instead of waiting */
};

/* ARRIVE: an earlier one was answered, so the claim is there, or was swept. */
#define LITE_WIRE_BARRIER_AGAIN 0x80000000U

/* A claim on a lock. */
struct lite_wire_lock {
	__le64 id;          /* of the LMR at its home */
	__le64 offset;      /* of the word */
	__le64 incarnation; /* of the node that makes the claim */
	__le64 value;       /* WAIT: value read from the word; else 0 */
	__le32 ticket;      /* number of the claim at that node, not 0 */
	/*
	 * WAIT: enum lite_wire_lock_flags; GRANT: errno, positive; RELEASE: enum lite_lock_end;
	 * PROBE: 0; ARRIVE: number of participants, and LITE_WIRE_BARRIER_AGAIN
	 */
	__le32 arg;
	__le32 uid;         /* WAIT, ARRIVE, RELEASE: its user; else 0 */
	__le32 reserved;
} __packed;

enum lite_wire_lock_state {
	LITE_WIRE_LOCK_HELD = 0, /* or wanted: a RELEASE will follow */
	LITE_WIRE_LOCK_GONE = 1,
	LITE_WIRE_LOCK_DEAD = 2, /* its process has died */
	LITE_WIRE_LOCK_BROKEN = 3, /* released as broken */
};

struct lite_wire_lock_probe_reply {
	__le32 state;       /* enum lite_wire_lock_state */
	__le32 reserved;
} __packed;

static_assert(sizeof(struct lite_wire_lock) == 48, "lock");

#endif /* _LITE_WIRE_SYNC_H */
