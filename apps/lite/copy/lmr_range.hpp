// SPDX-License-Identifier: MIT
//
// A range of an LMR as one word of a command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tools {

struct lmr_range {
    std::string name;
    std::uint64_t offset = 0;             // bytes
    std::optional<std::uint64_t> length;  // none: to the end
};

// NAME, NAME:OFFSET or NAME:OFFSET:LENGTH. The name may contain colons: only up to two numbers are
// taken off the end, and none if the word ends with a colon ("x:1:" is the LMR "x:1"). Throws
// usage_error.
lmr_range parse_range(std::string_view text);

// The same for a source. Refuses a length of 0: a file would be emptied.
lmr_range parse_source(std::string_view text);

// Has the word a colon before any slash? Then lite cp takes it for an LMR, as scp(1) for a host.
bool names_lmr(std::string_view word);

}  // namespace tools
