// SPDX-License-Identifier: MIT
// Fences: which ones are refused, and what they order in a vector. A processor that sees data
// written after a fence must see the data written before it.
#include "../data/fixture.hpp"

#include <lite/async.hpp>
#include <lite/order.hpp>

#include <array>
#include <atomic>
#include <thread>

#include <sys/mman.h>

using namespace lite_test;

namespace {

constexpr std::uint64_t kLength = 64 * kPage;

lite_op fence_args(std::uint64_t lh) {
    lite_op op{};
    op.size = sizeof(op);
    op.opcode = LITE_OP_FENCE;
    op.lh = lh;
    return op;
}

}  // namespace

TEST_CASE_METHOD(DataEverywhere, "fence: needs an LMR, or none, and no right", "[fence]") {
    INFO(where.label);
    NamedLmr lmr(dev, kLength, where.nodes);
    for (const auto right : {lite::rights::read, lite::rights::write, lite::rights::atomic})
        CHECK_NOTHROW(lite::fence(node, node.map(lmr.name(), right)));
    CHECK_NOTHROW(lite::fence(node));
    CHECK(lite_fence(node.get(), 12345) == -EBADF);

    for (auto field :
         {&lite_op::offset, &lite_op::length, &lite_op::buf, &lite_op::operand, &lite_op::swap}) {
        auto op = fence_args(lmr.lh());
        op.*field = 8;
        CHECK(dev(op) == err(EINVAL));
    }
    auto op = fence_args(lmr.lh());
    op.flags = 1;
    CHECK(dev(op) == err(EOPNOTSUPP));

    auto gone = node.alloc({.length = kPage, .nodes = where.nodes});
    const auto lh = gone.handle();
    gone.unmap();
    CHECK(lite_fence(node.get(), lh) == -EBADF);
    auto named = node.alloc({.name = "fence-freed", .length = kPage, .nodes = where.nodes});
    const auto freed = node.map("fence-freed", lite::rights::read);
    named.free();
    CHECK(lite_fence(node.get(), freed.handle()) == -EIDRM);
}

TEST_CASE_METHOD(DataEverywhere, "fence: in a vector it separates what is before and behind",
                 "[fence]") {
    INFO(where.label);
    auto region = node.alloc({.length = kLength, .nodes = where.nodes});
    // Large and small operations, near and far: all kinds that a vector carries out in different
    // ways.
    const auto large = make_pattern(40 * kPage, 7);
    std::vector<std::byte> seen(large.size());
    const std::uint64_t word = kLength - 8;
    std::vector<lite_op> ops;
    // More operations than may be in flight at a time, with fences at all places among them.
    for (std::uint64_t i = 0; i < 50; ++i) {
        ops.push_back(lite::op::fetch_add(region, word, 1));
        ops.push_back(lite::op::fence(region));
        ops.push_back(lite::op::swap(region, word, 2 * i + 2));
        ops.push_back(lite::op::fence(region));
        ops.push_back(lite::op::fetch_add(region, word, 0));
        ops.push_back(lite::op::fence(region));
    }
    ops.push_back(lite::op::write(region, 0, large));
    ops.push_back(lite::op::fence(region));
    ops.push_back(lite::op::read(region, 0, seen));
    REQUIRE(lite::submit(node, ops) == 0);
    for (std::uint64_t i = 0; i < 50; ++i) {
        CHECK(ops[6 * i].result == 2 * i);
        CHECK(ops[6 * i + 2].result == 2 * i + 1);
        CHECK(ops[6 * i + 4].result == 2 * i + 2);
    }
    CHECK(seen == large);
}

TEST_CASE_METHOD(DataEverywhere, "fence: after a failure before it nothing behind it is tried",
                 "[fence]") {
    INFO(where.label);
    auto region = node.alloc({.length = kLength, .nodes = where.nodes});
    // The failing operation is in flight at the same time as the fence, or has failed long before.
    const std::size_t between = GENERATE(as<std::size_t>{}, 0, 3, 200);
    std::vector<lite_op> ops{lite::op::fetch_add(region, kLength, 1)};
    for (std::size_t i = 0; i < between; ++i)
        ops.push_back(lite::op::fetch_add(region, 8, 1));
    ops.push_back(lite::op::fence(region));
    for (std::size_t i = 0; i < 100; ++i)
        ops.push_back(lite::op::fetch_add(region, 0, 1));
    CHECK(lite::submit(node, ops) == 102);
    CHECK(ops[0].error == -ERANGE);
    for (std::size_t i = 0; i < between; ++i)
        CHECK(ops[1 + i].error == 0);
    for (std::size_t i = 1 + between; i < ops.size(); ++i)
        CHECK(ops[i].error == -ECANCELED);
    CHECK(region.load<std::uint64_t>(0) == 0);
    CHECK(region.load<std::uint64_t>(8) == between);

    // A fence that fails itself.
    std::array bad{lite::op::fetch_add(region, 16, 1), lite::op::fence(region),
                   lite::op::fetch_add(region, 24, 1)};
    bad[1].flags = 1;
    CHECK(lite::submit(node, bad) == 2);
    CHECK(bad[0].error == 0);
    CHECK(bad[1].error == -EOPNOTSUPP);
    CHECK(bad[2].error == -ECANCELED);
}

TEST_CASE_METHOD(DataEverywhere, "fence: as a command of io_uring", "[fence]") {
    INFO(where.label);
    auto region = node.alloc({.length = kLength, .nodes = where.nodes});
    lite::executor ex(node);
    ex.run(ex.fence(region));
    ex.run(ex.fence());
    std::array ops{lite::op::fetch_add(region, 0, 1), lite::op::fence(region),
                   lite::op::fetch_add(region, 0, 1)};
    CHECK(ex.run(ex.submit(ops)) == 0);
    CHECK(ops[2].result == 1);
    region.unmap();
    CHECK_THROWS_AS(ex.run(ex.fence(lite::lmr(lite_lh_t{12345}))), lite::error);
}

TEST_CASE_METHOD(Data, "fence: a reader of data written after it sees the data before it",
                 "[fence]") {
    // This node's processor reads, and another node's device writes.
    NamedLmr lmr(dev, kLength);
    auto here = node.map(lmr.name(), kAccess);
    const auto view = here.mmap(0, kLength);
    const auto word = [&](std::uint64_t at) {
        return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(view.data() + at))
            .load(std::memory_order_acquire);
    };
    const std::uint64_t rounds = env().scaled(300, 20);
    constexpr std::uint64_t kWriters = 3;  // each on any processor, and so on any queue pair
    Child writer([&] {
        lite::context other(other_index());
        std::atomic<std::uint64_t> written{0};
        for (std::uint64_t round = 1; round <= rounds; ++round) {
            std::vector<std::thread> threads;
            for (std::uint64_t i = 0; i < kWriters; ++i)
                threads.emplace_back([&, i] {
                    other.map(lmr.name(), kAccess).store(kPage * (1 + i), round);
                    written++;
                });
            for (auto& thread : threads)
                thread.join();
            auto there = other.map(lmr.name(), kAccess);
            lite::fence(other, there);
            there.store(0, round);
        }
    });
    std::uint64_t last = 0;
    wait_until("the last round", [&] {
        const auto now = word(0);
        REQUIRE(now >= last);
        last = now;
        for (std::uint64_t i = 0; i < kWriters; ++i)
            REQUIRE(word(kPage * (1 + i)) >= now);
        return now == rounds;
    });
    writer.join();
}

// test_bad_device.py keeps from the device what these post, and then breaks the connection.
TEST_CASE_METHOD(Data, "fence: the connection of the node to itself breaks, with atomics in line",
                 "[.rigged]") {
    constexpr std::size_t kAtomics = 100;
    constexpr std::size_t kPosted = 56;  // at most: LITE_SQ_SMALL
    auto region = node.alloc({.length = kPage});
    std::atomic<std::size_t> failed{0};
    Threads threads;
    for (const auto lh : {region.handle(), lite_lh_t{0}})
        threads.start([&, lh] { expect_equal(lite_fence(node.get(), lh), 0, "fence"); });
    for (std::size_t i = 0; i < kAtomics; ++i) {
        threads.start([&] {
            try {
                region.fetch_add(0, 1);
            } catch (const lite::error&) {
                ++failed;
            }
        });
    }
    threads.join();
    CHECK(failed > 0);
    CHECK(failed <= kPosted);
    CHECK(region.load<std::uint64_t>(0) == kAtomics - failed);
}

// A single fence; the calling test counts what it posts.
TEST_CASE_METHOD(Data, "fence: of an LMR at two other nodes", "[once]") {
    const auto& others = env().remote;
    REQUIRE(others.size() >= 2);
    auto region = node.alloc({.length = kLength, .nodes = {others[0], others[1]}});
    lite::fence(node, region);
}

TEST_CASE_METHOD(Data, "fence: of all nodes", "[all]") { CHECK(lite_fence(node.get(), 0) == 0); }
