// SPDX-License-Identifier: MIT
// Closing and unmapping while other threads have operations in flight, and processes that are
// killed in the middle of operations.
#include "fixture.hpp"

#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <thread>

using namespace lite_test;

namespace {

constexpr std::uint64_t kRacedLength = 1 << 20;

}  // namespace

TEST_CASE_METHOD(LifeSomewhere, "races: unmap waits for operations in flight", "[races]") {
    INFO(where.label);
    for (std::size_t round = 0; round < env().scaled(8, 2); ++round) {
        NamedLmr lmr(dev, kRacedLength, where.nodes);
        const auto lh = dev.map(lmr.name());
        std::atomic<int> running = 0;
        Threads threads;
        for (int i = 0; i < 4; ++i) {
            threads.start([&, i] {
                std::vector<std::byte> buffer(kRacedLength);
                for (bool first = true;; first = false) {
                    const auto e = i % 2 ? dev(read_args(lh, 0, buffer.data(), kRacedLength))
                                         : dev(write_args(lh, 8, buffer.data(), 50));
                    if (e == err(EBADF))
                        break;
                    expect_equal(e, ok, "operation before the unmap");
                    if (first)
                        ++running;
                }
            });
        }
        wait_until("all threads are at it", [&] { return running == 4; });
        dev.unmap(lh);
        REQUIRE_NOTHROW(threads.join());
    }
}

TEST_CASE_METHOD(LifeSomewhere, "races: the descriptor closed by another thread", "[races]") {
    INFO(where.label);
    for (std::size_t round = 0; round < env().scaled(8, 2); ++round) {
        Device own(env().indexes.front());
        const int fd = own.fd();
        const auto lh = own.alloc(kRacedLength, where.nodes);
        std::atomic<bool> running = false;
        Threads threads;
        threads.start([&] {
            std::vector<std::byte> buffer(kRacedLength);
            auto args = read_args(lh, 0, buffer.data(), kRacedLength);
            // By the descriptor's number, which the kernel looks up for each call. The last call
            // keeps the file open until it ends.
            while (own.call(LITE_IOC_OP, &args) == ok)
                running = true;
        });
        wait_until("the thread is at it", [&] { return running.load(); });
        ::close(fd);
        threads.join();
        const int same = ::dup(STDERR_FILENO);  // so that the destructor closes this descriptor
        if (same != fd) {
            ::dup2(same, fd);
            ::close(same);
        }
    }
    check_nothing_used();
}

TEST_CASE_METHOD(LifeSomewhere, "races: a process that exits while its threads transfer",
                 "[races]") {
    INFO(where.label);
    for (std::size_t round = 0; round < env().scaled(6, 2); ++round) {
        REQUIRE_NOTHROW(in_child([&] {
            const Device own(env().indexes.front());
            const auto lh = own.alloc(kRacedLength, where.nodes);
            std::atomic<int> running = 0;
            std::vector<std::thread> threads;
            for (int i = 0; i < 3; ++i) {
                threads.emplace_back([&] {
                    std::vector<std::byte> buffer(kRacedLength);
                    for (;; ++running)
                        own(write_args(lh, 0, buffer.data(), kRacedLength));
                });
            }
            wait_until("the threads are at it", [&] { return running >= 3; });
            ::_exit(0);
        }));
    }
    check_nothing_used();
}

TEST_CASE_METHOD(LifeEverywhere, "races: a fatal signal ends a transfer soon", "[races]") {
    INFO(where.label);
    Shared<std::atomic<int>> rounds;
    Child user([&] {
        const Device own(env().indexes.front());
        const auto lh = own.alloc(kRacedLength, where.nodes);
        std::vector<std::byte> buffer(kRacedLength);
        for (;; ++*rounds)
            own.read(lh, 0, buffer);
    });
    REQUIRE_NOTHROW(wait_until("it is at it", [&] { return *rounds >= 2; }));
    user.kill(SIGTERM);
    std::string ending;
    REQUIRE_NOTHROW(ending = user.wait());
    CHECK(ending == "killed by signal Terminated");
    check_nothing_used();
}

TEST_CASE_METHOD(LifeSomewhere, "races: signals that are handled do not disturb", "[races]") {
    INFO(where.label);
    static std::atomic<int> handled;
    handled = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { ++handled; };
    struct sigaction before {};
    REQUIRE(::sigaction(SIGUSR1, &action, &before) == 0);  // without SA_RESTART

    const auto lh = dev.alloc(kRacedLength, where.nodes);
    const auto target = ::getpid();
    Shared<std::atomic<bool>> over;
    Child nuisance([&] {
        while (!*over) {
            ::kill(target, SIGUSR1);
            ::usleep(500);  // so that this thread leaves the CPU to the others
        }
    });
    std::vector<std::byte> back(kRacedLength);
    // The child may get no processor for some rounds.
    for (std::uint64_t round = 0; round < env().scaled(10, 2) || !handled; ++round) {
        const auto data = make_pattern(kRacedLength, round);
        CHECK(dev(write_args(lh, 0, data.data(), kRacedLength)) == ok);
        CHECK(dev(read_args(lh, 0, back.data(), kRacedLength)) == ok);
        CHECK(find_mismatch(back, round) == std::nullopt);
        CHECK(dev(fetch_add_args(lh, 0, 0)) == ok);
    }
    *over = true;
    (void)nuisance.wait();
    ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_CASE_METHOD(Life, "races: a file is used while one of its handles is renewed",
                 "[.][renewal]") {
    // Waits for its input before it renews the handle: the session with the home is over then. The
    // home comes back when it has said "opened".
    NamedLmr local(dev, kPage);
    const auto far = dev.alloc(kPage, std::vector{env().peer()});
    std::cout << "ready" << std::endl;
    std::cin.get();
    Child user([&] {
        const std::uint64_t word = 1;
        expect_equal(dev(write_args(far, 0, &word, sizeof(word))), ok, "with the home back");
    });
    const auto is_renewing = [&] {
        std::ifstream stack("/proc/" + std::to_string(user.pid()) + "/stack");
        const std::string functions{std::istreambuf_iterator(stack), {}};
        return functions.find("lite_mapping_by_id") != std::string::npos;
    };
    REQUIRE_NOTHROW(wait_until("the handle is renewed", is_renewing));
    dev.unmap(dev.map(local.name()));
    dev.unmap(dev.alloc(kPage));
    REQUIRE(is_renewing());
    std::cout << "opened" << std::endl;
    REQUIRE_NOTHROW(user.join());
}
