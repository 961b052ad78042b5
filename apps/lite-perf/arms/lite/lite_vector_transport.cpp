// SPDX-License-Identifier: MIT
//
// The LITE arm for windows: a post() is one vector call.
#include <fmt/format.h>
#include <lite/vector.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "arms/lite/lite_memory.hpp"
#include "transport.hpp"

namespace perf {

namespace {

class LiteVectorTransport final : public Transport {
  public:
    explicit LiteVectorTransport(const Target& target)
        : memory_(target), ops_(std::clamp(target.window, 1U, LITE_VECTOR_MAX)) {}

    std::string_view name() const override { return "lite-vector"; }
    std::span<std::byte> buffer() override { return memory_.buffer(); }
    bool supports(Op op) const override { return memory_.supports(op); }
    unsigned max_window() const override { return static_cast<unsigned>(ops_.size()); }
    // The call returns when all operations are done.
    unsigned batch(unsigned window) const override { return window; }

    void post(std::span<const Request> requests) override {
        for (std::size_t i = 0; i < requests.size(); i++)
            ops_[i] = memory_.operation(requests[i]);
        const int failed = lite_vector(memory_.context(), ops_.data(), requests.size());
        check_lite(std::min(failed, 0), "vector");
        for (std::size_t i = 0; failed && i < requests.size(); i++)
            check_lite(ops_[i].error, fmt::format("operation {} of a vector", i));
        old_ = ops_[requests.size() - 1].result;
    }

    std::uint64_t collect() override { return old_; }

  private:
    LiteMemory memory_;
    std::vector<lite_op> ops_;
    std::uint64_t old_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_lite_vector_transport(const Target& target) {
    return std::make_unique<LiteVectorTransport>(target);
}

}  // namespace perf
