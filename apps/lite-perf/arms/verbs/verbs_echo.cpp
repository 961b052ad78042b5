// SPDX-License-Identifier: MIT
#include "arms/verbs/verbs_echo.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <system_error>

namespace perf {

namespace {

// One send per series is signalled; the queue holds two series.
constexpr unsigned series = 32;

// Two receive buffers, one send buffer.
constexpr unsigned in_buffers = 2;

}  // namespace

EchoEnd::EchoEnd(CmId id, EchoMode mode, ibv_cq* receive_cq)
    : id_(std::move(id)),
      mode_(mode),
      region_((in_buffers + 1) * std::size_t{echo_max}),
      send_cq_(make_cq(id_->verbs, 2)),
      memory_(register_memory(id_->pd, region_.bytes())),
      qp_(make_queue_pair(id_.get(), send_cq_.get(), receive_cq, 2 * series, receives,
                          inline_bytes_)) {
    const unsigned posted = mode_ == EchoMode::send ? in_buffers : receives;
    for (unsigned i = 0; i < posted; i++)
        post_receive(i);
}

EchoHello EchoEnd::hello() const {
    EchoHello hello{};
    hello.hello = make_hello(echo_max);
    hello.mode = mode_;
    hello.address = reinterpret_cast<std::uintptr_t>(region_.bytes().data());
    hello.rkey = memory_->rkey;
    return hello;
}

std::span<std::byte> EchoEnd::out() const { return region_.bytes().last(echo_max); }

void EchoEnd::post(std::span<const std::byte> message) {
    ibv_sge sge{};
    sge.addr = reinterpret_cast<std::uintptr_t>(message.data());
    sge.length = static_cast<std::uint32_t>(message.size());
    sge.lkey = memory_->lkey;

    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.send_flags = message.size() <= inline_bytes_ ? IBV_SEND_INLINE : 0;
    if (mode_ == EchoMode::send) {
        wr.opcode = IBV_WR_SEND;
    } else {
        wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        wr.imm_data = sge.length;
        wr.wr.rdma.remote_addr = peer_.address;
        wr.wr.rdma.rkey = peer_.rkey;
    }
    if (++posted_ % series == 0) {
        if (signalled_)
            await_completion(send_cq_.get());
        signalled_ = true;
        wr.send_flags |= IBV_SEND_SIGNALED;
    }
    ibv_send_wr* bad = nullptr;
    const int error = ibv_post_send(id_->qp, &wr, &bad);
    if (error)
        throw std::system_error(error, std::generic_category(), "verbs: post");
}

std::span<const std::byte> EchoEnd::received(const ibv_wc& wc) {
    const std::uint32_t length = mode_ == EchoMode::send ? wc.byte_len : wc.imm_data;
    if (length > echo_max)
        throw std::runtime_error(fmt::format("verbs: a message of {} bytes", length));
    const auto buffer = static_cast<unsigned>(wc.wr_id);
    if (mode_ == EchoMode::write_imm) {
        post_receive(buffer);
        return region_.bytes().first(length);
    }
    // The previous message, in the other buffer, has been sent back or used.
    if (any_)
        post_receive(last_);
    any_ = true;
    last_ = buffer;
    return region_.bytes().subspan(buffer * std::size_t{echo_max}, length);
}

void EchoEnd::post_receive(unsigned buffer) {
    ibv_sge sge{};
    ibv_recv_wr wr{};
    wr.wr_id = buffer;
    if (mode_ == EchoMode::send) {
        sge.addr = reinterpret_cast<std::uintptr_t>(region_.bytes().data() +
                                                    buffer * std::size_t{echo_max});
        sge.length = echo_max;
        sge.lkey = memory_->lkey;
        wr.sg_list = &sge;
        wr.num_sge = 1;
    }
    ibv_recv_wr* bad = nullptr;
    const int error = ibv_post_recv(id_->qp, &wr, &bad);
    if (error)
        throw std::system_error(error, std::generic_category(), "verbs: post a receive");
}

}  // namespace perf
