// SPDX-License-Identifier: MIT

#include "completions/channel.hpp"

#include "registry.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <new>

#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

namespace lite::verbs {
namespace {

registry<ibv_comp_channel*, event_channel>& channels() {
    static auto& all = *new registry<ibv_comp_channel*, event_channel>;
    return all;
}

}  // namespace

std::shared_ptr<event_channel> event_channel::make(ibv_comp_channel* real) {
    auto made = std::make_shared<event_channel>();
    if (made->m_fd < 0)
        return nullptr;
    made->attach(made, real);
    return made;
}

std::shared_ptr<event_channel> event_channel::find(ibv_comp_channel* channel) {
    return channels().find(channel);
}

event_channel::event_channel() : m_fd(::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)) {}

event_channel::~event_channel() {
    if (m_fd >= 0)
        ::close(m_fd);
}

void event_channel::attach(const std::shared_ptr<event_channel>& self, ibv_comp_channel* real) {
    channels().add(real, self);
    m_real_fd = real->fd;
    real->fd = m_fd;
}

void event_channel::detach(ibv_comp_channel* real) {
    channels().remove(real);
    real->fd = m_real_fd;
}

int event_channel::wait(ibv_cq** cq, void** cq_context) {
    for (;;) {
        uint64_t token = 0;
        if (::read(m_fd, &token, sizeof(token)) != sizeof(token))
            return -1;
        const std::lock_guard lock(m_mutex);
        if (m_void) {
            m_void--;
            continue;
        }
        try {
            m_unacknowledged[m_events.front()]++;
        } catch (const std::bad_alloc&) {
            add_token();
            errno = ENOMEM;
            return -1;
        }
        *cq = m_events.front();
        *cq_context = (*cq)->cq_context;
        m_events.pop_front();
        return 0;
    }
}

void event_channel::push(ibv_cq* cq) {
    const std::lock_guard lock(m_mutex);
    m_events.push_back(cq);
    add_token();
}

void event_channel::add_token() {
    const uint64_t one = 1;
    // The counter never gets so large that this would block.
    [[maybe_unused]] const ssize_t written = ::write(m_fd, &one, sizeof(one));
}

// Takes the token of a dropped event back, with m_mutex. If a thread in wait() has read it already,
// m_void sends that thread, or the next one that gets the lock, back to wait.
void event_channel::take_token() {
    uint64_t token = 0;
    iovec part = {&token, sizeof(token)};
    if (::preadv2(m_fd, &part, 1, -1, RWF_NOWAIT) != sizeof(token))
        m_void++;
}

void event_channel::forget(ibv_cq* cq) {
    std::unique_lock lock(m_mutex);
    const auto dropped = std::erase(m_events, cq);
    for (size_t i = 0; i < dropped; i++)
        take_token();
    m_acknowledged.wait(lock, [&] { return m_unacknowledged[cq] == 0; });
    m_unacknowledged.erase(cq);
}

void event_channel::acknowledge(ibv_cq* cq, unsigned n) {
    const std::lock_guard lock(m_mutex);
    uint64_t& count = m_unacknowledged[cq];
    count -= std::min<uint64_t>(count, n);
    m_acknowledged.notify_all();
}

}  // namespace lite::verbs
