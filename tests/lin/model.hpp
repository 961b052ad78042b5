// SPDX-License-Identifier: MIT
//
// What a word, or a lock, is when one operation comes after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "history.hpp"

namespace lin {

/// All zero: a word that is 0, a lock that is free.
struct State {
    std::uint64_t value = 0;  ///< of the word; of a lock: 1 + the process that has it, or 0
    bool orphaned = false;    ///< of a lock: who had it last has died, and nobody was told

    bool operator==(const State&) const = default;
    bool operator<(const State& other) const {
        return value != other.value ? value < other.value : orphaned < other.orphaned;
    }
};

/// What the operation makes of the state, or nothing if it cannot have had this answer then. One of
/// unknown answer has any.
///
/// A lock is robust: when its holder dies it becomes free, and exactly the next one to get it is
/// told so. It is not recursive.
std::optional<State> apply(const Operation& operation, State state);

/// "17", "free", "process 3".
std::string to_string(State state, bool lock);

}  // namespace lin
