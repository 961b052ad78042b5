// SPDX-License-Identifier: MIT
//
// What the LITE arms have in common: this side's buffer, and anonymous LMRs on the other node.
#pragma once

#include <lite/lite.h>

#include <span>
#include <string_view>
#include <vector>

#include "first_byte.hpp"
#include "memory.hpp"
#include "transport.hpp"

namespace perf {

/// Throws if @error, of a function of liblite, is one.
void check_lite(int error, std::string_view what);

class LiteMemory {
  public:
    /// Allocates the LMRs. They go with their owner.
    explicit LiteMemory(const Target& target);

    lite_ctx* context() const { return context_.get(); }
    std::span<std::byte> buffer() { return region_.bytes(); }
    bool supports(Op op) const { return op != Op::echo && (op != Op::fetch_add || atomics_); }
    lite_lh_t handle(const Request& request) const { return handles_[request.region]; }
    std::byte* local(const Request& request) const {
        return region_.bytes().data() + request.local;
    }
    /// A request, which is no echo, as liblite's functions for several operations take it.
    lite_op operation(const Request& request) const;

  private:
    Region region_;
    Context context_;
    std::vector<lite_lh_t> handles_;
    bool atomics_ = false;
};

}  // namespace perf
