// SPDX-License-Identifier: MIT
// A ring, and LMRs at this node and elsewhere, which are freed at the end of the test.
#pragma once

#include "../common/catch.hpp"
#include "../common/env.hpp"
#include "../common/memory.hpp"
#include "../common/process.hpp"
#include "../common/raw.hpp"

#include <lite/uring.h>
#include <lite/lite.hpp>

#include <liburing.h>

#include <cstdint>
#include <map>
#include <vector>

namespace lite_test {

class Ring {
  public:
    explicit Ring(unsigned entries = 128, unsigned flags = 0) {
        expect_equal(::io_uring_queue_init(entries, &ring_, flags), 0, "io_uring_queue_init");
    }
    ~Ring() { close(); }
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;

    void close() {
        if (open_)
            ::io_uring_queue_exit(&ring_);
        open_ = false;
    }

    io_uring* get() { return &ring_; }

    // An SQE; its completion is found by @data.
    io_uring_sqe* sqe(std::uint64_t data) {
        auto* sqe = ::io_uring_get_sqe(&ring_);
        expect(sqe, "room in the submission queue");
        *sqe = {};
        sqe->user_data = data;
        return sqe;
    }

    void submit() { expect(::io_uring_submit(&ring_) >= 0, "io_uring_submit"); }

    // The result of the command with @data; results of other commands are kept.
    int wait(std::uint64_t data) {
        while (!results_.contains(data))
            take(patience().count());
        const int result = results_.at(data);
        results_.erase(data);
        return result;
    }

    // Submits what is prepared and waits for @data.
    int run(std::uint64_t data) {
        submit();
        return wait(data);
    }

    // Whether the command is completed within @milliseconds.
    bool over(std::uint64_t data, std::int64_t milliseconds) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
        while (!results_.contains(data) && std::chrono::steady_clock::now() < end)
            take(1, false);
        return results_.contains(data);
    }

    // Cancels the command with @data; the result of the cancellation is found by @asked.
    void cancel(std::uint64_t data, std::uint64_t asked) {
        auto* s = sqe(asked);
        ::io_uring_prep_cancel64(s, data, 0);
        s->user_data = asked;
        submit();
    }

  private:
    void take(std::int64_t milliseconds, bool must = true) {
        __kernel_timespec time{milliseconds / 1000, milliseconds % 1000 * 1000000};
        io_uring_cqe* cqe = nullptr;
        const int err = ::io_uring_wait_cqe_timeout(&ring_, &cqe, &time);
        if (err == -EINTR || (err == -ETIME && !must))
            return;
        expect_equal(err, 0, "a completion");
        results_[cqe->user_data] = cqe->res;
        ::io_uring_cqe_seen(&ring_, cqe);
    }

    io_uring ring_{};
    bool open_ = true;
    std::map<std::uint64_t, int> results_;
};

inline constexpr lite::rights kAccess =
    lite::rights::read | lite::rights::write | lite::rights::atomic;

struct Uring {
    lite::context node{static_cast<int>(env().indexes.front())};
    Device dev{env().indexes.front()};
    lite_ctx* ctx = node.get();

    lite::region region(std::uint64_t length, std::vector<std::uint32_t> nodes) {
        return node.alloc({.length = length, .nodes = std::move(nodes)});
    }
};

struct UringEverywhere : Uring {
    Placement where = GENERATE(from_range(env().placements()));
};

// Registers a function at the first node that answers nothing; returns its number.
inline std::uint32_t mute_function(lite_ctx* ctx) {
    lite_rpc_params params{};
    params.size = sizeof(params);
    params.mode = 0600;
    params.max_request = params.max_reply = 4096;
    std::uint32_t function = 0;
    expect_equal(lite_rpc_register(ctx, &params, &function), 0, "register");
    return function;
}

}  // namespace lite_test
