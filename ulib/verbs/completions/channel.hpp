// SPDX-License-Identifier: MIT
//
// Completion channels. All events of the program's channels are made by software: the descriptor
// that the program sees, and may poll or make non-blocking, is an eventfd.
#pragma once

#include <infiniband/verbs.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace lite::verbs {

class event_channel {
  public:
    // Takes the place of a channel's descriptor. nullptr and errno.
    static std::shared_ptr<event_channel> make(ibv_comp_channel* real);
    // nullptr: not a channel of ours.
    static std::shared_ptr<event_channel> find(ibv_comp_channel* channel);

    explicit event_channel(int fd) : m_fd(fd) {}
    event_channel(const event_channel&) = delete;
    event_channel& operator=(const event_channel&) = delete;
    ~event_channel();

    // Gives the channel its own descriptor back, so that it can be destroyed; and reverses that.
    void detach(ibv_comp_channel* real);
    void attach(const std::shared_ptr<event_channel>& self, ibv_comp_channel* real);

    // As ibv_get_cq_event(): 0, or -1 and errno.
    int wait(ibv_cq** cq, void** cq_context);
    // An event of a CQ. Never sleeps.
    void push(ibv_cq* cq);
    // Drops the events of a CQ, and waits until those that the program got are acknowledged.
    void forget(ibv_cq* cq);
    void acknowledge(ibv_cq* cq, unsigned n);

  private:
    void take_token();

    const int m_fd;
    int m_real_fd = -1;
    std::mutex m_mutex;
    std::condition_variable m_acknowledged;
    // With m_void as many as the eventfd counts, and those that threads have read without m_mutex.
    std::deque<ibv_cq*> m_events;
    uint64_t m_void = 0;  // of events that went with their CQs
    std::unordered_map<ibv_cq*, uint64_t> m_unacknowledged;
};

}  // namespace lite::verbs
