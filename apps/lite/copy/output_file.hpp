// SPDX-License-Identifier: MIT
//
// A file that is replaced completely or not at all.
#pragma once

#include "common/io.hpp"

#include <cstdint>
#include <string>

namespace tools {

// Data goes to a temporary file in the directory of @path, renamed when complete; until then an old
// file stays as it is. The new file is readable and writable by its owner only, less the umask. A
// target that cannot be replaced in this way (a device, a pipe) is written directly. Symbolic links
// to existing files are followed, but not a link that replaces a file meanwhile.
class output_file {
  public:
    // What becomes of the temporary file if it is not committed.
    enum class partial {
        removed,
        kept,     // named as the target plus ".lite-part"; an older one is begun anew
        resumed,  // the same, but an older one is continued
    };

    // Throws usage_error, and failure, also if another process is writing the same temporary file.
    explicit output_file(const std::string& path, partial left = partial::removed);
    output_file(const output_file&) = delete;
    output_file& operator=(const output_file&) = delete;
    // Removes the temporary file, unless it was committed or leftover() names it.
    ~output_file();

    int fd() const { return m_fd.get(); }
    const std::string& path() const { return m_path; }
    // A regular file or a block device?
    bool has_offsets() const { return m_has_offsets; }

    // Name of the temporary file that stays if commit() does not succeed; empty: none stays.
    std::string leftover() const;

    // Cuts off what a resumed file has beyond @length. Throws failure.
    void end_at(std::uint64_t length);

    // Writes the file to disk and renames it to its target. Throws failure.
    void commit();

  private:
    void open_part(bool resume);

    std::string m_path;       // as given, for messages
    std::string m_target;     // @path with links resolved
    std::string m_temporary;  // empty when writing directly
    bool m_keep = false;
    bool m_has_offsets = true;
    unique_fd m_fd;
};

}  // namespace tools
