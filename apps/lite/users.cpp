// SPDX-License-Identifier: MIT

#include "users.hpp"

#include "common/error.hpp"
#include "common/text/format.hpp"
#include "common/text/parse.hpp"

#include <uapi/lite.h>

#include <fmt/format.h>

#include <cerrno>
#include <vector>

#include <grp.h>
#include <pwd.h>

namespace tools {
namespace {

// Calls @lookup, such as getpwuid_r(), with a large enough buffer. False if there is no entry.
template <typename Entry, typename Key, typename Lookup, typename Use>
bool look_up(Key key, Lookup lookup, Use use) {
    std::vector<char> room(1024);
    for (;;) {
        Entry entry{};
        Entry* found = nullptr;
        const int error = lookup(key, &entry, room.data(), room.size(), &found);
        if (error == ERANGE && room.size() < (1U << 20)) {
            room.resize(room.size() * 2);
            continue;
        }
        if (error || !found)
            return false;
        use(entry);
        return true;
    }
}

template <typename Entry, typename Lookup>
std::string name_of(std::uint32_t id, Lookup lookup, char* Entry::*name) {
    std::string text = std::to_string(id);
    look_up<Entry>(id, lookup, [&](const Entry& entry) { text = entry.*name; });
    return text;
}

// The largest number is LITE_KEEP, which is no id.
std::uint32_t parse_id(std::string_view text, std::string_view kind) {
    try {
        return static_cast<std::uint32_t>(parse_number(text, 0, LITE_KEEP - 1));
    } catch (const usage_error&) {
        throw usage_error(
            fmt::format("no {1} '{0}' on this machine, and not a number", printable(text), kind));
    }
}

std::uint32_t parse_group(std::string_view text) {
    std::uint32_t gid = 0;
    if (look_up<::group>(std::string(text).c_str(), ::getgrnam_r,
                         [&](const ::group& entry) { gid = entry.gr_gid; }))
        return gid;
    return parse_id(text, "group");
}

std::uint32_t login_group(std::string_view owner) {
    std::uint32_t gid = 0;
    if (!look_up<passwd>(parse_user(owner), ::getpwuid_r,
                         [&](const passwd& entry) { gid = entry.pw_gid; }))
        throw usage_error(
            fmt::format("no user '{}' on this machine, so its group is unknown", printable(owner)));
    return gid;
}

}  // namespace

std::uint32_t parse_user(std::string_view text) {
    std::uint32_t uid = 0;
    if (look_up<passwd>(std::string(text).c_str(), ::getpwnam_r,
                        [&](const passwd& entry) { uid = entry.pw_uid; }))
        return uid;
    return parse_id(text, "user");
}

ownership parse_ownership(std::string_view text) {
    const auto colon = text.find(':');
    const auto owner = text.substr(0, colon);
    if (colon == std::string_view::npos)
        return {parse_user(owner), LITE_KEEP};

    const auto group = text.substr(colon + 1);
    if (owner.empty() && group.empty())
        throw usage_error("':' names neither an owner nor a group");
    return {owner.empty() ? LITE_KEEP : parse_user(owner),
            group.empty() ? login_group(owner) : parse_group(group)};
}

const std::string& users::user(std::uint32_t uid) {
    const auto [it, is_new] = m_users.try_emplace(uid);
    if (is_new)
        it->second = name_of<passwd>(uid, ::getpwuid_r, &passwd::pw_name);
    return it->second;
}

const std::string& users::group(std::uint32_t gid) {
    const auto [it, is_new] = m_groups.try_emplace(gid);
    if (is_new)
        it->second = name_of<::group>(gid, ::getgrgid_r, &::group::gr_name);
    return it->second;
}

}  // namespace tools
