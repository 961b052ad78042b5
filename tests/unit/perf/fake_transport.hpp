// SPDX-License-Identifier: MIT
//
// An arm for tests, which records requests.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "transport.hpp"

namespace perf {

class FakeTransport final : public Transport {
  public:
    FakeTransport(unsigned window, unsigned batch) : window_(window), batch_(batch) {}

    std::string_view name() const override { return "fake"; }
    std::span<std::byte> buffer() override { return buffer_; }
    bool supports(Op op) const override { return op != Op::echo; }
    unsigned max_window() const override { return window_; }
    unsigned batch(unsigned) const override { return batch_; }

    void post(std::span<const Request> requests) override {
        for (const Request& request : requests) {
            auto* local = buffer_.data() + request.local;
            auto* remote = remote_.data() + request.offset;
            if (request.op == Op::write && !lazy)
                std::copy_n(local, request.length, remote);
            else if (request.op == Op::read)
                std::copy_n(remote, request.length, local);
            else if (request.op == Op::fetch_add)
                old_ = add_one(remote);
        }
        posted.emplace_back(requests.begin(), requests.end());
        under_way += requests.size();
        most = std::max(most, under_way);
    }

    std::uint64_t collect() override {
        under_way -= posted.at(collected++).size();
        return old_;
    }

    bool lazy = false;                         ///< writes do nothing
    std::vector<std::vector<Request>> posted;  ///< one entry per post()
    std::size_t collected = 0;
    std::size_t under_way = 0;
    std::size_t most = 0;  ///< maximum of under_way

  private:
    static std::uint64_t add_one(std::byte* word) {
        std::uint64_t value;
        std::memcpy(&value, word, sizeof value);
        const std::uint64_t next = value + 1;
        std::memcpy(word, &next, sizeof next);
        return value;
    }

    unsigned window_;
    unsigned batch_;
    std::array<std::byte, 8192> buffer_{};
    std::array<std::byte, 8192> remote_{};
    std::uint64_t old_ = 0;
};

}  // namespace perf
