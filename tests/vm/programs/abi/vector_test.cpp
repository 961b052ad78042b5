// SPDX-License-Identifier: MIT
// Vectors: those that are refused as a whole; otherwise each operation ends as it would alone.
#include "fixture.hpp"

#include <lite/vector.h>

#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <vector>

using namespace lite_test;

namespace {

lite_ioc_vector vector_args(std::span<lite_op> ops) {
    lite_ioc_vector args{};
    args.size = sizeof(args);
    args.ops = reinterpret_cast<std::uintptr_t>(ops.data());
    args.n_ops = static_cast<__u32>(ops.size());
    args.op_size = sizeof(lite_op);
    return args;
}

struct AbiVector : AbiWithLmr {
    Errno issue(lite_ioc_vector& args) const { return dev.call(LITE_IOC_VECTOR, &args); }

    std::vector<lite_op> reads(std::size_t n) {
        return std::vector<lite_op>(n, read_args(lh, 0, buf.data(), buf.size()));
    }
};

struct AbiVectorEverywhere : AbiEverywhere {
    Errno issue(lite_ioc_vector& args) const { return dev.call(LITE_IOC_VECTOR, &args); }
};

}  // namespace

TEST_CASE_METHOD(AbiVector, "vectors: a vector of no operations, or too many, is EINVAL",
                 "[vector]") {
    auto ops = reads(LITE_VECTOR_MAX + 1);
    auto args = vector_args(ops);
    args.n_ops = GENERATE(as<std::uint32_t>{}, 0, LITE_VECTOR_MAX + 1, 0x80000000, 0xffffffff);
    CHECK(issue(args) == err(EINVAL));
    CHECK(args.n_done == 0);
    args.n_ops = LITE_VECTOR_MAX;
    CHECK(issue(args) == ok);
    CHECK(args.n_done == LITE_VECTOR_MAX);
    CHECK(args.n_failed == 0);
}

TEST_CASE_METHOD(AbiVector, "vectors: the size of an entry", "[vector]") {
    auto ops = reads(1);
    auto args = vector_args(ops);
    for (const std::uint32_t shorter : {0U, 8U, 64U, 71U}) {
        args.op_size = shorter;
        CHECK(issue(args) == err(EINVAL));
    }
    for (const std::uint32_t longer : {4097U, 0x10000U, 0xffffffffU}) {
        args.op_size = longer;
        CHECK(issue(args) == err(E2BIG));
    }

    // An entry may be longer than the kernel's, as long as the unknown part asks for nothing.
    struct Longer {
        lite_op op;
        std::uint64_t more;
    };
    std::array<Longer, 3> longer{};
    for (auto& entry : longer) {
        entry.op = reads(1).front();
        entry.op.size = sizeof(entry);
        entry.op.error = 77;
    }
    args.ops = reinterpret_cast<std::uintptr_t>(longer.data());
    args.op_size = sizeof(Longer);
    args.n_ops = longer.size();
    CHECK(issue(args) == ok);
    for (const auto& entry : longer) {
        CHECK(entry.op.error == 0);
        CHECK(entry.op.result == buf.size());
        CHECK(entry.more == 0);
    }
    longer[1].more = 1;
    CHECK(issue(args) == err(E2BIG));
    CHECK(args.n_done == 0);
}

TEST_CASE_METHOD(AbiVector, "vectors: only the operation of a wrong size is EINVAL", "[vector]") {
    auto ops = reads(3);
    ops[1].size = GENERATE(as<std::uint32_t>{}, 0, 64, 71, 73, 80, 0xffffffff);
    auto args = vector_args(ops);
    CHECK(issue(args) == ok);
    CHECK(args.n_done == 3);
    CHECK(args.n_failed == 1);
    CHECK(ops[0].error == 0);
    CHECK(ops[1].error == -EINVAL);
    CHECK(ops[2].error == 0);
}

TEST_CASE_METHOD(AbiVector, "vectors: an array that is not mapped is EFAULT", "[vector]") {
    auto ops = reads(1);
    auto args = vector_args(ops);
    for (const std::uint64_t bad : {std::uint64_t{0}, std::uint64_t{8}, 0xffff888000000000UL,
                                    0x8000000000000000UL, ~std::uint64_t{0} - 70}) {
        args.ops = bad;
        CHECK(issue(args) == err(EFAULT));
        CHECK(args.n_done == 0);
    }
    args.ops = reinterpret_cast<std::uintptr_t>(unmapped_address(kPage));
    CHECK(issue(args) == err(EFAULT));
}

TEST_CASE_METHOD(AbiVector, "vectors: no operation of a read-only array is done", "[vector]") {
    Mapping page(kPage);
    const auto op = fetch_add_args(lh, 0, 1);
    std::memcpy(page.data(), &op, sizeof(op));
    page.protect(0, kPage, PROT_READ);
    auto args = vector_args(std::span(reinterpret_cast<lite_op*>(page.data()), 1));
    CHECK(issue(args) == err(EFAULT));
    CHECK(args.n_done == 0);
    CHECK(dev.fetch_add(lh, 0, 0) == 0);
}

TEST_CASE_METHOD(AbiVector, "vectors: the beginning of an array that ends early is done",
                 "[vector]") {
    constexpr std::size_t kGood = 300;
    GuardedBuffer guarded(kGood * sizeof(lite_op));
    const std::vector<lite_op> ops(kGood, fetch_add_args(lh, 0, 1));
    std::memcpy(guarded.data(), ops.data(), guarded.size());
    auto args = vector_args(std::span(reinterpret_cast<lite_op*>(guarded.data()), kGood));
    args.n_ops = kGood + 1;
    CHECK(issue(args) == err(EFAULT));
    // Some operations were carried out, but not all.
    CHECK(args.n_done < kGood);
    CHECK(args.n_done > 0);
    CHECK(args.n_failed == 0);
    CHECK(dev.fetch_add(lh, 0, 0) == args.n_done);
}

TEST_CASE_METHOD(AbiVectorEverywhere, "vectors: each operation ends as it would alone",
                 "[vector]") {
    INFO(where.label);
    const auto read_only = [&] {
        NamedLmr lmr(dev, kLength, where.nodes, 0600, "vector");
        return std::pair(dev.map(lmr.name(), LITE_RIGHT_READ), lmr.name());
    };
    const auto gone = read_only().first;  // freed already
    NamedLmr lmr(dev, kLength, where.nodes, 0600, "vector");
    const auto reader = dev.map(lmr.name(), LITE_RIGHT_READ);
    Mapping fresh(4 * kPage);  // not present before it is touched
    Mapping large(kLength);
    Mapping sealed(kPage);
    sealed.protect(0, kPage, PROT_READ);
    GuardedBuffer guarded(64);
    auto* const none = unmapped_address(kPage);

    auto flagged = read_args(lh, 0, buf.data(), 8);
    flagged.flags = 1;
    auto urgent = flagged;
    urgent.flags = 0;
    urgent.priority = LITE_PRIORITY_MAX + 1;
    auto reserved = flagged;
    reserved.flags = 0;
    reserved.reserved0 = 1;
    auto unknown = read_args(lh, 0, buf.data(), 8);
    unknown.opcode = LITE_OP_CHECKSUM + 2;
    auto nothing = unknown;
    nothing.opcode = 0;
    auto long_word = fetch_add_args(lh, 0, 1);
    long_word.length = 16;
    auto copy = read_args(lh, 0, nullptr, 100);
    copy.opcode = LITE_OP_COPY;
    copy.operand = lmr.lh();
    auto copy_nowhere = copy;
    copy_nowhere.operand = 0;
    auto checksum = copy;
    checksum.opcode = LITE_OP_CHECKSUM;
    checksum.operand = 0;

    std::vector<lite_op> ops{
        read_args(lh, 0, buf.data(), 64),
        write_args(lh, 0, buf.data(), 64),
        read_args(lh, 1, fresh.data(), 8),
        write_args(lh, 64, fresh.data() + kPage, 8),
        read_args(lh, 0, fresh.data() + 2 * kPage, 2 * kPage),
        read_args(lh, 0, large.data(), kLength),
        write_args(lh, 0, large.data(), kLength),
        read_args(lh, kLength / 2 - 100, large.data(), 200),
        fetch_add_args(lh, 128, 0),
        cmp_swap_args(lh, 136, 0, 0),
        copy,
        checksum,
        read_args(lh, kLength, buf.data(), 1),
        read_args(lh, ~0ULL, buf.data(), 8),
        write_args(lh, kLength - 7, buf.data(), 8),
        read_args(lh, 0, buf.data(), 0),
        read_args(lh, 0, buf.data(), ~0ULL),
        read_args(0, 0, buf.data(), 8),
        read_args(~lh, 0, buf.data(), 8),
        read_args(gone, 0, buf.data(), 8),
        read_args(reader, 0, buf.data(), 8),
        write_args(reader, 0, buf.data(), 8),
        fetch_add_args(reader, 0, 1),
        fetch_add_args(lh, 4, 1),
        fetch_add_args(lh, kLength, 1),
        long_word,
        read_args(lh, 0, none, 8),
        write_args(lh, 0, none, 8),
        read_args(lh, 0, nullptr, 8),
        read_args(lh, 0, sealed.data(), 8),
        write_args(lh, 0, sealed.data(), 8),
        read_args(lh, 0, guarded.data(), 64),
        write_args(lh, 0, guarded.data() + 1, 64),
        read_args(lh, 0, guarded.data() + 1, 64),
        flagged,
        urgent,
        reserved,
        unknown,
        nothing,
        copy_nowhere,
    };
    std::vector<int> alone;
    std::vector<std::uint64_t> results;
    for (auto op : ops) {
        alone.push_back(dev(op).value);
        results.push_back(op.result);
    }
    CHECK(static_cast<std::size_t>(std::ranges::count(alone, 0)) >= 15);

    // Old values of the results do not matter; and a second run, as a program would do it.
    for (auto& op : ops)
        op.error = 1;
    for (int round = 0; round < 2; ++round) {
        auto args = vector_args(ops);
        REQUIRE(issue(args) == ok);
        CHECK(args.n_done == ops.size());
        CHECK(args.n_failed == ops.size() - static_cast<std::size_t>(std::ranges::count(alone, 0)));
        for (std::size_t i = 0; i < ops.size(); ++i) {
            INFO("operation " << i);
            CHECK(err(-ops[i].error) == err(alone[i]));
            if (!alone[i])
                CHECK(ops[i].result == results[i]);
        }
    }
}

TEST_CASE_METHOD(AbiVectorEverywhere, "vectors: a failed operation can be submitted again as it is",
                 "[vector]") {
    INFO(where.label);
    NamedLmr lmr(dev, kLength, where.nodes, 0600, "vector");
    lite_ctx* ctx = nullptr;
    REQUIRE(lite_open(static_cast<int>(env().indexes.front()), &ctx) == 0);
    const std::unique_ptr<lite_ctx, decltype(&lite_close)> close(ctx, lite_close);
    lite_lh_t own = 0;
    REQUIRE(lite_map(ctx, lmr.name().c_str(), LITE_RIGHT_READ | LITE_RIGHT_ATOMIC, &own, nullptr) ==
            0);
    std::array ops{read_args(own, kLength, buf.data(), 8), fetch_add_args(own, 0, 1)};
    CHECK(lite_vector(ctx, ops.data(), ops.size()) == 1);
    REQUIRE(ops[0].error == -ERANGE);
    // The same again, alone and together; then in a correct form.
    CHECK(lite_op_submit(ctx, ops.data()) == -ERANGE);
    CHECK(lite_vector(ctx, ops.data(), ops.size()) == 1);
    REQUIRE(ops[0].error == -ERANGE);
    ops[0].offset = 0;
    CHECK(lite_op_submit(ctx, ops.data()) == 0);
    CHECK(ops[0].result == 8);
    std::uint64_t word = 0;
    std::memcpy(&word, buf.data(), sizeof(word));
    CHECK(word == 2);
}

TEST_CASE_METHOD(AbiVectorEverywhere, "vectors: in an array that crosses pages, at an odd address",
                 "[vector]") {
    INFO(where.label);
    constexpr std::size_t kCount = 150;
    std::vector<std::byte> memory(kCount * sizeof(lite_op) + 1);
    const std::vector<lite_op> ops(kCount, fetch_add_args(lh, 8, 1));
    std::memcpy(memory.data() + 1, ops.data(), kCount * sizeof(lite_op));
    lite_ioc_vector args{};
    args.size = sizeof(args);
    args.ops = reinterpret_cast<std::uintptr_t>(memory.data() + 1);
    args.n_ops = kCount;
    args.op_size = sizeof(lite_op);
    REQUIRE(issue(args) == ok);
    CHECK(args.n_failed == 0);
    CHECK(dev.fetch_add(lh, 8, 0) == kCount);
    // Each operation saw a different value.
    std::vector<bool> seen(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
        lite_op op;
        std::memcpy(&op, memory.data() + 1 + i * sizeof(op), sizeof(op));
        REQUIRE(op.result < kCount);
        CHECK(!seen[op.result]);
        seen[op.result] = true;
    }
}
