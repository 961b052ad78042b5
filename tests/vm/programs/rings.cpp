// SPDX-License-Identifier: MIT
// Many functions, for tests of what their rings cost.
//
//   rings serve --index I --first F --count N --ring-size B
//                        serves functions F..F+N-1 by echoes, says "serving", until its input ends
//   rings call --index I --node ID --first F --count N
//                        calls each of them once; prints a line with the result of each call, "ok"
//                        or the errno's name, and a line with the longest time of a call, in ms
#include "common/arguments.hpp"
#include "common/run_main.hpp"

#include <lite/lite.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <poll.h>
#include <unistd.h>

namespace {

struct Options {
    int index = 0;
    std::uint32_t node = 0;
    std::uint32_t first = 2000;
    std::uint32_t count = 1;
    std::uint32_t ring_size = 0;
};

constexpr std::uint32_t kMost = 1000;
using Buffer = std::array<std::byte, kMost>;

struct Close {
    void operator()(lite_ctx* ctx) const { lite_close(ctx); }
};
using Context = std::unique_ptr<lite_ctx, Close>;

void check(int err, const char* doing) {
    if (err)
        throw std::runtime_error(std::string(doing) + ": " + lite_strerror(err));
}

Context open_node(int index) {
    lite_ctx* ctx = nullptr;
    check(lite_open(index, &ctx), "open");
    return Context(ctx);
}

// As many open files as this number of functions needs.
std::vector<Context> enroll(const Options& options) {
    std::vector<Context> contexts;
    for (std::uint32_t i = 0; i < options.count; ++i) {
        if (i % LITE_RPC_FUNCTIONS_MAX == 0)
            contexts.push_back(open_node(options.index));
        lite_rpc_params params{};
        params.size = sizeof(params);
        params.function = options.first + i;
        params.mode = 0666;
        params.max_request = params.max_reply = kMost;
        params.ring_size = options.ring_size;
        check(lite_rpc_register(contexts.back().get(), &params, nullptr), "register");
    }
    return contexts;
}

void echo_all(lite_ctx* ctx) {
    Buffer buffer;
    lite_rpc_request request{};
    int err = 0;
    while ((err = lite_rpc_recv(ctx, 0, buffer.data(), buffer.size(), 0, &request)) == 0) {
        err = lite_rpc_reply(ctx, request.token, 0, buffer.data(), request.length);
        // The caller may be gone.
        if (err != -ENOENT)
            check(err, "answer");
    }
    if (err != -EAGAIN)
        check(err, "take a request");
}

int serve(const Options& options) {
    const auto contexts = enroll(options);
    std::vector<pollfd> fds{{STDIN_FILENO, POLLIN, 0}};
    for (const auto& ctx : contexts)
        fds.push_back({lite_fd(ctx.get()), POLLIN, 0});
    std::puts("serving");
    std::fflush(stdout);
    for (;;) {
        if (::poll(fds.data(), fds.size(), -1) < 0)
            throw std::runtime_error("poll");
        if (fds.front().revents)
            return 0;
        for (std::size_t i = 0; i < contexts.size(); ++i)
            if (fds[i + 1].revents)
                echo_all(contexts[i].get());
    }
}

int call(const Options& options) {
    using Clock = std::chrono::steady_clock;
    const auto ctx = open_node(options.index);
    Clock::duration longest{};
    for (std::uint32_t i = 0; i < options.count; ++i) {
        const auto function = options.first + i;
        std::uint32_t said = 0;
        std::size_t length = 0;
        const auto begun = Clock::now();
        const int err =
            lite_rpc_call(ctx.get(), options.node, function, &function, sizeof(function), &said,
                          sizeof(said), &length, LITE_TIMEOUT_DEFAULT, nullptr);
        longest = std::max(longest, Clock::now() - begun);
        if (!err && (length != sizeof(said) || said != function))
            throw std::runtime_error("the echo is wrong");
        std::printf("%s ", err ? ::strerrorname_np(-err) : "ok");
    }
    std::printf("\n%lld\n", static_cast<long long>(longest / std::chrono::milliseconds(1)));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    lite_test::Arguments line("Many functions.");
    Options options;
    auto serves = line.command("serve", "until standard input ends");
    auto calls = line.command("call", "each once");
    for (auto* sub : {&serves, &calls}) {
        sub->option("--index", &options.index, "the N of /dev/liteN");
        sub->option("--first", &options.first, "number of the first function");
        sub->option("--count", &options.count);
    }
    serves.option("--ring-size", &options.ring_size);
    calls.required("--node", &options.node);
    line.parse(argc, argv);
    return lite_test::run_main("rings", [&] { return serves ? serve(options) : call(options); });
}
