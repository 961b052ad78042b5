// SPDX-License-Identifier: MIT
//
// The native verbs arm, as somebody who knows them would write it: everything registered once,
// small writes inline, one queue pair, and a busy loop over the completion queue.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "memory.hpp"
#include "net.hpp"
#include "rdma.hpp"
#include "transport.hpp"

namespace perf {

namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned window_limit = 128;
constexpr auto step_limit = std::chrono::milliseconds(patience);

// 4.096 us * 2^14 = 67 ms until the first retransmission, and six of those: a lost packet does not
// cost seconds, as it does with CM's defaults. (Seven retries mean "for ever" on Soft-RoCE.)
constexpr std::uint8_t ack_timeout = 14;
constexpr std::uint8_t retries = 6;

class VerbsTransport final : public Transport {
  public:
    explicit VerbsTransport(const Target& target)
        : region_(target.bytes), channel_(make_event_channel()), id_(make_cm_id(channel_.get())) {
        resolve(target);
        const unsigned depth = std::min(std::max(target.window, 1U), window_limit);
        cq_ = make_cq(id_->verbs, depth);
        memory_ = register_memory(id_->pd, region_.bytes());
        qp_ = make_queue_pair(id_.get(), cq_.get(), depth, inline_bytes_);
        depth_ = depth;
        connect(target);
    }

    ~VerbsTransport() override {
        if (connected_)
            rdma_disconnect(id_.get());
    }

    std::string_view name() const override { return "verbs"; }
    std::span<std::byte> buffer() override { return region_.bytes(); }
    bool supports(Op) const override { return true; }
    unsigned max_window() const override { return depth_; }

    void issue(const Request& request) override {
        ibv_sge sge{};
        sge.addr = reinterpret_cast<std::uintptr_t>(region_.bytes().data() + request.offset);
        sge.length = request.length;
        sge.lkey = memory_->lkey;

        ibv_send_wr wr{};
        wr.wr_id = request.offset;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.send_flags = IBV_SEND_SIGNALED;
        switch (request.op) {
            case Op::read:
                wr.opcode = IBV_WR_RDMA_READ;
                break;
            case Op::write:
                wr.opcode = IBV_WR_RDMA_WRITE;
                if (request.length <= inline_bytes_)
                    wr.send_flags |= IBV_SEND_INLINE;
                break;
            case Op::fetch_add:
                wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
                break;
        }
        if (request.op == Op::fetch_add) {
            wr.wr.atomic.remote_addr = grant_.address + request.offset;
            wr.wr.atomic.rkey = grant_.rkey;
            wr.wr.atomic.compare_add = 1;
        } else {
            wr.wr.rdma.remote_addr = grant_.address + request.offset;
            wr.wr.rdma.rkey = grant_.rkey;
        }
        ibv_send_wr* bad = nullptr;
        const int error = ibv_post_send(id_->qp, &wr, &bad);
        if (error)
            throw std::system_error(error, std::generic_category(), "verbs: post");
    }

    std::uint64_t wait() override {
        const ibv_wc wc = poll();
        if (wc.status != IBV_WC_SUCCESS)
            throw std::runtime_error(
                fmt::format("verbs: completion failed: {}", ibv_wc_status_str(wc.status)));
        if (wc.opcode != IBV_WC_FETCH_ADD)
            return 0;
        std::uint64_t old;
        std::memcpy(&old, region_.bytes().data() + wc.wr_id, sizeof old);
        return old;
    }

  private:
    void resolve(const Target& target) {
        rdma_addrinfo hints{};
        hints.ai_port_space = RDMA_PS_TCP;
        rdma_addrinfo* list = nullptr;
        if (rdma_getaddrinfo(target.server.c_str(), std::to_string(target.port).c_str(), &hints,
                             &list))
            throw_errno(fmt::format("verbs: cannot resolve '{}'", target.server));
        const std::unique_ptr<rdma_addrinfo, Destroy<rdma_freeaddrinfo>> owner(list);

        resolve_address(list->ai_dst_addr, target.server);
        // Older kernels lack the option; then a loss is expensive, and that is all.
        std::uint8_t timeout = ack_timeout;
        rdma_set_option(id_.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
                        sizeof timeout);
        if (rdma_resolve_route(id_.get(), static_cast<int>(step_limit.count())))
            throw_errno("verbs: resolve route");
        await_event(channel_.get(), RDMA_CM_EVENT_ROUTE_RESOLVED, "resolve route", step_limit);
    }

    // The kernel can miss the ARP answer that it waits for, and then looks again only when the
    // time is over: many short attempts are quicker than a long one.
    void resolve_address(sockaddr* address, const std::string& server) {
        constexpr int attempts = 10;
        constexpr std::chrono::milliseconds attempt = step_limit / attempts;
        for (int i = 1;; i++) {
            if (rdma_resolve_addr(id_.get(), nullptr, address, static_cast<int>(attempt.count())))
                throw_errno(fmt::format("verbs: no RDMA device reaches {}", server));
            const CmEvent event = next_event(channel_.get(), "resolve address", step_limit);
            if (event->event == RDMA_CM_EVENT_ADDR_RESOLVED)
                return;
            if (event->event != RDMA_CM_EVENT_ADDR_ERROR || i == attempts)
                throw std::runtime_error(fmt::format("verbs: {} does not answer: {} (status {})",
                                                     server, rdma_event_str(event->event),
                                                     event->status));
        }
    }

    void connect(const Target& target) {
        Hello hello;
        hello.bytes = target.bytes;
        rdma_conn_param param{};
        param.private_data = &hello;
        param.private_data_len = sizeof hello;
        param.initiator_depth = max_initiator_depth(id_->verbs);
        param.responder_resources = max_responder_resources(id_->verbs);
        param.retry_count = retries;
        param.rnr_retry_count = retries;
        if (rdma_connect(id_.get(), &param))
            throw_errno("verbs: connect");
        const CmEvent event = next_event(channel_.get(), "connect", step_limit);
        if (event->event == RDMA_CM_EVENT_REJECTED)
            throw std::runtime_error(
                fmt::format("verbs: {} refuses (is \"lite-perf serve\" running there, and does it "
                            "serve verbs?)",
                            target.server));
        if (event->event != RDMA_CM_EVENT_ESTABLISHED)
            throw std::runtime_error(fmt::format("verbs: connect: {} (status {})",
                                                 rdma_event_str(event->event), event->status));
        connected_ = true;
        const rdma_conn_param& answer = event->param.conn;
        // CM pads private data, so it may be longer, never shorter.
        if (!answer.private_data || answer.private_data_len < sizeof grant_)
            throw std::runtime_error("verbs: what listens there is no lite-perf of this version");
        std::memcpy(&grant_, answer.private_data, sizeof grant_);
        if (!grant_.hello.valid() || grant_.hello.bytes != target.bytes)
            throw std::runtime_error("verbs: what listens there is no lite-perf of this version");
    }

    ibv_wc poll() {
        ibv_wc wc;
        Clock::time_point deadline{};
        // The clock is looked at once in a while only: on some machines that is a system call.
        for (unsigned spins = 0;; spins++) {
            const int count = ibv_poll_cq(cq_.get(), 1, &wc);
            if (count == 1)
                return wc;
            if (count < 0)
                throw std::runtime_error("verbs: polling the completion queue failed");
            if (spins % 4096 != 4095)
                continue;
            const Clock::time_point now = Clock::now();
            if (deadline == Clock::time_point{})
                deadline = now + patience;
            else if (now > deadline)
                throw std::runtime_error(
                    fmt::format("verbs: no completion in {} s", patience.count()));
        }
    }

    // In the order of creation; destroyed from the last to the first.
    Region region_;
    EventChannel channel_;
    CmId id_;
    CompletionQueue cq_;
    MemoryRegion memory_;
    QueuePair qp_;
    unsigned inline_bytes_ = 0;
    unsigned depth_ = 1;
    bool connected_ = false;
    VerbsGrant grant_{};
};

}  // namespace

std::unique_ptr<Transport> make_verbs_transport(const Target& target) {
    return std::make_unique<VerbsTransport>(target);
}

}  // namespace perf
