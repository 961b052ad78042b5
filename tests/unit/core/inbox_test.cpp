// SPDX-License-Identifier: MIT
// The queue of an inbox: the kernel's side of it, and that of liblite.
#include "support.hpp"

extern "C" {
#include "core/inbox.h"
}

#include "inbox_queue.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

using namespace lite_test;
using lite::internal::inbox_queue;

namespace {

// What both sides share, and the kernel's.
class Shared {
  public:
    explicit Shared(std::uint32_t entries)
        : words_(lite_inbox_control_bytes(entries) / sizeof(std::uint64_t)) {
        queue.control = control();
        queue.entries = entries;
    }

    lite_inbox_control* control() { return reinterpret_cast<lite_inbox_control*>(words_.data()); }
    inbox_queue process() { return {control(), queue.entries}; }
    std::uint64_t put(std::uint64_t token) {
        lite_inbox_entry entry{};
        entry.token = token;
        entry.offset = ~token;
        entry.reserved[2] = token * 3;
        return lite_inbox_put(&queue, &entry);
    }

    lite_inbox_queue queue{};

  private:
    std::vector<std::uint64_t> words_;
};

bool is_whole(const lite_inbox_entry& entry) {
    return entry.offset == ~entry.token && entry.reserved[2] == entry.token * 3;
}

}  // namespace

TEST_CASE("inbox: sizes") {
    CHECK(lite_inbox_entries(1) == 1);
    CHECK(lite_inbox_entries(2) == 2);
    CHECK(lite_inbox_entries(3) == 4);
    CHECK(lite_inbox_entries(LITE_INBOX_DEPTH_MAX) == LITE_INBOX_DEPTH_MAX);
    CHECK(lite_inbox_control_bytes(1) == 4096);
    CHECK(lite_inbox_control_bytes(62) == 4096);
    CHECK(lite_inbox_control_bytes(64) == 8192);
    CHECK(lite_inbox_control_bytes(LITE_INBOX_DEPTH_MAX) < LITE_INBOX_RINGS);

    // Never fewer than rings that can be there at once.
    CHECK(lite_inbox_slots(64 << 20, 4096) == 16384);
    CHECK(lite_inbox_slots(64 << 20, (64 << 20) + 4096) == 1);
    CHECK(lite_inbox_slots(100000, 49152) == 2);

    CHECK(lite_inbox_offset(0, 4096, 0, 64) == 64);
    CHECK(lite_inbox_offset(3, 8192, 5, 64) == 3 * 8192 + 5 * 64 + 64);
    CHECK(lite_inbox_offset(16383, 1114112, 17407, 64) == 16383ULL * 1114112 + 17407ULL * 64 + 64);
}

TEST_CASE("inbox: entries come out in the order they went in") {
    Shared shared(4);
    const auto process = shared.process();
    lite_inbox_entry entry{};
    std::uint64_t seen = 99;
    for (std::uint64_t round = 0; round < 10; round++) {
        REQUIRE(process.take(entry, seen) == inbox_queue::state::empty);
        CHECK(seen == 4 * round);
        CHECK(process.is_empty(seen));
        CHECK(lite_inbox_is_empty(&shared.queue));
        for (std::uint64_t i = 0; i < 4; i++)
            CHECK(shared.put(100 * round + i) == 4 * round + i);
        CHECK(!lite_inbox_is_empty(&shared.queue));
        CHECK(process.tail() == 4 * round + 4);
        for (std::uint64_t i = 0; i < 4; i++) {
            REQUIRE(process.take(entry, seen) == inbox_queue::state::taken);
            CHECK(entry.token == 100 * round + i);
            CHECK(is_whole(entry));
        }
    }
}

TEST_CASE("inbox: what was not taken when it is closed") {
    for (std::uint32_t taken = 0; taken <= 8; taken++) {
        Shared shared(8);
        const auto process = shared.process();
        lite_inbox_entry entry{};
        std::uint64_t seen = 0;
        for (std::uint64_t i = 0; i < 8; i++)
            shared.put(i);
        for (std::uint32_t i = 0; i < taken; i++)
            REQUIRE(process.take(entry, seen) == inbox_queue::state::taken);
        CHECK(lite_inbox_close(&shared.queue) == 8 - taken);
        CHECK(process.take(entry, seen) == inbox_queue::state::closed);
        CHECK(process.take(entry, seen) == inbox_queue::state::closed);
    }
}

TEST_CASE("inbox: a process that writes nonsense") {
    for (const auto nonsense : edges()) {
        Shared shared(8);
        for (std::uint64_t i = 0; i < 5; i++)
            shared.put(i);
        shared.control()->head = nonsense;
        shared.control()->tail = ~nonsense;
        CHECK(shared.put(5) == 5);
        CHECK(shared.control()->tail == 6);
        CHECK(lite_inbox_is_empty(&shared.queue) == (nonsense == 6));
        CHECK(lite_inbox_close(&shared.queue) <= 8);
    }
}

// Threads that take, a kernel that puts what has room, and closes at any time: each entry is taken
// once, whole, or is left.
TEST_CASE("inbox: each is taken once or left") {
    constexpr std::uint32_t entries = 8;
    constexpr std::uint64_t count = 20000;
    Random random;
    for (int round = 0; round < 5; round++) {
        Shared shared(entries);
        const auto close_at = random.between(count / 2, count);
        std::vector<std::atomic<int>> taken(count);
        std::atomic<std::uint64_t> given_back = 0;
        std::atomic<bool> torn = false;
        std::vector<std::thread> threads;
        for (int i = 0; i < 3; i++) {
            threads.emplace_back([&] {
                const auto process = shared.process();
                lite_inbox_entry entry{};
                std::uint64_t seen = 0;
                for (;;) {
                    const auto state = process.take(entry, seen);
                    if (state == inbox_queue::state::closed)
                        return;
                    if (state == inbox_queue::state::empty) {
                        std::this_thread::yield();
                        continue;
                    }
                    if (!is_whole(entry) || entry.token >= count)
                        torn = true;
                    else
                        taken[entry.token]++;
                    given_back.fetch_add(1, std::memory_order_release);
                }
            });
        }
        std::uint64_t put = 0;
        while (put < close_at) {
            if (put - given_back.load(std::memory_order_acquire) < entries)
                shared.put(put++);
            else
                std::this_thread::yield();
        }
        const auto left = lite_inbox_close(&shared.queue);
        for (auto& thread : threads)
            thread.join();
        CHECK(!torn);
        CHECK(given_back + left == put);
        for (std::uint64_t i = 0; i < put; i++)
            REQUIRE(taken[i] == (i < put - left ? 1 : 0));
    }
}
