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

// NAME, NAME:OFFSET or NAME:OFFSET:LENGTH. At most two numbers at the end count; what is before
// them is the name, colons and all. Before a colon at the very end, all is the name: "x:1:" is the
// LMR "x:1". Throws usage_error.
lmr_range parse_range(std::string_view text);

// The same of what is read. Refuses a length of 0: a file would be emptied.
lmr_range parse_source(std::string_view text);

// Has the word a colon before any slash? The operands of lite cp that have are LMRs, others are
// files: scp(1) tells hosts from files so.
bool names_lmr(std::string_view word);

}  // namespace tools
