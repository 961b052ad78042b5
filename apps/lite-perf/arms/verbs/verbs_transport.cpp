// SPDX-License-Identifier: MIT
//
// The native verbs arm, as an expert would write it: memory is registered once, small writes are
// inline, and a post() is one chain on one queue pair, with one doorbell and one completion. It
// busy-polls unless there are more callers than CPUs. The arm verbs-events always sleeps instead,
// because polling takes CPU time from a software device.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "arms/verbs/rdma.hpp"
#include "arms/verbs/verbs_client.hpp"
#include "memory.hpp"
#include "transport.hpp"

namespace perf {

namespace {

class VerbsTransport final : public Transport {
  public:
    VerbsTransport(std::string_view name, bool events, const Target& target)
        : name_(name),
          events_only_(events),
          region_(target.buffer_bytes()),
          client_(target, target.window),
          memory_(register_memory(client_.pd(), region_.bytes())),
          asleep_(events),
          remote_{client_.granted()},
          wrs_(client_.window()),
          sges_(client_.window()) {
        if (target.regions > 1)
            remote_ = regions(target.regions);
    }

    ~VerbsTransport() override { client_.disconnect(); }

    std::string_view name() const override { return name_; }
    std::span<std::byte> buffer() override { return region_.bytes(); }
    bool supports(Op op) const override { return op != Op::echo; }
    unsigned max_window() const override { return client_.window(); }
    void set_crowded(bool crowded) override { asleep_ = crowded || events_only_; }
    // Two batches: one in flight while the other is completed and posted again.
    unsigned batch(unsigned window) const override { return std::max(window / 2, 1U); }

    void post(std::span<const Request> requests) override {
        for (std::size_t i = 0; i < requests.size(); i++)
            prepare(requests[i], wrs_[i], sges_[i],
                    i + 1 == requests.size() ? nullptr : &wrs_[i + 1]);
        client_.post(wrs_.front());
    }

    std::uint64_t collect() override {
        const ibv_wc wc = client_.completion(asleep_);
        if (wc.opcode != IBV_WC_FETCH_ADD)
            return 0;
        std::uint64_t old;
        std::memcpy(&old, region_.bytes().data() + wc.wr_id, sizeof old);
        return old;
    }

  private:
    void prepare(const Request& request, ibv_send_wr& wr, ibv_sge& sge, ibv_send_wr* next) {
        sge = {};
        sge.addr = reinterpret_cast<std::uintptr_t>(region_.bytes().data() + request.local);
        sge.length = request.length;
        sge.lkey = memory_->lkey;

        wr = {};
        wr.wr_id = request.local;
        wr.next = next;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.send_flags = next ? 0 : IBV_SEND_SIGNALED;
        switch (request.op) {
            case Op::read:
                wr.opcode = IBV_WR_RDMA_READ;
                break;
            case Op::write:
                wr.opcode = IBV_WR_RDMA_WRITE;
                if (request.length <= client_.inline_bytes())
                    wr.send_flags |= IBV_SEND_INLINE;
                break;
            case Op::fetch_add:
                wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
                break;
            case Op::echo:
                throw std::logic_error("verbs: one-sided");
        }
        const kperf_region& remote = remote_[request.region];
        if (request.op == Op::fetch_add) {
            wr.wr.atomic.remote_addr = remote.address + request.offset;
            wr.wr.atomic.rkey = remote.rkey;
            wr.wr.atomic.compare_add = 1;
        } else {
            wr.wr.rdma.remote_addr = remote.address + request.offset;
            wr.wr.rdma.rkey = remote.rkey;
        }
    }

    /// Reads the table of regions, the only region known so far, in pieces.
    std::vector<kperf_region> regions(std::uint32_t count) {
        std::vector<kperf_region> table(count);
        const auto bytes = std::as_writable_bytes(std::span(table));
        for (std::size_t done = 0; done < bytes.size();) {
            const std::size_t n = std::min(bytes.size() - done, region_.bytes().size());
            call({Op::read, static_cast<std::uint32_t>(n), done});
            std::copy_n(region_.bytes().begin(), n,
                        bytes.begin() + static_cast<std::ptrdiff_t>(done));
            done += n;
        }
        return table;
    }

    std::string_view name_;
    bool events_only_;
    // In order of creation; destroyed in reverse.
    Region region_;
    VerbsClient client_;
    MemoryRegion memory_;
    bool asleep_;
    std::vector<kperf_region> remote_;
    std::vector<ibv_send_wr> wrs_;
    std::vector<ibv_sge> sges_;
};

}  // namespace

std::unique_ptr<Transport> make_verbs_transport(const Target& target) {
    return std::make_unique<VerbsTransport>("verbs", false, target);
}

std::unique_ptr<Transport> make_verbs_events_transport(const Target& target) {
    return std::make_unique<VerbsTransport>("verbs-events", true, target);
}

}  // namespace perf
