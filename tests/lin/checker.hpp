// SPDX-License-Identifier: MIT
//
// Decides whether a history is linearizable: could each operation have happened at one moment
// between its begin and its end, one after the other, with the answers that were given?
//
// Wing and Gong's search with Lowe's improvements goes through the events in the order of time.
// When an operation ends, it must have happened: the search tries it and the other open operations
// in each order. It visits a configuration (position in time, open operations that have happened,
// state) only once, so the cost depends on how many operations are open at a time.
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
    undecided,  ///< too many configurations to show either
};

struct Result {
    Verdict verdict = Verdict::linearizable;
    std::string explanation = {};  ///< if not linearizable: the point that no order passes
    std::size_t configurations = 0;
};

inline constexpr std::size_t default_budget = 4'000'000;

/// Checks the operations on one word, given in any order; ignores their keys. Throws
/// std::invalid_argument if they make no sense: an end before its begin, an answer without an end,
/// words and locks mixed, a process that dies twice or acts after its death.
Result check(std::span<const Operation> operations, State initial = {},
             std::size_t budget = default_budget);

/// Checks each word separately: a history is linearizable if those of all its words are. The result
/// is that of the first word that is not linearizable, else of the first undecided one. Words that
/// are not in `initial` begin as all zeroes.
Result check_all(std::span<const Operation> history,
                 const std::map<std::uint64_t, State>& initial = {},
                 std::size_t budget = default_budget);

}  // namespace lin
