/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The 8-byte word of a lock, and the rules for granting it: what a taker does about a value, and
 * what value a lock has after a claim. Documentation/locks.rst, The word, has the bits, the kinds,
 * and which kind follows which.
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

/* A word that has only a kind: neither HELD nor OTHER. */
static inline u64 lite_lockword(enum lite_lockword_kind kind)
{
	return (u64)kind << 61;
}

/* The word of a lock that claim @ticket, 1..LITE_TICKET_MAX, of a node holds. */
u64 lite_lockword_held(u32 node, u64 incarnation, u32 ticket);

/* The kind of a word; any value may have been written to memory. */
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

/* Was the lock in a HELD word taken in this life of its node? False positives: 2^-18. */
bool lite_lockword_is_of(u64 word, u64 incarnation);

/* What a taker does about a value found in the word. */
enum lite_lock_step {
	LITE_LOCK_SWAP,    /* compare-and-swap it for its own */
	LITE_LOCK_ASK,     /* ask the home */
	LITE_LOCK_UNLOCKABLE, /* it cannot be had any more */
	LITE_LOCK_NONE,    /* it is not a lock */
};

/* What a taker does after finding @word. */
enum lite_lock_step lite_lock_step(u64 word);

/* How a claim on a lock ends. */
enum lite_lock_end {
	LITE_LOCK_CLEAN = 0,  /* released */
	LITE_LOCK_DEAD = 1,   /* the holder is dead */
	LITE_LOCK_BROKEN = 2, /* released, but inconsistent */
	LITE_LOCK_UNUSED = 3, /* given up before its taker learnt of it */
};

/* The word of a lock after the claim that held it alone has ended. */
u64 lite_lock_after(enum lite_lock_end end);

/*
 * May the first claim in the queue have the lock, if it is @taken, and @shared
 * by its owner? Claims behind the first one wait for it.
 */
static inline bool lite_lock_fits(bool taken, bool shared, bool wants_shared)
{
	return !taken || (shared && wants_shared);
}

#endif /* _LITE_CORE_LOCKWORD_H */
