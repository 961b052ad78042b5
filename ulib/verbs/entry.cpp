// SPDX-License-Identifier: MIT
//
// The functions of libibverbs that programs find here first. They call those of libibverbs if there
// is no LITE node, and for objects of devices that were not taken over.

#include "call.hpp"
#include "completions/cq.hpp"
#include "context.hpp"
#include "log.hpp"
#include "memory/local.hpp"
#include "memory/node.hpp"
#include "queues/queue.hpp"
#include "real.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>

using namespace lite::verbs;

namespace {

uint64_t address_of(const void* p) { return reinterpret_cast<uintptr_t>(p); }

bool is_ours(const ibv_context* context) { return device_context::find(context) != nullptr; }

}  // namespace

extern "C" {

ibv_context* ibv_open_device(ibv_device* device) {
    ibv_context* context = real().open_device(device);
    if (context)
        call(false, [=] { return node::get() && device_context::take_over(context); });
    return context;
}

int ibv_close_device(ibv_context* context) {
    if (is_ours(context))
        call(0, [=] { return registrations::get().forget(context), 0; });
    device_context::give_back(context);
    return real().close_device(context);
}

int ibv_dealloc_pd(ibv_pd* pd) {
    return registrations::get().has(pd) ? EBUSY : real().dealloc_pd(pd);
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* addr, size_t length, int access) {
    return ibv_reg_mr_iova2(pd, addr, length, address_of(addr), static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* addr, size_t length, uint64_t iova, unsigned access) {
    if (!is_ours(pd->context))
        return real().reg_mr_iova2(pd, addr, length, iova, access);
    return call(static_cast<ibv_mr*>(nullptr),
                [=] { return registrations::get().add(pd, addr, length, iova, access); });
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* addr, size_t length, uint64_t iova, int access) {
    return ibv_reg_mr_iova2(pd, addr, length, iova, static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                          int access) {
    if (!is_ours(pd->context) && real().reg_dmabuf_mr)
        return real().reg_dmabuf_mr(pd, offset, length, iova, fd, access);
    // The library copies messages, and a processor may not be able to access a dma-buf.
    errno = EOPNOTSUPP;
    return nullptr;
}

int ibv_dereg_mr(ibv_mr* mr) {
    if (!is_ours(mr->context))
        return real().dereg_mr(mr);
    return call(ENOMEM, [=] { return registrations::get().remove(mr); });
}

int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* addr, size_t length, int access) {
    if (!is_ours(mr->context))
        return real().rereg_mr(mr, flags, pd, addr, length, access);
    return call(static_cast<int>(IBV_REREG_MR_ERR_CMD),
                [=] { return registrations::get().change(mr, flags, pd, addr, length, access); });
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
    std::unique_ptr<ibv_comp_channel, int (*)(ibv_comp_channel*)> channel(
        real().create_comp_channel(context), real().destroy_comp_channel);
    if (!channel || !is_ours(context))
        return channel.release();
    return call(static_cast<ibv_comp_channel*>(nullptr), [&]() -> ibv_comp_channel* {
        if (event_channel::make(channel.get()))
            return channel.release();
        const int err = errno;
        channel.reset();
        errno = err;
        return nullptr;
    });
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
    const auto found = event_channel::find(channel);
    if (!found)
        return real().destroy_comp_channel(channel);
    return call(ENOMEM, [&] {
        found->detach(channel);
        const int err = real().destroy_comp_channel(channel);
        if (err)
            found->attach(found, channel);
        return err;
    });
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
    const auto found = event_channel::find(channel);
    return found ? found->wait(cq, cq_context) : real().get_cq_event(channel, cq, cq_context);
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned n) {
    const auto found = completion_queue::find(cq);
    if (found)
        found->acknowledge(n);
    else
        real().ack_cq_events(cq, n);
}

ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel,
                      int comp_vector) {
    const auto device = device_context::find(context);
    if (!device)
        return real().create_cq(context, cqe, cq_context, channel, comp_vector);
    return call(static_cast<ibv_cq*>(nullptr), [&]() -> ibv_cq* {
        std::unique_ptr<ibv_cq, int (*)(ibv_cq*)> cq(
            real().create_cq(context, cqe, cq_context, device->events().channel(), comp_vector),
            real().destroy_cq);
        if (!cq)
            return nullptr;
        completion_queue::add(std::make_shared<completion_queue>(
            cq.get(), device->events(), channel ? event_channel::find(channel) : nullptr));
        completion_queue::swap_channel(cq.get(), channel);
        return cq.release();
    });
}

int ibv_resize_cq(ibv_cq* cq, int cqe) {
    const auto found = completion_queue::find(cq);
    if (!found)
        return real().resize_cq(cq, cqe);
    return call(ENOMEM, [&] { return found->resize(cqe); });
}

int ibv_destroy_cq(ibv_cq* cq) {
    const auto found = completion_queue::find(cq);
    if (!found)
        return real().destroy_cq(cq);
    if (found->is_used())
        return EBUSY;
    return call(ENOMEM, [&] {
        const auto device = device_context::find(cq->context);
        ibv_comp_channel* channel = cq->channel;
        found->close();
        found->remove();
        completion_queue::swap_channel(cq, device->events().channel());
        const int err = real().destroy_cq(cq);
        if (err) {
            completion_queue::add(found);
            completion_queue::swap_channel(cq, channel);
            found->reopen();
        }
        return err;
    });
}

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
    if (!is_ours(pd->context))
        return real().create_qp(pd, attr);
    return call(static_cast<ibv_qp*>(nullptr), [=] { return queue_pair::create(pd, attr); });
}

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
    const auto found = queue_pair::find(qp);
    if (!found)
        return real().modify_qp(qp, attr, mask);
    return call(ENOMEM, [&] { return found->modify(attr, mask); });
}

int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) {
    const int err = real().query_qp(qp, attr, mask, init);
    const auto found = queue_pair::find(qp);
    if (!err && found)
        init->sq_sig_all = found->signals_all();
    return err;
}

int ibv_destroy_qp(ibv_qp* qp) {
    return call(ENOMEM, [=] { return queue_pair::destroy(qp); });
}

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
    if (!is_ours(pd->context))
        return real().create_srq(pd, attr);
    // Each receive at the device has one buffer, of the library.
    attr->attr.max_sge = std::max(attr->attr.max_sge, 1U);
    std::unique_ptr<ibv_srq, int (*)(ibv_srq*)> srq(real().create_srq(pd, attr),
                                                    real().destroy_srq);
    if (!srq)
        return nullptr;
    return call(static_cast<ibv_srq*>(nullptr), [&] {
        auto made =
            std::make_shared<receive_queue>(pd, attr->attr.max_wr, attr->attr.max_sge, false);
        work_queue::add(made);
        receive_queue::add(srq.get(), made);
        return srq.release();
    });
}

int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
    const int err = real().modify_srq(srq, attr, mask);
    const auto found = receive_queue::find(srq);
    if (err || !found || !(mask & IBV_SRQ_MAX_WR))
        return err;
    return call(ENOMEM, [&] {
        found->grow(attr->max_wr);
        return 0;
    });
}

int ibv_destroy_srq(ibv_srq* srq) {
    const auto found = receive_queue::find(srq);
    if (!found)
        return real().destroy_srq(srq);
    return call(ENOMEM, [&] {
        receive_queue::remove(srq);
        found->kill();
        const int err = real().destroy_srq(srq);
        if (err) {
            receive_queue::add(srq, found);
            found->revive();
        } else {
            found->detach();
        }
        return err;
    });
}

}  // extern "C"
