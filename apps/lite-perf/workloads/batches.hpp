// SPDX-License-Identifier: MIT
//
// Batches of requests in flight: collected in the order of posting, while their requests complete
// in any order.
#pragma once

#include <cstdint>
#include <deque>

namespace perf {

class Batches {
  public:
    /// Adds a batch of @n requests. Returns its number, for done().
    std::uint64_t begin(unsigned n) {
        batches_.push_back({n, n});
        return first_ + batches_.size() - 1;
    }

    /// Notes that one request of a batch is complete.
    void done(std::uint64_t number) { batches_.at(number - first_).left--; }

    /// Number of requests of the oldest batch still in flight. There must be a batch.
    unsigned oldest_left() const { return batches_.at(0).left; }

    /// Removes the oldest batch. Returns its number of requests.
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
    std::uint64_t first_ = 0;  // number of the oldest batch
};

}  // namespace perf
