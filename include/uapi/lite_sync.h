/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * LITE: locks. Part of the ABI of /dev/liteN; see lite.h.
 *
 * Any 8-byte word of an LMR, aligned to 8 bytes, is a lock: 0 is one that nobody
 * has. As long as it is one, only the calls here may change it; what it means is
 * not for programs. To make it anew, write 0 to it when nobody uses it.
 *
 * DOC: errno values of these calls, beside those of lite.h
 *
 * ====================  ======================================================
 * EOWNERDEAD            the caller has the lock, and who had it before died with
 *                       it: what it protects may be half done
 * ENOTRECOVERABLE       such a holder gave the lock back without CONSISTENT:
 *                       nobody will have it any more
 * EBUSY                 another holder has the lock, and the caller does not wait
 * EAGAIN                the others have not all come to the barrier, and the caller
 *                       does not wait
 * ETIMEDOUT             it was not to be had in the time given
 * EDEADLK               the caller has it already
 * EMFILE                this open file has LITE_LOCKS_MAX locks
 * EDQUOT                the user has as many locks, or arrivals at barriers, at this
 *                       node, or at the home of the LMR, as there are for one
 * EPERM                 the lock is not the caller's to give back
 * ENOLCK                it was the caller's, but its node was out of reach for so
 *                       long that it counted as dead, and the lock was passed on
 * EINVAL                misaligned; or the word holds something that is no lock
 * ====================  ======================================================
 */
#ifndef _UAPI_LITE_SYNC_H
#define _UAPI_LITE_SYNC_H

#include <linux/types.h>

/* So many locks an open file can have at a time; their homes remember them. */
#define LITE_LOCKS_MAX 65536U

/* LITE_IOC_LOCK flags */
#define LITE_LOCK_SHARED (1U << 0) /* with others who want it so: to read */
#define LITE_LOCK_TRY (1U << 1)    /* as LITE_NOWAIT, whatever the time-out is */

/*
 * LITE_IOC_LOCK: take the lock in the word at @offset of the LMR.
 *
 * The handle needs WRITE and ATOMIC. Who has the lock is this open file together
 * with @owner, any number: threads that shall exclude each other use different
 * ones. Who waits gets the lock in the order in which the LMR's home heard of
 * them; only a signal that kills ends the wait early. Those who want it
 * LITE_LOCK_SHARED have it at the same time, but come after whoever has waited
 * for longer to have it alone.
 *
 * The lock is given back by UNLOCK, or when the open file is closed, also by the
 * end of the process, or when the node counts as dead. In these cases the next
 * one gets EOWNERDEAD, and has the lock; as does, if it is not wanted alone,
 * everybody until somebody has it alone and calls CONSISTENT.
 */
struct lite_ioc_lock {
	__u32 size;
	__u32 flags;           /* LITE_LOCK_* */
	__aligned_u64 lh;
	__aligned_u64 offset;  /* of the word, a multiple of 8 */
	__aligned_u64 owner;
	__s32 timeout_ms;      /* see lite.h */
	__u32 reserved;        /* 0 */
};

/*
 * LITE_IOC_UNLOCK: give a lock back that this open file and @owner have. Works
 * with any handle of the LMR, whatever rights it has lost. Whatever it returns,
 * but for EBADF and EPERM, the caller does not have the lock any more: after
 * EHOSTDOWN or ETIMEDOUT it is given back as soon as that is possible.
 *
 * LITE_IOC_CONSISTENT: after EOWNERDEAD, what the lock protects is in order
 * again. EINVAL: it was; EPERM also: the caller shares the lock.
 */
struct lite_ioc_unlock {
	__u32 size;
	__u32 flags;           /* 0 */
	__aligned_u64 lh;
	__aligned_u64 offset;
	__aligned_u64 owner;
};

/* The most that one barrier can be for. */
#define LITE_BARRIER_MAX 4096U

/*
 * LITE_IOC_BARRIER: wait until @n callers, this one included, wait at the barrier
 * in the word at @offset of the LMR, whose value does not matter and does not
 * change. Then all of them go on, and it is there for the next round.
 *
 * The handle needs WRITE and ATOMIC. Whoever comes while others wait for another
 * number of callers gets EINVAL. A caller that is killed, whose time is over, or
 * whose node counts as dead does not count any more. Who gets ETIMEDOUT has not
 * been counted; after EHOSTDOWN this is not known.
 */
struct lite_ioc_barrier {
	__u32 size;
	__u32 flags;           /* 0 */
	__aligned_u64 lh;
	__aligned_u64 offset;  /* of the word, a multiple of 8 */
	__u32 n;               /* 1..LITE_BARRIER_MAX */
	__s32 timeout_ms;      /* see lite.h */
};

#define LITE_IOC_LOCK _IO(LITE_IOC_TYPE, 0x20)
#define LITE_IOC_UNLOCK _IO(LITE_IOC_TYPE, 0x21)
#define LITE_IOC_CONSISTENT _IO(LITE_IOC_TYPE, 0x22)
#define LITE_IOC_BARRIER _IO(LITE_IOC_TYPE, 0x23)

#endif /* _UAPI_LITE_SYNC_H */
