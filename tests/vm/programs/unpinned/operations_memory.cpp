// SPDX-License-Identifier: MIT
// Lists of operations for operations.cpp.
#include "../common/data/crc32c.hpp"
#include "operations.hpp"

#include <lite/order.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace unpinned {

namespace {

std::uint64_t address(const Bytes& bytes) { return reinterpret_cast<std::uintptr_t>(bytes.data()); }

Bytes copy_of(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

void expect(long seen, long wanted, const std::string& what) {
    const auto text = [](long value) {
        return std::to_string(value) +
               (value < 0 ? std::string(" (") + lite_strerror(static_cast<int>(value)) + ")" : "");
    };
    check(seen == wanted, what + ": " + text(seen) + " instead of " + text(wanted));
}

void expect_same(std::span<const std::byte> has, std::span<const std::byte> wanted, std::size_t at,
                 const std::string& what) {
    check(has.size() == wanted.size(), what + ": the length");
    if (has.empty() || !std::memcmp(has.data(), wanted.data(), has.size()))
        return;
    const auto [a, b] = std::ranges::mismatch(has, wanted);
    throw std::runtime_error(what + ": byte " +
                             std::to_string(at + static_cast<std::size_t>(a - has.begin())) +
                             " is " + std::to_string(std::to_integer<int>(*a)) + " instead of " +
                             std::to_string(std::to_integer<int>(*b)));
}

Memory::Memory(int owner, int user, int third, std::uint64_t seed)
    : owner_(owner),
      user_(user),
      third_(third),
      lh_(share(owner_, "operations", range_)),
      random_(seed) {
    fill(0, kSize);
    for (const Node* node : {&owner_, &user_, &third_})
        others_.push_back({.lh = alloc(*node)});
    others_.push_back({.lh = share(owner_, "operations-2", second_), .memory = &second_});
    others_.push_back({.lh = share(third_, "operations-3", far_), .memory = &far_});
    for (auto& other : others_) {
        other.model.resize(kSize);
        write(other, 0, some(kSize));
    }
}

// Unpinned memory of a node, for the user.
lite_lh_t Memory::share(const Node& node, const char* name, const Range& range) const {
    (void)node.make(name, range.data(), range.size());
    return user_.open(name);
}

// An LMR of the user that is on a node.
lite_lh_t Memory::alloc(const Node& node) const {
    lite_ioc_query query = {};
    expect(lite_query(node.get(), &query), 0, "query");
    const std::uint32_t id = query.node_id;
    lite_alloc_params params = {};
    params.size = sizeof(params);
    params.length = kSize;
    params.nodes = &id;
    params.n_nodes = 1;
    params.mode = 0600;
    lite_lh_t lh = 0;
    expect(lite_alloc(user_.get(), &params, &lh), 0, "alloc");
    return lh;
}

Bytes Memory::some(std::size_t length) {
    Bytes bytes(length);
    for (std::size_t i = 0; i < length; i += sizeof(std::uint64_t)) {
        const std::uint64_t word = random_();
        std::memcpy(bytes.data() + i, &word, std::min(sizeof(word), length - i));
    }
    return bytes;
}

void Memory::fill(std::size_t at, std::size_t length) {
    put(at, some(length));
    std::memcpy(range_.data() + at, model_.data() + at, length);
}

void Memory::put(std::size_t at, std::span<const std::byte> bytes) {
    std::memcpy(model_.data() + at, bytes.data(), bytes.size());
}

std::span<const std::byte> Memory::part(std::size_t at, std::size_t length) const {
    return std::span(model_).subspan(at, length);
}

void Memory::write(Other& other, std::size_t at, const Bytes& bytes) const {
    expect(lite_write(user_.get(), other.lh, at, bytes.data(), bytes.size()), 0, "write");
    std::memcpy(other.model.data() + at, bytes.data(), bytes.size());
}

void Memory::begin() {
    used_ = 0;
    changed_ = nullptr;
    ++turn_;
}

void Memory::use(std::size_t at, std::size_t length) {
    for (std::size_t i = at / kChunk; i <= (at + length - 1) / kChunk; ++i)
        used_ |= 1U << i;
}

// Each one in turn.
Other& Memory::other() { return others_[turn_ % others_.size()]; }

Wanted& Memory::push(List& list, lite_opcode opcode, std::size_t at, std::size_t length) const {
    Wanted& wanted = list.emplace_back();
    wanted.op.opcode = static_cast<__u16>(opcode);
    wanted.op.lh = lh_;
    wanted.op.offset = at;
    wanted.op.length = length;
    wanted.result = length;
    return wanted;
}

void Memory::push_write(List& list, std::size_t at, std::size_t length) {
    Wanted& wanted = push(list, LITE_OP_WRITE, at, length);
    wanted.bytes = some(length);
    wanted.op.buf = address(wanted.bytes);
    put(at, wanted.bytes);
    use(at, length);
}

void Memory::push_read(List& list, std::size_t at, std::size_t length) {
    Wanted& wanted = push(list, LITE_OP_READ, at, length);
    wanted.bytes.resize(length);
    wanted.op.buf = address(wanted.bytes);
    wanted.read = copy_of(part(at, length));
    use(at, length);
}

void Memory::push_set(List& list, std::size_t at, std::size_t length) {
    Wanted& wanted = push(list, LITE_OP_SET, at, length);
    wanted.op.operand = 0x030201;
    wanted.op.swap = 3;
    for (std::size_t i = 0; i < length; ++i)
        model_[at + i] = static_cast<std::byte>(i % 3 + 1);
    use(at, length);
}

void Memory::push_checksum(List& list, std::size_t at, std::size_t length) {
    const auto before = static_cast<std::uint32_t>(random_());
    Wanted& wanted = push(list, LITE_OP_CHECKSUM, at, length);
    wanted.op.operand = before;
    wanted.result = lite_test::crc32c(part(at, length), before);
    use(at, length);
}

// With another LMR, or another part of this one.
Wanted& Memory::push_two(List& list, lite_opcode opcode, std::size_t at, lite_lh_t with,
                         std::size_t from, std::size_t length) {
    Wanted& wanted = push(list, opcode, at, length);
    wanted.op.operand = with;
    wanted.op.swap = from;
    return wanted;
}

// @equal: what a compare-and-swap compares.
void Memory::push_word(List& list, lite_opcode opcode, std::size_t at, bool equal) {
    std::uint64_t was = 0;
    std::memcpy(&was, model_.data() + at, sizeof(was));
    Wanted& wanted = push(list, opcode, at, sizeof(was));
    wanted.result = was;
    wanted.op.operand = random_();
    std::uint64_t now = wanted.op.operand;
    if (opcode == LITE_OP_FETCH_ADD) {
        now += was;
    } else if (opcode == LITE_OP_FETCH_AND) {
        now &= was;
    } else if (opcode == LITE_OP_FETCH_OR) {
        now |= was;
    } else if (opcode == LITE_OP_CMP_SWAP) {
        wanted.op.operand = equal ? was : ~was;
        wanted.op.swap = now;
        now = equal ? now : was;
    }
    put(at, std::as_bytes(std::span(&now, 1)));
    use(at, sizeof(was));
}

void Memory::push_words(List& list, std::size_t at) {
    for (const auto opcode :
         {LITE_OP_FETCH_ADD, LITE_OP_CMP_SWAP, LITE_OP_SWAP, LITE_OP_FETCH_AND, LITE_OP_FETCH_OR})
        push_word(list, opcode, at);
}

List Memory::small() {
    List list;
    for (std::size_t at = 0; at < kSize; at += kChunk) {
        push_write(list, at + 100, 64);
        push_read(list, at + 300, 64);
        push_word(list, LITE_OP_FETCH_ADD, at + 1000);
    }
    push_write(list, kChunk - 30, 60);
    push_read(list, 2 * kChunk - 30, 60);
    push_write(list, 3 * kChunk - 30, 60);
    push_word(list, LITE_OP_CMP_SWAP, kChunk + 1008);
    push_word(list, LITE_OP_CMP_SWAP, 2 * kChunk + 1008, false);
    push_word(list, LITE_OP_SWAP, 3 * kChunk + 1008);
    push_word(list, LITE_OP_FETCH_AND, 1008);
    push_word(list, LITE_OP_FETCH_OR, kChunk + 1016);
    return list;
}

List Memory::writing() {
    constexpr std::size_t at = 3 * kChunk - 60000;
    constexpr std::size_t from = 777;
    constexpr std::size_t length = 100000;
    const Other& source = other();
    List list;
    push_write(list, kChunk - 100000, 150000);
    push_set(list, 2 * kChunk - 50000, 90001);
    push_two(list, LITE_OP_COPY, at, source.lh, from, length);
    put(at, std::span(source.model).subspan(from, length));
    use(at, length);
    return list;
}

List Memory::reading() {
    // Of all chunks, but not all of them.
    constexpr std::size_t at = kChunk - 18000;
    constexpr std::size_t from = kChunk - 20000;
    constexpr std::size_t length = 2 * kChunk + 50000;
    constexpr std::size_t differs = length / 4 * 3;
    Other& with = other();
    Bytes bytes = copy_of(part(at, length));
    bytes[differs] ^= std::byte{1};
    write(with, from, bytes);
    List list;
    push_read(list, kChunk - 20000, 2 * kChunk + 50000);
    push_checksum(list, kChunk - 20000, kChunk + 40000);
    push_two(list, LITE_OP_COMPARE, at, lh_, at, length);
    push_two(list, LITE_OP_COMPARE, at, with.lh, from, length).result = differs;
    Wanted& wanted = push_two(list, LITE_OP_COMPARE, from, lh_, at, length);
    wanted.op.lh = with.lh;
    wanted.result = differs;
    use(at, length);
    return list;
}

List Memory::copying() {
    constexpr std::size_t at = kChunk - 20300;
    constexpr std::size_t from = kChunk - 20500;
    constexpr std::size_t length = 2 * kChunk + 50000;
    Other& to = other();
    List list;
    push_two(list, LITE_OP_COPY, at, lh_, from, length).op.lh = to.lh;
    std::memcpy(to.model.data() + at, model_.data() + from, length);
    changed_ = &to;
    use(from, length);
    return list;
}

List Memory::within(std::size_t at, std::size_t from, std::size_t length) {
    List list;
    push_two(list, LITE_OP_COPY, at, lh_, from, length);
    std::memmove(model_.data() + at, model_.data() + from, length);
    use(at, length);
    use(from, length);
    return list;
}

List Memory::backward() { return within(kChunk - 2000, kChunk - 3000, 2 * kChunk + 100); }
List Memory::forward() { return within(kChunk - 3000, kChunk - 2000, 2 * kChunk + 100); }

void Memory::add_fence(List& list) {
    Wanted& fence = list.emplace_back();
    fence.op.opcode = LITE_OP_FENCE;
    fence.op.lh = lh_;
    for (std::size_t at = 0; at < kSize; at += kChunk) {
        push_read(list, at + 100, 64);
        push_read(list, at + kChunk - 64, 64);
    }
}

List Memory::without_memory(std::size_t page) {
    const std::size_t at = page - kAround;
    const Other& with = others_[0];
    const Bytes before = model_;
    List list;
    push_write(list, at, 2 * kAround);
    push_read(list, at, 2 * kAround);
    push_set(list, at, 2 * kAround);
    push_two(list, LITE_OP_COPY, at, with.lh, 0, 2 * kAround);
    push_two(list, LITE_OP_COPY, 0, lh_, at, 2 * kAround).op.lh = with.lh;
    for (auto& wanted : list)
        wanted.result = kAround;
    push_checksum(list, page, 64);
    push_two(list, LITE_OP_COMPARE, page, with.lh, 0, 64);
    push_two(list, LITE_OP_COMPARE, 0, lh_, page, 64).op.lh = with.lh;
    push_words(list, page + 64);
    for (auto& wanted : list)
        wanted.error = EFAULT;
    model_ = before;
    push_write(list, 100, 64);
    push_read(list, kSize - 100, 64);
    push_read(list, page + kPage, 64);
    return list;
}

void Memory::forget() { write(others_[0], 0, some(2 * kAround)); }

List Memory::read_only(std::size_t page) {
    constexpr std::size_t length = 64;
    const std::size_t at = page + 1000;
    const Bytes before = model_;
    const Bytes bytes = copy_of(part(at, length));
    Other& with = others_[0];
    write(with, 0, bytes);
    List list;
    push_write(list, page + 100, length);
    push_set(list, page + 200, length);
    push_two(list, LITE_OP_COPY, page + 300, with.lh, 0, length);
    push_words(list, page + 400);
    for (auto& wanted : list) {
        wanted.error = EFAULT;
        wanted.result = 0;
    }
    model_ = before;
    push_read(list, at, length);
    push_checksum(list, at, length);
    push_two(list, LITE_OP_COMPARE, at, with.lh, 0, length);
    push_two(list, LITE_OP_COMPARE, 0, lh_, at, length).op.lh = with.lh;
    push_two(list, LITE_OP_COPY, length, lh_, at, length).op.lh = with.lh;
    std::memcpy(with.model.data() + length, bytes.data(), length);
    changed_ = &with;
    return list;
}

}  // namespace unpinned
