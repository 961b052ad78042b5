// SPDX-License-Identifier: MIT
// Properties of LMRs that many workers use and change at the same time.
//
// The coordinator decides every operation, so it knows which ones were in flight at the same time.
// An operation sees each property (rights, length, existence) as it was at some moment between its
// beginning and its end. If it began after a change had ended, it must see the new value; if it had
// ended before the change began, it must have seen the old value; if they overlap, it may see
// either. So while an operation is in flight, it collects bounds of what it can meet, and in the
// end it is judged by these bounds.
//
// Of bytes, the model knows the values, and the writes that may have changed them: those in flight,
// and those with an unknown outcome (their process was killed, or they were refused in the middle).
// No two such writes overlap. Bytes of a write with an unknown outcome are read again before
// another write changes them; each must have its old value or the one that was written. While bytes
// are copied, they are not written, and their LMR is not made shorter.
#pragma once

#include "protocol.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lite_stress {

// The length of the longest LMR.
inline constexpr std::uint64_t kCapacity = 192 << 10;

struct Person {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::uint32_t node = 0;
};

struct Acl {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::uint32_t mode = 0;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> grants;  // by uid and node

    std::uint32_t rights_of(const Person& who) const;
};

// Whether a user with the rights @own may replace the grant @old by @wanted.
bool may_grant(std::uint32_t own, std::uint32_t old, std::uint32_t wanted);

struct Write {
    std::uint64_t offset;
    std::vector<std::byte> bytes;

    std::uint64_t end() const { return offset + bytes.size(); }
    bool overlaps(std::uint64_t from, std::uint64_t to) const {
        return from < end() && offset < to;
    }
};
using WritePtr = std::shared_ptr<Write>;

// A range that is being copied from.
struct Pin {
    std::uint64_t from;
    std::uint64_t to;
};
using PinPtr = std::shared_ptr<Pin>;

bool is_atomic(Verb verb);
// The result of an atomic operation on a word.
std::uint64_t combined(Verb verb, std::uint64_t old, std::uint64_t operand);

struct Lmr {
    enum class State { alive, freeing, dead };

    unsigned number = 0;
    State state = State::alive;
    std::string name;               // empty: anonymous
    std::optional<unsigned> maker;  // of an anonymous one: the worker
    Acl acl;
    std::optional<Acl> next;  // the new one, while it is being changed
    std::uint64_t length = 0;
    std::uint64_t low = 0;  // bounds of the length
    std::uint64_t high = 0;
    bool changing = false;
    unsigned moving = 0;
    std::vector<std::byte> bytes = std::vector<std::byte>(kCapacity);  // beyond the end: zero
    std::vector<WritePtr> writes;  // that may have changed the bytes
    std::vector<WritePtr> open;    // ended, with an unknown outcome
    std::vector<PinPtr> pins;

    bool is_quiet(std::uint64_t from, std::uint64_t to) const;  // no write there
    bool is_free(std::uint64_t from, std::uint64_t to) const;   // may another write begin there?
    void forget(const WritePtr& write);
    // The LMR now has this length.
    void set_length(std::uint64_t now);
};
using LmrPtr = std::shared_ptr<Lmr>;

struct Handle {
    LmrPtr lmr;
    std::uint32_t opened = 0;  // rights that it was opened with
    std::uint32_t must = 0;    // rights that it certainly has
    std::uint32_t may = 0;     // rights that it may have (lost ones may come back with a new grant)
};

// An operation in flight.
struct Operation {
    Command command;
    std::uint64_t number = 0;
    LmrPtr lmr;              // none: no LMR has the name
    std::uint32_t must = 0;  // rights that it had all the time
    std::uint32_t may = 0;   // rights that it had at some time
    std::uint64_t low = 0;   // bounds of the length
    std::uint64_t high = 0;
    std::uint64_t shrunk = UINT64_MAX;  // the shortest length meanwhile
    bool maybe_dead = false;
    bool surely_dead = false;
    bool name_unsure = false;
    bool name_taken = false;            // the name that it wants to give
    bool changed = false;               // attributes may be old or new
    std::vector<std::byte> before;      // of a read
    std::vector<WritePtr> seen;         // may be seen by the read, or not
    WritePtr write;                     // its own write
    PinPtr pin;                         // of @second's LMR
    std::shared_ptr<Operation> second;  // the other range, as a read

    bool by_handle() const { return command.lh != 0; }
    std::uint64_t end() const { return command.offset + command.length; }
    bool is_data() const;
    bool reads() const;  // and the result must be judged
    bool writes() const;
    std::uint32_t needed() const;

    // Adjusts the bounds to another operation that begins meanwhile.
    void meet_acl(const Acl& next, const Person& who, std::uint32_t opened);
    void meet_length(std::uint64_t length);
    void meet_write(const WritePtr& other);

    // "" if the reply is possible, else why not. @who: the user of the operation.
    std::string judge(const Reply& reply, std::span<const std::byte> data, const Person& who) const;

  private:
    bool may_succeed(const Person& who) const;
    bool may_fail(int error, const Person& who) const;
    bool permitted(std::uint32_t own, const Person& who) const;
    std::string judge_bytes(std::span<const std::byte> data) const;
    std::string judge_stat(std::span<const std::byte> data) const;
    std::string judge_grants(std::uint64_t n, std::span<const std::byte> data) const;
    std::string judge_word(std::uint64_t old) const;
    std::string judge_equal(std::uint64_t equal) const;
    std::string judge_checksum(std::uint64_t crc) const;
    // Whether the operation must have found exactly the bytes of the beginning.
    bool is_certain() const;
};

}  // namespace lite_stress
