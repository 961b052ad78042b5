/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What core needs of its surroundings, in the kernel and in native tests.
 *
 * core holds rules: nothing here sleeps, allocates or locks. The same files are
 * compiled into the module and, for tests and fuzzers, into programs.
 */
#ifndef _LITE_CORE_TYPES_H
#define _LITE_CORE_TYPES_H

#ifdef __KERNEL__

#include <linux/types.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/overflow.h>
#include <linux/build_bug.h>
#include <linux/string.h>
#include <asm/byteorder.h>

#else

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <endian.h>
#include <linux/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;

#define cpu_to_le16(x) ((__le16)htole16(x))
#define cpu_to_le32(x) ((__le32)htole32(x))
#define cpu_to_le64(x) ((__le64)htole64(x))
#define le16_to_cpu(x) le16toh((u16)(x))
#define le32_to_cpu(x) le32toh((u32)(x))
#define le64_to_cpu(x) le64toh((u64)(x))

#if !defined(__cplusplus) && !defined(static_assert)
#define static_assert _Static_assert
#endif
#define U64_MAX UINT64_MAX
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define sizeof_field(type, member) sizeof(((type *)0)->member)
#define check_add_overflow(a, b, d) __builtin_add_overflow(a, b, d)
#ifndef __packed
#define __packed __attribute__((packed))
#endif

#endif /* __KERNEL__ */

/* Extents and shares are made of whole pages of this size. */
#define LITE_PAGE_SHIFT 12
#define LITE_PAGE_SIZE (1UL << LITE_PAGE_SHIFT)

#endif /* _LITE_CORE_TYPES_H */
