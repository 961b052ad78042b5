// SPDX-License-Identifier: MIT
// Coroutines that call, send, and serve; and requests without an answer.
#include "async_fixture.hpp"

#include <stdexcept>

using namespace lite_test;
using std::chrono::milliseconds;

namespace {

lite::task<> answer(lite::executor& ex, const lite::function& words, int rounds) {
    for (int i = 0; i < rounds; i++) {
        Word word{};
        auto request = co_await ex.receive(words, std::as_writable_bytes(std::span(word)));
        word[0]++;
        co_await ex.reply(request, 7, bytes_of(word));
    }
}

// Takes a message, and checks that it is one.
lite::task<std::uint64_t> message_for(lite::executor& ex, const lite::function& words) {
    Word word{};
    auto request = co_await ex.receive(words, std::as_writable_bytes(std::span(word)));
    expect_equal(request.flags, LITE_RPC_REQ_ONEWAY, "flags of a message");
    // A message has no answer: this reply sends nothing.
    co_await ex.reply(request, 0, {});
    co_return word[0];
}

lite::task<> take_and_throw(lite::executor& ex, const lite::function& words) {
    Word word{};
    const auto request = co_await ex.receive(words, std::as_writable_bytes(std::span(word)));
    throw std::runtime_error("in between");
}

lite::task<> take_and_wait(lite::executor& ex, const lite::function& words, bool& taken) {
    Word word{};
    const auto request = co_await ex.receive(words, std::as_writable_bytes(std::span(word)));
    taken = true;
    co_await ex.sleep(std::chrono::hours(1));
}

// A call beside the executor, and how it ends.
struct Call {
    explicit Call(lite::context& by, std::uint32_t function) : node(by) {
        const Word word{1};
        expect_equal(lite_rpc_start(node.get(), 0, function, word.data(), sizeof(word), 64,
                                    LITE_TIMEOUT_MAX, 1),
                     0, "begin a call");
    }

    int end() const {
        std::array<std::byte, 64> reply{};
        lite_rpc_result result{};
        const int err = lite_rpc_collect(node.get(), reply.data(), reply.size(),
                                         static_cast<int>(patience().count()), &result);
        return err ? err : result.error;
    }

    lite::context& node;
};

}  // namespace

TEST_CASE_METHOD(Async, "async: functions are found, and called on several nodes", "[uring]") {
    const std::string name = unique_name("f").substr(0, LITE_FUNCTION_NAME_MAX);
    lite::function named(node, {.name = name, .mode = 0600, .max_request = 8, .max_reply = 64});
    CHECK(ex.run(ex.find_function(0, name)) == named.number());
    CHECK(ex.run(ex.find_function(env().self, name)) == named.number());
    CHECK(ex.run(errno_of(ex.find_function(0, "nobody-serves-this"))) == ECONNREFUSED);
    ex.spawn(answer(ex, named, 4));
    // One of the nodes serves; the other does not, or is the same.
    std::vector<std::uint32_t> nodes{0, env().self};
    const Word word{41};
    const auto replies = ex.run(ex.multicall(nodes, named.number(), bytes_of(word)));
    REQUIRE(replies.size() == 2);
    for (std::size_t i = 0; i < 2; i++) {
        CHECK(replies[i].node == nodes[i]);
        CHECK(replies[i].error == 0);
        CHECK(replies[i].status == 7);
        REQUIRE(replies[i].bytes.size() == 8);
        CHECK(std::to_integer<int>(replies[i].bytes[0]) == 42);
    }
    if (!env().remote.empty())
        nodes[1] = env().peer();
    else
        nodes.pop_back();
    const auto some = ex.run(ex.multicall(nodes, named.number(), bytes_of(word), 1));
    CHECK(some[0].error == 0);
    if (nodes.size() > 1)
        CHECK((some[1].error == -ECONNREFUSED || some[1].error == -ECANCELED));
    CHECK(ex.run(errno_of(ex.multicall(nodes, named.number(), bytes_of(word), 3))) == EINVAL);
    std::vector<std::uint32_t> many(LITE_RPC_LEGS_MAX + 1);
    CHECK(ex.run(errno_of(ex.multicall(many, named.number(), bytes_of(word)))) == EINVAL);
}

TEST_CASE_METHOD(Async, "async: messages", "[uring]") {
    const Word first{5};
    const Word second{6};
    ex.run(ex.send(0, words.number(), bytes_of(first)));
    ex.run(ex.send(0, words.number(), bytes_of(second), patience()));
    CHECK(ex.run(message_for(ex, words)) == 5);
    CHECK(ex.run(message_for(ex, words)) == 6);
    CHECK(ex.run(errno_of(ex.send(0, 60000, bytes_of(first)))) == ECONNREFUSED);
    const std::vector<std::byte> nine(9);
    CHECK(ex.run(errno_of(ex.send(0, words.number(), nine))) == E2BIG);
}

TEST_CASE_METHOD(Async, "async: time-outs and stopping of calls and requests", "[uring]") {
    Word word{};
    const auto room = std::as_writable_bytes(std::span(word));
    CHECK(ex.run(errno_of(ex.receive(words, room, lite::no_wait))) == EAGAIN);
    const auto begun = std::chrono::steady_clock::now();
    CHECK(ex.run(errno_of(ex.receive(words, room, soon))) == ETIMEDOUT);
    CHECK(std::chrono::steady_clock::now() - begun >= soon);
    CHECK(ex.run(errno_of(ex.call(0, words.number(), bytes_of(word), 64, soon))) == ETIMEDOUT);
    const std::array nodes{0U};
    const auto replies = ex.run(ex.multicall(nodes, words.number(), bytes_of(word), 0, 64, soon));
    CHECK(replies.at(0).error == -ETIMEDOUT);
    CHECK(errno_when_stopped(ex, [&](std::stop_token stop) {
              return ex.call(0, words.number(), bytes_of(word), 64, std::chrono::minutes(5), stop);
          }) == ECANCELED);
    CHECK(errno_when_stopped(ex, [&](std::stop_token stop) {
              return ex.multicall(nodes, words.number(), bytes_of(word), 0, 64,
                                  std::chrono::minutes(5), stop);
          }) == ECANCELED);
    // A request of a caller that has just given up may still be there.
    while (ex.run(errno_of(ex.receive(words, room, lite::no_wait))) != EAGAIN) {
    }
    CHECK(errno_when_stopped(ex, [&](std::stop_token stop) {
              return ex.receive(words, room, lite::default_timeout, stop);
          }) == ECANCELED);
    CHECK(errno_when_stopped(ex, [&](std::stop_token stop) {
              return ex.receive(words, room, std::chrono::minutes(5), stop);
          }) == ECANCELED);
    std::stop_source stop;
    stop.request_stop();
    CHECK(ex.run(errno_of(ex.send(0, words.number(), bytes_of(word), lite::default_timeout,
                                  stop.get_token()))) == ECANCELED);
    // None of the stopped receives takes this call.
    int rounds = 1;
    ex.spawn(answer(ex, words, rounds));
    CHECK(ex.run(ex.call(0, words.number(), bytes_of(word))).status == 7);
}

TEST_CASE_METHOD(Async, "async: a buffer that is too small is refused at once", "[uring]") {
    std::array<std::byte, 7> small{};
    std::array<std::byte, 8> enough{};
    // No request is there, and the size is known to be too small: so it does not wait.
    CHECK(ex.run(errno_of(ex.receive(words, small))) == EINVAL);
    CHECK(ex.run(errno_of(ex.receive(words, enough, soon))) == ETIMEDOUT);
    CHECK(ex.run(errno_of(ex.receive(words, small))) == EINVAL);
    // So no caller can send a request that is never taken.
    ex.spawn(answer(ex, words, 1));
    const std::vector<std::byte> nine(9);
    CHECK(ex.run(errno_of(ex.call(0, words.number(), nine))) == E2BIG);
    CHECK(ex.run(ex.call(0, words.number(), enough)).status == 7);
    // For receive() of any function, the size is not known before.
    Call call(node, words.number());
    CHECK(ex.run(errno_of(ex.receive(0, small))) == EMSGSIZE);
    {
        const auto request = ex.run(ex.receive(0, enough));
        CHECK(request.length == 8);
    }
    CHECK(call.end() == -ECONNRESET);
    CHECK(ex.run(errno_of(ex.receive(60000, small))) == ENOENT);
}

TEST_CASE_METHOD(Async, "async: the number of a function is registered again", "[uring]") {
    std::array<std::byte, 64> buffer{};
    const std::uint32_t number = 2000 + env().self;
    {
        lite::function long_ones(node, {.number = number, .mode = 0600, .max_request = 64});
        CHECK(ex.run(errno_of(ex.receive(long_ones, buffer, soon))) == ETIMEDOUT);
    }
    lite::function short_ones(node, {.number = number, .mode = 0600, .max_request = 8});
    CHECK(ex.run(errno_of(ex.receive(short_ones, std::span(buffer).first(8), soon))) == ETIMEDOUT);
    CHECK(ex.run(errno_of(ex.receive(short_ones, std::span(buffer).first(7), soon))) == EINVAL);
}

TEST_CASE_METHOD(Async, "async: an exception gives a request up", "[uring]") {
    Call call(node, words.number());
    CHECK_THROWS_WITH(ex.run(take_and_throw(ex, words)), "in between");
    CHECK(call.end() == -ECONNRESET);
}

TEST_CASE_METHOD(Async, "async: an executor's end gives its request up", "[uring]") {
    std::optional<lite::executor> mine(std::in_place, node);
    bool taken = false;
    mine->spawn(take_and_wait(*mine, words, taken));
    Call call(node, words.number());
    while (!taken)
        mine->run(mine->sleep(milliseconds(10)));
    mine.reset();
    CHECK(call.end() == -ECONNRESET);
}

TEST_CASE_METHOD(Async, "async: a request that no coroutine gets is given up", "[uring]") {
    std::optional<lite::executor> mine(std::in_place, node);
    bool taken = false;
    mine->spawn(take_and_wait(*mine, words, taken));
    mine->run(mine->sleep(a_while()));
    // The receive waits in the kernel; the executor does not run when it ends.
    Call call(node, words.number());
    std::this_thread::sleep_for(a_while());
    mine.reset();
    CHECK_FALSE(taken);
    CHECK(call.end() == -ECONNRESET);
}

TEST_CASE_METHOD(Async, "async: answers", "[uring]") {
    Call call(node, words.number());
    Word word{};
    auto request = ex.run(ex.receive(words, std::as_writable_bytes(std::span(word))));
    const std::vector<std::byte> too_long(65);
    // After an error the request can still be answered.
    CHECK(ex.run(errno_of(ex.reply(request, 0, too_long))) == E2BIG);
    std::stop_source stop;
    stop.request_stop();
    CHECK(ex.run(errno_of(ex.reply(request, 0, {}, stop.get_token()))) == ECANCELED);
    CHECK(request.token != 0);
    ex.run(ex.reply(request, 0, {}));
    CHECK(request.token == 0);
    CHECK(call.end() == 0);
    // Answered without the request's object.
    Call other(node, words.number());
    const auto info = ex.run(ex.receive(words, std::as_writable_bytes(std::span(word)))).release();
    ex.run(ex.reply(info, 0, {}));
    CHECK(other.end() == 0);
    // A missing caller is no error.
    ex.run(ex.reply(info, 0, {}));
}
