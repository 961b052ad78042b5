// SPDX-License-Identifier: MIT
//
// liblite for C++20: many operations in one call.
//
//	std::array ops{
//	    lite::op::write(table, 64, std::as_bytes(std::span(row))),
//	    lite::op::read(index, 0, std::as_writable_bytes(std::span(entry))),
//	    lite::op::fetch_add(counters, 8, 1),
//	};
//	if (lite::submit(node, ops) == 0)
//	    use(ops[2].result);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>

#include <lite/vector.h>
#include <lite/lite.hpp>

namespace lite {

// Functions that make operations for submit(), which sets error and result. They have the region's
// priority. The region, and the memory to read or write, must stay until then.
namespace op {

inline lite_op make(lite_opcode opcode, const region& on, std::uint64_t offset,
                    std::uint64_t length) noexcept {
    lite_op made{};
    made.opcode = static_cast<__u16>(opcode);
    made.lh = on.handle();
    made.offset = offset;
    made.length = length;
    made.priority = on.priority();
    return made;
}

inline lite_op read(const region& from, std::uint64_t offset, std::span<std::byte> to) noexcept {
    lite_op made = make(LITE_OP_READ, from, offset, to.size());
    made.buf = reinterpret_cast<std::uintptr_t>(to.data());
    return made;
}

inline lite_op write(const region& to, std::uint64_t offset,
                     std::span<const std::byte> from) noexcept {
    lite_op made = make(LITE_OP_WRITE, to, offset, from.size());
    made.buf = reinterpret_cast<std::uintptr_t>(from.data());
    return made;
}

// Operations that set result to the previous value.
inline lite_op word(lite_opcode opcode, const region& on, std::uint64_t offset,
                    std::uint64_t operand, std::uint64_t swap = 0) noexcept {
    lite_op made = make(opcode, on, offset, sizeof(std::uint64_t));
    made.operand = operand;
    made.swap = swap;
    return made;
}

inline lite_op fetch_add(const region& on, std::uint64_t offset, std::uint64_t add) noexcept {
    return word(LITE_OP_FETCH_ADD, on, offset, add);
}

inline lite_op compare_swap(const region& on, std::uint64_t offset, std::uint64_t expected,
                            std::uint64_t desired) noexcept {
    return word(LITE_OP_CMP_SWAP, on, offset, expected, desired);
}

inline lite_op swap(const region& on, std::uint64_t offset, std::uint64_t desired) noexcept {
    return word(LITE_OP_SWAP, on, offset, desired);
}

}  // namespace op

inline std::error_code error_of(const lite_op& done) noexcept { return {-done.error, category()}; }

// Executes at most LITE_VECTOR_MAX operations in parallel, in any order; each has its own error and
// result. Returns how many have an error. @throws error as lite_vector()
inline std::size_t submit(const context& node, std::span<lite_op> ops) {
    if (ops.empty())
        return 0;
    const int failed = lite_vector(node.get(), ops.data(), ops.size());
    if (failed < 0)
        throw error(failed, "vector of operations");
    return static_cast<std::size_t>(failed);
}

}  // namespace lite
