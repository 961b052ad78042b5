// SPDX-License-Identifier: MIT
//
// RAII for libibverbs and librdmacm, shared by both ends of the verbs arm.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "net.hpp"

namespace perf {

template <auto destroy>
struct Destroy {
    template <typename T>
    void operator()(T* object) const {
        destroy(object);
    }
};

using EventChannel = std::unique_ptr<rdma_event_channel, Destroy<rdma_destroy_event_channel>>;
using CmId = std::unique_ptr<rdma_cm_id, Destroy<rdma_destroy_id>>;
using CmEvent = std::unique_ptr<rdma_cm_event, Destroy<rdma_ack_cm_event>>;
using CompletionQueue = std::unique_ptr<ibv_cq, Destroy<ibv_destroy_cq>>;
using CompletionEvents = std::unique_ptr<ibv_comp_channel, Destroy<ibv_destroy_comp_channel>>;
using MemoryRegion = std::unique_ptr<ibv_mr, Destroy<ibv_dereg_mr>>;

/// The queue pair of a cm_id; to be destroyed before the cm_id and its CQ.
using QueuePair = std::unique_ptr<rdma_cm_id, Destroy<rdma_destroy_qp>>;

EventChannel make_event_channel();
CmId make_cm_id(rdma_event_channel* channel);
/// @events: channel for completion events; may be null.
CompletionQueue make_cq(ibv_context* device, unsigned entries, ibv_comp_channel* events = nullptr);

/// Registers memory for every operation of the arm, at either end.
MemoryRegion register_memory(ibv_pd* pd, std::span<std::byte> memory);

/// An RC queue pair for @depth sends. Asks for as much inline data as is useful (the device need
/// not read the buffer of an inline write), and sets @inline_bytes to what was granted.
QueuePair make_queue_pair(rdma_cm_id* id, ibv_cq* cq, unsigned depth, unsigned& inline_bytes);

/// The same with a separate CQ and depth for receives.
QueuePair make_queue_pair(rdma_cm_id* id, ibv_cq* send_cq, ibv_cq* receive_cq, unsigned sends,
                          unsigned receives, unsigned& inline_bytes);

/// Reads and atomics in flight at once: the most that CM and device allow.
std::uint8_t max_initiator_depth(ibv_context* device);
std::uint8_t max_responder_resources(ibv_context* device);

/// The next event. Throws after @limit. @what names the step in the error.
CmEvent next_event(rdma_event_channel* channel, const char* what, std::chrono::milliseconds limit);

/// The next event. Throws if it is not @expected.
CmEvent await_event(rdma_event_channel* channel, rdma_cm_event_type expected, const char* what,
                    std::chrono::milliseconds limit);

/// Listens on an address ("" for all).
void listen_at(rdma_cm_id* id, const std::string& address, std::uint16_t port);

/// Busy-waits for a completion. @yield: lets other threads run, for more callers than CPUs. Throws
/// if the request failed, or did not complete within @limit.
ibv_wc await_completion(ibv_cq* cq, bool yield = false, std::chrono::seconds limit = patience);

/// The same, but sleeps. @events: the channel the CQ was made with.
ibv_wc await_completion_event(ibv_cq* cq, ibv_comp_channel* events,
                              std::chrono::seconds limit = patience);

/// 4.096 us * 2^14 = 67 ms until the first retransmission, so that a lost packet does not cost
/// seconds, as with CM's default.
constexpr std::uint8_t ack_timeout_quick = 14;
/// 0.5 s: with long messages both ways on many connections, software devices exceed the quick
/// time-out, and retransmissions only add to their load.
constexpr std::uint8_t ack_timeout_patient = 17;

/// Client: resolves the device and the route to a server. @ack_timeout: exponent, as above.
void resolve_server(rdma_cm_id* id, const std::string& server, std::uint16_t port,
                    std::uint8_t ack_timeout);

/// Client: connects with @param; the event holds the server's answer. Throws if the server refuses,
/// or does not answer within @limit.
CmEvent connect_server(rdma_cm_id* id, const std::string& server, rdma_conn_param param,
                       std::chrono::milliseconds limit = std::chrono::milliseconds(patience));

}  // namespace perf
