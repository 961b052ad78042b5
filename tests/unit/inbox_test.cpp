// SPDX-License-Identifier: MIT
//
// What liblite makes of inboxes: when it needs a system call, and when not.

#include "context.hpp"

#include "error_of.hpp"

#include <lite/inbox.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t page = 4096;

void* pages(std::size_t bytes) {
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(at != MAP_FAILED);
    return at;
}

template <typename T>
T& as(void* arg) {
    return *static_cast<T*>(arg);
}

// A kernel with one inbox.
class kernel final : public lite::internal::device {
  public:
    struct state {
        std::vector<lite_ioc_rpc_next> calls;
        std::function<int(lite_ioc_rpc_next&)> next = [](lite_ioc_rpc_next&) { return 0; };
        lite_inbox_control* control = nullptr;
        std::byte* rings = nullptr;
        std::uint32_t depth = 0;
        int open = 0;

        void put(std::uint64_t token, const std::string& text, std::uint32_t flags = 0) {
            auto* entries = reinterpret_cast<lite_inbox_entry*>(control + 1);
            lite_inbox_entry entry{};
            entry.token = token;
            entry.offset = 100 * (control->tail % 8);
            entry.length = static_cast<std::uint32_t>(text.size());
            entry.node = 3;
            entry.uid = 1000;
            entry.flags = flags;
            entry.reply_room = 77;
            std::memcpy(rings + entry.offset, text.data(), text.size());
            entries[control->tail % 8] = entry;
            control->tail++;
        }
    };

    explicit kernel(state& s) : m_state(s) {}
    int control(unsigned long request, void* arg) noexcept override {
        if (request == LITE_IOC_RPC_NEXT) {
            m_state.calls.push_back(as<lite_ioc_rpc_next>(arg));
            return m_state.next(as<lite_ioc_rpc_next>(arg));
        }
        if (request != LITE_IOC_RPC_INBOX)
            return -ENOTTY;
        if (m_state.open)
            return m_state.open;
        auto& inbox = as<lite_ioc_rpc_inbox>(arg);
        m_state.depth = inbox.depth;
        m_state.control = static_cast<lite_inbox_control*>(pages(page));
        m_state.rings = static_cast<std::byte*>(pages(page));
        inbox.depth = 8;
        inbox.entries = 8;
        inbox.control = lite::internal::as_u64(m_state.control);
        inbox.rings = lite::internal::as_u64(m_state.rings);
        inbox.control_bytes = inbox.rings_bytes = page;
        return 0;
    }
    int fd() const noexcept override { return -1; }

  private:
    state& m_state;
};

struct setup {
    kernel::state kern;
    lite::context ctx =
        lite::context::adopt(lite::internal::make_context(std::make_unique<kernel>(kern)));
};

}  // namespace

TEST_CASE_METHOD(setup, "inbox: opened, or not", "[liblite]") {
    lite_inbox* inbox = nullptr;
    kern.open = -EBUSY;
    CHECK(lite_inbox_open(ctx.get(), 7, 3, &inbox) == -EBUSY);
    CHECK(!inbox);
    CHECK_THROWS_AS(lite::inbox(ctx, 7), lite::error);
    kern.open = 0;
    REQUIRE(lite_inbox_open(ctx.get(), 7, 3, &inbox) == 0);
    CHECK(kern.depth == 3);
    lite_rpc_request request{};
    const void* data = nullptr;
    CHECK(lite_inbox_next(inbox, -3, &request, &data) == -EINVAL);
    CHECK(lite_inbox_next(inbox, LITE_TIMEOUT_MAX + 1, &request, &data) == -EINVAL);
    CHECK(lite_inbox_reply_next(inbox, &request, &data, 0, nullptr, 0, -3) == -EINVAL);
    // Nothing there, and no wish to wait: the kernel is not asked.
    CHECK(lite_inbox_next(inbox, 0, &request, &data) == -EAGAIN);
    CHECK(kern.calls.empty());
    lite_inbox_close(inbox);
    lite_inbox_close(nullptr);
    CHECK(kern.calls.empty());
}

TEST_CASE_METHOD(setup, "inbox: requests that are there need no call", "[liblite]") {
    const lite::inbox inbox(ctx, 7);
    kern.put(11, "one");
    kern.put(12, "twelve");
    lite_rpc_request request{};
    const void* data = nullptr;
    REQUIRE(lite_inbox_next(inbox.get(), -1, &request, &data) == 0);
    CHECK(request.token == 11);
    CHECK(request.function == 7);
    CHECK(request.length == 3);
    CHECK(request.node == 3);
    CHECK(request.uid == 1000);
    CHECK(request.reply_room == 77);
    CHECK(std::memcmp(data, "one", 3) == 0);
    CHECK(kern.calls.empty());

    // One answers, and does not wait, as there is another.
    kern.next = [](lite_ioc_rpc_next& n) {
        n.answered = 1;
        return 0;
    };
    REQUIRE(lite_inbox_reply_next(inbox.get(), &request, &data, 5, data, 3, -1) == 0);
    REQUIRE(kern.calls.size() == 1);
    CHECK(kern.calls[0].flags == (LITE_RPC_REPLY | LITE_RPC_NOWAIT));
    CHECK(kern.calls[0].token == 11);
    CHECK(kern.calls[0].status == 5);
    CHECK(kern.calls[0].reply_len == 3);
    CHECK(kern.calls[0].function == 7);
    CHECK(request.token == 12);
    CHECK(std::memcmp(data, "twelve", 6) == 0);

    // Then there is none: the same call answers and waits.
    kern.next = [&](lite_ioc_rpc_next& n) {
        n.answered = 1;
        kern.put(13, "x");
        return 0;
    };
    REQUIRE(lite_inbox_reply_next(inbox.get(), &request, &data, 0, nullptr, 0, 500) == 0);
    REQUIRE(kern.calls.size() == 2);
    CHECK(kern.calls[1].flags == LITE_RPC_REPLY);
    CHECK(kern.calls[1].seen == 2);
    CHECK(kern.calls[1].timeout_ms > 0);
    CHECK(kern.calls[1].timeout_ms <= 500);
    CHECK(request.token == 13);

    // What is wrong with an answer; and what is wrong afterwards.
    kern.next = [](lite_ioc_rpc_next&) { return -EFAULT; };
    CHECK(lite_inbox_reply_next(inbox.get(), &request, &data, 0, nullptr, 9, -1) == -EFAULT);
    CHECK(request.token == 13);
    kern.next = [](lite_ioc_rpc_next& n) {
        n.answered = 1;
        return -EINTR;
    };
    CHECK(lite_inbox_reply_next(inbox.get(), &request, &data, 0, nullptr, 0, -1) == -EINTR);
    CHECK(request.token == 0);
    kern.next = [](lite_ioc_rpc_next&) { return -ETIMEDOUT; };
    CHECK(lite_inbox_reply_next(inbox.get(), &request, &data, 0, nullptr, 0, 1) == -ETIMEDOUT);
    CHECK(kern.calls.back().flags == 0);
    CHECK(kern.calls.back().timeout_ms == 1);
    kern.next = [](lite_ioc_rpc_next&) { return -ETIMEDOUT; };
    CHECK(lite_inbox_next(inbox.get(), -1, &request, &data) == -ETIMEDOUT);
    CHECK(kern.calls.back().timeout_ms == LITE_FOREVER);
}

TEST_CASE_METHOD(setup, "inbox: messages are given back together", "[liblite]") {
    const lite::inbox inbox(ctx, 7);
    lite_rpc_request request{};
    const void* data = nullptr;
    kern.next = [](lite_ioc_rpc_next&) { return -ETIMEDOUT; };
    for (std::uint64_t i = 0; i < 6; i++)
        kern.put(20 + i, "m", LITE_RPC_REQ_ONEWAY);
    REQUIRE(lite_inbox_reply_next(inbox.get(), &request, &data, 0, nullptr, 0, -1) == 0);
    CHECK(request.flags == LITE_RPC_REQ_ONEWAY);
    // A quarter of the depth, or what there is when there are no more.
    REQUIRE(lite_inbox_reply_next(inbox.get(), &request, &data, 0, nullptr, 0, -1) == 0);
    CHECK(kern.calls.empty());
    kern.next = [](lite_ioc_rpc_next&) { return 0; };
    REQUIRE(lite_inbox_reply_next(inbox.get(), &request, &data, 0, nullptr, 0, -1) == 0);
    REQUIRE(kern.calls.size() == 1);
    CHECK(kern.calls[0].flags == LITE_RPC_NOWAIT);
    REQUIRE(kern.calls[0].n_done == 2);
    CHECK(kern.calls[0].done[0] == 20);
    CHECK(kern.calls[0].done[1] == 21);
    CHECK(request.token == 22);
    REQUIRE(lite_inbox_reply_next(inbox.get(), &request, &data, 0, nullptr, 0, -1) == 0);
    CHECK(kern.calls.size() == 1);
    // With an answer goes what was put off.
    kern.put(30, "call");
    lite_rpc_request call{};
    REQUIRE(lite_inbox_next(inbox.get(), -1, &call, &data) == 0);
    CHECK(call.token == 24);
    REQUIRE(lite_inbox_next(inbox.get(), -1, &call, &data) == 0);
    CHECK(call.token == 25);
    REQUIRE(lite_inbox_next(inbox.get(), -1, &call, &data) == 0);
    CHECK(call.token == 30);
    CHECK(lite_inbox_reply(inbox.get(), call.token, 0, "r", 1) == 0);
    REQUIRE(kern.calls.size() == 2);
    CHECK(kern.calls[1].n_done == 1);
    CHECK(kern.calls[1].done[0] == 22);
    CHECK(lite_inbox_done(inbox.get(), 24) == 0);
    REQUIRE(kern.calls.size() == 3);
    CHECK(kern.calls[2].n_done == 1);
    CHECK(kern.calls[2].done[0] == 24);
    // Before it waits, and when it does not want to.
    kern.next = [](lite_ioc_rpc_next&) { return -ETIMEDOUT; };
    CHECK(request.token == 23);
    CHECK(lite_inbox_reply_next(inbox.get(), &request, &data, 0, nullptr, 0, -1) == -ETIMEDOUT);
    CHECK(request.token == 0);
    REQUIRE(kern.calls.size() == 4);
    CHECK(kern.calls[3].n_done == 1);
    CHECK(kern.calls[3].done[0] == 23);
    CHECK(kern.calls[3].flags == 0);
    kern.next = [](lite_ioc_rpc_next&) { return 0; };
    kern.put(40, "m", LITE_RPC_REQ_ONEWAY);
    REQUIRE(lite_inbox_next(inbox.get(), 0, &request, &data) == 0);
    CHECK(lite_inbox_reply_next(inbox.get(), &request, &data, 0, nullptr, 0, 0) == -EAGAIN);
    REQUIRE(kern.calls.size() == 5);
    CHECK(kern.calls[4].n_done == 1);
    CHECK(kern.calls[4].flags == LITE_RPC_NOWAIT);
}

TEST_CASE_METHOD(setup, "inbox: closed by the kernel", "[liblite]") {
    const lite::inbox inbox(ctx, 7);
    lite_rpc_request request{};
    const void* data = nullptr;
    kern.put(1, "x");
    kern.control->head = LITE_INBOX_CLOSED;
    CHECK(lite_inbox_next(inbox.get(), -1, &request, &data) == -ENOENT);
    CHECK(kern.calls.empty());
}

TEST_CASE_METHOD(setup, "inbox: served by a handler", "[liblite]") {
    lite::inbox inbox(ctx, 7);
    kern.put(1, "one");
    kern.put(2, "two", LITE_RPC_REQ_ONEWAY);
    kern.put(3, "three");
    kern.next = [](lite_ioc_rpc_next& n) {
        n.answered = (n.flags & LITE_RPC_REPLY) != 0;
        return 0;
    };
    int seen = 0;
    inbox.serve(
        [&](const lite::call_info& info, std::span<const std::byte> bytes) {
            seen++;
            return lite::inbox::answer{bytes, static_cast<std::uint32_t>(info.token)};
        },
        [&] { return seen < 3; });
    std::vector<std::uint64_t> answered;
    std::vector<std::uint64_t> done;
    for (const auto& call : kern.calls) {
        if (call.flags & LITE_RPC_REPLY) {
            answered.push_back(call.token);
            CHECK(call.status == call.token);
        }
        done.insert(done.end(), call.done, call.done + call.n_done);
    }
    CHECK(answered == std::vector<std::uint64_t>{1, 3});
    CHECK(done == std::vector<std::uint64_t>{2});

    // A handler that throws lets go of its request.
    kern.calls.clear();
    kern.put(4, "four");
    CHECK_THROWS_AS(inbox.serve([](const lite::call_info&,
                                   std::span<const std::byte>) -> lite::inbox::answer { throw 1; }),
                    int);
    REQUIRE(kern.calls.size() == 1);
    CHECK(kern.calls[0].done[0] == 4);
}

TEST_CASE_METHOD(setup, "inbox: an answer that cannot be given, and one that can be later",
                 "[liblite]") {
    lite::inbox inbox(ctx, 7);
    int calls = 0;
    int last = 1;
    const auto serve = [&] {
        inbox.serve(
            [&](const lite::call_info&, std::span<const std::byte> bytes) {
                calls++;
                return lite::inbox::answer{bytes};
            },
            [&] { return calls < last; });
    };
    std::vector<int> results;
    std::vector<std::uint64_t> answered;
    std::vector<std::uint64_t> done;
    kern.next = [&](lite_ioc_rpc_next& n) {
        done.insert(done.end(), n.done, n.done + n.n_done);
        if (!(n.flags & LITE_RPC_REPLY))
            return n.flags & LITE_RPC_NOWAIT ? 0 : -ETIMEDOUT;
        if (!results.empty()) {
            const int result = results.front();
            results.erase(results.begin());
            return result;
        }
        answered.push_back(n.token);
        n.answered = 1;
        return 0;
    };
    // Too long: its caller is told, whether others are served afterwards or not.
    for (const int more : {1, 2}) {
        kern.put(10, "x");
        calls = 0;
        last = more;
        results = {-E2BIG};
        done.clear();
        const auto e = error_of(serve);
        CHECK(e.code().value() == E2BIG);
        CHECK(std::string(e.what()).starts_with("answer a request: "));
        CHECK(done == std::vector<std::uint64_t>{10});
    }
    CHECK(answered.empty());
    done.clear();
    // For want of memory only later: of one among others, and of the last one.
    kern.put(11, "one");
    kern.put(12, "two");
    calls = 0;
    last = 2;
    results = {-ENOMEM, -ENOMEM};
    serve();
    CHECK(answered == std::vector<std::uint64_t>{11, 12});
    CHECK(calls == 2);
    kern.put(13, "three");
    last = 3;
    results = {-ENOMEM, -ENOMEM};
    serve();
    CHECK(answered.back() == 13);
    CHECK(done.empty());
}

TEST_CASE_METHOD(setup, "inbox: closed by a child that has inherited it", "[liblite]") {
    std::optional<lite::inbox> inbox(std::in_place, ctx, 7);
    // Something to be given back when it is closed.
    kern.put(20, "m", LITE_RPC_REQ_ONEWAY);
    lite_rpc_request request{};
    const void* data = nullptr;
    REQUIRE(lite_inbox_next(inbox->get(), 0, &request, &data) == 0);
    CHECK(lite_inbox_reply_next(inbox->get(), &request, &data, 0, nullptr, 0, 0) == -EAGAIN);
    kern.put(21, "m", LITE_RPC_REQ_ONEWAY);
    kern.put(22, "m", LITE_RPC_REQ_ONEWAY);
    REQUIRE(lite_inbox_next(inbox->get(), 0, &request, &data) == 0);
    REQUIRE(lite_inbox_reply_next(inbox->get(), &request, &data, 0, nullptr, 0, 0) == 0);
    kern.calls.clear();
    const pid_t pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        inbox.reset();
        // By now something else may be at these addresses.
        *kern.rings = std::byte{1};
        kern.control->tail++;
        ::_exit(kern.calls.empty() ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    inbox.reset();
    REQUIRE(kern.calls.size() == 1);
    CHECK(kern.calls[0].done[0] == 21);
}
