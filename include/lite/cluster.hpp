// SPDX-License-Identifier: MIT
//
// liblite for C++20: cluster membership. <lite/cluster.h> describes the functions and their errors;
// these throw lite::error.
//
//	lite::join("10.0.0.1");
//	for (const auto& member : lite::members())
//	    std::cout << member.id << ' ' << member.address << '\n';
#pragma once

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <lite/cluster.h>
#include <lite/types.hpp>

namespace lite {

using member = ::lite_member;

// The members of the node's cluster, itself included, in order of ids.
inline std::vector<member> members(int index = -1) {
    std::vector<member> found(16);
    for (;;) {
        std::size_t count = 0;
        if (const int err = ::lite_members(index, found.data(), found.size(), &count))
            throw error(err, "members");
        const bool all = count <= found.size();
        found.resize(count);
        if (all)
            return found;
    }
}

// Joins the cluster of the member at a numeric address. @limit bounds the attempt;
// LITE_TIMEOUT_DEFAULT: 15 s.
inline void join(const std::string& address, std::uint16_t port = 0,
                 std::chrono::milliseconds limit = std::chrono::milliseconds(LITE_TIMEOUT_DEFAULT),
                 int index = -1) {
    // lite_join() rejects values out of its range.
    const auto ms = std::clamp<std::chrono::milliseconds::rep>(limit.count(), INT_MIN, INT_MAX);
    if (const int err = ::lite_join(index, address.c_str(), port, static_cast<int>(ms)))
        throw error(err, "join " + address, 0, std::generic_category());
}

// Takes a node out of its cluster in order.
inline void leave(int index = -1) {
    if (const int err = ::lite_leave(index))
        throw error(err, "leave", 0, std::generic_category());
}

}  // namespace lite
