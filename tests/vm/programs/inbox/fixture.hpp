// SPDX-License-Identifier: MIT
// Inboxes: through liblite, and as the kernel shows them.
#pragma once

#include "../rpc/fixture.hpp"

#include <lite/inbox.h>

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <functional>
#include <utility>

#include <sys/ioctl.h>
#include <sys/mman.h>

namespace lite_test {

class Inbox {
  public:
    Inbox(lite_ctx* ctx, std::uint32_t function, std::uint32_t depth = 0) {
        expect_equal(lite_inbox_open(ctx, function, depth, &inbox_), 0, "open an inbox");
    }
    ~Inbox() { close(); }
    Inbox(const Inbox&) = delete;
    Inbox& operator=(const Inbox&) = delete;
    operator lite_inbox*() const { return inbox_; }
    void close() { lite_inbox_close(std::exchange(inbox_, nullptr)); }

  private:
    lite_inbox* inbox_ = nullptr;
};

// A request as it is, in place.
struct Taken {
    lite_rpc_request request{};
    const void* data = nullptr;

    Bytes copy() const {
        const auto* first = static_cast<const std::byte*>(data);
        return {first, first + request.length};
    }
};

inline Taken take(lite_inbox* inbox, int timeout_ms) {
    Taken taken;
    expect_equal(lite_inbox_next(inbox, timeout_ms, &taken.request, &taken.data), 0,
                 "take a request");
    return taken;
}

// What a process has of an inbox, without liblite.
class RawInbox {
  public:
    RawInbox(lite_ctx* ctx, std::uint32_t function, std::uint32_t depth) : ctx_(ctx) {
        args.size = sizeof(args);
        args.function = function;
        args.depth = depth;
        if (::ioctl(lite_fd(ctx), LITE_IOC_RPC_INBOX, &args))
            throw Failure(std::string("LITE_IOC_RPC_INBOX: ") + ::strerrorname_np(errno));
    }
    ~RawInbox() { unmap(); }
    RawInbox(const RawInbox&) = delete;
    RawInbox& operator=(const RawInbox&) = delete;

    lite_inbox_control* control() const { return address<lite_inbox_control>(args.control); }
    lite_inbox_entry* entries() const { return reinterpret_cast<lite_inbox_entry*>(control() + 1); }
    std::byte* rings() const { return address<std::byte>(args.rings); }
    volatile std::uint64_t& tail() const {
        return *address<volatile std::uint64_t>(args.control + offsetof(lite_inbox_control, tail));
    }
    volatile std::uint64_t& head() const {
        return *address<volatile std::uint64_t>(args.control + offsetof(lite_inbox_control, head));
    }
    void unmap() {
        if (!args.control)
            return;
        ::munmap(control(), args.control_bytes);
        ::munmap(rings(), args.rings_bytes);
        args.control = 0;
    }
    int next(lite_ioc_rpc_next& n) const {
        n.size = sizeof(n);
        n.function = args.function;
        return ::ioctl(lite_fd(ctx_), LITE_IOC_RPC_NEXT, &n) ? -errno : 0;
    }
    // The first entry that has not been taken.
    lite_inbox_entry take() const {
        wait_until("a request", [&] { return tail() != head(); });
        const auto entry = entries()[head() % args.entries];
        head() = head() + 1;
        return entry;
    }
    int give_back(std::uint64_t token) const {
        lite_ioc_rpc_next n{};
        n.flags = LITE_RPC_NOWAIT;
        n.done[0] = token;
        n.n_done = 1;
        return next(n);
    }

    lite_ioc_rpc_inbox args{};

  private:
    template <typename T>
    static T* address(std::uint64_t value) {
        return reinterpret_cast<T*>(static_cast<std::uintptr_t>(value));
    }

    lite_ctx* ctx_;
};

// The signal that @body got, 0 if none. For one thread at a time; @body must be safe to be left.
int signal_of(const std::function<void()>& body);
inline int load_signal(const void* at) {
    return signal_of([at] { (void)*static_cast<const volatile std::byte*>(at); });
}
inline int store_signal(void* at) {
    return signal_of([at] { *static_cast<volatile std::byte*>(at) = std::byte{0xff}; });
}

// Serves echoes in place until told to end, in threads.
class Echoing {
  public:
    explicit Echoing(lite_inbox* inbox, int threads = 1);
    ~Echoing();

  private:
    std::atomic<bool> end_ = false;
    Threads threads_;
};

}  // namespace lite_test
