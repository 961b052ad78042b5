// SPDX-License-Identifier: MIT
#include "rdma.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "net.hpp"

namespace perf {

namespace {

// Beyond a few cache lines the copy into the work request costs more than it saves.
constexpr unsigned inline_wanted = 220;

ibv_device_attr attributes(ibv_context* device) {
    ibv_device_attr attr{};
    const int error = ibv_query_device(device, &attr);
    if (error)
        throw std::system_error(error, std::generic_category(), "verbs: query device");
    return attr;
}

std::uint8_t as_u8(int value) { return static_cast<std::uint8_t>(std::clamp(value, 0, 255)); }

}  // namespace

EventChannel make_event_channel() {
    EventChannel channel(rdma_create_event_channel());
    if (!channel)
        throw_errno("verbs: no RDMA CM here (is there an RDMA device, and the module rdma_ucm?)");
    return channel;
}

CmId make_cm_id(rdma_event_channel* channel) {
    rdma_cm_id* id = nullptr;
    if (rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP))
        throw_errno("verbs: create RDMA CM id");
    return CmId(id);
}

CompletionQueue make_cq(ibv_context* device, unsigned entries) {
    CompletionQueue cq(ibv_create_cq(device, static_cast<int>(entries), nullptr, nullptr, 0));
    if (!cq)
        throw_errno("verbs: create CQ");
    return cq;
}

MemoryRegion register_memory(ibv_pd* pd, std::span<std::byte> memory) {
    MemoryRegion region(ibv_reg_mr(pd, memory.data(), memory.size(),
                                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                                       IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC));
    if (!region)
        throw_errno(fmt::format("verbs: register {} bytes", memory.size()));
    return region;
}

QueuePair make_queue_pair(rdma_cm_id* id, ibv_cq* cq, unsigned depth, unsigned& inline_bytes) {
    for (unsigned wanted : {inline_wanted, 64U, 0U}) {
        ibv_qp_init_attr attr{};
        attr.send_cq = cq;
        attr.recv_cq = cq;
        attr.qp_type = IBV_QPT_RC;
        attr.sq_sig_all = 0;
        attr.cap.max_send_wr = depth;
        attr.cap.max_recv_wr = 1;
        attr.cap.max_send_sge = 1;
        attr.cap.max_recv_sge = 1;
        attr.cap.max_inline_data = wanted;
        if (rdma_create_qp(id, id->pd, &attr) == 0) {
            inline_bytes = attr.cap.max_inline_data;
            return QueuePair(id);
        }
    }
    throw_errno("verbs: create queue pair");
}

std::uint8_t max_initiator_depth(ibv_context* device) {
    return as_u8(attributes(device).max_qp_init_rd_atom);
}

std::uint8_t max_responder_resources(ibv_context* device) {
    return as_u8(attributes(device).max_qp_rd_atom);
}

CmEvent next_event(rdma_event_channel* channel, const char* what, std::chrono::milliseconds limit) {
    pollfd waiting{channel->fd, POLLIN, 0};
    int ready;
    do {
        ready = poll(&waiting, 1, static_cast<int>(limit.count()));
    } while (ready < 0 && errno == EINTR);
    if (ready < 0)
        throw_errno(fmt::format("verbs: {}", what));
    if (ready == 0)
        throw std::runtime_error(fmt::format("verbs: {}: no answer in {} ms", what, limit.count()));
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel, &event))
        throw_errno(fmt::format("verbs: {}", what));
    return CmEvent(event);
}

CmEvent await_event(rdma_event_channel* channel, rdma_cm_event_type expected, const char* what,
                    std::chrono::milliseconds limit) {
    CmEvent event = next_event(channel, what, limit);
    if (event->event != expected)
        throw std::runtime_error(fmt::format("verbs: {}: {} (status {})", what,
                                             rdma_event_str(event->event), event->status));
    return event;
}

}  // namespace perf
