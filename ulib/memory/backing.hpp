// SPDX-License-Identifier: MIT
//
// Memory of this process that lite_alloc() made for LMRs with LITE_ALLOC_UNPINNED.
#pragma once

#include <lite/lite.h>

#include <cstddef>
#include <list>
#include <mutex>

#include <sys/types.h>

namespace lite::internal {

// Thread-safe.
class backing {
  public:
    backing() = default;
    backing(const backing&) = delete;
    backing& operator=(const backing&) = delete;
    // The file of the LMRs is closed by now: their memory may go.
    ~backing();

    // Makes such an LMR, and memory for it. @p, @lh: as for lite_alloc().
    // Return: 0 or a negative errno, as lite_alloc().
    int alloc(lite_ctx* ctx, const lite_alloc_params& p, lite_lh_t* lh) noexcept;
    // Its LMR, which @lh was a handle of, has been freed; other handles are ignored.
    void freed(lite_lh_t lh) noexcept;
    // The handle has been closed: that frees an LMR without a name.
    void closed(lite_lh_t lh) noexcept;

  private:
    struct block {
        lite_lh_t lh;
        void* addr;
        std::size_t length;
        bool named;
        pid_t owner;  // a child does not have the memory
    };

    void drop(lite_lh_t lh, bool named_too) noexcept;

    std::mutex m_lock;
    std::list<block> m_blocks;
};

}  // namespace lite::internal
