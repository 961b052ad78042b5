// SPDX-License-Identifier: MIT
//
// liblite for C++20: requests taken in place. What it means is in <lite/inbox.h>;
// everything throws lite::error as the function of C says.
//
//    lite::context ctx;
//    lite::function echo(ctx, {.name = "echo", .mode = 0666});
//    lite::inbox inbox(ctx, echo.number());
//    inbox.serve([](const lite::call_info&, std::span<const std::byte> request) {
//        return lite::inbox::answer{request};
//    });
#pragma once

#include <utility>

#include <lite/inbox.h>
#include <lite/rpc.hpp>

namespace lite {

// Requests for a function that a context serves. Any number of threads may use it
// at the same time; it is to be destroyed before the context. A child of fork(2)
// may only destroy its copy, which does nothing.
class inbox {
  public:
    // What a handler says: bytes that are there until it is called again, or those of
    // the request.
    struct answer {
        std::span<const std::byte> bytes = {};
        std::uint32_t status = 0;
    };

    inbox(context& ctx, std::uint32_t function, std::uint32_t depth = 0) {
        detail::check_rpc(lite_inbox_open(ctx.get(), function, depth, &m_inbox), "open an inbox");
    }
    inbox(inbox&& other) noexcept : m_inbox(std::exchange(other.m_inbox, nullptr)) {}
    inbox& operator=(inbox&&) = delete;
    ~inbox() { lite_inbox_close(m_inbox); }

    lite_inbox* get() const noexcept { return m_inbox; }

    // Serves requests by @handler(const call_info&, std::span<const std::byte>), which
    // returns an answer, of which nobody takes notice if the request is a message;
    // until @more() is false, asked after every request and every 100 ms. What the
    // handler throws gets out of here, and so does an answer that is too long (E2BIG)
    // or not there (EFAULT); the caller is told that there is no answer
    // (ECONNRESET), and serve() may be called again. ENOMEM passes, as in
    // function::serve().
    template <typename Handler, typename More>
    void serve(Handler handler, More more) {
        lite_rpc_request request{};
        const void* data = nullptr;
        answer said;
        while (more()) {
            const int err = lite_inbox_reply_next(m_inbox, &request, &data, said.status,
                                                  said.bytes.data(), said.bytes.size(), 100);
            if (detail::passes(err))
                continue;
            if (err) {
                // One that is still there was not answered, and none taken therefore.
                const char* doing = request.token ? "answer a request" : "take a request";
                give_back(request);
                detail::fail_rpc(err, doing);
            }
            try {
                said = handler(std::as_const(request),
                               std::span(static_cast<const std::byte*>(data), request.length));
            } catch (...) {
                give_back(request);
                throw;
            }
        }
        if (!request.token)
            return;
        if (request.flags & LITE_RPC_REQ_ONEWAY) {
            give_back(request);
            return;
        }
        const int err = detail::answer_last([&] {
            return lite_inbox_reply(m_inbox, request.token, said.status, said.bytes.data(),
                                    said.bytes.size());
        });
        if (err)
            give_back(request);
        detail::check_rpc(err, "answer a request");
    }

    // For ever, or until something is thrown.
    template <typename Handler>
    void serve(Handler handler) {
        serve(std::move(handler), [] { return true; });
    }

  private:
    void give_back(const lite_rpc_request& request) noexcept {
        if (request.token)
            lite_inbox_done(m_inbox, request.token);
    }

    lite_inbox* m_inbox = nullptr;
};

}  // namespace lite
