/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * LITE: locks. Part of the ABI of /dev/liteN; see lite.h.
 *
 * Any aligned 8-byte word of an LMR can be a lock; 0 is a free one. While it is
 * a lock, only the calls below may change it, and its value is opaque. To reset
 * it, write 0 while it is not in use.
 *
 * DOC: errno values of these calls, beside those of lite.h
 *
 * ====================  ======================================================
 * EOWNERDEAD            the caller has the lock, and an exclusive holder before
 *                       it died with it: the data may be inconsistent
 * ENOTRECOVERABLE       after EOWNERDEAD an exclusive holder released the lock
 *                       without CONSISTENT: it cannot be taken any more
 * EBUSY                 the lock is held, perhaps by the caller itself, and the
 *                       caller does not wait
 * EAGAIN                not all participants are at the barrier, and the caller
 *                       does not wait
 * ETIMEDOUT             the wait timed out
 * EDEADLK               the caller already has the lock, and would wait
 * EMFILE                this open file has LITE_LOCKS_MAX locks
 * EDQUOT                the user has as many locks, or arrivals at barriers, at
 *                       this node, or at the LMR's home, as one user may have
 * EPERM                 the caller does not have the lock
 * ENOLCK                the caller had the lock, but its node was unreachable
 *                       for so long that it was declared dead and the lock
 *                       passed on
 * EINVAL                misaligned, or the word does not hold a lock
 * EOPNOTSUPP            the LMR is unpinned: no words of it can be locks or
 *                       barriers
 * ====================  ======================================================
 */
#ifndef _UAPI_LITE_SYNC_H
#define _UAPI_LITE_SYNC_H

#include <linux/types.h>

/* Most locks that one open file may hold. */
#define LITE_LOCKS_MAX 65536U

/* LITE_IOC_LOCK flags */
#define LITE_LOCK_SHARED (1U << 0) /* share it with other readers */
#define LITE_LOCK_TRY (1U << 1)    /* do not wait, whatever @timeout_ms is */

/*
 * LITE_IOC_LOCK: take the lock in the word at @offset of the LMR.
 *
 * The handle needs WRITE and ATOMIC. The holder is this open file together with
 * @owner, an arbitrary number: threads that exclude each other use different
 * ones. Waiters get the lock in the order in which their requests reached the
 * LMR's home; only a fatal signal ends the wait early. The time-out does not
 * bound waits for a suspect node or for a change of the LMR. LITE_LOCK_SHARED
 * holders share the lock, but queue behind earlier waiters that want it
 * exclusively.
 *
 * If the open file is closed, also by the end of the process, or the node dies,
 * the lock is released. If it was held exclusively, the next holder gets
 * EOWNERDEAD with it; so does every shared holder after that until an exclusive
 * one calls CONSISTENT.
 */
struct lite_ioc_lock {
	__u32 size;
	__u32 flags;           /* LITE_LOCK_* */
	__aligned_u64 lh;
	__aligned_u64 offset;  /* of the word, a multiple of 8 */
	__aligned_u64 owner;
	__s32 timeout_ms;      /* see lite.h; only for the wait for other holders */
	__u32 reserved;        /* 0 */
};

/*
 * LITE_IOC_UNLOCK: release a lock that this open file and @owner hold. Works
 * with any handle of the LMR, even one that has lost its rights. Except after
 * EBADF and EPERM the caller no longer has the lock, whatever the result: after
 * EHOSTDOWN or ETIMEDOUT it is released as soon as possible.
 *
 * LITE_IOC_CONSISTENT: after EOWNERDEAD, declare the protected data consistent
 * again. EINVAL: it is consistent. EPERM also: the caller shares the lock.
 */
struct lite_ioc_unlock {
	__u32 size;
	__u32 flags;           /* 0 */
	__aligned_u64 lh;
	__aligned_u64 offset;
	__aligned_u64 owner;
};

#define LITE_BARRIER_MAX 4096U

/*
 * LITE_IOC_BARRIER: wait until @n callers, this one included, wait at the
 * barrier in the word at @offset of the LMR. The value of the word is neither
 * read nor changed. Then all of them return, and the barrier is ready for the
 * next round.
 *
 * The handle needs WRITE and ATOMIC. EINVAL also: others wait for a different
 * number of callers. A caller that is killed or times out, or on a node that is
 * declared dead, no longer counts. After ETIMEDOUT, or EAGAIN with LITE_NOWAIT,
 * the caller was not counted; after EHOSTDOWN this is unknown.
 */
struct lite_ioc_barrier {
	__u32 size;
	__u32 flags;           /* 0 */
	__aligned_u64 lh;
	__aligned_u64 offset;  /* of the word, a multiple of 8 */
	__u32 n;               /* 1..LITE_BARRIER_MAX */
	__s32 timeout_ms;      /* see lite.h; only for the wait for other callers */
};

#define LITE_IOC_LOCK _IO(LITE_IOC_TYPE, 0x20)
#define LITE_IOC_UNLOCK _IO(LITE_IOC_TYPE, 0x21)
#define LITE_IOC_CONSISTENT _IO(LITE_IOC_TYPE, 0x22)
#define LITE_IOC_BARRIER _IO(LITE_IOC_TYPE, 0x23)

#endif /* _UAPI_LITE_SYNC_H */
