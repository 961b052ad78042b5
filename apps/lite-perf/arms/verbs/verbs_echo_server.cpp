// SPDX-License-Identifier: MIT
#include "arms/verbs/verbs_echo_server.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <utility>

namespace perf {

namespace {

// The server sleeps after this time without a message.
constexpr std::chrono::milliseconds idle_limit{2};
// Polls of the CQ between two checks of events and clock.
constexpr unsigned polls_between = 4096;

bool readable(int fd) {
    pollfd waiting{fd, POLLIN, 0};
    return poll(&waiting, 1, 0) > 0;
}

}  // namespace

VerbsEchoServer::VerbsEchoServer(const std::string& address, std::uint16_t port, bool spin)
    : spin_(spin),
      stop_(eventfd(0, EFD_CLOEXEC)),
      channel_(make_event_channel()),
      listener_(make_cm_id(channel_.get())) {
    if (stop_.get() < 0)
        throw_errno("eventfd");
    make_nonblocking(channel_->fd);
    listen_at(listener_.get(), address, echo_port(port));
    thread_ = std::jthread([this] { run(); });
}

VerbsEchoServer::~VerbsEchoServer() {
    const std::uint64_t one = 1;
    if (write(stop_.get(), &one, sizeof one) != sizeof one)
        std::terminate();  // the thread would never end; a new eventfd accepts the write
    thread_.join();
    connections_.clear();
}

void VerbsEchoServer::run() {
    Clock::time_point last = Clock::now();
    bool busy = false;
    for (unsigned polls = 0;; polls++) {
        busy = serve_some() || busy;
        if (polls % polls_between && !connections_.empty())
            continue;
        if (readable(stop_.get()))
            return;
        handle_events();
        const Clock::time_point now = Clock::now();
        if (std::exchange(busy, false))
            last = now;
        if (!connections_.empty() && (spin_ || now - last < idle_limit))
            continue;
        if (!sleep())
            return;
        last = Clock::now();
    }
}

/// Returns whether there was a completion.
bool VerbsEchoServer::serve_some() {
    std::array<ibv_wc, 16> wcs;
    const int n =
        receive_cq_ ? ibv_poll_cq(receive_cq_.get(), static_cast<int>(wcs.size()), wcs.data()) : 0;
    if (n < 0)
        throw std::runtime_error("verbs: polling the completion queue failed");
    for (int i = 0; i < n; i++)
        echo(wcs[static_cast<std::size_t>(i)]);
    return n > 0;
}

void VerbsEchoServer::echo(const ibv_wc& wc) {
    // A failed completion belongs to a connection that is ending; a CM event follows.
    const auto found = connections_.find(wc.qp_num);
    if (wc.status != IBV_WC_SUCCESS || found == connections_.end())
        return;
    try {
        EchoEnd& end = *found->second;
        end.post(end.received(wc));
    } catch (const std::exception& error) {
        fmt::print(stderr, "lite-perf: a verbs client was dropped: {}\n", error.what());
        connections_.erase(found);
    }
}

/// Sleeps until an event. False: stop.
bool VerbsEchoServer::sleep() {
    if (receive_cq_) {
        if (ibv_req_notify_cq(receive_cq_.get(), 0))
            throw std::runtime_error("verbs: arming the completion queue failed");
        // Completions that came before the CQ was armed have raised no event.
        if (serve_some())
            return true;
    }
    std::array<pollfd, 3> waiting{{{channel_->fd, POLLIN, 0},
                                   {stop_.get(), POLLIN, 0},
                                   {events_ ? events_->fd : -1, POLLIN, 0}}};
    if (poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR)
        throw_errno("verbs: poll");
    if (waiting[2].revents) {
        ibv_cq* cq;
        void* context;
        if (ibv_get_cq_event(events_.get(), &cq, &context))
            throw_errno("verbs: completion event");
        ibv_ack_cq_events(cq, 1);
    }
    return !waiting[1].revents;
}

void VerbsEchoServer::handle_events() {
    rdma_cm_event* raw = nullptr;
    while (rdma_get_cm_event(channel_.get(), &raw) == 0) {
        // Copy the event and acknowledge it: an id with unacknowledged events cannot be destroyed.
        const rdma_cm_event_type type = raw->event;
        rdma_cm_id* id = raw->id;
        const std::uint8_t depth = raw->param.conn.responder_resources;
        EchoHello hello{};
        if (type == RDMA_CM_EVENT_CONNECT_REQUEST && raw->param.conn.private_data &&
            raw->param.conn.private_data_len >= sizeof hello)
            std::memcpy(&hello, raw->param.conn.private_data, sizeof hello);
        rdma_ack_cm_event(raw);
        try {
            if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
                accept(id, hello, depth);
            else if (type != RDMA_CM_EVENT_ESTABLISHED)
                std::erase_if(connections_,
                              [id](const auto& entry) { return entry.second->id() == id; });
        } catch (const std::exception& error) {
            fmt::print(stderr, "lite-perf: a verbs client was dropped: {}\n", error.what());
        }
    }
}

void VerbsEchoServer::accept(rdma_cm_id* raw, const EchoHello& hello, std::uint8_t depth) {
    CmId id(raw);
    if (!receive_cq_) {
        events_.reset(ibv_create_comp_channel(id->verbs));
        if (!events_)
            throw_errno("verbs: completion channel");
        receive_cq_ = make_cq(id->verbs, connections_max * EchoEnd::receives, events_.get());
    }
    const char* refused = !hello.valid() ? "not a lite-perf of this version"
                          : connections_.size() >= connections_max ? "too many connections"
                          : receive_cq_->context != id->verbs      ? "through another device"
                                                                   : nullptr;
    if (refused) {
        rdma_reject(id.get(), nullptr, 0);
        throw std::runtime_error(refused);
    }
    auto end = std::make_unique<EchoEnd>(std::move(id), hello.mode, receive_cq_.get());
    end->learn(hello);
    const EchoHello own = end->hello();
    rdma_conn_param param{};
    param.private_data = &own;
    param.private_data_len = sizeof own;
    param.responder_resources = std::min(depth, max_responder_resources(raw->verbs));
    param.initiator_depth = 1;
    param.rnr_retry_count = 6;
    if (rdma_accept(raw, &param))
        throw_errno("accept");
    const std::uint32_t number = raw->qp->qp_num;
    connections_.emplace(number, std::move(end));
}

}  // namespace perf
