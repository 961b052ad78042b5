// SPDX-License-Identifier: MIT

#include "memory/transfer.hpp"

#include "common/text/format.hpp"

#include <fmt/format.h>

namespace tools {

failure cut_short(std::string_view verb, std::string_view name, std::string_view why,
                  std::uint64_t done, std::uint64_t total, std::string_view participle) {
    const auto amount = total ? fmt::format("{} of {}", done, byte_count(total)) : byte_count(done);
    return failure(fmt::format("{} {}: {}; {} {} {}", verb, printable(name), why, amount,
                               (total ? total : done) == 1 ? "was" : "were", participle));
}

}  // namespace tools
