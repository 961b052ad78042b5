// SPDX-License-Identifier: MIT
//
// Memory of this process that lite_alloc() made for LMRs with LITE_ALLOC_UNPINNED.
//
// It is unmapped when no LMR has it any more, and not before: what the process maps at these
// addresses next would be the LMR's. Where that is not certain, it stays until the process ends.
#pragma once

#include "forks.hpp"

#include <lite/lite.h>

#include <atomic>
#include <cstddef>
#include <list>
#include <mutex>

#include <unistd.h>

namespace lite::internal {

// Thread-safe. A child of fork(2) does not have the memory: here it begins anew, and does not look
// at what its parent had, which another thread may have been changing.
class backing {
  public:
    backing() = default;
    backing(const backing&) = delete;
    backing& operator=(const backing&) = delete;
    ~backing();

    // Makes such an LMR, and memory for it. @p, @lh: as for lite_alloc().
    // Return: 0 or a negative errno, as lite_alloc().
    int alloc(lite_ctx* ctx, const lite_alloc_params& p, lite_lh_t* lh) noexcept;
    // The LMR of a handle has been freed. All four ignore handles of other LMRs. False: it is one.
    bool freed(lite_ctx* ctx, lite_lh_t lh) noexcept;
    // LMRs may have been freed without their handles.
    void some_freed(lite_ctx* ctx) noexcept;
    // A handle will be closed, and has been: that frees an LMR without a name.
    void closing(lite_ctx* ctx, lite_lh_t lh) noexcept;
    void closed(lite_ctx* ctx, lite_lh_t lh) noexcept;
    // Ends the LMRs: a child may have the file open longer than this process.
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

    // Those of this process: nullptr if it has none; make() makes them. Throws std::bad_alloc.
    blocks* mine() const noexcept;
    void make();

    std::list<block> take(lite_lh_t lh) noexcept;
    void put(std::list<block>& taken) noexcept;

    std::atomic<blocks*> m_blocks = nullptr;
};

}  // namespace lite::internal
