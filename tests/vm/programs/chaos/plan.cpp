// SPDX-License-Identifier: MIT
#include "plan.hpp"

#include <algorithm>
#include <cerrno>
#include <sstream>

#include <uapi/lite_rpc.h>

namespace lite_chaos {
namespace {

// True once in @n times.
bool one_in(u64 n, std::mt19937_64& random) { return random() % n == 0; }

// Mostly small sizes.
std::size_t some_bytes(u32 function, unsigned calm, std::mt19937_64& random) {
    constexpr std::size_t kLittle = 300;
    constexpr std::size_t kPage = 4096;
    constexpr std::size_t kMegabyte = 1 << 20;
    if (function == kLong && one_in(40ULL * calm, random))
        return kMegabyte + random() % (kLongMost - kMegabyte + 1);
    const auto which = random() % (10ULL * calm);
    return random() % ((which < 2 ? kShortMost : which < 5 ? kPage : kLittle) + 1);
}

}  // namespace

std::string name_of(int err) {
    const char* name = ::strerrorname_np(err < 0 ? -err : err);
    return err == 0 ? "ok" : name ? name : "?";
}

bool Room::intact(std::size_t written) const {
    return std::all_of(bytes_.begin() + static_cast<std::ptrdiff_t>(written), bytes_.end(),
                       [](std::byte byte) { return byte == kCanary; });
}

Plan::Plan(const CallerOptions& options, u64 number) : grace(kGrace * options.slowness) {
    std::mt19937_64 random(options.seed ^ number * 0x9e3779b97f4a7c15ULL);
    constexpr unsigned kAll = 100;
    const auto which = random() % kAll;
    kind = which < 55   ? Kind::kCall
           : which < 80 ? Kind::kBegin
           : which < 90 ? Kind::kMessage
                        : Kind::kMany;
    function = kAlone + static_cast<u32>(random() % 3);
    nodes = options.nodes;
    std::shuffle(nodes.begin(), nodes.end(), random);
    node = nodes.front();
    nodes.resize(1 + random() % nodes.size());
    quorum = random() % (nodes.size() + 1);
    picky = one_in(8, random);
    choose_size(options.calm, random);
    choose_wish(options, random);
    if (request.size() >= sizeof(order_))
        id = number | (kind == Kind::kMany ? kManyBit : 0);
    write_request(number);
}

void Plan::choose_size(unsigned calm, std::mt19937_64& random) {
    request.resize(some_bytes(function, calm, random));
    wanted_ = some_bytes(function, calm, random);
    if (one_in(100, random)) {
        too_long_ = true;
        request.resize(most_of(function) + 1 + random() % 1000);
    }
    if (request.size() < sizeof(order_))
        wanted_ = request.size() * 7;
    room = wanted_ + random() % 200;
    if (wanted_ && one_in(16, random))
        room = random() % wanted_;
    long_ = request.size() > LITE_RPC_BYTES_MAX || room > LITE_RPC_BYTES_MAX;
}

void Plan::choose_wish(const CallerOptions& options, std::mt19937_64& random) {
    const int unit = static_cast<int>(options.slowness);
    switch (random() % 10) {
        case 0:
            timeout_ms = 0;
            break;
        case 1:
            timeout_ms = unit * static_cast<int>(1 + random() % 20);
            break;
        case 2:
        case 3:
            timeout_ms = unit * static_cast<int>(50 + random() % 400);
            break;
        default:
            timeout_ms = unit * 4000;
            break;
    }
    if (request.size() < sizeof(order_) || too_long_)
        return;
    constexpr unsigned kAll = 200;
    const auto which = random() % kAll;
    if (which < 10) {
        order_.wish = Wish::kLate;
        order_.delay_ms = static_cast<u32>(random() % 20);
    } else if (which < 16) {
        // The serving process is not available to other callers meanwhile.
        order_.wish = which < 14 ? Wish::kHang : Wish::kKeep;
        timeout_ms = unit * static_cast<int>(5 + random() % 100);
        order_.delay_ms = static_cast<u32>(timeout_ms) + static_cast<u32>(random() % 100);
    } else if (which < 18) {
        order_.wish = Wish::kDie;
    }
}

void Plan::write_request(u64 number) {
    fill(request, number);
    if (!id)
        return;
    order_.id = id;
    order_.reply_length = static_cast<u32>(wanted_);
    std::memcpy(request.data(), &order_, sizeof(order_));
}

// A time-out must not come early, and no call may end much too late.
void Plan::judge_time(const End& end) const {
    const auto due = end.begun + Milliseconds(timeout_ms ? timeout_ms : LITE_RPC_TIMEOUT_DEFAULT);
    if (end.err == -ETIMEDOUT && end.ended < due)
        throw Failure("timed out too early");
    if (end.ended > std::max(due, end.asked) + grace)
        throw Failure("it took too long");
}

// Whether this end is possible, as far as can be told from outside.
bool Plan::may_be(const End& end) const {
    const bool served = kind != Kind::kMessage && !too_long_;
    const bool answered = served && order_.wish != Wish::kKeep && order_.wish != Wish::kDie;
    switch (-end.err) {
        case 0:
            return answered && room >= wanted_;
        case EMSGSIZE:
            return answered && room < wanted_ && end.length == wanted_;
        case ECONNREFUSED:
        case ETIMEDOUT:
        case EHOSTDOWN:  // if a connection broke, which is known outside
            return true;
        case ECONNRESET:
            return served;
        case EAGAIN:
            return timeout_ms == 0;
        case E2BIG:
            return too_long_;
        case ENOMEM:
            return long_;
        case ECANCELED:
            return kind == Kind::kMany && quorum;
        default:
            return false;
    }
}

void Plan::judge(const End& end, u32 at, const Room& room_there) const {
    try {
        if (!may_be(end))
            throw Failure("an end that cannot be");
        judge_time(end);
        if (!room_there.intact(end.err ? 0 : wanted_))
            throw Failure("bytes were written that are not of the reply");
        if (end.err)
            return;
        Bytes reply;
        answer(request, reply);
        if (end.length != wanted_ || end.status != at)
            throw Failure("not the reply to this request");
        if (!std::equal(reply.begin(), reply.end(), room_there.first(wanted_).begin()))
            throw Failure("the reply has wrong bytes");
    } catch (const Failure& failure) {
        std::ostringstream text;
        text << std::hex << id << std::dec << " to " << function << " of node " << at << ": "
             << failure.what() << ": " << name_of(end.err) << " after "
             << (end.ended - end.begun) / Milliseconds(1) << " of " << timeout_ms << " ms, request "
             << request.size() << ", reply " << end.length << " of " << wanted_ << ", room " << room
             << ", status " << end.status << ", wish " << static_cast<u32>(order_.wish) << ", kind "
             << static_cast<int>(kind);
        throw Failure(text.str());
    }
}

}  // namespace lite_chaos
