// SPDX-License-Identifier: MIT
#include "arms/verbs/verbs_client.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "net.hpp"

namespace perf {

namespace {

constexpr unsigned window_limit = 128;
// Time to register a region at the server.
constexpr std::chrono::milliseconds per_region{2};
// Bytes per second: emulated machines move a few MB.
constexpr std::uint64_t slowest = 1 << 20;

}  // namespace

VerbsClient::VerbsClient(const Target& target, unsigned window)
    : channel_(make_event_channel()),
      id_(make_cm_id(channel_.get())),
      window_(std::clamp(window, 1U, window_limit)),
      limit_(patience + std::chrono::seconds(window_ * target.bytes / slowest)) {
    resolve_server(id_.get(), target.server, target.port,
                   target.patient ? ack_timeout_patient : ack_timeout_quick);
    events_.reset(ibv_create_comp_channel(id_->verbs));
    if (!events_)
        throw_errno("verbs: completion channel");
    // Room for all requests: failed ones complete even if they are not signalled.
    cq_ = make_cq(id_->verbs, window_ + 1, events_.get());
    qp_ = make_queue_pair(id_.get(), cq_.get(), window_, inline_bytes_);
    connect(target);
}

void VerbsClient::post(ibv_send_wr& first) const {
    ibv_send_wr* bad = nullptr;
    const int error = ibv_post_send(id_->qp, &first, &bad);
    if (error)
        throw std::system_error(error, std::generic_category(), "verbs: post");
}

ibv_wc VerbsClient::completion(bool asleep) const {
    return asleep ? await_completion_event(cq_.get(), events_.get(), limit_)
                  : await_completion(cq_.get(), false, limit_);
}

void VerbsClient::disconnect() {
    if (connected_)
        rdma_disconnect(id_.get());
    connected_ = false;
}

void VerbsClient::connect(const Target& target) {
    const Hello hello = make_hello(target.bytes, target.regions);
    rdma_conn_param param{};
    param.private_data = &hello;
    param.private_data_len = sizeof hello;
    const CmEvent event =
        connect_server(id_.get(), target.server, param, patience + target.regions * per_region);
    connected_ = true;
    const rdma_conn_param& answer = event->param.conn;
    VerbsGrant grant{};
    // CM pads private data: it may be longer, but not shorter.
    if (answer.private_data && answer.private_data_len >= sizeof grant)
        std::memcpy(&grant, answer.private_data, sizeof grant);
    if (!is_valid(grant.hello) || grant.hello.bytes != target.bytes ||
        grant.hello.regions != target.regions) {
        disconnect();
        throw std::runtime_error("verbs: the peer is not lite-perf serve of this version");
    }
    granted_ = {grant.address, grant.rkey, 0};
}

}  // namespace perf
