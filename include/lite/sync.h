/* SPDX-License-Identifier: MIT */
/*
 * liblite: locks and barriers. Included by <lite/lite.h>, with the same conventions.
 *
 * Any aligned 8-byte word of an LMR is a lock as long as no other function changes it; 0 is a free
 * one. So each record of a table in an LMR may have its own lock:
 *
 *    err = lite_lock(ctx, lh, at, owner, 0, LITE_FOREVER);
 *    if (err == -EOWNERDEAD) {
 *        repair(...);
 *        err = lite_lock_consistent(ctx, lh, at, owner);
 *    }
 *    if (!err) {
 *        ...
 *        err = lite_unlock(ctx, lh, at, owner);
 *    }
 *
 * The holder is the context together with @owner, a number that the program chooses: threads that
 * exclude each other use different ones, and one thread may release a lock that another took.
 * Processes differ by their contexts.
 */
#ifndef LITE_SYNC_H
#define LITE_SYNC_H

#include <lite/lite.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/*
 * lite_lock - take a lock
 * @lh: handle with LITE_RIGHT_WRITE and LITE_RIGHT_ATOMIC
 * @offset: of the word, a multiple of 8
 * @owner: any number
 * @flags: LITE_LOCK_SHARED: share it with other readers; LITE_LOCK_TRY: do not wait for a holder
 * @timeout_ms: see lite.h; LITE_FOREVER by default
 *
 * The time-out is for the wait for other holders. Like any operation, the call may also wait for a
 * change of the LMR, and for a node of the LMR that does not answer, until that node counts as
 * down.
 *
 * Waiters get the lock in the order in which their requests reached the LMR's home. If a holder's
 * context is closed, also by the end of its process, or its node dies, its lock is released. If it
 * was exclusive, the next holder gets -EOWNERDEAD and *has the lock*, and so does every shared one
 * after that until an exclusive holder gets it, too, and calls lite_lock_consistent(). Shared
 * holders leave no -EOWNERDEAD behind.
 *
 * Return: 0; -EOWNERDEAD: the caller has the lock, and an exclusive holder before it died; -EBUSY
 * (held, perhaps by the caller, or by a waiter that the home does not know yet to have given up;
 * with LITE_LOCK_TRY or LITE_NOWAIT), -ETIMEDOUT, -EDEADLK (the caller has it already), -EOPNOTSUPP
 * (the RDMA device has no atomics, or the LMR is unpinned), -EMFILE (the context has LITE_LOCKS_MAX
 * locks), -EDQUOT (the user's share of the locks at this node, or at the LMR's home, is used up),
 * -ENOTRECOVERABLE (an exclusive holder released it without lite_lock_consistent() after
 * -EOWNERDEAD), -EBADF, -EACCES, -EINVAL (misaligned; the word holds no lock; no such time-out),
 * -ERANGE (beyond the end, or cut off meanwhile), -EIDRM (freed, perhaps meanwhile), -ESTALE (a
 * node that had the memory restarted), -EHOSTDOWN, -EIO or -EPROTO.
 * The caller has the lock only after 0 and -EOWNERDEAD.
 */
int lite_lock(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint64_t owner, uint32_t flags,
              int timeout_ms) LITE_NOEXCEPT;

/*
 * lite_unlock - release a lock
 * @lh: any handle of the LMR; it may have lost its rights
 * @offset: of the word
 * @owner: as passed to lite_lock()
 *
 * Except after -EBADF, -EPERM and -EOPNOTSUPP the caller no longer has the lock, whatever is
 * returned. After -EHOSTDOWN, -ETIMEDOUT, -EIO and -ENOMEM it is released as soon as possible.
 *
 * Return: 0; -EPERM (the caller does not have it); -EOPNOTSUPP (the LMR is unpinned, and has no
 * locks); -ENOLCK (the caller lost it, as its node counted as dead for a time); -EBADF, -EIDRM
 * (freed), -ERANGE (cut off), -ESTALE, -EHOSTDOWN, -ETIMEDOUT, -EIO or -EPROTO.
 */
int lite_unlock(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint64_t owner) LITE_NOEXCEPT;

/*
 * lite_lock_consistent - declare the data that a lock protects consistent
 * @lh: any handle of the LMR
 * @offset: of the word
 * @owner: as passed to lite_lock(), which returned -EOWNERDEAD
 *
 * If an exclusive holder releases the lock without this, it cannot be taken any more. Does not call
 * other nodes.
 *
 * Return: 0; -EPERM (the caller does not have it, or shares it); -EINVAL (the previous holder did
 * not die); -EBADF; -EOPNOTSUPP (the LMR is unpinned).
 */
int lite_lock_consistent(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset,
                         uint64_t owner) LITE_NOEXCEPT;

/*
 * lite_barrier - wait until @n callers wait at a barrier
 * @lh: handle with LITE_RIGHT_WRITE and LITE_RIGHT_ATOMIC
 * @offset: of a word, a multiple of 8, that is the barrier; its value is neither read nor changed
 * @n: number of callers, this one included, on any nodes; 1..LITE_BARRIER_MAX
 * @timeout_ms: of the wait for the others, as of lite_lock(); LITE_FOREVER by default
 *
 * When the last caller arrives all return, and the barrier is ready for the next round. Callers
 * that are killed, and those on nodes that are declared dead, no longer count.
 *
 * Return: 0; -ETIMEDOUT, or -EAGAIN with LITE_NOWAIT (the caller has not been counted); -EINVAL (@n
 * is 0 or too large, or others wait for another number; misaligned; no such time-out); -EDQUOT,
 * -EOPNOTSUPP (as lite_lock()); -EBADF, -EACCES, -ERANGE (beyond the end, or cut off meanwhile),
 * -EIDRM (freed), -ESTALE, -EIO or -EPROTO; -EHOSTDOWN (it is unknown whether the caller was
 * counted).
 */
int lite_barrier(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint32_t n,
                 int timeout_ms) LITE_NOEXCEPT;

/*
 * lite_barrier_open - open or make a named barrier
 * @name: of the LMR with the barrier in its first word; it is made if there is none
 * @mode: for an LMR that is made, as in struct lite_alloc_params
 * @lh: set to a handle for lite_barrier() at 0, to be closed by lite_unmap()
 *
 * The first caller makes the LMR, at its own node, and it is lost with that node. Like other named
 * LMRs it stays until it is freed (lite_free_name()), as a participant may be between two rounds.
 * While an LMR of that name is being freed, this waits for the end of that, up to 20 s.
 *
 * Return: 0, or as lite_map() and lite_alloc(); -EAGAIN: after 20 s an LMR of that name was still
 * being freed, or other programs kept making and freeing it.
 */
int lite_barrier_open(struct lite_ctx* ctx, const char* name, uint32_t mode,
                      lite_lh_t* lh) LITE_NOEXCEPT;

#pragma GCC visibility pop

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* LITE_SYNC_H */
