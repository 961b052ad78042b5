// SPDX-License-Identifier: MIT
//
// One call to several nodes: a group of calls, each with the index of its leg as the cookie.

#include "context.hpp"
#include "forks.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include <unistd.h>

using lite::internal::as_u64;
using lite::internal::clamp_length;
using lite::internal::control;

namespace {

// Attempts per leg, while no process has seen its request.
constexpr unsigned tries_max = 4;

// The groups from here on are the library's, as <uapi/lite_rpc.h> says: programs use others.
constexpr uint32_t first_group = UINT32_C(1) << 31;

class multicall {
  public:
    multicall(lite_ctx* ctx, uint32_t function, const void* request, size_t length,
              lite_rpc_leg* legs, size_t n_legs, size_t quorum, int timeout_ms) noexcept
        : m_ctx(ctx), m_legs(legs), m_n(n_legs), m_quorum(quorum), m_timeout(timeout_ms) {
        m_call.flags = LITE_RPC_ASYNC | LITE_RPC_QUEUE;
        m_call.function = function;
        m_call.request = as_u64(request);
        m_call.request_len = clamp_length(length);
        // A thread makes one multicall at a time, so its id names the group, with the number of
        // forks: a child in another PID namespace may share the file and have a thread of this id.
        m_call.group =
            first_group | (static_cast<uint32_t>(::gettid()) ^ lite::internal::forks << 22);
    }

    int run() noexcept {
        int err = 0;
        for (size_t i = 0; i < m_n && !err; i++)
            err = begin(i, m_timeout);
        while (!err && !enough())
            err = collect();
        if (m_under_way)
            cancel();
        return err ? err : static_cast<int>(m_ok);
    }

  private:
    bool enough() const noexcept {
        if (!m_under_way || !m_quorum)
            return !m_under_way;
        return m_ok >= m_quorum || m_ok + m_under_way < m_quorum;
    }

    // Does an errno concern the whole multicall, and not just a leg?
    static bool is_general(int err) noexcept {
        return err == -EFAULT || err == -EINTR || err == -EINVAL || err == -ENODEV ||
               err == -EOPNOTSUPP || err == -EACCES;
    }

    int begin(size_t i, int timeout_ms) noexcept {
        lite_rpc_leg& leg = m_legs[i];
        lite_ioc_rpc_call arg = m_call;
        arg.node = leg.node;
        if (leg.function)
            arg.function = leg.function;
        arg.reply = as_u64(leg.reply);
        arg.reply_room = clamp_length(leg.room);
        arg.timeout_ms = timeout_ms;
        arg.cookie = i;
        m_tries[i]++;
        leg.length = 0;
        leg.status = 0;
        // Stays like this if the call is cancelled instead of collected.
        leg.error = -ECANCELED;
        const int err = control(m_ctx, LITE_IOC_RPC_CALL, arg);
        if (err && is_general(err))
            return err;
        if (err)
            leg.error = err;
        else
            m_under_way++;
        return 0;
    }

    // Time left for another attempt, in ms; 0: none.
    int left() const noexcept {
        using std::chrono::milliseconds;
        if (m_timeout == LITE_FOREVER)
            return m_timeout;
        const int limit = m_timeout > 0 ? m_timeout : LITE_RPC_TIMEOUT_DEFAULT;
        const auto end = m_begun + milliseconds(limit);
        return static_cast<int>(std::max<int64_t>(
            0, std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now()).count()));
    }

    int collect() noexcept {
        lite_ioc_rpc_collect arg = {};
        arg.flags = LITE_RPC_INTO;
        arg.group = m_call.group;
        // Each call ends in time by itself.
        arg.timeout_ms = LITE_FOREVER;
        const int err = control(m_ctx, LITE_IOC_RPC_COLLECT, arg);
        if (err)
            return err == -EINTR ? 0 : err;
        if (arg.cookie >= m_n)
            return 0;
        m_under_way--;
        lite_rpc_leg& leg = m_legs[arg.cookie];
        // No process has seen the request; another one may serve the function now.
        if (arg.error == -ECONNREFUSED && m_tries[arg.cookie] < tries_max) {
            const int limit = left();
            if (limit)
                return begin(arg.cookie, limit);
        }
        leg.error = arg.error;
        leg.status = arg.error ? 0 : arg.status;
        leg.length = !arg.error || arg.error == -EMSGSIZE ? arg.reply_len : 0;
        m_ok += !arg.error;
        return 0;
    }

    void cancel() noexcept {
        lite_ioc_rpc_collect arg = {};
        arg.flags = LITE_RPC_CANCEL;
        arg.group = m_call.group;
        (void)control(m_ctx, LITE_IOC_RPC_COLLECT, arg);
    }

    lite_ctx* m_ctx;
    lite_rpc_leg* m_legs;
    size_t m_n;
    size_t m_quorum;
    int m_timeout;
    lite_ioc_rpc_call m_call = {};
    std::chrono::steady_clock::time_point m_begun = std::chrono::steady_clock::now();
    unsigned m_tries[LITE_RPC_LEGS_MAX] = {};
    size_t m_under_way = 0;
    size_t m_ok = 0;
};

}  // namespace

int lite_rpc_multicall(struct lite_ctx* ctx, uint32_t function, const void* request, size_t length,
                       struct lite_rpc_leg* legs, size_t n_legs, size_t quorum,
                       int timeout_ms) noexcept {
    if (!n_legs || n_legs > LITE_RPC_LEGS_MAX || quorum > n_legs)
        return -EINVAL;
    for (size_t i = 0; i < n_legs; i++) {
        const uint32_t number = legs[i].function ? legs[i].function : function;
        if (!number || number > LITE_FUNCTION_MAX || legs[i].node > LITE_NODE_ID_MAX)
            return -EINVAL;
    }
    if (length > LITE_RPC_BULK_MAX)
        return -E2BIG;
    return multicall(ctx, function, request, length, legs, n_legs, quorum, timeout_ms).run();
}
