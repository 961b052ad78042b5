// SPDX-License-Identifier: MIT
// <lite/async.hpp>: coroutines that await LITE.
#include "async_fixture.hpp"

#include <csignal>
#include <stdexcept>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

using namespace lite_test;

namespace {

// Answers with the number plus one, @rounds times.
lite::task<> serve(lite::executor& ex, const lite::function& words, int rounds) {
    for (int i = 0; i < rounds; i++) {
        Word word{};
        auto request = co_await ex.receive(words, std::as_writable_bytes(std::span(word)));
        word[0]++;
        co_await ex.reply(request, 7, std::as_bytes(std::span(word)));
    }
}

lite::task<> call(lite::executor& ex, std::uint32_t function, std::uint64_t number, int& ended) {
    const Word word{number};
    const auto reply = co_await ex.call(0, function, std::as_bytes(std::span(word)));
    Word answer{};
    expect_equal(reply.bytes.size(), sizeof(answer), "length of the reply");
    std::memcpy(answer.data(), reply.bytes.data(), sizeof(answer));
    expect_equal(answer[0], number + 1, "the reply");
    expect_equal(reply.status, 7U, "status");
    ended++;
}

lite::task<> call_all(lite::executor& ex, std::uint32_t function, int n, int& ended) {
    std::vector<lite::task<>> calls;
    for (int i = 0; i < n; i++)
        calls.push_back(call(ex, function, static_cast<std::uint64_t>(i), ended));
    co_await ex.all(std::move(calls));
}

lite::task<> move_bytes(lite::executor& ex, const lite::region& lmr, std::uint64_t offset) {
    const std::string text = "at " + std::to_string(offset);
    std::vector<std::byte> back(text.size());
    co_await ex.write(lmr, offset, std::as_bytes(std::span(text)));
    co_await ex.read(lmr, offset, back);
    expect(!std::memcmp(back.data(), text.data(), text.size()), "what was written");
}

lite::task<> move_all(lite::executor& ex, const lite::region& lmr) {
    std::vector<lite::task<>> moves;
    for (std::uint64_t i = 0; i < 60; i++)
        moves.push_back(move_bytes(ex, lmr, i * 64));
    co_await ex.all(std::move(moves));
}

// Adds to a word in two steps that are only safe with the lock.
lite::task<> add_locked(lite::executor& ex, const lite::region& lmr, std::uint64_t owner,
                        int rounds) {
    for (int i = 0; i < rounds; i++) {
        Word word{};
        auto held = co_await ex.lock(lmr, 0, owner);
        expect(!held.owner_died(), "no holder has died");
        co_await ex.read(lmr, 8, std::as_writable_bytes(std::span(word)));
        word[0]++;
        co_await ex.write(lmr, 8, std::as_bytes(std::span(word)));
        co_await ex.unlock(held);
    }
}

lite::task<std::uint64_t> value_at(lite::executor& ex, const lite::region& lmr,
                                   std::uint64_t offset) {
    Word word{};
    co_await ex.read(lmr, offset, std::as_writable_bytes(std::span(word)));
    co_return word[0];
}

lite::task<> receive_until(lite::executor& ex, const lite::function& words, std::stop_token stop) {
    Word word{};
    co_await ex.receive(words, std::as_writable_bytes(std::span(word)), lite::default_timeout,
                        stop);
}

lite::task<> wait_until_stopped(lite::executor& ex, const lite::region& lmr, std::stop_token stop) {
    co_await ex.arrive_and_wait(lmr, 128, 2, stop);
}

lite::task<> throw_later(lite::executor& ex, const lite::region& lmr) {
    co_await ex.fetch_add(lmr, 256, 1);
    throw std::runtime_error("as it should");
}

}  // namespace

TEST_CASE_METHOD(Async, "async: servers and callers in one thread", "[uring]") {
    constexpr int callers = 24;
    int ended = 0;
    for (int i = 0; i < 4; i++)
        ex.spawn(serve(ex, words, callers / 4));
    ex.run(call_all(ex, words.number(), callers, ended));
    CHECK(ended == callers);
}

TEST_CASE_METHOD(Async, "async: data, atomics, locks", "[uring]") {
    ex.run(move_all(ex, lmr));
    const std::vector<std::byte> zeros(4096);
    ex.run(ex.write(lmr, 0, zeros));
    constexpr int rounds = 10;
    constexpr std::uint64_t all = 8 * rounds;
    for (std::uint64_t owner = 1; owner < 8; owner++)
        ex.spawn(add_locked(ex, lmr, owner, rounds));
    ex.run(add_locked(ex, lmr, 8, rounds));
    // The other tasks may not be finished yet.
    while (ex.run(value_at(ex, lmr, 8)) < all)
        continue;
    CHECK(ex.run(value_at(ex, lmr, 8)) == all);
    CHECK(ex.run(ex.fetch_add(lmr, 16, 5)) == 0);
    CHECK(ex.run(ex.compare_swap(lmr, 16, 5, 9)) == 5);
    CHECK(ex.run(value_at(ex, lmr, 16)) == 9);
    lite_ioc_query query{};
    CHECK(ex.run(ex.command(LITE_IOC_QUERY, query)) == 0);
    CHECK(query.node_id == env().self);
}

TEST_CASE_METHOD(Async, "async: errors", "[uring]") {
    std::array<std::byte, 64> buffer{};
    CHECK(ex.run(errno_of(ex.read(lmr, 4090, buffer))) == ERANGE);
    CHECK(ex.run(errno_of(ex.write(lmr.handle() + 1, 0, buffer))) == EBADF);
    CHECK_THROWS_AS(ex.run(ex.call(0, 60000, buffer)), lite::error);
    ex.spawn(throw_later(ex, lmr));
    std::stop_source never;
    CHECK_THROWS_AS(ex.run(receive_until(ex, words, never.get_token())), std::runtime_error);
    // The executor goes on.
    CHECK(ex.run(value_at(ex, lmr, 256)) == 1);
}

TEST_CASE_METHOD(Async, "async: a foreign descriptor, a signal and time beside LITE", "[uring]") {
    std::stop_source never;
    ex.spawn(receive_until(ex, words, never.get_token()));
    sigset_t signals;
    sigset_t before;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, SIGTERM);
    REQUIRE(::pthread_sigmask(SIG_BLOCK, &signals, &before) == 0);
    const int fd = ::signalfd(-1, &signals, SFD_CLOEXEC);
    const auto begun = std::chrono::steady_clock::now();
    ex.run(ex.sleep(a_while()));
    CHECK(std::chrono::steady_clock::now() - begun >= a_while());
    CHECK(errno_when_stopped(ex, [&](std::stop_token stop) { return ex.poll(fd, POLLIN, stop); }) ==
          ECANCELED);
    CHECK(errno_when_stopped(ex, [&](std::stop_token stop) {
              return ex.sleep(std::chrono::hours(1), stop);
          }) == ECANCELED);
    ::kill(::getpid(), SIGTERM);
    CHECK(ex.run(ex.poll(fd, POLLIN)) == POLLIN);
    signalfd_siginfo came{};
    CHECK(::read(fd, &came, sizeof(came)) == sizeof(came));
    ::close(fd);
    REQUIRE(::pthread_sigmask(SIG_SETMASK, &before, nullptr) == 0);
}

TEST_CASE_METHOD(Async, "async: an executor ends with operations in flight", "[uring]") {
    std::stop_source never;
    {
        lite::executor mine(node);
        for (int i = 0; i < 20; i++) {
            mine.spawn(receive_until(mine, words, never.get_token()));
            mine.spawn(wait_until_stopped(mine, lmr, never.get_token()));
            mine.spawn(move_bytes(mine, lmr, 64));
        }
        CHECK(mine.run(value_at(mine, lmr, 8)) == 0);
    }
    // Only the new server takes a request: the receives of the old executor are gone.
    int ended = 0;
    ex.spawn(serve(ex, words, 1));
    ex.run(call_all(ex, words.number(), 1, ended));
    CHECK(ended == 1);
}
