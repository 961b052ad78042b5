// SPDX-License-Identifier: MIT
// What callers ask of servers, what the right answer is, and the logs that both keep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace lite_chaos {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using Bytes = std::vector<std::byte>;

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The functions of every node. Only the last one takes more than fits into a ring.
enum Function : u32 {
    kAlone = 2001,   // one process
    kShared = 2002,  // several
    kLong = 2003,
};
constexpr u32 kShortMost = 64 << 10;
constexpr u32 kLongMost = 4 << 20;
constexpr u32 most_of(u32 function) { return function == kLong ? kLongMost : kShortMost; }

enum class Wish : u32 {
    kAnswer,
    kLate,  // answer after the delay
    kHang,  // the same, when the caller has given up
    kKeep,  // do not answer
    kDie,   // end the process
};

// The beginning of a request, if it is long enough.
struct Order {
    u64 id = 0;
    u32 reply_length = 0;
    Wish wish = Wish::kAnswer;
    u32 delay_ms = 0;
    u32 reserved = 0;
};

// Ids: the caller's node, whether the call is to several nodes, and a number. Requests that are too
// short for an id have 0.
constexpr unsigned kNodeShift = 48;
constexpr u64 kToKernel = 1;
constexpr u64 kManyBit = u64{1} << 47;

std::optional<Order> order_in(std::span<const std::byte> request);

// A number that depends on each byte and its place.
u64 digest(std::span<const std::byte> bytes);
// Bytes that depend on the seed and their place.
void fill(std::span<std::byte> into, u64 seed);
// The answer to a request.
void answer(std::span<const std::byte> request, Bytes& reply);

// A file to which many processes append. Each line is complete or missing, whichever process is
// killed.
class Book {
  public:
    explicit Book(const std::string& path);
    ~Book();
    Book(const Book&) = delete;
    Book& operator=(const Book&) = delete;

    // @what: for servers the function, for callers the errno, positive, or kSent.
    void write(u64 id, u32 node, u32 what) const;

  private:
    int fd_;
};
constexpr u32 kSent = 1U << 16;

}  // namespace lite_chaos
