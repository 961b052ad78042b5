// SPDX-License-Identifier: MIT
// What threads do late. The library's: poll(2) tells it of an event of the device, but returns only
// when this program says so. The program's: so does read(2) of a channel. For a library that has
// such a thread, and reads channels so.
#include "fabric.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <semaphore>
#include <thread>
#include <vector>

namespace verbs_check {
namespace {

// Where the library's thread is.
class Gate {
  public:
    // The next event that poll(2) reports is held.
    void close() { set(is_closed_, true); }
    void open() { set(is_closed_, false); }
    // Until poll(2) has an event to report.
    void wait_held() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return is_held_; });
    }
    // Until what was held is done: the thread calls poll(2) again.
    void wait_passed() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return is_polling_ && !is_held_; });
    }

    int poll(pollfd* fds, nfds_t n) {
        set(is_polling_, true);
        const int ret = ::ppoll(fds, n, nullptr, nullptr);
        std::unique_lock lock(mutex_);
        is_polling_ = false;
        if (ret > 0 && fds[0].revents && is_closed_) {
            is_held_ = true;
            changed_.notify_all();
            changed_.wait(lock, [&] { return !is_closed_; });
            is_held_ = false;
        }
        return ret;
    }

  private:
    void set(bool& what, bool value) {
        const std::lock_guard lock(mutex_);
        what = value;
        changed_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_closed_ = false;
    bool is_held_ = false;
    bool is_polling_ = false;
};
Gate gate;

// A thread that has read from a channel, and not looked further, until it may go on.
thread_local constinit bool is_late = false;
std::binary_semaphore has_read(0);
std::binary_semaphore may_go_on(0);

// Two queue pairs that are connected with each other. The completions of receives make events.
class Loopback {
  public:
    explicit Loopback(const Options& options)
        : context_(open_device(options.device)), pd_(ibv_alloc_pd(context_)) {
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
        sends_ = ibv_create_cq(context_, 8, nullptr, nullptr, 0);
        receives_ = ibv_create_cq(context_, 8, nullptr, channel_, 0);
        check(sends_ && receives_, "CQs");
        ibv_qp_init_attr init = {};
        init.send_cq = sends_;
        init.recv_cq = receives_;
        init.qp_type = IBV_QPT_RC;
        init.sq_sig_all = 1;
        init.cap = {4, 4, 1, 1, 0};
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

    // Sends messages; on return they have arrived, and none of their receives is polled.
    void send(int n) {
        ibv_sge sge = buffer_->sge(0, 8);
        for (int i = 0; i < n; i++) {
            ibv_recv_wr wr = {0, nullptr, &sge, 1};
            ibv_recv_wr* bad = nullptr;
            check(!ibv_post_recv(qps_[1], &wr, &bad), "receive");
        }
        for (int i = 0; i < n; i++) {
            ibv_send_wr wr = {};
            wr.sg_list = &sge;
            wr.num_sge = 1;
            wr.opcode = IBV_WR_SEND;
            ibv_send_wr* bad = nullptr;
            check(!ibv_post_send(qps_[0], &wr, &bad), "send");
        }
        for (int i = 0; i < n; i++)
            take(sends_);
    }

    void arm() { check(!ibv_req_notify_cq(receives_, 0), "arm"); }
    void take_receive() { take(receives_); }
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
    static void take(ibv_cq* cq) {
        ibv_wc wc = {};
        int n = 0;
        while (!n)
            n = ibv_poll_cq(cq, 1, &wc);
        check(n > 0 && wc.status == IBV_WC_SUCCESS, "completion");
    }

    ibv_context* const context_;
    ibv_pd* const pd_;
    std::array<std::uint8_t, 64> memory_ = {};
    std::unique_ptr<Memory> buffer_;
    ibv_comp_channel* channel_ = nullptr;
    ibv_cq* sends_ = nullptr;
    ibv_cq* receives_ = nullptr;
    ibv_qp* qps_[2] = {};
};

// The event that the library's thread is about to take goes with its CQ.
void gone(const Options& options) {
    Loopback loop(options);
    gate.close();
    loop.arm();
    loop.send(1);
    gate.wait_held();
    loop.take_receive();
    loop.destroy_queues();
    gate.open();
    // Closing the device waits for the thread.
}

// An event only for what completed after the program had asked for events.
void stale(const Options& options) {
    Loopback loop(options);
    gate.close();
    loop.arm();
    loop.send(2);
    gate.wait_held();
    loop.take_receive();
    loop.take_event();
    loop.arm();
    gate.open();
    gate.wait_passed();
    check(!loop.has_event(), "an event of a completion of before the CQ was armed");
    loop.take_receive();
    loop.send(1);
    loop.take_event();
    loop.take_receive();
}

// A thread is about to take an event that goes with its CQ. It gets that of the next CQ, and then
// there is none.
void taken_over(const Options& options) {
    Loopback loop(options);
    loop.arm();
    loop.send(1);
    std::thread taker([&loop] {
        is_late = true;
        loop.take_event();
    });
    has_read.acquire();
    loop.destroy_queues();
    loop.make_queues(options);
    loop.arm();
    loop.send(1);
    check(loop.has_event(-1), "the new CQ's event");
    may_go_on.release();
    taker.join();
    check(!loop.has_event(), "poll(2) reports an event, and there is none");
    loop.take_receive();
}

}  // namespace

int events(const Options& options, int rounds) {
    for (int i = 0; i < rounds; i++) {
        gone(options);
        stale(options);
        taken_over(options);
    }
    std::printf("events: %d rounds\ngood\n", rounds);
    return 0;
}

}  // namespace verbs_check

// The library's, too, finds these before those of the C library.
extern "C" int poll(pollfd* fds, nfds_t n, int timeout) {
    if (timeout < 0 && ::gettid() != ::getpid())
        return verbs_check::gate.poll(fds, n);
    const timespec time = {timeout / 1000, timeout % 1000 * 1000000L};
    return ::ppoll(fds, n, timeout < 0 ? nullptr : &time, nullptr);
}

extern "C" ssize_t read(int fd, void* to, std::size_t length) {
    const ssize_t ret = ::syscall(SYS_read, fd, to, length);
    if (verbs_check::is_late) {
        verbs_check::is_late = false;
        verbs_check::has_read.release();
        verbs_check::may_go_on.acquire();
    }
    return ret;
}
