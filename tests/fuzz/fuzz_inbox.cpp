// SPDX-License-Identifier: MIT
// The queue of an inbox, while a process writes into it whatever it likes: the kernel never looks
// beyond it, and what it concludes is bounded.
#include "fuzz.hpp"

extern "C" {
#include "core/inbox.h"
}

#include <vector>

using namespace lite_fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input in(data, size);
    const std::uint32_t depth = in.take<std::uint8_t>() % LITE_INBOX_DEPTH_MAX + 1;
    const auto entries = lite_inbox_entries(depth);
    require(entries >= depth && entries < 2 * depth && !(entries & (entries - 1)), "entries");
    // Exactly what is shared: the address sanitizer sees the rest.
    const std::size_t bytes =
        sizeof(lite_inbox_control) + std::size_t{entries} * sizeof(lite_inbox_entry);
    require(bytes <= lite_inbox_control_bytes(entries), "bytes");
    std::vector<std::uint64_t> shared(bytes / sizeof(std::uint64_t));
    lite_inbox_queue queue{};
    queue.control = reinterpret_cast<lite_inbox_control*>(shared.data());
    queue.entries = entries;
    std::uint64_t put = 0;
    bool honest = true;
    std::uint64_t taken = 0;
    while (!in.empty()) {
        switch (in.take<std::uint8_t>() % 4) {
            case 0: {
                lite_inbox_entry entry{};
                entry.token = put;
                require(lite_inbox_put(&queue, &entry) == put, "a number");
                put++;
                require(queue.control->tail == put, "the tail");
                break;
            }
            case 1:
                shared[in.take<std::uint16_t>() % shared.size()] = in.take<std::uint64_t>();
                honest = false;
                break;
            case 2:
                if (honest && taken < put)
                    queue.control->head = ++taken;
                break;
            default:
                if (lite_inbox_is_empty(&queue))
                    require(!honest || taken == put, "empty");
        }
    }
    const auto left = lite_inbox_close(&queue);
    require(left <= entries, "more left than there can be");
    require(!honest || left == (put - taken < entries ? put - taken : entries), "what is left");
    require(queue.control->head == LITE_INBOX_CLOSED, "closed");
    return 0;
}
