// SPDX-License-Identifier: MIT
#include "workloads/streams.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <utility>

namespace perf {

double Pace::in(const Interval& interval) const {
    return (done_by(interval.end) - done_by(interval.begin)) /
           std::chrono::duration<double>(interval.end - interval.begin).count();
}

double Pace::done_by(Clock::time_point when) const {
    const auto next = std::ranges::upper_bound(times_, when);
    const auto done = static_cast<double>(next - times_.begin());
    if (next == times_.begin() || next == times_.end())
        return done;
    const auto last = next - 1;
    return done + std::chrono::duration<double>(when - *last) / (*next - *last);
}

BulkStream::BulkStream(Transport& transport, const Bulk& bulk)
    : transport_(transport), bulk_(bulk) {
    for (unsigned i = 0; i < bulk.depth; i++)
        transport_.post({&bulk_.request, 1});
}

void BulkStream::next() {
    end_oldest();
    transport_.post({&bulk_.request, 1});
}

void BulkStream::end() {
    for (unsigned i = 0; i < bulk_.depth; i++)
        end_oldest();
}

void BulkStream::end_oldest() {
    transport_.collect();
    pace_.done(Clock::now());
}

class ThreadStreams::Background {
  public:
    Background(Transport& transport, const Bulk& bulk)
        : thread_([this, &transport, bulk](const std::stop_token& stop) {
              try {
                  BulkStream stream(transport, bulk);
                  do {
                      stream.next();
                      begun_ = true;
                      begun_.notify_all();
                  } while (!stop.stop_requested());
                  stream.end();
                  pace_ = stream.pace();
              } catch (...) {
                  failure_ = std::current_exception();
                  begun_ = true;
                  begun_.notify_all();
              }
          }) {}

    /// Returns when the first operation is complete, or the stream has failed.
    void await() const { begun_.wait(false); }
    void stop() { thread_.request_stop(); }
    /// Call stop() before. Throws the stream's error.
    const Pace& result() {
        if (thread_.joinable())
            thread_.join();
        if (failure_)
            std::rethrow_exception(failure_);
        return pace_;
    }

  private:
    std::atomic<bool> begun_ = false;
    // Written by the thread, read after its end.
    Pace pace_;
    std::exception_ptr failure_;
    std::jthread thread_;  // last: uses the other members
};

ThreadStreams::ThreadStreams(std::span<Transport* const> transports, const Bulk& bulk)
    : transports_(transports.begin(), transports.end()), bulk_(bulk) {}

ThreadStreams::~ThreadStreams() = default;

void ThreadStreams::start() {
    for (Transport* transport : transports_)
        running_.emplace_back(*transport, bulk_);
    for (const Background& stream : running_)
        stream.await();
}

Rates ThreadStreams::stop(const Interval& before, const Interval& after) {
    std::list<Background> ending = std::exchange(running_, {});
    // Stop all before waiting for any: one that goes on would take the share of the others.
    for (Background& stream : ending)
        stream.stop();
    Rates rates;
    for (Background& stream : ending) {
        const Pace& pace = stream.result();
        rates.before += pace.in(before);
        rates.after += pace.in(after);
    }
    return rates;
}

}  // namespace perf
