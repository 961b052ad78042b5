// SPDX-License-Identifier: MIT
//
// tally: a server for many callers, with one thread, made of coroutines.
//
//    tally                 serves until SIGINT or SIGTERM: adds numbers up, in the cluster's memory
//    tally NODE NUMBER...  has the server on NODE add all these numbers, at the same time
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <vector>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <lite/async.hpp>

namespace {

constexpr auto function_name = "tally";
constexpr int callers_at_a_time = 16;

using number = std::array<std::uint64_t, 1>;

// The signals that end the server, as a descriptor to poll. They must be blocked before there are
// other threads, which inherit that: io_uring may make some.
class end_signals {
  public:
    end_signals() {
        sigset_t signals;
        ::sigemptyset(&signals);
        ::sigaddset(&signals, SIGINT);
        ::sigaddset(&signals, SIGTERM);
        ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
        m_fd = ::signalfd(-1, &signals, SFD_CLOEXEC);
        if (m_fd < 0)
            throw lite::error(errno, "wait for signals");
    }
    end_signals(const end_signals&) = delete;
    end_signals& operator=(const end_signals&) = delete;
    ~end_signals() { ::close(m_fd); }

    int fd() const noexcept { return m_fd; }

  private:
    int m_fd;
};

// One of many: others work while it waits. It answers what it has received, even after @stop.
lite::task<> serve(lite::executor& ex, const lite::function& tally, const lite::region& sum,
                   std::stop_token stop) {
    try {
        for (;;) {
            number n{};
            auto request = co_await ex.receive(tally, std::as_writable_bytes(std::span(n)),
                                               lite::forever, stop);
            n[0] += co_await ex.fetch_add(sum, 0, n[0]);
            co_await ex.reply(request, 0, std::as_bytes(std::span(n)));
        }
    } catch (const lite::error& error) {
        // all() throws this only when the others have ended, too.
        if (error.code() != std::errc::operation_canceled)
            std::cerr << "tally: one of the servers has ended: " << error.what() << std::endl;
        throw;
    }
}

lite::task<> stop_at(lite::executor& ex, const end_signals& signals, std::stop_source stop) {
    co_await ex.poll(signals.fd(), POLLIN);
    stop.request_stop();
}

void serve_all(lite::context& context) {
    const end_signals signals;
    lite::executor ex(context);
    const lite::region sum = context.alloc({.length = sizeof(number)});
    // The servers have no room for longer requests, so these are refused.
    const lite::function tally(context, {.name = function_name,
                                         .mode = 0666,
                                         .max_request = sizeof(number),
                                         .max_reply = sizeof(number)});
    const std::stop_source stop;
    std::vector<lite::task<>> servers;
    servers.reserve(callers_at_a_time);
    for (int i = 0; i < callers_at_a_time; i++)
        servers.push_back(serve(ex, tally, sum, stop.get_token()));
    ex.spawn(stop_at(ex, signals, stop));
    std::cout << "serving" << std::endl;
    try {
        ex.run(ex.all(std::move(servers)));
    } catch (const lite::error& error) {
        if (error.code() != std::errc::operation_canceled)
            throw;
    }
}

lite::task<> ask(lite::executor& ex, std::uint32_t node, std::uint32_t function, number n) {
    const auto reply = co_await ex.call(node, function, std::as_bytes(std::span(n)));
    number sum{};
    std::memcpy(sum.data(), reply.bytes.data(), std::min(sizeof(sum), reply.bytes.size()));
    std::cout << "+ " << n[0] << " = " << sum[0] << '\n';
}

lite::task<> ask_all(lite::executor& ex, std::uint32_t node, std::uint32_t function,
                     std::span<char*> numbers) {
    std::vector<lite::task<>> asking;
    for (const char* text : numbers)
        asking.push_back(ask(ex, node, function, {std::strtoull(text, nullptr, 0)}));
    co_await ex.all(std::move(asking));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 2) {
        std::cerr << "usage: tally [NODE NUMBER...]\n";
        return 2;
    }
    try {
        lite::context context;
        if (argc == 1) {
            serve_all(context);
            return 0;
        }
        lite::executor ex(context);
        const auto node = static_cast<std::uint32_t>(std::atoi(argv[1]));
        const auto function = ex.run(ex.find_function(node, function_name));
        ex.run(ask_all(ex, node, function, std::span(argv, argv + argc).subspan(2)));
    } catch (const lite::error& error) {
        std::cerr << "tally: " << error.what() << '\n';
        return 1;
    }
}
