// SPDX-License-Identifier: MIT
// Processes that make calls. The calls of a killed process are lost; the next process goes on with
// the remaining numbers.
#include "caller.hpp"

#include "../common/process.hpp"
#include "plan.hpp"

#include <lite/lite.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <thread>

#include <unistd.h>

namespace lite_chaos {
namespace {

using lite_test::Shared;
using lite_test::Threads;

constexpr unsigned kProcesses = 3;
constexpr unsigned kThreads = 3;
constexpr std::size_t kPage = 4096;

// Shared by all processes of a node.
struct Common {
    std::atomic<u64> next{1};
    // For each thread: when its operation began, or 0.
    std::array<std::atomic<Clock::rep>, std::size_t{kProcesses} * kThreads> begun{};
};

struct Close {
    void operator()(lite_ctx* ctx) const { lite_close(ctx); }
};
using Context = std::unique_ptr<lite_ctx, Close>;

Context open_node(int index) {
    lite_ctx* ctx = nullptr;
    if (const int err = lite_open(index, &ctx))
        throw Failure(std::string("open: ") + lite_strerror(err));
    return Context(ctx);
}

class Caller {
  public:
    Caller(const CallerOptions& options, Common& common, const Book& book, lite_ctx* ctx,
           unsigned which)
        : options_(options),
          common_(common),
          book_(book),
          ctx_(ctx),
          own_(open_node(options.index)),
          which_(which) {
        lite_ioc_query query{};
        if (const int err = lite_query(ctx, &query))
            throw Failure(std::string("query: ") + lite_strerror(err));
        self_ = query.node_id;
    }

    void run();

  private:
    struct Begun {
        Plan plan;
        Clock::time_point at;
    };

    void one(const Plan& plan);
    void call(const Plan& plan);
    void begin(Plan plan);
    void collect_all();
    bool collect_one();
    void message(const Plan& plan);
    void many(const Plan& plan);
    void ask_kernel(u64 number);
    void finish(const Plan& plan, const End& end, u32 node, Room room);

    const CallerOptions& options_;
    Common& common_;
    const Book& book_;
    lite_ctx* ctx_;  // of all threads
    Context own_;
    unsigned which_;
    u32 self_ = 0;
    std::map<u64, Begun> begun_;  // by cookie
    u64 last_cookie_ = 0;
    std::size_t most_room_ = 0;
    // Buffers of calls that have ended. A late reply must not be written to them.
    std::deque<Room> late_;
};

void Caller::run() {
    auto& begun = common_.begun[which_];
    for (;;) {
        const u64 ticket = common_.next++;
        if (ticket > options_.calls)
            break;
        begun = Clock::now().time_since_epoch().count();
        if (options_.kernel && ticket % 50 == 0)
            ask_kernel(ticket);
        else
            one(Plan(options_, u64{self_} << kNodeShift | ticket));
        begun = 0;
    }
    begun = Clock::now().time_since_epoch().count();
    collect_all();
    for (const auto& room : late_)
        if (!room.intact(0))
            throw Failure("a reply came after the call had ended");
    begun = 0;
}

void Caller::one(const Plan& plan) {
    switch (plan.kind) {
        case Kind::kCall:
            return call(plan);
        case Kind::kBegin:
            return begin(plan);
        case Kind::kMessage:
            return message(plan);
        case Kind::kMany:
            return many(plan);
    }
}

void Caller::finish(const Plan& plan, const End& end, u32 node, Room room) {
    plan.judge(end, node, room);
    book_.write(plan.id, node, static_cast<u32>(-end.err));
    if (!end.err)
        return;
    constexpr std::size_t kKept = 6;
    late_.push_back(std::move(room));
    if (late_.size() <= kKept)
        return;
    if (!late_.front().intact(0))
        throw Failure("a reply came after the call had ended");
    late_.pop_front();
}

void Caller::call(const Plan& plan) {
    Room room(plan.room);
    End end;
    end.begun = Clock::now();
    end.err =
        lite_rpc_call(ctx_, plan.node, plan.function, plan.request.data(), plan.request.size(),
                      room.data(), room.size(), &end.length, plan.timeout_ms, &end.status);
    end.ended = Clock::now();
    finish(plan, end, plan.node, std::move(room));
}

void Caller::begin(Plan plan) {
    End end;
    end.begun = Clock::now();
    end.err = lite_rpc_start(own_.get(), plan.node, plan.function, plan.request.data(),
                             plan.request.size(), plan.room, plan.timeout_ms, ++last_cookie_);
    end.ended = Clock::now();
    if (end.err)
        return finish(plan, end, plan.node, Room(0));
    most_room_ = std::max(most_room_, plan.room);
    const auto at = end.begun;
    begun_.emplace(last_cookie_, Begun{std::move(plan), at});
    constexpr std::size_t kMost = 12;
    if (begun_.size() == kMost)
        collect_all();
}

// Collects results in the order in which calls end, until no call is left.
void Caller::collect_all() {
    while (collect_one()) {
    }
    most_room_ = 0;
}

bool Caller::collect_one() {
    Room room(most_room_);
    lite_rpc_result result{};
    const bool picky = std::any_of(begun_.begin(), begun_.end(),
                                   [](const auto& entry) { return entry.second.plan.picky; });
    const auto asked = Clock::now();
    int err = -EMSGSIZE;
    if (picky)
        err = lite_rpc_collect(own_.get(), room.data(), 0, -1, &result);
    if (err == -EMSGSIZE)
        err = lite_rpc_collect(own_.get(), room.data(), room.size(), -1, &result);
    const auto now = Clock::now();
    if (err == -ENOENT) {
        if (!begun_.empty())
            throw Failure("a call that was begun has no end");
        return false;
    }
    const auto found = begun_.find(result.cookie);
    if (err || found == begun_.end())
        throw Failure("collect: " + name_of(err));
    const auto& [plan, at] = found->second;
    if (result.node != plan.node || result.function != plan.function)
        throw Failure("collect: the end of another call");
    finish(plan, {result.error, result.length, result.status, at, now, asked}, plan.node,
           std::move(room));
    begun_.erase(found);
    return true;
}

void Caller::message(const Plan& plan) {
    const auto at = Clock::now();
    const int err = lite_rpc_send(ctx_, plan.node, plan.function, plan.request.data(),
                                  plan.request.size(), plan.timeout_ms);
    if (err)
        return finish(plan, {err, 0, 0, at, Clock::now()}, plan.node, Room(0));
    book_.write(plan.id, plan.node, kSent);
}

void Caller::many(const Plan& plan) {
    std::vector<lite_rpc_leg> legs(plan.nodes.size());
    std::vector<Room> rooms;
    for (std::size_t i = 0; i < legs.size(); ++i) {
        rooms.emplace_back(plan.room);
        legs[i].node = plan.nodes[i];
        legs[i].reply = rooms[i].data();
        legs[i].room = plan.room;
    }
    const auto at = Clock::now();
    const int n = lite_rpc_multicall(ctx_, plan.function, plan.request.data(), plan.request.size(),
                                     legs.data(), legs.size(), plan.quorum, plan.timeout_ms);
    const auto now = Clock::now();
    if (n < 0 && n != -ENOMEM)
        throw Failure("multicall: " + name_of(n));
    if (n < 0)
        return;
    if (std::count_if(legs.begin(), legs.end(), [](const auto& leg) { return !leg.error; }) != n)
        throw Failure("multicall: other legs have succeeded than it says");
    for (std::size_t i = 0; i < legs.size(); ++i)
        finish(plan, {legs[i].error, legs[i].length, legs[i].status, at, now}, plan.nodes[i],
               std::move(rooms[i]));
}

// Calls functions of a kernel module that is loaded and unloaded meanwhile.
void Caller::ask_kernel(u64 number) {
    std::mt19937_64 random(options_.seed ^ number);
    const auto node = options_.nodes[random() % options_.nodes.size()];
    const bool sort = random() % 2;
    const auto may_be = [](int err) {
        return err == -ECONNREFUSED || err == -ETIMEDOUT || err == -EHOSTDOWN;
    };
    lite_ioc_rpc_find found{};
    int err = lite_rpc_find(ctx_, node, sort ? "kcalls-sort" : "kcalls-sum", &found);
    if (may_be(err))
        return;
    if (err)
        throw Failure("find: " + name_of(err));
    constexpr std::size_t kLongest = 200000;
    Bytes request(1 + random() % (random() % 8 ? kPage : kLongest));
    fill(request, number);
    Bytes wanted;
    if (sort) {
        wanted = request;
        std::sort(wanted.begin(), wanted.end());
    } else {
        const auto sum = std::accumulate(
            request.begin(), request.end(), u64{0},
            [](u64 so_far, std::byte byte) { return so_far + static_cast<u64>(byte); });
        wanted.resize(sizeof(sum));
        std::memcpy(wanted.data(), &sum, sizeof(sum));
    }
    Room room(wanted.size());
    std::size_t length = 0;
    err = lite_rpc_call(ctx_, node, found.function, request.data(), request.size(), room.data(),
                        room.size(), &length, LITE_TIMEOUT_DEFAULT, nullptr);
    if (!room.intact(err ? 0 : wanted.size()))
        throw Failure("bytes were written that are not of the reply of a kernel function");
    book_.write(kToKernel, node, static_cast<u32>(-err));
    if (may_be(err) || err == -ECONNRESET)
        return;
    if (err)
        throw Failure("a kernel function: " + name_of(err));
    const auto said = room.first(wanted.size());
    if (length != wanted.size() || !std::equal(said.begin(), said.end(), wanted.begin()))
        throw Failure("a kernel function has not said the right thing");
}

void check_progress(const Common& common, Milliseconds too_long) {
    for (const auto& entry : common.begun) {
        const Clock::duration begun{entry.load()};
        if (begun.count() && Clock::now().time_since_epoch() - begun > too_long)
            throw Failure("a call does not end");
    }
}

}  // namespace

int call(const CallerOptions& options) {
    constexpr Milliseconds kPause{700};
    Shared<Common> common;
    Herd herd(kPause * options.slowness * options.calm, options.seed);
    for (unsigned i = 0; i < kProcesses; ++i)
        herd.add([&options, &common, i] {
            const Book book(options.books + "/ended");
            const auto ctx = open_node(options.index);
            for (unsigned k = 0; k < kThreads; ++k)
                common->begun[i * kThreads + k] = 0;
            Threads threads;
            for (unsigned k = 0; k < kThreads; ++k)
                threads.start([&, which = i * kThreads + k] {
                    Caller(options, *common, book, ctx.get(), which).run();
                });
            threads.join();
        });
    while (common->next <= options.calls || !herd.empty()) {
        herd.tend(common->next > options.calls);
        check_progress(*common, 3 * kGrace * options.slowness);
        std::this_thread::sleep_for(Milliseconds(5));
    }
    std::printf("%u callers, %u killed\n", herd.starts(), herd.kills());
    return 0;
}

}  // namespace lite_chaos
