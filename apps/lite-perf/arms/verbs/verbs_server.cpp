// SPDX-License-Identifier: MIT
#include "arms/verbs/verbs_server.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <vector>

#include "memory.hpp"

namespace perf {

class VerbsServer::Connection {
  public:
    Connection(CmId id, const Hello& hello)
        : id_(std::move(id)),
          hello_(hello),
          region_(hello.bytes * hello.regions),
          table_(hello.regions > 1 ? hello.regions * sizeof(kperf_region) : 0),
          cq_(make_cq(id_->verbs, 1)) {
        for (std::uint32_t i = 0; i < hello.regions; i++)
            memory_.push_back(
                register_memory(id_->pd, region_.bytes().subspan(i * hello.bytes, hello.bytes)));
        if (hello.regions > 1)
            tell_regions();
        unsigned inline_bytes = 0;
        qp_ = make_queue_pair(id_.get(), cq_.get(), 1, inline_bytes);
    }

    /// Describes the region, or the table of regions if there are several.
    VerbsGrant grant() const {
        VerbsGrant grant{};
        grant.hello = hello_;
        grant.address = address_of(*memory_.back());
        grant.rkey = memory_.back()->rkey;
        return grant;
    }

  private:
    static std::uint64_t address_of(const ibv_mr& memory) {
        return reinterpret_cast<std::uintptr_t>(memory.addr);
    }

    void tell_regions() {
        auto* entry = reinterpret_cast<kperf_region*>(table_.bytes().data());
        for (const MemoryRegion& memory : memory_)
            *entry++ = {address_of(*memory), memory->rkey, 0};
        memory_.push_back(register_memory(id_->pd, table_.bytes()));
    }

    // In order of creation; destroyed in reverse.
    CmId id_;
    Hello hello_;
    Region region_;
    Region table_;  // address and key of each region, if there are several
    CompletionQueue cq_;
    std::vector<MemoryRegion> memory_;  // of each region, then of the table
    QueuePair qp_;
};

VerbsServer::VerbsServer(const std::string& address, std::uint16_t port)
    : stop_(eventfd(0, EFD_CLOEXEC)),
      channel_(make_event_channel()),
      listener_(make_cm_id(channel_.get())) {
    if (stop_.get() < 0)
        throw_errno("eventfd");
    make_nonblocking(channel_->fd);

    listen_at(listener_.get(), address, port);
    thread_ = std::jthread([this] { run(); });
}

VerbsServer::~VerbsServer() {
    const std::uint64_t one = 1;
    if (write(stop_.get(), &one, sizeof one) != sizeof one)
        std::terminate();  // the thread would never end; a new eventfd accepts the write
    thread_.join();
    connections_.clear();
}

void VerbsServer::run() {
    for (;;) {
        pollfd waiting[] = {{channel_->fd, POLLIN, 0}, {stop_.get(), POLLIN, 0}};
        if (poll(waiting, 2, -1) < 0 && errno != EINTR) {
            std::perror("lite-perf: poll");
            return;
        }
        if (waiting[1].revents)
            return;
        const std::optional<Notice> notice = next_notice();
        if (!notice)
            continue;
        try {
            handle(*notice);
        } catch (const std::exception& error) {
            fmt::print(stderr, "lite-perf: a verbs client was dropped: {}\n", error.what());
        }
    }
}

std::optional<VerbsServer::Notice> VerbsServer::next_notice() {
    rdma_cm_event* raw = nullptr;
    if (rdma_get_cm_event(channel_.get(), &raw))
        return {};  // spurious wake-up
    const CmEvent event(raw);
    Notice notice{event->event, event->id, event->param.conn.responder_resources, {}};
    if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST && event->param.conn.private_data &&
        event->param.conn.private_data_len >= sizeof notice.hello)
        std::memcpy(&notice.hello, event->param.conn.private_data, sizeof notice.hello);
    return notice;
}

void VerbsServer::handle(const Notice& notice) {
    switch (notice.type) {
        case RDMA_CM_EVENT_CONNECT_REQUEST:
            accept(notice);
            break;
        case RDMA_CM_EVENT_ESTABLISHED:
            break;
        default:  // disconnected, unreachable, device removed
            connections_.erase(notice.id);
    }
}

void VerbsServer::accept(const Notice& notice) {
    CmId id(notice.id);
    if (!is_valid(notice.hello) || connections_.size() >= connections_max) {
        rdma_reject(id.get(), nullptr, 0);
        throw std::runtime_error(is_valid(notice.hello) ? "too many connections"
                                                        : "not a lite-perf of this version");
    }
    auto connection = std::make_unique<Connection>(std::move(id), notice.hello);
    const VerbsGrant grant = connection->grant();
    rdma_conn_param param{};
    param.private_data = &grant;
    param.private_data_len = sizeof grant;
    param.responder_resources =
        std::min(notice.initiator_depth, max_responder_resources(notice.id->verbs));
    param.initiator_depth = 1;
    param.rnr_retry_count = 6;
    if (rdma_accept(notice.id, &param))
        throw_errno("accept");
    connections_.emplace(notice.id, std::move(connection));
}

}  // namespace perf
