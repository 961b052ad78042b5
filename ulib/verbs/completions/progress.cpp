// SPDX-License-Identifier: MIT

#include "completions/progress.hpp"

#include "completions/cq.hpp"
#include "queues/quiet.hpp"
#include "real.hpp"

#include <cerrno>
#include <cstdint>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace lite::verbs {

void progress::stop() {
    const std::lock_guard lock(m_mutex);
    if (m_thread.joinable()) {
        const uint64_t one = 1;
        [[maybe_unused]] const ssize_t written = ::write(m_stop_fd, &one, sizeof(one));
        m_thread.join();
    }
    if (m_stop_fd >= 0)
        ::close(m_stop_fd);
    m_stop_fd = -1;
}

int progress::start() {
    if (m_is_started)
        return 0;
    const std::lock_guard lock(m_mutex);
    if (m_thread.joinable())
        return 0;
    if (m_stop_fd < 0)
        m_stop_fd = ::eventfd(0, EFD_CLOEXEC);
    if (m_stop_fd < 0)
        return errno;
    const int err = start_quiet(m_thread, [this] { run(); });
    m_is_started = !err;
    return err;
}

void progress::run() {
    for (;;) {
        pollfd fds[2] = {{m_channel->fd, POLLIN, 0}, {m_stop_fd, POLLIN, 0}};
        if (::poll(fds, 2, -1) < 0)
            continue;
        if (fds[1].revents)
            return;
        ibv_cq* cq = nullptr;
        void* cq_context = nullptr;
        if (real().get_cq_event(m_channel, &cq, &cq_context)) {
            if (errno == EAGAIN || errno == EINTR)
                continue;
            return;
        }
        // Looked up first: after the acknowledgement the program may destroy the CQ.
        const auto found = completion_queue::find(cq);
        real().ack_cq_events(cq, 1);
        if (found)
            found->on_event();
    }
}

}  // namespace lite::verbs
