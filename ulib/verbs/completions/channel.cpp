// SPDX-License-Identifier: MIT

#include "completions/channel.hpp"

#include "registry.hpp"

#include <algorithm>
#include <cstdint>

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
        const handle first = m_pending.begin();
        first->unacknowledged++;
        std::list<source>& to = --first->pending ? m_pending : m_idle;
        to.splice(to.end(), m_pending, first);
        *cq = first->cq;
        *cq_context = first->cq->cq_context;
        return 0;
    }
}

event_channel::handle event_channel::add(ibv_cq* cq) {
    const std::lock_guard lock(m_mutex);
    return m_idle.insert(m_idle.end(), {cq});
}

void event_channel::remove(handle cq) {
    const std::lock_guard lock(m_mutex);
    m_idle.erase(cq);
}

void event_channel::push(handle cq) {
    const std::lock_guard lock(m_mutex);
    if (!cq->pending++)
        m_pending.splice(m_pending.end(), m_idle, cq);
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

void event_channel::forget(handle cq) {
    std::unique_lock lock(m_mutex);
    if (cq->pending)
        m_idle.splice(m_idle.end(), m_pending, cq);
    for (; cq->pending; cq->pending--)
        take_token();
    m_acknowledged.wait(lock, [&] { return cq->unacknowledged == 0; });
}

void event_channel::acknowledge(handle cq, unsigned n) {
    const std::lock_guard lock(m_mutex);
    cq->unacknowledged -= std::min<uint64_t>(cq->unacknowledged, n);
    m_acknowledged.notify_all();
}

}  // namespace lite::verbs
