// SPDX-License-Identifier: MIT
//
// A file that is replaced all at once or not at all.
#pragma once

#include "common/io.hpp"

#include <string>

namespace tools {

// Data goes to a temporary file beside @path, which takes its name when it is
// complete; whatever goes wrong before, an older file of that name stays as it
// is. The new one is readable and writable by the owner only, less the umask.
// What cannot be replaced in this way (a device, a pipe) is written directly;
// symbolic links are followed.
class output_file {
  public:
    // Throws failure.
    explicit output_file(const std::string& path);
    output_file(const output_file&) = delete;
    output_file& operator=(const output_file&) = delete;
    // Removes the temporary file unless it was committed.
    ~output_file();

    int fd() const { return m_fd.get(); }

    // Gives it its name. Throws failure.
    void commit();

  private:
    std::string m_path;       // as the user said it, for messages
    std::string m_target;     // what it is after following links
    std::string m_temporary;  // empty when written directly
    unique_fd m_fd;
};

}  // namespace tools
