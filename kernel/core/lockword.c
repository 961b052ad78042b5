// SPDX-License-Identifier: GPL-2.0
#include "lockword.h"

#define LITE_LIFE_BITS 18

static u64 lite_life(u64 incarnation)
{
	/* Incarnations are times in ns: mix all of their bits into the few that remain. */
	return (incarnation * 0x9e3779b97f4a7c15ULL) >> (64 - LITE_LIFE_BITS);
}

u64 lite_lockword_held(u32 node, u64 incarnation, u32 ticket)
{
	return (u64)LITE_LOCKWORD_HELD << 61 | (u64)(node & 0xffff) << 45 |
	       lite_life(incarnation) << LITE_TICKET_BITS | (ticket & LITE_TICKET_MAX);
}

enum lite_lockword_kind lite_lockword_kind(u64 word)
{
	u64 kind = word >> 61;

	if (kind == LITE_LOCKWORD_HELD)
		return lite_lockword_node(word) && lite_lockword_ticket(word) ?
			       LITE_LOCKWORD_HELD : LITE_LOCKWORD_OTHER;
	/* The rest of the word must be 0. */
	if (kind > LITE_LOCKWORD_ENDED || word << 3)
		return LITE_LOCKWORD_OTHER;
	return (enum lite_lockword_kind)kind;
}

bool lite_lockword_is_of(u64 word, u64 incarnation)
{
	return ((word >> LITE_TICKET_BITS) & ((1U << LITE_LIFE_BITS) - 1)) ==
	       lite_life(incarnation);
}

enum lite_lock_step lite_lock_step(u64 word)
{
	switch (lite_lockword_kind(word)) {
	case LITE_LOCKWORD_FREE:
	case LITE_LOCKWORD_DIED:
		return LITE_LOCK_SWAP;
	case LITE_LOCKWORD_HELD:
	case LITE_LOCKWORD_MANAGED:
		return LITE_LOCK_ASK;
	case LITE_LOCKWORD_ENDED:
		return LITE_LOCK_UNLOCKABLE;
	default:
		return LITE_LOCK_NONE;
	}
}

u64 lite_lock_after(enum lite_lock_end end)
{
	return lite_lockword(end == LITE_LOCK_DEAD ? LITE_LOCKWORD_DIED :
			     end == LITE_LOCK_BROKEN ? LITE_LOCKWORD_ENDED : LITE_LOCKWORD_FREE);
}
