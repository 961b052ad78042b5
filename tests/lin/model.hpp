// SPDX-License-Identifier: MIT
//
// The sequential model of a word, and of a lock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "history.hpp"

namespace lin {

/// All zero: a word that is 0, a lock that is free.
struct State {
    std::uint64_t value = 0;    ///< of the word; of a lock: 1 + the process that has it, or 0
    bool orphaned = false;      ///< of a lock: its last exclusive holder has died
    std::uint64_t readers = 0;  ///< of a lock: bits of the processes that share it

    bool operator==(const State&) const = default;
    bool operator<(const State& other) const {
        return std::tie(value, orphaned, readers) <
               std::tie(other.value, other.orphaned, other.readers);
    }
};

/// The state after the operation, or nothing if it cannot have had this answer in this state. An
/// unknown answer may have been any.
///
/// A lock is robust, and not recursive: when its exclusive holder dies it becomes free, and every
/// holder is told so, up to and including the next exclusive one.
std::optional<State> apply(const Operation& operation, State state);

/// Processes that share locks have lower numbers.
inline constexpr std::uint32_t readers_max = 64;

/// "0x11", "free", "process 3".
std::string to_string(State state, bool lock);

}  // namespace lin
