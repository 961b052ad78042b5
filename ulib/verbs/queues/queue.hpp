// SPDX-License-Identifier: MIT
//
// Receive queues, of a QP or shared (SRQ), and queue pairs.
//
// Receives are posted to the device with bounce buffers; a message is copied when its completion is
// harvested. Receives and sends (send.cpp) that find no room wait in software.
#pragma once

#include "completions/cq.hpp"
#include "memory/local.hpp"
#include "memory/remote.hpp"
#include "queues/bounce.hpp"
#include "queues/builder.hpp"
#include "queues/order.hpp"

#include <infiniband/verbs.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace lite::verbs {

// The message after a write with immediate, which LITE has executed. The library at the receiver
// turns it into the completion of such a write.
struct imm_marker {
    uint64_t magic;
    uint32_t length;
    uint32_t reserved;
};
inline constexpr uint64_t imm_magic = 0x6c7662696d6d3031;

class queue_pair;

class receive_queue final : public work_queue {
  public:
    // @is_lossy: a message without a receive is lost (UD, UC).
    receive_queue(ibv_pd* pd, uint32_t capacity, uint32_t max_sge, bool is_lossy);
    void attach(ibv_qp* qp, const std::shared_ptr<queue_pair>& pair,
                std::shared_ptr<completion_queue> cq);
    static void add(ibv_srq* srq, const std::shared_ptr<receive_queue>& queue);
    static std::shared_ptr<receive_queue> find(ibv_srq* srq);
    static void remove(ibv_srq* srq);

    int post(ibv_recv_wr* wr, ibv_recv_wr** bad);
    void on_completion(uint32_t slot, ibv_wc& wc, completion_queue& cq) override;
    void on_polled(uint64_t) override { m_used--; }
    void share(const std::shared_ptr<completion_queue>& cq);
    void unshare(const std::shared_ptr<completion_queue>& cq);
    void grow(uint32_t capacity);
    // The QP has failed: receives in software are flushed after those at the device.
    void fail();
    void reset();
    // Stops posting and flushing, before the QP or SRQ is destroyed, or the QP reset.
    void kill();
    // After kill(), if the device has refused.
    void revive();
    // After kill(), when the QP or SRQ was destroyed.
    void detach();

  private:
    struct slot {
        uint64_t wr_id;
        std::vector<ibv_sge> list;
        uint64_t length;
        bounce::place where;
        bool at_device;
    };

    void pump();
    void flush();
    void want(bool wanted);
    void watch_waiting(std::unique_lock<std::mutex>& lock);
    void finish(const slot& s, ibv_wc& wc);

    ibv_pd* const m_pd;
    ibv_qp* m_qp = nullptr;
    std::weak_ptr<queue_pair> m_pair;  // of @m_qp; its lock is taken before this queue's
    ibv_srq* m_srq = nullptr;
    std::shared_ptr<completion_queue> m_cq;  // nullptr: an SRQ
    const uint32_t m_max_sge;
    const bool m_is_lossy;
    std::atomic<uint32_t> m_used = 0;  // posted, and not yet polled by the program

    std::mutex m_mutex;
    // CQs to which receives complete, with the number of QPs that do so.
    std::map<std::shared_ptr<completion_queue>, uint32_t> m_cqs;
    bounce m_bounce;
    std::vector<slot> m_slots;
    std::vector<uint32_t> m_free;
    std::deque<uint32_t> m_waiting;  // slots of receives in software
    uint32_t m_at_device = 0;
    bool m_has_failed = false;
    bool m_is_cut = false;  // a receive failed, but not at the device
    bool m_is_wanting = false;
    bool m_is_dead = false;      // the QP or SRQ may be gone
    bool m_is_detached = false;  // it is, and the bounce buffer too
};

class queue_pair final : public work_queue {
  public:
    // As ibv_create_qp(), ibv_create_qp_ex(), ibv_destroy_qp() and ibv_modify_qp().
    static ibv_qp* create(ibv_pd* pd, ibv_qp_init_attr* attr);
    static ibv_qp* create_extended(ibv_context* context, ibv_qp_init_attr_ex* attr);
    static std::shared_ptr<queue_pair> find(ibv_qp* qp);
    static int destroy(ibv_qp* qp);
    int modify(ibv_qp_attr* attr, int mask);

    // @sends: so many may be posted and not yet polled.
    queue_pair(ibv_qp* qp, const ibv_qp_init_attr& attr, uint32_t sends);
    ~queue_pair() override { stop_worker(); }

    // As ibv_post_send(). @all: all of them or none.
    int post_send(ibv_send_wr* wr, ibv_send_wr** bad, bool all = false);
    bool signals_all() const { return m_signals_all; }
    builder& building() { return m_building; }
    int post_recv(ibv_recv_wr* wr, ibv_recv_wr** bad);
    void on_completion(uint32_t slot, ibv_wc& wc, completion_queue& cq) override;
    void on_polled(uint64_t number) override;
    // A receive has failed, so the QP must fail. The caller holds no lock of a queue.
    void on_receive_failed();

  private:
    static bool is_supported(ibv_qp_type type);
    static ibv_qp* adopt(ibv_qp* qp, const ibv_qp_init_attr& attr, uint32_t asked);

    struct slot {
        ibv_send_wr wr;
        std::vector<ibv_sge> list;
        std::vector<char> data;  // inline
        std::optional<bounce::place> where;
    };

    bool is_one_sided(const ibv_send_wr& wr) const;
    int check(const ibv_send_wr& wr) const;
    void keep(slot& s, const ibv_send_wr& wr) const;
    void advance(std::unique_lock<std::mutex>& lock, bool may_wait, uint64_t until);
    ibv_wc_status run(slot& s);
    enum class posting { posted, no_room, failed };
    posting post_real(slot& s, uint64_t number, ibv_wc_status& status);
    void complete(std::unique_lock<std::mutex>& lock, uint32_t number, ibv_wc& wc);
    void finish(ibv_wc_status status, const ibv_wc* wc);
    void fail();
    int kick();
    void pause();
    void resume();
    void reset();
    void want(bool wanted);
    void work();
    void stop_worker();

    ibv_qp* const m_qp;
    ibv_pd* const m_pd;
    const ibv_qp_cap m_cap;
    const bool m_signals_all;
    std::shared_ptr<completion_queue> m_send_cq, m_recv_cq;
    std::shared_ptr<receive_queue> m_receives;  // nullptr: it uses an SRQ
    std::shared_ptr<receive_queue> m_shared;    // the SRQ, or nullptr
    std::atomic<ibv_qp_state> m_state = IBV_QPS_RESET;

    std::mutex m_mutex;
    send_order m_order;
    std::atomic<uint64_t> m_polled = 0;  // last number that the program has polled, plus 1
    std::vector<slot> m_slots;
    bounce m_bounce;
    bool m_is_running = false;       // a thread executes with LITE, without the lock
    std::condition_variable m_idle;  // m_is_running has ended
    bool m_is_wanting = false;
    bool m_is_dead = false;
    std::vector<std::pair<uint32_t, ibv_wc>> m_missed;  // completions while m_is_dead
    bool m_is_paused = false;
    bool m_has_failed_meanwhile = false;  // a receive failed while it was paused
    remote_peer m_peer;                   // used by the running thread
    std::vector<span> m_spans;            // used by the running thread, else with the lock
    std::vector<char> m_inline;

    builder m_building;

    std::thread m_worker;
    std::condition_variable m_kick;
    bool m_is_kicked = false;
    bool m_is_stopping = false;
};

}  // namespace lite::verbs
