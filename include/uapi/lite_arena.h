/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * LITE: arenas, memory that is ready to become LMRs. Part of the ABI of
 * /dev/liteN; see lite.h.
 */
#ifndef _UAPI_LITE_ARENA_H
#define _UAPI_LITE_ARENA_H

#include <linux/types.h>

/* An arena is made of blocks of this size. */
#define LITE_ARENA_BLOCK (2ULL << 20)

/*
 * An open file keeps at most this many blocks that its process has unmapped,
 * for its next arena.
 */
#define LITE_ARENA_KEPT_MAX 32

/* LITE_IOC_ARENA flags */
#define LITE_ARENA_EAGER (1U << 0) /* free its blocks when it is unmapped */
#define LITE_ARENA_ZERO (1U << 1)  /* also zero blocks that were kept */

/*
 * LITE_IOC_ARENA: map new memory into the process, of which LITE_IOC_REGISTER
 * can make LMRs without pinning or preparing it: its blocks are allocated and
 * made known to the RDMA device once, here.
 *
 * The memory is zeroed, except for blocks that the same process has had in an
 * earlier arena of this open file. These hold what it left there, unless
 * LITE_ARENA_ZERO is set: set it before you register memory for users that must
 * not see it. No other process ever gets a block before it is zeroed. A block
 * is not used again while anything (an LMR, a pipe, a device) has a part of it.
 *
 * munmap(2) unmaps it. Otherwise it behaves as shared memory that children do
 * not inherit: read(2), write(2), O_DIRECT and registrations of verbs work on
 * it; it cannot grow (mremap(2)), and is never swapped out. Process-shared
 * futexes in it fail with EFAULT, so stacks of threads must not be there
 * (pthread_join(3) waits for such a futex). It does not depend on this open
 * file, but once the node is stopped, what the process has not touched raises
 * SIGBUS, while the rest stays.
 *
 * REGISTER of a range in one arena needs no RLIMIT_MEMLOCK. The LMR is like any
 * other of registered memory, and keeps its blocks when the arena is unmapped.
 * A block goes back to the process, or to the kernel, only when the arena is
 * unmapped and all its LMRs are freed: then no node can reach it.
 *
 * Blocks count against MEM_LIMIT and UID_LIMIT of the node, and are charged to
 * the memory cgroup of the process, also while they are kept. Kept blocks are
 * freed when the machine is short of memory (not when the cgroup is: use
 * LITE_ARENA_EAGER in one with a tight limit), when a limit of the node is met,
 * when the open file is closed, and when the process ends (noticed at the
 * latest when another process makes an arena with that file).
 *
 * errno values: EINVAL: @length is 0 or not a multiple of LITE_ARENA_BLOCK;
 * EFBIG; ENOSPC, EDQUOT: the limits; ENFILE: no more files; ENOMEM; EINTR;
 * ENODEV; EOPNOTSUPP: an unknown flag.
 */
struct lite_ioc_arena {
	__u32 size;
	__u32 flags;           /* LITE_ARENA_* */
	__aligned_u64 length;  /* bytes, whole blocks */
	__aligned_u64 addr;    /* out */
};

#define LITE_IOC_ARENA _IO(LITE_IOC_TYPE, 0x1e)

#endif /* _UAPI_LITE_ARENA_H */
