// SPDX-License-Identifier: MIT
//
// Aligned columns for terminals.
#pragma once

#include <string>
#include <vector>

namespace tools {

// Makes each column as wide as its widest cell. Counts UTF-8 characters: wide ones are misaligned.
class table {
  public:
    enum class align { left, right };
    struct column {
        std::string title;
        align side = align::left;
    };

    explicit table(std::vector<column> columns);

    // Missing cells at the end are empty; too many throw std::length_error.
    void add(std::vector<std::string> cells);

    // Titles and rows, two spaces between columns, no trailing spaces. Empty if there are no rows.
    std::string text() const;

  private:
    std::vector<column> m_columns;
    std::vector<std::vector<std::string>> m_rows;
};

}  // namespace tools
