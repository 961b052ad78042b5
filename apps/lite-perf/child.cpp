// SPDX-License-Identifier: MIT
#include "child.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <exception>
#include <stdexcept>

namespace perf {

namespace {

// Time for a child to answer besides that of its slice: longer than connecting to a dead peer. A
// slice ends when its time is over or its calls are made.
constexpr std::chrono::milliseconds answer_limit{300'000};
constexpr std::chrono::milliseconds call_limit{10};

/// Milliseconds until a child that has got @order counts as hung.
int time_limit(const Order& order) {
    const auto slice =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds(order.time));
    const auto calls = static_cast<std::int64_t>(
        std::min(order.calls, static_cast<std::uint64_t>(INT_MAX / call_limit.count())));
    return static_cast<int>(std::min<std::int64_t>(
        (answer_limit + std::min(slice, calls * call_limit)).count(), INT_MAX));
}

void put_error(Answer& answer, const std::exception& error) {
    fmt::format_to_n(answer.error.data(), answer.error.size() - 1, "{}", error.what());
}

template <typename T>
bool receive_one(int fd, T& object) {
    ssize_t n;
    do {
        n = recv(fd, &object, sizeof object, 0);
    } while (n < 0 && errno == EINTR);
    return n == static_cast<ssize_t>(sizeof object);
}

template <typename T>
void send_one(int fd, const T& object) {
    ssize_t n;
    do {
        n = ::send(fd, &object, sizeof object, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        throw_errno("sending to another process of lite-perf");
}

/// Makes a new process die with its parent, which may be dead already.
void die_with(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
}

[[noreturn]] void serve(int fd, const std::function<Answer(const Order&)>& work) {
    Order order;
    while (receive_one(fd, order)) {
        Answer answer;
        try {
            answer = work(order);
        } catch (const std::exception& error) {
            put_error(answer, error);
        }
        try {
            send_one(fd, answer);
        } catch (const std::exception&) {
            break;  // the parent is gone
        }
    }
    _exit(0);
}

std::pair<Fd, Fd> make_channel() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        throw_errno("socketpair");
    return {Fd(ends[0]), Fd(ends[1])};
}

pid_t fork_or_throw() {
    const pid_t pid = fork();
    if (pid < 0)
        throw_errno("fork");
    return pid;
}

}  // namespace

Child::Child(const std::function<Answer(const Order&)>& work) {
    auto [ours, its] = make_channel();
    const pid_t parent = getpid();
    const pid_t pid = fork_or_throw();
    if (!pid) {
        die_with(parent);
        ours = Fd();
        serve(its.get(), work);
    }
    channel_ = std::move(ours);
    pid_ = pid;
}

Child::~Child() {
    if (channel_.get() < 0)
        return;  // moved from
    // Closing the channel would not end the child: children forked later have copies of it.
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

void Child::send(const Order& order) const { send_one(channel_.get(), order); }

Answer Child::receive(const Order& order) const {
    pollfd waiting{channel_.get(), POLLIN, 0};
    int ready;
    do {
        ready = poll(&waiting, 1, time_limit(order));
    } while (ready < 0 && errno == EINTR);
    Answer answer;
    if (ready <= 0 || !receive_one(channel_.get(), answer))
        throw std::runtime_error("another process of lite-perf does not answer, or has died");
    if (answer.error[0])
        throw std::runtime_error(answer.error.data());
    return answer;
}

double time_in_new_process(const std::function<Clock::time_point()>& work) {
    auto [ours, its] = make_channel();
    const pid_t parent = getpid();
    const Clock::time_point begin = Clock::now();
    const pid_t pid = fork_or_throw();
    if (!pid) {
        die_with(parent);
        Answer answer;
        try {
            // The clock is the same in all processes.
            answer.value = std::chrono::duration<double, std::nano>(work() - begin).count();
        } catch (const std::exception& error) {
            put_error(answer, error);
        }
        try {
            send_one(its.get(), answer);
        } catch (const std::exception&) {
            _exit(1);
        }
        _exit(0);
    }
    its = Fd();
    Answer answer;
    const bool any = receive_one(ours.get(), answer);
    // Wait until all files and connections of the process are closed.
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    if (!any)
        throw std::runtime_error("a new process died");
    if (answer.error[0])
        throw std::runtime_error(answer.error.data());
    return answer.value;
}

}  // namespace perf
