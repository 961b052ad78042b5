// SPDX-License-Identifier: MIT
// Many users of one LMR that run at the same time, and know what it must contain.
//
// Every user owns 8-byte slots in the common part at the beginning, which all others read, and an
// area behind that, which no other user knows. It reads again what it has written, so a write that
// was lost, or an old value that came back, shows. Numbers in the slots of others only grow. And
// all users count in one word.
#pragma once

#include "../raw.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace lite_test {

struct SlotPlan {
    std::uint64_t length = 0;  // of the LMR; a multiple of a page, at least slots_least()
    std::size_t users = 1;     // at most 64
    std::uint64_t seed = 0;
};

std::uint64_t slots_least(std::size_t users);

class SlotUser {
  public:
    // @number: the number of this user in the plan. The LMR must be zero in the beginning.
    SlotUser(const Device& dev, std::uint64_t lh, const SlotPlan& plan, std::size_t number);

    // A random operation. Throws Failure if the operation fails or its result is impossible.
    void step();

    // Reads again all that the user owns.
    void verify();

    // How often the user has counted. The counter is at kCounterAt.
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
    std::vector<std::byte> shadow_;    // its expected contents
    std::vector<std::uint64_t> own_;   // by row
    std::vector<std::uint64_t> seen_;  // by row and user
    std::vector<std::byte> buffer_;
    std::uint64_t counted_ = 0;
};

}  // namespace lite_test
