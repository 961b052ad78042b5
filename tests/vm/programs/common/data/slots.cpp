// SPDX-License-Identifier: MIT
#include "slots.hpp"

#include "../memory.hpp"
#include "../process.hpp"
#include "pattern.hpp"
#include "shadow.hpp"

#include <cstring>
#include <string>
#include <thread>

namespace lite_test {
namespace {

// Pages with slots; the counter is in the first one.
constexpr std::size_t kRows = 8;
constexpr std::uint64_t kCommon = kRows * kPage;

// A number that shows whether it is complete: the user that has written it, a sequence number, and
// a checksum of both.
std::uint64_t encode(std::uint64_t user, std::uint64_t sequence) {
    const auto body = sequence << 8 | user;
    return body << 16 | (mix(body) & 0xffff);
}

bool is_whole(std::uint64_t value, std::uint64_t user) {
    return value == 0 || (value == encode(user, value >> 24) && (value >> 16 & 0xff) == user);
}

}  // namespace

std::uint64_t slots_least(std::size_t users) { return kCommon + users * kPage; }

SlotUser::SlotUser(const Device& dev, std::uint64_t lh, const SlotPlan& plan, std::size_t number)
    : dev_(dev),
      lh_(lh),
      plan_(plan),
      number_(number),
      random_(mix(plan.seed + number)),
      own_(kRows),
      seen_(kRows * plan.users) {
    expect(plan.length >= slots_least(plan.users) && plan.users <= 64, "room for the users");
    // Not a multiple of a page: users share pages, and a page may be moved while two users use it.
    const auto size = (plan.length - kCommon) / plan.users;
    area_ = kCommon + number * size;
    shadow_.resize(size);
    buffer_.resize(size);
}

std::uint64_t SlotUser::slot_at(std::size_t row, std::size_t user) const {
    return row * kPage + user * sizeof(std::uint64_t);
}

std::uint64_t SlotUser::load(std::uint64_t offset) {
    std::uint64_t value = 0;
    dev_.read(lh_, offset, std::as_writable_bytes(std::span(&value, 1)));
    return value;
}

void SlotUser::step() {
    switch (below(8)) {
        case 0:
        case 1:
            return write_slot();
        case 2:
            return look_at_slots();
        case 3:
        case 4:
            return write_area();
        case 5:
        case 6:
            return read_area();
        default:
            return count();
    }
}

void SlotUser::write_slot() {
    const auto row = below(kRows);
    const auto value = encode(number_, (own_[row] >> 24) + 1);
    own_[row] = value;
    dev_.write(lh_, slot_at(row, number_), std::as_bytes(std::span(&value, 1)));
    expect_equal(load(slot_at(row, number_)), value, "own slot after the write");
}

void SlotUser::look_at_slots() {
    const auto row = below(kRows);
    const auto user = below(plan_.users);
    const auto at = slot_at(row, user);
    auto value = load(at);
    // A device may copy the 8 bytes in pieces, but a finished write is complete.
    for (int again = 0; !is_whole(value, user) && again < 1000; ++again) {
        std::this_thread::yield();
        value = load(at);
    }
    expect(is_whole(value, user),
           "slot at " + std::to_string(at) + " is torn: " + std::to_string(value));
    auto& seen = seen_[row * plan_.users + user];
    expect(value >> 24 >= seen, "slot at " + std::to_string(at) + " went back from " +
                                    std::to_string(seen) + " to " + std::to_string(value >> 24));
    seen = value >> 24;
    if (user == number_)
        expect_equal(value, own_[row], "own slot");
}

void SlotUser::write_area() {
    const auto length =
        1 + below(below(8) ? std::min<std::uint64_t>(shadow_.size(), 9000) : shadow_.size());
    const auto offset = below(shadow_.size() - length + 1);
    const auto part = std::span(shadow_).subspan(offset, length);
    fill_pattern(part, random_());
    dev_.write(lh_, area_ + offset, part);
}

void SlotUser::read_area() {
    const auto length =
        1 + below(below(8) ? std::min<std::uint64_t>(shadow_.size(), 9000) : shadow_.size());
    const auto offset = below(shadow_.size() - length + 1);
    const auto into = std::span(buffer_).first(length);
    dev_.read(lh_, area_ + offset, into);
    const auto wrong = compare(into, std::span(shadow_).subspan(offset, length), area_ + offset);
    expect(wrong.empty(), "own area of user " + std::to_string(number_) + ": " + wrong);
}

void SlotUser::count() {
    (void)dev_.fetch_add(lh_, kCounterAt, 1);
    ++counted_;
}

void SlotUser::verify() {
    dev_.read(lh_, area_, buffer_);
    const auto wrong = compare(buffer_, shadow_, area_);
    expect(wrong.empty(), "all of the area of user " + std::to_string(number_) + ": " + wrong);
    for (std::size_t row = 0; row < kRows; ++row)
        expect_equal(load(slot_at(row, number_)), own_[row], "own slot in the end");
}

}  // namespace lite_test
