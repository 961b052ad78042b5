// SPDX-License-Identifier: MIT
// Many operations that are submitted together.
#include "fixture.hpp"

#include "../common/missing_page.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <vector>

using namespace lite_test;

namespace {

// More than the number of slots in the send queues to a node.
constexpr std::size_t kMany = 400;

}  // namespace

TEST_CASE_METHOD(UringEverywhere, "many: more at a time than fit in the send queues", "[uring]") {
    INFO(where.label);
    auto lmr = region(kMany * 8, where.nodes);
    Ring ring(512);
    std::vector<lite_op> ops(kMany);
    std::vector<std::uint64_t> values(kMany);
    std::iota(values.begin(), values.end(), env().seed);
    for (std::size_t i = 0; i < kMany; i++)
        lite_uring_write(ring.sqe(i), ctx, &ops[i], lmr.handle(), i * 8, &values[i], 8);
    ring.submit();
    for (std::size_t i = 0; i < kMany; i++) {
        INFO(i);
        REQUIRE(ring.wait(i) == 0);
        CHECK(ops[i].result == 8);
    }
    std::vector<std::uint64_t> back(kMany);
    for (std::size_t i = 0; i < kMany; i++)
        lite_uring_read(ring.sqe(i), ctx, &ops[i], lmr.handle(), i * 8, &back[i], 8);
    ring.submit();
    for (std::size_t i = 0; i < kMany; i++)
        REQUIRE(ring.wait(i) == 0);
    CHECK(back == values);
}

TEST_CASE_METHOD(Uring, "many: to all nodes, of all kinds, and some that are wrong", "[uring]") {
    constexpr std::size_t kRounds = 8;
    std::vector<std::uint32_t> nodes{env().self};
    nodes.insert(nodes.end(), env().remote.begin(), env().remote.end());
    Ring ring(512);
    struct Here {
        lite::region lmr;
        std::uint64_t word = 0;
        std::array<std::byte, 3000> large{};
        std::array<std::byte, 3000> back{};
    };
    std::vector<Here> each;
    for (const auto where : nodes)
        each.push_back({region(8192, {where})});
    for (auto& [lmr, word, large, back] : each) {
        large.fill(static_cast<std::byte>(lmr.handle()));
        REQUIRE(lite_write(ctx, lmr.handle(), 4096, large.data(), large.size()) == 0);
    }
    std::vector<lite_op> ops(kRounds * each.size() * 5);
    std::vector<int> wanted;
    for (std::size_t round = 0; round < kRounds; round++) {
        for (auto& [lmr, word, large, back] : each) {
            const auto next = [&] { return ring.sqe(wanted.size()); };
            const auto op = [&] { return &ops[wanted.size()]; };
            word = 77;
            lite_uring_write(next(), ctx, op(), lmr.handle(), round * 8, &word, 8);
            wanted.push_back(0);
            lite_uring_write(next(), ctx, op(), lmr.handle() + 1000000, 0, &word, 8);
            wanted.push_back(-EBADF);
            lite_uring_read(next(), ctx, op(), lmr.handle(), 4096, back.data(), back.size());
            wanted.push_back(0);
            lite_uring_fetch_add(next(), ctx, op(), lmr.handle(), 2048, 3);
            wanted.push_back(0);
            lite_uring_read(next(), ctx, op(), lmr.handle(), 8190, &word, 8);
            wanted.push_back(-ERANGE);
        }
    }
    ring.submit();
    for (std::size_t i = 0; i < wanted.size(); i++) {
        INFO(i);
        CHECK(ring.wait(i) == wanted[i]);
    }
    for (auto& [lmr, word, large, back] : each) {
        CHECK(back == large);
        std::array<std::uint64_t, kRounds> words{};
        REQUIRE(lite_read(ctx, lmr.handle(), 0, words.data(), sizeof(words)) == 0);
        CHECK(words == [] {
            std::array<std::uint64_t, kRounds> all;
            all.fill(77);
            return all;
        }());
        std::uint64_t sum = 0;
        REQUIRE(lite_fetch_add(ctx, lmr.handle(), 2048, 0, &sum) == 0);
        CHECK(sum == 3 * kRounds);
    }
}

// Operations that have begun, and are entered in an LMR, must not wait for user space.
TEST_CASE_METHOD(Uring, "many: a command waits for its page, those before it are carried out",
                 "[uring]") {
    constexpr std::size_t kBefore = 5;
    constexpr std::size_t kAfter = 5;
    const Mapping memory(kPage);
    const MissingPage missing(memory.data());
    auto lmr = region(4096, {env().peer()});
    Ring ring;
    std::vector<lite_op> ops(kBefore + kAfter);
    std::uint64_t value = 4711;
    const auto write = [&](std::size_t i) {
        lite_uring_write(ring.sqe(i), ctx, &ops[i], lmr.handle(), i * 8, &value, 8);
    };
    for (std::size_t i = 0; i < kBefore; i++)
        write(i);
    lite_uring_command(ring.sqe(100), ctx, LITE_IOC_OP, memory.data());
    for (std::size_t i = 0; i < kAfter; i++)
        write(kBefore + i);
    Threads submitter;
    submitter.start([&] { ring.submit(); });
    missing.await();
    std::array<std::uint64_t, kBefore + kAfter> seen{};
    const auto end = std::chrono::steady_clock::now() + patience();
    while (!seen[kBefore - 1] && std::chrono::steady_clock::now() < end)
        REQUIRE(lite_read(ctx, lmr.handle(), 0, seen.data(), sizeof(seen)) == 0);
    for (std::size_t i = 0; i < seen.size(); i++) {
        INFO(i);
        CHECK(seen[i] == (i < kBefore ? value : 0));
    }
    // Nor does a free wait for these operations, as they are completed.
    CHECK(lite_free(ctx, lmr.handle()) == 0);
    missing.come();
    submitter.join();
    for (std::size_t i = 0; i < ops.size(); i++) {
        const int result = ring.wait(i);
        CHECK((i < kBefore ? result == 0 : result == -EIDRM || result == -EBADF));
    }
    // The argument is all zeroes, so its size is 0.
    CHECK(ring.wait(100) == -EINVAL);
}
