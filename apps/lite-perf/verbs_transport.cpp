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

constexpr unsigned window_limit = 128;
class VerbsTransport final : public Transport {
  public:
    explicit VerbsTransport(const Target& target)
        : region_(target.bytes), channel_(make_event_channel()), id_(make_cm_id(channel_.get())) {
        resolve_server(id_.get(), target.server, target.port, ack_timeout_quick);
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
    bool supports(Op op) const override { return op != Op::echo; }
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
            case Op::echo:
                throw std::logic_error("verbs: one-sided");
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
        const ibv_wc wc = await_completion(cq_.get());
        if (wc.opcode != IBV_WC_FETCH_ADD)
            return 0;
        std::uint64_t old;
        std::memcpy(&old, region_.bytes().data() + wc.wr_id, sizeof old);
        return old;
    }

  private:
    void connect(const Target& target) {
        Hello hello;
        hello.bytes = target.bytes;
        rdma_conn_param param{};
        param.private_data = &hello;
        param.private_data_len = sizeof hello;
        const CmEvent event = connect_server(id_.get(), target.server, param);
        connected_ = true;
        const rdma_conn_param& answer = event->param.conn;
        // CM pads private data, so it may be longer, never shorter.
        if (!answer.private_data || answer.private_data_len < sizeof grant_)
            throw std::runtime_error("verbs: what listens there is no lite-perf of this version");
        std::memcpy(&grant_, answer.private_data, sizeof grant_);
        if (!grant_.hello.valid() || grant_.hello.bytes != target.bytes)
            throw std::runtime_error("verbs: what listens there is no lite-perf of this version");
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
