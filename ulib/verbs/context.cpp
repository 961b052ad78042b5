// SPDX-License-Identifier: MIT
//
// Replaces the operations of contexts that programs call through inline functions.

#include "context.hpp"

#include "call.hpp"
#include "completions/cq.hpp"
#include "log.hpp"
#include "memory/node.hpp"
#include "queues/queue.hpp"
#include "real.hpp"
#include "registry.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>

namespace lite::verbs {
namespace {

registry<const ibv_context*, device_context>& contexts() {
    static auto& all = *new registry<const ibv_context*, device_context>;
    return all;
}

int poll_cq(ibv_cq* cq, int n, ibv_wc* wc) {
    return call(-1, [=] {
        const auto found = completion_queue::find(cq);
        return found ? found->poll(n, wc) : -1;
    });
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
    return call(ENOMEM, [=] {
        const auto found = completion_queue::find(cq);
        return found ? found->request_notify(solicited_only != 0) : EINVAL;
    });
}

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
    *bad = wr;
    return call(ENOMEM, [=] {
        const auto found = queue_pair::find(qp);
        return found ? found->post_send(wr, bad) : EINVAL;
    });
}

int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
    *bad = wr;
    return call(ENOMEM, [=] {
        const auto found = queue_pair::find(qp);
        return found ? found->post_recv(wr, bad) : EINVAL;
    });
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
    *bad = wr;
    return call(ENOMEM, [=] {
        const auto found = receive_queue::find(srq);
        return found ? found->post(wr, bad) : EINVAL;
    });
}

ibv_mw* alloc_mw(ibv_pd*, ibv_mw_type) {
    errno = EOPNOTSUPP;
    return nullptr;
}

// Nothing to do: unpinned memory is brought in when it is used.
int advise_mr(ibv_pd*, ibv_advise_mr_advice, uint32_t, ibv_sge*, uint32_t) { return 0; }

}  // namespace

bool device_context::take_over(ibv_context* context) {
    ibv_comp_channel* channel = lite::verbs::real().create_comp_channel(context);
    if (!channel) {
        say_once("plain verbs on a device", "it has no completion channels");
        return false;
    }
    // poll(2) may report an event that goes with its CQ before it is read: a read must not block.
    const int flags = ::fcntl(channel->fd, F_GETFL);
    if (flags < 0 || ::fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK)) {
        say_once("plain verbs on a device", std::strerror(errno));
        lite::verbs::real().destroy_comp_channel(channel);
        return false;
    }
    const verbs_context* wide = verbs_get_ctx(context);
    contexts().add(context, std::make_shared<device_context>(
                                context->ops, wide ? wide->create_qp_ex : nullptr, channel));
    context->ops.poll_cq = poll_cq;
    context->ops.req_notify_cq = req_notify_cq;
    context->ops.post_send = post_send;
    context->ops.post_recv = post_recv;
    context->ops.post_srq_recv = post_srq_recv;
    context->ops.alloc_mw = alloc_mw;
    if (verbs_context* extended = verbs_get_ctx(context)) {
        extended->advise_mr = advise_mr;
        // Programs use the ordinary functions instead, or do without.
        extended->create_cq_ex = nullptr;
        extended->create_qp_ex = queue_pair::create_extended;
        extended->create_srq_ex = nullptr;
        extended->create_wq = nullptr;
        extended->open_qp = nullptr;
        extended->open_xrcd = nullptr;
        extended->alloc_dm = nullptr;
        extended->reg_dm_mr = nullptr;
        extended->alloc_parent_domain = nullptr;
        extended->alloc_null_mr = nullptr;
    }
    node::get()->add_gids(context);
    debug("device %s", ibv_get_device_name(context->device));
    return true;
}

std::shared_ptr<device_context> device_context::find(const ibv_context* context) {
    return contexts().find(context);
}

void device_context::give_back(ibv_context* context) {
    const auto found = contexts().find(context);
    if (!found)
        return;
    ibv_comp_channel* channel = found->m_progress.channel();
    // The thread may be posting to the device.
    found->m_progress.stop();
    contexts().remove(context);
    lite::verbs::real().destroy_comp_channel(channel);
}

const ibv_context_ops& real_ops(const ibv_context* context) {
    return contexts().find(context)->real();
}

}  // namespace lite::verbs
