// SPDX-License-Identifier: MIT
//
// Names of users and groups, cached: each look-up may go to a directory server.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace tools {

// The uid of a name or number. Names come first, as in chown(1), since they may consist of digits.
// Throws usage_error, as does parse_ownership().
std::uint32_t parse_user(std::string_view text);

// New owner and group of an LMR; LITE_KEEP: unchanged.
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
