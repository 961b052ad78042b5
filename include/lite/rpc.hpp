// SPDX-License-Identifier: MIT
//
// liblite for C++20: functions, calls and messages, as <lite/rpc.h> describes them. Errors of the C
// functions are thrown as lite::error with a code of rpc_category().
//
//    lite::context ctx;
//    lite::function echo(ctx, {.name = "echo", .mode = 0666});
//    echo.serve([](const lite::call_info&, std::span<const std::byte> in,
//                  std::vector<std::byte>& out) {
//        out.assign(in.begin(), in.end());
//        return 0U;
//    });
//
//    auto reply = lite::call(ctx, node, lite::find_function(ctx, node, "echo"), bytes);
#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <lite/rpc.h>
#include <lite/lite.hpp>

namespace lite {

struct function_options {
    std::string_view name = {};
    std::uint32_t number = 0;  // 0: any free one
    std::uint32_t mode = 0600;
    std::uint32_t max_request = 4096;
    std::uint32_t max_reply = 4096;
    std::uint32_t ring_size = 0;
    bool shared = false;
};

// A request: its caller, and the room for a reply.
using call_info = lite_rpc_request;

// The reply of a function.
struct call_reply {
    std::vector<std::byte> bytes;
    std::uint32_t status = 0;
};

namespace detail {

[[noreturn]] inline void fail_rpc(int err, const char* doing) {
    throw error(err, doing, 0, rpc_category());
}

inline void check_rpc(int err, const char* doing) {
    if (err)
        fail_rpc(err, doing);
}

// Pause before the next attempt after ENOMEM: short for a caller, and little work for the
// processor. The second is the number of attempts at the last answer of a server.
inline constexpr std::chrono::milliseconds memory_pause{10};
inline constexpr int memory_tries = 100;

// Does a server continue after this error? Pauses after ENOMEM, as other programs may have the
// memory for a while.
inline bool passes(int err) {
    if (err == -ENOMEM)
        std::this_thread::sleep_for(memory_pause);
    return err == -ENOMEM || err == -ETIMEDOUT || err == -EINTR;
}

// Gives the last answer of a server by @answer(). Bounded, as the server is ending.
template <typename Answer>
int answer_last(Answer answer) {
    int err = answer();
    for (int i = 1; err == -ENOMEM && i < memory_tries; i++) {
        std::this_thread::sleep_for(memory_pause);
        err = answer();
    }
    return err;
}

}  // namespace detail

// A function that this process serves until the object is destroyed. (A copy in a child of fork(2)
// does not end it. The child may serve() it, like another thread.) Not thread-safe, but any number
// of threads may serve() it.
class function {
  public:
    function(context& ctx, const function_options& options)
        : m_ctx(ctx.get()), m_room(options.max_request), m_reply(options.max_reply) {
        const detail::c_name name(options.name);
        lite_rpc_params params{};
        params.size = sizeof(params);
        params.flags = options.shared ? LITE_RPC_SHARED : 0;
        params.name = name.get();
        params.function = options.number;
        params.mode = options.mode;
        params.max_request = options.max_request;
        params.max_reply = options.max_reply;
        params.ring_size = options.ring_size;
        detail::check_rpc(lite_rpc_register(m_ctx, &params, &m_number), "serve a function");
    }

    function(function&& other) noexcept
        : m_ctx(std::exchange(other.m_ctx, nullptr)),
          m_number(other.m_number),
          m_room(other.m_room),
          m_reply(other.m_reply),
          m_maker(other.m_maker) {}
    function& operator=(function&&) = delete;

    ~function() {
        if (m_ctx && m_maker.is_self())
            lite_rpc_unregister(m_ctx, m_number);
    }

    std::uint32_t number() const noexcept { return m_number; }

    // Serves requests until @more() is false; it is asked after every request and every 100 ms.
    // @handler(const call_info&, std::span<const std::byte> request, std::vector<std::byte>& reply)
    // returns the status for the caller.
    //
    // Passes on what the handler throws, and throws error E2BIG if its reply is longer than
    // max_reply. The caller then gets ECONNRESET, no other request is lost, and serve() may be
    // called again. While the node has no memory for a long request or reply (ENOMEM), it tries
    // again every 10 ms. Once @more() is false, it does so for a second, then gives the request
    // back and throws the error.
    template <typename Handler, typename More>
    void serve(Handler handler, More more) {
        std::vector<std::byte> in(m_room);
        std::vector<std::byte> out;
        out.reserve(m_reply);
        lite_rpc_request request{};
        std::uint32_t status = 0;
        // If more() throws, the caller of the last request gets ECONNRESET.
        const auto go_on = [&] {
            try {
                return static_cast<bool>(more());
            } catch (...) {
                give_back(request);
                throw;
            }
        };
        while (go_on()) {
            const int err = lite_rpc_reply_recv(m_ctx, &request, status, out.data(), out.size(),
                                                m_number, in.data(), in.size(), 100);
            if (detail::passes(err))
                continue;
            if (err)
                give_back(request);
            detail::check_rpc(err, "take a request");
            out.clear();
            try {
                status = handler(std::as_const(request),
                                 std::span<const std::byte>(in.data(), request.length), out);
                // The reply to a message is ignored.
                if (request.token && out.size() > m_reply)
                    detail::fail_rpc(E2BIG, "answer a request");
            } catch (...) {
                give_back(request);
                throw;
            }
        }
        if (!request.token)
            return;
        const int err = detail::answer_last(
            [&] { return lite_rpc_reply(m_ctx, request.token, status, out.data(), out.size()); });
        if (!err || err == -ENOENT)
            return;
        give_back(request);
        detail::fail_rpc(err, "answer a request");
    }

    // Serves requests until something is thrown.
    template <typename Handler>
    void serve(Handler handler) {
        serve(std::move(handler), [] { return true; });
    }

  private:
    // No error if the caller has given up meanwhile.
    void give_back(const lite_rpc_request& request) noexcept {
        if (request.token)
            lite_rpc_done(m_ctx, request.token);
    }

    lite_ctx* m_ctx;
    std::uint32_t m_number = 0;
    std::uint32_t m_room;
    std::uint32_t m_reply;
    detail::maker m_maker = detail::maker::self();
};

// The number of the function that a node serves under a name.
inline std::uint32_t find_function(context& ctx, std::uint32_t node, std::string_view name) {
    lite_ioc_rpc_find found{};
    detail::check_rpc(lite_rpc_find(ctx.get(), node, detail::c_name(name).get(), &found),
                      "find a function");
    return found.function;
}

// Calls a function; a reply of more than @room bytes is error EMSGSIZE.
inline call_reply call(context& ctx, std::uint32_t node, std::uint32_t function,
                       std::span<const std::byte> request, std::size_t room = 4096,
                       timeout limit = default_timeout) {
    call_reply reply{std::vector<std::byte>(room), 0};
    std::size_t length = 0;
    detail::check_rpc(
        lite_rpc_call(ctx.get(), node, function, request.data(), request.size(), reply.bytes.data(),
                      room, &length, detail::milliseconds(limit), &reply.status),
        "call a function");
    reply.bytes.resize(length);
    return reply;
}

// Outcome of one of several calls.
struct leg_reply {
    std::uint32_t node = 0;
    int error = 0;  // 0 or a negative errno
    std::uint32_t status = 0;
    std::vector<std::byte> bytes;
};

// Calls a function of up to LITE_RPC_LEGS_MAX nodes with one request. Returns as soon as @quorum of
// them have answered, or no longer can; 0: when all have ended. The result is in the order of
// @nodes; calls that were not waited for have error -ECANCELED.
inline std::vector<leg_reply> multicall(context& ctx, std::span<const std::uint32_t> nodes,
                                        std::uint32_t function, std::span<const std::byte> request,
                                        std::size_t quorum = 0, std::size_t room = 4096,
                                        timeout limit = default_timeout) {
    std::vector<leg_reply> replies(nodes.size());
    std::vector<lite_rpc_leg> legs(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); i++) {
        replies[i].bytes.resize(room);
        legs[i].node = replies[i].node = nodes[i];
        legs[i].reply = replies[i].bytes.data();
        legs[i].room = room;
    }
    const int n = lite_rpc_multicall(ctx.get(), function, request.data(), request.size(),
                                     legs.data(), legs.size(), quorum, detail::milliseconds(limit));
    detail::check_rpc(n < 0 ? n : 0, "call a function of several nodes");
    for (std::size_t i = 0; i < nodes.size(); i++) {
        replies[i].error = legs[i].error;
        replies[i].status = legs[i].status;
        replies[i].bytes.resize(legs[i].error ? 0 : legs[i].length);
    }
    return replies;
}

// Sends a message to a function.
inline void send(context& ctx, std::uint32_t node, std::uint32_t function,
                 std::span<const std::byte> message, timeout limit = default_timeout) {
    detail::check_rpc(lite_rpc_send(ctx.get(), node, function, message.data(), message.size(),
                                    detail::milliseconds(limit)),
                      "send a message");
}

}  // namespace lite
