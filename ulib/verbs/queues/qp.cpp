// SPDX-License-Identifier: MIT
//
// Makes, connects, resets and destroys queue pairs.

#include "queues/queue.hpp"

#include "context.hpp"
#include "log.hpp"
#include "memory/node.hpp"
#include "real.hpp"
#include "registry.hpp"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

namespace lite::verbs {
namespace {

registry<ibv_qp*, queue_pair>& pairs() {
    static auto& all = *new registry<ibv_qp*, queue_pair>;
    return all;
}

}  // namespace

queue_pair::queue_pair(ibv_qp* qp, const ibv_qp_init_attr& attr, uint32_t sends)
    : m_qp(qp),
      m_pd(qp->pd),
      m_cap(attr.cap),
      m_signals_all(attr.sq_sig_all != 0),
      m_send_cq(completion_queue::find(attr.send_cq)),
      m_recv_cq(completion_queue::find(attr.recv_cq)),
      m_order(sends),
      m_slots(sends),
      m_bounce(qp->pd) {
    add_spares(m_order.capacity());
    m_missed.reserve(m_order.capacity());
}

std::shared_ptr<queue_pair> queue_pair::find(ibv_qp* qp) { return pairs().find(qp); }

bool queue_pair::is_supported(ibv_qp_type type) {
    if (type == IBV_QPT_RC || type == IBV_QPT_UC || type == IBV_QPT_UD)
        return true;
    say_once("a QP is refused", "only RC, UC and UD are supported");
    return false;
}

// Takes over a QP that the device has made with these attributes. @asked: so many sends were asked
// for. There is room for one more, as with devices that round up: perftest 4.5 with events may be
// one poll late (Documentation/interfaces/verbs.rst).
ibv_qp* queue_pair::adopt(ibv_qp* qp, const ibv_qp_init_attr& attr, uint32_t asked) {
    std::unique_ptr<ibv_qp, int (*)(ibv_qp*)> unless_made(qp, real().destroy_qp);
    auto made = std::make_shared<queue_pair>(qp, attr, std::max(attr.cap.max_send_wr, asked + 1));
    if (!attr.srq) {
        made->m_receives =
            std::make_shared<receive_queue>(qp->pd, std::max(attr.cap.max_recv_wr, 1U),
                                            attr.cap.max_recv_sge, attr.qp_type != IBV_QPT_RC);
        made->m_receives->attach(qp, made, made->m_recv_cq);
    } else {
        made->m_shared = receive_queue::find(attr.srq);
    }
    if (const int err = made->m_send_cq->reserve(made->m_order.capacity())) {
        unless_made.reset();
        errno = err;
        return nullptr;
    }
    try {
        if (made->m_receives)
            work_queue::add(made->m_receives);
        work_queue::add(made);
        pairs().add(qp, made);
        if (made->m_shared)
            made->m_shared->share(made->m_recv_cq);
    } catch (const std::bad_alloc&) {
        pairs().remove(qp);
        made->remove_id();
        if (made->m_receives)
            made->m_receives->remove_id();
        made->m_send_cq->release(made->m_order.capacity());
        throw;
    }
    made->m_send_cq->use(true);
    made->m_recv_cq->use(true);
    debug("QP %u: %u sends, %u receives", qp->qp_num, attr.cap.max_send_wr, attr.cap.max_recv_wr);
    return unless_made.release();
}

// For the device: one buffer of the library per work request, each signaled by its own flag.
ibv_qp* queue_pair::create(ibv_pd* pd, ibv_qp_init_attr* attr) {
    if (!is_supported(attr->qp_type)) {
        errno = EOPNOTSUPP;
        return nullptr;
    }
    if (!completion_queue::find(attr->send_cq) || !completion_queue::find(attr->recv_cq)) {
        errno = EINVAL;
        return nullptr;
    }
    ibv_qp_init_attr ours = *attr;
    ours.cap.max_send_sge = std::max(ours.cap.max_send_sge, 1U);
    if (!attr->srq)
        ours.cap.max_recv_sge = std::max(ours.cap.max_recv_sge, 1U);
    ours.sq_sig_all = 0;
    ibv_qp* qp = real().create_qp(pd, &ours);
    if (!qp)
        return nullptr;
    const uint32_t asked = attr->cap.max_send_wr;
    attr->cap = ours.cap;
    return adopt(qp, *attr, asked);
}

ibv_qp* queue_pair::create_extended(ibv_context* context, ibv_qp_init_attr_ex* attr) {
    constexpr uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    const auto device = device_context::find(context);
    const bool builds = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    if (!is_supported(attr->qp_type) || attr->comp_mask & ~known || !device->real_create_qp_ex() ||
        (builds && !builder::is_possible(attr->send_ops_flags))) {
        errno = EOPNOTSUPP;
        return nullptr;
    }
    if (!completion_queue::find(attr->send_cq) || !completion_queue::find(attr->recv_cq)) {
        errno = EINVAL;
        return nullptr;
    }
    ibv_qp_init_attr_ex ours = *attr;
    ours.cap.max_send_sge = std::max(ours.cap.max_send_sge, 1U);
    if (!attr->srq)
        ours.cap.max_recv_sge = std::max(ours.cap.max_recv_sge, 1U);
    ours.sq_sig_all = 0;
    ibv_qp* qp = device->real_create_qp_ex()(context, &ours);
    if (!qp)
        return nullptr;
    const uint32_t asked = attr->cap.max_send_wr;
    attr->cap = ours.cap;
    const ibv_qp_init_attr plain = {attr->qp_context, attr->send_cq, attr->recv_cq,   attr->srq,
                                    attr->cap,        attr->qp_type, attr->sq_sig_all};
    if (builds)
        builder::take_over(::ibv_qp_to_qp_ex(qp));
    return adopt(qp, plain, asked);
}

int queue_pair::destroy(ibv_qp* qp) {
    // Removed first: once this QP is destroyed, a new one may have the same pointer.
    const auto found = pairs().remove(qp);
    if (!found)
        return real().destroy_qp(qp);
    // Harvested first: an SRQ needs the QP's completions, which the device may drop.
    found->m_recv_cq->harvest();
    {
        const std::lock_guard lock(found->m_mutex);
        found->m_is_dead = true;
    }
    found->pause();
    const int err = real().destroy_qp(qp);
    if (err) {
        pairs().add(qp, found);
        {
            std::unique_lock lock(found->m_mutex);
            found->m_is_dead = false;
            for (auto& [number, wc] : found->m_missed)
                found->complete(lock, number, wc);
            found->m_missed.clear();
        }
        found->resume();
        return err;
    }
    found->stop_worker();
    found->m_send_cq->use(false);
    found->m_recv_cq->use(false);
    found->remove_id();
    found->m_send_cq->drop(found.get());
    {
        const std::lock_guard lock(found->m_mutex);
        found->want(false);
        found->m_bounce.drop();  // before the program frees its protection domain
    }
    found->m_send_cq->release(found->m_order.capacity());
    if (found->m_receives)
        found->m_receives->detach();
    if (found->m_shared)
        found->m_shared->unshare(found->m_recv_cq);
    return 0;
}

// Before the device drops its work requests: no more of them are executed, or posted to it.
void queue_pair::pause() {
    {
        std::unique_lock lock(m_mutex);
        m_is_paused = true;
        m_idle.wait(lock, [this] { return !m_is_running; });
    }
    if (m_receives)
        m_receives->kill();
}

// After pause(), if the device has refused.
void queue_pair::resume() {
    if (m_receives)
        m_receives->revive();
    std::unique_lock lock(m_mutex);
    m_is_paused = false;
    if (std::exchange(m_has_failed_meanwhile, false))
        fail();
    advance(lock, false, 0);
}

// After pause(), when the device has dropped them.
void queue_pair::reset() {
    m_send_cq->harvest();
    m_recv_cq->harvest();
    {
        const std::lock_guard lock(m_mutex);
        m_send_cq->drop(this);
        want(false);
        m_order.reset();
        m_polled = 0;
        for (slot& s : m_slots) {
            if (s.where)
                m_bounce.give(*s.where);
            s.where.reset();
        }
        m_is_paused = false;
        m_has_failed_meanwhile = false;
        m_state = IBV_QPS_RESET;  // even if a completion was a failure
    }
    if (m_receives) {
        m_recv_cq->drop(m_receives.get());
        m_receives->reset();
    }
}

int queue_pair::modify(ibv_qp_attr* attr, int mask) {
    const bool resets = mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET;
    if (resets) {
        // As in destroy().
        m_recv_cq->harvest();
        pause();
    }
    const int err = real().modify_qp(m_qp, attr, mask);
    if (err) {
        if (resets)
            resume();
        return err;
    }
    if (mask & IBV_QP_AV) {
        m_peer.connect(attr->ah_attr.is_global ? &attr->ah_attr.grh.dgid : nullptr);
        if (attr->ah_attr.is_global)
            node::get()->add_gid(m_qp->context, attr->ah_attr.port_num,
                                 attr->ah_attr.grh.sgid_index);
    }
    if (!(mask & IBV_QP_STATE))
        return 0;
    m_state = attr->qp_state;
    if (attr->qp_state == IBV_QPS_ERR) {
        std::unique_lock lock(m_mutex);
        m_order.fail();
        if (m_receives)
            m_receives->fail();
        advance(lock, false, 0);
    } else if (resets) {
        reset();
    }
    return 0;
}

int queue_pair::post_recv(ibv_recv_wr* wr, ibv_recv_wr** bad) {
    if (m_receives && m_state != IBV_QPS_RESET)
        return m_receives->post(wr, bad);
    *bad = wr;
    return EINVAL;
}

}  // namespace lite::verbs
