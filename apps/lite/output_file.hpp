// SPDX-License-Identifier: MIT
//
// A file that is replaced completely or not at all.
#pragma once

#include "common/io.hpp"

#include <string>

namespace tools {

// Data goes to a temporary file in the directory of @path, renamed when complete; until then an old
// file stays as it is. The new file is readable and writable by its owner only, less the umask. A
// target that cannot be replaced in this way (a device, a pipe) is written directly; symbolic links
// are followed.
class output_file {
  public:
    // Throws failure.
    explicit output_file(const std::string& path);
    output_file(const output_file&) = delete;
    output_file& operator=(const output_file&) = delete;
    // Removes the temporary file unless it was committed.
    ~output_file();

    int fd() const { return m_fd.get(); }

    // Renames it to its target. Throws failure.
    void commit();

  private:
    std::string m_path;       // as given, for messages
    std::string m_target;     // @path with links resolved
    std::string m_temporary;  // empty when writing directly
    unique_fd m_fd;
};

}  // namespace tools
