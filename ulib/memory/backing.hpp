// SPDX-License-Identifier: MIT
//
// Memory of this process that lite_alloc() made for LMRs with LITE_ALLOC_UNPINNED.
//
// It is unmapped only when no LMR has it any more: what the process maps at these addresses next
// would belong to the LMR. Where that is not certain, it stays until the process ends.
#pragma once

#include "forks.hpp"

#include <lite/lite.h>

#include <atomic>
#include <cstddef>
#include <list>
#include <mutex>

#include <unistd.h>

namespace lite::internal {

// Thread-safe. A child of fork(2) does not have the memory: it begins with an empty list, and does
// not look at its parent's, which another thread may have been changing.
class backing {
  public:
    backing() = default;
    backing(const backing&) = delete;
    backing& operator=(const backing&) = delete;
    ~backing();

    // Makes such an LMR, and memory for it. @p, @lh, and result: as for lite_alloc().
    int alloc(lite_ctx* ctx, const lite_alloc_params& p, lite_lh_t* lh) noexcept;
    // The LMR of a handle was freed. False: it has no memory here. All four ignore such LMRs.
    bool freed(lite_ctx* ctx, lite_lh_t lh) noexcept;
    // LMRs may have been freed by name or by other handles: checks all.
    void some_freed(lite_ctx* ctx) noexcept;
    // Before and after a handle is closed, which frees an LMR without a name.
    void closing(lite_ctx* ctx, lite_lh_t lh) noexcept;
    void closed(lite_ctx* ctx, lite_lh_t lh) noexcept;
    // Frees the LMRs, as a child may have the file open longer than this process.
    void end(lite_ctx* ctx) noexcept;

  private:
    struct block {
        lite_lh_t lh;
        lite_lh_t kept;  // takes the place of @lh when that is closed, if the LMR has a name
        void* addr;
        std::size_t length;
        bool is_ours;  // @lh was opened here, not by the program
        bool is_over;  // no LMR has the memory
    };

    struct blocks {
        bool is_mine() const noexcept;

        pid_t pid = ::getpid();
        unsigned process = forks;
        std::mutex lock;
        std::list<block> all;
    };

    // The blocks of this process, or nullptr. make() makes the list; throws std::bad_alloc.
    blocks* mine() const noexcept;
    void make();

    std::list<block> take(lite_lh_t lh) noexcept;
    void put(std::list<block>& taken) noexcept;

    std::atomic<blocks*> m_blocks = nullptr;
};

}  // namespace lite::internal
