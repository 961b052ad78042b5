// SPDX-License-Identifier: MIT
// Operations on LMRs as commands: the data that they move, and the errors of invalid ones.
#include "../common/data/pattern.hpp"
#include "fixture.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

using namespace lite_test;

namespace {

constexpr unsigned kWindow = 64;

// The command's bytes in the SQE.
lite_uring_cmd& payload(io_uring_sqe* sqe) {
    return *reinterpret_cast<lite_uring_cmd*>(reinterpret_cast<char*>(sqe) + 48);
}

// Random bytes, so that each one shows where it belongs.
void fill(std::span<std::byte> bytes, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (auto& byte : bytes)
        byte = static_cast<std::byte>(random());
}

}  // namespace

TEST_CASE_METHOD(UringEverywhere, "data: reads return what was written", "[uring]") {
    INFO(where.label);
    constexpr std::size_t kSize = 1 << 16;
    auto lmr = region(kSize, where.nodes);
    const unsigned flags = GENERATE(0U, unsigned{IOSQE_ASYNC});
    Ring ring;
    std::vector<std::byte> wanted(kSize);
    std::vector<std::byte> seen(kSize);
    fill(wanted, env().seed);
    for (const std::size_t n : {1UL, 7UL, 8UL, 64UL, 1000UL, 1024UL, 4096UL, 4097UL, 30000UL}) {
        INFO(n << " bytes");
        for (const std::size_t offset : {0UL, 13UL, kSize / 2 - 5, kSize - n}) {
            if (offset + n > kSize)
                continue;
            lite_op op{};
            auto* sqe = ring.sqe(1);
            lite_uring_write(sqe, ctx, &op, lmr.handle(), offset, wanted.data() + offset, n);
            sqe->flags |= static_cast<std::uint8_t>(flags);
            REQUIRE(ring.run(1) == 0);
            CHECK(op.result == n);
            std::fill(seen.begin(), seen.end(), std::byte{0x11});
            sqe = ring.sqe(2);
            lite_uring_read(sqe, ctx, &op, lmr.handle(), offset, seen.data() + offset, n);
            sqe->flags |= static_cast<std::uint8_t>(flags);
            REQUIRE(ring.run(2) == 0);
            CHECK(op.result == n);
            CHECK(std::equal(seen.begin() + static_cast<long>(offset),
                             seen.begin() + static_cast<long>(offset + n),
                             wanted.begin() + static_cast<long>(offset)));
            // Nothing beside the range has changed.
            CHECK(all_are(std::span(seen).first(offset), std::byte{0x11}));
            CHECK(all_are(std::span(seen).subspan(offset + n), std::byte{0x11}));
        }
    }
}

TEST_CASE_METHOD(UringEverywhere, "data: a window of 64, many LMRs", "[uring]") {
    INFO(where.label);
    constexpr std::size_t kLmrs = 16;
    constexpr std::size_t kSlots = 64;
    const std::size_t count = env().scaled(env().scaled(8000), 300);
    std::vector<lite::region> lmrs;
    for (std::size_t i = 0; i < kLmrs; i++)
        lmrs.push_back(region(kSlots * 64, where.nodes));
    Ring ring(kWindow);
    std::mt19937_64 random(env().seed);
    // The contents of each slot. A slot with a command in flight is not used by another command.
    std::vector<std::array<std::byte, 64>> model(kLmrs * kSlots);
    std::vector<bool> busy(model.size());
    struct Command {
        lite_op op;
        std::array<std::byte, 64> data;
        std::size_t slot;
        bool write;
    };
    std::vector<Command> commands(kWindow);
    std::vector<std::size_t> idle(kWindow);
    std::iota(idle.begin(), idle.end(), 0);
    std::size_t begun = 0;
    std::size_t ended = 0;
    while (ended < count) {
        while (begun < count && !idle.empty()) {
            auto& c = commands[idle.back()];
            c.slot = random() % model.size();
            if (busy[c.slot])
                continue;
            busy[c.slot] = true;
            c.write = random() & 1;
            auto* sqe = ring.sqe(idle.back());
            auto& lmr = lmrs[c.slot / kSlots];
            const auto offset = c.slot % kSlots * 64;
            if (c.write) {
                fill(c.data, random());
                model[c.slot] = c.data;
                lite_uring_write(sqe, ctx, &c.op, lmr.handle(), offset, c.data.data(), 64);
            } else {
                lite_uring_read(sqe, ctx, &c.op, lmr.handle(), offset, c.data.data(), 64);
            }
            idle.pop_back();
            begun++;
        }
        REQUIRE(::io_uring_submit_and_wait(ring.get(), 1) >= 0);
        io_uring_cqe* cqe = nullptr;
        while (!::io_uring_peek_cqe(ring.get(), &cqe)) {
            auto& c = commands[cqe->user_data];
            expect_equal(cqe->res, 0, "result");
            expect_equal(c.op.result, 64U, "bytes");
            expect(c.write || c.data == model[c.slot], "the data of a read");
            busy[c.slot] = false;
            idle.push_back(cqe->user_data);
            ::io_uring_cqe_seen(ring.get(), cqe);
            ended++;
        }
    }
}

TEST_CASE_METHOD(UringEverywhere, "data: atomics are atomic", "[uring]") {
    INFO(where.label);
    auto lmr = region(4096, where.nodes);
    Ring ring;
    const std::size_t count = env().scaled(env().scaled(2000), 3 * kWindow);
    std::vector<lite_op> ops(kWindow);
    std::vector<std::uint64_t> seen;
    for (std::size_t i = 0; i < count; i += kWindow) {
        for (unsigned k = 0; k < kWindow; k++)
            lite_uring_fetch_add(ring.sqe(k), ctx, &ops[k], lmr.handle(), 8, 1);
        ring.submit();
        for (unsigned k = 0; k < kWindow; k++) {
            REQUIRE(ring.wait(k) == 0);
            seen.push_back(ops[k].result);
        }
    }
    // Each old value was seen once.
    std::sort(seen.begin(), seen.end());
    std::vector<std::uint64_t> wanted(seen.size());
    std::iota(wanted.begin(), wanted.end(), 0);
    CHECK(seen == wanted);
    lite_op op{};
    lite_uring_cmp_swap(ring.sqe(1), ctx, &op, lmr.handle(), 8, 12345678, 1);
    CHECK(ring.run(1) == 0);
    CHECK(op.result == seen.size());
    lite_uring_cmp_swap(ring.sqe(1), ctx, &op, lmr.handle(), 8, seen.size(), 77);
    CHECK(ring.run(1) == 0);
    CHECK(op.result == seen.size());
    op = {.opcode = LITE_OP_SWAP, .lh = lmr.handle(), .offset = 8, .length = 8, .operand = 5};
    lite_uring_op(ring.sqe(1), ctx, &op);
    CHECK(ring.run(1) == 0);
    CHECK(op.result == 77);
}

TEST_CASE_METHOD(UringEverywhere, "data: errors are those of the ioctl", "[uring]") {
    INFO(where.label);
    auto lmr = region(8192, where.nodes);
    Ring ring;
    std::vector<std::byte> buffer(4096);
    lite_op op{};
    const auto read = [&](lite_lh_t lh, std::uint64_t offset, void* to, std::size_t n) {
        lite_uring_read(ring.sqe(1), ctx, &op, lh, offset, to, n);
        return ring.run(1);
    };
    CHECK(read(lmr.handle(), 8192, buffer.data(), 1) == -ERANGE);
    CHECK(read(lmr.handle(), 8000, buffer.data(), 193) == -ERANGE);
    CHECK(read(lmr.handle(), UINT64_MAX - 5, buffer.data(), 64) == -ERANGE);
    CHECK(read(lmr.handle(), 0, buffer.data(), 0) == -EINVAL);
    CHECK(read(lmr.handle() + 1, 0, buffer.data(), 64) == -EBADF);
    CHECK(read(0, 0, buffer.data(), 64) == -EBADF);
    CHECK(read(lmr.handle(), 0, nullptr, 64) == -EFAULT);
    CHECK(op.result == 0);
    CHECK(read(lmr.handle(), 0, unmapped_address(4096), 64) == -EFAULT);
    lite_uring_read(ring.sqe(1), ctx, &op, lmr.handle(), 0, nullptr, 64);
    op.buf = UINT64_MAX - 10;
    CHECK(ring.run(1) == -EFAULT);
    const GuardedBuffer guarded(64);
    CHECK(read(lmr.handle(), 0, guarded.data() + 32, 64) == -EFAULT);
    CHECK(read(lmr.handle(), 0, guarded.data(), 64) == 0);
    const Mapping absent(16384);  // never touched: it has to be faulted in
    CHECK(read(lmr.handle(), 100, absent.data() + 4090, 64) == 0);
    CHECK(op.result == 64);
    const Mapping written(16384);
    lite_uring_write(ring.sqe(1), ctx, &op, lmr.handle(), 100, written.data() + 4090, 64);
    CHECK(ring.run(1) == 0);
    const Mapping constant(4096);
    constant.protect(0, 4096, PROT_READ);
    CHECK(read(lmr.handle(), 0, constant.data(), 64) == -EFAULT);
    lite_uring_write(ring.sqe(1), ctx, &op, lmr.handle(), 0, unmapped_address(4096), 64);
    CHECK(ring.run(1) == -EFAULT);
    lite_uring_fetch_add(ring.sqe(1), ctx, &op, lmr.handle(), 4, 1);
    CHECK(ring.run(1) == -EINVAL);
    lite_uring_fetch_add(ring.sqe(1), ctx, &op, lmr.handle(), 8192, 1);
    CHECK(ring.run(1) == -ERANGE);

    op = {.opcode = 200, .lh = lmr.handle(), .length = 8};
    lite_uring_op(ring.sqe(1), ctx, &op);
    CHECK(ring.run(1) == -EOPNOTSUPP);
    op = {.opcode = LITE_OP_READ, .flags = 1, .lh = lmr.handle(), .length = 8};
    lite_uring_op(ring.sqe(1), ctx, &op);
    CHECK(ring.run(1) == -EOPNOTSUPP);

    // Without the right for the operation.
    NamedLmr named(dev, 4096, where.nodes);
    auto only_read = node.map(named.name(), lite::rights::read);
    lite_uring_write(ring.sqe(1), ctx, &op, only_read.handle(), 0, buffer.data(), 64);
    CHECK(ring.run(1) == -EACCES);
    lite_uring_read(ring.sqe(1), ctx, &op, only_read.handle(), 0, buffer.data(), 64);
    CHECK(ring.run(1) == 0);
    dev.free(named.name());
    lite_uring_read(ring.sqe(1), ctx, &op, only_read.handle(), 0, buffer.data(), 64);
    CHECK(ring.run(1) == -EIDRM);
}

TEST_CASE_METHOD(Uring, "data: malformed commands", "[uring]") {
    Ring ring;
    lite_op op{};
    auto lmr = region(4096, {env().self});
    std::array<std::byte, 64> buffer{};
    io_uring_sqe* sqe = nullptr;
    const auto next = [&] {
        sqe = ring.sqe(1);
        lite_uring_read(sqe, ctx, &op, lmr.handle(), 0, buffer.data(), buffer.size());
    };
    next();
    CHECK(ring.run(1) == 0);
    next();
    payload(sqe).reserved = 1;
    CHECK(ring.run(1) == -EOPNOTSUPP);
    next();
    payload(sqe).arg = 0;
    CHECK(ring.run(1) == -EFAULT);
    next();
    payload(sqe).arg = UINT64_MAX - 8;
    CHECK(ring.run(1) == -EFAULT);
    for (const unsigned command : {0U, 1U, LITE_IOC_OP + 1000U, LITE_IOC_OP | 1U << 30, 0xB7FFU}) {
        INFO("command " << command);
        next();
        sqe->cmd_op = command;
        CHECK(ring.run(1) == -ENOTTY);
    }
    next();
    op.size = 4;
    CHECK(ring.run(1) == -EINVAL);
    next();
    op.size = 1 << 20;
    CHECK(ring.run(1) == -E2BIG);
    // io_uring itself refuses two of these.
    next();
    sqe->rw_flags = IORING_URING_CMD_FIXED;
    CHECK(ring.run(1) < 0);
    next();
    sqe->rw_flags = 1 << 20;
    CHECK(ring.run(1) == -EINVAL);
    // Also commands other than operations.
    lite_ioc_query query{};
    query.size = sizeof(query);
    sqe = ring.sqe(1);
    lite_uring_command(sqe, ctx, LITE_IOC_QUERY, &query);
    CHECK(ring.run(1) == 0);
    CHECK(query.node_id == env().self);
    {
        Ring polled(8, IORING_SETUP_IOPOLL);
        lite_uring_read(polled.sqe(1), ctx, &op, lmr.handle(), 0, buffer.data(), buffer.size());
        polled.submit();
        io_uring_cqe* cqe = nullptr;
        REQUIRE(::io_uring_wait_cqe(polled.get(), &cqe) == 0);
        CHECK(cqe->res == -EOPNOTSUPP);
        ::io_uring_cqe_seen(polled.get(), cqe);
    }
}

TEST_CASE_METHOD(UringEverywhere, "data: files", "[uring]") {
    constexpr ssize_t kBytes = 50000;
    Ring ring;
    const int fd = ::memfd_create("uring", MFD_CLOEXEC);
    std::vector<std::byte> bytes(kBytes);
    fill(bytes, 1);
    REQUIRE(::pwrite(fd, bytes.data(), bytes.size(), 0) == kBytes);
    auto lmr = node.alloc({.length = kBytes, .nodes = where.nodes});
    lite_ioc_file args{};
    args.size = sizeof(args);
    args.lh = lmr.handle();
    args.length = ~0ULL;
    args.fd = fd;
    lite_uring_command(ring.sqe(1), ctx, LITE_IOC_SENDFILE, &args);
    REQUIRE(ring.run(1) == 0);
    REQUIRE(args.moved == kBytes);
    lite_uring_command(ring.sqe(2), ctx, LITE_IOC_RECVFILE, &args);
    REQUIRE(ring.run(2) == 0);
    REQUIRE(args.file_offset == 2 * kBytes);
    std::vector<std::byte> got(kBytes);
    REQUIRE(::pread(fd, got.data(), got.size(), kBytes) == kBytes);
    REQUIRE(got == bytes);
    ::close(fd);
}

TEST_CASE_METHOD(UringEverywhere, "data: rings of all kinds", "[uring]") {
    INFO(where.label);
    const unsigned flags =
        GENERATE(unsigned{IORING_SETUP_SQPOLL}, unsigned{IORING_SETUP_SQE128},
                 unsigned{IORING_SETUP_CQE32}, unsigned{IORING_SETUP_COOP_TASKRUN},
                 unsigned{IORING_SETUP_SINGLE_ISSUER} | unsigned{IORING_SETUP_DEFER_TASKRUN});
    INFO("flags " << flags);
    auto lmr = region(4096, where.nodes);
    Ring ring(32, flags);
    std::vector<lite_op> ops(16);
    std::vector<std::uint64_t> values(16);
    std::iota(values.begin(), values.end(), 1000);
    for (std::uint64_t i = 0; i < 16; i++)
        lite_uring_write(ring.sqe(i), ctx, &ops[i], lmr.handle(), i * 8, &values[i], 8);
    ring.submit();
    for (std::uint64_t i = 0; i < 16; i++)
        REQUIRE(ring.wait(i) == 0);
    std::vector<std::uint64_t> back(16);
    for (std::uint64_t i = 0; i < 16; i++)
        lite_uring_read(ring.sqe(i), ctx, &ops[i], lmr.handle(), i * 8, &back[i], 8);
    ring.submit();
    for (std::uint64_t i = 0; i < 16; i++)
        REQUIRE(ring.wait(i) == 0);
    CHECK(back == values);
}
