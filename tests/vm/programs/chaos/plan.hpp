// SPDX-License-Identifier: MIT
// A call, as derived from its number and the seed, and the results that it may have.
#pragma once

#include "caller.hpp"
#include "herd.hpp"

#include <random>

namespace lite_chaos {

// A call must end when its time is up, or a little later, as machines are busy.
constexpr Milliseconds kGrace{15000};

// Room for a reply, and guard bytes behind it.
class Room {
  public:
    explicit Room(std::size_t size) : bytes_(size + kBehind, kCanary), size_(size) {}
    std::byte* data() { return bytes_.data(); }
    std::size_t size() const { return size_; }
    std::span<const std::byte> first(std::size_t n) const { return std::span(bytes_).first(n); }
    // Whether nothing was written but the first @written bytes.
    bool intact(std::size_t written) const;

  private:
    static constexpr std::size_t kBehind = 64;
    static constexpr std::byte kCanary{0xc5};
    Bytes bytes_;
    std::size_t size_;
};

// How a call, or one of its legs, has ended.
struct End {
    int err = 0;
    std::size_t length = 0;
    u32 status = 0;
    Clock::time_point begun;
    Clock::time_point ended;          // at the latest
    Clock::time_point asked = begun;  // when the caller asked for it
};

enum class Kind { kCall, kBegin, kMessage, kMany };

class Plan {
  public:
    Plan(const CallerOptions& options, u64 number);

    // Throws Failure unless this is a correct end of the call, or of its leg to @node.
    void judge(const End& end, u32 node, const Room& room) const;

    Kind kind = Kind::kCall;
    u64 id = 0;  // 0: too short to have one
    u32 node = 0;
    std::vector<u32> nodes;  // kMany
    std::size_t quorum = 0;  // kMany
    u32 function = 0;
    Bytes request;
    std::size_t room = 0;
    int timeout_ms = 0;
    Milliseconds grace;
    bool picky = false;  // first collect into too little

  private:
    void choose_size(unsigned calm, std::mt19937_64& random);
    void choose_wish(const CallerOptions& options, std::mt19937_64& random);
    void write_request(u64 number);
    void judge_time(const End& end) const;
    bool may_be(const End& end) const;

    Order order_;
    std::size_t wanted_ = 0;  // bytes of the reply
    bool too_long_ = false;
    bool long_ = false;  // by reference
};

std::string name_of(int err);

}  // namespace lite_chaos
