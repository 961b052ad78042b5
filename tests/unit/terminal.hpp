// SPDX-License-Identifier: MIT
//
// Files and terminals for the input and output of programs under test.
#pragma once

#include <string>
#include <string_view>

// A file in memory.
class capture {
  public:
    explicit capture(std::string_view content = {});
    capture(const capture&) = delete;
    capture& operator=(const capture&) = delete;
    ~capture();

    int fd() const { return m_fd; }
    // The whole content.
    std::string text() const;

  private:
    int m_fd;
};

// A terminal of 80 columns, without any translation of newlines.
class terminal {
  public:
    terminal();
    terminal(const terminal&) = delete;
    terminal& operator=(const terminal&) = delete;
    ~terminal();

    // The program's side.
    int fd() const { return m_slave; }
    // The output since the last call.
    std::string take() const;

  private:
    int m_master = -1;
    int m_slave = -1;
};

// A directory that the destructor removes with everything in it.
class temporary_directory {
  public:
    temporary_directory();
    temporary_directory(const temporary_directory&) = delete;
    temporary_directory& operator=(const temporary_directory&) = delete;
    ~temporary_directory();

    const std::string& path() const { return m_path; }
    std::string operator/(std::string_view name) const;

  private:
    std::string m_path;
};

// Whole files. Both throw std::runtime_error.
void write_file(const std::string& path, std::string_view content, unsigned mode = 0600);
std::string read_file(const std::string& path);
