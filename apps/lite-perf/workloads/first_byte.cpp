// SPDX-License-Identifier: MIT
#include "workloads/first_byte.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>

#include "arms/lite/lite_memory.hpp"
#include "arms/verbs/rdma.hpp"
#include "memory.hpp"
#include "net.hpp"

namespace perf {

namespace {

constexpr std::uint32_t first_bytes = 8;

double us_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

class LiteMapper final : public Mapper {
  public:
    LiteMapper(const Target& target, std::uint64_t bytes, bool cold)
        : target_(target), bytes_(bytes), cold_(cold), context_(open_context(target.lite_index)) {
        renew();
    }

    double map() override {
        if (cold_)
            renew();
        lite_lh_t handle = 0;
        const Clock::time_point begin = Clock::now();
        const int error = lite_map(context_.get(), lmr_->name().c_str(),
                                   LITE_RIGHT_READ | LITE_RIGHT_WRITE, &handle, nullptr);
        const double time = us_since(begin);
        check_lite(error, "map");
        check_lite(lite_unmap(context_.get(), handle), "unmap");
        return time;
    }

  private:
    void renew() {
        lmr_.reset();
        lmr_.emplace(target_, bytes_);
        if (cold_)
            lmr_->forget();
    }

    Target target_;
    std::uint64_t bytes_;
    bool cold_;
    Context context_;
    std::optional<NamedLmr> lmr_;
};

class VerbsMapper final : public Mapper {
  public:
    VerbsMapper(const Target& target, std::uint64_t bytes)
        : memory_(bytes), channel_(make_event_channel()), id_(make_cm_id(channel_.get())) {
        resolve_server(id_.get(), target.server, target.port, ack_timeout_quick);
        Target small = target;
        small.bytes = small.local = sizeof(kperf_region);
        exchange_ = make_tcp_transport(small);
    }

    double map() override {
        const Clock::time_point begin = Clock::now();
        const MemoryRegion region = register_memory(id_->pd, memory_.bytes());
        const kperf_region key{reinterpret_cast<std::uintptr_t>(memory_.bytes().data()),
                               region->rkey, 0};
        std::memcpy(exchange_->buffer().data(), &key, sizeof key);
        exchange_->call({Op::echo, sizeof key});
        return us_since(begin);
    }

  private:
    Region memory_;
    EventChannel channel_;
    CmId id_;
    std::unique_ptr<Transport> exchange_;
};

}  // namespace

Context open_context(unsigned index) {
    lite_ctx* context = nullptr;
    check_lite(lite_open(static_cast<int>(index), &context), "open");
    return Context(context);
}

NamedLmr::NamedLmr(const Target& target, std::uint64_t bytes, std::string name)
    : name_(std::move(name)), context_(open_context(target.lite_index)) {
    static std::atomic<unsigned> number;
    if (name_.empty())
        name_ = fmt::format("lite-perf-{}-{}-{}", target.lite_index, getpid(), number++);
    lite_alloc_params params{};
    params.size = sizeof params;
    params.name = name_.c_str();
    params.length = bytes;
    params.nodes = &target.node;
    params.n_nodes = 1;
    params.mode = 0600;
    check_lite(lite_alloc(context_.get(), &params, &handle_), "allocate");
}

NamedLmr::~NamedLmr() { lite_free_name(context_.get(), name_.c_str()); }

void NamedLmr::forget() { check_lite(lite_unmap(context_.get(), handle_), "unmap"); }

Clock::time_point first_byte_of_lite(unsigned index, const std::string& name) {
    const Context context = open_context(index);
    lite_lh_t handle = 0;
    std::array<std::byte, first_bytes> data;
    check_lite(lite_map(context.get(), name.c_str(), LITE_RIGHT_READ, &handle, nullptr), "map");
    check_lite(lite_read(context.get(), handle, 0, data.data(), data.size()), "read");
    return Clock::now();
}

Clock::time_point first_byte_of(std::string_view arm, const Target& target) {
    Target small = target;
    small.bytes = 4096;
    small.window = 1;
    const std::unique_ptr<Transport> transport = make_transport(arm, small);
    transport->call({Op::read, first_bytes});
    return Clock::now();
}

std::unique_ptr<Mapper> make_lite_mapper(const Target& target, std::uint64_t bytes, bool cold) {
    return std::make_unique<LiteMapper>(target, bytes, cold);
}

std::unique_ptr<Mapper> make_verbs_mapper(const Target& target, std::uint64_t bytes) {
    return std::make_unique<VerbsMapper>(target, bytes);
}

}  // namespace perf
