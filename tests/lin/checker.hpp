// SPDX-License-Identifier: MIT
//
// Is a history linearizable: could each operation have happened at one moment between its begin and
// its end, one after the other, with the answers that were given?
//
// Wing and Gong's search with Lowe's improvements: events are gone through in the order of time;
// when an operation ends, it must have happened, so it, or others that are open, are tried in each
// order; a configuration (how far in time, which open operations have happened, the state) that was
// seen before is not looked at again. So what is remembered is bounded by what is open at a time,
// and not by the length of the history.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "history.hpp"
#include "model.hpp"

namespace lin {

enum class Verdict : std::uint8_t {
    linearizable,
    not_linearizable,
    undecided,  ///< too many configurations: neither shown
};

struct Result {
    Verdict verdict = Verdict::linearizable;
    std::string explanation = {};  ///< of what is not linearizable: where no order goes on
    std::size_t configurations = 0;
};

inline constexpr std::size_t default_budget = 4'000'000;

/// Checks the operations on one word, in any order, whatever their keys say. Throws
/// std::invalid_argument if they make no sense: an end before its begin, an end that is never of
/// something that was answered, words and locks mixed, a process that dies twice or acts after
/// that.
Result check(std::span<const Operation> operations, State initial = {},
             std::size_t budget = default_budget);

/// Checks each word for itself (a history is linearizable if those of all its words are); the
/// result is that of the first one that is not linearizable, else of one that is undecided. Words
/// begin as `initial` says, or as all zeroes.
Result check_all(std::span<const Operation> history,
                 const std::map<std::uint64_t, State>& initial = {},
                 std::size_t budget = default_budget);

}  // namespace lin
