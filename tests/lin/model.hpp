// SPDX-License-Identifier: MIT
//
// What a word, or a lock, is when one operation comes after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "history.hpp"

namespace lin {

/// All zero: a word that is 0, a lock that is free.
struct State {
    std::uint64_t value = 0;  ///< of the word; of a lock: 1 + the process that has it, or 0
    bool orphaned =
        false;  ///< of a lock: who had it alone has died, and nobody has had it so since
    std::uint64_t readers = 0;  ///< of a lock: bits of the processes that share it

    bool operator==(const State&) const = default;
    bool operator<(const State& other) const {
        return std::tie(value, orphaned, readers) <
               std::tie(other.value, other.orphaned, other.readers);
    }
};

/// What the operation makes of the state, or nothing if it cannot have had this answer then. One of
/// unknown answer has any.
///
/// A lock is robust: when who has it alone dies it becomes free, and the next one to get it is told
/// so; those who share it are all told, until somebody has it alone. It is not recursive.
std::optional<State> apply(const Operation& operation, State state);

/// Processes that share locks are below that.
inline constexpr std::uint32_t readers_max = 64;

/// "0x11", "free", "process 3".
std::string to_string(State state, bool lock);

}  // namespace lin
