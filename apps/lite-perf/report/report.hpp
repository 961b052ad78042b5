// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "runner.hpp"

namespace perf {

struct Setting {
    Plan plan;
    std::vector<std::string> arms;
    std::string server;
    std::uint32_t node;
};

void print_tables(std::FILE* out, const Setting& setting, const std::vector<Result>& results);

std::string json_text(const Setting& setting, const std::vector<Result>& results);

/// Throws std::system_error if the file cannot be written. "-": standard output.
void write_json(const std::string& file, const Setting& setting,
                const std::vector<Result>& results);

}  // namespace perf
