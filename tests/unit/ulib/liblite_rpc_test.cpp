// SPDX-License-Identifier: MIT
//
// Calls and their time-outs: the requests of liblite, on a device that records them.

#include "context.hpp"

#include "error_of.hpp"

#include <lite/rpc.hpp>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace {

// A device that answers each ioctl with a function.
class scripted final : public lite::internal::device {
  public:
    explicit scripted(std::function<int(unsigned long, void*)> answer)
        : m_answer(std::move(answer)) {}
    int control(unsigned long request, void* arg) noexcept override {
        return m_answer(request, arg);
    }
    int fd() const noexcept override { return -1; }

  private:
    std::function<int(unsigned long, void*)> m_answer;
};

lite::context on(std::function<int(unsigned long, void*)> answer) {
    return lite::context::adopt(
        lite::internal::make_context(std::make_unique<scripted>(std::move(answer))));
}

template <typename T>
T& as(void* arg) {
    return *static_cast<T*>(arg);
}

}  // namespace

TEST_CASE("rpc: a call, its time-outs, and its results", "[liblite]") {
    lite_ioc_rpc_call seen{};
    int result = 0;
    auto ctx = on([&](unsigned long request, void* arg) {
        REQUIRE(request == LITE_IOC_RPC_CALL);
        seen = as<lite_ioc_rpc_call>(arg);
        as<lite_ioc_rpc_call>(arg).reply_len = 5;
        as<lite_ioc_rpc_call>(arg).status = 9;
        return result;
    });
    char reply[8];
    std::size_t length = 0;
    std::uint32_t status = 0;
    CHECK(lite_rpc_call(ctx.get(), 3, 77, "abc", 3, reply, 8, &length, LITE_TIMEOUT_DEFAULT,
                        &status) == 0);
    CHECK(seen.size == sizeof(seen));
    CHECK(seen.node == 3);
    CHECK(seen.function == 77);
    CHECK(seen.request_len == 3);
    CHECK(seen.reply_room == 8);
    CHECK(seen.timeout_ms == LITE_TIMEOUT_DEFAULT);
    CHECK(seen.flags == 0);
    CHECK(length == 5);
    CHECK(status == 9);
    CHECK(lite_rpc_call(ctx.get(), 3, 77, "abc", 3, reply, 8, &length, 0, &status) == 0);
    CHECK((seen.flags == 0 && seen.timeout_ms == LITE_NOWAIT));
    CHECK(lite_rpc_call(ctx.get(), 3, 77, "abc", 3, reply, 8, &length, 20, &status) == 0);
    CHECK(seen.flags == 0);
    CHECK(seen.timeout_ms == 20);
    // The library passes invalid time-outs on: the kernel refuses them.
    for (const int timeout : {LITE_FOREVER, LITE_TIMEOUT_MAX + 1, -3}) {
        CHECK(lite_rpc_call(ctx.get(), 3, 77, "abc", 3, reply, 8, &length, timeout, &status) == 0);
        CHECK(seen.timeout_ms == timeout);
    }

    result = -EMSGSIZE;
    length = status = 0;
    CHECK(lite_rpc_call(ctx.get(), 3, 77, "abc", 3, reply, 1, &length, -1, &status) == -EMSGSIZE);
    CHECK(length == 5);
    CHECK(status == 0);
    result = -ECONNRESET;
    length = 0;
    CHECK(lite_rpc_call(ctx.get(), 3, 77, "abc", 3, reply, 1, &length, -1, &status) == -ECONNRESET);
    CHECK(length == 0);

    result = 0;
    CHECK(lite_rpc_send(ctx.get(), 3, 77, "abc", 3, 0) == 0);
    CHECK((seen.flags == LITE_RPC_ONEWAY && seen.timeout_ms == LITE_NOWAIT));
    CHECK(lite_rpc_start(ctx.get(), 3, 77, "abc", 3, 100, -1, 4711) == 0);
    CHECK(seen.flags == LITE_RPC_ASYNC);
    CHECK(seen.cookie == 4711);
    CHECK(seen.reply_room == 100);
}

namespace {

// The calls of a group. Those with an odd cookie fail with @error.
struct group {
    explicit group(int fails_with) : error(fails_with) {}

    int operator()(unsigned long request, void* arg) {
        if (request == LITE_IOC_RPC_CALL) {
            const auto& call = as<lite_ioc_rpc_call>(arg);
            calls.push_back(call);
            if (!begins)
                under_way.push_back(call);
            return begins;
        }
        REQUIRE(request == LITE_IOC_RPC_COLLECT);
        auto& collect = as<lite_ioc_rpc_collect>(arg);
        CHECK(collect.group == calls.at(0).group);
        if (collect.flags == LITE_RPC_CANCEL) {
            cancelled += under_way.size();
            under_way.clear();
            return 0;
        }
        CHECK(collect.flags == LITE_RPC_INTO);
        if (!interrupted++)
            return -EINTR;
        REQUIRE(!under_way.empty());
        const auto ended = under_way.front();
        under_way.pop_front();
        collect.cookie = ended.cookie;
        collect.error = ended.cookie % 2 ? error : 0;
        collect.reply_len = 3;
        collect.status = static_cast<std::uint32_t>(ended.cookie);
        if (!collect.error)
            std::memcpy(reinterpret_cast<void*>(ended.reply), "yes", 3);
        return 0;
    }

    int error;
    int begins = 0;
    int interrupted = 0;
    std::vector<lite_ioc_rpc_call> calls;
    std::deque<lite_ioc_rpc_call> under_way;
    std::size_t cancelled = 0;
};

}  // namespace

TEST_CASE("rpc: one call to several nodes", "[liblite]") {
    group kernel(-ECONNRESET);
    auto ctx = on([&](unsigned long request, void* arg) { return kernel(request, arg); });
    char reply[3][8];
    lite_rpc_leg asked[3] = {};
    for (std::uint32_t i = 0; i < 3; i++) {
        asked[i].node = 5 + i;
        asked[i].function = i;
        asked[i].reply = reply[i];
        asked[i].room = 8;
    }
    const auto call = [&](std::size_t quorum, int timeout_ms) {
        kernel.calls.clear();
        kernel.cancelled = 0;
        return lite_rpc_multicall(ctx.get(), 77, "abc", 3, asked, 3, quorum, timeout_ms);
    };
    CHECK(call(0, 20) == 2);
    REQUIRE(kernel.calls.size() == 3);
    for (const auto& begun : kernel.calls) {
        CHECK(begun.flags == (LITE_RPC_ASYNC | LITE_RPC_QUEUE));
        // Programs use groups below 2^31.
        CHECK((begun.group >> 31 && begun.group == kernel.calls[0].group));
        CHECK((begun.timeout_ms == 20 && begun.request_len == 3 && begun.reply_room == 8));
    }
    CHECK((kernel.calls[0].function == 77 && kernel.calls[0].node == 5));
    CHECK((kernel.calls[1].function == 1 && kernel.calls[1].node == 6));
    CHECK(kernel.cancelled == 0);
    CHECK((asked[0].error == 0 && asked[0].length == 3 && asked[0].status == 0));
    CHECK((asked[1].error == -ECONNRESET && asked[1].length == 0 && asked[1].status == 0));
    CHECK((asked[2].error == 0 && asked[2].status == 2));

    // A quorum of one ends with the first reply; a quorum of three is out of reach.
    CHECK(call(1, 0) == 1);
    CHECK(kernel.calls[0].timeout_ms == LITE_NOWAIT);
    CHECK(kernel.cancelled == 2);
    CHECK((asked[0].error == 0 && asked[1].error == -ECANCELED && asked[2].error == -ECANCELED));
    CHECK(call(3, -1) == 1);
    CHECK(kernel.cancelled == 1);

    kernel.error = -EMSGSIZE;
    CHECK(call(0, -1) == 2);
    CHECK((asked[1].error == -EMSGSIZE && asked[1].length == 3));
    // The library calls again, as another process may serve the function by now.
    kernel.error = -ECONNREFUSED;
    CHECK(call(0, 20000) == 2);
    CHECK(kernel.calls.size() == 6);
    CHECK((kernel.calls[5].cookie == 1 && kernel.calls[5].timeout_ms <= 20000));
    CHECK(asked[1].error == -ECONNREFUSED);

    const auto replies = lite::multicall(ctx, std::vector<std::uint32_t>{4, 9}, 78, {}, 1, 16);
    REQUIRE(replies.size() == 2);
    CHECK(replies[0].node == 4);
    CHECK(replies[0].bytes.size() == 3);
    CHECK(replies[1].error == -ECANCELED);
    CHECK(replies[1].bytes.empty());

    // An error of a leg, and an error of the whole call.
    kernel.begins = -ENOMEM;
    CHECK(call(0, -1) == 0);
    CHECK((asked[0].error == -ENOMEM && asked[2].error == -ENOMEM));
    kernel.begins = -EFAULT;
    CHECK(call(0, -1) == -EFAULT);
    CHECK(kernel.calls.size() == 1);
}

TEST_CASE("rpc: a call to several nodes that makes no sense", "[liblite]") {
    auto ctx = on([&](unsigned long, void*) { return -EIO; });
    lite_rpc_leg asked[3] = {};
    const auto call = [&](std::uint32_t function, std::size_t length, std::size_t n,
                          std::size_t quorum) {
        return lite_rpc_multicall(ctx.get(), function, "abc", length, asked, n, quorum, -1);
    };
    CHECK(call(77, 3, 0, 0) == -EINVAL);
    CHECK(call(77, 3, 3, 4) == -EINVAL);
    CHECK(call(77, 3, LITE_RPC_LEGS_MAX + 1, 0) == -EINVAL);
    CHECK(call(0, 3, 3, 0) == -EINVAL);
    CHECK(call(LITE_FUNCTION_MAX + 1, 3, 3, 0) == -EINVAL);
    CHECK(call(77, LITE_RPC_BULK_MAX + std::size_t{1}, 3, 0) == -E2BIG);
    asked[2].node = LITE_NODE_ID_MAX + 1;
    CHECK(call(77, 3, 3, 0) == -EINVAL);
}

TEST_CASE("rpc: one call answers a request and takes the next", "[liblite]") {
    lite_ioc_rpc_recv seen{};
    int result = 0;
    auto ctx = on([&](unsigned long request, void* arg) {
        REQUIRE(request == LITE_IOC_RPC_RECV);
        seen = as<lite_ioc_rpc_recv>(arg);
        auto& out = as<lite_ioc_rpc_recv>(arg);
        out.answered = seen.flags & LITE_RPC_REPLY ? 1 : 0;
        out.token = result ? 0 : 55;
        out.length = 7;
        out.node = 2;
        return result;
    });
    char buffer[16];
    lite_rpc_request request{};
    CHECK(lite_rpc_recv(ctx.get(), 9, buffer, sizeof(buffer), -1, &request) == 0);
    CHECK(seen.flags == 0);
    CHECK(seen.function == 9);
    CHECK(request.token == 55);
    CHECK(request.length == 7);
    CHECK(request.node == 2);
    CHECK(lite_rpc_reply_recv(ctx.get(), &request, 3, "ok", 2, 0, buffer, sizeof(buffer), 0) == 0);
    CHECK((seen.flags == LITE_RPC_REPLY && seen.timeout_ms == LITE_NOWAIT));
    CHECK(seen.token == 55);
    CHECK(seen.reply_len == 2);
    CHECK(seen.status == 3);
    // The request was answered: the token is cleared, so that it is not answered again.
    result = -ETIMEDOUT;
    CHECK(lite_rpc_reply_recv(ctx.get(), &request, 3, "ok", 2, 0, buffer, sizeof(buffer), 10) ==
          -ETIMEDOUT);
    CHECK(request.token == 0);
    CHECK(lite_rpc_reply(ctx.get(), 55, 1, "no", 2) == -ETIMEDOUT);
    CHECK(seen.flags == LITE_RPC_REPLY_ONLY);
}

TEST_CASE("rpc: a request is given back without an answer", "[liblite]") {
    lite_ioc_rpc_recv seen{};
    auto ctx = on([&](unsigned long request, void* arg) {
        REQUIRE(request == LITE_IOC_RPC_RECV);
        seen = as<lite_ioc_rpc_recv>(arg);
        return -ENOENT;
    });
    CHECK(lite_rpc_done(ctx.get(), 4711) == -ENOENT);
    CHECK(seen.size == sizeof(seen));
    CHECK(seen.flags == (LITE_RPC_REPLY_ONLY | LITE_RPC_DROP));
    CHECK(seen.token == 4711);
}

TEST_CASE("rpc: the parameters of a registration", "[liblite]") {
    lite_ioc_rpc_register seen{};
    auto ctx = on([&](unsigned long request, void* arg) {
        if (request == LITE_IOC_RPC_UNREGISTER)
            return 0;
        REQUIRE(request == LITE_IOC_RPC_REGISTER);
        seen = as<lite_ioc_rpc_register>(arg);
        as<lite_ioc_rpc_register>(arg).function = 40000;
        return 0;
    });
    {
        const lite::function served(ctx, {.name = "name", .mode = 0640, .shared = true});
        CHECK(served.number() == 40000);
    }
    CHECK(std::string(seen.name) == "name");
    CHECK(seen.mode == 0640);
    CHECK(seen.flags == LITE_RPC_SHARED);
    CHECK(seen.max_request == 4096);
    struct {
        lite_rpc_params params{};
        std::uint32_t more = 0;
    } longer;
    longer.params.size = sizeof(longer);
    CHECK(lite_rpc_register(ctx.get(), &longer.params, nullptr) == 0);
    longer.more = 1;
    CHECK(lite_rpc_register(ctx.get(), &longer.params, nullptr) == -E2BIG);
    longer.params.size = sizeof(lite_rpc_params) - 1;
    CHECK(lite_rpc_register(ctx.get(), &longer.params, nullptr) == -EINVAL);
    const std::string name(LITE_FUNCTION_NAME_SIZE, 'x');
    longer.params = {};
    longer.params.size = sizeof(lite_rpc_params);
    longer.params.name = name.c_str();
    CHECK(lite_rpc_register(ctx.get(), &longer.params, nullptr) == -ENAMETOOLONG);
}

TEST_CASE("rpc: lite::function serves until it is told to end", "[lite.hpp]") {
    // The results of RECV, in order: the length of a request, or a negative errno.
    std::vector<int> finds{3, -ETIMEDOUT, -EINTR, 0, 2};
    std::vector<std::string> answers;
    std::vector<std::uint32_t> statuses;
    std::uint64_t taken = 0;
    std::size_t at = 0;
    bool registered = false;
    auto ctx = on([&](unsigned long request, void* arg) {
        registered =
            registered ? request != LITE_IOC_RPC_UNREGISTER : request == LITE_IOC_RPC_REGISTER;
        if (request != LITE_IOC_RPC_RECV)
            return 0;
        auto& r = as<lite_ioc_rpc_recv>(arg);
        if (r.flags & (LITE_RPC_REPLY | LITE_RPC_REPLY_ONLY)) {
            CHECK(r.token == taken);
            answers.emplace_back(reinterpret_cast<const char*>(r.reply), r.reply_len);
            statuses.push_back(r.status);
            r.answered = 1;
        }
        r.token = 0;
        if (r.flags & LITE_RPC_REPLY_ONLY)
            return 0;
        CHECK(r.buf_len == 16);
        const int found = finds.at(at++);
        if (found < 0)
            return found;
        std::memset(reinterpret_cast<void*>(r.buf), 'x', static_cast<std::size_t>(found));
        r.length = static_cast<std::uint32_t>(found);
        r.token = taken = 100 + at;
        return 0;
    });
    const auto twice = [](const lite::call_info& info, std::span<const std::byte> in,
                          std::vector<std::byte>& out) {
        CHECK(out.empty());
        CHECK(info.length == in.size());
        out.assign(in.begin(), in.end());
        out.insert(out.end(), in.begin(), in.end());
        return static_cast<std::uint32_t>(in.size());
    };
    {
        lite::function served(ctx, {.max_request = 16, .max_reply = 32});
        served.serve(twice, [&] { return at < finds.size(); });
        // Each request was answered once, the last one before serve() returned.
        CHECK(answers == std::vector<std::string>{"xxxxxx", "", "xxxx"});
        CHECK(statuses == std::vector<std::uint32_t>{3, 0, 2});
        lite::function moved(std::move(served));
        CHECK(registered);
    }
    CHECK_FALSE(registered);

    lite::function served(ctx, {.max_request = 16});
    finds = {-ENOENT};
    at = 0;
    CHECK_THROWS_AS(served.serve(twice), lite::error);
}

namespace {

// A kernel with requests for one function, one after the other: three bytes each, with the tokens
// 1, 2, ...
struct requests {
    std::uint64_t left = 0;
    std::uint32_t flags = 0;
    // Results of RECV, each used once: before it takes an answer, and before it gives a request.
    std::vector<int> to_answers;
    std::vector<int> to_takers;
    std::vector<std::uint64_t> answered;
    std::vector<std::uint64_t> given_back;
    std::uint64_t taken = 0;
    std::uint32_t length = 0;  // of the last answer

    static int next(std::vector<int>& results) {
        if (results.empty())
            return 0;
        const int result = results.front();
        results.erase(results.begin());
        return result;
    }

    int operator()(unsigned long request, void* arg) {
        if (request != LITE_IOC_RPC_RECV)
            return 0;
        auto& r = as<lite_ioc_rpc_recv>(arg);
        if (r.flags & LITE_RPC_DROP) {
            given_back.push_back(r.token);
            return 0;
        }
        if (r.flags & (LITE_RPC_REPLY | LITE_RPC_REPLY_ONLY)) {
            if (const int result = next(to_answers))
                return result;
            answered.push_back(r.token);
            length = r.reply_len;
            r.answered = 1;
        }
        if (r.flags & LITE_RPC_REPLY_ONLY)
            return 0;
        if (const int result = next(to_takers))
            return result;
        if (!left)
            return -ETIMEDOUT;
        left--;
        r.length = 3;
        r.req_flags = flags;
        taken++;
        r.token = flags & LITE_RPC_REQ_ONEWAY ? 0 : taken;
        return 0;
    }
};

using tokens = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("rpc: lite::function gives back requests that it does not answer", "[lite.hpp]") {
    requests kern{.left = 3};
    auto ctx = on(std::ref(kern));
    lite::function served(ctx, {.max_request = 16, .max_reply = 4});
    std::uint64_t calls = 0;
    const auto serve = [&](std::size_t reply) {
        served.serve(
            [&](const lite::call_info&, std::span<const std::byte>, std::vector<std::byte>& out) {
                out.resize(reply);
                if (++calls == 2)
                    throw std::length_error("mine");
                return 0U;
            },
            [&] { return calls < 3; });
    };
    // The first reply is too long; the handler of the second request throws.
    const auto too_long = error_of([&] { serve(5); });
    CHECK(too_long.code().value() == E2BIG);
    CHECK(std::string(too_long.what()).starts_with("answer a request: "));
    CHECK(kern.given_back == tokens{1});
    CHECK_THROWS_AS(serve(4), std::length_error);
    CHECK(kern.given_back == tokens{1, 2});
    // serve() goes on with the third request.
    serve(4);
    CHECK(kern.answered == tokens{3});
    CHECK(kern.length == 4);
    CHECK(kern.given_back == tokens{1, 2});

    // The reply to a message is ignored, so its length does not matter.
    kern.left = 1;
    kern.flags = LITE_RPC_REQ_ONEWAY;
    calls = 2;
    serve(5);
    CHECK(calls == 3);
    CHECK(kern.answered == tokens{3});
    CHECK(kern.given_back == tokens{1, 2});

    // The last request is given back if the answer fails.
    kern.left = 1;
    kern.flags = 0;
    calls = 2;
    kern.to_answers = {-EIO};
    CHECK_THROWS_AS(serve(1), lite::error);
    CHECK(kern.given_back == tokens{1, 2, kern.taken});
}

TEST_CASE("rpc: lite::function survives a shortage of memory", "[lite.hpp]") {
    requests kern{.left = 3};
    auto ctx = on(std::ref(kern));
    lite::function served(ctx, {.max_request = 16});
    std::uint64_t calls = 0;
    std::uint64_t asked = 0;
    std::uint64_t last = 3;
    const auto serve = [&] {
        served.serve(
            [&](const lite::call_info&, std::span<const std::byte> in,
                std::vector<std::byte>& out) {
                calls++;
                out.assign(in.begin(), in.end());
                return 0U;
            },
            [&] {
                asked++;
                return calls < last;
            });
    };
    // Memory is short for taking a request, for an answer, and for the last answer.
    kern.to_takers = {-ENOMEM, -ENOMEM, 0, 0, -ENOMEM};
    kern.to_answers = {-ENOMEM, -ENOMEM, 0, 0, -ENOMEM, -ENOMEM};
    const auto begun = std::chrono::steady_clock::now();
    serve();
    CHECK(kern.answered == tokens{1, 2, 3});
    CHECK(calls == 3);
    CHECK(kern.given_back.empty());
    // Before each attempt serve() asks whether to go on; it pauses between attempts.
    CHECK(asked == 4 + 5);
    CHECK(std::chrono::steady_clock::now() - begun >= 7 * lite::detail::memory_pause);

    // When it is to end, it gives up after some attempts.
    kern.left = 1;
    last = 4;
    kern.to_takers.clear();
    kern.to_answers.assign(10 * lite::detail::memory_tries, -ENOMEM);
    const auto e = error_of(serve);
    CHECK(e.code().value() == ENOMEM);
    CHECK(kern.given_back == tokens{4});
}

TEST_CASE("rpc: errors have the words of functions", "[lite.hpp]") {
    int result = -EEXIST;
    auto ctx = on([&](unsigned long, void*) { return result; });
    const auto taken = error_of([&] { const lite::function f(ctx, {.name = "f"}); });
    CHECK(std::string(taken.what()) == "serve a function: its number or name is taken");
    CHECK(taken.code() == std::errc::file_exists);
    CHECK(std::string(taken.code().category().name()) == "lite-rpc");
    result = -E2BIG;
    CHECK(std::string(error_of([&] { lite::call(ctx, 3, 7, {}); }).what()) ==
          "call a function: longer than the function's requests, or replies, may be");
}

TEST_CASE("rpc: lite::call, lite::send and lite::find_function", "[lite.hpp]") {
    lite_ioc_rpc_call seen{};
    int result = 0;
    auto ctx = on([&](unsigned long request, void* arg) {
        if (request == LITE_IOC_RPC_FIND) {
            CHECK(as<lite_ioc_rpc_find>(arg).node == 3);
            CHECK(std::string(as<lite_ioc_rpc_find>(arg).name) == "name");
            as<lite_ioc_rpc_find>(arg).function = 4711;
            return result;
        }
        seen = as<lite_ioc_rpc_call>(arg);
        as<lite_ioc_rpc_call>(arg).reply_len = result ? 5000 : 2;
        as<lite_ioc_rpc_call>(arg).status = 7;
        if (!result && seen.reply)
            std::memcpy(reinterpret_cast<void*>(seen.reply), "ok", 2);
        return result;
    });
    const std::string text = "request";
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    CHECK(lite::find_function(ctx, 3, "name") == 4711);
    const auto reply = lite::call(ctx, 3, 4711, bytes, 100, std::chrono::seconds(2));
    CHECK(reply.bytes == std::vector<std::byte>{std::byte{'o'}, std::byte{'k'}});
    CHECK(reply.status == 7);
    CHECK(seen.request_len == text.size());
    CHECK(seen.reply_room == 100);
    CHECK(seen.timeout_ms == 2000);
    lite::call(ctx, 3, 4711, bytes, 100, std::chrono::hours(24));
    CHECK(seen.timeout_ms == LITE_TIMEOUT_MAX);
    lite::send(ctx, 3, 4711, bytes);
    CHECK(seen.flags == LITE_RPC_ONEWAY);
    CHECK(seen.timeout_ms == LITE_TIMEOUT_DEFAULT);
    result = -EMSGSIZE;
    CHECK_THROWS_AS(lite::call(ctx, 3, 4711, bytes), lite::error);
    CHECK_THROWS_AS(lite::find_function(ctx, 3, "name"), lite::error);
}
