// SPDX-License-Identifier: MIT
//
// Completion channels. The library makes all events of the program's channels; the descriptor that
// the program sees, and may poll or make non-blocking, is an eventfd.
#pragma once

#include <infiniband/verbs.h>

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>

namespace lite::verbs {

class event_channel {
  public:
    // What the channel knows of one of its CQs, so that an event needs no memory.
    struct source {
        ibv_cq* cq;
        uint64_t pending = 0;
        uint64_t unacknowledged = 0;
    };
    using handle = std::list<source>::iterator;

    // Replaces a channel's descriptor. nullptr: errno is set.
    static std::shared_ptr<event_channel> make(ibv_comp_channel* real);
    // nullptr: the channel's device was not taken over.
    static std::shared_ptr<event_channel> find(ibv_comp_channel* channel);

    event_channel();  // see make()
    event_channel(const event_channel&) = delete;
    event_channel& operator=(const event_channel&) = delete;
    ~event_channel();

    // Gives a channel its own descriptor back before it is destroyed; attach() reverses that.
    void detach(ibv_comp_channel* real);
    void attach(const std::shared_ptr<event_channel>& self, ibv_comp_channel* real);

    // As ibv_get_cq_event(): 0, or -1 and errno.
    int wait(ibv_cq** cq, void** cq_context);
    handle add(ibv_cq* cq);
    void remove(handle cq);
    // Adds an event of a CQ. Never sleeps, and needs no memory.
    void push(handle cq);
    // Drops a CQ's events, and waits until the program has acknowledged those that it got.
    void forget(handle cq);
    void acknowledge(handle cq, unsigned n);

  private:
    void add_token();
    void take_token();

    const int m_fd;
    int m_real_fd = -1;
    std::mutex m_mutex;
    std::condition_variable m_acknowledged;
    // The CQs with pending events, one of which is reported in turn, and the others. Each token, in
    // the eventfd or read by a thread in wait(), is of a pending event or of m_void.
    std::list<source> m_pending, m_idle;
    uint64_t m_void = 0;  // tokens of events that were dropped
};

}  // namespace lite::verbs
