// SPDX-License-Identifier: MIT
//
// Batches of requests that are under way: they are collected in the order in which they were
// posted, but what they consist of is completed in any order.
#pragma once

#include <cstdint>
#include <deque>

namespace perf {

class Batches {
  public:
    /// One more, of @n requests. Returns its number, for done().
    std::uint64_t begin(unsigned n) {
        batches_.push_back({n, n});
        return first_ + batches_.size() - 1;
    }

    /// One of the requests of a batch is complete.
    void done(std::uint64_t number) { batches_.at(number - first_).left--; }

    /// How many requests of the oldest one are still under way. There has to be one.
    unsigned oldest_left() const { return batches_.at(0).left; }

    /// Forget the oldest one. Returns how many requests it had.
    unsigned end_oldest() {
        const unsigned size = batches_.at(0).size;
        batches_.pop_front();
        first_++;
        return size;
    }

    bool none() const { return batches_.empty(); }

  private:
    struct Batch {
        unsigned size;
        unsigned left;
    };

    std::deque<Batch> batches_;
    std::uint64_t first_ = 0;  // number of the oldest
};

}  // namespace perf
