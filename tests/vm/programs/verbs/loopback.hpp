// SPDX-License-Identifier: MIT
#pragma once

#include "fabric.hpp"

#include <poll.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <vector>

namespace verbs_check {

// Two queue pairs that are connected with each other. The completions of receives make events.
class Loopback {
  public:
    // So many receives, and so many sends, may be posted at a time.
    explicit Loopback(const Options& options, std::uint32_t capacity = 4)
        : capacity_(capacity), context_(open_device(options.device)), pd_(ibv_alloc_pd(context_)) {
        check(pd_ != nullptr, "pd");
        buffer_ =
            std::make_unique<Memory>(pd_, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE);
        channel_ = ibv_create_comp_channel(context_);
        check(channel_ != nullptr, "channel");
        make_queues(options);
    }
    Loopback(const Loopback&) = delete;
    Loopback& operator=(const Loopback&) = delete;
    ~Loopback() {
        destroy_queues();
        buffer_.reset();
        ibv_destroy_comp_channel(channel_);
        ibv_dealloc_pd(pd_);
        ibv_close_device(context_);
    }

    void make_queues(const Options& options) {
        ibv_gid gid = {};
        check(!ibv_query_gid(context_, 1, options.gid_index, &gid), "gid");
        const int cqe = static_cast<int>(2 * capacity_);
        sends_ = ibv_create_cq(context_, cqe, nullptr, nullptr, 0);
        receives_ = ibv_create_cq(context_, cqe, nullptr, channel_, 0);
        check(sends_ && receives_, "CQs");
        ibv_qp_init_attr init = {};
        init.send_cq = sends_;
        init.recv_cq = receives_;
        init.qp_type = IBV_QPT_RC;
        init.sq_sig_all = 1;
        init.cap = {capacity_, capacity_, 1, 1, 0};
        for (ibv_qp*& qp : qps_) {
            qp = ibv_create_qp(pd_, &init);
            check(qp != nullptr, "QP");
        }
        make_ready(qps_[0], gid, qps_[1]->qp_num, options.gid_index);
        make_ready(qps_[1], gid, qps_[0]->qp_num, options.gid_index);
    }

    void destroy_queues() {
        if (sends_)
            check(!ibv_destroy_qp(qps_[0]) && !ibv_destroy_qp(qps_[1]) &&
                      !ibv_destroy_cq(receives_) && !ibv_destroy_cq(sends_),
                  "destroy queues");
        sends_ = nullptr;
    }

    void receive(int n, std::uint32_t length) {
        ibv_sge sge = buffer_->sge(0, length);
        for (int i = 0; i < n; i++) {
            ibv_recv_wr wr = {0, nullptr, &sge, 1};
            ibv_recv_wr* bad = nullptr;
            check(!ibv_post_recv(qps_[1], &wr, &bad), "receive");
        }
    }
    void post(int n, std::uint32_t length) {
        for (int i = 0; i < n; i++)
            check(!try_post(length), "send");
    }
    bool has_room() { return try_post(0) != ENOMEM; }
    // On return the messages have arrived, and none of their receives is polled.
    void send(int n, std::uint32_t length) {
        post(n, length);
        for (int i = 0; i < n; i++)
            take_send();
    }
    void send(int n) {
        receive(n, 8);
        send(n, 8);
    }

    void arm() { check(!ibv_req_notify_cq(receives_, 0), "arm"); }
    void take_receive() { take(receives_); }
    // So many, which must be there, by one call.
    void take_receives(int n) {
        std::vector<ibv_wc> wcs(static_cast<std::size_t>(n));
        check(ibv_poll_cq(receives_, n, wcs.data()) == n, "completions");
    }
    void take_send() { take(sends_); }
    void take_event() {
        ibv_cq* cq = nullptr;
        void* context = nullptr;
        check(!ibv_get_cq_event(channel_, &cq, &context) && cq == receives_, "event");
        ibv_ack_cq_events(cq, 1);
    }
    bool has_event(int timeout = 0) const {
        pollfd fd = {channel_->fd, POLLIN, 0};
        return ::poll(&fd, 1, timeout) > 0;
    }

  private:
    int try_post(std::uint32_t length) {
        ibv_sge sge = buffer_->sge(0, length);
        ibv_send_wr wr = {};
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.opcode = IBV_WR_SEND;
        ibv_send_wr* bad = nullptr;
        return ibv_post_send(qps_[0], &wr, &bad);
    }
    static void take(ibv_cq* cq) {
        ibv_wc wc = {};
        int n = 0;
        while (!n)
            n = ibv_poll_cq(cq, 1, &wc);
        check(n > 0 && wc.status == IBV_WC_SUCCESS, "completion");
    }

    const std::uint32_t capacity_;
    ibv_context* const context_;
    ibv_pd* const pd_;
    std::array<std::uint8_t, 64> memory_ = {};
    std::unique_ptr<Memory> buffer_;
    ibv_comp_channel* channel_ = nullptr;
    ibv_cq* sends_ = nullptr;
    ibv_cq* receives_ = nullptr;
    ibv_qp* qps_[2] = {};
};

}  // namespace verbs_check
