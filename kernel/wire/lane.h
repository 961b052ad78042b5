/* SPDX-License-Identifier: GPL-2.0 */
/* Call slots: a message of at most one slot each way. Part of wire.h. */
#ifndef _LITE_WIRE_LANE_H
#define _LITE_WIRE_LANE_H

#include "core/types.h"

#define LITE_SLOT_COUNT 18U
#define LITE_SLOTS_BYTES 32768U /* of all slots of one direction */
#define LITE_SLOTS_SCRATCH (LITE_SLOTS_BYTES - 8U) /* word behind the last slot; of no use */
#define LITE_SLOTS_BEAT (LITE_SLOTS_BYTES - 16U) /* heartbeat counter, in the slots for requests */
#define LITE_SLOT_HEAD 64U /* bytes of a slot that are not payload */

/*
 * Slots are divided into lanes, so that no call waits for a slot that is held by a call waiting for
 * it: handlers in a lane make only calls of later lanes, and wait for nothing that waits for an
 * earlier lane. Slow work does not hold up heartbeats either. Documentation/wire-protocol.rst,
 * Slots and lanes, says what each lane waits for.
 */
enum lite_lane {
	LITE_LANE_AWAIT,  /* handlers that call or wait for those of CALLER */
	LITE_LANE_CALLER, /* handlers that make calls */
	LITE_LANE_ALLOC,
	LITE_LANE_REVOKE, /* handlers that wait for operations */
	LITE_LANE_ENDS,   /* the same, and memory is reclaimed only after them */
	LITE_LANE_WORK,   /* handlers that do memory operations */
	LITE_LANE_SHORT,
	LITE_LANES,
};

static const u8 lite_lane_first[LITE_LANES + 1] = { 0, 3, 7, 9, 11, 13, 15, 18 };

/* Slot size of each lane: AWAIT and ENDS carry few words, WORK many operations. */
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
