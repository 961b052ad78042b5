// SPDX-License-Identifier: MIT
//
// RAII for what both ends of the verbs arm use of libibverbs and librdmacm.
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

/// The queue pair of a cm_id, which goes before the cm_id and its CQ do.
using QueuePair = std::unique_ptr<rdma_cm_id, Destroy<rdma_destroy_qp>>;

EventChannel make_event_channel();
CmId make_cm_id(rdma_event_channel* channel);
/// @events: where it tells of completions when it was asked to; may be null.
CompletionQueue make_cq(ibv_context* device, unsigned entries, ibv_comp_channel* events = nullptr);

/// Register memory for everything that the arm does, at either end.
MemoryRegion register_memory(ibv_pd* pd, std::span<std::byte> memory);

/// An RC queue pair for @depth signalled requests. Asks for as much inline data as helps (small
/// writes then need no read of the buffer by the device) and takes less if the device has less.
/// @inline_bytes is set to what was granted.
QueuePair make_queue_pair(rdma_cm_id* id, ibv_cq* cq, unsigned depth, unsigned& inline_bytes);

/// The same with a CQ and a depth for receives, too.
QueuePair make_queue_pair(rdma_cm_id* id, ibv_cq* send_cq, ibv_cq* receive_cq, unsigned sends,
                          unsigned receives, unsigned& inline_bytes);

/// Reads and atomics that may be under way at once, at the most that CM and device allow.
std::uint8_t max_initiator_depth(ibv_context* device);
std::uint8_t max_responder_resources(ibv_context* device);

/// The next event. Throws when @limit is over. @what names the step in the error.
CmEvent next_event(rdma_event_channel* channel, const char* what, std::chrono::milliseconds limit);

/// The next event, which must be @expected; throws otherwise.
CmEvent await_event(rdma_event_channel* channel, rdma_cm_event_type expected, const char* what,
                    std::chrono::milliseconds limit);

/// Listen on an address ("" for all).
void listen_at(rdma_cm_id* id, const std::string& address, std::uint16_t port);

/// Wait for a completion in a busy loop, which lets others run if there are more of them than CPUs
/// (@yield). Throws if it failed, or did not come in time.
ibv_wc await_completion(ibv_cq* cq, bool yield = false);

/// Likewise, but asleep. @events: what the CQ was made with.
ibv_wc await_completion_event(ibv_cq* cq, ibv_comp_channel* events);

/// 4.096 us * 2^14 = 67 ms until the first retransmission: a lost packet does not cost seconds, as
/// it does with CM's defaults.
constexpr std::uint8_t ack_timeout_quick = 14;
/// 0.5 s. Where many connections send long messages both ways, software takes longer than the other
/// for them, and what is sent again because of that is one more burden.
constexpr std::uint8_t ack_timeout_patient = 17;

/// Client: find the device and the route to a server. @ack_timeout: as above, an exponent.
void resolve_server(rdma_cm_id* id, const std::string& server, std::uint16_t port,
                    std::uint8_t ack_timeout);

/// Client: connect, with whatever @param says; the event has the server's answer. Throws if it
/// refuses, or does not answer within @limit.
CmEvent connect_server(rdma_cm_id* id, const std::string& server, rdma_conn_param param,
                       std::chrono::milliseconds limit = std::chrono::milliseconds(patience));

}  // namespace perf
