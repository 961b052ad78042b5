// SPDX-License-Identifier: MIT
// Many who use one LMR at the same time, and know what must be in it.
//
// Every user owns 8-byte slots in the common part at its beginning, which all others read, and an
// area behind that, of which nobody else knows anything. What it has written it reads again: one
// write that was lost, or has come back, shows. In the slots of others numbers only ever grow. And
// all of them count in one word.
#pragma once

#include "raw.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace lite_test {

struct SlotPlan {
    std::uint64_t length = 0;  // of what they share; a multiple of a page, at least slots_least()
    std::size_t users = 1;     // at most 64
    std::uint64_t seed = 0;
};

std::uint64_t slots_least(std::size_t users);

class SlotUser {
  public:
    // @number: which of the plan's users this one is. The LMR is zero in the beginning.
    SlotUser(const Device& dev, std::uint64_t lh, const SlotPlan& plan, std::size_t number);

    // Something random. Throws Failure when it sees what cannot be, or an operation fails.
    void step();

    // Reads again all that is its own.
    void verify();

    // How often it has counted. Where: kCounterAt.
    std::uint64_t counted() const { return counted_; }
    static constexpr std::uint64_t kCounterAt = 4096 - 8;

  private:
    std::uint64_t slot_at(std::size_t row, std::size_t user) const;
    void write_slot();
    void look_at_slots();
    void write_area();
    void read_area();
    void count();
    std::uint64_t load(std::uint64_t offset);
    std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

    const Device& dev_;
    std::uint64_t lh_;
    SlotPlan plan_;
    std::size_t number_;
    std::mt19937_64 random_;
    std::uint64_t area_;               // where its area begins
    std::vector<std::byte> shadow_;    // what is in it
    std::vector<std::uint64_t> own_;   // by row
    std::vector<std::uint64_t> seen_;  // by row and user
    std::vector<std::byte> buffer_;
    std::uint64_t counted_ = 0;
};

}  // namespace lite_test
