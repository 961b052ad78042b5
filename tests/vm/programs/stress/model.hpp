// SPDX-License-Identifier: MIT
// What must be true of LMRs that many use and change at the same time.
//
// The coordinator decides every operation, so it knows which were under way at the same time. An
// operation sees each property (rights, length, being there) as it was at some moment between its
// beginning and its end: what began after a change had ended must see the new, what had ended
// before it began must have seen the old, and what overlaps it may see either. So an operation
// collects, while it is under way, bounds of what it can meet, and is judged by these in the end.
//
// Of bytes, the model knows what they are, and which writes may have changed them: those under way,
// and those whose outcome is open (their process was killed, or they were refused in the middle).
// No two such writes overlap. Those whose outcome is open are read again before anybody else writes
// there, and must have left each byte as it was or as they wanted it. What is copied is not written
// meanwhile, nor made shorter.
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

// The longest LMR.
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

// May somebody with the rights @own replace the grant @old by @wanted?
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

// Is being copied from.
struct Pin {
    std::uint64_t from;
    std::uint64_t to;
};
using PinPtr = std::shared_ptr<Pin>;

bool is_atomic(Verb verb);
// What an atomic operation makes of a word.
std::uint64_t combined(Verb verb, std::uint64_t old, std::uint64_t operand);

struct Lmr {
    enum class State { alive, freeing, dead };

    unsigned number = 0;
    State state = State::alive;
    std::string name;               // empty: anonymous
    std::optional<unsigned> maker;  // of an anonymous one: the worker
    Acl acl;
    std::optional<Acl> next;  // what it may be already
    std::uint64_t length = 0;
    std::uint64_t low = 0;  // it is between these
    std::uint64_t high = 0;
    bool changing = false;
    unsigned moving = 0;
    std::vector<std::byte> bytes = std::vector<std::byte>(kCapacity);  // beyond the end: zero
    std::vector<WritePtr> writes;                                      // that may have changed them
    std::vector<WritePtr> open;                                        // those that have ended
    std::vector<PinPtr> pins;

    bool is_quiet(std::uint64_t from, std::uint64_t to) const;  // nobody writes there
    bool is_free(std::uint64_t from, std::uint64_t to) const;   // for another write
    void forget(const WritePtr& write);
    // Has become that long.
    void set_length(std::uint64_t now);
};
using LmrPtr = std::shared_ptr<Lmr>;

struct Handle {
    LmrPtr lmr;
    std::uint32_t opened = 0;  // rights that it was opened with
    std::uint32_t must = 0;    // those that it has for sure
    std::uint32_t may = 0;     // those that it may have (lost ones may come back if granted again)
};

// One that is under way.
struct Operation {
    Command command;
    std::uint64_t number = 0;
    LmrPtr lmr;              // none: the name is nobody's
    std::uint32_t must = 0;  // rights, while it was under way: surely
    std::uint32_t may = 0;   // maybe
    std::uint64_t low = 0;   // lengths
    std::uint64_t high = 0;
    std::uint64_t shrunk = UINT64_MAX;  // to what it was cut meanwhile, at most
    bool maybe_dead = false;
    bool surely_dead = false;
    bool name_unsure = false;
    bool name_taken = false;            // that it wants to give
    bool changed = false;               // attributes may be these or those
    std::vector<std::byte> before;      // of a read
    std::vector<WritePtr> seen;         // that it may see or not
    WritePtr write;                     // what it writes itself
    PinPtr pin;                         // of @second's LMR
    std::shared_ptr<Operation> second;  // the other range, as if that were read

    bool by_handle() const { return command.lh != 0; }
    std::uint64_t end() const { return command.offset + command.length; }
    bool is_data() const;
    bool reads() const;  // and what it finds is to be judged
    bool writes() const;
    std::uint32_t needed() const;

    // What else begins while it is under way.
    void meet_acl(const Acl& next, const Person& who, std::uint32_t opened);
    void meet_length(std::uint64_t length);
    void meet_write(const WritePtr& other);

    // "" if the reply is one that there can be, else why not. @who: whose it is.
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
    // What it finds is just what was there in the beginning.
    bool is_certain() const;
};

}  // namespace lite_stress
