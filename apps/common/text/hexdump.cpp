// SPDX-License-Identifier: MIT

#include "common/text/hexdump.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace tools {

void hexdump::put_line(std::string& out, std::span<const std::byte> bytes) const {
    fmt::format_to(std::back_inserter(out), "{:08x} ", m_address);
    for (std::size_t i = 0; i < line_size; i++) {
        if (i % 8 == 0)
            out += ' ';
        if (i < bytes.size())
            fmt::format_to(std::back_inserter(out), "{:02x} ", std::to_integer<unsigned>(bytes[i]));
        else
            out += "   ";
    }
    out += " |";
    for (const auto byte : bytes) {
        const char c = static_cast<char>(byte);
        out += c >= 0x20 && c < 0x7f ? c : '.';
    }
    out += "|\n";
}

void hexdump::complete(std::string& out) {
    if (m_has_previous && m_line == m_previous) {
        if (!m_squeezing)
            out += "*\n";
        m_squeezing = true;
    } else {
        put_line(out, m_line);
        m_previous = m_line;
        m_has_previous = true;
        m_squeezing = false;
    }
    m_address += line_size;
    m_fill = 0;
}

std::string hexdump::feed(std::span<const std::byte> bytes) {
    std::string out;
    while (!bytes.empty()) {
        const auto part = std::min(bytes.size(), line_size - m_fill);
        std::copy_n(bytes.begin(), part, m_line.begin() + static_cast<std::ptrdiff_t>(m_fill));
        m_fill += part;
        bytes = bytes.subspan(part);
        if (m_fill == line_size)
            complete(out);
    }
    return out;
}

std::string hexdump::finish() {
    std::string out;
    if (!m_fill && !m_has_previous)
        return out;
    if (m_fill)
        put_line(out, std::span(m_line).first(m_fill));
    m_address += m_fill;
    m_fill = 0;
    fmt::format_to(std::back_inserter(out), "{:08x}\n", m_address);
    return out;
}

}  // namespace tools
