/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The queue of an inbox: entries in memory that a process can write as it
 * likes. What the kernel relies on is here, outside of that memory: how many
 * entries it has put there, and where. What it reads there, the number of those
 * that have been taken, may be anything, and what follows from it is bounded.
 *
 * An entry is written again only when the request that it stood for, or a later
 * one, was given back, so it has been taken before: from the first to the last is
 * the only order in which they can be. The number of requests not given back is
 * never more than there are entries; that is up to who calls lite_inbox_put().
 */
#ifndef _LITE_CORE_INBOX_H
#define _LITE_CORE_INBOX_H

#include "ring.h"
#include "types.h"
#ifdef __KERNEL__
#include <uapi/lite_inbox.h>
#else
#include "../../include/uapi/lite_inbox.h"
#endif

static_assert(sizeof(struct lite_inbox_entry) == 64, "inbox");
static_assert(sizeof(struct lite_inbox_control) == 128, "inbox");

/* Where the rings are in the file of an inbox; the control comes before them. */
#define LITE_INBOX_RINGS 0x100000ULL

/**
 * struct lite_inbox_queue - the kernel's side of a queue
 * @control: shared with the process
 * @tail: entries that were put there
 * @entries: room, a power of two
 */
struct lite_inbox_queue {
	struct lite_inbox_control *control;
	u64 tail;
	u32 entries;
};

/* Entries for so many requests, 1..LITE_INBOX_DEPTH_MAX. */
static inline u32 lite_inbox_entries(u32 depth)
{
	u32 n = 1;

	while (n < depth)
		n *= 2;
	return n;
}

/* Bytes that are shared: whole pages. */
static inline u32 lite_inbox_control_bytes(u32 entries)
{
	u64 n = sizeof(struct lite_inbox_control) +
		(u64)entries * sizeof(struct lite_inbox_entry);

	return (n + LITE_PAGE_SIZE - 1) / LITE_PAGE_SIZE * LITE_PAGE_SIZE;
}

/*
 * Rings of one size, @bytes, that can be there at the same time if all rings of
 * the node have no more than @limit. At least one.
 */
static inline u32 lite_inbox_slots(u64 limit, u32 bytes)
{
	u64 n = limit / bytes;

	return n ? n : 1;
}

/* Where the bytes of a record are, in the rings. */
static inline u64 lite_inbox_offset(u32 slot, u32 ring_bytes, u32 unit,
				    u32 header)
{
	return (u64)slot * ring_bytes + (u64)unit * LITE_RING_UNIT + header;
}

/**
 * lite_inbox_put - an entry for a request
 * @q: with room
 * @entry: what the process is told
 *
 * Return: its number.
 */
u64 lite_inbox_put(struct lite_inbox_queue *q,
		   const struct lite_inbox_entry *entry);

/**
 * lite_inbox_is_empty - does the process say it has taken all?
 * @q: queue
 */
bool lite_inbox_is_empty(const struct lite_inbox_queue *q);

/**
 * lite_inbox_close - let the process take no more
 * @q: queue; the process may be taking an entry just now
 *
 * Return: how many of the last entries it has not taken, as it says: 0..@q->entries.
 */
u32 lite_inbox_close(struct lite_inbox_queue *q);

#endif /* _LITE_CORE_INBOX_H */
