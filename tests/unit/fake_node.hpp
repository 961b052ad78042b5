// SPDX-License-Identifier: MIT
//
// A LITE cluster in the memory of a test: a device that obeys the ioctls of the ABI strictly as
// <uapi/lite.h> defines them, to test the library and the tools without a kernel.
#pragma once

#include "device.hpp"

#include <lite/file.h>
#include <lite/lite.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fake {

struct lmr {
    lite_lmr_info info;
    std::vector<std::uint32_t> nodes;
    std::vector<std::byte> data;
    std::vector<std::uint32_t> pages;  // the node of each page
    std::vector<struct lite_grant> grants;
    bool registered = false;
    bool freed = false;
};

// State that outlives the contexts: LMRs, and the failures that the test asks for.
class cluster {
  public:
    // A new open file of this cluster's node 1.
    lite_ctx* open();
    lite::context context() { return lite::context::adopt(open()); }

    // Called before each ioctl; if it returns a value, that is the result.
    std::function<std::optional<int>(unsigned long request, void* arg)> intercept;

    // The next operation with this opcode fails with -@error after @bytes.
    void fail_op(lite_opcode opcode, int error, std::uint64_t bytes = 0);

    // The next call for a file moves @bytes only; the one after it (this one if @bytes is 0) fails.
    void fail_file(int error, std::uint64_t bytes = 0);

    std::shared_ptr<lmr> find(const std::string& name) const;
    std::size_t open_handles() const { return m_open_handles; }
    std::size_t open_files() const { return m_open_files; }

    // The maximum number of LMRs in the answer to a LIST call.
    std::uint32_t list_batch = 3;
    // The calling user and group; new LMRs belong to them.
    std::uint32_t uid = 1000;
    std::uint32_t gid = 1000;

  private:
    friend class device;
    struct failure {
        lite_opcode opcode;
        int error;
        std::uint64_t bytes;
    };

    std::map<std::uint64_t, std::shared_ptr<lmr>> m_lmrs;  // by id
    std::uint64_t m_next_id = 1;
    std::optional<failure> m_failure;
    std::optional<failure> m_file_failure;
    std::size_t m_open_handles = 0;
    std::size_t m_open_files = 0;
};

}  // namespace fake
