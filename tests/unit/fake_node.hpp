// SPDX-License-Identifier: MIT
//
// A LITE cluster in the memory of a test: a device that understands the ioctls
// of the ABI, strictly as <uapi/lite.h> defines them, so that the library and
// the tools on top of it can be tested without a kernel.
#pragma once

#include "device.hpp"

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
    std::vector<std::uint32_t> pages;  // the node of each
    std::vector<struct lite_grant> grants;
    bool registered = false;
    bool freed = false;
};

// What outlives the contexts: LMRs, and what the test wants to go wrong.
class cluster {
  public:
    // A new open file of this cluster's node 1.
    lite_ctx* open();
    lite::context context() { return lite::context::adopt(open()); }

    // Called before each ioctl; what it returns, if anything, is the result.
    std::function<std::optional<int>(unsigned long request, void* arg)> intercept;

    // The next operation with this opcode fails with -@error after @bytes.
    void fail_op(lite_opcode opcode, int error, std::uint64_t bytes = 0);

    std::shared_ptr<lmr> find(const std::string& name) const;
    std::size_t open_handles() const { return m_open_handles; }
    std::size_t open_files() const { return m_open_files; }

    // How many LMRs one LIST call returns at most.
    std::uint32_t list_batch = 3;
    // Who calls. What is made belongs to them.
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
    std::size_t m_open_handles = 0;
    std::size_t m_open_files = 0;
};

}  // namespace fake
