// SPDX-License-Identifier: MIT
#include "fabric.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace verbs_check {

Wire Wire::accept(int port) {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    check(!::bind(listener, reinterpret_cast<sockaddr*>(&at), sizeof(at)) && !::listen(listener, 1),
          "listen");
    std::printf("ready\n");
    std::fflush(stdout);
    const int fd = ::accept(listener, nullptr, nullptr);
    check(fd >= 0, "accept");
    ::close(listener);
    return Wire(fd);
}

Wire Wire::connect(const char* address, int port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    check(::inet_pton(AF_INET, address, &at.sin_addr) == 1, "address");
    check(!::connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof(at)), "connect");
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return Wire(fd);
}

Wire::~Wire() {
    if (fd_ >= 0)
        ::close(fd_);
}

void Wire::put(const void* data, std::size_t length) {
    check(::send(fd_, data, length, MSG_NOSIGNAL) == static_cast<ssize_t>(length), "send");
}

bool Wire::get(void* data, std::size_t length) {
    return ::recv(fd_, data, length, MSG_WAITALL) == static_cast<ssize_t>(length);
}

bool Wire::is_closed() const {
    char next = 0;
    return ::recv(fd_, &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

Memory::Memory(ibv_pd* pd, std::uint8_t* memory, std::size_t length, unsigned access,
               std::uint64_t shifted)
    : at(memory), shift(shifted) {
    mr = shift ? ibv_reg_mr_iova2(pd, memory, length, iova(0), access)
               : ibv_reg_mr(pd, memory, length, access);
    check(mr != nullptr, std::string("ibv_reg_mr: ") + std::strerror(errno));
    check(mr->addr == memory && mr->length == length, "the address of what was registered");
}

Memory::~Memory() {
    if (mr)
        ibv_dereg_mr(mr);
}

ibv_context* open_device(const std::string& name) {
    int n = 0;
    ibv_context* context = nullptr;
    ibv_device** list = ibv_get_device_list(&n);
    for (int i = 0; i < n && !context; i++) {
        if (name == ibv_get_device_name(list[i]))
            context = ibv_open_device(list[i]);
    }
    ibv_free_device_list(list);
    check(context != nullptr, "no device");
    return context;
}

void make_ready(ibv_qp* qp, const ibv_gid& gid, std::uint32_t qpn, int gid_index) {
    // An unreliable connection has nothing to repeat, and no reads or atomics.
    const bool is_reliable = qp->qp_type == IBV_QPT_RC;
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    if (is_reliable)
        attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    check(!ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
          "INIT");
    attr = {};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = qpn;
    attr.max_dest_rd_atomic = 4;
    attr.min_rnr_timer = 12;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.dgid = gid;
    attr.ah_attr.grh.hop_limit = 1;
    attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gid_index);
    int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (is_reliable)
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    check(!ibv_modify_qp(qp, &attr, mask), "RTR");
    attr = {};
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    attr.max_rd_atomic = 4;
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (is_reliable)
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    check(!ibv_modify_qp(qp, &attr, mask), "RTS");
}

Fabric::Fabric(const Options& options) : options_(options) {
    context_ = open_device(options.device);
    pd_ = ibv_alloc_pd(context_);
    check(pd_ != nullptr, "pd");
    if (options.events) {
        channel_ = ibv_create_comp_channel(context_);
        check(channel_ && !::fcntl(channel_->fd, F_SETFL, O_NONBLOCK), "channel");
    }
    cq_ = ibv_create_cq(context_, kSends + kReceives, this, channel_, 0);
    check(cq_ != nullptr, "cq");
    if (channel_)
        check(!ibv_req_notify_cq(cq_, 0), "arm");
    if (options.srq) {
        ibv_srq_init_attr attr = {nullptr, {kReceives, 1, 0}};
        srq_ = ibv_create_srq(pd_, &attr);
        check(srq_ != nullptr, "srq");
    }
}

Fabric::~Fabric() {
    if (unacknowledged_)
        ibv_ack_cq_events(cq_, unacknowledged_);
    if (qp_ && ibv_destroy_qp(qp_))
        std::printf("the QP is not destroyed\n");
    if (srq_ && ibv_destroy_srq(srq_))
        std::printf("the SRQ is not destroyed\n");
    if (ibv_destroy_cq(cq_))
        std::printf("the CQ is not destroyed\n");
    if (channel_ && ibv_destroy_comp_channel(channel_))
        std::printf("the channel is not destroyed\n");
    if (ibv_dealloc_pd(pd_))
        std::printf("the PD is not freed: %s\n", std::strerror(errno));
    if (ibv_close_device(context_))
        std::printf("the device is not closed\n");
}

void Fabric::connect(Wire& wire) {
    wire_ = &wire;
    if (qp_)
        check(!ibv_destroy_qp(qp_), "destroy QP");
    ibv_qp_init_attr init = {};
    init.send_cq = init.recv_cq = cq_;
    init.srq = srq_;
    init.qp_type = IBV_QPT_RC;
    init.cap = {kSends, srq_ ? 0 : kReceives, 4, 1, kInline};
    qp_ = ibv_create_qp(pd_, &init);
    check(qp_ != nullptr, std::string("QP: ") + std::strerror(errno));

    struct Place {
        ibv_gid gid;
        std::uint32_t qpn;
    } mine = {}, theirs;
    check(!ibv_query_gid(context_, 1, options_.gid_index, &mine.gid), "gid");
    mine.qpn = qp_->qp_num;
    wire.put(mine);
    theirs = wire.get<Place>();
    make_ready(qp_, theirs.gid, theirs.qpn, options_.gid_index);
    wire.put('x');
    wire.get<char>();
}

void Fabric::receive(std::uint64_t id, const ibv_sge& sge) {
    ibv_sge copy = sge;
    ibv_recv_wr wr = {id, nullptr, &copy, 1};
    ibv_recv_wr* bad = nullptr;
    check(!(srq_ ? ibv_post_srq_recv(srq_, &wr, &bad) : ibv_post_recv(qp_, &wr, &bad)), "receive");
}

int Fabric::post(std::vector<ibv_send_wr>& list) {
    for (std::size_t i = 0; i + 1 < list.size(); i++)
        list[i].next = &list[i + 1];
    list.back().next = nullptr;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp_, list.data(), &bad);
}

// Not for ever: the other end may have failed, and a device may try again without end.
ibv_wc Fabric::wait() {
    constexpr double patience = 60e6;
    const double begun = microseconds();
    ibv_wc wc = {};
    for (unsigned polls = 1;; polls++) {
        const int n = ibv_poll_cq(cq_, 1, &wc);
        check(n >= 0, "poll");
        if (n)
            return wc;
        if (polls % 1024 == 0) {
            check(!wire_->is_closed(), "the other end has gone");
            check(microseconds() - begun < patience, "no completion in a minute");
        }
        if (!channel_)
            continue;
        pollfd fds[2] = {{channel_->fd, POLLIN, 0}, {wire_->fd(), POLLRDHUP, 0}};
        check(::poll(fds, 2, 60000) > 0, "no event in a minute");
        check(!fds[1].revents, "the other end has gone");
        ibv_cq* cq = nullptr;
        void* self = nullptr;
        if (ibv_get_cq_event(channel_, &cq, &self)) {
            check(errno == EAGAIN, "get event");
            continue;
        }
        check(cq == cq_ && self == this, "event of another CQ");
        if (++unacknowledged_ == 16) {
            ibv_ack_cq_events(cq_, 16);
            unacknowledged_ = 0;
        }
        check(!ibv_req_notify_cq(cq_, 0), "arm");
    }
}

bool Fabric::is_quiet() {
    ibv_wc wc = {};
    return ibv_poll_cq(cq_, 1, &wc) == 0;
}

}  // namespace verbs_check
