// SPDX-License-Identifier: MIT
#include "herd.hpp"

#include "order.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lite_chaos {

Herd::~Herd() {
    for (const auto& member : members_) {
        if (!member.pid)
            continue;
        ::kill(member.pid, SIGKILL);
        ::waitpid(member.pid, nullptr, 0);
    }
}

void Herd::start(Member& member) {
    // The child must not print what the parent has buffered.
    std::fflush(nullptr);
    member.pid = ::fork();
    if (member.pid < 0)
        throw Failure("fork");
    if (member.pid == 0) {
        try {
            member.body();
        } catch (const std::exception& e) {
            std::fprintf(stderr, "%s\n", e.what());
            ::_exit(1);
        }
        ::_exit(0);
    }
    member.killed = false;
    ++starts_;
}

void Herd::reap(Member& member) {
    int status = 0;
    if (::waitpid(member.pid, &status, WNOHANG) != member.pid)
        return;
    member.pid = 0;
    // A pause before the next start: sometimes no process serves for a moment.
    constexpr unsigned kRestMost = 60;
    member.rests_until = Clock::now() + Milliseconds(random_() % kRestMost);
    if (WIFSIGNALED(status) && !(member.killed && WTERMSIG(status) == SIGKILL))
        throw Failure("a process ended by signal " + std::to_string(WTERMSIG(status)));
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        throw Failure("a process has failed");
}

void Herd::kill_one() {
    next_kill_ = Clock::now() + Milliseconds(1 + random_() % static_cast<u64>(2 * pause_.count()));
    auto& member = members_[random_() % members_.size()];
    if (!member.pid)
        return;
    ::kill(member.pid, SIGKILL);
    member.killed = true;
    ++kills_;
}

void Herd::tend(bool no_more) {
    for (auto& member : members_) {
        if (member.pid)
            reap(member);
        else if (!no_more && Clock::now() >= member.rests_until)
            start(member);
    }
    if (!no_more && Clock::now() >= next_kill_)
        kill_one();
}

bool Herd::empty() const {
    return std::all_of(members_.begin(), members_.end(),
                       [](const Member& member) { return !member.pid; });
}

}  // namespace lite_chaos
