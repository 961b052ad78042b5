/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The 8-byte word of a lock: what a taker does about its value, and its value after a claim ended.
 * Documentation/locks.rst ("The word") has the bits, the kinds, and which kind follows which.
 */
#ifndef _LITE_CORE_LOCKWORD_H
#define _LITE_CORE_LOCKWORD_H

#include "types.h"

#define LITE_TICKET_BITS 27
#define LITE_TICKET_MAX ((1U << LITE_TICKET_BITS) - 1)

enum lite_lockword_kind {
	LITE_LOCKWORD_FREE = 0,
	LITE_LOCKWORD_HELD = 1,
	LITE_LOCKWORD_MANAGED = 2,
	LITE_LOCKWORD_DIED = 3,
	LITE_LOCKWORD_ENDED = 4,
	LITE_LOCKWORD_OTHER, /* not a lock */
};

/* The word of @kind, which is neither HELD nor OTHER: all other bits are 0. */
static inline u64 lite_lockword(enum lite_lockword_kind kind)
{
	return (u64)kind << 61;
}

/* The word of a lock that is held by claim @ticket (1..LITE_TICKET_MAX) of @node. */
u64 lite_lockword_held(u32 node, u64 incarnation, u32 ticket);

/* The kind of a word: OTHER if it is no lock, as programs can write any value. */
enum lite_lockword_kind lite_lockword_kind(u64 word);

/* Id of the holder's node; @word is HELD. */
static inline u32 lite_lockword_node(u64 word)
{
	return (u32)(word >> 45) & 0xffff;
}

/* Number of the holder's claim at its node; @word is HELD. */
static inline u32 lite_lockword_ticket(u64 word)
{
	return (u32)word & LITE_TICKET_MAX;
}

/* Was a HELD word written in this life of its node? False positives: 2^-18. */
bool lite_lockword_is_of(u64 word, u64 incarnation);

/* What a taker does about a value found in the word. */
enum lite_lock_step {
	LITE_LOCK_SWAP,    /* take the lock by compare-and-swap */
	LITE_LOCK_ASK,     /* ask the home */
	LITE_LOCK_UNLOCKABLE, /* the lock is unrecoverable */
	LITE_LOCK_NONE,    /* it is not a lock */
};

enum lite_lock_step lite_lock_step(u64 word);

/* How a claim on a lock ends. */
enum lite_lock_end {
	LITE_LOCK_CLEAN = 0,  /* released */
	LITE_LOCK_DEAD = 1,   /* the holder is dead */
	LITE_LOCK_BROKEN = 2, /* released, but inconsistent */
	LITE_LOCK_UNUSED = 3, /* given up before its taker knew that it was granted */
};

/* The word of a lock after its only holder's claim has ended. */
u64 lite_lock_after(enum lite_lock_end end);

/* May the first claim in the queue have the lock now? The claims behind it wait for it. */
static inline bool lite_lock_fits(bool taken, bool shared, bool wants_shared)
{
	return !taken || (shared && wants_shared);
}

#endif /* _LITE_CORE_LOCKWORD_H */
