// SPDX-License-Identifier: MIT
// The end that is read and written, and receives.
#include "fabric.hpp"

#include <arpa/inet.h>
#include <sys/mman.h>

#include <cstdio>
#include <map>
#include <memory>

namespace verbs_check {
namespace {

class Server {
  public:
    Server(const Options& options, Wire& wire, std::size_t bytes)
        : fabric_(options), wire_(wire), bytes_(bytes), shift_(options.shift) {
        void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        check(memory != MAP_FAILED, "mmap");
        memory_ = static_cast<std::uint8_t*>(memory);
        inbox_.resize(std::size_t{kReceives} * kMessageMax);
        in_ = std::make_unique<Memory>(fabric_.pd(), inbox_.data(), inbox_.size(),
                                       IBV_ACCESS_LOCAL_WRITE, shift_);
        other_pd_ = ibv_alloc_pd(fabric_.pd()->context);
        check(other_pd_ != nullptr, "the other PD");
    }

    void run() {
        for (;;) {
            const auto request = wire_.get<Request>();
            Answer answer = {};
            switch (request.what) {
                case Ask::reconnect:
                    fabric_.connect(wire_);
                    break;
                case Ask::region:
                    region(request, answer);
                    break;
                case Ask::change_region:
                    change(request, answer);
                    break;
                case Ask::advise:
                    answer.value = advise(*regions_.at(static_cast<std::uint32_t>(request.a)));
                    break;
                case Ask::free_region:
                    regions_.erase(static_cast<std::uint32_t>(request.a));
                    break;
                case Ask::digest:
                    answer.value = digest(memory_ + request.a, request.b);
                    break;
                case Ask::receive:
                    for (std::uint64_t i = 0; i < request.a; i++)
                        receive();
                    break;
                case Ask::expect:
                    answer.value = expect(request.a, request.b, request.c);
                    break;
                case Ask::done:
                    regions_.clear();
                    check(!ibv_dealloc_pd(other_pd_), "the other PD");
                    in_.reset();
                    wire_.put(answer);
                    return;
            }
            wire_.put(answer);
        }
    }

  private:
    // @request.c: shifts its addresses further than those of the others.
    void region(const Request& request, Answer& answer) {
        check(request.a + request.b <= bytes_, "region");
        auto made = std::make_unique<Memory>(fabric_.pd(), memory_ + request.a, request.b,
                                             request.access, shift_ + request.c);
        answer = {made->iova(0), 0, made->mr->rkey, ++last_};
        regions_[last_] = std::move(made);
    }

    // ibv_rereg_mr() with the flags and the id of @request.a.
    void change(const Request& request, Answer& answer) {
        const auto id = static_cast<std::uint32_t>(request.a);
        const auto flags = static_cast<int>(request.a >> 32);
        check(request.b + request.c <= bytes_, "change");
        Memory& one = *regions_.at(id);
        const int result = ibv_rereg_mr(one.mr, flags, other_pd_, memory_ + request.b, request.c,
                                        static_cast<int>(request.access));
        one.at = static_cast<std::uint8_t*>(one.mr->addr);
        // ibv_rereg_mr() cannot give other memory another address than this process's.
        if (!result && flags & IBV_REREG_MR_CHANGE_TRANSLATION)
            one.shift = 0;
        answer = {one.iova(0), static_cast<std::uint64_t>(result), one.mr->rkey, id};
    }

    // What ibv_advise_mr() returns.
    std::uint64_t advise(const Memory& one) {
        ibv_sge sge = one.sge(0, 4096);
        return static_cast<std::uint64_t>(ibv_advise_mr(
            fabric_.pd(), IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
    }

    void receive() {
        const std::uint64_t slot = posted_++ % kReceives;
        fabric_.receive(slot, in_->sge(slot * kMessageMax, kMessageMax));
    }

    // Receives @n messages: those from number @first on, in order, whole. The word at @word of the
    // memory must not be behind the number: it was written before the message was sent. A receive
    // is posted for each.
    std::uint64_t expect(std::uint64_t n, std::uint64_t first, std::uint64_t word) {
        for (std::uint64_t i = 0; i < n; i++) {
            const std::uint64_t number = first + i;
            const ibv_wc wc = fabric_.wait();
            check(wc.status == IBV_WC_SUCCESS,
                  std::string("receive: ") + ibv_wc_status_str(wc.status));
            check(wc.wr_id == received_++ % kReceives, "receives out of order");
            check(wc.qp_num == fabric_.qp()->qp_num, "another QP");
            const bool has_imm = number % 3 == 1;
            const bool is_write = number % 3 == 2;
            check(wc.opcode == (is_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV), "opcode");
            check(!!(wc.wc_flags & IBV_WC_WITH_IMM) == (has_imm || is_write), "flags");
            if (has_imm || is_write)
                check(ntohl(wc.imm_data) == static_cast<std::uint32_t>(number), "immediate");
            const std::uint64_t length = 1 + number * 37 % kMessageMax;
            check(wc.byte_len == length, "length " + std::to_string(wc.byte_len) + " of message " +
                                             std::to_string(number) + ", not " +
                                             std::to_string(length));
            const std::uint8_t* data = inbox_.data() + wc.wr_id * kMessageMax;
            for (std::uint64_t k = 0; k < length && !is_write; k++)
                check(data[k] == pattern(number, k), "bytes of a message");
            std::uint64_t before = 0;
            std::memcpy(&before, memory_ + word, sizeof(before));
            check(before >= number, "a write after the message that followed it");
            receive();
        }
        return n;
    }

    Fabric fabric_;
    Wire& wire_;
    const std::size_t bytes_;
    const std::uint64_t shift_;
    ibv_pd* other_pd_ = nullptr;
    std::uint8_t* memory_ = nullptr;
    std::vector<std::uint8_t> inbox_;
    std::unique_ptr<Memory> in_;
    std::map<std::uint32_t, std::unique_ptr<Memory>> regions_;
    std::uint32_t last_ = 0;
    std::uint64_t posted_ = 0, received_ = 0;
};

}  // namespace

int serve(const Options& options, int port, std::size_t bytes) {
    Wire wire = Wire::accept(port);
    Server server(options, wire, bytes);
    wire.put('r');
    server.run();
    return 0;
}

}  // namespace verbs_check
