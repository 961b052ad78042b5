// SPDX-License-Identifier: MIT
// What a process sees, what it can do to that, and what becomes of it if it lies.
#include "fixture.hpp"

#include <chrono>
#include <memory>
#include <random>
#include <thread>

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

using namespace lite_test;

namespace {

constexpr Result success{};
constexpr Result failed(int err) { return {-err}; }
constexpr std::size_t page = 4096;

}  // namespace

TEST_CASE_METHOD(RpcFixture, "inbox: rings are read, never written", "[inbox]") {
    INFO(where.label);
    const auto function = enroll(server, params_of());
    const RawInbox inbox(server, function, 8);
    std::thread caller([&] {
        expect_equal(call(function, request_of(Wish::echo, 500), nullptr).value, 0, "call");
    });
    const auto entry = inbox.take();
    std::byte* data = inbox.rings() + entry.offset;
    CHECK(Bytes(data, data + entry.length) == request_of(Wish::echo, 500));
    CHECK(store_signal(data) == SIGSEGV);
    std::byte* whole = inbox.rings() + entry.offset / page * page;
    CHECK(::mprotect(whole, page, PROT_READ | PROT_WRITE) == -1);
    CHECK(errno == EACCES);
    CHECK(::mprotect(whole, page, PROT_READ | PROT_EXEC) == -1);
    // Not by way of the kernel either.
    const int mem = ::open("/proc/self/mem", O_RDWR);
    REQUIRE(mem >= 0);
    char byte = 'x';
    CHECK(::pwrite(mem, &byte, 1, static_cast<off_t>(reinterpret_cast<std::uintptr_t>(data))) ==
          -1);
    CHECK(::pread(mem, &byte, 1, static_cast<off_t>(reinterpret_cast<std::uintptr_t>(data))) == 1);
    ::close(mem);
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    REQUIRE(::write(ends[1], "y", 1) == 1);
    CHECK(::read(ends[0], data, 1) == -1);
    CHECK(errno == EFAULT);
    // A page in a pipe is a page that the process has; also when the ring has gone.
    iovec span{data, 100};
    REQUIRE(::vmsplice(ends[1], &span, 1, 0) == 100);
    lite_ioc_rpc_next n{};
    n.flags = LITE_RPC_NOWAIT | LITE_RPC_REPLY;
    n.token = entry.token;
    CHECK(inbox.next(n) == 0);
    CHECK(n.answered == 1);
    caller.join();
    REQUIRE(lite_rpc_unregister(server, function) == 0);
    wait_until("the ring is not to be seen any more", [&] { return load_signal(data) == SIGBUS; });
    char rest[101];
    CHECK(::read(ends[0], rest, 101) == 101);
    ::close(ends[0]);
    ::close(ends[1]);
    // Where no ring is, there is nothing.
    CHECK(load_signal(inbox.rings() + inbox.args.rings_bytes - 1) == SIGBUS);
    CHECK(store_signal(inbox.control()) == 0);
}

TEST_CASE_METHOD(RpcFixture, "inbox: headers tell no address", "[inbox]") {
    INFO(where.label);
    const auto function = enroll(server, params_of());
    const RawInbox inbox(server, function, 8);
    for (int i = 0; i < 2; i++)
        REQUIRE(lite_rpc_send(client, node, function, "x", 1, patience_ms()) == 0);
    for (int i = 0; i < 2; i++) {
        const auto entry = inbox.take();
        std::uint64_t words[8];
        std::memcpy(words, inbox.rings() + entry.offset - sizeof(words), sizeof(words));
        // Where the reply goes is an even number: this one is not the address.
        CHECK(words[3] % 2 == 1);
        CHECK(inbox.give_back(entry.token) == 0);
    }
}

TEST_CASE_METHOD(RpcFixture, "inbox: looked at while rings come into it", "[inbox]") {
    INFO(where.label);
    const auto function = enroll(server, params_of(100));
    std::atomic<std::byte*> first = nullptr;
    std::atomic<bool> end = false;
    Threads lookers;
    // Its pages are asked for, there or not, again and again. That fails, and does no harm.
    for (int i = 0; i < 2; i++)
        lookers.start([&] {
            while (!end) {
                std::byte* at = first;
                if (at)
                    (void)::madvise(at, page, MADV_POPULATE_READ);
                else
                    std::this_thread::yield();
            }
        });
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(env().scaled(6000, 500));
    while (std::chrono::steady_clock::now() < until) {
        std::unique_ptr<RawInbox> inbox;
        // The one before may not have gone yet: its file is kept by who looks at it.
        wait_until("an inbox", [&] {
            try {
                inbox = std::make_unique<RawInbox>(server, function, 1);
            } catch (const Failure&) {
                REQUIRE(errno == EBUSY);
            }
            return inbox != nullptr;
        });
        first = inbox->rings();
        REQUIRE(lite_rpc_send(client, node, function, "x", 1, patience_ms()) == 0);
        const auto entry = inbox->take();
        CHECK(inbox->rings()[entry.offset] == std::byte{'x'});
        REQUIRE(inbox->give_back(entry.token) == 0);
        first = nullptr;
    }
    end = true;
    lookers.join();
}

TEST_CASE_METHOD(RpcFixture, "inbox: moved, split, forked, half unmapped", "[inbox]") {
    INFO(where.label);
    const auto function = enroll(server, params_of());
    RawInbox inbox(server, function, 8);
    std::thread caller([&] {
        expect_equal(call(function, request_of(Wish::echo, 500), nullptr).value, 0, "call");
    });
    const auto entry = inbox.take();
    const auto ring = entry.offset / page * page;
    CHECK(load_signal(inbox.rings() + entry.offset) == 0);
    Child child([&] {
        expect_equal(load_signal(inbox.control()), SIGSEGV, "the control");
        expect_equal(load_signal(inbox.rings() + entry.offset), SIGSEGV, "the rings");
    });
    child.join();
    // Split: the page of the request is kept, the rest unmapped.
    if (ring)
        REQUIRE(::munmap(inbox.rings(), ring) == 0);
    REQUIRE(::munmap(inbox.rings() + ring + page, inbox.args.rings_bytes - ring - page) == 0);
    void* place = ::mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(place != MAP_FAILED);
    void* moved = ::mremap(inbox.rings() + ring, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    REQUIRE(moved == place);
    CHECK(::mremap(moved, page, 2 * page, MREMAP_MAYMOVE) == MAP_FAILED);
    const auto* data = static_cast<const std::byte*>(moved) + entry.offset % page;
    CHECK(Bytes(data, data + entry.length) == request_of(Wish::echo, 500));
    // Dropped, and there again.
    REQUIRE(::madvise(moved, page, MADV_DONTNEED) == 0);
    CHECK(Bytes(data, data + entry.length) == request_of(Wish::echo, 500));
    REQUIRE(::madvise(inbox.control(), page, MADV_DONTNEED) == 0);
    CHECK(inbox.head() == 1);
    lite_ioc_rpc_next n{};
    n.flags = LITE_RPC_NOWAIT | LITE_RPC_REPLY;
    n.token = entry.token;
    CHECK(inbox.next(n) == 0);
    caller.join();
    // Without the control there is nothing to be taken, but it is an inbox yet.
    REQUIRE(::munmap(inbox.control(), inbox.args.control_bytes) == 0);
    CHECK(call(function, Bytes(10), nullptr, 100, 50) == failed(ETIMEDOUT));
    REQUIRE(::munmap(moved, page) == 0);
    inbox.args.control = 0;
    wait_until("it has gone", [&] {
        lite_inbox* next = nullptr;
        if (lite_inbox_open(server, function, 0, &next))
            return false;
        lite_inbox_close(next);
        return true;
    });
}

TEST_CASE_METHOD(RpcFixture, "inbox: a process that lies", "[inbox]") {
    INFO(where.label);
    auto params = params_of(200);
    params.function = 3104;
    params.flags = LITE_RPC_SHARED;
    Context honest(where.server);
    REQUIRE(enroll(honest, params) == 3104);
    std::mt19937_64 random(env().seed);
    for (std::size_t round = 0; round < env().scaled(12, 3); round++) {
        Context mine(where.server);
        REQUIRE(enroll(mine, params) == 3104);
        RawInbox inbox(mine, 3104, static_cast<std::uint32_t>(1 + random() % 16));
        Threads callers;
        for (int i = 0; i < 4; i++)
            callers.start([&] {
                for (int k = 0; k < 5; k++) {
                    const auto result = call(3104, Bytes(50), nullptr, 100, 200);
                    expect(result == success || result == failed(ETIMEDOUT) ||
                               result == failed(ECONNRESET) || result == failed(ECONNREFUSED) ||
                               result == failed(EMSGSIZE),
                           "a call ends in a known way");
                }
            });
        auto* words = reinterpret_cast<volatile std::uint64_t*>(inbox.control());
        const auto n = inbox.args.control_bytes / sizeof(std::uint64_t);
        std::vector<std::uint64_t> tokens;
        for (int i = 0; i < 300; i++) {
            const auto token = inbox.entries()[random() % inbox.args.entries].token;
            switch (random() % 6) {
                case 0:
                    words[random() % n] = random();
                    break;
                case 1:
                    inbox.head() = inbox.tail() + random() % 64 - 32;
                    break;
                case 2:
                    inbox.head() = random() % 2 ? ~0ULL : LITE_INBOX_CLOSED;
                    break;
                case 3:
                    // Also what it has not taken, and what it has given back.
                    (void)inbox.give_back(token);
                    break;
                case 4: {
                    lite_ioc_rpc_next next{};
                    next.flags = LITE_RPC_REPLY | (random() % 2 ? LITE_RPC_NOWAIT : 0);
                    next.token = token;
                    next.reply = inbox.args.rings + random() % inbox.args.rings_bytes;
                    next.reply_len = static_cast<std::uint32_t>(random() % 300);
                    next.seen = random() % 2 ? inbox.tail() : random();
                    next.timeout_ms = 1;
                    (void)inbox.next(next);
                    break;
                }
                default:
                    std::this_thread::yield();
            }
        }
        if (random() % 2)
            inbox.unmap();
        else
            mine.close();
        callers.join();
    }
    // Nobody else is the worse for it.
    const Inbox inbox(honest, 3104);
    const Echoing echoing(inbox);
    for (std::uint64_t i = 0; i < 50; i++) {
        const auto request = request_of(Wish::echo, 1 + i * 3, i);
        Bytes reply;
        REQUIRE(call(3104, request, &reply) == success);
        REQUIRE(reply == answer_to(request));
    }
}
