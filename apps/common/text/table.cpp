// SPDX-License-Identifier: MIT

#include "common/text/table.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace tools {
namespace {

// Continuation bytes of UTF-8 have no width.
std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    }));
}

}  // namespace

table::table(std::vector<column> columns) : m_columns(std::move(columns)) {}

void table::add(std::vector<std::string> cells) {
    if (cells.size() > m_columns.size())
        throw std::length_error("more cells than columns");
    cells.resize(m_columns.size());
    m_rows.push_back(std::move(cells));
}

std::string table::text() const {
    if (m_rows.empty())
        return {};

    std::vector<std::size_t> widths;
    for (std::size_t i = 0; i < m_columns.size(); i++) {
        widths.push_back(width_of(m_columns[i].title));
        for (const auto& row : m_rows)
            widths[i] = std::max(widths[i], width_of(row[i]));
    }

    std::string out;
    const auto line = [&](const auto& cell_at) {
        for (std::size_t i = 0; i < m_columns.size(); i++) {
            const std::string& cell = cell_at(i);
            const std::string padding(widths[i] - width_of(cell), ' ');
            if (i)
                out += "  ";
            if (m_columns[i].side == align::right)
                out.append(padding).append(cell);
            else
                out.append(cell).append(padding);
        }
        out.erase(out.find_last_not_of(' ') + 1);
        out += '\n';
    };
    line([&](std::size_t i) -> const std::string& { return m_columns[i].title; });
    for (const auto& row : m_rows)
        line([&](std::size_t i) -> const std::string& { return row[i]; });
    return out;
}

}  // namespace tools
