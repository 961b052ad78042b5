// SPDX-License-Identifier: MIT
//
// Aligned columns for terminals.
#pragma once

#include <string>
#include <vector>

namespace tools {

// Collects rows and prints them with each column as wide as its widest cell.
// Widths are in characters of UTF-8, which is right for all but the wide ones.
class table {
  public:
    enum class align { left, right };
    struct column {
        std::string title;
        align side = align::left;
    };

    explicit table(std::vector<column> columns);

    // Missing cells at the end are empty; more than there are columns throws
    // std::length_error.
    void add(std::vector<std::string> cells);

    // Titles and rows, two spaces between columns, none at the ends of lines.
    // Nothing at all without rows.
    std::string text() const;

  private:
    std::vector<column> m_columns;
    std::vector<std::vector<std::string>> m_rows;
};

}  // namespace tools
