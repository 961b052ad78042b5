// SPDX-License-Identifier: MIT
//
// Send queues: work requests take effect in order, some by the device's QP, some by LITE.
//
// The thread that posts a one-sided work request executes it if all before it have completed.
// Otherwise a thread of the queue does, since those may wait for the peer to post a receive. One
// thread at a time executes (m_is_running), without the lock; others leave theirs to it.

#include "queues/queue.hpp"

#include "log.hpp"
#include "queues/quiet.hpp"
#include "real.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace lite::verbs {
namespace {

bool is_atomic(ibv_wr_opcode opcode) {
    return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

// Does the operation write to its local buffers?
bool fetches(ibv_wr_opcode opcode) { return opcode == IBV_WR_RDMA_READ || is_atomic(opcode); }

uint32_t rkey_of(const ibv_send_wr& wr) {
    return is_atomic(wr.opcode) ? wr.wr.atomic.rkey : wr.wr.rdma.rkey;
}

ibv_wc_opcode completed(ibv_wr_opcode opcode) {
    switch (opcode) {
        case IBV_WR_RDMA_WRITE:
        case IBV_WR_RDMA_WRITE_WITH_IMM:
            return IBV_WC_RDMA_WRITE;
        case IBV_WR_RDMA_READ:
            return IBV_WC_RDMA_READ;
        case IBV_WR_ATOMIC_CMP_AND_SWP:
            return IBV_WC_COMP_SWAP;
        case IBV_WR_ATOMIC_FETCH_AND_ADD:
            return IBV_WC_FETCH_ADD;
        default:
            return IBV_WC_SEND;
    }
}

uint32_t length_of(const std::vector<ibv_sge>& list) {
    uint32_t length = 0;
    for (const ibv_sge& sge : list)
        length += sge.length;
    return length;
}

void copy_in(const std::vector<span>& spans, char* to) {
    for (const span& s : spans) {
        std::memcpy(to, s.at, s.length);
        to += s.length;
    }
}

}  // namespace

// Does LITE execute it, at least in part?
bool queue_pair::is_one_sided(const ibv_send_wr& wr) const {
    return (wr.opcode == IBV_WR_RDMA_WRITE || wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
            fetches(wr.opcode)) &&
           is_own_key(rkey_of(wr));
}

// 0 or errno.
int queue_pair::check(const ibv_send_wr& wr) const {
    switch (wr.opcode) {
        case IBV_WR_SEND:
        case IBV_WR_SEND_WITH_IMM:
            break;
        case IBV_WR_RDMA_WRITE:
        case IBV_WR_RDMA_WRITE_WITH_IMM:
            if (m_qp->qp_type == IBV_QPT_UD)
                return EINVAL;
            break;
        case IBV_WR_RDMA_READ:
        case IBV_WR_ATOMIC_CMP_AND_SWP:
        case IBV_WR_ATOMIC_FETCH_AND_ADD:
            if (m_qp->qp_type != IBV_QPT_RC)
                return EINVAL;
            break;
        default:
            return EOPNOTSUPP;  // memory windows, invalidation
    }
    if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > m_cap.max_send_sge)
        return EINVAL;
    if (wr.send_flags & IBV_SEND_INLINE) {
        uint64_t length = 0;
        for (int i = 0; i < wr.num_sge; i++)
            length += wr.sg_list[i].length;
        if (length > m_cap.max_inline_data || fetches(wr.opcode))
            return EINVAL;
    }
    return 0;
}

void queue_pair::keep(slot& s, const ibv_send_wr& wr) const {
    s.wr = wr;
    s.wr.next = nullptr;
    s.where.reset();
    s.list.clear();
    s.data.clear();
    for (int i = 0; i < wr.num_sge; i++) {
        const ibv_sge& sge = wr.sg_list[i];
        if (wr.send_flags & IBV_SEND_INLINE) {
            const char* from = reinterpret_cast<const char*>(sge.addr);
            s.data.insert(s.data.end(), from, from + sge.length);
        } else {
            s.list.push_back(sge);
        }
    }
}

int queue_pair::post_send(ibv_send_wr* wr, ibv_send_wr** bad, bool all) {
    const ibv_qp_state state = m_state;
    std::unique_lock lock(m_mutex);
    int err = state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_RTR ? EINVAL : 0;
    uint64_t last = 0;
    uint64_t kept = 0;
    if (const uint64_t polled = m_polled)
        m_order.free_up_to(polled - 1);
    try {
        for (; wr && !err; wr = wr->next) {
            *bad = wr;
            err = check(*wr);
            if (!err && kept == m_order.room())
                err = ENOMEM;
            if (err)
                break;
            keep(m_slots[m_order.index(m_order.posted() + kept)], *wr);
            kept++;
        }
    } catch (const std::bad_alloc&) {
        err = ENOMEM;
    }
    if (err && all)
        return err;
    for (uint64_t i = 0; i < kept; i++) {
        const slot& s = m_slots[m_order.index(m_order.posted())];
        last = m_order.post(is_one_sided(s.wr) ? wr_kind::lite : wr_kind::real);
    }
    if (kept)
        advance(lock, true, last);
    return err;
}

void queue_pair::on_polled(uint64_t number) { m_polled = number + 1; }

// Executes with LITE, without the lock.
ibv_wc_status queue_pair::run(slot& s) try {
    memory_in_use used;
    if (s.wr.send_flags & IBV_SEND_INLINE) {
        m_spans.assign(1, {s.data.data(), s.data.size()});
    } else if (!registrations::get().resolve(m_pd, s.list.data(), static_cast<int>(s.list.size()),
                                             fetches(s.wr.opcode), m_spans, used)) {
        return IBV_WC_LOC_PROT_ERR;
    }
    one_sided op = {s.wr.opcode, s.wr.wr.rdma.remote_addr, rkey_of(s.wr), 0, 0};
    if (is_atomic(s.wr.opcode)) {
        op.addr = s.wr.wr.atomic.remote_addr;
        op.compare_add = s.wr.wr.atomic.compare_add;
        op.swap = s.wr.wr.atomic.swap;
    }
    return m_peer.run(op, m_spans);
} catch (const std::bad_alloc&) {
    return IBV_WC_LOC_QP_OP_ERR;
}

queue_pair::posting queue_pair::post_real(slot& s, uint64_t number, ibv_wc_status& status) try {
    status = IBV_WC_LOC_QP_OP_ERR;
    ibv_send_wr wr = s.wr;
    wr.wr_id = wr_id(static_cast<uint32_t>(m_order.index(number)));
    wr.send_flags = (s.wr.send_flags & ~static_cast<unsigned>(IBV_SEND_INLINE)) | IBV_SEND_SIGNALED;

    memory_in_use used;
    imm_marker marker = {imm_magic, 0, 0};
    if (is_one_sided(s.wr)) {  // LITE has executed the write itself
        marker.length = s.data.empty() ? length_of(s.list) : static_cast<uint32_t>(s.data.size());
        wr.opcode = IBV_WR_SEND_WITH_IMM;
        m_spans.assign(1, {reinterpret_cast<char*>(&marker), sizeof(marker)});
    } else if (s.wr.send_flags & IBV_SEND_INLINE) {
        m_spans.assign(1, {s.data.data(), s.data.size()});
    } else if (!registrations::get().resolve(m_pd, s.list.data(), static_cast<int>(s.list.size()),
                                             fetches(s.wr.opcode), m_spans, used)) {
        status = IBV_WC_LOC_PROT_ERR;
        return posting::failed;
    }
    uint64_t length = 0;
    for (const span& part : m_spans)
        length += part.length;

    ibv_sge sge = {};
    wr.sg_list = &sge;
    wr.num_sge = length ? 1 : 0;
    if (length && length <= m_cap.max_inline_data && !fetches(wr.opcode)) {
        m_inline.resize(length);
        copy_in(m_spans, m_inline.data());
        sge = {reinterpret_cast<uintptr_t>(m_inline.data()), static_cast<uint32_t>(length), 0};
        wr.send_flags |= IBV_SEND_INLINE;
    } else if (length) {
        int failed = 0;
        s.where = m_bounce.take(length, std::max(m_cap.max_send_wr, 1U), false, failed);
        if (failed) {
            say_once("a send fails: no bounce buffer", std::strerror(failed));
            return posting::failed;
        }
        if (!s.where)
            return posting::no_room;
        if (!fetches(wr.opcode))
            copy_in(m_spans, m_bounce.at(*s.where));
        sge = m_bounce.sge(*s.where, static_cast<uint32_t>(length));
    }
    ibv_send_wr* bad = nullptr;
    const int err = real_ops(m_qp->context).post_send(m_qp, &wr, &bad);
    if (!err)
        return posting::posted;
    debug("the device refuses a send: %s", std::strerror(err));
    if (s.where)
        m_bounce.give(*s.where);
    s.where.reset();
    return posting::failed;
} catch (const std::bad_alloc&) {
    status = IBV_WC_LOC_QP_OP_ERR;
    return posting::failed;
}

// Ends the oldest work request in flight. @wc: the device's completion, or nullptr.
void queue_pair::finish(ibv_wc_status status, const ibv_wc* wc) {
    const uint64_t number = m_order.oldest_unfinished();
    slot& s = m_slots[m_order.index(number)];
    if (s.where)
        m_bounce.give(*s.where);
    s.where.reset();
    m_order.finish();
    if (status == IBV_WC_SUCCESS && !m_signals_all && !(s.wr.send_flags & IBV_SEND_SIGNALED))
        return;
    ibv_wc made = {};
    if (wc)
        made = *wc;
    made.wr_id = s.wr.wr_id;
    made.status = status;
    made.opcode = completed(s.wr.opcode);
    made.qp_num = m_qp->qp_num;
    if (is_atomic(s.wr.opcode))
        made.byte_len = sizeof(uint64_t);
    else
        made.byte_len = s.data.empty() ? length_of(s.list) : static_cast<uint32_t>(s.data.size());
    m_send_cq->push(made, shared_from_this(), number);
}

// The QP fails: nothing more is executed. With the lock.
void queue_pair::fail() {
    if (m_order.failed())
        return;
    m_order.fail();
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_ERR;
    if (real().modify_qp(m_qp, &attr, IBV_QP_STATE))
        debug("QP %u cannot be made to fail", m_qp->qp_num);
    m_state = IBV_QPS_ERR;
    if (m_receives)
        m_receives->fail();
}

void queue_pair::on_receive_failed() {
    std::unique_lock lock(m_mutex);
    // The QP may be reset or gone by now. If it is not, resume() makes it fail.
    m_has_failed_meanwhile = m_is_paused || m_is_dead;
    if (m_has_failed_meanwhile)
        return;
    fail();
    advance(lock, false, 0);
}

void queue_pair::want(bool wanted) {
    if (wanted != m_is_wanting)
        m_send_cq->want(wanted);
    m_is_wanting = wanted;
}

// Goes on with the queue. With the lock, which is dropped meanwhile if @may_wait: then this thread
// executes what was posted up to @until; all else is left to the queue's thread.
void queue_pair::advance(std::unique_lock<std::mutex>& lock, bool may_wait, uint64_t until) {
    bool has_harvested = false;
    while (!m_is_running && !m_is_paused) {
        const send_step step = m_order.next();
        const uint64_t number = m_order.upcoming();
        slot& s = m_slots[m_order.index(number)];
        ibv_wc_status status = IBV_WC_SUCCESS;

        if (step == send_step::none) {
            want(false);
            return;
        }
        if (step == send_step::flush) {
            m_order.start();
            finish(IBV_WC_WR_FLUSH_ERR, nullptr);
            continue;
        }
        if (step == send_step::post) {
            const posting result = post_real(s, number, status);
            if (result == posting::posted) {
                m_order.start();
                continue;
            }
            if (result == posting::failed && !m_order.in_flight()) {
                m_order.start();
                finish(status, nullptr);
                fail();
                continue;
            }
        }
        if (step == send_step::run) {
            if (!may_wait || number > until) {
                const int err = kick();
                if (!err)
                    return;
                say_once("a work request fails: no thread", std::strerror(err));
                m_order.start();
                finish(IBV_WC_LOC_QP_OP_ERR, nullptr);
                fail();
                continue;
            }
            m_order.start();
            m_is_running = true;
            lock.unlock();
            status = run(s);
            lock.lock();
            m_is_running = false;
            m_idle.notify_all();
            if (status == IBV_WC_SUCCESS && s.wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM &&
                !m_order.failed() && post_real(s, number, status) == posting::posted)
                continue;
            if (status == IBV_WC_SUCCESS && m_order.failed() &&
                s.wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
                status = IBV_WC_WR_FLUSH_ERR;
            finish(status, nullptr);
            if (status != IBV_WC_SUCCESS)
                fail();
            continue;
        }

        // The device must complete something first. It may have done so.
        if (!may_wait || m_order.failed())
            return;
        if (has_harvested && m_is_wanting)
            return;
        if (has_harvested)
            want(true);
        lock.unlock();
        if (has_harvested)
            m_send_cq->watch();
        else
            m_send_cq->harvest();
        lock.lock();
        has_harvested = true;
    }
}

void queue_pair::on_completion(uint32_t number, ibv_wc& wc, completion_queue&) {
    std::unique_lock lock(m_mutex);
    // Kept in case the device refuses to destroy the QP.
    if (m_is_dead)
        m_missed.emplace_back(number, wc);
    else
        complete(lock, number, wc);
}

void queue_pair::complete(std::unique_lock<std::mutex>& lock, uint32_t number, ibv_wc& wc) {
    const uint64_t oldest = m_order.oldest_unfinished();
    if (!m_order.in_flight() || m_order.index(oldest) != number) {
        debug("QP %u: a completion out of order", m_qp->qp_num);
        return;
    }
    slot& s = m_slots[number];
    if (wc.status == IBV_WC_SUCCESS && fetches(s.wr.opcode) && s.where)
        wc.status = registrations::get().copy_to(m_pd, s.list, m_bounce.at(*s.where), UINT64_MAX);
    finish(wc.status, &wc);
    if (wc.status != IBV_WC_SUCCESS)
        fail();
    advance(lock, false, 0);
}

// Makes the queue's thread go on, as it may wait. With the lock. 0 or errno.
int queue_pair::kick() {
    if (!m_worker.joinable() && !m_is_stopping) {
        if (const int err = start_quiet(m_worker, [this] { work(); }))
            return err;
    }
    m_is_kicked = true;
    m_kick.notify_one();
    return 0;
}

void queue_pair::work() {
    std::unique_lock lock(m_mutex);
    for (;;) {
        m_kick.wait(lock, [this] { return m_is_kicked || m_is_stopping; });
        if (m_is_stopping)
            return;
        m_is_kicked = false;
        advance(lock, true, UINT64_MAX);
    }
}

void queue_pair::stop_worker() {
    {
        const std::lock_guard lock(m_mutex);
        m_is_stopping = true;
        m_kick.notify_one();
    }
    if (m_worker.joinable())
        m_worker.join();
}

}  // namespace lite::verbs
