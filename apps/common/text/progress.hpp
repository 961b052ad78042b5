// SPDX-License-Identifier: MIT
//
// Progress of a long transfer, on one line of a terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace tools {

// The line, at most @width characters: percentage, bar, amounts, rate and time left; without a
// total only amount, rate and elapsed time. If it does not fit, the bar is left out first.
std::string progress_line(std::uint64_t done, std::optional<std::uint64_t> total,
                          std::chrono::duration<double> elapsed, std::size_t width);

class progress {
  public:
    using clock = std::chrono::steady_clock;

    // @fd: output; nothing is shown if that is not a terminal, or if not @enabled. @total: bytes to
    // come, if known. @now: the clock, for tests.
    progress(int fd, std::optional<std::uint64_t> total, bool enabled,
             std::function<clock::time_point()> now = clock::now);
    progress(const progress&) = delete;
    progress& operator=(const progress&) = delete;
    ~progress();

    // @bytes more are done. Shows the line after a second, then at a readable rate.
    void advance(std::uint64_t bytes);

  private:
    int m_fd;
    std::optional<std::uint64_t> m_total;
    bool m_enabled;
    std::function<clock::time_point()> m_now;
    clock::time_point m_start;
    clock::time_point m_due;
    std::uint64_t m_done = 0;
    bool m_shown = false;
};

}  // namespace tools
