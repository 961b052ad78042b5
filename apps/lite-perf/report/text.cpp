// SPDX-License-Identifier: MIT
#include "report/text.hpp"

#include <fmt/format.h>

#include <utility>

namespace perf {

std::string size_text(std::uint64_t bytes) {
    for (const auto& [shift, unit] : {std::pair{30, "GB"}, {20, "MB"}, {10, "KB"}}) {
        const std::uint64_t size = 1ULL << shift;
        if (bytes >= size && bytes % size == 0)
            return fmt::format("{} {}", bytes / size, unit);
    }
    return fmt::format("{} B", bytes);
}

std::string number_text(double value) {
    return fmt::format("{:.{}f}", value, value < 1 ? 3 : value < 10 ? 2 : value < 1000 ? 1 : 0);
}

}  // namespace perf
