// SPDX-License-Identifier: MIT
//
// Names of control groups (version 2). The kernel knows them by the inode numbers of their
// directories, people by their paths below the mount.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace tools {

class cgroups {
  public:
    // The hierarchy that is mounted at root, or at root/unified beside version 1.
    explicit cgroups(const std::filesystem::path& root);

    // The inode number of a directory, given as an absolute path or one below the mount; "#N" is N.
    // Throws failure if there is no such control group, usage_error.
    std::uint64_t number(const std::string& name) const;

    // Whether there is such a control group; assumed for "#N".
    bool exists(const std::string& name) const;

    // The path below the mount of the control group with that number, or "#N" if there is none.
    std::string name(std::uint64_t number) const;

    // name() of what number() takes, even if it does not exist. Throws failure, usage_error.
    std::string path(const std::string& name) const;

  private:
    std::filesystem::path m_root;
};

}  // namespace tools
