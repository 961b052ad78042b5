// SPDX-License-Identifier: MIT
#include "arms/verbs/rdma.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "net.hpp"

namespace perf {

namespace {

// Beyond a few cache lines the copy into the work request costs more than it saves.
constexpr unsigned inline_wanted = 220;

constexpr auto step_limit = std::chrono::milliseconds(patience);

// Retransmissions. Seven would mean "without limit" on Soft-RoCE.
constexpr std::uint8_t retries = 6;

ibv_device_attr attributes(ibv_context* device) {
    ibv_device_attr attr{};
    const int error = ibv_query_device(device, &attr);
    if (error)
        throw std::system_error(error, std::generic_category(), "verbs: query device");
    return attr;
}

// The kernel can miss the ARP reply and then notices only at the time-out, so several short
// attempts beat a long one.
void resolve_address(rdma_cm_id* id, sockaddr* address, const std::string& server) {
    constexpr int attempts = 10;
    constexpr std::chrono::milliseconds attempt = step_limit / attempts;
    for (int i = 1;; i++) {
        if (rdma_resolve_addr(id, nullptr, address, static_cast<int>(attempt.count())))
            throw_errno(fmt::format("verbs: no RDMA device reaches {}", server));
        const CmEvent event = next_event(id->channel, "resolve address", step_limit);
        if (event->event == RDMA_CM_EVENT_ADDR_RESOLVED)
            return;
        if (event->event != RDMA_CM_EVENT_ADDR_ERROR || i == attempts)
            throw std::runtime_error(fmt::format("verbs: {} does not answer: {} (status {})",
                                                 server, rdma_event_str(event->event),
                                                 event->status));
    }
}

ibv_wc checked(const ibv_wc& wc) {
    if (wc.status != IBV_WC_SUCCESS)
        throw std::runtime_error(
            fmt::format("verbs: completion failed: {}", ibv_wc_status_str(wc.status)));
    return wc;
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

CompletionQueue make_cq(ibv_context* device, unsigned entries, ibv_comp_channel* events) {
    CompletionQueue cq(ibv_create_cq(device, static_cast<int>(entries), nullptr, events, 0));
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
    return make_queue_pair(id, cq, cq, depth, 1, inline_bytes);
}

QueuePair make_queue_pair(rdma_cm_id* id, ibv_cq* send_cq, ibv_cq* receive_cq, unsigned sends,
                          unsigned receives, unsigned& inline_bytes) {
    for (unsigned wanted : {inline_wanted, 64U, 0U}) {
        ibv_qp_init_attr attr{};
        attr.send_cq = send_cq;
        attr.recv_cq = receive_cq;
        attr.qp_type = IBV_QPT_RC;
        attr.sq_sig_all = 0;
        attr.cap.max_send_wr = sends;
        attr.cap.max_recv_wr = receives;
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

void listen_at(rdma_cm_id* id, const std::string& address, std::uint16_t port) {
    rdma_addrinfo hints{};
    hints.ai_flags = RAI_PASSIVE;
    hints.ai_port_space = RDMA_PS_TCP;
    rdma_addrinfo* list = nullptr;
    if (rdma_getaddrinfo(address.empty() ? nullptr : address.c_str(), std::to_string(port).c_str(),
                         &hints, &list))
        throw_errno(fmt::format("verbs: cannot resolve '{}'", address));
    const std::unique_ptr<rdma_addrinfo, Destroy<rdma_freeaddrinfo>> owner(list);
    if (rdma_bind_addr(id, list->ai_src_addr) || rdma_listen(id, 32))
        throw_errno(fmt::format("verbs: listening on RDMA CM port {}", port));
}

ibv_wc await_completion(ibv_cq* cq, bool yield, std::chrono::seconds limit) {
    ibv_wc wc;
    Clock::time_point deadline{};
    // Checks the clock rarely: on some machines that is a system call.
    for (unsigned spins = 0;; spins++) {
        const int count = ibv_poll_cq(cq, 1, &wc);
        if (count == 1)
            break;
        if (count < 0)
            throw std::runtime_error("verbs: polling the completion queue failed");
        if (yield && spins % 16 == 15)
            std::this_thread::yield();
        if (spins % 4096 != 4095)
            continue;
        const Clock::time_point now = Clock::now();
        if (deadline == Clock::time_point{})
            deadline = now + limit;
        else if (now > deadline)
            throw std::runtime_error(fmt::format("verbs: no completion in {} s", limit.count()));
    }
    return checked(wc);
}

ibv_wc await_completion_event(ibv_cq* cq, ibv_comp_channel* events, std::chrono::seconds limit) {
    ibv_wc wc;
    for (;;) {
        int count = ibv_poll_cq(cq, 1, &wc);
        if (!count) {
            if (ibv_req_notify_cq(cq, 0))
                throw std::runtime_error("verbs: arming the completion queue failed");
            // Completions that came before the CQ was armed have raised no event.
            count = ibv_poll_cq(cq, 1, &wc);
        }
        if (count < 0)
            throw std::runtime_error("verbs: polling the completion queue failed");
        if (count == 1)
            return checked(wc);
        pollfd waiting{events->fd, POLLIN, 0};
        const int ready =
            poll(&waiting, 1, static_cast<int>(std::chrono::milliseconds(limit).count()));
        if (ready < 0 && errno != EINTR)
            throw_errno("verbs: poll");
        if (ready == 0)
            throw std::runtime_error(fmt::format("verbs: no completion in {} s", limit.count()));
        ibv_cq* told;
        void* context;
        if (ready > 0) {
            if (ibv_get_cq_event(events, &told, &context))
                throw_errno("verbs: completion event");
            ibv_ack_cq_events(told, 1);
        }
    }
}

void resolve_server(rdma_cm_id* id, const std::string& server, std::uint16_t port,
                    std::uint8_t ack_timeout) {
    rdma_addrinfo hints{};
    hints.ai_port_space = RDMA_PS_TCP;
    rdma_addrinfo* list = nullptr;
    if (rdma_getaddrinfo(server.c_str(), std::to_string(port).c_str(), &hints, &list))
        throw_errno(fmt::format("verbs: cannot resolve '{}'", server));
    const std::unique_ptr<rdma_addrinfo, Destroy<rdma_freeaddrinfo>> owner(list);

    resolve_address(id, list->ai_dst_addr, server);
    // Older kernels lack this option; a lost packet then costs more time.
    std::uint8_t timeout = ack_timeout;
    rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof timeout);
    if (rdma_resolve_route(id, static_cast<int>(step_limit.count())))
        throw_errno("verbs: resolve route");
    await_event(id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED, "resolve route", step_limit);
}

CmEvent connect_server(rdma_cm_id* id, const std::string& server, rdma_conn_param param,
                       std::chrono::milliseconds limit) {
    param.initiator_depth = max_initiator_depth(id->verbs);
    param.responder_resources = max_responder_resources(id->verbs);
    param.retry_count = retries;
    param.rnr_retry_count = retries;
    if (rdma_connect(id, &param))
        throw_errno("verbs: connect");
    CmEvent event = next_event(id->channel, "connect", limit);
    if (event->event == RDMA_CM_EVENT_REJECTED)
        throw std::runtime_error(fmt::format(
            "verbs: {} refuses (is \"lite-perf serve\" running there, and does it serve verbs?)",
            server));
    if (event->event != RDMA_CM_EVENT_ESTABLISHED)
        throw std::runtime_error(fmt::format("verbs: connect: {} (status {})",
                                             rdma_event_str(event->event), event->status));
    return event;
}

}  // namespace perf
