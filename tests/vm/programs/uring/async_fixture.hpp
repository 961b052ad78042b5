// SPDX-License-Identifier: MIT
// An executor, a function and an LMR, and small coroutines.
#pragma once

#include "errno_of.hpp"
#include "fixture.hpp"

#include <lite/async.hpp>

#include <array>
#include <chrono>
#include <cstring>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace lite_test {

using Word = std::array<std::uint64_t, 1>;

struct Async : Uring {
    lite::executor ex{node};
    lite::function words{node, {.mode = 0600, .max_request = 8, .max_reply = 64}};
    lite::region lmr = region(4096, {env().remote.empty() ? env().self : env().peer()});
};

// A time-out that passes.
inline constexpr auto soon = std::chrono::milliseconds(20);

// Long enough for a task that was begun to wait, or for what it waits for to arrive.
inline std::chrono::milliseconds a_while() {
    return std::chrono::milliseconds(300) * env().slowness;
}

inline std::span<const std::byte> bytes_of(const Word& word) {
    return std::as_bytes(std::span(word));
}

inline lite::task<> stop_after(lite::executor& ex, std::chrono::milliseconds time,
                               std::stop_source stop) {
    co_await ex.sleep(time);
    stop.request_stop();
}

// Begins an operation that waits, asks it to stop after a while, and returns its errno.
template <typename Begin>
int errno_when_stopped(lite::executor& ex, const Begin& begin) {
    std::stop_source stop;
    ex.spawn(stop_after(ex, a_while(), stop));
    const auto begun = std::chrono::steady_clock::now();
    const int err = ex.run(errno_of(begin(stop.get_token())));
    // It has waited until it was asked.
    if (err == ECANCELED)
        expect(std::chrono::steady_clock::now() - begun >= a_while(), "it waits until it is asked");
    // An operation that is asked to stop before it begins does not begin.
    expect_equal(ex.run(errno_of(begin(stop.get_token()))), ECANCELED, "stopped before it begins");
    return err;
}

}  // namespace lite_test
