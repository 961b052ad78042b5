// SPDX-License-Identifier: MIT
//
// liblite for C++20: awaiting calls, messages and requests, as <lite/rpc.h> describes them; a part
// of lite::executor (<lite/async.hpp>).
//
// In addition, an operation that was asked to stop throws ECANCELED. <lite/types.hpp> describes
// lite::timeout and has its constants.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

#include <lite/async/engine.hpp>
#include <lite/rpc.hpp>

namespace lite {

// A request that was taken, to be answered with reply(). If it is destroyed before that (by an
// exception, for example), it is given back, and its caller gets ECONNRESET at once; in a child of
// fork(2) it is left to the parent. It must not outlive the context.
class [[nodiscard]] taken_request : public call_info {
  public:
    taken_request(lite_ctx* ctx, const call_info& info) noexcept
        : call_info(info), m_ctx(ctx), m_maker(detail::maker::self()) {}
    taken_request(taken_request&& other) noexcept
        : call_info(other), m_ctx(other.m_ctx), m_maker(other.m_maker) {
        other.token = 0;
    }
    taken_request& operator=(taken_request&&) = delete;
    ~taken_request() {
        if (token && m_maker.is_self())
            give_back();
    }

    // Gives it back unanswered. Does nothing for a message, or after the answer.
    void give_back() noexcept {
        if (token)
            lite_rpc_done(m_ctx, token);
        token = 0;
    }

    // The caller takes over the duty to answer.
    call_info release() noexcept {
        const call_info info = *this;
        token = 0;
        return info;
    }

  private:
    lite_ctx* m_ctx;
    detail::maker m_maker;
};

class rpc_calls {
  public:
    explicit rpc_calls(detail::engine& on) noexcept : m_engine(on) {}
    rpc_calls(const rpc_calls&) = delete;
    rpc_calls& operator=(const rpc_calls&) = delete;

    // The number of the function that a node (0: this one) serves under a name. The name is copied
    // at once. @throws error as lite_rpc_find(); ECANCELED
    task<std::uint32_t> find_function(std::uint32_t node, std::string_view name,
                                      std::stop_token stop = {}) {
        if (name.empty() || name.find('\0') != std::string_view::npos)
            detail::fail_rpc(EINVAL, "find a function");
        if (name.size() > LITE_FUNCTION_NAME_MAX)
            detail::fail_rpc(ENAMETOOLONG, "find a function");
        lite_ioc_rpc_find args{};
        args.node = node;
        name.copy(args.name, name.size());
        return find(args, std::move(stop));
    }

    // Calls a function. A reply of more than @room bytes is error EMSGSIZE. @request must stay
    // until the end. @throws error as lite_rpc_call(); ECANCELED, or EINTR if the process was
    // stopped for a while: it may have been served
    task<call_reply> call(std::uint32_t node, std::uint32_t function,
                          std::span<const std::byte> request, std::size_t room = 4096,
                          timeout limit = default_timeout, std::stop_token stop = {}) {
        call_reply reply{std::vector<std::byte>(room), 0};
        lite_ioc_rpc_call args;
        const auto prepare = [&](io_uring_sqe* sqe) {
            lite_uring_call(sqe, m_engine.ctx(), &args, node, function, request.data(),
                            request.size(), reply.bytes.data(), room, detail::milliseconds(limit));
        };
        detail::submission called(m_engine, prepare, std::move(stop));
        detail::check_rpc(co_await called, "call a function");
        reply.bytes.resize(args.reply_len);
        reply.status = args.status;
        co_return reply;
    }

    // Calls a function of 1 to LITE_RPC_LEGS_MAX nodes with one request, each with a call(). Ends
    // as soon as @quorum of them have answered, or no longer can; 0: when all have ended. The
    // result is in the order of @nodes; calls that were not waited for have error -ECANCELED.
    // @nodes and @request must stay until the end.
    // @throws error: EINVAL, ECANCELED (some may have been served)
    task<std::vector<leg_reply>> multicall(std::span<const std::uint32_t> nodes,
                                           std::uint32_t function,
                                           std::span<const std::byte> request,
                                           std::size_t quorum = 0, std::size_t room = 4096,
                                           timeout limit = default_timeout,
                                           std::stop_token stop = {}) {
        if (nodes.empty() || nodes.size() > LITE_RPC_LEGS_MAX || quorum > nodes.size())
            detail::fail_rpc(EINVAL, "call a function of several nodes");
        legs all{std::vector<leg_reply>(nodes.size()), quorum, nodes.size(), 0, {}};
        const std::stop_callback forward(stop, [&all] { all.enough.request_stop(); });
        std::vector<task<>> calls;
        for (std::size_t i = 0; i < nodes.size(); i++) {
            all.replies[i].node = nodes[i];
            calls.push_back(leg(all, all.replies[i], function, request, room, limit));
        }
        co_await m_engine.all(std::move(calls));
        if (stop.stop_requested())
            detail::fail_rpc(ECANCELED, "call a function of several nodes");
        co_return std::move(all.replies);
    }

    // Sends a message to a function. @message must stay until the end. Messages that are sent one
    // after another arrive in order.
    // @throws error as lite_rpc_send(); ECANCELED and EINTR as call()
    task<> send(std::uint32_t node, std::uint32_t function, std::span<const std::byte> message,
                timeout limit = default_timeout, std::stop_token stop = {}) {
        lite_ioc_rpc_call args;
        const auto prepare = [&](io_uring_sqe* sqe) {
            lite_uring_call(sqe, m_engine.ctx(), &args, node, function, message.data(),
                            message.size(), nullptr, 0, detail::milliseconds(limit));
            args.flags |= LITE_RPC_ONEWAY;
        };
        detail::submission sent(m_engine, prepare, std::move(stop));
        detail::check_rpc(co_await sent, "send a message");
    }

    // Takes a request for a function of this context (0: for any of its functions) into @buffer.
    // Unless @function is 0, the buffer must have room for the function's max_request: a longer
    // request could never be taken, and would be offered for ever.
    //
    // @throws error: EINVAL (too little room, or a wrong function), ETIMEDOUT (nothing came in
    // time), EAGAIN (no request, and the time-out is no_wait), ENOENT (this context does not serve
    // the function), EMSGSIZE (@function is 0 and @buffer too small) and ENOMEM (after both the
    // request can still be taken), EFAULT, ENODEV, ECANCELED (nothing was taken)
    task<taken_request> receive(std::uint32_t function, std::span<std::byte> buffer,
                                timeout limit = default_timeout, std::stop_token stop = {}) {
        const std::size_t needed = co_await longest(function, buffer.size(), stop);
        if (buffer.size() < needed)
            refuse_buffer();
        lite_ctx* const ctx = m_engine.ctx();
        detail::time_left left(detail::milliseconds(limit));
        lite_ioc_rpc_recv args;
        const auto prepare = [&](io_uring_sqe* sqe) {
            lite_uring_recv(sqe, ctx, &args, function, buffer.data(), buffer.size(),
                            static_cast<int>(left.next()));
        };
        // If the coroutine is not resumed, a request is given back. A message is lost.
        const auto give_back = [&args, ctx](int result) noexcept {
            if (!result && args.token)
                lite_rpc_done(ctx, args.token);
        };
        const int err = co_await m_engine.persist(prepare, std::move(stop), give_back);
        // Another function, with a longer max_request, has the number by now.
        if (err == -EMSGSIZE && m_longest.erase(function))
            refuse_buffer();
        detail::check_rpc(err, "take a request");
        call_info info{};
        info.token = args.token;
        info.function = args.function;
        info.length = args.length;
        info.node = args.node;
        info.uid = args.uid;
        info.gid = args.gid;
        info.flags = args.req_flags;
        info.reply_room = args.reply_room;
        co_return taken_request(ctx, info);
    }

    task<taken_request> receive(const function& served, std::span<std::byte> buffer,
                                timeout limit = default_timeout, std::stop_token stop = {}) {
        return receive(served.number(), buffer, limit, std::move(stop));
    }

    // Answers a request. @to and @bytes must stay until the end. It is no error if the caller has
    // given up, or if it is a message.
    //
    // @throws error: E2BIG (more than the function's max_reply), EFAULT, ENOMEM, ENODEV, ECANCELED,
    // EINTR: after these it may be answered again
    task<> reply(taken_request& to, std::uint32_t status, std::span<const std::byte> bytes,
                 std::stop_token stop = {}) {
        co_await reply(static_cast<const call_info&>(to), status, bytes, std::move(stop));
        to.release();
    }
    task<> reply(const taken_request&, std::uint32_t, std::span<const std::byte>,
                 std::stop_token = {}) = delete;

    // The same for a released request.
    task<> reply(call_info to, std::uint32_t status, std::span<const std::byte> bytes,
                 std::stop_token stop = {}) {
        if (!to.token)
            co_return;
        lite_ioc_rpc_recv args;
        const auto prepare = [&](io_uring_sqe* sqe) {
            lite_uring_reply(sqe, m_engine.ctx(), &args, to.token, status, bytes.data(),
                             bytes.size());
        };
        detail::submission replied(m_engine, prepare, std::move(stop));
        const int err = co_await replied;
        if (err != -ENOENT)
            detail::check_rpc(err, "answer a request");
    }

  private:
    [[noreturn]] static void refuse_buffer() {
        detail::fail_rpc(EINVAL, "take a request into a buffer shorter than max_request");
    }

    // The state of a multicall().
    struct legs {
        std::vector<leg_reply> replies;
        std::size_t quorum;
        std::size_t left;
        std::size_t ok;
        std::stop_source enough;
    };

    task<> leg(legs& all, leg_reply& to, std::uint32_t function, std::span<const std::byte> request,
               std::size_t room, timeout limit) {
        try {
            auto reply =
                co_await call(to.node, function, request, room, limit, all.enough.get_token());
            to.status = reply.status;
            to.bytes = std::move(reply.bytes);
            all.ok++;
        } catch (const error& failed) {
            to.error = -failed.code().value();
        }
        all.left--;
        if (all.quorum && (all.ok >= all.quorum || all.ok + all.left < all.quorum))
            all.enough.request_stop();
    }

    task<std::uint32_t> find(lite_ioc_rpc_find args, std::stop_token stop) {
        const detail::ioctl_of prepare(m_engine, LITE_IOC_RPC_FIND, args);
        detail::check_rpc(co_await m_engine.persist(prepare, std::move(stop)), "find a function");
        co_return args.function;
    }

    // max_request of a function of this node, if it may be more than @room; 0: not known, or any
    // function. Cached; asked for again before a buffer is refused, as another function may have
    // the number by now.
    task<std::uint32_t> longest(std::uint32_t function, std::size_t room, std::stop_token stop) {
        const auto known = m_longest.find(function);
        if (!function)
            co_return 0;
        if (known != m_longest.end() && known->second <= room)
            co_return known->second;
        lite_ioc_rpc_find args{};
        args.function = function;
        const detail::ioctl_of prepare(m_engine, LITE_IOC_RPC_FIND, args);
        const int err = co_await m_engine.persist(prepare, std::move(stop));
        if (err == -ECANCELED)
            detail::fail_rpc(err, "take a request");
        // RECV will report a function that does not exist.
        if (err)
            co_return 0;
        m_longest[function] = args.max_request;
        co_return args.max_request;
    }

    detail::engine& m_engine;
    std::map<std::uint32_t, std::uint32_t> m_longest;
};

}  // namespace lite
