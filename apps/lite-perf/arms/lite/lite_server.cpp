// SPDX-License-Identifier: MIT
#include "arms/lite/lite_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <thread>

#include "arms/lite/lite_memory.hpp"
#include "transport.hpp"

namespace perf {

namespace {

constexpr std::chrono::milliseconds memory_pause{10};

}  // namespace

LiteServer::LiteServer(unsigned index) {
    lite_ctx* context = nullptr;
    check_lite(lite_open(static_cast<int>(index), &context), "open");
    context_.reset(context);
    lite_rpc_params params{};
    params.size = sizeof params;
    params.name = lite_echo_name;
    params.mode = 0666;
    params.max_request = echo_max;
    params.max_reply = echo_max;
    check_lite(lite_rpc_register(context, &params, &function_), "register");
    const unsigned count = std::max(1U, std::thread::hardware_concurrency());
    for (unsigned i = 0; i < count; i++)
        threads_.emplace_back([this] { run(); });
}

LiteServer::~LiteServer() {
    // Wakes the threads that wait for requests.
    lite_rpc_unregister(context_.get(), function_);
    threads_.clear();
}

void LiteServer::run() {
    std::vector<std::byte> buffer(echo_max);
    lite_rpc_request request{};
    // The first call has no request to answer.
    for (;;) {
        const int error =
            lite_rpc_reply_recv(context_.get(), &request, 0, buffer.data(), request.length,
                                function_, buffer.data(), buffer.size(), -1);
        if (error == -ENOENT || error == -ENODEV)
            return;
        // Stopping the process for a while interrupts the call.
        if (error == -EINTR)
            continue;
        if (error == -ENOMEM) {
            std::this_thread::sleep_for(memory_pause);
            continue;
        }
        if (error) {
            fmt::print(stderr, "lite-perf: LITE: serve: {}\n", lite_strerror(error));
            return;
        }
    }
}

}  // namespace perf
