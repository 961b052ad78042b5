/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The 8-byte word of a lock, and the rules of who gets the lock.
 *
 *     63    61 60        45 44            27 26             0
 *    +--------+------------+----------------+----------------+
 *    |  kind  |    node    |      life      |     ticket     |
 *    +--------+------------+----------------+----------------+
 *
 * A word is FREE (all zero), or HELD: by a claim of a node in one of its lives.
 * Or it is MANAGED: who holds the lock, and who waits for it, is known to the
 * home of its LMR, and nobody else changes the word. DIED: free, but who had it
 * died with it. ENDED: given back by somebody who had been told so, and did not
 * make things good.
 *
 *     FREE -> HELD -> FREE     taken and given back, without the home
 *     HELD -> DIED -> HELD     its process died; the next one is told
 *     HELD -> ENDED            that one gave it back as it was
 *     any but ENDED -> MANAGED -> FREE, DIED, ENDED
 *                              by the home, when somebody has to wait
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
	LITE_LOCKWORD_OTHER, /* no lock at all */
};

/**
 * lite_lockword - a word of which only its kind matters
 * @kind: any but LITE_LOCKWORD_HELD and LITE_LOCKWORD_OTHER
 */
static inline u64 lite_lockword(enum lite_lockword_kind kind)
{
	return (u64)kind << 61;
}

/**
 * lite_lockword_held - the word of a lock that a claim has
 * @node: id of its node
 * @incarnation: of that node
 * @ticket: number of the claim there, 1..LITE_TICKET_MAX
 *
 * Return: the word.
 */
u64 lite_lockword_held(u32 node, u64 incarnation, u32 ticket);

/**
 * lite_lockword_kind - what a word says
 * @word: whatever is in memory, where anybody may have written
 *
 * Return: its kind.
 */
enum lite_lockword_kind lite_lockword_kind(u64 word);

/**
 * lite_lockword_node - who holds a HELD lock
 * @word: HELD
 *
 * Return: id of the node.
 */
static inline u32 lite_lockword_node(u64 word)
{
	return (u32)(word >> 45) & 0xffff;
}

/**
 * lite_lockword_ticket - whose claim it is
 * @word: HELD
 *
 * Return: number of the claim at its node.
 */
static inline u32 lite_lockword_ticket(u64 word)
{
	return (u32)word & LITE_TICKET_MAX;
}

/**
 * lite_lockword_is_of - was a lock taken in this life of its node?
 * @word: HELD
 * @incarnation: of the node
 *
 * Return: false if it was not; true also, once in 2^18, if it was not.
 */
bool lite_lockword_is_of(u64 word, u64 incarnation);

/* What who wants a lock does next. */
enum lite_lock_step {
	LITE_LOCK_SWAP,    /* compare-and-swap what was seen for one's own */
	LITE_LOCK_ASK,     /* ask the home */
	LITE_LOCK_UNLOCKABLE, /* nobody can have it any more */
	LITE_LOCK_NONE,    /* that is no lock */
};

/**
 * lite_lock_step - how to go on, having seen a word
 * @word: seen
 *
 * Return: what to do.
 */
enum lite_lock_step lite_lock_step(u64 word);

/* How a claim on a lock ends. */
enum lite_lock_end {
	LITE_LOCK_CLEAN = 0,  /* given back */
	LITE_LOCK_DEAD = 1,   /* who had it is no more */
	LITE_LOCK_BROKEN = 2, /* given back, but what it protects is not in order */
	LITE_LOCK_UNUSED = 3, /* not wanted any more by who never knew to have it */
};

/**
 * lite_lock_after - what a lock that was held alone becomes
 * @end: how it was given back
 *
 * Return: the word.
 */
u64 lite_lock_after(enum lite_lock_end end);

/**
 * lite_lock_fits - may the first who waits have the lock?
 * @taken: somebody has it
 * @shared: together with others, if he has
 * @wants_shared: whether who waits would share it
 *
 * Others who wait do not count: whoever is not the first waits for the first.
 */
static inline bool lite_lock_fits(bool taken, bool shared, bool wants_shared)
{
	return !taken || (shared && wants_shared);
}

#endif /* _LITE_CORE_LOCKWORD_H */
