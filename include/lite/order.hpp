// SPDX-License-Identifier: MIT
//
// liblite for C++20: ordering.
//
//	table.write(payload, bytes);
//	lite::fence(node, table);
//	table.store(flag, std::uint64_t{1});
#pragma once

#include <lite/order.h>
#include <lite/vector.hpp>

namespace lite {

// Makes what has completed on this LMR visible to the processors of the nodes that hold it.
// @throws error as lite_fence(); EBADF for an empty region
inline void fence(const context& node, const region& on) {
    if (!on)
        throw error(-EBADF, "fence");
    if (const int err = lite_fence(node.get(), on.handle()))
        throw error(err, "fence");
}

// The same for all LMRs, on all nodes that are not down. @throws error as lite_fence()
inline void fence(const context& node) {
    if (const int err = lite_fence(node.get(), 0))
        throw error(err, "fence");
}

// The priority of a context's operations that have none, as lite_set_priority().
// @throws error as that
inline void set_priority(const context& node, std::uint32_t priority) {
    if (const int err = lite_set_priority(node.get(), priority))
        throw error(err, "set_priority");
}

namespace op {

// For submit(): operations before it in the array are complete, and visible to the processors of
// the nodes that hold this LMR, before those after it begin. If one before it fails, those after it
// are not tried: ECANCELED.
inline lite_op fence(const region& on) noexcept {
    lite_op fence = make(static_cast<lite_opcode>(LITE_OP_FENCE), on, 0, 0);
    // 0 would mean all LMRs. ~0 is no handle, so an empty region fails with EBADF here, too.
    if (!on)
        fence.lh = ~lite_lh_t{0};
    return fence;
}

}  // namespace op

}  // namespace lite
