// SPDX-License-Identifier: MIT
//
// The events of a device's CQs: a completion channel that the program does not see, and a thread
// that takes the events. The first request for events starts the thread.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <mutex>
#include <thread>

namespace lite::verbs {

class progress {
  public:
    // @channel: of the device, used for nothing else; not owned.
    explicit progress(ibv_comp_channel* channel) : m_channel(channel) {}
    progress(const progress&) = delete;
    progress& operator=(const progress&) = delete;
    ~progress() { stop(); }

    ibv_comp_channel* channel() const { return m_channel; }
    // Starts the thread, once. 0 or errno.
    int start();
    // Ends the thread. Must be called before the channel is destroyed.
    void stop();

  private:
    void run();

    ibv_comp_channel* const m_channel;
    std::mutex m_mutex;
    std::atomic<bool> m_is_started = false;  // the thread calls start() while stop() has m_mutex
    int m_stop_fd = -1;
    std::thread m_thread;
};

}  // namespace lite::verbs
