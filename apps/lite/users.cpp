// SPDX-License-Identifier: MIT

#include "users.hpp"

#include <cerrno>
#include <vector>

#include <grp.h>
#include <pwd.h>

namespace tools {
namespace {

// getpwuid_r() and getgrgid_r(): retried with more room as long as they ask
// for it.
template <typename Entry, typename Lookup>
std::string look_up(std::uint32_t id, Lookup lookup, char* Entry::*name) {
    std::vector<char> room(1024);
    for (;;) {
        Entry entry{};
        Entry* found = nullptr;
        const int error = lookup(id, &entry, room.data(), room.size(), &found);
        if (error == ERANGE && room.size() < (1U << 20)) {
            room.resize(room.size() * 2);
            continue;
        }
        return error || !found ? std::to_string(id) : std::string(entry.*name);
    }
}

}  // namespace

const std::string& users::user(std::uint32_t uid) {
    const auto [it, is_new] = m_users.try_emplace(uid);
    if (is_new)
        it->second = look_up<passwd>(uid, ::getpwuid_r, &passwd::pw_name);
    return it->second;
}

const std::string& users::group(std::uint32_t gid) {
    const auto [it, is_new] = m_groups.try_emplace(gid);
    if (is_new)
        it->second = look_up<::group>(gid, ::getgrgid_r, &::group::gr_name);
    return it->second;
}

}  // namespace tools
