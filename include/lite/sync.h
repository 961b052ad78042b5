/* SPDX-License-Identifier: MIT */
/*
 * liblite: locks and barriers. Included by <lite/lite.h>, whose conventions are these.
 *
 * Any 8-byte word of an LMR, aligned to 8 bytes, is a lock as long as no other
 * function changes it; 0 is one that nobody has. So a table of records in an LMR
 * may have a lock in each record:
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
 * The holder is the context together with @owner, a number that the program
 * chooses: threads that are to exclude each other use different ones, and what
 * one thread has locked another may unlock. Processes differ by their contexts.
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
 * @ctx: context
 * @lh: handle with LITE_RIGHT_WRITE and LITE_RIGHT_ATOMIC
 * @offset: of the word, a multiple of 8
 * @owner: any number
 * @flags: LITE_LOCK_SHARED: with others who want it so, to read what it
 *    protects; LITE_LOCK_TRY: do not wait
 * @timeout_ms: how long to wait, as lite.h says; LITE_FOREVER by default
 *
 * Those who wait get the lock in the order of their coming, as the LMR's home
 * saw it. A context that is closed, also by the end of its process, and a node
 * that is no more, give back what they had: who gets it next is told, by
 * -EOWNERDEAD, and *has the lock*.
 *
 * Return: 0; -EOWNERDEAD: the caller has the lock, and who had it before died;
 * -EBUSY (LITE_LOCK_TRY or LITE_NOWAIT), -ETIMEDOUT, -EDEADLK (the caller has it
 * already), -EMFILE (the context has LITE_LOCKS_MAX locks), -EDQUOT (the user has its
 * part of the locks at this node, or of those that the LMR's home keeps),
 * -ENOTRECOVERABLE (given back without lite_lock_consistent() after
 * -EOWNERDEAD), -EBADF, -EACCES, -EINVAL (misaligned; the word holds no lock;
 * no such time-out), -ERANGE (beyond the end, or cut off
 * meanwhile), -EIDRM (freed, maybe meanwhile), -ESTALE (a node that had the
 * memory restarted), -EHOSTDOWN, -EIO or -EPROTO. Then the caller does not have
 * it.
 */
int lite_lock(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint64_t owner, uint32_t flags,
              int timeout_ms) LITE_NOEXCEPT;

/*
 * lite_unlock - give a lock back
 * @ctx: context
 * @lh: any handle of the LMR; it need not have its rights any more
 * @offset: of the word
 * @owner: as it was taken
 *
 * Whatever is returned but -EBADF and -EPERM: the caller does not have the lock
 * any more. After -EHOSTDOWN, -ETIMEDOUT, -EIO and -ENOMEM it is given back as
 * soon as that is possible.
 *
 * Return: 0; -EPERM (the caller does not have it); -ENOLCK (it was taken from
 * the caller, because the node counted as dead for a time); -EBADF, -EIDRM
 * (freed), -ERANGE (cut off), -ESTALE, -EHOSTDOWN, -ETIMEDOUT, -EIO or -EPROTO.
 */
int lite_unlock(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint64_t owner) LITE_NOEXCEPT;

/*
 * lite_lock_consistent - what a lock protects is in order again
 * @ctx: context
 * @lh: any handle of the LMR
 * @offset: of the word
 * @owner: as it was taken, with -EOWNERDEAD
 *
 * If the lock is given back without this, nobody can take it any more. Does not
 * call other nodes.
 *
 * Return: 0; -EPERM (the caller does not have it, or shares it); -EINVAL (it was
 * in order); -EBADF.
 */
int lite_lock_consistent(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset,
                         uint64_t owner) LITE_NOEXCEPT;

/*
 * lite_barrier - wait until @n callers wait at a barrier
 * @ctx: context
 * @lh: handle with LITE_RIGHT_WRITE and LITE_RIGHT_ATOMIC
 * @offset: of a word, a multiple of 8, that is the barrier; its value is not
 *    looked at, and does not change
 * @n: how many, this one included, on whatever nodes; 1..LITE_BARRIER_MAX
 * @timeout_ms: how long to wait, as lite.h says; LITE_FOREVER by default
 *
 * When the last one has come all go on, and the barrier is there for the next
 * round at once. Callers that are killed, and those of nodes that count as dead,
 * do not count any more.
 *
 * Return: 0; -ETIMEDOUT, or -EAGAIN with LITE_NOWAIT (the caller has not been
 * counted); -EINVAL (@n is 0 or too many, or others wait for another number;
 * misaligned; no such time-out); -EDQUOT (as lite_lock()); -EBADF, -EACCES,
 * -ERANGE (beyond the end, or cut off meanwhile), -EIDRM (freed), -ESTALE, -EIO
 * or -EPROTO; -EHOSTDOWN (it is not known whether the caller has been counted).
 */
int lite_barrier(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint32_t n,
                 int timeout_ms) LITE_NOEXCEPT;

/*
 * lite_barrier_open - a barrier of its own, by name
 * @ctx: context
 * @name: of an LMR, in whose first word the barrier is: one that is there, or one
 *    that is made now, for nothing else
 * @mode: of one that is made: as in struct lite_alloc_params
 * @lh: set to a handle for lite_barrier() at 0, to be closed by lite_unmap()
 *
 * Whoever comes first makes it, at its node; when that is no more, nor is the
 * barrier. It stays when nobody uses it, until it is freed, like other LMRs with
 * names (lite_free_name()): who comes to the next round may be between two.
 *
 * Return: 0, or as lite_map() and lite_alloc(); -EAGAIN: others make and free it
 * all the time.
 */
int lite_barrier_open(struct lite_ctx* ctx, const char* name, uint32_t mode,
                      lite_lh_t* lh) LITE_NOEXCEPT;

#pragma GCC visibility pop

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* LITE_SYNC_H */
