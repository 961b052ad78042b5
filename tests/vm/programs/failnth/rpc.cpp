// SPDX-License-Identifier: MIT
#include "faults.hpp"

#include "../common/env.hpp"
#include "../common/process.hpp"

#include <lite/rpc.h>
#include <uapi/lite_rpc.h>

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace lite_test {
namespace {

template <typename T>
T with_size() {
    T args{};
    args.size = sizeof(args);
    return args;
}

template <typename T>
__u64 address_of(T& data) {
    return reinterpret_cast<std::uintptr_t>(data.data());
}

// Sizes that go through the ring, and that do not.
constexpr std::uint32_t kShort = 4096;
constexpr std::uint32_t kLong = 300000;

// A server at this or another node of this machine; the request selects the answer.
class Server {
  public:
    Server(unsigned index, std::uint32_t most)
        : most_(most), dev_(index), thread_([this] { serve(); }) {}
    ~Server() {
        end_ = true;
        thread_.join();
    }
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    std::uint32_t node() const { return dev_.query().node_id; }

    std::uint32_t enroll() const {
        auto args = with_size<lite_ioc_rpc_register>();
        args.mode = 0600;
        args.max_request = args.max_reply = most_;
        expect_equal(dev_.call(LITE_IOC_RPC_REGISTER, &args), ok, "register");
        return args.function;
    }

    void drop(std::uint32_t function) const {
        auto args = with_size<lite_ioc_rpc_unregister>();
        args.function = function;
        expect_equal(dev_.call(LITE_IOC_RPC_UNREGISTER, &args), ok, "unregister");
    }

  private:
    void serve() {
        std::vector<std::byte> buffer(most_);
        auto args = with_size<lite_ioc_rpc_recv>();
        const auto keep = enroll();  // so that there is always something to wait for
        while (!end_) {
            args.buf = args.reply = address_of(buffer);
            args.buf_len = most_;
            args.timeout_ms = 50;
            args.function = 0;
            const Errno e = dev_.call(LITE_IOC_RPC_RECV, &args);
            args.flags = e == ok && args.token ? LITE_RPC_REPLY : 0;
            args.reply_len = args.length;
        }
        drop(keep);
    }

    std::uint32_t most_;
    Device dev_;
    std::atomic<bool> end_ = false;
    std::thread thread_;
};

class Calls {
  public:
    Calls(std::string label, unsigned index, std::uint32_t most)
        : label_(std::move(label)),
          most_(most),
          server_(index, most),
          function_(server_.enroll()),
          request_(most),
          reply_(most) {}

    std::vector<Attempt> attempts() {
        return {enrolment(),
                find(),
                call("first call", 64, true),
                call("call", 64, false),
                call("long call", most_, false),
                queued(),
                message(),
                collected(),
                take()};
    }

  private:
    lite_ioc_rpc_call call_args(std::uint32_t flags, std::uint32_t length) {
        auto args = with_size<lite_ioc_rpc_call>();
        args.flags = flags;
        args.node = node_;
        args.function = function_;
        args.request = address_of(request_);
        args.request_len = length;
        args.reply = address_of(reply_);
        args.reply_room = most_;
        args.timeout_ms = LITE_TIMEOUT_DEFAULT;
        return args;
    }

    // Two calls of a new function at the same time, so that they are queued.
    Attempt queued() {
        return {label_ + ": rpc queue",
                [this] {
                    Errno e = ok;
                    for (std::uint32_t i = 0; i < 2 && e == ok; i++) {
                        call_ = call_args(LITE_RPC_ASYNC | LITE_RPC_QUEUE, most_ / 2);
                        call_.group = 1;
                        call_.reply += i * call_.request_len;
                        call_.reply_room = most_ / 2;
                        e = dev_.call(LITE_IOC_RPC_CALL, &call_);
                    }
                    for (int i = 0; i < 2 && e == ok; i++)
                        e = of_group(LITE_RPC_INTO);
                    return e;
                },
                [this](Errno) {
                    const Errno e = of_group(LITE_RPC_CANCEL);
                    expect(e == ok, "cancel");
                    server_.drop(function_);
                    function_ = server_.enroll();
                }};
    }

    Errno of_group(std::uint32_t flags) {
        auto args = with_size<lite_ioc_rpc_collect>();
        args.flags = flags;
        args.group = 1;
        args.timeout_ms = LITE_FOREVER;
        const Errno e = dev_.call(LITE_IOC_RPC_COLLECT, &args);
        if (!(e == ok) || flags & LITE_RPC_CANCEL)
            return e;
        if (!args.error)
            expect_equal(args.reply_len, most_ / 2, "length of the reply");
        return err(-args.error);
    }

    Attempt enrolment() {
        return {label_ + ": rpc register",
                [this] {
                    enrol_ = with_size<lite_ioc_rpc_register>();
                    enrol_.max_request = 10;
                    return dev_.call(LITE_IOC_RPC_REGISTER, &enrol_);
                },
                [this](Errno e) {
                    auto args = with_size<lite_ioc_rpc_unregister>();
                    args.function = enrol_.function;
                    if (e == ok)
                        expect_equal(dev_.call(LITE_IOC_RPC_UNREGISTER, &args), ok, "unregister");
                }};
    }

    Attempt find() {
        return {label_ + ": rpc find",
                [this] {
                    auto args = with_size<lite_ioc_rpc_find>();
                    args.node = node_;
                    args.function = function_;
                    return dev_.call(LITE_IOC_RPC_FIND, &args);
                },
                [](Errno) {}};
    }

    Attempt call(const std::string& what, std::uint32_t length, bool fresh) {
        return {label_ + ": rpc " + what,
                [this, length] {
                    call_ = call_args(0, length);
                    return dev_.call(LITE_IOC_RPC_CALL, &call_);
                },
                [this, length, fresh](Errno e) {
                    if (e == ok)
                        expect_equal(call_.reply_len, length, "length of the reply");
                    if (fresh) {
                        server_.drop(function_);
                        function_ = server_.enroll();
                    }
                }};
    }

    Attempt message() {
        return {label_ + ": rpc message",
                [this] {
                    call_ = call_args(LITE_RPC_ONEWAY, 100);
                    return dev_.call(LITE_IOC_RPC_CALL, &call_);
                },
                [](Errno) {}};
    }

    // Begins and collects a call in one attempt.
    Attempt collected() {
        return {label_ + ": rpc start and collect",
                [this] {
                    call_ = call_args(LITE_RPC_ASYNC, most_);
                    const Errno e = dev_.call(LITE_IOC_RPC_CALL, &call_);
                    return e == ok ? collect() : e;
                },
                [this](Errno e) {
                    // The call that was begun is still to be collected.
                    if (e == ok)
                        return;
                    const Errno again = collect();
                    expect(again == ok || again == err(ENOENT), "collect again");
                }};
    }

    Errno collect() {
        auto args = with_size<lite_ioc_rpc_collect>();
        args.reply = address_of(reply_);
        args.reply_room = most_;
        args.timeout_ms = LITE_FOREVER;
        const Errno e = dev_.call(LITE_IOC_RPC_COLLECT, &args);
        return e == ok ? err(-args.error) : e;
    }

    // Takes a request of a function of its own.
    Attempt take() {
        return {label_ + ": rpc recv", [this] { return take_one(); },
                [this](Errno e) {
                    // If the request was taken, but this could not be reported, the request is
                    // gone.
                    const Errno left = e == ok ? err(EAGAIN) : take_one();
                    expect(left == ok || left == err(EAGAIN), "take again");
                    send_self();
                },
                [this] {
                    enrol_ = with_size<lite_ioc_rpc_register>();
                    enrol_.mode = 0600;
                    enrol_.max_request = 100;
                    expect_equal(dev_.call(LITE_IOC_RPC_REGISTER, &enrol_), ok, "register");
                    send_self();
                }};
    }

    Errno take_one() {
        auto args = with_size<lite_ioc_rpc_recv>();
        args.flags = LITE_RPC_NOWAIT;
        args.buf = address_of(reply_);
        args.buf_len = most_;
        return dev_.call(LITE_IOC_RPC_RECV, &args);
    }

    void send_self() {
        auto args = call_args(LITE_RPC_ONEWAY, 10);
        args.node = 0;
        args.function = enrol_.function;
        expect_equal(dev_.call(LITE_IOC_RPC_CALL, &args), ok, "message to oneself");
    }

    std::string label_;
    std::uint32_t most_;
    Device dev_{env().indexes.front()};
    Server server_;
    // Looked up only once, so that the faults hit the calls.
    std::uint32_t node_ = server_.node();
    std::uint32_t function_;
    std::vector<std::byte> request_;
    std::vector<std::byte> reply_;
    lite_ioc_rpc_register enrol_{};
    lite_ioc_rpc_call call_{};
};

}  // namespace

void sweep_rpc(FailNth& faults, unsigned samples) {
    const auto& indexes = env().indexes;
    for (std::size_t i = 0; i < indexes.size() && i < 2; i++) {
        const std::string label = i ? "other node" : "this node";
        for (const auto most : {kShort, kLong}) {
            Calls calls(label + (most > LITE_RPC_BYTES_MAX ? ", by reference" : ""), indexes[i],
                        most);
            for (const auto& attempt : calls.attempts())
                sweep(faults, attempt, most == kLong ? samples / 4 : samples);
        }
    }
}

}  // namespace lite_test
