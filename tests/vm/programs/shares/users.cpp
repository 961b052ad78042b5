// SPDX-License-Identifier: MIT
// Work of one user that others of the same node must not depend on.
//
//   users files INDEX NODE,NODE COUNT
//       opens the node COUNT times, and each time makes an anonymous LMR at the nodes; says
//       "ready", and waits to be killed
//   users frees INDEX NODE,NODE COUNT
//       makes COUNT LMRs at the nodes, says "ready", and frees each in a thread of its own when a
//       line comes from stdin; says "freeing" when all of these run, and "freed" when the first is
//       done
//   users changes INDEX COUNT
//       makes COUNT named LMRs, says "ready", and changes the mode of each in a thread of its own
//       when a line comes from stdin; says "changing" when all of these run, and "changed" when the
//       first is done
//   users maps INDEX COUNT
//       opens these LMRs, says "ready", and waits to be killed
//   users owner INDEX LMR
//       takes the first word of an LMR as a lock, and serves a function; says "ready" and the
//       function's number, and waits to be killed
//   users heir INDEX LMR FUNCTION MILLISECONDS
//       takes that lock, and then calls that function; prints the two outcomes
//   users bind HERE THERE NODE ROUNDS THREADS
//       NODE: id of the node THERE. THREADS threads of alice call functions that it does not have.
//       Beside them, another process of alice and then bob call one that HERE has no ring for.
//       Before each call of bob the kernel's trace gets the line "bob asks". Run by root
//   users cancel INDEX NODE FUNCTION
//       begins a call without a time-out as a command of io_uring, says "begun", cancels it when a
//       line comes from stdin, and prints its result
#include <lite/rpc.h>
#include <lite/sync.h>
#include <lite/uring.h>
#include <lite/lite.hpp>

#include <liburing.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include "../common/process.hpp"

namespace {

using lite_test::Child;
using lite_test::expect;
using lite_test::Identity;
using lite_test::Shared;
using lite_test::Signal;
using Words = std::vector<std::string>;

const Identity kAlice{1000, 1000};
const Identity kBob{1001, 1001};
constexpr std::uint64_t kPage = 4096;
constexpr std::uint32_t kNothing = 60000;  // functions from this number on are not served
constexpr std::uint64_t kOwner = 1;
constexpr auto kRights = lite::rights::read | lite::rights::write | lite::rights::atomic;

void succeed(int err, const char* what) {
    if (err < 0)
        throw std::system_error(-err, std::generic_category(), what);
}

void say(const std::string& text) { std::cout << text << std::endl; }

std::uint32_t number(const std::string& word) {
    return static_cast<std::uint32_t>(std::stoul(word));
}

std::vector<std::uint32_t> numbers(const std::string& words) {
    std::istringstream from(words);
    std::vector<std::uint32_t> to;
    for (std::string word; std::getline(from, word, ',');)
        to.push_back(number(word));
    return to;
}

std::uint32_t serve(lite_ctx* ctx) {
    lite_rpc_params params{};
    params.size = sizeof(params);
    params.mode = 0666;
    params.max_request = 64;
    params.max_reply = 64;
    std::uint32_t function = 0;
    succeed(lite_rpc_register(ctx, &params, &function), "register");
    return function;
}

void call(lite_ctx* ctx, std::uint32_t node, std::uint32_t function, int timeout_ms) {
    const int err =
        lite_rpc_call(ctx, node, function, nullptr, 0, nullptr, 0, nullptr, timeout_ms, nullptr);
    succeed(err, "call");
}

[[noreturn]] void wait_for_the_end() {
    for (;;)
        ::pause();
}

void files(const Words& words) {
    std::vector<lite::context> contexts;
    std::vector<lite::region> lmrs;
    for (int i = 0; i < std::stoi(words[2]); i++) {
        contexts.emplace_back(std::stoi(words[0]));
        lmrs.push_back(contexts.back().alloc({.length = 2 * kPage, .nodes = numbers(words[1])}));
    }
    say("ready");
    wait_for_the_end();
}

// Says "ready"; after a line from stdin does @what to all LMRs at the same time, and says when.
template <typename What>
void all_at_once(std::vector<lite::region>& lmrs, const std::string& begun, const std::string& done,
                 What what) {
    say("ready");
    std::string line;
    std::getline(std::cin, line);
    std::atomic<std::size_t> running = 0;
    std::atomic<bool> any = false;
    std::vector<std::jthread> threads;
    for (auto& lmr : lmrs)
        threads.emplace_back([&] {
            if (++running == lmrs.size())
                say(begun);
            what(lmr);
            if (!any.exchange(true))
                say(done);
        });
}

void frees(const Words& words) {
    lite::context context(std::stoi(words[0]));
    std::vector<lite::region> lmrs;
    for (int i = 0; i < std::stoi(words[2]); i++)
        lmrs.push_back(context.alloc({.length = 2 * kPage, .nodes = numbers(words[1])}));
    all_at_once(lmrs, "freeing", "freed", [](lite::region& lmr) { lmr.free(); });
}

std::string name_of(int i) { return "changed-" + std::to_string(i); }

void changes(const Words& words) {
    lite::context context(std::stoi(words[0]));
    std::vector<lite::region> lmrs;
    for (int i = 0; i < std::stoi(words[1]); i++) {
        const auto name = name_of(i);
        lmrs.push_back(context.alloc({.name = name, .length = kPage}));
    }
    all_at_once(lmrs, "changing", "changed", [](lite::region& lmr) { lmr.chmod(0600); });
    for (auto& lmr : lmrs)
        lmr.free();
}

void maps(const Words& words) {
    lite::context context(std::stoi(words[0]));
    std::vector<lite::region> lmrs;
    for (int i = 0; i < std::stoi(words[1]); i++)
        lmrs.push_back(context.map(name_of(i)));
    say("ready");
    wait_for_the_end();
}

// ---- locks and functions ------------------------------------------------------------------------

void own(const Words& words) {
    lite::context context(std::stoi(words[0]));
    const auto lmr = context.map(words[1], kRights);
    succeed(lite_lock(context.get(), lmr.handle(), 0, kOwner, 0, LITE_NOWAIT), "lock");
    say(std::to_string(serve(context.get())) + " is ready");
    wait_for_the_end();
}

std::string outcome(int err) { return err ? ::strerrorname_np(-err) : "0"; }

void inherit(const Words& words) {
    lite::context context(std::stoi(words[0]));
    const auto lmr = context.map(words[1], kRights);
    const int timeout = std::stoi(words[3]);
    const int took = lite_lock(context.get(), lmr.handle(), 0, kOwner + 1, 0, timeout);
    const int called = lite_rpc_call(context.get(), 0, number(words[2]), nullptr, 0, nullptr, 0,
                                     nullptr, timeout, nullptr);
    say(outcome(took) + " " + outcome(called));
}

// ---- rings --------------------------------------------------------------------------------------

struct Common {
    Signal next;                          // alice is to call
    std::atomic<std::uint32_t> function;  // this one
    std::atomic<int> called = 0;          // calls of alice that have ended
    std::atomic<int> refused = 0;         // calls of hers to functions that there are not
};

// Is a process of one thread waiting in the kernel, for no signal but a fatal one?
bool is_blocked(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(file, text);
    const auto name = text.rfind(") ");
    return name != std::string::npos && text[name + 2] == 'D';
}

void call_nothing(int index, std::uint32_t node, int threads, Common& common) {
    lite_test::become(kAlice);
    lite::context context(index);
    std::vector<std::jthread> all;
    for (int i = 0; i < threads; i++)
        all.emplace_back([&, function = kNothing + static_cast<std::uint32_t>(i)] {
            for (;;) {
                const int err = lite_rpc_call(context.get(), node, function, nullptr, 0, nullptr, 0,
                                              nullptr, LITE_FOREVER, nullptr);
                expect(err == -ECONNREFUSED, "there is no such function");
                common.refused++;
            }
        });
}

void call_as_alice(int index, std::uint32_t node, Common& common) {
    lite_test::become(kAlice);
    lite::context context(index);
    for (;;) {
        common.next.wait("the next round");
        call(context.get(), node, common.function, LITE_FOREVER);
        common.called++;
    }
}

void answer(lite_ctx* ctx) {
    for (;;) {
        lite_rpc_request request{};
        succeed(lite_rpc_recv(ctx, 0, nullptr, 0, LITE_FOREVER, &request), "recv");
        succeed(lite_rpc_reply(ctx, request.token, 0, nullptr, 0), "reply");
    }
}

void bind(const Words& words) {
    const int here = std::stoi(words[0]);
    const std::uint32_t node = number(words[2]);
    const int rounds = std::stoi(words[3]);
    const int threads = std::stoi(words[4]);
    Shared<Common> common;
    lite::context server(std::stoi(words[1]));
    (void)serve(server.get());  // without one, it could take no requests
    std::thread([&] { answer(server.get()); }).detach();
    const Child crowd([&] { call_nothing(here, node, threads, *common); });
    const Child caller([&] { call_as_alice(here, node, *common); });
    lite_test::wait_until("alice calls", [&] { return common->refused >= 2 * threads; });
    // So that bob does not wait for a processor between the line in the trace and the call.
    if (::setpriority(PRIO_PROCESS, 0, -20))
        throw std::runtime_error("cannot raise the priority");
    std::ofstream trace("/sys/kernel/tracing/trace_marker");
    for (int i = 0; i < rounds; i++) {
        const std::uint32_t function = serve(server.get());
        common->function = function;
        common->next.post();
        lite_test::wait_until("alice waits",
                              [&] { return is_blocked(caller.pid()) || common->called > i; });
        if (common->called == i)
            lite_test::as_user(kBob, [&] {
                lite::context context(here);
                if (!(trace << "bob asks" << std::flush))
                    throw std::runtime_error("cannot write to the kernel's trace");
                call(context.get(), node, function, LITE_FOREVER);
            });
        lite_test::wait_until("alice has called", [&] { return common->called > i; });
    }
}

// ---- io_uring -----------------------------------------------------------------------------------

void cancel(const Words& words) {
    lite::context context(std::stoi(words[0]));
    io_uring ring{};
    succeed(::io_uring_queue_init(8, &ring, 0), "io_uring_queue_init");
    lite_ioc_rpc_call command{};
    io_uring_sqe* sqe = ::io_uring_get_sqe(&ring);
    lite_uring_call(sqe, context.get(), &command, number(words[1]), number(words[2]), nullptr, 0,
                    nullptr, 0, LITE_FOREVER);
    sqe->flags |= IOSQE_ASYNC;
    sqe->user_data = 1;
    succeed(::io_uring_submit(&ring), "io_uring_submit");
    say("begun");
    std::string line;
    std::getline(std::cin, line);
    sqe = ::io_uring_get_sqe(&ring);
    ::io_uring_prep_cancel64(sqe, 1, 0);
    sqe->user_data = 2;
    succeed(::io_uring_submit(&ring), "io_uring_submit");
    for (;;) {
        io_uring_cqe* cqe = nullptr;
        succeed(::io_uring_wait_cqe(&ring, &cqe), "io_uring_wait_cqe");
        if (cqe->user_data == 1) {
            say(outcome(cqe->res));
            return;
        }
        ::io_uring_cqe_seen(&ring, cqe);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const Words all(argv + 1, argv + argc);
    const std::string mode = all.empty() ? "" : all[0];
    const Words words(all.begin() + !all.empty(), all.end());
    try {
        if (mode == "files" && words.size() == 3)
            files(words);
        else if (mode == "frees" && words.size() == 3)
            frees(words);
        else if (mode == "changes" && words.size() == 2)
            changes(words);
        else if (mode == "maps" && words.size() == 2)
            maps(words);
        else if (mode == "owner" && words.size() == 2)
            own(words);
        else if (mode == "heir" && words.size() == 4)
            inherit(words);
        else if (mode == "bind" && words.size() == 5)
            bind(words);
        else if (mode == "cancel" && words.size() == 3)
            cancel(words);
        else
            return 2;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "users: %s\n", e.what());
        return 1;
    }
    return 0;
}
