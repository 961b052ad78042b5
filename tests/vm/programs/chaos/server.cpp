// SPDX-License-Identifier: MIT
// Processes that serve. A process lives through several terms: in each it registers its function,
// and unregisters it while requests come in.
#include "server.hpp"

#include "herd.hpp"

#include <lite/lite.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include <poll.h>
#include <unistd.h>

namespace lite_chaos {
namespace {

constexpr int kTick = 100;  // ms

struct Close {
    void operator()(lite_ctx* ctx) const { lite_close(ctx); }
};
using Context = std::unique_ptr<lite_ctx, Close>;

void check(int err, const std::string& doing) {
    if (err)
        throw Failure(doing + ": " + lite_strerror(err));
}

// The caller may have given up.
void check_answered(int err) {
    if (err != -ENOENT)
        check(err, "answer");
}

Context open_node(int index) {
    lite_ctx* ctx = nullptr;
    check(lite_open(index, &ctx), "open");
    return Context(ctx);
}

u32 node_of(lite_ctx* ctx) {
    lite_ioc_query query{};
    check(lite_query(ctx, &query), "query");
    return query.node_id;
}

class Server {
  public:
    Server(const ServerOptions& options, u32 function, u64 seed)
        : options_(options),
          function_(function),
          book_(options.books + "/served"),
          random_(seed),
          ctx_(open_node(options.index)),
          node_(node_of(ctx_.get())) {}

    void run() {
        for (;;) {
            term();
            if (random_() % 2 == 0)
                ctx_ = open_node(options_.index);
        }
    }

  private:
    void term();
    void take_part(u64 seed);
    void by_calls(std::mt19937_64& random);
    void count();
    // Does what the request asks for besides an answer; returns whether to answer it.
    bool consider(const lite_rpc_request& request, std::span<const std::byte> bytes);

    const ServerOptions& options_;
    const u32 function_;
    const Book book_;
    std::mt19937_64 random_;
    Context ctx_;
    const u32 node_;
    std::atomic<int> left_ = 0;  // requests of this term
    std::mutex mutex_;
    std::exception_ptr failure_;
};

void Server::term() {
    lite_rpc_params params{};
    params.size = sizeof(params);
    params.function = function_;
    params.flags = function_ == kAlone ? 0 : LITE_RPC_SHARED;
    params.mode = 0666;
    params.max_request = params.max_reply = most_of(function_);
    check(lite_rpc_register(ctx_.get(), &params, nullptr), "register");
    constexpr int kFewest = 20;
    constexpr int kMore = 300;
    left_ = kFewest + static_cast<int>(random_() % kMore);
    constexpr int kThreads = 3;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([this, seed = random_()] { take_part(seed); });
    for (auto& thread : threads)
        thread.join();
    if (failure_)
        std::rethrow_exception(failure_);
}

void Server::take_part(u64 seed) {
    std::mt19937_64 random(seed);
    try {
        by_calls(random);
    } catch (...) {
        const std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
        // The other threads must end, too, unless they have ended already.
        lite_rpc_unregister(ctx_.get(), function_);
    }
}

// Ends the term for all threads if this was its last request.
void Server::count() {
    if (--left_ == 0)
        check(lite_rpc_unregister(ctx_.get(), function_), "unregister");
}

bool Server::consider(const lite_rpc_request& request, std::span<const std::byte> bytes) {
    const auto order = order_in(bytes);
    if (!order)
        return true;
    if (order->id >> kNodeShift != request.node)
        throw Failure("it is said to be another node's");
    book_.write(order->id, node_, function_);
    const auto before = digest(bytes);
    switch (order->wish) {
        case Wish::kDie:
            ::_exit(0);
        case Wish::kKeep:
            return false;
        case Wish::kLate:
        case Wish::kHang:
            std::this_thread::sleep_for(Milliseconds(order->delay_ms));
            break;
        case Wish::kAnswer:
            break;
    }
    if (digest(bytes) != before)
        throw Failure("a request has changed");
    return true;
}

void Server::by_calls(std::mt19937_64& random) {
    Bytes buffer(most_of(function_));
    Bytes reply;
    lite_rpc_request request{};
    for (;;) {
        if (request.token && random() % 2) {
            const int err =
                lite_rpc_reply(ctx_.get(), request.token, node_, reply.data(), reply.size());
            if (err == -ENOMEM)
                continue;
            check_answered(err);
            request.token = 0;
        }
        const int err = lite_rpc_reply_recv(ctx_.get(), &request, node_, reply.data(), reply.size(),
                                            function_, buffer.data(), buffer.size(), kTick);
        // Other calls may have taken the memory that is missing.
        if (err == -ETIMEDOUT || err == -ENOMEM)
            continue;
        if (err == -ENOENT)
            break;
        check(err, "take a request");
        const auto bytes = std::span(buffer).first(request.length);
        if (consider(request, bytes)) {
            answer(bytes, reply);
        } else {
            if (request.token && random() % 2)
                check_answered(lite_rpc_done(ctx_.get(), request.token));
            request.token = 0;
        }
        count();
    }
    if (request.token)
        check_answered(
            lite_rpc_reply(ctx_.get(), request.token, node_, reply.data(), reply.size()));
}

}  // namespace

int serve(const ServerOptions& options) {
    constexpr Milliseconds kPause{300};
    std::mt19937_64 random(options.seed);
    Herd herd(kPause * options.slowness * options.calm, random());
    // Each start adds to the seed, so that a process does not repeat the life of its predecessor.
    unsigned life = 0;
    for (const u32 function : {kAlone, kShared, kShared, kLong, kLong})
        herd.add([&options, &life, function, seed = random()] {
            Server(options, function, seed + life).run();
        });
    std::puts("serving");
    std::fflush(stdout);
    constexpr int kStep = 5;
    pollfd input{STDIN_FILENO, POLLIN, 0};
    while (::poll(&input, 1, kStep) == 0) {
        herd.tend();
        life = herd.starts();
    }
    std::printf("%u servers, %u killed\n", herd.starts(), herd.kills());
    return 0;
}

}  // namespace lite_chaos
