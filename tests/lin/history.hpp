// SPDX-License-Identifier: MIT
//
// The input of the checker: operations of processes on shared words, as the processes saw them.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace lin {

/// Time of a monotonic clock that all processes of a history share.
using Time = std::uint64_t;

/// End of an operation that may still take effect, because no process has seen it end.
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
    lock_shared,  ///< waiting or not
    unlock_shared,
    die,  ///< the process is killed; its locks become free, now or later, exclusive ones orphaned
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
    std::uint64_t result = 0;  ///< if done: the value before, or read
    Time begin = 0;            ///< not later than the call
    Time end = never;          ///< not earlier than its return, unless the answer is unknown

    /// It may not have taken effect.
    bool optional() const { return answer == Answer::unknown; }
};

bool of_lock(Kind kind);

/// "[120, 180] process 3: fetch-add 5 -> 17".
std::string to_string(const Operation& operation);

}  // namespace lin
