// SPDX-License-Identifier: MIT
#include "workloads/crew.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <thread>
#include <utility>

namespace perf {

namespace {

// Time for all children to receive their orders and be ready.
constexpr std::chrono::nanoseconds before_all = std::chrono::milliseconds(20);
constexpr std::chrono::nanoseconds before_each = std::chrono::milliseconds(2);

double seconds(Clock::time_point time) {
    return std::chrono::duration<double>(time.time_since_epoch()).count();
}

class Worker {
  public:
    Worker(std::string_view arm, Target target) : arm_(arm), target_(std::move(target)) {}

    Answer obey(const Order& order) {
        if (order.kind == Order::Kind::connect) {
            transport_ = make_transport(arm_, target_);
            verify(*transport_);
            return {};
        }
        const Request request{order.op, order.length};
        if (order.kind == Order::Kind::stop) {
            Answer answer;
            answer.rates = streams_->stop(order.before, order.after);
            return answer;
        }
        transport_->set_crowded(order.crowded);
        if (order.kind == Order::Kind::start) {
            Transport* const own = transport_.get();
            streams_.emplace(std::span(&own, 1), Bulk{request, 1});
            streams_->start();
            return {};
        }
        transport_->call(request);
        std::this_thread::sleep_until(Clock::time_point(std::chrono::nanoseconds(order.start)));
        const double begin = seconds(Clock::now());
        Stopwatch watch({std::chrono::nanoseconds(order.time), order.calls});
        do {
            transport_->call(request);
            watch.lap();
        } while (!watch.over());
        return {static_cast<double>(watch.calls()), begin, begin + watch.seconds(), {}};
    }

  private:
    std::string arm_;
    Target target_;
    std::unique_ptr<Transport> transport_;
    std::optional<ThreadStreams> streams_;  // last: uses the transport
};

}  // namespace

Crew::Crew(std::string_view arm, const Target& target, unsigned count) : arm_(arm) {
    children_.reserve(count);
    for (unsigned i = 0; i < count; i++) {
        // Used by the child only.
        auto worker = std::make_shared<Worker>(arm, target);
        children_.emplace_back([worker](const Order& order) { return worker->obey(order); });
    }
}

void Crew::hire(unsigned count) {
    const std::int64_t before = count_queue_pairs();
    // One at a time: connecting is not measured.
    for (; hired_ < count; hired_++)
        children_.at(hired_).ask({});
    queue_pairs_made_ += count_queue_pairs() - before;
}

double Crew::rate(unsigned count, Op op, std::uint32_t length, const Slice& slice) const {
    const auto start = (Clock::now() + before_all + count * before_each).time_since_epoch();
    Order order{Order::Kind::run, op, length};
    order.crowded = count > std::thread::hardware_concurrency();
    order.start = std::chrono::duration_cast<std::chrono::nanoseconds>(start).count();
    order.time = slice.time.count();
    order.calls = slice.calls == UINT64_MAX ? slice.calls : (slice.calls + count - 1) / count;
    for (unsigned i = 0; i < count; i++)
        children_[i].send(order);
    double calls = 0;
    double begin = std::numeric_limits<double>::infinity();
    double end = 0;
    for (unsigned i = 0; i < count; i++) {
        const Answer answer = children_[i].receive(order);
        calls += answer.value;
        begin = std::min(begin, answer.begin);
        end = std::max(end, answer.end);
    }
    return calls / (end - begin);
}

void Crew::start_streams(unsigned count, std::uint32_t length) const {
    Order order{Order::Kind::start, Op::write, length};
    order.crowded = count >= std::thread::hardware_concurrency();
    for (unsigned i = 0; i < count; i++)
        children_[i].send(order);
    for (unsigned i = 0; i < count; i++)
        children_[i].receive(order);
}

Rates Crew::stop_streams(unsigned count, const Interval& before, const Interval& after) const {
    Order order{Order::Kind::stop};
    order.before = before;
    order.after = after;
    // Stop all before waiting for any: one that goes on would take the share of the others.
    for (unsigned i = 0; i < count; i++)
        children_[i].send(order);
    Rates rates;
    for (unsigned i = 0; i < count; i++) {
        const Rates own = children_[i].receive(order).rates;
        rates.before += own.before;
        rates.after += own.after;
    }
    return rates;
}

}  // namespace perf
