// SPDX-License-Identifier: MIT
//
// liblite for C++20: awaitable operations on the memory of LMRs; a part of lite::executor
// (<lite/async.hpp>).
//
// Each function behaves, and throws, as the one of the same name in <lite/lite.hpp>. It also throws
// ECANCELED, if a stop was requested, and EINTR, if the process was stopped for a while; it is then
// unknown whether the operation was done. Transfers of up to a page of one other node's memory,
// fetch_add() and compare_swap() there cannot be cancelled; they end, at the latest, when their
// queue pair has completed nothing for the node's operation time-out.
//
// Offsets and lengths are in bytes. Buffers and handles must stay until the end of the operation.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <utility>

#include <lite/order.h>
#include <lite/vector.h>
#include <lite/async/engine.hpp>
#include <lite/lite.hpp>

namespace lite {

// The LMR to operate on (a handle or a region, which must stay), and the priority of operations, as
// in region.
struct lmr {
    lmr(lite_lh_t handle) noexcept : lh(handle) {}
    lmr(const region& of) noexcept : lh(of.handle()), priority(of.priority()) {}
    lite_lh_t lh;
    std::uint8_t priority = LITE_PRIORITY_DEFAULT;
};

class memory_calls {
  public:
    explicit memory_calls(detail::engine& on) noexcept : m_engine(on) {}
    memory_calls(const memory_calls&) = delete;
    memory_calls& operator=(const memory_calls&) = delete;

    // Reads all of it, at least one byte. Retries if the connection breaks, or the process is
    // stopped for a while.
    // @throws error as lite_read(), with transferred(); ECANCELED
    task<> read(lmr from, std::uint64_t offset, std::span<std::byte> to,
                std::stop_token stop = {}) {
        return transfer(LITE_OP_READ, from, offset, to.data(), to.size(), "read", std::move(stop));
    }

    // Writes all of it, at least one byte; retries as read().
    // @throws error as lite_write(), with transferred(); ECANCELED
    task<> write(lmr to, std::uint64_t offset, std::span<const std::byte> from,
                 std::stop_token stop = {}) {
        return transfer(LITE_OP_WRITE, to, offset, from.data(), from.size(), "write",
                        std::move(stop));
    }

    // Reads one object. @throws error as read()
    template <plain T>
    task<T> load(lmr from, std::uint64_t offset, std::stop_token stop = {}) {
        std::array<std::byte, sizeof(T)> bytes;
        co_await read(from, offset, bytes, std::move(stop));
        co_return std::bit_cast<T>(bytes);
    }

    // Writes one object, copied at the call. @throws error as write()
    template <plain T>
    task<> store(lmr to, std::uint64_t offset, T value, std::stop_token stop = {}) {
        co_await write(to, offset, std::as_bytes(std::span(&value, 1)), std::move(stop));
    }

    // These five are atomics on 8-byte words at multiples of 8, and return the previous value.

    // Adds, modulo 2^64. @throws error as lite_fetch_add(); ECANCELED, EINTR
    task<std::uint64_t> fetch_add(lmr on, std::uint64_t offset, std::uint64_t addend,
                                  std::stop_token stop = {}) {
        return word(LITE_OP_FETCH_ADD, on, offset, addend, 0, "fetch-add", std::move(stop));
    }

    // Replaces the word by @desired if it is @expected.
    // @throws error as lite_cmp_swap(); ECANCELED, EINTR
    task<std::uint64_t> compare_swap(lmr on, std::uint64_t offset, std::uint64_t expected,
                                     std::uint64_t desired, std::stop_token stop = {}) {
        return word(LITE_OP_CMP_SWAP, on, offset, expected, desired, "compare-swap",
                    std::move(stop));
    }

    // Replaces the word by @desired. @throws error as lite_swap(); ECANCELED, EINTR
    task<std::uint64_t> exchange(lmr on, std::uint64_t offset, std::uint64_t desired,
                                 std::stop_token stop = {}) {
        return word(LITE_OP_SWAP, on, offset, desired, 0, "swap", std::move(stop));
    }

    // Clears the bits that are not in @mask.
    // @throws error as lite_fetch_and(); ECANCELED, EINTR
    task<std::uint64_t> fetch_and(lmr on, std::uint64_t offset, std::uint64_t mask,
                                  std::stop_token stop = {}) {
        return word(LITE_OP_FETCH_AND, on, offset, mask, 0, "fetch-and", std::move(stop));
    }

    // Sets bits. @throws error as lite_fetch_or(); ECANCELED, EINTR
    task<std::uint64_t> fetch_or(lmr on, std::uint64_t offset, std::uint64_t bits,
                                 std::stop_token stop = {}) {
        return word(LITE_OP_FETCH_OR, on, offset, bits, 0, "fetch-or", std::move(stop));
    }

    // Fills @length bytes, at least one, with a pattern of 1 to 8 bytes, copied at the call. After
    // a failure or cancellation a part may be done.
    // @throws error as lite_set(), with transferred(); EINVAL immediately for a pattern of another
    // length; ECANCELED, EINTR
    task<> set(lmr to, std::uint64_t offset, std::uint64_t length,
               std::span<const std::byte> pattern, std::stop_token stop = {}) {
        if (pattern.empty() || pattern.size() > sizeof(std::uint64_t))
            throw error(EINVAL, "set");
        std::uint64_t bytes = 0;
        for (std::size_t i = pattern.size(); i-- > 0;)
            bytes = bytes << 8 | std::to_integer<std::uint64_t>(pattern[i]);
        return change(LITE_OP_SET, to, offset, length, bytes, pattern.size(), "set",
                      std::move(stop));
    }

    // Copies @length bytes, at least one, between LMRs of the context, or within one, where the
    // ranges may overlap. A part may be done, as with set().
    // @throws error as lite_copy(), with transferred(); ECANCELED, EINTR
    task<> copy(lmr to, std::uint64_t offset, lmr from, std::uint64_t from_offset,
                std::uint64_t length, std::stop_token stop = {}) {
        return change(LITE_OP_COPY, to, offset, length, from.lh, from_offset, "copy",
                      std::move(stop));
    }

    // The number of leading bytes of @length, at least one, that are equal.
    // @throws error as lite_compare(); ECANCELED, EINTR
    task<std::uint64_t> compare(lmr one, std::uint64_t offset, lmr other,
                                std::uint64_t other_offset, std::uint64_t length,
                                std::stop_token stop = {}) {
        return operate(LITE_OP_COMPARE, one, offset, length, other.lh, other_offset, "compare",
                       std::move(stop));
    }

    // The CRC-32C of @length bytes, at least one, continuing from the checksum @seed.
    // @throws error as lite_checksum(); ECANCELED, EINTR
    task<std::uint32_t> checksum(lmr of, std::uint64_t offset, std::uint64_t length,
                                 std::uint32_t seed = 0, std::stop_token stop = {}) {
        co_return static_cast<std::uint32_t>(co_await operate(
            LITE_OP_CHECKSUM, of, offset, length, seed, 0, "checksum", std::move(stop)));
    }

    // Makes what has completed on this LMR visible to the processors of the nodes that hold it.
    // @throws error as lite_fence(); EBADF for an empty region; ECANCELED, EINTR
    task<> fence(lmr on, std::stop_token stop = {}) {
        if (!on.lh)
            throw error(EBADF, "fence");
        co_await operate(static_cast<lite_opcode>(LITE_OP_FENCE), on, 0, 0, 0, 0, "fence",
                         std::move(stop));
    }

    // The same for all LMRs, on all nodes that are not down.
    // @throws error as lite_fence(); ECANCELED, EINTR
    task<> fence(std::stop_token stop = {}) {
        co_await operate(static_cast<lite_opcode>(LITE_OP_FENCE), lite_lh_t{0}, 0, 0, 0, 0, "fence",
                         std::move(stop));
    }

    // Executes at most LITE_VECTOR_MAX operations, made by lite::op or by hand, in parallel and,
    // except around lite::op::fence(), in any order; each gets its own error and result. Returns
    // how many have an error. If it throws, operations that were not tried have the same error;
    // after ECANCELED and EINTR some of these may have been executed.
    // @throws error as lite_vector(); ECANCELED, EINTR
    task<std::size_t> submit(std::span<lite_op> ops, std::stop_token stop = {}) {
        if (ops.empty())
            co_return 0;
        lite_ioc_vector args{};
        // The kernel rejects too many.
        args.n_ops = ops.size() > LITE_VECTOR_MAX ? UINT32_MAX : std::uint32_t(ops.size());
        args.ops = reinterpret_cast<std::uintptr_t>(ops.data());
        args.op_size = sizeof(lite_op);
        for (lite_op& op : ops)
            op.size = sizeof(op);
        const detail::ioctl_of prepare(m_engine, LITE_IOC_VECTOR, args);
        detail::submission submitted(m_engine, prepare, std::move(stop));
        const int err = co_await submitted;
        if (err) {
            for (lite_op& op : ops.subspan(std::min<std::size_t>(args.n_done, ops.size()))) {
                op.error = err;
                op.result = 0;
            }
            throw error(err, "vector of operations");
        }
        co_return args.n_failed;
    }

  private:
    static lite_op make(lite_opcode opcode, lmr on, std::uint64_t offset,
                        std::uint64_t length) noexcept {
        lite_op op{};
        op.opcode = static_cast<__u16>(opcode);
        op.lh = on.lh;
        op.offset = offset;
        op.length = length;
        op.priority = on.priority;
        return op;
    }

    // Transfers are idempotent, so they can be retried. The first attempt may run without a thread,
    // and then the kernel does not retry it; IOSQE_ASYNC makes the kernel use one.
    task<> transfer(lite_opcode opcode, lmr on, std::uint64_t offset, const void* buf,
                    std::size_t length, const char* doing, std::stop_token stop) {
        lite_op op = make(opcode, on, offset, length);
        op.buf = reinterpret_cast<std::uintptr_t>(buf);
        std::uint8_t flags = 0;
        const auto prepare = [&](io_uring_sqe* sqe) {
            lite_uring_op(sqe, m_engine.ctx(), &op);
            sqe->flags |= flags;
        };
        for (;;) {
            detail::submission moved(m_engine, prepare, stop);
            const int err = co_await moved;
            if (!err)
                co_return;
            const bool broke = err == -EHOSTDOWN || err == -ETIMEDOUT;
            if (err != -EINTR && (!broke || flags))
                throw error(err, doing, op.result);
            if (broke)
                flags = IOSQE_ASYNC;
        }
    }

    // Does not report how many bytes are done: unknown for atomics, irrelevant if the operation
    // only reads.
    task<std::uint64_t> operate(lite_opcode opcode, lmr on, std::uint64_t offset,
                                std::uint64_t length, std::uint64_t operand, std::uint64_t swap,
                                const char* doing, std::stop_token stop) {
        lite_op op = make(opcode, on, offset, length);
        op.operand = operand;
        op.swap = swap;
        const detail::ioctl_of prepare(m_engine, LITE_IOC_OP, op);
        detail::submission operated(m_engine, prepare, std::move(stop));
        detail::check(co_await operated, doing);
        co_return op.result;
    }

    task<std::uint64_t> word(lite_opcode opcode, lmr on, std::uint64_t offset,
                             std::uint64_t operand, std::uint64_t swap, const char* doing,
                             std::stop_token stop) {
        return operate(opcode, on, offset, sizeof(std::uint64_t), operand, swap, doing,
                       std::move(stop));
    }

    // Reports how many bytes are done. Not retried: repeating a SET or COPY could overwrite what
    // another program has written meanwhile.
    task<> change(lite_opcode opcode, lmr on, std::uint64_t offset, std::uint64_t length,
                  std::uint64_t operand, std::uint64_t swap, const char* doing,
                  std::stop_token stop) {
        lite_op op = make(opcode, on, offset, length);
        op.operand = operand;
        op.swap = swap;
        const detail::ioctl_of prepare(m_engine, LITE_IOC_OP, op);
        detail::submission changed(m_engine, prepare, std::move(stop));
        const int err = co_await changed;
        if (err)
            throw error(err, doing, op.result);
    }

    detail::engine& m_engine;
};

}  // namespace lite
