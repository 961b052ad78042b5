// SPDX-License-Identifier: MIT
// A process that holds a request in place, for tests that end its caller, or its node:
//
//   inplace INDEX FUNCTION   serves it, says "ready", takes one request, says "taken", and looks at
//                            it until its input ends, or it gets SIGBUS: "same", "changed" or
//                            "SIGBUS"; "same" is answered
#include <lite/inbox.hpp>

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>
#include <vector>

#include <unistd.h>

namespace {

sigjmp_buf out;

void on_bus(int) { siglongjmp(out, 1); }

// The request, until @end; whether it was the same all the time.
bool look(const void* data, std::size_t length, const std::atomic<bool>& end) {
    const auto* bytes = static_cast<const std::byte*>(data);
    const std::vector<std::byte> first(bytes, bytes + length);
    bool same = true;
    while (!end)
        same = std::memcmp(data, first.data(), length) == 0 && same;
    return same;
}

int hold(int index, std::uint32_t number) {
    lite::context node(index);
    const lite::function function(
        node, {.number = number, .mode = 0666, .max_request = 4000, .ring_size = 8192});
    const lite::inbox inbox(node, function.number());
    std::puts("ready");
    std::fflush(stdout);
    lite_rpc_request request{};
    const void* data = nullptr;
    if (lite_inbox_next(inbox.get(), -1, &request, &data))
        return 1;
    std::puts("taken");
    std::fflush(stdout);
    static std::atomic<bool> end = false;
    std::thread([] {
        char byte;
        while (::read(STDIN_FILENO, &byte, 1) > 0)
            ;
        end = true;
    }).detach();
    if (sigsetjmp(out, 1)) {
        std::puts("SIGBUS");
        std::fflush(stdout);
        std::_Exit(0);
    }
    std::signal(SIGBUS, on_bus);
    const bool same = look(data, request.length, end);
    std::puts(same ? "same" : "changed");
    return lite_inbox_reply(inbox.get(), request.token, 0, data, request.length) ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3)
        return 2;
    try {
        return hold(std::atoi(argv[1]), static_cast<std::uint32_t>(std::atoi(argv[2])));
    } catch (const std::exception& e) {
        std::printf("%s\n", e.what());
        return 1;
    }
}
