/* SPDX-License-Identifier: MIT */
/*
 * liblite: named memory on the machines of a LITE cluster, for C programs.
 *
 * A program opens a context on the LITE node of its machine, allocates or maps memory regions
 * (LMRs) by name, and reads, writes and atomically updates them through handles, wherever their
 * memory is:
 *
 *    struct lite_ctx *ctx;
 *    lite_lh_t lh;
 *    int err = lite_open(-1, &ctx);
 *
 *    if (!err)
 *        err = lite_map(ctx, "greeting", LITE_RIGHT_READ, &lh, NULL);
 *    if (!err)
 *        err = lite_read(ctx, lh, 0, buf, sizeof(buf));
 *    if (err)
 *        fprintf(stderr, "greeting: %s\n", lite_strerror(err));
 *
 * Unless a function says otherwise:
 *
 * - @ctx is a context from lite_open() or lite_open_readonly().
 * - It returns 0, or a negative errno as defined in <uapi/lite.h>; lite_strerror() gives the text.
 *   The global errno is neither used nor preserved. Output parameters are untouched on failure.
 * - Any number of threads may call it on one context at the same time. Only lite_close() must be
 *   the last call on its context.
 * - It may sleep, and only a signal that kills the caller ends it early.
 * - It is not a reliable cancellation point, not async-signal-safe, and throws no C++ exception.
 * - A time-out is in ms, from 1 to LITE_TIMEOUT_MAX (a day), or LITE_NOWAIT (0: do not wait),
 *   LITE_FOREVER (-1) or LITE_TIMEOUT_DEFAULT (-2: 5 s for calls and messages, 15 s to join a
 *   cluster, LITE_FOREVER for the rest); -EINVAL for any other.
 * - Names are byte strings of 1..LITE_NAME_MAX bytes and a NUL, without control characters (below
 *   0x20) and DEL. '/' is not special, and a name need not be UTF-8.
 * - These errors are not repeated below: -ENODEV (the node was stopped; only lite_close() makes
 *   sense then), -ENOTCONN (the node is in no cluster), and from functions that may sleep -ENOMEM,
 *   -EINTR, and -ENOTTY, -E2BIG or -EOPNOTSUPP (the kernel module is too old for the request).
 *
 * A child made by fork(2) shares the context's open file with its parent: handles, functions, calls
 * to collect, locks. It may use them as a thread of the parent could, and lite_unmap(), lite_free()
 * and lite_rpc_unregister() act for both, whichever process calls them. lite_close() only closes
 * the child's copy; what the file has lives until both are closed. A child that does not need LITE
 * should call lite_close() and nothing else; one that needs it should open its own context. The
 * destructors of <lite/lite.hpp> follow these rules. A program started by exec(3) does not share
 * the file: the descriptor is close-on-exec.
 */
#ifndef LITE_LITE_H
#define LITE_LITE_H

#include <stddef.h>
#include <stdint.h>

#include <uapi/lite.h>

#ifdef __cplusplus
#define LITE_NOEXCEPT noexcept
extern "C" {
#else
#define LITE_NOEXCEPT
#endif

#pragma GCC visibility push(default)

/* An opened LITE node of this machine. Not "struct lite": that is a C++ namespace here. */
struct lite_ctx;

/* Handle of an LMR in one context. Never 0. */
typedef uint64_t lite_lh_t;

/*
 * struct lite_alloc_params - parameters of lite_alloc()
 * @size: sizeof(struct lite_alloc_params), so that it can grow
 * @flags: LITE_ALLOC_*, of <uapi/lite.h> and below
 * @name: name, or NULL or "": anonymous; it then ends with the last handle, or mapping by
 *    lite_mmap(), on this node
 * @length: bytes, 1..LITE_LMR_SIZE_MAX
 * @nodes: ids of the nodes to spread it over in equal shares, the first is its home; NULL with
 *    @n_nodes == 0: this node
 * @n_nodes: 0..LITE_SPREAD_MAX
 * @mode: permission bits like those of a file, 0666 at most; the umask does not apply
 *
 * Unused fields are 0.
 */
struct lite_alloc_params {
    uint32_t size;
    uint32_t flags;
    const char* name;
    uint64_t length;
    const uint32_t* nodes;
    uint32_t n_nodes;
    uint32_t mode;
};

/*
 * The LMR is a memfd that the library maps into this process and registers with
 * LITE_REGISTER_UNPINNED: its pages are brought in when they are used, can be swapped out, and
 * count only against the process's memory cgroup. So it can be on this node only (-EINVAL), and has
 * whole pages. Named or not, it ends at the latest when the process closes the context or ends;
 * children do not have it. No other flag but LITE_ALLOC_LEASED may be set (-EINVAL). Other errors:
 * as lite_register_with().
 */
#define LITE_ALLOC_UNPINNED (1U << 31)

/*
 * With LITE_ALLOC_UNPINNED: the memory is registered with LITE_REGISTER_LEASED, too. It is then
 * anonymous memory, not a memfd.
 */
#define LITE_ALLOC_LEASED (1U << 30)

/*
 * lite_open - open a LITE node of this machine
 * @index: the N of /dev/liteN; -1: the value of the environment variable LITE_INDEX, or 0 if it is
 *    unset or empty
 * @out: set to the context, to be closed by lite_close()
 *
 * Return: 0, -ENODEV (no such device, or not one of LITE), -EACCES (no permission to open the
 * device), -EPROTONOSUPPORT (the kernel module has another version of the ABI), -EINVAL (@index is
 * below -1 or above 2^20-1, or LITE_INDEX is not a number of 0..2^20-1), -EMFILE or -ENFILE (no
 * descriptor left), -ENOMEM.
 */
int lite_open(int index, struct lite_ctx** out) LITE_NOEXCEPT;

/*
 * lite_open_readonly - open a LITE node of this machine for reading
 * @index: as lite_open()
 * @out: set to the context, to be closed by lite_close()
 *
 * Needs only read permission on the device. The context allows lite_query(), lite_stat(),
 * lite_list(), lite_grants(), lite_rpc_find(), lite_set_priority(), lite_map() with LITE_RIGHT_READ
 * alone, and use of such handles; all other calls fail with -EACCES.
 *
 * Return: as lite_open().
 */
int lite_open_readonly(int index, struct lite_ctx** out) LITE_NOEXCEPT;

/*
 * lite_close - close a context, its handles and its anonymous LMRs
 * @ctx: from lite_open(), or NULL; no other call on it may be in progress
 *
 * If children or users of lite_fd() have copies of the descriptor, handles and anonymous LMRs live
 * until the last copy is closed.
 */
void lite_close(struct lite_ctx* ctx) LITE_NOEXCEPT;

/*
 * lite_fd - the descriptor of /dev/liteN behind a context
 *
 * For ioctls that this library does not know, and for passing it on. The context owns it: do not
 * close it. Never sleeps.
 *
 * Return: the descriptor.
 */
int lite_fd(const struct lite_ctx* ctx) LITE_NOEXCEPT;

/*
 * lite_query - describe the kernel module and the node
 * @out: filled completely; need not be initialised
 *
 * Works in every state of the node, and never waits for another node.
 *
 * Return: 0 or a negative errno.
 */
int lite_query(struct lite_ctx* ctx, struct lite_ioc_query* out) LITE_NOEXCEPT;

/*
 * lite_alloc - make an LMR of zeroed bytes and open it
 * @params: what to make
 * @lh: set to a handle with all rights that @params->mode gives, SHARE and MASTER; untouched, and
 *    may be NULL, with LITE_ALLOC_NO_HANDLE
 *
 * While an LMR of that name is being freed (up to 15 s, if a node that has it open does not
 * answer), this returns -EEXIST, although lite_map() may return -ENOENT already.
 *
 * Return: 0, -EINVAL (length 0, bits beyond 0666 in the mode, more than LITE_SPREAD_MAX nodes, a
 * node listed twice, no node id, a bad name, LITE_ALLOC_NO_HANDLE without a name, no @lh, a wrong
 * @size), -EFAULT (@nodes), -E2BIG (@params is longer than this library knows, with a non-zero
 * excess), -ENAMETOOLONG, -EFBIG (too long; unpinned: also longer than RLIMIT_FSIZE), -EEXIST (the
 * name is taken), -EHOSTUNREACH (no such node), -EHOSTDOWN, -ESTALE (a node restarted meanwhile),
 * -ENOSPC (a node's memory for LMRs is used up), -EDQUOT (the caller's share of it is), -EMFILE
 * (too many handles), -EIO, -EPROTO, or -ETIMEDOUT (it is unknown whether the LMR exists).
 */
int lite_alloc(struct lite_ctx* ctx, const struct lite_alloc_params* params,
               lite_lh_t* lh) LITE_NOEXCEPT;

/*
 * lite_map - open an LMR by name
 * @name: its name
 * @rights: LITE_RIGHT_* wanted, at least one
 * @lh: set to the handle
 * @length: set to the LMR's length in bytes; may be NULL
 *
 * Return: 0, -ENOENT, -EACCES (the caller lacks some of @rights), -EINVAL (a bad name, no rights),
 * -ENAMETOOLONG, -EMFILE, -EHOSTDOWN, -EIO, -EPROTO or -ETIMEDOUT.
 */
int lite_map(struct lite_ctx* ctx, const char* name, uint32_t rights, lite_lh_t* lh,
             uint64_t* length) LITE_NOEXCEPT;

/*
 * lite_unmap - close a handle
 * @lh: handle
 *
 * Operations in flight on it, in other threads, complete normally. May wait for them.
 *
 * Return: 0 or -EBADF.
 */
int lite_unmap(struct lite_ctx* ctx, lite_lh_t lh) LITE_NOEXCEPT;

/*
 * lite_free - free the LMR behind a handle and close the handle
 * @lh: handle with LITE_RIGHT_MASTER; still open if this fails
 *
 * On return no node can reach the memory any more, and other handles of the LMR fail with -EIDRM.
 *
 * Return: 0, -EBADF, -EACCES (no MASTER), -EIDRM (already freed), -ESTALE or -EHOSTDOWN (its home
 * restarted, or is down), -EIO, -EPROTO, or -ETIMEDOUT (it is unknown whether the LMR is freed).
 */
int lite_free(struct lite_ctx* ctx, lite_lh_t lh) LITE_NOEXCEPT;

/*
 * lite_free_name - free an LMR by name
 * @name: its name
 *
 * As lite_free(), for its masters: owner, root, and users granted MASTER.
 *
 * Return: 0, -ENOENT, -EPERM (no master), -EINVAL (a bad name), -ENAMETOOLONG, -EHOSTDOWN, -EIO,
 * -EPROTO, or -ETIMEDOUT (it is unknown whether the LMR is freed).
 */
int lite_free_name(struct lite_ctx* ctx, const char* name) LITE_NOEXCEPT;

/*
 * lite_read - read from an LMR
 * @lh: handle with LITE_RIGHT_READ
 * @offset: in the LMR, bytes
 * @buf: destination; any writable memory of the process. Buffers of more than 4096 bytes are
 *   pinned, unless the data is in this node's memory; memory of devices and of memfd_secret(2)
 *   cannot be (-EFAULT)
 * @length: bytes, at least 1
 *
 * Complete when it returns. Not atomic: a concurrent write may be seen in part. After a failure
 * @buf may have been written in part; lite_op_submit() tells how far.
 *
 * Return: 0, -EBADF, -EACCES, -ERANGE (beyond the end), -EINVAL (@length is 0), -EFAULT (@buf; or
 * the LMR is unpinned, and its process has no memory there), -EIDRM (freed), -ESTALE or -EHOSTDOWN
 * (a node with its memory restarted, or is down), -ETIMEDOUT, -EIO or -EPROTO.
 */
int lite_read(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, void* buf,
              size_t length) LITE_NOEXCEPT;

/*
 * lite_write - write to an LMR
 * @lh: handle with LITE_RIGHT_WRITE
 * @offset: in the LMR, bytes
 * @buf: source, as for lite_read()
 * @length: bytes, at least 1
 *
 * When it returns, the data is in the LMR's memory and every later read from any node sees it (see
 * lite_fence() for processors of the LMR's node). Not atomic as a whole. After a failure any part
 * of the range may have been written; lite_op_submit() tells how much certainly was.
 *
 * Return: 0 or a negative errno as lite_read().
 */
int lite_write(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, const void* buf,
               size_t length) LITE_NOEXCEPT;

/*
 * lite_fetch_add - atomically add to an 8-byte word
 * @lh: handle with LITE_RIGHT_ATOMIC
 * @offset: in the LMR, a multiple of 8
 * @add: addend, modulo 2^64
 * @old: set to the previous value; may be NULL
 *
 * Atomic with respect to all atomics of LITE, from all nodes. Words are in host order, which is the
 * same on all nodes.
 *
 * Return: 0 or a negative errno as lite_read(); -EINVAL for a misaligned @offset, -EOPNOTSUPP if
 * the RDMA device has no atomics. After -ETIMEDOUT, -EIO and -EHOSTDOWN it is unknown whether the
 * word was changed.
 */
int lite_fetch_add(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint64_t add,
                   uint64_t* old) LITE_NOEXCEPT;

/*
 * lite_cmp_swap - atomically compare and swap an 8-byte word
 * @lh: handle with LITE_RIGHT_ATOMIC
 * @offset: in the LMR, a multiple of 8
 * @expected: value to be replaced
 * @desired: the new value
 * @old: set to the previous value; swapped if, and only if, that is @expected. May be NULL.
 *
 * Return: 0, whether swapped or not, or a negative errno as lite_fetch_add().
 */
int lite_cmp_swap(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint64_t expected,
                  uint64_t desired, uint64_t* old) LITE_NOEXCEPT;

/*
 * lite_swap - atomically replace an 8-byte word
 * @lh: handle with LITE_RIGHT_ATOMIC
 * @offset: in the LMR, a multiple of 8
 * @desired: the new value
 * @old: set to the previous value; may be NULL
 *
 * The kernel of the node that holds the word executes this, lite_fetch_and() and lite_fetch_or().
 * They are atomic with respect to all atomics.
 *
 * Return: 0 or a negative errno as lite_fetch_add().
 */
int lite_swap(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint64_t desired,
              uint64_t* old) LITE_NOEXCEPT;

/*
 * lite_fetch_and - atomically clear bits of an 8-byte word
 * @lh: handle with LITE_RIGHT_ATOMIC
 * @offset: in the LMR, a multiple of 8
 * @mask: the bits to keep
 * @old: set to the previous value; may be NULL
 *
 * Return: 0 or a negative errno as lite_fetch_add().
 */
int lite_fetch_and(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint64_t mask,
                   uint64_t* old) LITE_NOEXCEPT;

/*
 * lite_fetch_or - atomically set bits of an 8-byte word
 * @lh: handle with LITE_RIGHT_ATOMIC
 * @offset: in the LMR, a multiple of 8
 * @bits: bits to set
 * @old: set to the previous value; may be NULL
 *
 * Return: 0 or a negative errno as lite_fetch_add().
 */
int lite_fetch_or(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint64_t bits,
                  uint64_t* old) LITE_NOEXCEPT;

/*
 * lite_set - fill a range of an LMR with a pattern
 * @lh: handle with LITE_RIGHT_WRITE
 * @offset: in the LMR, bytes; the pattern begins there
 * @length: bytes, at least 1; need not be a multiple of the pattern's
 * @pattern: its bytes
 * @pattern_length: number of them, 1..8
 *
 * The nodes that hold the bytes execute this and the three functions below. After -ETIMEDOUT and
 * -EHOSTDOWN they may still process some more megabytes.
 *
 * Return: 0 or a negative errno as lite_read(); -EINVAL also for an empty pattern or one of more
 * than 8 bytes. After a failure, lite_op_submit() tells how far it came.
 */
int lite_set(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint64_t length,
             const void* pattern, size_t pattern_length) LITE_NOEXCEPT;

/*
 * lite_copy - copy between two LMRs, or within one
 * @to: handle with LITE_RIGHT_WRITE
 * @to_offset: destination in that LMR, bytes
 * @from: handle with LITE_RIGHT_READ
 * @from_offset: source in that LMR, bytes
 * @length: bytes, at least 1
 *
 * The data goes from node to node directly. Ranges of one LMR may overlap, as with memmove(3).
 * After a failure any part of the destination may have been written, and so any part of a source
 * that overlaps it.
 *
 * Return: 0 or a negative errno as lite_read().
 */
int lite_copy(struct lite_ctx* ctx, lite_lh_t to, uint64_t to_offset, lite_lh_t from,
              uint64_t from_offset, uint64_t length) LITE_NOEXCEPT;

/*
 * lite_compare - compare two ranges of LMRs byte by byte
 * @lh: handle with LITE_RIGHT_READ
 * @offset: in that LMR, bytes
 * @other: handle with LITE_RIGHT_READ
 * @other_offset: in that LMR, bytes
 * @length: bytes, at least 1
 * @equal: set to the number of equal leading bytes: @length if all are
 *
 * The node that holds the first range fetches the second one.
 *
 * Return: 0, equal or not, or a negative errno as lite_read().
 */
int lite_compare(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, lite_lh_t other,
                 uint64_t other_offset, uint64_t length, uint64_t* equal) LITE_NOEXCEPT;

/*
 * lite_checksum - CRC-32C of a range of an LMR
 * @lh: handle with LITE_RIGHT_READ
 * @offset: in the LMR, bytes
 * @length: bytes, at least 1
 * @seed: checksum of what precedes the range, or 0
 * @crc: set to the checksum of that and the range together
 *
 * CRC-32C (Castagnoli) as in iSCSI, ext4 and RFC 3720: that of the text "123456789" is 0xe3069283.
 *
 * Return: 0 or a negative errno as lite_read().
 */
int lite_checksum(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint64_t length,
                  uint32_t seed, uint32_t* crc) LITE_NOEXCEPT;

/*
 * lite_op_submit - submit one operation
 * @op: the operation. Sets @op->size, and @op->error to 0, so that an operation that failed in
 *    lite_vector() can be retried as it is. Sets @op->result, on failure too, to the number
 *    of leading bytes known to be transferred by READ and WRITE, or done by SET and COPY (0 if it
 *    copies overlapping ranges from the end); or to the previous value of an atomic, the number of
 *    equal bytes or the checksum (on failure: 0)
 *
 * The operations above are made of this; use it to learn how far a failed one came.
 *
 * Return: 0 or a negative errno as theirs; -EPERM (@op->priority is above the user's ceiling);
 * -EINVAL (no such priority, or the length of an atomic is not 8).
 */
int lite_op_submit(struct lite_ctx* ctx, struct lite_op* op) LITE_NOEXCEPT;

/*
 * lite_mmap - map a part of an LMR that is in this machine's memory
 * @lh: handle with LITE_RIGHT_READ, and LITE_RIGHT_WRITE to write
 * @offset: in the LMR, a multiple of the page size
 * @length: bytes, at least 1; whole pages are mapped
 * @prot: PROT_READ, or PROT_READ | PROT_WRITE, of <sys/mman.h>
 * @flags: LITE_MMAP_*
 * @addr: set to the address of the mapping, to be unmapped by munmap(2)
 *
 * Loads and stores there are reads and writes of the LMR. The mapping outlives the handle and the
 * context, and keeps an anonymous LMR alive. It works like a mapping of a file with MAP_SHARED: for
 * read(2), write(2) and O_DIRECT, in children, and with mprotect(2) within @prot; see LITE_IOC_MMAP
 * in <uapi/lite.h>.
 *
 * An access raises SIGBUS, and a system call fails with EFAULT, once the LMR is freed, a right to
 * it is taken away, or the node is stopped; while its bytes are elsewhere; and while its home is
 * down.
 *
 * Return: 0, -EBADF, -EACCES (the handle lacks a right), -ERANGE (beyond the end), -EINVAL (@length
 * is 0, a misaligned @offset, another @prot), -EREMOTE (a byte of it is in another node's memory),
 * -EOPNOTSUPP (it is registered memory), -EIDRM (freed), -ESTALE or -EHOSTDOWN (its home restarted,
 * or is down), -ETIMEDOUT, -EIO or -EPROTO (its home could not be asked), -EMFILE (a mapping counts
 * as a handle of the user), -ENFILE (no more files), or -ENOMEM (also: a limit of the address
 * space).
 */
int lite_mmap(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, size_t length, int prot,
              uint32_t flags, void** addr) LITE_NOEXCEPT;

/*
 * lite_register - make an LMR of memory of the process, and open it
 * @name: name, or NULL or "": anonymous
 * @addr: the memory, whole pages
 * @length: bytes, whole pages
 * @mode: permission bits as in struct lite_alloc_params
 * @lh: set to a handle with all rights that @mode gives, SHARE and MASTER
 *
 * Nothing is copied: the LMR consists of these pages, which are pinned and count against the user's
 * RLIMIT_MEMLOCK. They may be anonymous, or of shmem, memfd or hugetlbfs. They stay in the LMR when
 * the process unmaps or replaces them. The LMR is freed like any other, and at the latest, named or
 * not, when the context is closed. Its home is this node.
 *
 * Return: 0, -EINVAL (@addr or @length are not whole pages, bits beyond 0666 in the mode, a bad
 * name), -ENAMETOOLONG, -EFBIG, -EFAULT (not all of it is mapped and writable), -EOPNOTSUPP or
 * -EFAULT (it belongs to a file in a file system, or to a driver, as a mapping of lite_mmap()
 * does), -EDQUOT (RLIMIT_MEMLOCK; or the user's share of the node's memory for LMRs, against which
 * the metadata count), -ENOSPC (all of that memory is used up), -EEXIST (the name is taken),
 * -EMFILE, -EHOSTDOWN, -ETIMEDOUT, -EIO or -EPROTO (a node that keeps names could not be asked).
 */
int lite_register(struct lite_ctx* ctx, const char* name, void* addr, size_t length, uint32_t mode,
                  lite_lh_t* lh) LITE_NOEXCEPT;

/*
 * lite_register_with - lite_register(), with flags
 * @flags: LITE_REGISTER_*
 *
 * With LITE_REGISTER_UNPINNED no page is pinned, counted or brought in, however long the LMR is. It
 * is what the process has at these addresses at any time: its pages may be swapped out or migrated;
 * if the process unmaps them, operations on them fail with -EFAULT, and if it maps others,
 * operations see these. The memory may be anonymous, shmem or a memfd, also read-only. See
 * Documentation/interfaces/unpinned.rst.
 *
 * With LITE_REGISTER_LEASED, too, writable pages that operations bring in are pinned for ten
 * seconds, or until memory is short or the process takes them away: during a burst of operations
 * the kernel does not swap or compact them, if they are anonymous. No pages are pinned beyond half
 * of RLIMIT_MEMLOCK (with CAP_IPC_LOCK there is no limit). This flag alone is -EINVAL (-EOPNOTSUPP
 * if the node was started without --unpinned).
 *
 * Return: as lite_register(), or -EOPNOTSUPP (an unknown flag). With LITE_REGISTER_UNPINNED never
 * -EDQUOT for RLIMIT_MEMLOCK, but also -EOPNOTSUPP (other memory, or the node was started without
 * --unpinned), -EFBIG (more than 4 GB), -EEXIST (a part is an unpinned LMR already) and -EBUSY
 * (eight such LMRs have parts of the same 2 MB, or 1024 were freed while threads kept changing
 * memory).
 */
int lite_register_with(struct lite_ctx* ctx, const char* name, void* addr, size_t length,
                       uint32_t mode, uint32_t flags, lite_lh_t* lh) LITE_NOEXCEPT;

/*
 * lite_stat - describe the LMR behind a handle
 * @lh: handle; needs no particular right
 * @info: set to the description
 * @nodes: room for the ids of the nodes that it is spread over, or NULL
 * @n_nodes: in: room in @nodes; out: number of nodes, of which those that fit are in @nodes.
 *    LITE_SPREAD_MAX is always enough. May be NULL together with @nodes.
 *
 * Return: 0, -EBADF, -EIDRM (freed), -ESTALE or -EHOSTDOWN (its home restarted, or is down),
 * -EINVAL (@nodes without @n_nodes, or room without @nodes), -EIO, -EPROTO or -ETIMEDOUT.
 */
int lite_stat(struct lite_ctx* ctx, lite_lh_t lh, struct lite_lmr_info* info, uint32_t* nodes,
              uint32_t* n_nodes) LITE_NOEXCEPT;

/*
 * lite_stat_name - describe an LMR by name
 * @name: its name
 * @info, @nodes, @n_nodes: as in lite_stat()
 *
 * Needs no right on the LMR, as stat(2) needs none on a file.
 *
 * Return: 0, -ENOENT, -ENAMETOOLONG, -EINVAL, -EHOSTDOWN, -EIO, -EPROTO or
 * -ETIMEDOUT.
 */
int lite_stat_name(struct lite_ctx* ctx, const char* name, struct lite_lmr_info* info,
                   uint32_t* nodes, uint32_t* n_nodes) LITE_NOEXCEPT;

/*
 * lite_list - list some of the LMRs of the cluster
 * @cursor: position; 0 before the first call, and again after the call that returned the last LMRs.
 *    Opaque otherwise. Changed on success only.
 * @infos: room for @n descriptions
 * @n: at least 1
 *
 * LMRs come in order of (home, id). Those made or freed between two calls may or may not be listed;
 * no other is missed or listed twice. Fewer than @n, even none, does not mean the end: a @cursor of
 * 0 does.
 *
 * Return: number of @infos filled, -EINVAL (@n is 0 or above INT32_MAX), -EFAULT or -EPROTO. Homes
 * that do not answer are skipped.
 */
int lite_list(struct lite_ctx* ctx, uint64_t* cursor, struct lite_lmr_info* infos,
              uint32_t n) LITE_NOEXCEPT;

/*
 * lite_list_each - call a function for every LMR of the cluster
 * @fn: called with each LMR, in order of (home, id), and @arg; it may use @ctx. A non-zero return
 *    value ends the listing. It must not throw. It cannot be cancelled (pthread_cancel(3)).
 * @arg: for @fn
 *
 * Return: 0 after the last LMR, the value of @fn that ended the listing, or a negative errno as
 * lite_list().
 */
int lite_list_each(struct lite_ctx* ctx, int (*fn)(const struct lite_lmr_info* info, void* arg),
                   void* arg) LITE_NOEXCEPT;

/*
 * lite_strerror - text of an errno of LITE
 * @err: errno, positive or negative
 *
 * For LMRs, locks and barriers; for functions use lite_rpc_strerror(). Never sleeps;
 * async-signal-safe for the errno values of <uapi/lite.h>.
 *
 * Return: one line without a newline, in lower case, in English; never NULL, not to be freed. The
 * system's text for an errno that LITE does not define.
 */
const char* lite_strerror(int err) LITE_NOEXCEPT;

#pragma GCC visibility pop

#ifdef __cplusplus
} /* extern "C" */
#endif

#include <lite/manage.h>
#include <lite/rpc.h>
#include <lite/sync.h>

#endif /* LITE_LITE_H */
