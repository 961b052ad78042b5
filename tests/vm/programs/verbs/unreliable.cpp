// SPDX-License-Identifier: MIT
// An unreliable connection drops a message that finds no receive at the device, and the sender does
// not learn of it. The receiver has posted enough, and then has no processor for a while.
#include "fabric.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

namespace verbs_check {
namespace {

// Longer, all together, than the library's buffer of a connection that repeats messages.
constexpr std::uint32_t kCount = 400;
constexpr std::uint32_t kLength = 16 << 10;

class End {
  public:
    End(const Options& options, Wire wire) : context_(open_device(options.device)) {
        ibv_pd* pd = ibv_alloc_pd(context_);
        cq_ = ibv_create_cq(context_, 2 * kCount, nullptr, nullptr, 0);
        check(pd && cq_, "pd, CQ");
        ibv_qp_init_attr init = {};
        init.send_cq = init.recv_cq = cq_;
        init.qp_type = IBV_QPT_UC;
        init.sq_sig_all = 1;
        init.cap = {kCount, kCount, 1, 1, 0};
        qp_ = ibv_create_qp(pd, &init);
        ibv_gid gid = {};
        check(qp_ && !ibv_query_gid(context_, 1, options.gid_index, &gid), "QP, gid");
        wire.put(qp_->qp_num);
        make_ready(qp_, gid, wire.get<std::uint32_t>(), options.gid_index);
        memory_.resize(kLength);
        mr_ = ibv_reg_mr(pd, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE);
        check(mr_ != nullptr, "MR");
    }

    // The first one is short, which says nothing of the others.
    void receive_all() {
        for (std::uint32_t i = 0; i < kCount; i++) {
            ibv_sge sge = sge_of(i ? kLength : 64);
            ibv_recv_wr wr = {0, nullptr, &sge, 1};
            ibv_recv_wr* bad = nullptr;
            check(!ibv_post_recv(qp_, &wr, &bad), "receive");
        }
    }

    void send_all() {
        ibv_sge sge = sge_of(64);
        ibv_send_wr wr = {};
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.opcode = IBV_WR_SEND;
        ibv_send_wr* bad = nullptr;
        for (std::uint32_t i = 0; i < kCount; i++)
            check(!ibv_post_send(qp_, &wr, &bad), "send");
    }

    // Waits for ever if one does not come.
    void complete_all() {
        for (std::uint32_t n = 0; n < kCount;) {
            ibv_wc wc = {};
            const int got = ibv_poll_cq(cq_, 1, &wc);
            check(got >= 0 && (!got || wc.status == IBV_WC_SUCCESS), "a completion");
            n += static_cast<std::uint32_t>(got);
        }
    }

  private:
    ibv_sge sge_of(std::uint32_t length) {
        return {reinterpret_cast<std::uintptr_t>(memory_.data()), length, mr_->lkey};
    }

    ibv_context* context_;
    ibv_cq* cq_ = nullptr;
    ibv_qp* qp_ = nullptr;
    ibv_mr* mr_ = nullptr;
    std::vector<std::uint8_t> memory_;
};

}  // namespace

int unreliable(const Options& options) {
    int ends[2];
    check(!::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "sockets");
    // Before anything of verbs, so that both are processes like any other.
    const pid_t receiver = ::fork();
    check(receiver >= 0, "fork");
    if (!receiver) {
        End end(options, Wire(ends[0]));
        end.receive_all();
        ::raise(SIGSTOP);
        ::alarm(100);
        end.complete_all();
        ::_exit(0);
    }
    End end(options, Wire(ends[1]));
    int status = 0;
    check(::waitpid(receiver, &status, WUNTRACED) == receiver && WIFSTOPPED(status), "stopped");
    end.send_all();
    end.complete_all();
    ::kill(receiver, SIGCONT);
    check(::waitpid(receiver, &status, 0) == receiver, "wait");
    check(!status, "messages were lost: the receiver ended with " + std::to_string(status));
    std::printf("good\n");
    return 0;
}

}  // namespace verbs_check
