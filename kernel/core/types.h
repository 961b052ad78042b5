/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What core/ needs of its environment. The rules in core/ never sleep, allocate or lock, so the
 * same files are compiled into the module and, for tests and fuzzers, into programs.
 */
#ifndef _LITE_CORE_TYPES_H
#define _LITE_CORE_TYPES_H

#ifdef __KERNEL__
#include <linux/atomic.h>
#include <linux/bitmap.h>
#include <linux/types.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/overflow.h>
#include <linux/build_bug.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#else
#include "core_native.h" /* tests/unit/core */
#endif

/* Extents and shares are made of whole pages of this size. */
#define LITE_PAGE_SHIFT 12
#define LITE_PAGE_SIZE (1UL << LITE_PAGE_SHIFT)

#endif /* _LITE_CORE_TYPES_H */
