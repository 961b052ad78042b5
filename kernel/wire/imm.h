/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The 32 bits of immediate data that announce a message. They come from a peer, and decoding does
 * not check them. Documentation/wire-protocol.rst ("Immediates") has the bits.
 */
#ifndef _LITE_WIRE_IMM_H
#define _LITE_WIRE_IMM_H

#include "core/types.h"

enum lite_imm_kind {
	LITE_IMM_REQUEST = 1,
	LITE_IMM_REPLY = 2,
	LITE_IMM_RPC_REQUEST = 3, /* first unit of the record */
	LITE_IMM_RPC_REPLY = 4,   /* slot of the call */
};

#define LITE_IMM_KIND_SHIFT 28
#define LITE_IMM_SLOT_MASK 0xffffU
#define LITE_IMM_RING_SHIFT 16
#define LITE_IMM_RING_MAX 0xfffU

/* Is immediate data, in host order, about an RPC ring? */
static inline bool lite_imm_is_ring(u32 imm)
{
	u32 k = imm >> LITE_IMM_KIND_SHIFT;

	return k == LITE_IMM_RPC_REQUEST || k == LITE_IMM_RPC_REPLY;
}

/* Encode in host order. @ring: to LITE_IMM_RING_MAX, 0 if @kind has none; @at: unit or slot. */
static inline u32 lite_imm_encode(enum lite_imm_kind kind, u16 ring, u16 at)
{
	return ((u32)kind << LITE_IMM_KIND_SHIFT) | ((u32)ring << LITE_IMM_RING_SHIFT) | at;
}

static inline void lite_imm_decode(u32 imm, enum lite_imm_kind *kind, u16 *ring, u16 *at)
{
	*kind = (enum lite_imm_kind)(imm >> LITE_IMM_KIND_SHIFT);
	*ring = (u16)((imm >> LITE_IMM_RING_SHIFT) & LITE_IMM_RING_MAX);
	*at = (u16)(imm & LITE_IMM_SLOT_MASK);
}

#endif /* _LITE_WIRE_IMM_H */
