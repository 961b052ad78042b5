// SPDX-License-Identifier: MIT
// Processes that are killed at random, and started again.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <random>
#include <vector>

namespace lite_chaos {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

// The bodies run in children. A body that returns ends well; a body that throws has found a
// failure.
class Herd {
  public:
    // Kills one of them every so often: from 1 ms to twice @pause.
    Herd(Milliseconds pause, std::uint64_t seed)
        : pause_(pause), random_(seed), next_kill_(Clock::now() + pause) {}
    ~Herd();

    void add(const std::function<void()>& body) { members_.push_back({body}); }

    // Starts the processes that are to run, unless @no_more; reaps those that have ended; kills one
    // if it is time. Throws Failure if a process has failed.
    void tend(bool no_more = false);
    bool empty() const;
    unsigned kills() const { return kills_; }
    unsigned starts() const { return starts_; }

  private:
    struct Member {
        std::function<void()> body;
        pid_t pid = 0;
        bool killed = false;
        Clock::time_point rests_until = {};
    };

    void start(Member& member);
    void reap(Member& member);
    void kill_one();

    Milliseconds pause_;
    std::mt19937_64 random_;
    std::vector<Member> members_;
    Clock::time_point next_kill_;
    unsigned kills_ = 0;
    unsigned starts_ = 0;
};

}  // namespace lite_chaos
