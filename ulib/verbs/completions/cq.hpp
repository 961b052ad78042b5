// SPDX-License-Identifier: MIT
//
// Completion queues.
//
// Behind the program's CQ there are two: the device's, which gets a completion for each work
// request that the device has, and a queue in software, from which the program polls. harvest()
// moves completions from the first to the second, and lets the queue pairs go on. Each thread
// that polls, posts or waits harvests; the thread of progress.cpp does it when the device reports
// an event.
//
// Locks: m_harvest, then a queue's own lock, then m_ready_lock, which is never held for long.
#pragma once

#include "completions/channel.hpp"

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

namespace lite::verbs {

class completion_queue;
class progress;

// A queue of work requests, as completion queues know it.
class work_queue : public std::enable_shared_from_this<work_queue> {
  public:
    work_queue() = default;
    work_queue(const work_queue&) = delete;
    work_queue& operator=(const work_queue&) = delete;
    virtual ~work_queue() = default;

    // The device has completed the work request in a slot, to @cq.
    virtual void on_completion(uint32_t slot, ibv_wc& wc, completion_queue& cq) = 0;
    // The program has polled the completion of a work request; may be called under m_ready_lock.
    virtual void on_polled(uint64_t number) = 0;

    // The number by which completions of the device name the queue; never used twice.
    uint32_t id() const { return m_id; }
    uint64_t wr_id(uint32_t slot) const { return uint64_t{m_id} << 32 | slot; }

    // Must be called before the first work request, and after the last one.
    static void add(const std::shared_ptr<work_queue>& queue);
    void remove_id();

  private:
    uint32_t m_id = 0;
};

class completion_queue {
  public:
    // Stands before @real, which reports events to @progress.
    completion_queue(ibv_cq* real, progress& progress, std::shared_ptr<event_channel> channel);

    static std::shared_ptr<completion_queue> find(ibv_cq* cq);
    static void add(const std::shared_ptr<completion_queue>& cq);
    void remove();
    // Makes a CQ belong to another channel.
    static void swap_channel(ibv_cq* cq, ibv_comp_channel* channel);

    // Do queues complete to it? Not all devices' libraries say so before they wait.
    bool is_used() const { return m_users > 0; }
    void use(bool used) { m_users += used ? 1 : -1; }

    int poll(int n, ibv_wc* wc);
    int request_notify(bool solicited_only);
    // Moves what the device has completed.
    void harvest();
    // The device has reported an event.
    void on_event();
    // A completion that the program gets. It holds a reference to its queue, which may be an SRQ
    // that is destroyed before the program polls.
    void push(const ibv_wc& wc, std::shared_ptr<work_queue> queue, uint64_t number);
    // Drops a queue's completions, which the program has not polled.
    void drop(const work_queue* queue);

    // Begins or stops harvesting by the thread of progress.cpp, even if the program does not
    // poll. Counted.
    void want(bool wanted) { m_wanted += wanted ? 1 : -1; }
    // To be called after want(true), with no lock held.
    void watch();

    // Room for the completions of sends that the program does not want, but we do. 0 or errno.
    int reserve(uint32_t n);
    void release(uint32_t n);
    int resize(int cqe);

    // It is being destroyed: drops what the program has not polled, and waits until the program has
    // acknowledged its events.
    void close();
    // It is not, after all.
    void reopen();
    void acknowledge(unsigned n);

    const std::shared_ptr<event_channel>& channel() const { return m_channel; }

  private:
    struct ready {
        ibv_wc wc;
        std::shared_ptr<work_queue> queue;
        uint64_t number;
    };

    bool harvest_once();
    void notify_locked();

    int resize_locked(int cqe, uint32_t reserved);

    ibv_cq* const m_real;
    const ibv_context_ops& m_ops;  // the device's
    progress& m_progress;
    const std::shared_ptr<event_channel> m_channel;

    std::mutex m_harvest;
    bool m_is_closed = false;
    int m_cqe;  // the size that the program has asked for; the device's includes @m_reserved
    uint32_t m_reserved = 0;
    std::atomic<int> m_wanted = 0;
    std::atomic<int> m_users = 0;

    std::mutex m_ready_lock;
    std::deque<ready> m_ready;
    enum { not_armed, for_solicited, for_any } m_armed = not_armed;
    bool m_has_news = false;  // completions since it was armed
};

}  // namespace lite::verbs
