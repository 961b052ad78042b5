// SPDX-License-Identifier: MIT
//
// The operations of processes on words that they share, as the processes saw them: the input of the
// checker.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace lin {

/// Time of a clock that all processes of a history share and that never goes back.
using Time = std::uint64_t;

/// End of an operation that no process has seen end: it may still take effect.
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
    die,  ///< the process is killed; its locks become free, at once or later, and exclusive ones
          ///< orphaned
};

enum class Answer : std::uint8_t {
    done,        ///< with the old value, if the kind has one
    owner_dead,  ///< of lock operations: got it, and the last exclusive holder has died
    busy,        ///< of lock operations: another process had it
    not_owner,   ///< of unlock operations: the caller does not have it
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

    /// It may not have taken effect.
    bool optional() const { return answer == Answer::unknown; }
};

bool of_lock(Kind kind);

/// "[120, 180] process 3: fetch-add 5 -> 17".
std::string to_string(const Operation& operation);

}  // namespace lin
