// SPDX-License-Identifier: MIT
//
// Requests taken in place.

#include "context.hpp"
#include "inbox_queue.hpp"

#include <lite/inbox.h>

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <new>

using lite::internal::as_u64;
using lite::internal::control;
using lite::internal::inbox_queue;

namespace {

using clock = std::chrono::steady_clock;

// How long a thread looks at the queue before it asks the kernel to wait; there it
// is the one who brings the next request, so it pays for a short time only.
constexpr std::chrono::nanoseconds spin_min{1000};
constexpr std::chrono::nanoseconds spin_max{20000};
// When looking has been in vain it is tried again once in so many times.
constexpr unsigned spin_again = 64;

bool alone() noexcept {
    cpu_set_t set;
    return ::sched_getaffinity(0, sizeof(set), &set) || CPU_COUNT(&set) < 2;
}

void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

// The kernel's integers are pointers of this process.
template <typename T>
T* pointer(__u64 value) noexcept {
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<T*>(static_cast<uintptr_t>(value));
}

class deadline {
  public:
    explicit deadline(int ms) noexcept : m_ms(ms) {
        if (ms > 0)
            m_end = clock::now() + std::chrono::milliseconds(ms);
    }
    // What is left of it, as the ABI has it.
    int left() const noexcept {
        if (m_ms < 0)
            return LITE_FOREVER;
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(m_end - clock::now()).count();
        return static_cast<int>(std::clamp<decltype(left)>(left, 1, m_ms));
    }
    bool none() const noexcept { return m_ms == 0; }

  private:
    int m_ms;
    clock::time_point m_end;
};

}  // namespace

struct lite_inbox {
  public:
    lite_inbox(lite_ctx* ctx, const lite_ioc_rpc_inbox& arg) noexcept
        : m_ctx(ctx),
          m_pid(::getpid()),
          m_function(arg.function),
          m_batch(std::clamp<uint32_t>(arg.depth / 4, 1, LITE_INBOX_DONE_MAX)),
          m_rings(pointer<const std::byte>(arg.rings)),
          m_control(pointer<void>(arg.control)),
          m_rings_bytes(arg.rings_bytes),
          m_control_bytes(arg.control_bytes),
          m_queue(pointer<lite_inbox_control>(arg.control), arg.entries),
          m_spin(alone() ? 0 : spin_min.count()),
          m_alone(alone()) {}

    ~lite_inbox() {
        // A child of fork(2) has neither requests nor these addresses: there may be
        // something else by now. Nor can the lock be relied on there.
        if (m_pid != ::getpid())
            return;
        lite_ioc_rpc_next arg = {};
        if (collect(arg, 1))
            submit(arg, LITE_RPC_NOWAIT);
        ::munmap(const_cast<std::byte*>(m_rings), m_rings_bytes);
        ::munmap(m_control, m_control_bytes);
    }
    lite_inbox(const lite_inbox&) = delete;
    lite_inbox& operator=(const lite_inbox&) = delete;

    int take(lite_rpc_request& request, const void** data, const deadline& end) noexcept {
        for (;;) {
            lite_inbox_entry entry;
            uint64_t seen = 0;
            switch (m_queue.take(entry, seen)) {
                case inbox_queue::state::taken:
                    describe(entry, request);
                    *data = m_rings + entry.offset;
                    return 0;
                case inbox_queue::state::closed:
                    return -ENOENT;
                case inbox_queue::state::empty:
                    break;
            }
            lite_ioc_rpc_next arg = {};
            if (end.none()) {
                // What is given back may make room for what waits in the kernel.
                if (collect(arg, 1)) {
                    const int err = submit(arg, LITE_RPC_NOWAIT);
                    if (err)
                        return err;
                }
                if (m_queue.tail() == seen)
                    return -EAGAIN;
                continue;
            }
            if (watch(seen))
                continue;
            collect(arg, 1);
            arg.seen = seen;
            arg.timeout_ms = end.left();
            const int err = submit(arg, 0);
            if (err)
                return err;
        }
    }

    // Answers, and waits for the next one if there is none.
    int answer(lite_rpc_request& request, uint32_t status, const void* reply, size_t length,
               const deadline* end) noexcept {
        lite_ioc_rpc_next arg = {};
        uint32_t flags = LITE_RPC_REPLY;
        arg.token = request.token;
        arg.reply = as_u64(reply);
        arg.reply_len = length > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(length);
        arg.status = status;
        arg.seen = m_queue.tail();
        if (!end || end->none() || !m_queue.is_empty(arg.seen))
            flags |= LITE_RPC_NOWAIT;
        else
            arg.timeout_ms = end->left();
        collect(arg, 1);
        const int err = submit(arg, flags);
        if (arg.answered)
            request.token = 0;
        return err;
    }

    // A message was dealt with: the kernel is told of several together.
    int put_off(uint64_t token) noexcept {
        lite_ioc_rpc_next arg = {};
        {
            const std::lock_guard lock(m_mutex);
            if (m_n_done < LITE_INBOX_DONE_MAX) {
                m_done[m_n_done++] = token;
                token = 0;
            }
        }
        // Others have put off as many: this one goes by itself.
        if (token)
            return done(token);
        return collect(arg, m_batch) ? submit(arg, LITE_RPC_NOWAIT) : 0;
    }

    int done(uint64_t token) noexcept {
        lite_ioc_rpc_next arg = {};
        arg.done[0] = token;
        arg.n_done = 1;
        return submit(arg, LITE_RPC_NOWAIT);
    }

  private:
    void describe(const lite_inbox_entry& entry, lite_rpc_request& request) const noexcept {
        request.token = entry.token;
        request.function = m_function;
        request.length = entry.length;
        request.node = entry.node;
        request.uid = entry.uid;
        request.gid = entry.gid;
        request.flags = entry.flags;
        request.reply_room = entry.reply_room;
        request.reserved = 0;
    }

    // What was put off, if it is at least so many.
    bool collect(lite_ioc_rpc_next& arg, uint32_t least) noexcept {
        const std::lock_guard lock(m_mutex);
        if (m_n_done < least)
            return false;
        std::copy_n(m_done, m_n_done, arg.done);
        arg.n_done = m_n_done;
        m_n_done = 0;
        return true;
    }

    int submit(lite_ioc_rpc_next& arg, uint32_t flags) noexcept {
        arg.flags = flags;
        arg.function = m_function;
        return control(m_ctx, LITE_IOC_RPC_NEXT, arg);
    }

    // Looks at the queue for a while; true: something has come.
    bool watch(uint64_t seen) noexcept {
        int64_t spin = m_spin.load(std::memory_order_relaxed);
        if (m_alone)
            return false;
        if (!spin) {
            if (m_tries.fetch_add(1, std::memory_order_relaxed) % spin_again)
                return false;
            spin = spin_min.count();
        }
        const auto end = clock::now() + std::chrono::nanoseconds(spin);
        do {
            for (int i = 0; i < 32; i++) {
                if (m_queue.tail() != seen) {
                    m_spin.store(std::min<int64_t>(2 * spin, spin_max.count()),
                                 std::memory_order_relaxed);
                    return true;
                }
                relax();
            }
        } while (clock::now() < end);
        spin /= 2;
        m_spin.store(spin < spin_min.count() ? 0 : spin, std::memory_order_relaxed);
        return false;
    }

    lite_ctx* m_ctx;
    pid_t m_pid;  // whose it is
    uint32_t m_function;
    uint32_t m_batch;
    const std::byte* m_rings;
    void* m_control;
    size_t m_rings_bytes;
    size_t m_control_bytes;
    inbox_queue m_queue;
    std::mutex m_mutex;
    uint32_t m_n_done = 0;
    uint64_t m_done[LITE_INBOX_DONE_MAX];
    std::atomic<int64_t> m_spin;
    std::atomic<unsigned> m_tries = 0;
    bool m_alone;
};

namespace {

bool bad_timeout(int ms) noexcept { return ms < LITE_TIMEOUT_DEFAULT || ms > LITE_TIMEOUT_MAX; }

}  // namespace

int lite_inbox_open(struct lite_ctx* ctx, uint32_t function, uint32_t depth,
                    struct lite_inbox** inbox) noexcept {
    lite_ioc_rpc_inbox arg = {};
    arg.function = function;
    arg.depth = depth;
    const int err = control(ctx, LITE_IOC_RPC_INBOX, arg);
    if (err)
        return err;
    *inbox = new (std::nothrow) lite_inbox(ctx, arg);
    if (*inbox)
        return 0;
    ::munmap(pointer<void>(arg.rings), arg.rings_bytes);
    ::munmap(pointer<void>(arg.control), arg.control_bytes);
    return -ENOMEM;
}

void lite_inbox_close(struct lite_inbox* inbox) noexcept { delete inbox; }

int lite_inbox_next(struct lite_inbox* inbox, int timeout_ms, struct lite_rpc_request* request,
                    const void** data) noexcept {
    if (bad_timeout(timeout_ms))
        return -EINVAL;
    return inbox->take(*request, data, deadline(timeout_ms));
}

int lite_inbox_reply(struct lite_inbox* inbox, uint64_t token, uint32_t status, const void* reply,
                     size_t length) noexcept {
    lite_rpc_request request = {};
    request.token = token;
    return inbox->answer(request, status, reply, length, nullptr);
}

int lite_inbox_done(struct lite_inbox* inbox, uint64_t token) noexcept {
    return inbox->done(token);
}

int lite_inbox_reply_next(struct lite_inbox* inbox, struct lite_rpc_request* request,
                          const void** data, uint32_t status, const void* reply, size_t length,
                          int timeout_ms) noexcept {
    if (bad_timeout(timeout_ms))
        return -EINVAL;
    const deadline end(timeout_ms);
    int err = 0;
    if (request->token && request->flags & LITE_RPC_REQ_ONEWAY) {
        err = inbox->put_off(request->token);
        request->token = 0;
    } else if (request->token) {
        err = inbox->answer(*request, status, reply, length, &end);
    }
    if (err)
        return err;
    lite_rpc_request next = {};
    err = inbox->take(next, data, end);
    if (!err)
        *request = next;
    return err;
}
