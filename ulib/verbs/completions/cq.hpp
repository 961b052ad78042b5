// SPDX-License-Identifier: MIT
//
// Completion queues.
//
// The program's CQ has two queues behind it: the device's CQ, which gets a completion for each work
// request at the device, and one in software, from which the program polls. harvest() moves
// completions from the first to the second, and lets the queues of work requests go on. Threads
// harvest when they poll, post or wait; the thread of progress.cpp does it when the device reports
// an event.
//
// Locks: m_harvest, then a queue's own lock, then m_ready_lock, which is never held for long, then
// m_spare_lock.
//
// harvest() needs no memory: when there is none, no completion is lost, and no thread of the
// library fails.
#pragma once

#include "completions/channel.hpp"

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>

namespace lite::verbs {

class completion_queue;
class progress;
class work_queue;

// A completion for the program.
struct ready {
    ibv_wc wc;
    std::shared_ptr<work_queue> queue;
    uint64_t number;
    bool is_silent;  // it made no event
};

// A queue of work requests, as completion queues know it: of sends, or of receives.
class work_queue : public std::enable_shared_from_this<work_queue> {
  public:
    work_queue() = default;
    work_queue(const work_queue&) = delete;
    work_queue& operator=(const work_queue&) = delete;
    virtual ~work_queue() = default;

    // The device has completed the work request in slot @slot; @cq got the completion.
    virtual void on_completion(uint32_t slot, ibv_wc& wc, completion_queue& cq) = 0;
    // The program has polled a completion, or closed its CQ. Called with m_ready_lock.
    virtual void on_polled(uint64_t number) = 0;

    // The number that names the queue in completions of the device; never reused.
    uint32_t id() const { return m_id; }
    uint64_t wr_id(uint32_t slot) const { return uint64_t{m_id} << 32 | slot; }

    // Moves a completion that is not in use to @to. Each work request has one until the program has
    // polled it.
    void take_spare(std::list<ready>& to);
    // Moves the first completion, which is of this queue, back.
    void give_back(std::list<ready>& from);

    // add() must be called before the first work request, remove_id() after the last one.
    static void add(const std::shared_ptr<work_queue>& queue);
    void remove_id();

  protected:
    // So many more work requests may be posted.
    void add_spares(uint32_t n);

  private:
    uint32_t m_id = 0;
    std::mutex m_spare_lock;
    std::list<ready> m_spare;
};

class completion_queue {
  public:
    // @real: the device's CQ; it reports its events to @progress.
    completion_queue(ibv_cq* real, progress& progress, std::shared_ptr<event_channel> channel);
    completion_queue(const completion_queue&) = delete;
    completion_queue& operator=(const completion_queue&) = delete;
    ~completion_queue();

    static std::shared_ptr<completion_queue> find(ibv_cq* cq);
    static void add(const std::shared_ptr<completion_queue>& cq);
    void remove();
    static void swap_channel(ibv_cq* cq, ibv_comp_channel* channel);

    // Do QPs use it? Then it cannot be destroyed; some devices' libraries wait before they say so.
    bool is_used() const { return m_users > 0; }
    void use(bool used) { m_users += used ? 1 : -1; }

    int poll(int n, ibv_wc* wc);
    int request_notify(bool solicited_only);
    // Moves the device's completions to the queue in software.
    void harvest();
    void on_event();
    // Adds a completion for the program, with a reference to @queue: an SRQ may go before the poll.
    void push(const ibv_wc& wc, std::shared_ptr<work_queue> queue, uint64_t number);
    // Drops a queue's completions that the program has not polled.
    void drop(const work_queue* queue);

    // While it is wanted, the thread of progress.cpp harvests even if the program does not poll.
    // Calls are counted; watch() must follow want(true), with no lock held.
    void want(bool wanted) { m_wanted += wanted ? 1 : -1; }
    void watch();

    // Room for completions of sends, as the device signals all of them. 0 or errno.
    int reserve(uint32_t n);
    void release(uint32_t n);
    int resize(int cqe);

    // Before it is destroyed: drops what the program has not polled, and waits until the program
    // has acknowledged its events. reopen(): the device has refused.
    void close();
    void reopen();
    void acknowledge(unsigned n);

    const std::shared_ptr<event_channel>& channel() const { return m_channel; }

  private:
    bool harvest_once();
    void notify_locked();
    void notify_of_silent_locked();
    void retire(std::list<ready>& from, bool polled);
    int resize_locked(int cqe, uint32_t reserved);

    ibv_cq* const m_real;
    const ibv_context_ops& m_ops;  // the device's
    progress& m_progress;
    const std::shared_ptr<event_channel> m_channel;  // nullptr: it has none
    const event_channel::handle m_source;            // its place in the channel

    std::mutex m_harvest;
    bool m_is_closed = false;
    int m_cqe;  // the size that the program has asked for; the device's includes @m_reserved
    uint32_t m_reserved = 0;
    std::atomic<int> m_wanted = 0;
    std::atomic<int> m_users = 0;

    std::mutex m_ready_lock;
    std::list<ready> m_ready;
    size_t m_silent = 0;  // how many of them made no event
    enum { not_armed, for_solicited, for_any } m_armed = not_armed;
    bool m_has_news = false;  // a completion has come since it was armed
};

}  // namespace lite::verbs
