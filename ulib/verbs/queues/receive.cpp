// SPDX-License-Identifier: MIT
//
// Receive queues of QPs, and SRQs.

#include "queues/queue.hpp"

#include "log.hpp"
#include "real.hpp"
#include "registry.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace lite::verbs {
namespace {

registry<ibv_srq*, receive_queue>& srqs() {
    static auto& all = *new registry<ibv_srq*, receive_queue>;
    return all;
}

}  // namespace

void receive_queue::add(ibv_srq* srq, const std::shared_ptr<receive_queue>& queue) {
    queue->m_srq = srq;
    srqs().add(srq, queue);
}

std::shared_ptr<receive_queue> receive_queue::find(ibv_srq* srq) { return srqs().find(srq); }

void receive_queue::remove(ibv_srq* srq) { srqs().remove(srq); }

receive_queue::receive_queue(ibv_pd* pd, uint32_t capacity, uint32_t max_sge, bool is_lossy)
    : m_pd(pd), m_max_sge(max_sge), m_is_lossy(is_lossy), m_bounce(pd), m_slots(capacity) {
    for (uint32_t i = capacity; i > 0; i--)
        m_free.push_back(i - 1);
    add_spares(capacity);
}

void receive_queue::attach(ibv_qp* qp, const std::shared_ptr<queue_pair>& pair,
                           std::shared_ptr<completion_queue> cq) {
    m_qp = qp;
    m_pair = pair;
    m_cqs[cq] = 1;
    m_cq = std::move(cq);
}

int receive_queue::post(ibv_recv_wr* wr, ibv_recv_wr** bad) {
    std::unique_lock lock(m_mutex);
    int err = 0;
    try {
        for (; wr; wr = wr->next) {
            *bad = wr;
            // A slot is free when its completion is harvested; m_used falls when that is polled.
            if (m_used >= m_slots.size() || m_free.empty())
                err = ENOMEM;
            else if (wr->num_sge < 0 || static_cast<uint32_t>(wr->num_sge) > m_max_sge)
                err = EINVAL;
            if (err)
                break;
            const uint32_t number = m_free.back();
            slot& s = m_slots[number];
            s.wr_id = wr->wr_id;
            s.list.assign(wr->sg_list, wr->sg_list + wr->num_sge);
            s.length = 0;
            for (const ibv_sge& sge : s.list)
                s.length += sge.length;
            m_waiting.push_back(number);
            m_free.pop_back();
            m_used++;
        }
    } catch (const std::bad_alloc&) {
        err = ENOMEM;
    }
    pump();
    watch_waiting(lock);
    return err;
}

// Receives that wait must reach the device even if the program does not poll. Drops the lock. If
// memory runs out, the next post tries again.
void receive_queue::watch_waiting(std::unique_lock<std::mutex>& lock) try {
    std::vector<std::shared_ptr<completion_queue>> cqs;
    if (!m_cqs.empty() && !m_waiting.empty() && !m_is_wanting && !m_has_failed) {
        cqs.reserve(m_cqs.size());
        want(true);
        for (const auto& item : m_cqs)
            cqs.push_back(item.first);
    }
    lock.unlock();
    for (const auto& cq : cqs)
        cq->watch();
} catch (const std::bad_alloc&) {
    lock.unlock();
    say_once("receives wait until another is posted", std::strerror(ENOMEM));
}

void receive_queue::want(bool wanted) {
    for (const auto& item : m_cqs) {
        if (wanted != m_is_wanting)
            item.first->want(wanted);
    }
    m_is_wanting = wanted;
}

// A QP that completes receives to @cq begins to use this SRQ, or (unshare()) no longer does.
void receive_queue::share(const std::shared_ptr<completion_queue>& cq) {
    std::unique_lock lock(m_mutex);
    if (m_cqs[cq]++)
        return;
    if (!m_is_wanting) {
        watch_waiting(lock);
        return;
    }
    cq->want(true);
    lock.unlock();
    cq->watch();
}

void receive_queue::unshare(const std::shared_ptr<completion_queue>& cq) {
    const std::lock_guard lock(m_mutex);
    const auto found = m_cqs.find(cq);
    if (--found->second)
        return;
    if (m_is_wanting)
        cq->want(false);
    m_cqs.erase(found);
}

// Posts waiting receives to the device as far as there is room. With the lock.
void receive_queue::pump() {
    while (!m_waiting.empty() && !m_has_failed && !m_is_dead) {
        const uint32_t number = m_waiting.front();
        slot& s = m_slots[number];
        const uint64_t length = std::max<uint64_t>(s.length, sizeof(imm_marker));
        int failed = 0;
        auto where = m_bounce.take(length, m_slots.size(), m_is_lossy, failed);
        if (failed) {
            // No completion will make room: the receive stays in software.
            say_once("a receive is not posted: no bounce buffer", std::strerror(failed));
            return;
        }
        if (!where)
            return;
        s.where = std::move(*where);
        ibv_sge sge = m_bounce.sge(s.where, static_cast<uint32_t>(length));
        ibv_recv_wr wr = {wr_id(number), nullptr, &sge, 1};
        ibv_recv_wr* bad = nullptr;
        const int err = m_srq ? real_ops(m_srq->context).post_srq_recv(m_srq, &wr, &bad)
                              : real_ops(m_qp->context).post_recv(m_qp, &wr, &bad);
        if (err) {
            m_bounce.give(s.where);
            debug("the device refuses a receive: %s", std::strerror(err));
            return;
        }
        m_waiting.pop_front();
        s.at_device = true;
        m_at_device++;
    }
    flush();
}

// After a failure, flushes in order: first the device flushes the receives that it has.
void receive_queue::flush() {
    while (m_has_failed && !m_is_dead && !m_at_device && !m_waiting.empty()) {
        const uint32_t number = m_waiting.front();
        m_waiting.pop_front();
        ibv_wc wc = {};
        wc.wr_id = m_slots[number].wr_id;
        wc.status = IBV_WC_WR_FLUSH_ERR;
        wc.opcode = IBV_WC_RECV;
        wc.qp_num = m_qp->qp_num;
        m_free.push_back(number);
        m_cq->push(wc, shared_from_this(), 0);
    }
}

// Turns the device's completion into the program's.
void receive_queue::finish(const slot& s, ibv_wc& wc) {
    const char* from = m_bounce.at(s.where);
    wc.wr_id = s.wr_id;
    if (wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV) {
        imm_marker marker;
        std::memcpy(&marker, from, sizeof(marker));
        if (wc.byte_len == sizeof(marker) && wc.wc_flags & IBV_WC_WITH_IMM &&
            marker.magic == imm_magic) {
            wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
            wc.byte_len = marker.length;
        } else if (wc.byte_len > s.length) {
            // The device's buffer may be longer than the program's, to hold a marker.
            wc.status = IBV_WC_LOC_LEN_ERR;
        } else {
            wc.status = registrations::get().copy_to(m_pd, s.list, from, wc.byte_len);
        }
    }
}

void receive_queue::on_completion(uint32_t number, ibv_wc& wc, completion_queue& cq) {
    std::unique_lock lock(m_mutex);
    if (m_is_detached)
        return;
    slot& s = m_slots[number];
    if (!s.at_device) {
        debug("a receive is completed twice");
        return;
    }
    s.at_device = false;
    // A device flushes all receives after one that fails; it does not know of this failure.
    if (m_is_cut && wc.status == IBV_WC_SUCCESS)
        wc.status = IBV_WC_WR_FLUSH_ERR;
    const bool has_arrived = wc.status == IBV_WC_SUCCESS;
    finish(s, wc);
    m_is_cut |= m_qp && has_arrived && wc.status != IBV_WC_SUCCESS;
    if (wc.status != IBV_WC_SUCCESS && m_qp && !m_has_failed) {
        m_has_failed = true;
        lock.unlock();
        // Before the program can poll it. @s stays valid: a reset first waits for this harvest.
        if (const auto pair = m_pair.lock())
            pair->on_receive_failed();
        lock.lock();
        if (m_is_detached)
            return;
    }
    cq.push(wc, shared_from_this(), 0);
    m_bounce.give(s.where);
    m_free.push_back(number);
    m_at_device--;
    pump();
    if (m_waiting.empty() || m_has_failed)
        want(false);
}

void receive_queue::fail() {
    const std::lock_guard lock(m_mutex);
    m_has_failed = true;
    want(false);
    flush();
}

void receive_queue::kill() {
    const std::lock_guard lock(m_mutex);
    m_is_dead = true;
}

void receive_queue::revive() {
    const std::lock_guard lock(m_mutex);
    m_is_dead = false;
    pump();
}

void receive_queue::detach() {
    remove_id();
    const std::lock_guard lock(m_mutex);
    m_is_detached = true;
    want(false);
    if (m_cq)
        m_cq->drop(this);
    m_bounce.drop();
}

// The device's SRQ has been enlarged.
void receive_queue::grow(uint32_t capacity) {
    const std::lock_guard lock(m_mutex);
    const auto before = static_cast<uint32_t>(m_slots.size());
    if (capacity <= before)
        return;
    m_free.reserve(capacity);
    m_slots.reserve(capacity);
    add_spares(capacity - before);
    m_slots.resize(capacity);
    for (uint32_t i = before; i < capacity; i++)
        m_free.push_back(i);
}

void receive_queue::reset() {
    const std::lock_guard lock(m_mutex);
    m_has_failed = false;
    m_is_cut = false;
    m_is_dead = false;
    m_at_device = 0;
    m_used = 0;
    m_waiting.clear();
    for (slot& s : m_slots) {
        if (std::exchange(s.at_device, false))
            m_bounce.give(s.where);
    }
    m_free.clear();
    for (uint32_t i = static_cast<uint32_t>(m_slots.size()); i > 0; i--)
        m_free.push_back(i - 1);
}

}  // namespace lite::verbs
