// SPDX-License-Identifier: MIT
//
// What processes did to words that they share, as they saw it: the input of the checker.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace lin {

/// Of any clock that all processes of a history share and that never goes back.
using Time = std::uint64_t;

/// End of what nobody has seen the end of: it may still take effect.
inline constexpr Time never = std::numeric_limits<Time>::max();

enum class Kind : std::uint8_t {
    // On a word.
    read,
    write,      ///< of a
    fetch_add,  ///< of a
    cmp_swap,   ///< of a by b
    swap,       ///< by a
    fetch_and,  ///< with a
    fetch_or,   ///< with a
    // On a lock.
    lock,
    trylock,
    unlock,
    lock_shared,  ///< also if it does not wait
    unlock_shared,
    die,  ///< the process is killed; what it holds becomes free, some time from then on, and
          ///< orphaned
};

enum class Answer : std::uint8_t {
    done,        ///< with the old value, if the kind has one
    owner_dead,  ///< of what takes a lock: got it, and who had it alone before has died
    busy,        ///< likewise: somebody else had it
    not_owner,   ///< of what gives it back: the caller does not have it
    unknown,     ///< time-out, killed caller, broken connection: it took effect, or not, or will
};

struct Operation {
    std::uint64_t key = 0;  ///< which word
    std::uint32_t process = 0;
    Kind kind = Kind::read;
    Answer answer = Answer::done;
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    std::uint64_t result = 0;  ///< the value before, if done; of a read: the value
    Time begin = 0;            ///< not later than the call
    Time end = never;          ///< not earlier than its return, unless the answer is unknown

    /// Not known to have taken effect.
    bool optional() const { return answer == Answer::unknown; }
};

bool of_lock(Kind kind);

/// "[120, 180] process 3: fetch-add 5 -> 17".
std::string to_string(const Operation& operation);

}  // namespace lin
