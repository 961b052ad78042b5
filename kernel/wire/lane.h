/* SPDX-License-Identifier: GPL-2.0 */
/* Slots of calls: each carries one message each way. Part of wire.h. */
#ifndef _LITE_WIRE_LANE_H
#define _LITE_WIRE_LANE_H

#include "core/types.h"

#define LITE_SLOT_COUNT 18U
#define LITE_SLOTS_BYTES 32768U /* of all slots of one direction */
#define LITE_SLOTS_SCRATCH (LITE_SLOTS_BYTES - 8U) /* a word to read and write without effect */
#define LITE_SLOTS_BEAT (LITE_SLOTS_BYTES - 16U) /* heartbeat counter, behind the request slots */
#define LITE_SLOT_HEAD 64U /* bytes of a slot that are not payload */

/*
 * Slots are divided into lanes, so that calls cannot deadlock: a handler makes only calls of later
 * lanes than its own, and waits for nothing that waits for an earlier lane. Nor does slow work hold
 * up heartbeats. Documentation/wire-protocol.rst ("Slots and lanes") has what each lane waits for.
 */
enum lite_lane {
	LITE_LANE_AWAIT,  /* handlers make calls, or wait for handlers of CALLER */
	LITE_LANE_CALLER, /* handlers make calls */
	LITE_LANE_ALLOC,
	LITE_LANE_REVOKE, /* handlers wait for operations */
	LITE_LANE_ENDS,   /* the same, and the reclaim of memory waits for them */
	LITE_LANE_WORK,   /* handlers do memory operations */
	LITE_LANE_SHORT,
	LITE_LANES,
};

static const u8 lite_lane_first[LITE_LANES + 1] = { 0, 3, 7, 9, 11, 13, 15, 18 };

/* Bytes of a slot. Calls of AWAIT and ENDS have few words, those of WORK many operations. */
static const u16 lite_lane_bytes[LITE_LANES] = {
	512, 2048, 2048, 2048, 192, 4096, 2048,
};

/* Offset of the first slot of each lane. */
static const u16 lite_lane_offset[LITE_LANES] = {
	0, 1536, 9728, 13824, 17920, 18304, 26496,
};

/* Largest payload of most lanes, and of LITE_LANE_WORK. */
#define LITE_PAYLOAD_MAX (2048U - LITE_SLOT_HEAD)
#define LITE_WORK_PAYLOAD_MAX (4096U - LITE_SLOT_HEAD)

/* The lane of a slot less than LITE_SLOT_COUNT. */
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

/* Offset of a slot in the memory of its direction. */
static inline u32 lite_slot_offset(u32 slot)
{
	enum lite_lane lane = lite_slot_lane(slot);

	return lite_lane_offset[lane] + (slot - lite_lane_first[lane]) * lite_lane_bytes[lane];
}

#endif /* _LITE_WIRE_LANE_H */
