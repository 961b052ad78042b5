/* SPDX-License-Identifier: GPL-2.0 */
/* Call slots: a message of at most one slot each way. Part of wire.h, which see. */
#ifndef _LITE_CORE_LANE_H
#define _LITE_CORE_LANE_H

#include "types.h"

#define LITE_SLOT_COUNT 16U
/* All of them, behind one another. */
#define LITE_SLOTS_BYTES 32768U
/* Behind the last: what is written there nobody reads. */
#define LITE_SLOTS_SCRATCH (LITE_SLOTS_BYTES - 8U)
/* Where a kernel counts, in its slots for requests. */
#define LITE_SLOTS_BEAT (LITE_SLOTS_BYTES - 16U)
/* Of a slot, for what is not payload. */
#define LITE_SLOT_HEAD 64U

/*
 * Slots are divided into lanes, so that no call waits for a slot that is held
 * by a call that waits for it: handlers in a lane make calls of later lanes
 * only, and wait for nobody who waits for an earlier one. And so that what takes
 * long - zeroing memory, draining operations - does not hold up heartbeats.
 *
 * A REVOKE or RECALL waits for whoever is entered, who may wait for a WORK call;
 * so may everything that waits for a REVOKE. Whoever is entered waits for WORK
 * calls only, and those wait for nothing but devices.
 */
enum lite_lane {
	LITE_LANE_AWAIT,  /* handlers that wait for, or call, those of CALLER */
	LITE_LANE_CALLER, /* handlers that make calls */
	LITE_LANE_ALLOC,
	LITE_LANE_REVOKE, /* handlers that wait for who is entered, so for WORK */
	LITE_LANE_WORK,   /* handlers that do memory operations for others */
	LITE_LANE_SHORT,
	LITE_LANES,
};

static const u8 lite_lane_first[LITE_LANES + 1] = { 0, 3, 7, 9, 11, 13, 16 };

/* Bytes of a slot of each: few words to await, many reads and writes to do. */
static const u16 lite_lane_bytes[LITE_LANES] = {
	512, 2048, 2048, 2048, 4096, 2048,
};

/* Where the first of each begins. */
static const u16 lite_lane_offset[LITE_LANES] = {
	0, 1536, 9728, 13824, 17920, 26112,
};

/* Of payloads: of most, and of those in a lane. */
#define LITE_PAYLOAD_MAX (2048U - LITE_SLOT_HEAD)
#define LITE_WORK_PAYLOAD_MAX (4096U - LITE_SLOT_HEAD)

static inline u32 lite_lane_payload_max(enum lite_lane lane)
{
	return lite_lane_bytes[lane] - LITE_SLOT_HEAD;
}

/* The lane that a slot, less than LITE_SLOT_COUNT, is in. */
static inline enum lite_lane lite_slot_lane(u32 slot)
{
	int lane = 0;

	while (slot >= lite_lane_first[lane + 1])
		lane++;
	return (enum lite_lane)lane;
}

static inline u32 lite_slot_bytes(u32 slot)
{
	return lite_lane_bytes[lite_slot_lane(slot)];
}

/* Where a slot is, from the first one on. */
static inline u32 lite_slot_offset(u32 slot)
{
	enum lite_lane lane = lite_slot_lane(slot);

	return lite_lane_offset[lane] +
	       (slot - lite_lane_first[lane]) * lite_lane_bytes[lane];
}

#endif /* _LITE_CORE_LANE_H */
