// SPDX-License-Identifier: MIT
#include "workloads/rivals.hpp"

#include <array>
#include <stdexcept>
#include "catch.hpp"

#include "fake_transport.hpp"

using namespace perf;
using namespace std::chrono_literals;

namespace {

const Request small{Op::read, 64, 4096, 4096};
const Request large{Op::write, 4096};
const Slice brief{2ms, UINT64_MAX};

class Failing final : public Transport {
  public:
    std::string_view name() const override { return "failing"; }
    std::span<std::byte> buffer() override { return {}; }
    bool supports(Op) const override { return true; }
    unsigned max_window() const override { return 1; }
    void post(std::span<const Request>) override {}
    std::uint64_t collect() override { throw std::runtime_error("the stream broke"); }
};

}  // namespace

TEST_CASE("the pace of a stream counts operations in part") {
    const Clock::time_point start{};
    Pace pace;
    for (const auto when : {1s, 2s, 4s, 8s})
        pace.done(start + when);
    CHECK(pace.in({start + 1s, start + 2s}) == Approx(1));
    CHECK(pace.in({start + 2s, start + 8s}) == Approx(2.0 / 6));
    CHECK(pace.in({start + 1500ms, start + 3s}) == Approx(1 / 1.5));
    CHECK(pace.in({start + 5s, start + 6s}) == Approx(0.25));
    // Before the first figure and after the last one nothing is known.
    CHECK(pace.in({start, start + 1s}) == Approx(1));
    CHECK(pace.in({start + 9s, start + 10s}) == 0);
    CHECK(Pace().in({start, start + 1s}) == 0);
}

TEST_CASE("in one transport, a small call waits for the large ones before it") {
    FakeTransport transport(4, 1);
    const Contest seen = contest_in_one(transport, small, {large, 3}, {2ms, 5});
    CHECK(seen.times.size() <= 5);
    CHECK(seen.alone > 0);
    CHECK(seen.beside > 0);
    CHECK(transport.most == 4);
    CHECK(transport.under_way == 0);
    auto kind = [](const std::vector<Request>& posted) { return posted.at(0).op; };
    auto call = std::ranges::find(transport.posted, Op::read, kind);
    // From the first call on, there is a call after every three large operations.
    for (std::ptrdiff_t i = 0; call != transport.posted.end(); ++call, i++)
        CHECK(kind(*call) == (i % 4 ? Op::write : Op::read));
    CHECK(kind(transport.posted.back()) == Op::write);
}

TEST_CASE("streams of their own") {
    FakeTransport urgent(1, 1);
    FakeTransport one(2, 1);
    FakeTransport two(2, 1);
    const std::array<Transport*, 2> streams{&one, &two};
    ThreadStreams threads(streams, {large, 2});
    const Contest seen = contest_beside(urgent, small, threads, brief);
    CHECK_FALSE(seen.times.empty());
    CHECK(seen.alone > 0);
    CHECK(urgent.posted.size() >= seen.times.size());
    for (const FakeTransport* stream : {&one, &two}) {
        CHECK(stream->posted.at(0).at(0).op == Op::write);
        CHECK(stream->most == 2);
        CHECK(stream->under_way == 0);
    }
}

TEST_CASE("the error of a stream is reported") {
    FakeTransport urgent(1, 1);
    Failing failing;
    const std::array<Transport*, 1> streams{&failing};
    ThreadStreams threads(streams, {large, 1});
    CHECK_THROWS_WITH(contest_beside(urgent, small, threads, brief), "the stream broke");
    // The threads have ended, so they can be started again.
    CHECK_THROWS_WITH(contest_beside(urgent, small, threads, brief), "the stream broke");
}

TEST_CASE("two kinds of streams, of which one begins later") {
    FakeTransport one(2, 1);
    FakeTransport two(1, 1);
    const std::array<Transport*, 1> early{&one};
    const std::array<Transport*, 1> late{&two};
    ThreadStreams first(early, {large, 2});
    ThreadStreams second(late, {large, 1});
    const Division seen = divide(first, second, brief);
    CHECK(seen.alone > 0);
    CHECK(seen.first > 0);
    CHECK(seen.second > 0);
    for (const FakeTransport* stream : {&one, &two})
        CHECK(stream->under_way == 0);
}
