/* SPDX-License-Identifier: MIT */
/*
 * liblite: arenas, memory that peers can reach as soon as it is allocated. The conventions of
 * <lite/lite.h> apply.
 *
 *    struct lite_arena* arena;
 *    lite_arena_create(ctx, "buffers", 64 << 20, 0600, 0, &arena);
 *    void* p;
 *    lite_arena_alloc(arena, 1 << 20, 0, &p);
 *    struct lite_range range;
 *    lite_arena_register(arena, p, 1 << 20, &range);
 *    ... a peer maps "buffers", and reads or writes at range.offset ...
 *    lite_arena_deregister(arena, range.key);
 *    lite_arena_free(arena, p);
 *
 * An arena takes memory from the kernel (LITE_IOC_ARENA) in chunks, and makes an LMR of each chunk
 * when it takes it. So the library can allocate, register and free without a system call, unless a
 * new chunk is needed.
 *
 * A peer that may use the LMR of a chunk can use all of the chunk, whatever is registered, and also
 * after a range has ended: keys only tell programs that trust each other which ranges are valid. If
 * a peer must lose access to memory again, make a separate LMR of that memory with lite_register():
 * in an arena that pins and prepares nothing, and lite_free() returns when no node can reach it.
 *
 * The allocator keeps its data outside of the arena, where no peer can change it. Several threads
 * may call the functions. A child of fork(2) does not have the memory; it can only destroy the
 * arena, which leaves the parent's as it is.
 */
#ifndef LITE_ARENA_H
#define LITE_ARENA_H

#include <lite/lite.h>
#include <uapi/lite_arena.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/*
 * lite_arena_mmap - map blocks into the process, without an allocator
 * @length: bytes, whole blocks of LITE_ARENA_BLOCK
 * @flags: LITE_ARENA_*
 * @addr: set to the address of the mapping, to be unmapped by munmap(2)
 *
 * An LMR that lite_register() makes of it, or of a part, is neither pinned nor counted against
 * RLIMIT_MEMLOCK. Stacks of threads and process-shared futexes must not be in it. See
 * LITE_IOC_ARENA in <uapi/lite_arena.h>, also for what the memory contains.
 *
 * Return: 0, -EINVAL (@length), -EOPNOTSUPP (another flag), -EFBIG, -EDQUOT or -ENOSPC (the limits
 * of the user or the node), -ENFILE (no more files), -ENOMEM, -EINTR, -ENODEV, -ENOTTY (older
 * kernel module).
 */
int lite_arena_mmap(struct lite_ctx* ctx, size_t length, uint32_t flags, void** addr) LITE_NOEXCEPT;

struct lite_arena;

/* A range of an arena. */
struct lite_range {
    lite_lh_t lh;    /* of the LMR of its chunk, with all rights */
    uint64_t offset; /* in that LMR, bytes */
    uint64_t length; /* bytes */
    uint64_t key;    /* for lite_arena_find() and lite_arena_deregister(); never 0 */
    uint32_t chunk;  /* 0: the LMR has the name of the arena; n: "NAME.n" */
    uint32_t reserved;
};

/*
 * lite_arena_create - make an arena
 * @ctx: context, not to be closed before the arena is destroyed
 * @name: of the first chunk's LMR, at most 244 bytes; later ones add ".1", ".2" and so on, and pass
 *    over names that are taken. NULL or "": anonymous
 * @size: bytes of a chunk, rounded up to whole blocks of 2 MB; 0: one block. A larger allocation
 *    gets a larger chunk
 * @mode: permission bits of the LMRs, as in struct lite_alloc_params
 * @flags: 0, or LITE_ARENA_EAGER: a chunk is freed and unmapped as soon as nothing in it is
 *    allocated. Otherwise it stays for later allocations (lite_arena_trim())
 * @arena: set to the arena, to be destroyed by lite_arena_destroy()
 *
 * Takes the first chunk at once. Chunks are zeroed when they are taken.
 *
 * Return: 0, -EINVAL (bits beyond 0666 in the mode), -EOPNOTSUPP (another flag), -ENAMETOOLONG,
 * -EEXIST (the name is taken; from lite_arena_alloc(): 64 names were, try again), -ENOMEM, -EDQUOT,
 * -ENOSPC or -EFBIG (as LITE_IOC_ARENA), -ENOTTY (older kernel module), or as lite_register().
 */
int lite_arena_create(struct lite_ctx* ctx, const char* name, size_t size, uint32_t mode,
                      uint32_t flags, struct lite_arena** arena) LITE_NOEXCEPT;

/*
 * lite_arena_destroy - free all LMRs and all memory of an arena; NULL: nothing
 *
 * Waits until no node can reach the memory. An LMR that cannot be freed (see lite_free()) stays,
 * with its memory, until the context is closed; lite_arena_trim() before shows if there is one.
 */
void lite_arena_destroy(struct lite_arena* arena) LITE_NOEXCEPT;

/*
 * lite_arena_alloc - allocate memory
 * @size: bytes; 0: as 1
 * @alignment: a power of two, at most 2 MB; 0: 64 bytes, which is also the least
 * @out: set to the memory. It holds what an earlier allocation of this arena left there
 *
 * Return: 0, -EINVAL (@alignment), or as lite_arena_create(), if a new chunk is needed.
 */
int lite_arena_alloc(struct lite_arena* arena, size_t size, size_t alignment,
                     void** out) LITE_NOEXCEPT;

/*
 * lite_arena_free - free memory, and end the ranges that are registered in it
 *
 * The next allocation may get it at once: peers must be done with it.
 *
 * Return: 0; -EINVAL: @memory is not what lite_arena_alloc() returned, or was freed.
 */
int lite_arena_free(struct lite_arena* arena, void* memory) LITE_NOEXCEPT;

/*
 * lite_arena_register - get the key of a range of allocated memory, and its place in an LMR
 * @addr: @length bytes, not 0, in one allocation
 * @range: set to the range
 *
 * Return: 0, -EINVAL (@length is 0), -EFAULT (not in one allocation of this arena), -ENOMEM.
 */
int lite_arena_register(struct lite_arena* arena, const void* addr, size_t length,
                        struct lite_range* range) LITE_NOEXCEPT;

/*
 * lite_arena_find - look up a registered range
 * @key: of the range
 * @range: set to the range
 *
 * Return: 0; -EIDRM: it was deregistered, or its memory was freed; -EBADF: no key of this arena.
 */
int lite_arena_find(struct lite_arena* arena, uint64_t key, struct lite_range* range) LITE_NOEXCEPT;

/*
 * lite_arena_deregister - end a registered range
 *
 * Its key is never valid again. Return: as lite_arena_find().
 */
int lite_arena_deregister(struct lite_arena* arena, uint64_t key) LITE_NOEXCEPT;

/*
 * lite_arena_trim - free the chunks in which nothing is allocated
 *
 * Waits until no node can reach them. A chunk with an LMR that cannot be freed (see lite_free())
 * stays for the next call; nothing is allocated in it any more.
 *
 * Return: bytes freed.
 */
uint64_t lite_arena_trim(struct lite_arena* arena) LITE_NOEXCEPT;

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* LITE_ARENA_H */
