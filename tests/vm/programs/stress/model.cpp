// SPDX-License-Identifier: MIT
#include "model.hpp"

#include "../common/data/crc32c.hpp"

#include "uapi/lite.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace lite_stress {
namespace {

constexpr std::uint32_t kSharable = LITE_RIGHT_READ | LITE_RIGHT_WRITE | LITE_RIGHT_ATOMIC;

// Moves are of whole pages, also at the end.
std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

std::string errno_name(int error) {
    const char* name = error ? strerrorname_np(error) : "success";
    return name ? name : std::to_string(error);
}

}  // namespace

std::uint32_t Acl::rights_of(const Person& who) const {
    if (who.uid == 0)
        return LITE_RIGHTS_ALL;
    const auto bits = who.uid == uid ? mode >> 6 : who.gid == gid ? mode >> 3 : mode;
    std::uint32_t rights = who.uid == uid ? LITE_RIGHT_SHARE | LITE_RIGHT_MASTER : 0;
    rights |= bits & 4 ? LITE_RIGHT_READ : 0;
    rights |= bits & 2 ? LITE_RIGHT_WRITE | LITE_RIGHT_ATOMIC : 0;
    for (const auto node : {0U, who.node}) {
        const auto found = grants.find({who.uid, node});
        rights |= found == grants.end() ? 0 : found->second;
    }
    return rights;
}

bool may_grant(std::uint32_t own, std::uint32_t old, std::uint32_t wanted) {
    if (own & LITE_RIGHT_MASTER)
        return true;
    return own & LITE_RIGHT_SHARE && !(old & ~wanted) && !(wanted & ~old & ~(own & kSharable));
}

bool is_atomic(Verb verb) {
    return verb == Verb::fetch_add || verb == Verb::swap || verb == Verb::fetch_and ||
           verb == Verb::fetch_or;
}

std::uint64_t combined(Verb verb, std::uint64_t old, std::uint64_t operand) {
    switch (verb) {
        case Verb::fetch_add:
            return old + operand;
        case Verb::fetch_and:
            return old & operand;
        case Verb::fetch_or:
            return old | operand;
        default:
            return operand;
    }
}

bool Lmr::is_quiet(std::uint64_t from, std::uint64_t to) const {
    return std::none_of(writes.begin(), writes.end(),
                        [&](const auto& write) { return write->overlaps(from, to); });
}

bool Lmr::is_free(std::uint64_t from, std::uint64_t to) const {
    return is_quiet(from, to) && std::none_of(pins.begin(), pins.end(), [&](const auto& pin) {
               return from < pin->to && pin->from < to;
           });
}

void Lmr::forget(const WritePtr& write) {
    std::erase(writes, write);
    std::erase(open, write);
}

void Lmr::set_length(std::uint64_t now) {
    length = low = high = now;
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(now), bytes.end(), std::byte{});
}

bool Operation::is_data() const {
    return command.verb == Verb::read || command.verb == Verb::compare ||
           command.verb == Verb::checksum || writes();
}

bool Operation::reads() const {
    return command.verb == Verb::read || command.verb == Verb::peek ||
           command.verb == Verb::compare || command.verb == Verb::checksum;
}

bool Operation::writes() const {
    return command.verb == Verb::write || command.verb == Verb::set || command.verb == Verb::copy ||
           is_atomic(command.verb);
}

std::uint32_t Operation::needed() const {
    if (reads())
        return LITE_RIGHT_READ;
    if (is_atomic(command.verb))
        return LITE_RIGHT_ATOMIC;
    if (writes())
        return LITE_RIGHT_WRITE;
    return command.verb == Verb::map ? command.rights : LITE_RIGHT_MASTER;
}

void Operation::meet_acl(const Acl& next, const Person& who, std::uint32_t opened) {
    const auto rights = next.rights_of(who);
    must &= rights;
    may |= by_handle() ? rights & opened : rights;
    changed = true;
}

void Operation::meet_length(std::uint64_t length) {
    if (length < high)
        shrunk = std::min(shrunk, length);
    low = std::min(low, length);
    high = std::max(high, length);
    changed = true;
}

void Operation::meet_write(const WritePtr& other) {
    if (reads() && other->overlaps(command.offset, end()))
        seen.push_back(other);
}

// Whether these rights allow the operation.
bool Operation::permitted(std::uint32_t own, const Person& who) const {
    switch (command.verb) {
        case Verb::stat:
        case Verb::grants:
        case Verb::unmap:
            return true;
        case Verb::grant: {
            const auto found = lmr->acl.grants.find({command.uid, command.node});
            return may_grant(own, found == lmr->acl.grants.end() ? 0 : found->second,
                             command.rights);
        }
        case Verb::setattr:
            if (who.uid != 0 && command.uid != LITE_KEEP && command.uid != lmr->acl.uid)
                return false;
            if (who.uid != 0 && command.gid != LITE_KEEP && command.gid != who.gid)
                return false;
            break;
        default:
            break;
    }
    return !(needed() & ~own);
}

bool Operation::may_succeed(const Person& who) const {
    if (command.verb == Verb::alloc)
        return !name_taken;
    if (command.verb == Verb::unmap)
        return true;
    if (!lmr || surely_dead || !permitted(may, who))
        return false;
    if (command.verb == Verb::rename)
        return !name_taken;
    if (second && !second->may_succeed(who))
        return false;
    if (is_data() || command.verb == Verb::peek)
        return end() <= high;
    if (command.verb == Verb::move)
        return end() <= whole_pages(high) && command.node < 60000;
    return true;
}

bool Operation::may_fail(int error, const Person& who) const {
    if (command.verb == Verb::unmap)
        return false;
    if (second && second->may_fail(error, who))
        return true;
    switch (error) {
        case ENOENT:
            return command.verb != Verb::alloc && (!lmr || maybe_dead || name_unsure);
        case EIDRM:
            return lmr && maybe_dead;
        case EEXIST:
            return name_taken;
        case EACCES:
            return lmr && !permitted(must, who);
        case EPERM:
            return lmr && !is_data() && command.verb != Verb::map && command.verb != Verb::grant &&
                   !permitted(must, who);
        case ERANGE:
            return lmr && (is_data() || command.verb == Verb::move) && end() > low;
        case EHOSTUNREACH:
            return command.verb == Verb::move && command.node >= 60000;
        default:
            return false;
    }
}

std::string Operation::judge(const Reply& reply, std::span<const std::byte> data,
                             const Person& who) const {
    if (reply.error)
        return may_fail(reply.error, who) ? "" : errno_name(reply.error) + " cannot be";
    if (!may_succeed(who))
        return "success cannot be";
    switch (command.verb) {
        case Verb::read:
        case Verb::peek:
            return judge_bytes(data);
        case Verb::fetch_add:
        case Verb::swap:
        case Verb::fetch_and:
        case Verb::fetch_or:
            return judge_word(reply.value);
        case Verb::compare:
            return judge_equal(reply.value);
        case Verb::checksum:
            return judge_checksum(reply.value);
        case Verb::stat:
            return judge_stat(data);
        case Verb::grants:
            return judge_grants(reply.value, data);
        case Verb::write:
        case Verb::set:
        case Verb::copy:
            return reply.value == command.length ? "" : "a write that says it was shorter";
        case Verb::move:
            return reply.value >= command.length || end() > low ? ""
                                                                : "a move that says it was shorter";
        default:
            return "";
    }
}

// Each byte is what it was when the read began, or what a write in flight wanted.
std::string Operation::judge_bytes(std::span<const std::byte> data) const {
    if (data.size() != command.length)
        return "a read of another length";
    for (std::size_t i = 0; i < data.size(); ++i) {
        const auto at = command.offset + i;
        if (data[i] == before[i] || (at >= std::min(low, shrunk) && data[i] == std::byte{}))
            continue;
        const bool written = std::any_of(seen.begin(), seen.end(), [&](const auto& w) {
            return w->overlaps(at, at + 1) && w->bytes[at - w->offset] == data[i];
        });
        if (!written)
            return "byte " + std::to_string(at) + " is " +
                   std::to_string(std::to_integer<int>(data[i])) + ", was " +
                   std::to_string(std::to_integer<int>(before[i])) + ", and " +
                   std::to_string(seen.size()) + " writes do not explain it";
    }
    return "";
}

std::string Operation::judge_word(std::uint64_t old) const {
    std::uint64_t wanted = 0;
    std::memcpy(&wanted, lmr->bytes.data() + command.offset, sizeof(wanted));
    if (old == wanted || (end() > std::min(low, shrunk) && old == 0))
        return "";
    return "old value " + std::to_string(old) + " instead of " + std::to_string(wanted);
}

bool Operation::is_certain() const { return seen.empty() && end() <= std::min(low, shrunk); }

std::string Operation::judge_equal(std::uint64_t equal) const {
    if (equal > command.length)
        return "more equal bytes than there are";
    if (!is_certain() || !second->is_certain())
        return "";
    const auto found = std::mismatch(before.begin(), before.end(), second->before.begin());
    const auto wanted = static_cast<std::uint64_t>(found.first - before.begin());
    return equal == wanted
               ? ""
               : std::to_string(equal) + " equal bytes instead of " + std::to_string(wanted);
}

std::string Operation::judge_checksum(std::uint64_t crc) const {
    const auto wanted = lite_test::crc32c(before);
    return !is_certain() || crc == wanted
               ? ""
               : "checksum " + std::to_string(crc) + " instead of " + std::to_string(wanted);
}

std::string Operation::judge_stat(std::span<const std::byte> data) const {
    lite_lmr_info info{};
    if (data.size() != sizeof(info))
        return "a description of another size";
    std::memcpy(&info, data.data(), sizeof(info));
    if (info.length < low || info.length > high)
        return "length " + std::to_string(info.length);
    if (changed)
        return "";
    if (info.uid != lmr->acl.uid || info.gid != lmr->acl.gid || info.mode != lmr->acl.mode)
        return "owner, group or mode: " + std::to_string(info.uid) + ":" +
               std::to_string(info.gid) + ", " + std::to_string(info.mode);
    return info.name == lmr->name ? "" : "name " + std::string(info.name);
}

std::string Operation::judge_grants(std::uint64_t n, std::span<const std::byte> data) const {
    std::vector<lite_grant> grants(data.size() / sizeof(lite_grant));
    std::memcpy(grants.data(), data.data(), data.size());
    if (n > grants.size())
        return "too many grants";
    if (changed)
        return "";
    decltype(Acl::grants) found;
    for (std::size_t i = 0; i < n; ++i)
        found[{grants[i].uid, grants[i].node}] = grants[i].rights;
    return found == lmr->acl.grants && found.size() == n ? "" : "other grants";
}

}  // namespace lite_stress
