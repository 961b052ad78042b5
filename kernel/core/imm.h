/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The 32 bits of immediate data that announce a message.
 *
 *   31    28 27          16 15            0
 *  +--------+--------------+---------------+
 *  |  kind  |  reserved 0  |     slot      |
 *  +--------+--------------+---------------+
 *
 * A peer wrote them: decoding checks everything that can be checked without
 * knowing how many slots there are.
 */
#ifndef _LITE_CORE_IMM_H
#define _LITE_CORE_IMM_H

#include "types.h"

enum lite_imm_kind {
	LITE_IMM_REQUEST = 1,
	LITE_IMM_REPLY = 2,
};

#define LITE_IMM_KIND_SHIFT 28
#define LITE_IMM_SLOT_MASK 0xffffU
#define LITE_IMM_RESERVED_MASK 0x0fff0000U

/**
 * lite_imm_encode - put a kind and a slot number into immediate data
 * @kind: what is announced
 * @slot: 0..65535
 *
 * Return: the value in host order.
 */
static inline u32 lite_imm_encode(enum lite_imm_kind kind, u16 slot)
{
	return ((u32)kind << LITE_IMM_KIND_SHIFT) | slot;
}

/**
 * lite_imm_decode - take immediate data apart
 * @imm: in host order
 * @kind: set on success
 * @slot: set on success
 *
 * Return: 0 or -EPROTO.
 */
static inline int lite_imm_decode(u32 imm, enum lite_imm_kind *kind, u16 *slot)
{
	u32 k = imm >> LITE_IMM_KIND_SHIFT;

	if (imm & LITE_IMM_RESERVED_MASK)
		return -EPROTO;
	if (k != LITE_IMM_REQUEST && k != LITE_IMM_REPLY)
		return -EPROTO;
	*kind = (enum lite_imm_kind)k;
	*slot = (u16)(imm & LITE_IMM_SLOT_MASK);
	return 0;
}

#endif /* _LITE_CORE_IMM_H */
