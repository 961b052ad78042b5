// SPDX-License-Identifier: MIT
#include "order.hpp"

#include <bit>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace lite_chaos {
namespace {

constexpr u64 kOdd = 0x9e3779b97f4a7c15ULL;
constexpr u64 kStep = 6364136223846793005ULL;

// One line of a log.
struct Line {
    u64 id;
    u32 node;
    u32 what;
};

}  // namespace

std::optional<Order> order_in(std::span<const std::byte> request) {
    Order order;
    if (request.size() < sizeof(order))
        return {};
    std::memcpy(&order, request.data(), sizeof(order));
    return order;
}

u64 digest(std::span<const std::byte> bytes) {
    u64 sum = (bytes.size() + 1) * kOdd;
    while (!bytes.empty()) {
        u64 word = 0;
        const auto n = std::min(bytes.size(), sizeof(word));
        std::memcpy(&word, bytes.data(), n);
        sum = std::rotl((sum ^ word) * kStep, 29);
        bytes = bytes.subspan(n);
    }
    return sum ^ sum >> 31;
}

void fill(std::span<std::byte> into, u64 seed) {
    while (!into.empty()) {
        seed = seed * kStep + kOdd;
        const u64 word = seed ^ seed >> 29;
        const auto n = std::min(into.size(), sizeof(word));
        std::memcpy(into.data(), &word, n);
        into = into.subspan(n);
    }
}

void answer(std::span<const std::byte> request, Bytes& reply) {
    const auto order = order_in(request);
    reply.resize(order ? order->reply_length : request.size() * 7);
    fill(reply, digest(request));
}

Book::Book(const std::string& path)
    : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
    if (fd_ < 0)
        throw Failure("open " + path + ": " + std::strerror(errno));
}

Book::~Book() { ::close(fd_); }

void Book::write(u64 id, u32 node, u32 what) const {
    const Line line{id, node, what};
    if (::write(fd_, &line, sizeof(line)) != sizeof(line))
        throw Failure("a line is not in the book");
}

}  // namespace lite_chaos
