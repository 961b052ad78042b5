// SPDX-License-Identifier: MIT
//
// Streams of large operations, of which a fixed number is always in flight.
#pragma once

#include <list>
#include <memory>
#include <span>
#include <vector>

#include "slice.hpp"
#include "transport.hpp"

namespace perf {

/// When operations of a stream were completed.
class Pace {
  public:
    void done(Clock::time_point when) { times_.push_back(when); }

    /// Operations per second in an interval. An operation in flight at either end counts in part,
    /// as if it had progressed evenly since its predecessor completed.
    double in(const Interval& interval) const;

  private:
    double done_by(Clock::time_point when) const;

    std::vector<Clock::time_point> times_;
};

/// Large operations: @depth copies of @request, each followed by another one when it is complete.
struct Bulk {
    Request request;
    unsigned depth;
};

class BulkStream {
  public:
    BulkStream(Transport& transport, const Bulk& bulk);

    /// Waits for the oldest operation and starts another.
    void next();
    /// Waits for all in flight.
    void end();
    const Pace& pace() const { return pace_; }

  private:
    void end_oldest();

    Transport& transport_;
    Bulk bulk_;
    Pace pace_;
};

/// Operations per second of streams together, in two intervals.
struct Rates {
    double before = 0;
    double after = 0;
};

/// Streams that run in the background.
class Streams {
  public:
    virtual ~Streams() = default;

    /// Returns when each has completed an operation.
    virtual void start() = 0;
    /// Ends them. Throws if one has failed, with its error.
    virtual Rates stop(const Interval& before, const Interval& after) = 0;
};

/// A thread for each of several transports; @bulk is in flight in each.
class ThreadStreams final : public Streams {
  public:
    ThreadStreams(std::span<Transport* const> transports, const Bulk& bulk);
    ~ThreadStreams() override;

    void start() override;
    Rates stop(const Interval& before, const Interval& after) override;

  private:
    class Background;

    std::vector<Transport*> transports_;
    Bulk bulk_;
    std::list<Background> running_;
};

}  // namespace perf
