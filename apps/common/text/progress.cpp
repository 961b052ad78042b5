// SPDX-License-Identifier: MIT

#include "common/text/progress.hpp"

#include "common/text/format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

namespace tools {
namespace {

using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto patience = seconds(1);
constexpr auto interval = milliseconds(100);
constexpr std::string_view clear_line = "\r\033[K";

std::size_t terminal_width(int fd) {
    winsize size{};
    if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

// Ignores errors: a transfer goes on without its terminal.
void show(int fd, std::string_view text) {
    [[maybe_unused]] const auto n = ::write(fd, text.data(), text.size());
}

std::string bar(double part, std::size_t width) {
    const auto full = static_cast<std::size_t>(part * static_cast<double>(width));
    std::string text(width, ' ');
    std::fill_n(text.begin(), full, '=');
    if (full < width)
        text[full] = '>';
    return text;
}

}  // namespace

std::string progress_line(std::uint64_t done, std::optional<std::uint64_t> total,
                          duration<double> elapsed, std::size_t width) {
    const double rate = elapsed.count() > 0 ? static_cast<double>(done) / elapsed.count() : 0;
    const auto rate_text = human_size(static_cast<std::uint64_t>(std::min(rate, 1e18))) + "/s";
    std::string line;

    if (!total) {
        line = fmt::format("{}  {}  {}", human_size(done), rate_text,
                           human_duration(std::chrono::duration_cast<seconds>(elapsed)));
    } else {
        const auto left = *total > done ? *total - done : 0;
        const double part =
            *total ? static_cast<double>(std::min(done, *total)) / static_cast<double>(*total) : 1;
        // Clamped before the cast: at a rate near 0 it is huge.
        const double eta = rate > 0 ? std::min(static_cast<double>(left) / rate, 1e9) : 1e9;
        const auto percent = fmt::format("{:3}%", static_cast<int>(part * 100));
        const auto rest = fmt::format("{}/{}  {}  eta {}", human_size(done), human_size(*total),
                                      rate_text, human_duration(seconds(static_cast<long>(eta))));
        line = fmt::format("{}  {}", percent, rest);
        // 5: " [" and "]  " around the bar, which has at least 10 characters.
        const std::size_t used = percent.size() + rest.size() + 5;
        if (width >= used + 10)
            line = fmt::format("{} [{}]  {}", percent,
                               bar(part, std::min<std::size_t>(width - used, 40)), rest);
    }
    line.resize(std::min(line.size(), width));
    return line;
}

progress::progress(int fd, std::optional<std::uint64_t> total, bool enabled,
                   std::function<clock::time_point()> now)
    : m_fd(fd),
      m_total(total),
      m_enabled(enabled && ::isatty(fd)),
      m_now(std::move(now)),
      m_start(m_now()),
      m_due(m_start + patience) {}

progress::~progress() {
    if (m_shown)
        show(m_fd, clear_line);
}

void progress::advance(std::uint64_t bytes) {
    m_done += bytes;
    if (!m_enabled)
        return;
    const auto now = m_now();
    if (now < m_due)
        return;
    m_due = now + interval;
    m_shown = true;
    // Some terminals wrap after a character in the last column.
    show(m_fd, std::string(clear_line) +
                   progress_line(m_done, m_total, now - m_start, terminal_width(m_fd) - 1));
}

}  // namespace tools
