/* SPDX-License-Identifier: GPL-2.0 */
/* What kernel/core and kernel/wire use of the kernel, for programs: see kernel/core/types.h. */
#ifndef LITE_CORE_NATIVE_H
#define LITE_CORE_NATIVE_H

#include <endian.h>
#include <errno.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

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
#define BIT_ULL(n) (1ULL << (n))
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, value) ((x) = (value))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define sizeof_field(type, member) sizeof(((type*)0)->member)
#define check_add_overflow(a, b, d) __builtin_add_overflow(a, b, d)
#ifndef __packed
#define __packed __attribute__((packed))
#endif

/* The kernel's lists and atomic counters, as far as core uses them. */
struct list_head {
    struct list_head *next, *prev;
};

#define list_entry(ptr, type, member) ((type*)((char*)(ptr)-offsetof(type, member)))
#define list_first_entry(head, type, member) list_entry((head)->next, type, member)
#define list_for_each_prev(pos, head) for (pos = (head)->prev; pos != (head); pos = pos->prev)

static inline void INIT_LIST_HEAD(struct list_head* list) {
    list->next = list;
    list->prev = list;
}

static inline bool list_empty(const struct list_head* head) { return head->next == head; }

static inline void list_add(struct list_head* entry, struct list_head* head) {
    entry->prev = head;
    entry->next = head->next;
    head->next->prev = entry;
    head->next = entry;
}

static inline void list_add_tail(struct list_head* entry, struct list_head* head) {
    list_add(entry, head->prev);
}

static inline void list_del(struct list_head* entry) {
    entry->next->prev = entry->prev;
    entry->prev->next = entry->next;
    entry->next = NULL;
    entry->prev = NULL;
}

typedef struct {
    s64 counter;
} atomic64_t;

#define atomic64_read(v) __atomic_load_n(&(v)->counter, __ATOMIC_RELAXED)
#define atomic64_set(v, i) __atomic_store_n(&(v)->counter, i, __ATOMIC_RELAXED)
#define atomic64_add(i, v) ((void)__atomic_add_fetch(&(v)->counter, i, __ATOMIC_RELAXED))
#define atomic64_add_return(i, v) __atomic_add_fetch(&(v)->counter, i, __ATOMIC_SEQ_CST)
#define atomic64_try_cmpxchg(v, old, new_) \
    __atomic_compare_exchange_n(&(v)->counter, old, new_, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)

/* The kernel's bitmaps, a bit at a time. */
#define BITS_TO_LONGS(n) (((n) + 63) / 64)

static inline bool test_bit(unsigned long at, const unsigned long* map) {
    return map[at / 64] >> at % 64 & 1;
}

static inline void bitmap_set(unsigned long* map, unsigned int at, unsigned int n) {
    for (; n; n--, at++)
        map[at / 64] |= 1UL << at % 64;
}

static inline void bitmap_clear(unsigned long* map, unsigned int at, unsigned int n) {
    for (; n; n--, at++)
        map[at / 64] &= ~(1UL << at % 64);
}

/* Ignores the alignment. */
static inline unsigned long bitmap_find_next_zero_area(unsigned long* map, unsigned long size,
                                                       unsigned long at, unsigned int n,
                                                       unsigned long align_mask) {
    unsigned int free = 0;

    (void)align_mask;
    for (; at < size && free < n; at++)
        free = test_bit(at, map) ? 0 : free + 1;
    return free == n ? at - n : size;
}

#endif
