// SPDX-License-Identifier: MIT
//
// The events of a device's completion queues: a channel that the program does not see, and a thread
// that takes its events. The thread is started with the first request for events.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <mutex>
#include <thread>

namespace lite::verbs {

class progress {
  public:
    // @channel: of the device, for this only; not owned.
    explicit progress(ibv_comp_channel* channel) : m_channel(channel) {}
    progress(const progress&) = delete;
    progress& operator=(const progress&) = delete;
    ~progress() { stop(); }

    ibv_comp_channel* channel() const { return m_channel; }
    // 0 or errno.
    int start();
    // Before the channel is destroyed.
    void stop();

  private:
    void run();

    ibv_comp_channel* const m_channel;
    std::mutex m_mutex;
    std::atomic<bool> m_is_started = false;  // it calls start() itself, which must not wait then
    int m_stop_fd = -1;
    std::thread m_thread;
};

}  // namespace lite::verbs
