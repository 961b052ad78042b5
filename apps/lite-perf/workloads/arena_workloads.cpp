// SPDX-License-Identifier: MIT
//
// Costs of making memory of this process usable for peers in an arena, compared with registering it
// with LITE and with verbs. No other node takes part.
#include <lite/arena.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "arms/verbs/rdma.hpp"
#include "net.hpp"
#include "workload.hpp"

namespace perf {

namespace {

constexpr std::array<std::uint64_t, 6> arena_sizes{64 << 10, 256 << 10, 1 << 20,
                                                   4 << 20,  16 << 20,  64 << 20};

std::size_t blocks(std::uint64_t bytes) {
    return (bytes + LITE_ARENA_BLOCK - 1) / LITE_ARENA_BLOCK * LITE_ARENA_BLOCK;
}

/// Anonymous memory; has no pages before touch().
class Anonymous {
  public:
    explicit Anonymous(std::size_t size) : size_(size) {
        void* data =
            ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (data == MAP_FAILED)
            throw std::bad_alloc();
        data_ = static_cast<std::byte*>(data);
    }
    ~Anonymous() { ::munmap(data_, size_); }
    Anonymous(const Anonymous&) = delete;
    Anonymous& operator=(const Anonymous&) = delete;

    std::span<std::byte> bytes() const { return {data_, size_}; }
    void touch() const { std::memset(data_, 1, size_); }

  private:
    std::byte* data_;
    std::size_t size_;
};

/// A protection domain on the first RDMA device.
class Domain {
  public:
    Domain() : context_(open_first()), pd_(context_ ? ::ibv_alloc_pd(context_) : nullptr) {
        if (!pd_)
            throw_errno("verbs: open the first device");
    }
    ~Domain() {
        ::ibv_dealloc_pd(pd_);
        ::ibv_close_device(context_);
    }
    Domain(const Domain&) = delete;
    Domain& operator=(const Domain&) = delete;

    ibv_pd* pd() const { return pd_; }

  private:
    static ibv_context* open_first() {
        int n = 0;
        ibv_device** list = ::ibv_get_device_list(&n);
        ibv_context* context = n ? ::ibv_open_device(list[0]) : nullptr;
        ::ibv_free_device_list(list);
        return context;
    }

    ibv_context* context_ = nullptr;
    ibv_pd* pd_ = nullptr;
};

class ArenaWorkload : public Workload {
  public:
    bool on_request() const override { return true; }
    std::string_view unit() const override { return "us"; }
    bool lower_is_better() const override { return true; }
    std::vector<std::uint64_t> sizes(const Choice&) const override {
        return {arena_sizes.begin(), arena_sizes.end()};
    }

  protected:
    static bool chosen(const Field& field, std::string_view arm) {
        return std::ranges::count(field.arms(), arm) > 0;
    }

    template <typename Call>
    static Contestant contestant(const char* arm, const char* label, Call call) {
        return {arm, label, 1, [call](const Slice& slice) { return time_calls(slice, call); }};
    }
};

class Register final : public ArenaWorkload {
  public:
    std::string_view name() const override { return "arena"; }
    std::string_view title() const override {
        return "Registering memory of this process and ending that: a range of an arena, and an "
               "LMR or region of verbs of its own";
    }

    std::vector<Contestant> contestants(Field& field, std::uint64_t size) const override {
        std::vector<Contestant> result;
        if (chosen(field, "lite")) {
            auto node = std::make_shared<lite::context>(field.target().lite_index);
            auto arena = std::make_shared<lite::arena>(*node, "", size);
            auto* data = static_cast<std::byte*>(arena->allocate(size, 4096));
            std::memset(data, 1, size);
            const std::span<std::byte> memory(data, size);
            result.push_back(contestant("lite", "arena", [node, arena, memory] {
                arena->deregister(arena->register_range(memory).key);
            }));
            result.push_back(contestant("lite", "arena, own LMR",
                                        [node, arena, memory] { node->register_memory(memory); }));
            auto other = std::make_shared<Anonymous>(size);
            other->touch();
            result.push_back(contestant("lite", "lite_register",
                                        [node, other] { node->register_memory(other->bytes()); }));
        }
        if (chosen(field, "verbs")) {
            auto domain = std::make_shared<Domain>();
            auto memory = std::make_shared<Anonymous>(size);
            memory->touch();
            result.push_back(contestant("verbs", "ibv_reg_mr", [domain, memory] {
                register_memory(domain->pd(), memory->bytes());
            }));
        }
        return result;
    }
};

class Cycle final : public ArenaWorkload {
  public:
    std::string_view name() const override { return "arena-cycle"; }
    std::string_view title() const override {
        return "Getting memory, registering it, storing 8 bytes into each page, ending that, and "
               "giving the memory back";
    }

    std::vector<Contestant> contestants(Field& field, std::uint64_t size) const override {
        std::vector<Contestant> result;
        if (chosen(field, "lite")) {
            auto node = std::make_shared<lite::context>(field.target().lite_index);
            for (const bool eager : {false, true}) {
                auto arena = std::make_shared<lite::arena>(*node, "", size, 0600,
                                                           eager ? LITE_ARENA_EAGER : 0);
                result.push_back(
                    contestant("lite", eager ? "arena, eager" : "arena", [node, arena, size] {
                        auto* data = static_cast<std::byte*>(arena->allocate(size, 4096));
                        const auto range = arena->register_range({data, size});
                        store({data, size});
                        arena->deregister(range.key);
                        arena->deallocate(data, size, 4096);
                    }));
            }
            for (const bool eager : {false, true})
                result.push_back(contestant(
                    "lite", eager ? "mmap and own LMR, eager" : "mmap and own LMR",
                    [node, size, eager] { map_once(*node, size, eager ? LITE_ARENA_EAGER : 0); }));
        }
        if (chosen(field, "verbs")) {
            auto domain = std::make_shared<Domain>();
            result.push_back(contestant("verbs", "mmap, ibv_reg_mr", [domain, size] {
                const Anonymous memory(size);
                const auto region = register_memory(domain->pd(), memory.bytes());
                store(memory.bytes());
            }));
        }
        return result;
    }

  private:
    static void store(std::span<std::byte> memory) {
        for (std::size_t at = 0; at < memory.size(); at += 4096)
            std::memset(memory.data() + at, 2, 8);
    }

    /// By system calls alone, without what the allocator of the library saves.
    static void map_once(lite::context& node, std::uint64_t size, std::uint32_t flags) {
        const std::size_t length = blocks(size);
        void* data = nullptr;
        const int err = lite_arena_mmap(node.get(), length, flags, &data);
        if (err)
            throw lite::error(err, "map an arena");
        {
            const auto lmr = node.register_memory({static_cast<std::byte*>(data), length});
            store({static_cast<std::byte*>(data), size});
        }
        ::munmap(data, length);
    }
};

const Register arena_register;
const Cycle arena_cycle;

}  // namespace

std::vector<const Workload*> arena_workloads() { return {&arena_register, &arena_cycle}; }

}  // namespace perf
