// SPDX-License-Identifier: MIT
//
// Vectors: the C and the C++ API on a fake device.

#include "fake_node.hpp"
#include "recording.hpp"

#include <lite/vector.hpp>

#include "catch.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

TEST_CASE("lite_vector", "[liblite][vector]") {
    lite_ioc_vector answer{};
    answer.n_done = 3;
    answer.n_failed = 2;
    const recording<lite_ioc_vector> node(answer);
    std::array<lite_op, 3> ops{};
    CHECK(lite_vector(node.ctx, ops.data(), 0) == -EINVAL);
    std::vector<lite_op> many(LITE_VECTOR_MAX + 1);
    CHECK(lite_vector(node.ctx, many.data(), many.size()) == -EINVAL);
    CHECK(node.request == 0);

    CHECK(lite_vector(node.ctx, ops.data(), ops.size()) == 2);
    CHECK(node.request == LITE_IOC_VECTOR);
    CHECK(node.last.size == sizeof(lite_ioc_vector));
    CHECK(node.last.flags == 0);
    CHECK(node.last.ops == reinterpret_cast<std::uintptr_t>(ops.data()));
    CHECK(node.last.n_ops == 3);
    CHECK(node.last.op_size == sizeof(lite_op));
    for (const auto& op : ops)
        CHECK(op.size == sizeof(lite_op));
    CHECK(lite_vector(node.ctx, many.data(), LITE_VECTOR_MAX) == 2);
    CHECK(node.last.n_ops == LITE_VECTOR_MAX);
}

TEST_CASE("lite_vector gives each operation an outcome when it fails", "[liblite][vector]") {
    lite_ioc_vector answer{};
    answer.n_done = 1;
    const recording<lite_ioc_vector> node(answer, -EFAULT);
    std::array<lite_op, 3> ops{};
    for (auto& op : ops)
        op.result = 7;
    CHECK(lite_vector(node.ctx, ops.data(), ops.size()) == -EFAULT);
    CHECK(ops[0].error == 0);
    CHECK(ops[0].result == 7);
    for (const auto& op : std::span(ops).subspan(1)) {
        CHECK(op.error == -EFAULT);
        CHECK(op.result == 0);
    }
}

TEST_CASE("failed operations of a vector can be submitted again unchanged", "[liblite][vector]") {
    fake::cluster cluster;
    auto node = cluster.context();
    const auto region = node.alloc({.length = 4096});
    std::uint64_t word = 77;
    std::array ops{lite::op::write(region, 0, std::as_bytes(std::span(&word, 1))),
                   lite::op::fetch_add(region, 8, 5)};
    cluster.fail_op(LITE_OP_WRITE, EHOSTDOWN);
    REQUIRE(lite_vector(node.get(), ops.data(), ops.size()) == 1);
    REQUIRE(ops[0].error == -EHOSTDOWN);
    SECTION("alone") {
        CHECK(lite_op_submit(node.get(), ops.data()) == 0);
        CHECK(ops[0].error == 0);
        CHECK(ops[0].result == sizeof(word));
    }
    SECTION("alone, and fails again") {
        cluster.fail_op(LITE_OP_WRITE, ETIMEDOUT, 3);
        CHECK(lite_op_submit(node.get(), ops.data()) == -ETIMEDOUT);
        CHECK(ops[0].result == 3);
        CHECK(lite_op_submit(node.get(), ops.data()) == 0);
    }
    SECTION("with the others") {
        CHECK(lite_vector(node.get(), ops.data(), ops.size()) == 0);
        CHECK((ops[0].error == 0 && ops[1].error == 0));
        CHECK(region.load<std::uint64_t>(8) == 10);
    }
    CHECK(region.load<std::uint64_t>(0) == word);
}

TEST_CASE("lite::submit", "[lite-hpp][vector]") {
    fake::cluster cluster;
    auto node = cluster.context();
    const auto region = node.alloc({.length = 4096});
    std::uint64_t written = 0x0102030405060708;
    std::uint64_t read = 1;
    std::vector<lite_op> ops{
        lite::op::write(region, 64, std::as_bytes(std::span(&written, 1))),
        lite::op::read(region, 8, std::as_writable_bytes(std::span(&read, 1))),
        lite::op::fetch_add(region, 16, 5),
        lite::op::compare_swap(region, 24, 0, 9),
        lite::op::swap(region, 32, 3),
        lite::op::word(LITE_OP_FETCH_OR, region, 40, 6),
        lite::op::fetch_add(region, 4096, 1),
    };
    CHECK(lite::submit(node, ops) == 1);
    for (const auto& op : std::span(ops).first(6))
        CHECK(!lite::error_of(op));
    CHECK(lite::error_of(ops[6]) == std::errc::result_out_of_range);
    CHECK(read == 0);
    CHECK(ops[0].result == 8);

    std::array<std::uint64_t, 6> now{};
    std::vector<lite_op> reads;
    constexpr std::array<std::uint64_t, 5> offsets{64, 16, 24, 32, 40};
    for (std::size_t i = 0; i < offsets.size(); ++i)
        reads.push_back(
            lite::op::read(region, offsets[i], std::as_writable_bytes(std::span(&now[i], 1))));
    CHECK(lite::submit(node, reads) == 0);
    CHECK(now == std::array<std::uint64_t, 6>{written, 5, 9, 3, 6, 0});

    CHECK(lite::submit(node, {}) == 0);
    std::vector<lite_op> many(LITE_VECTOR_MAX + 1);
    CHECK_THROWS_AS(lite::submit(node, many), lite::error);
}

TEST_CASE("operations have the priority of their region", "[lite.hpp][vector]") {
    const recording<lite_op> node;
    lite::region made(node.ctx, 7, 64);
    CHECK(made.priority() == LITE_PRIORITY_DEFAULT);
    made.set_priority(LITE_PRIORITY(2));
    lite::region region(std::move(made));
    const std::uint64_t word = 1;
    const auto bytes = std::as_bytes(std::span(&word, 1));

    region.write(0, bytes);
    CHECK((node.last.opcode == LITE_OP_WRITE && node.last.priority == LITE_PRIORITY(2)));
    region.fetch_add(0, 1);
    CHECK((node.last.opcode == LITE_OP_FETCH_ADD && node.last.priority == LITE_PRIORITY(2)));
    region.compare_swap(0, 1, 2);
    CHECK((node.last.opcode == LITE_OP_CMP_SWAP && node.last.priority == LITE_PRIORITY(2)));
    CHECK((node.last.operand == 1 && node.last.swap == 2));
    (void)region.checksum(0, 8);
    CHECK((node.last.opcode == LITE_OP_CHECKSUM && node.last.priority == LITE_PRIORITY(2)));
    CHECK(lite::op::write(region, 0, bytes).priority == LITE_PRIORITY(2));

    region.set_priority(LITE_PRIORITY_DEFAULT);
    region.fetch_or(0, 1);
    CHECK((node.last.opcode == LITE_OP_FETCH_OR && node.last.priority == LITE_PRIORITY_DEFAULT));
    region.release();
}
