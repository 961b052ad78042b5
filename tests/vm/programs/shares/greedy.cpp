// SPDX-License-Identifier: MIT
// Two users of the same two nodes of one machine: a greedy one that takes all it gets, and one that
// works.
//
//   greedy take CLIENT SERVER NODE LOCKS
//       takes LMRs of one byte, functions, rings, places for messages and locks until it is
//       refused (or has that many locks), says "full", how much of each, and the errno of the next
//       lock, or 0, and goes on asking until it is killed
//   greedy work CLIENT SERVER NODE MILLISECONDS
//       times operations of each kind, for so long each, and prints their names and how many
//       microseconds one takes. Any error ends it
//   greedy spin MILLISECONDS
//       without LITE: says what a second thread finds of another processor, 0 to 1
//
// CLIENT and SERVER are indexes: /dev/lite<CLIENT> calls functions that are served through
// /dev/lite<SERVER>; NODE is the id of the server's node.
#include <lite/lite.h>
#include <lite/rpc.h>
#include <lite/sync.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

int client, server;
std::uint32_t node;

void succeed(int result, const char* what) {
    if (result >= 0)
        return;
    std::printf("%s: %s\n", what, std::strerror(-result));
    std::fflush(stdout);
    std::_Exit(1);
}

lite_ctx* open_node(int index) {
    lite_ctx* ctx = nullptr;
    succeed(lite_open(index, &ctx), "open");
    return ctx;
}

lite_rpc_params function_of(std::uint32_t ring_size = 0) {
    lite_rpc_params params{};
    params.size = sizeof(params);
    params.mode = 0666;
    params.max_request = 64;
    params.max_reply = 64;
    params.ring_size = ring_size;
    return params;
}

int alloc_at(lite_ctx* ctx, const char* name, std::uint64_t length, lite_lh_t* lh) {
    lite_alloc_params params{};
    params.size = sizeof(params);
    params.flags = lh ? 0 : LITE_ALLOC_NO_HANDLE;
    params.name = name;
    params.length = length;
    params.nodes = &node;
    params.n_nodes = 1;
    params.mode = 0600;
    return lite_alloc(ctx, &params, lh);
}

// ---- the greedy user ----------------------------------------------------------------------------

class Taker {
  public:
    explicit Taker(int most_locks) : asker_(open_node(client)) {
        // At home here: shared locks elsewhere take a call between the nodes each.
        lite_alloc_params words{};
        words.size = sizeof(words);
        words.length = 4096;
        words.mode = 0600;
        succeed(lite_alloc(asker_, &words, &words_), "alloc");
        while (take_function(LITE_RPC_RING_MAX) && take_ring())
            rings_++;
        while (take_function(0))
            functions_++;
        while (take_message())
            messages_++;
        int refused = 0;
        while (locks_ < most_locks && !refused)
            refused = take_lock();
        while (take_lmr())
            lmrs_++;
        std::printf("full: %d rings, %d functions, %d messages, %d locks (%s), %d LMRs\n", rings_,
                    functions_, messages_, locks_, refused ? ::strerrorname_np(-refused) : "0",
                    lmrs_);
        std::fflush(stdout);
    }

    [[noreturn]] void go_on() {
        for (;;) {
            take_function(0);
            take_message();
            take_lock();
            take_lmr();
        }
    }

  private:
    bool take_function(std::uint32_t ring_size) {
        if (!servers_.empty() && in_server_ == LITE_RPC_FUNCTIONS_MAX)
            in_server_ = 0;
        if (in_server_ == 0)
            servers_.push_back(open_node(server));
        const auto params = function_of(ring_size);
        std::uint32_t function = 0;
        const int err = lite_rpc_register(servers_.back(), &params, &function);
        if (err == -EMFILE) {
            if (in_server_ == 0) {
                lite_close(servers_.back());
                servers_.pop_back();
                in_server_ = LITE_RPC_FUNCTIONS_MAX;
            }
            return false;
        }
        succeed(err, "register");
        in_server_++;
        silent_.push_back(function);
        return true;
    }

    // Sends a message to the last function, which takes a ring or a place in it. Returns false if
    // there is no room.
    bool take_ring() {
        const int err = lite_rpc_send(asker_, node, silent_.back(), nullptr, 0, 2000);
        if (err == -ENOBUFS || err == -EAGAIN || err == -ETIMEDOUT)
            return false;
        succeed(err, "send");
        return true;
    }

    bool take_message() {
        const int err = lite_rpc_send(asker_, node, silent_.front(), nullptr, 0, LITE_NOWAIT);
        if (err == 0)
            return true;
        // No room now, or no ring for this function.
        if (err != -EAGAIN && err != -ENOBUFS)
            succeed(err, "send");
        // This function has its share; the next one may have room.
        std::rotate(silent_.begin(), silent_.begin() + 1, silent_.end());
        return ++refused_ % 64 != 0;
    }

    // Shared holds of one word, each with another owner. Returns 0, or -EDQUOT: the user has all it
    // gets.
    int take_lock() {
        const int err = lite_lock(asker_, words_, 0, static_cast<std::uint64_t>(locks_),
                                  LITE_LOCK_SHARED, LITE_NOWAIT);
        if (err == -EDQUOT)
            return err;
        succeed(err, "lock");
        locks_++;
        return 0;
    }

    bool take_lmr() {
        const auto name = "greedy " + std::to_string(lmrs_);
        const int err = alloc_at(asker_, name.c_str(), 1, nullptr);
        if (err == -EDQUOT || err == -EEXIST)
            return false;
        succeed(err, "alloc");
        return true;
    }

    lite_ctx* asker_;
    lite_lh_t words_ = 0;
    std::vector<lite_ctx*> servers_;
    int in_server_ = 0;
    std::vector<std::uint32_t> silent_;
    int refused_ = 0;
    int rings_ = 0;
    int functions_ = 0;
    int messages_ = 0;
    int locks_ = 0;
    int lmrs_ = 0;
};

// ---- the working user --------------------------------------------------------------------------

class Worker {
  public:
    Worker() : asker_(open_node(client)), server_(open_node(server)) {
        succeed(alloc_at(asker_, nullptr, 4096, &page_), "alloc");
        const auto params = function_of();
        succeed(lite_rpc_register(server_, &params, &echo_), "register");
        std::thread([this] { serve(); }).detach();
    }

    void round(std::chrono::milliseconds each) {
        std::array<std::byte, 64> bytes{};
        time("read", each, [&] { return lite_read(asker_, page_, 0, bytes.data(), bytes.size()); });
        time("write", each,
             [&] { return lite_write(asker_, page_, 0, bytes.data(), bytes.size()); });
        // For ever, because the process may be stopped for a while, with the thread that answers.
        time("call", each, [&] {
            return lite_rpc_call(asker_, node, echo_, bytes.data(), bytes.size(), bytes.data(),
                                 bytes.size(), nullptr, LITE_FOREVER, nullptr);
        });
        time("lock", each, [&] {
            const int err = lite_lock(asker_, page_, 64, 1, 0, LITE_FOREVER);
            return err ? err : lite_unlock(asker_, page_, 64, 1);
        });
        time("lmr", each, [&] {
            const int err = alloc_at(asker_, name_.c_str(), 4096, nullptr);
            return err ? err : lite_free_name(asker_, name_.c_str());
        });
        std::printf("\n");
        std::fflush(stdout);
    }

  private:
    template <typename Operation>
    static void time(const char* what, std::chrono::milliseconds each, Operation operation) {
        const auto begun = Clock::now();
        std::chrono::duration<double, std::micro> took{};
        int count = 0;
        while (took < each) {
            succeed(operation(), what);
            took = Clock::now() - begun;
            count++;
        }
        std::printf("%s %.1f ", what, took.count() / count);
    }

    void serve() {
        std::array<std::byte, 64> bytes{};
        lite_rpc_request request{};
        for (;;) {
            const int err =
                lite_rpc_recv(server_, echo_, bytes.data(), bytes.size(), LITE_FOREVER, &request);
            // The process was stopped for a while.
            if (err == -EINTR)
                continue;
            succeed(err, "receive");
            succeed(lite_rpc_reply(server_, request.token, 0, bytes.data(), request.length),
                    "reply");
        }
    }

    lite_ctx* asker_;
    lite_ctx* server_;
    lite_lh_t page_ = 0;
    std::uint32_t echo_ = 0;
    const std::string name_ = "worker " + std::to_string(::getuid());
};

std::uint64_t steps_within(std::chrono::milliseconds duration) {
    std::uint64_t steps = 0;
    for (const auto end = Clock::now() + duration; Clock::now() < end;)
        steps++;
    return steps;
}

void spin(std::chrono::milliseconds duration) {
    const auto alone = steps_within(duration);
    std::uint64_t first = 0;
    std::thread other([&] { first = steps_within(duration); });
    const auto second = steps_within(duration);
    other.join();
    std::printf("%.3f\n", static_cast<double>(first + second) / static_cast<double>(alone) - 1);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && argv[1] == std::string("spin")) {
        spin(std::chrono::milliseconds(std::atoi(argv[2])));
        return 0;
    }
    if (argc != 6)
        return 2;
    client = std::atoi(argv[2]);
    server = std::atoi(argv[3]);
    node = static_cast<std::uint32_t>(std::atoi(argv[4]));
    if (argv[1] == std::string("take"))
        Taker(std::atoi(argv[5])).go_on();
    if (argv[1] != std::string("work"))
        return 2;
    Worker().round(std::chrono::milliseconds(std::atoi(argv[5])));
    std::_Exit(0);
}
