// SPDX-License-Identifier: MIT
// Queues that are destroyed and reset while completions are not polled, work requests are being
// executed, and other threads poll: two queue pairs of one process.
#include "fabric.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace verbs_check {
namespace {

constexpr std::uint32_t kPosted = 8;
constexpr std::uint32_t kWrite = 1U << 20;
constexpr std::uint32_t kWrites = 4;

class Loop {
  public:
    explicit Loop(const Options& options)
        : options_(options), context_(open_device(options.device)), pd_(ibv_alloc_pd(context_)) {
        check(pd_ && !ibv_query_gid(context_, 1, options.gid_index, &gid_), "pd, gid");
        memory_.resize(std::size_t{2} * kWrite);
        buffer_ = std::make_unique<Memory>(
            pd_, memory_.data(), memory_.size(),
            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    }
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;
    ~Loop() {
        buffer_.reset();
        ibv_dealloc_pd(pd_);
        ibv_close_device(context_);
    }

    // The receives of an SRQ come back from completions that are never polled.
    void shared_receives(int rounds) {
        ibv_srq_init_attr attr = {nullptr, {kPosted, 1, 0}};
        ibv_srq* srq = ibv_create_srq(pd_, &attr);
        check(srq != nullptr, "SRQ");
        const std::uint32_t capacity = attr.attr.max_wr;
        for (int round = 0; round <= rounds; round++) {
            ibv_cq* send_cq = make_cq(capacity);
            ibv_cq* recv_cq = make_cq(capacity);
            ibv_qp* from = make_qp(send_cq, nullptr);
            ibv_qp* to = make_qp(recv_cq, srq);
            connect(from, to);
            for (std::uint32_t i = 0; i < capacity; i++) {
                ibv_sge sge = buffer_->sge(0, 64);
                ibv_recv_wr wr = {i, nullptr, &sge, 1};
                ibv_recv_wr* bad = nullptr;
                check(!ibv_post_srq_recv(srq, &wr, &bad),
                      "the SRQ is full in round " + std::to_string(round));
            }
            for (std::uint32_t i = 0; i < capacity; i++) {
                send(from);
                wait(send_cq, IBV_WC_SEND);
            }
            // One is polled, and the rest is seen by the library. In other rounds it is not.
            const bool polls = round % 2 == 0;
            if (polls)
                wait(recv_cq, IBV_WC_RECV);
            check(!ibv_destroy_qp(from) && !ibv_destroy_qp(to), "destroy QPs");
            if (round == rounds) {
                check(!ibv_destroy_srq(srq), "destroy SRQ");
                for (std::uint32_t i = polls ? 1 : 0; i < capacity; i++)
                    wait(recv_cq, IBV_WC_RECV);
            }
            check(!ibv_destroy_cq(send_cq) && !ibv_destroy_cq(recv_cq), "destroy CQs");
        }
        std::printf("shared receives: %u in each of %d rounds\n", capacity, rounds + 1);
    }

    // A reset while a thread of the library may be writing.
    void resets(int rounds) {
        ibv_cq* cq = make_cq(64);
        ibv_qp* from = make_qp(cq, nullptr);
        ibv_qp* to = make_qp(cq, nullptr);
        for (int round = 0; round < rounds; round++) {
            connect(from, to);
            receive(to);
            send(from);
            for (std::uint32_t i = 0; i < kWrites; i++)
                write(from, kWrite);
            // The writes begin when the device has completed the send.
            wait(cq, IBV_WC_SEND);
            reset(from);
            reset(to);
            drain(cq);
            connect(from, to);
            write(from, 64);
            wait(cq, IBV_WC_RDMA_WRITE);
            ibv_wc wc = {};
            check(!ibv_poll_cq(cq, 1, &wc), "a completion of before the reset");
            reset(from);
            reset(to);
        }
        check(!ibv_destroy_qp(from) && !ibv_destroy_qp(to) && !ibv_destroy_cq(cq), "destroy");
        std::printf("resets: %d\n", rounds);
    }

    // Sends that wait for room in the library's buffer are forgotten by a reset, though it is only
    // then that the library sees completions of others, which make room.
    void stale_sends(int rounds) {
        ibv_cq* send_cq = make_cq(64);
        ibv_cq* recv_cq = make_cq(64);
        ibv_qp* from = make_qp(send_cq, nullptr, recv_cq);
        ibv_qp* to = make_qp(recv_cq, nullptr);
        for (int round = 0; round < rounds; round++) {
            connect(from, to);
            for (std::uint32_t i = 0; i < kPosted; i++)
                receive(to, kWrite);
            for (std::uint32_t i = 0; i < kPosted; i++)
                send(from, kWrite);
            for (int i = 0; i < round % 4; i++)
                wait(recv_cq, IBV_WC_RECV);
            reset(from);
            reset(to);
            drain(send_cq);
            drain(recv_cq);
            connect(from, to);
            receive(to, kWrite);
            send(from);
            check(wait(recv_cq, IBV_WC_RECV) == 64, "a message of before the reset");
            wait(send_cq, IBV_WC_SEND);
            reset(from);
            reset(to);
        }
        check(!ibv_destroy_qp(from) && !ibv_destroy_qp(to), "destroy QPs");
        check(!ibv_destroy_cq(send_cq) && !ibv_destroy_cq(recv_cq), "destroy CQs");
        std::printf("stale sends: %d\n", rounds);
    }

    // Queue pairs come and go while another thread polls their CQ.
    void shared_cq(int rounds) {
        ibv_cq* cq = make_cq(64);
        std::atomic<bool> stop = false;
        std::thread poller([&] {
            ibv_wc wc[4];
            while (!stop)
                ibv_poll_cq(cq, 4, wc);
        });
        for (int round = 0; round < rounds; round++) {
            ibv_qp* from = make_qp(cq, nullptr);
            ibv_qp* to = make_qp(cq, nullptr);
            connect(from, to);
            // Of that length they do not all fit into the library's buffer.
            for (std::uint32_t i = 0; i < kPosted; i++)
                receive(to, kWrite);
            for (std::uint32_t i = 0; i < kPosted; i++)
                send(from);
            if (round % 2) {
                ibv_qp_attr attr = {};
                attr.qp_state = IBV_QPS_ERR;
                check(!ibv_modify_qp(to, &attr, IBV_QP_STATE), "ERR");
            }
            check(!ibv_destroy_qp(to) && !ibv_destroy_qp(from), "destroy QPs");
        }
        stop = true;
        poller.join();
        check(!ibv_destroy_cq(cq), "destroy CQ");
        std::printf("shared CQ: %d\n", rounds);
    }

    // A CQ is destroyed while another thread polls it, and acknowledges its event only then.
    void acknowledged_late(int rounds) {
        ibv_comp_channel* channel = ibv_create_comp_channel(context_);
        check(channel != nullptr, "channel");
        for (int round = 0; round < rounds; round++) {
            ibv_cq* cq = make_cq(64, channel);
            ibv_qp* from = make_qp(cq, nullptr);
            ibv_qp* to = make_qp(cq, nullptr);
            connect(from, to);
            check(!ibv_req_notify_cq(cq, 0), "arm");
            receive(to);
            send(from);
            ibv_cq* found = nullptr;
            void* context = nullptr;
            check(!ibv_get_cq_event(channel, &found, &context) && found == cq, "event");
            check(!ibv_destroy_qp(to) && !ibv_destroy_qp(from), "destroy QPs");
            std::atomic<bool> is_destroying = false;
            int err = 0;
            std::thread destroyer([&] {
                is_destroying = true;
                is_destroying.notify_one();
                err = ibv_destroy_cq(cq);
            });
            is_destroying.wait(false);
            ibv_wc wc[4];
            for (int i = 0; i < 2000; i++)
                check(ibv_poll_cq(cq, 4, wc) >= 0, "poll");
            ibv_ack_cq_events(cq, 1);
            destroyer.join();
            check(!err, "destroy CQ");
        }
        check(!ibv_destroy_comp_channel(channel), "destroy the channel");
        std::printf("acknowledged late: %d\n", rounds);
    }

    // Memory is deregistered while a thread of the library may be reading into it. Then it is the
    // program's alone.
    void deregistered(int rounds) {
        constexpr std::uint32_t reads = 6;
        std::vector<std::uint8_t> target(std::size_t{kWrite} * reads);
        ibv_cq* cq = make_cq(64);
        for (int round = 0; round < rounds; round++) {
            Memory late(pd_, target.data(), target.size(), IBV_ACCESS_LOCAL_WRITE);
            ibv_qp* from = make_qp(cq, nullptr);
            ibv_qp* to = make_qp(cq, nullptr);
            connect(from, to);
            receive(to);
            send(from);
            for (std::uint32_t i = 0; i < reads; i++)
                post(from, IBV_WR_RDMA_READ, late.sge(std::uint64_t{i} * kWrite, kWrite));
            // The reads begin when the device has completed the send.
            wait(cq, IBV_WC_SEND);
            check(!ibv_dereg_mr(late.mr), "deregister");
            late.mr = nullptr;
            std::fill(target.begin(), target.end(), 0xa5);
            ibv_wc wc = {};
            for (std::uint32_t i = 0; i < reads;)
                i += ibv_poll_cq(cq, 1, &wc) == 1 && wc.qp_num == from->qp_num;
            check(std::all_of(target.begin(), target.end(), [](auto b) { return b == 0xa5; }),
                  "written after it was deregistered, in round " + std::to_string(round));
            check(!ibv_destroy_qp(to) && !ibv_destroy_qp(from), "destroy QPs");
            drain(cq);
        }
        check(!ibv_destroy_cq(cq), "destroy CQ");
        std::printf("deregistered: %d\n", rounds);
    }

    // More receives of an SRQ than fit into the library's buffer: they are used although the
    // program does not poll for them, before and after a queue pair has come.
    void unpolled_receives() {
        constexpr std::uint32_t count = 128, length = 64 << 10;
        ibv_srq_init_attr attr = {nullptr, {count, 1, 0}};
        ibv_srq* srq = ibv_create_srq(pd_, &attr);
        check(srq != nullptr, "SRQ");
        ibv_cq* send_cq = make_cq(count);
        ibv_cq* recv_cq = make_cq(2 * count);
        for (const bool late : {false, true}) {
            std::vector<ibv_qp*> pairs;
            const auto make = [&] {
                pairs = {make_qp(send_cq, nullptr), make_qp(recv_cq, srq)};
                connect(pairs[0], pairs[1]);
            };
            if (late)
                make();
            for (std::uint32_t i = 0; i < count; i++)
                receive_shared(srq, length);
            if (!late)
                make();
            for (std::uint32_t i = 0; i < count; i++) {
                send(pairs[0]);
                wait(send_cq, IBV_WC_SEND);
            }
            for (std::uint32_t i = 0; i < count; i++)
                wait(recv_cq, IBV_WC_RECV);
            for (ibv_qp* qp : pairs)
                check(!ibv_destroy_qp(qp), "destroy QP");
        }
        check(!ibv_destroy_srq(srq), "destroy SRQ");
        check(!ibv_destroy_cq(send_cq) && !ibv_destroy_cq(recv_cq), "destroy CQs");
        std::printf("unpolled receives: %u\n", count);
    }

    // An SRQ of Soft-RoCE can be enlarged.
    void larger_srq() {
        ibv_srq_init_attr attr = {nullptr, {kPosted, 1, 0}};
        ibv_srq* srq = ibv_create_srq(pd_, &attr);
        check(srq != nullptr, "SRQ");
        attr.attr.max_wr *= 4;
        if (!ibv_modify_srq(srq, &attr.attr, IBV_SRQ_MAX_WR)) {
            for (std::uint32_t i = 0; i < attr.attr.max_wr; i++)
                receive_shared(srq, 64);
            std::printf("an SRQ became larger\n");
        }
        check(!ibv_destroy_srq(srq), "destroy SRQ");
    }

    // A device's CQ is full of completions that the program has never asked for, when the next
    // queue pair is made.
    void unsignaled() {
        constexpr std::uint32_t count = 400;
        ibv_cq* send_cq = make_cq(16);
        ibv_cq* recv_cq = make_cq(2 * count);
        ibv_qp* from = make_unsignaled(send_cq, recv_cq);
        ibv_qp* to = make_unsignaled(recv_cq, recv_cq);
        connect(from, to);
        for (std::uint32_t i = 0; i < count; i++)
            receive(to);
        for (std::uint32_t i = 0; i < count; i++)
            send(from);
        for (std::uint32_t i = 0; i < count; i++)
            wait(recv_cq, IBV_WC_RECV);
        check(!ibv_destroy_qp(from), "destroy QP");
        from = make_qp(send_cq, nullptr, recv_cq);
        check(!ibv_destroy_qp(from) && !ibv_destroy_qp(to), "destroy QPs");
        check(!ibv_destroy_cq(send_cq) && !ibv_destroy_cq(recv_cq), "destroy CQs");
        std::printf("unsignaled: %u\n", count);
    }

    // Queue pairs that cannot send take no room from others' completions.
    void without_sends() {
        constexpr std::uint32_t count = 400;
        ibv_cq* send_cq = make_cq(16);
        ibv_cq* recv_cq = make_cq(2 * count);
        ibv_qp* from = make_unsignaled(send_cq, recv_cq);
        ibv_qp* to = make_unsignaled(recv_cq, recv_cq);
        for (std::uint32_t i = 0; i < count; i++)
            check(!ibv_destroy_qp(make_unsignaled(send_cq, recv_cq, 0)), "destroy QP");
        connect(from, to);
        for (std::uint32_t i = 0; i < count; i++)
            receive(to);
        for (std::uint32_t i = 1; i < count; i++)
            send(from);
        send(from, 64, IBV_SEND_SIGNALED);
        wait(send_cq, IBV_WC_SEND);
        check(!ibv_destroy_qp(from) && !ibv_destroy_qp(to), "destroy QPs");
        check(!ibv_destroy_cq(send_cq) && !ibv_destroy_cq(recv_cq), "destroy CQs");
        std::printf("without sends: %u\n", count);
    }

    // The library finds no memory in the middle of a list: what is before that is posted, and the
    // rest can be posted again. Of what is built with functions all is posted or nothing.
    void without_memory() {
        ibv_cq* cq = make_cq(64);
        ibv_qp_init_attr_ex init = {};
        init.send_cq = init.recv_cq = cq;
        init.qp_type = IBV_QPT_RC;
        init.sq_sig_all = 1;
        init.cap = {16, 16, 1, 5, 64};
        init.pd = pd_;
        init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        init.send_ops_flags = IBV_QP_EX_WITH_SEND;
        ibv_qp* from = ibv_create_qp_ex(context_, &init);
        ibv_qp* to = ibv_create_qp_ex(context_, &init);
        check(from && to, "QPs");
        connect(from, to);

        ibv_sge parts[5];
        std::fill(std::begin(parts), std::end(parts), buffer_->sge(0, 64));
        ibv_recv_wr receives[3] = {
            {0, &receives[1], parts, 1}, {1, &receives[2], parts, 5}, {2, nullptr, parts, 1}};
        ibv_recv_wr* bad_receive = nullptr;
        refused = sizeof(parts);
        check(ibv_post_recv(to, receives, &bad_receive) == ENOMEM && bad_receive == &receives[1],
              "receives without memory");
        refused = nothing;
        check(!ibv_post_recv(to, bad_receive, &bad_receive), "the rest of the receives");
        receive(to);

        constexpr std::uint32_t odd = 61;
        ibv_sge data[3] = {buffer_->sge(0, 8), buffer_->sge(0, odd), buffer_->sge(0, 8)};
        ibv_send_wr sends[3] = {};
        for (int i = 0; i < 3; i++) {
            sends[i].next = i < 2 ? &sends[i + 1] : nullptr;
            sends[i].sg_list = &data[i];
            sends[i].num_sge = 1;
            sends[i].opcode = IBV_WR_SEND;
            sends[i].send_flags = IBV_SEND_INLINE;
        }
        ibv_send_wr* bad_send = nullptr;
        refused = odd;
        check(ibv_post_send(from, sends, &bad_send) == ENOMEM && bad_send == &sends[1],
              "sends without memory");
        refused = nothing;
        check(!ibv_post_send(from, bad_send, &bad_send), "the rest of the sends");

        ibv_qp_ex* built = ibv_qp_to_qp_ex(from);
        // First for what the program gives, then for a list.
        for (const std::size_t size : {std::size_t{odd}, sizeof(ibv_sge), nothing}) {
            ibv_wr_start(built);
            refused = size;
            ibv_wr_send(built);
            ibv_wr_set_inline_data(built, memory_.data(), odd);
            const int err = ibv_wr_complete(built);
            refused = nothing;
            check(err == (size == nothing ? 0 : ENOMEM), "built without memory");
        }
        for (const std::uint32_t length : {8U, odd, 8U, odd})
            check(wait(cq, IBV_WC_RECV) == length, "what was received");
        check(!ibv_destroy_qp(from) && !ibv_destroy_qp(to) && !ibv_destroy_cq(cq), "destroy");
        std::printf("without memory\n");
    }

    // A queue pair that a receive has broken, or that only flushed receives show to be broken, does
    // nothing one-sided any more, and flushes its receives in order.
    void broken_by_receives() {
        for (const bool by_peer : {false, true}) {
            ibv_cq* from_cq = make_cq(64);
            ibv_cq* send_cq = make_cq(64);
            ibv_cq* recv_cq = make_cq(64);
            ibv_qp* from = make_qp(from_cq, nullptr);
            ibv_qp* to = make_qp(send_cq, nullptr, recv_cq);
            connect(from, to);
            for (std::uint32_t i = 0; i < kPosted; i++)
                receive(to, 8, i);
            // Before the receiver looks: too long, and then one that would fit.
            for (const std::uint32_t length : {10U, 8U}) {
                if (by_peer)  // with a key of the device, which has no such
                    post(from, IBV_WR_RDMA_WRITE, buffer_->sge(kWrite, 8), 0x1500);
                else
                    send(from, length);
                const ibv_wc_status sent = take(from_cq).status;
                check(sent == (by_peer ? length == 10 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_WR_FLUSH_ERR
                                       : IBV_WC_SUCCESS),
                      std::string("sent: ") + ibv_wc_status_str(sent));
            }
            for (std::uint32_t i = 0; i < kPosted; i++) {
                const ibv_wc wc = take(recv_cq);
                check(wc.status == (i || by_peer ? IBV_WC_WR_FLUSH_ERR : IBV_WC_LOC_LEN_ERR),
                      std::string("received: ") + ibv_wc_status_str(wc.status));
                check(wc.wr_id == i, "receives in order");
                // As soon as the program knows.
                if (i == 0)
                    write(to, 64);
            }
            const ibv_wc_status written = take(send_cq).status;
            check(written == IBV_WC_WR_FLUSH_ERR,
                  std::string("written: ") + ibv_wc_status_str(written));
            for (std::uint32_t i = 0; i < 2; i++)
                receive(to, 8, i);
            for (std::uint32_t i = 0; i < 2; i++) {
                const ibv_wc wc = take(recv_cq);
                check(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == i, "posted later");
            }
            check(!ibv_destroy_qp(from) && !ibv_destroy_qp(to), "destroy QPs");
            for (ibv_cq* cq : {from_cq, send_cq, recv_cq})
                check(!ibv_destroy_cq(cq), "destroy CQ");
        }
        std::printf("broken by receives\n");
    }

    // What peers may write to, the program must be able to write to.
    void rights() {
        Memory one(pd_, memory_.data(), 4096, IBV_ACCESS_REMOTE_READ);
        check(ibv_rereg_mr(one.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                           IBV_ACCESS_REMOTE_WRITE) == IBV_REREG_MR_ERR_INPUT,
              "remote without local writing");
        std::printf("rights\n");
    }

    // Children have verbs of their own, whatever the parent's threads did when they were made; and
    // what they close, the parent still has.
    void children(int rounds) {
        ibv_comp_channel* channel = ibv_create_comp_channel(context_);
        check(channel != nullptr, "channel");
        ibv_cq* cq = make_cq(64, channel);
        ibv_cq* polled = make_cq(64);
        check(!ibv_req_notify_cq(cq, 0), "arm");
        std::atomic<bool> stop = false;
        std::vector<std::thread> pollers;
        for (int i = 0; i < 4; i++)
            pollers.emplace_back([&] {
                ibv_wc wc = {};
                while (!stop)
                    ibv_poll_cq(polled, 1, &wc);
            });
        for (int round = 0; round < rounds; round++) {
            const pid_t child = ::fork();
            check(child >= 0, "fork");
            if (!child) {
                ::alarm(100);
                ::_exit(ibv_close_device(context_) || !has_verbs());
            }
            int status = 0;
            check(::waitpid(child, &status, 0) == child && !status,
                  "child " + std::to_string(round) + " ended with " + std::to_string(status));
        }
        stop = true;
        for (std::thread& poller : pollers)
            poller.join();
        ibv_qp* from = make_qp(polled, nullptr);
        ibv_qp* to = make_qp(cq, nullptr);
        connect(from, to);
        receive(to);
        send(from);
        ibv_cq* found = nullptr;
        void* context = nullptr;
        check(!ibv_get_cq_event(channel, &found, &context) && found == cq, "event");
        ibv_ack_cq_events(cq, 1);
        check(!ibv_destroy_qp(to) && !ibv_destroy_qp(from), "destroy QPs");
        check(!ibv_destroy_cq(cq) && !ibv_destroy_cq(polled), "destroy CQs");
        check(!ibv_destroy_comp_channel(channel), "destroy the channel");
        std::printf("children: %d\n", rounds);
    }

  private:
    // Makes a queue pair on a device of its own, and destroys all.
    bool has_verbs() const {
        ibv_context* context = open_device(options_.device);
        ibv_pd* pd = ibv_alloc_pd(context);
        ibv_cq* cq = ibv_create_cq(context, 16, nullptr, nullptr, 0);
        ibv_qp_init_attr init = {};
        init.send_cq = init.recv_cq = cq;
        init.qp_type = IBV_QPT_RC;
        init.cap = {16, 16, 1, 1, 0};
        ibv_qp* qp = pd && cq ? ibv_create_qp(pd, &init) : nullptr;
        return qp && !ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd) &&
               !ibv_close_device(context);
    }

    void receive_shared(ibv_srq* srq, std::uint32_t length) {
        ibv_sge sge = buffer_->sge(0, length);
        ibv_recv_wr wr = {0, nullptr, &sge, 1};
        ibv_recv_wr* bad = nullptr;
        check(!ibv_post_srq_recv(srq, &wr, &bad), "receive of an SRQ");
    }

    ibv_cq* make_cq(std::uint32_t n, ibv_comp_channel* channel = nullptr) {
        ibv_cq* cq = ibv_create_cq(context_, static_cast<int>(n), nullptr, channel, 0);
        check(cq != nullptr, "CQ");
        return cq;
    }

    ibv_qp* make_qp(ibv_cq* cq, ibv_srq* srq, ibv_cq* recv_cq = nullptr) {
        ibv_qp_init_attr init = {};
        init.send_cq = cq;
        init.recv_cq = recv_cq ? recv_cq : cq;
        init.srq = srq;
        init.qp_type = IBV_QPT_RC;
        init.sq_sig_all = 1;
        init.cap = {16, srq ? 0 : kPosted, 1, 1, 0};
        ibv_qp* qp = ibv_create_qp(pd_, &init);
        check(qp != nullptr, "QP");
        ibv_qp_attr attr = {};
        check(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) && init.sq_sig_all, "query");
        return qp;
    }

    ibv_qp* make_unsignaled(ibv_cq* send_cq, ibv_cq* recv_cq, std::uint32_t sends = 512) {
        ibv_qp_init_attr init = {};
        init.send_cq = send_cq;
        init.recv_cq = recv_cq;
        init.qp_type = IBV_QPT_RC;
        init.cap = {sends, 512, 1, 1, 64};
        ibv_qp* qp = ibv_create_qp(pd_, &init);
        check(qp != nullptr, "QP");
        return qp;
    }

    void connect(ibv_qp* a, ibv_qp* b) {
        make_ready(a, gid_, b->qp_num, options_.gid_index);
        make_ready(b, gid_, a->qp_num, options_.gid_index);
    }

    void receive(ibv_qp* qp, std::uint32_t length = 64, std::uint64_t id = 0) {
        ibv_sge sge = buffer_->sge(0, length);
        ibv_recv_wr wr = {id, nullptr, &sge, 1};
        ibv_recv_wr* bad = nullptr;
        check(!ibv_post_recv(qp, &wr, &bad), "receive");
    }

    void send(ibv_qp* qp, std::uint32_t length = 64, unsigned flags = 0) {
        ibv_sge sge = buffer_->sge(kWrite, length);
        ibv_send_wr wr = {};
        wr.send_flags = flags;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.opcode = IBV_WR_SEND;
        ibv_send_wr* bad = nullptr;
        check(!ibv_post_send(qp, &wr, &bad), "send");
    }

    void write(ibv_qp* qp, std::uint32_t length) {
        post(qp, IBV_WR_RDMA_WRITE, buffer_->sge(kWrite, length));
    }

    // To or from the beginning of the memory. 0: with its own key.
    void post(ibv_qp* qp, ibv_wr_opcode opcode, ibv_sge sge, std::uint32_t rkey = 0) {
        ibv_send_wr wr = {};
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.opcode = opcode;
        wr.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(memory_.data());
        wr.wr.rdma.rkey = rkey ? rkey : buffer_->mr->rkey;
        ibv_send_wr* bad = nullptr;
        check(!ibv_post_send(qp, &wr, &bad), "read or write");
    }

    static ibv_wc take(ibv_cq* cq) {
        ibv_wc wc = {};
        int n = 0;
        while (!n)
            n = ibv_poll_cq(cq, 1, &wc);
        check(n > 0, "poll");
        return wc;
    }

    // For a completion of a kind; others of a shared CQ may come before. Its bytes.
    static std::uint32_t wait(ibv_cq* cq, ibv_wc_opcode opcode) {
        ibv_wc wc = {};
        do {
            const int n = ibv_poll_cq(cq, 1, &wc);
            check(n >= 0, "poll");
            if (!n)
                continue;
            check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
            if (wc.opcode == opcode)
                return wc.byte_len;
        } while (true);
    }

    static void reset(ibv_qp* qp) {
        ibv_qp_attr attr = {};
        attr.qp_state = IBV_QPS_RESET;
        check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "RESET");
    }

    static void drain(ibv_cq* cq) {
        ibv_wc wc = {};
        while (ibv_poll_cq(cq, 1, &wc) > 0) {
        }
    }

    const Options options_;
    ibv_context* const context_;
    ibv_pd* const pd_;
    ibv_gid gid_ = {};
    std::vector<std::uint8_t> memory_;
    std::unique_ptr<Memory> buffer_;
};

}  // namespace

int loop(const Options& options, int rounds, const std::string& what) {
    Loop loop(options);
    const auto run = [&what](const char* name, const auto& body) {
        if (what.empty() || what == name)
            body();
    };
    run("shared", [&] { loop.shared_receives(rounds); });
    run("resets", [&] { loop.resets(rounds); });
    run("stale", [&] { loop.stale_sends(rounds); });
    run("cq", [&] { loop.shared_cq(rounds); });
    run("acknowledged", [&] { loop.acknowledged_late(rounds); });
    run("deregistered", [&] { loop.deregistered(rounds); });
    run("unpolled", [&] { loop.unpolled_receives(); });
    run("larger", [&] { loop.larger_srq(); });
    run("unsignaled", [&] { loop.unsignaled(); });
    run("sends", [&] { loop.without_sends(); });
    run("memory", [&] { loop.without_memory(); });
    run("broken", [&] { loop.broken_by_receives(); });
    run("rights", [&] { loop.rights(); });
    run("children", [&] { loop.children(rounds); });
    std::printf("good\n");
    return 0;
}

}  // namespace verbs_check
