// SPDX-License-Identifier: MIT
//
// Names of users and groups. Each is asked for once: a directory server may be
// behind it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tools {

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
