// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

namespace perf {

/// 64 B, 4 KB, 1 MB, 8 GB.
std::string size_text(std::uint64_t bytes);

/// At least three significant digits and all before the point; below 1, three decimals.
std::string number_text(double value);

}  // namespace perf
