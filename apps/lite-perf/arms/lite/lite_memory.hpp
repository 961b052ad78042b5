// SPDX-License-Identifier: MIT
//
// Shared by the LITE arms: the local buffer, and anonymous LMRs on the other node.
#pragma once

#include <lite/lite.h>

#include <span>
#include <string_view>
#include <vector>

#include "memory.hpp"
#include "transport.hpp"
#include "workloads/first_byte.hpp"

namespace perf {

/// Throws if @error, a result of liblite, is not 0.
void check_lite(int error, std::string_view what);

class LiteMemory {
  public:
    /// Allocates the LMRs, freed with this object.
    explicit LiteMemory(const Target& target);

    lite_ctx* context() const { return context_.get(); }
    std::span<std::byte> buffer() { return region_.bytes(); }
    bool supports(Op op) const { return op != Op::echo && (op != Op::fetch_add || atomics_); }
    lite_lh_t handle(const Request& request) const { return handles_[request.region]; }
    std::byte* local(const Request& request) const {
        return region_.bytes().data() + request.local;
    }
    lite_op operation(const Request& request) const;

  private:
    Region region_;
    Context context_;
    std::vector<lite_lh_t> handles_;
    bool atomics_ = false;
};

}  // namespace perf
