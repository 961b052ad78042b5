// SPDX-License-Identifier: MIT
//
// Names of users and groups. Each is asked for once: a directory server may be
// behind it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace tools {

// From what people type to numbers: names are looked up first, as chown(1)
// does, for they may consist of digits. Throw usage_error.
std::uint32_t parse_user(std::string_view text);

// Owner and group to be given to an LMR; LITE_KEEP: the one that it has.
struct ownership {
    std::uint32_t uid;
    std::uint32_t gid;
};

// OWNER, OWNER:GROUP, :GROUP, or OWNER: for the login group of that user.
ownership parse_ownership(std::string_view text);

class users {
  public:
    // The name, or the number if there is none.
    const std::string& user(std::uint32_t uid);
    const std::string& group(std::uint32_t gid);

  private:
    std::map<std::uint32_t, std::string> m_users;
    std::map<std::uint32_t, std::string> m_groups;
};

}  // namespace tools
