// SPDX-License-Identifier: MIT
//
// liblite for C++20: cluster membership. <lite/cluster.h> describes the functions and their errors;
// these throw lite::error.
//
//	lite::join("10.0.0.1");
//	for (const auto& member : lite::members())
//	    std::cout << member.id << ' ' << member.address << '\n';
#pragma once

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

// Joins the cluster of the member at a numeric address. With no_wait it throws EINPROGRESS when the
// attempt has begun.
inline void join(const std::string& address, std::uint16_t port = 0,
                 timeout limit = default_timeout, int index = -1) {
    const int ms = detail::milliseconds(limit);
    if (const int err = ::lite_join(index, address.c_str(), port, ms))
        throw error(err, "join " + address, 0, std::generic_category());
}

// Takes a node out of its cluster in order.
inline void leave(int index = -1) {
    if (const int err = ::lite_leave(index))
        throw error(err, "leave", 0, std::generic_category());
}

}  // namespace lite
