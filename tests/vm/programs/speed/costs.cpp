// SPDX-License-Identifier: MIT
// What it costs to make memory usable for others, beside native verbs.
//
//   costs handles             the cost of a call that only looks its handle up and checks it,
//                             with different numbers of LMRs mapped; and the cost of making and
//                             keeping LMRs, beside as many registered regions
//   costs map --server HOST   mapping an LMR of another node, for the first time and again,
//                             beside registering as much memory and exchanging its key
//                             with that node
//   costs serve               the other end of that exchange
//   costs first               the cost of opening a node, mapping an LMR of another node that
//                             has been mapped here before, and reading its first bytes
//
// Prints lines of a name and a number (ns; bytes). On a machine that counts instructions instead of
// time (QEMU's -icount), the numbers of the first command are instructions, and the same every
// time.
#include "../common/arguments.hpp"
#include "../common/run_main.hpp"
#include "common/env.hpp"
#include "common/memory.hpp"
#include "common/process.hpp"
#include "common/raw.hpp"

#include "net.hpp"
#include "report/stats.hpp"

#include <infiniband/verbs.h>

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using namespace lite_test;

namespace {

struct Options {
    std::vector<std::size_t> counts{10, 1000, 100000};
    std::size_t calls = 2000;
    std::string server;
    std::uint16_t port = 18700;
    std::uint64_t length = 1 << 20;
    std::size_t rounds = 15;
    std::size_t per_round = 20;
};

using Clock = std::chrono::steady_clock;

double time_of(const std::function<void()>& call) {
    const auto begun = Clock::now();
    call();
    return std::chrono::duration<double, std::nano>(Clock::now() - begun).count();
}

void print(const std::string& name, double value) {
    std::printf("%s %.0f\n", name.c_str(), value);
    std::fflush(stdout);
}

double median(std::vector<double> samples) { return perf::summarize({std::move(samples)}).p50; }

// ---- verbs
// ---------------------------------------------------------------------------------------

using MemoryRegion = std::unique_ptr<ibv_mr, decltype(&ibv_dereg_mr)>;

class Verbs {
  public:
    Verbs() {
        int n = 0;
        ibv_device** list = ibv_get_device_list(&n);
        context_.reset(list && n ? ibv_open_device(list[0]) : nullptr);
        ibv_free_device_list(list);
        pd_.reset(context_ ? ibv_alloc_pd(context_.get()) : nullptr);
        if (!pd_)
            throw std::runtime_error("no RDMA device, or it gives no protection domain");
    }

    MemoryRegion add(std::byte* memory, std::size_t size) const {
        MemoryRegion region(
            ibv_reg_mr(pd_.get(), memory, size,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE),
            ibv_dereg_mr);
        if (!region)
            throw std::system_error(errno, std::generic_category(), "ibv_reg_mr");
        return region;
    }

  private:
    struct Close {
        void operator()(ibv_context* c) const { ibv_close_device(c); }
        void operator()(ibv_pd* p) const { ibv_dealloc_pd(p); }
    };
    std::unique_ptr<ibv_context, Close> context_;
    std::unique_ptr<ibv_pd, Close> pd_;
};

// ---- handles
// -------------------------------------------------------------------------------------

double available_bytes() {
    std::ifstream file("/proc/meminfo");
    std::string word;
    double kb = 0;
    while (file >> word) {
        if (word == "MemFree:") {
            file >> kb;
            return kb * 1024;
        }
    }
    throw std::runtime_error("/proc/meminfo does not say what is free");
}

// Each handle is equally likely.
class Handles {
  public:
    Handles() : dev_(env().indexes.front()), random_(env().seed) {}

    // Makes LMRs until there are @count; returns the median time for one.
    double grow(std::size_t count) {
        std::vector<double> samples;
        handles_.reserve(count);
        while (handles_.size() < count) {
            samples.push_back(time_of([&] { handles_.push_back(dev_.alloc(kPage)); }));
        }
        return median(std::move(samples));
    }

    // Finds the handle, checks rights and bounds, and does nothing else.
    double refused(std::size_t calls) {
        return measure(calls, ERANGE, [&](auto lh) { return read_args(lh, kPage, buffer_, 64); });
    }
    double read(std::size_t calls) {
        return measure(calls, 0, [&](auto lh) { return read_args(lh, 0, buffer_, 64); });
    }

  private:
    template <typename F>
    double measure(std::size_t calls, int wanted, F args_of) {
        std::vector<double> samples;
        samples.reserve(calls);
        for (std::size_t i = 0; i < calls; ++i) {
            auto args = args_of(handles_[random_() % handles_.size()]);
            Errno e;
            samples.push_back(time_of([&] { e = dev_(args); }));
            expect_equal(e, err(wanted), "call");
        }
        return median(std::move(samples));
    }

    Device dev_;
    std::mt19937_64 random_;
    std::vector<std::uint64_t> handles_;
    std::byte buffer_[64]{};
};

void measure_verbs(std::size_t count) {
    const Verbs verbs;
    const Mapping memory(count * kPage);
    std::fill_n(memory.data(), memory.size(), std::byte{1});
    std::vector<MemoryRegion> regions;
    regions.reserve(count);
    std::vector<double> samples;
    const auto before = available_bytes();
    for (std::size_t i = 0; i < count; ++i)
        samples.push_back(
            time_of([&] { regions.push_back(verbs.add(memory.data() + i * kPage, kPage)); }));
    const auto name = std::to_string(count);
    print("register/" + name, median(std::move(samples)));
    // In addition to the memory itself.
    print("register-bytes/" + name, (before - available_bytes()) / static_cast<double>(count));
}

void measure_handles(const Options& options) {
    {
        Handles handles;
        const auto before = available_bytes();
        for (const auto count : options.counts) {
            const auto name = "/" + std::to_string(count);
            print("make" + name, handles.grow(count));
            print("refused" + name, handles.refused(options.calls));
            print("read" + name, handles.read(options.calls));
        }
        const auto count = static_cast<double>(options.counts.back());
        print("make-bytes/" + std::to_string(options.counts.back()),
              (before - available_bytes()) / count - static_cast<double>(kPage));
    }
    measure_verbs(options.counts.back());
}

// ---- mapping
// -------------------------------------------------------------------------------------

struct Key {
    std::uint64_t address;
    std::uint64_t key;
};

// Serves one client, until it goes.
void serve(const Options& options) {
    const perf::Fd listener = perf::tcp_listen("", options.port);
    std::puts("serving");
    std::fflush(stdout);
    const perf::Fd client(::accept(listener.get(), nullptr, nullptr));
    if (client.get() < 0)
        perf::throw_errno("accept");
    perf::tcp_prepare(client.get());
    Key key{};
    while (perf::receive_all(client.get(), perf::bytes_of(key))) {
        iovec part = perf::iov_of(key);
        perf::send_all(client.get(), {&part, 1});
    }
}

// Samples of alternatives that take turns.
struct Arm {
    const char* name;
    perf::Rounds rounds = {};

    void begin() { rounds.emplace_back(); }
    void add(double sample) { rounds.back().push_back(sample); }
    void print() const {
        const auto s = perf::summarize(rounds);
        std::printf("%s %.0f\n", name, s.p50);
    }
};

class Mappings {
  public:
    explicit Mappings(const Options& options)
        : options_(options),
          dev_(env().indexes.front()),
          other_(env().indexes.front()),
          lmr_(other_, options.length, std::vector{env().peer()}),
          server_(perf::tcp_connect(options.server, options.port)),
          memory_(options.length) {
        std::fill_n(memory_.data(), memory_.size(), std::byte{1});
        other_.unmap(lmr_.lh());  // by name only: no file has it mapped
    }

    void run() {
        const std::vector<Arm*> arms{&cold_,     &map_,      &unmap_, &register_,
                                     &exchange_, &withdraw_, &native_};
        for (std::size_t round = 0; round < options_.rounds; ++round) {
            for (auto* arm : arms)
                arm->begin();
            map_for_the_first_time();
            for (std::size_t i = 0; i < options_.per_round; ++i)
                map_once_more();
            for (std::size_t i = 0; i < options_.per_round; ++i)
                register_and_exchange();
        }
        for (const auto* arm : arms)
            arm->print();
        ratio("cold", cold_);
        ratio("map", map_);
    }

  private:
    double map(std::string_view name, std::uint64_t& lh) const {
        auto args = map_args(name, LITE_RIGHT_READ | LITE_RIGHT_WRITE | LITE_RIGHT_ATOMIC);
        Errno e;
        const auto time = time_of([&] { e = dev_(args); });
        expect_equal(e, ok, "map");
        lh = args.lh;
        return time;
    }

    // An LMR that no process of this node has opened by its name.
    void map_for_the_first_time() {
        const NamedLmr fresh(other_, options_.length, std::vector{env().peer()});
        other_.unmap(fresh.lh());
        std::uint64_t lh = 0;
        cold_.add(map(fresh.name(), lh));
        dev_.unmap(lh);
    }

    void map_once_more() {
        std::uint64_t lh = 0;
        map_.add(map(lmr_.name(), lh));
        auto args = unmap_args(lh);
        Errno e;
        unmap_.add(time_of([&] { e = dev_(args); }));
        expect_equal(e, ok, "unmap");
    }

    void register_and_exchange() {
        MemoryRegion region(nullptr, ibv_dereg_mr);
        const auto registering =
            time_of([&] { region = verbs_.add(memory_.data(), memory_.size()); });
        Key key{reinterpret_cast<std::uint64_t>(memory_.data()), region->rkey};
        const auto exchanging = time_of([&] {
            iovec part = perf::iov_of(key);
            perf::send_all(server_.get(), {&part, 1});
            expect(perf::receive_all(server_.get(), perf::bytes_of(key)), "the server's answer");
        });
        register_.add(registering);
        exchange_.add(exchanging);
        withdraw_.add(time_of([&] { region.reset(); }));
        native_.add(registering + exchanging);
    }

    void ratio(const std::string& name, const Arm& arm) const {
        const auto r = perf::ratio_of_medians(arm.rounds, native_.rounds);
        std::printf("ratio-%s %.4f\nratio-%s-low %.4f\nratio-%s-high %.4f\n", name.c_str(), r.value,
                    name.c_str(), r.low, name.c_str(), r.high);
    }

    const Options& options_;
    Device dev_, other_;
    NamedLmr lmr_;
    perf::Fd server_;
    Verbs verbs_;
    Mapping memory_;
    Arm cold_{"map-cold"}, map_{"map"}, unmap_{"unmap"};
    Arm register_{"register"}, exchange_{"exchange"}, withdraw_{"deregister"};
    Arm native_{"register+exchange"};
};

// ---- beginning
// -----------------------------------------------------------------------------------

void measure_first(const Options& options) {
    Device other(env().indexes.front());
    const NamedLmr lmr(other, kPage, std::vector{env().peer()});
    Arm open{"open"}, map{"map"}, read{"read"}, all{"all"};
    for (Arm* arm : {&open, &map, &read, &all})
        arm->begin();
    for (std::size_t i = 0; i < options.per_round; ++i) {
        std::optional<Device> dev;
        std::byte bytes[8];
        Errno mapped, done;
        auto args = map_args(lmr.name(), LITE_RIGHT_READ);
        const auto opening = time_of([&] { dev.emplace(env().indexes.front()); });
        const auto mapping = time_of([&] { mapped = (*dev)(args); });
        expect_equal(mapped, ok, "map");
        auto first = read_args(args.lh, 0, bytes, sizeof bytes);
        const auto reading = time_of([&] { done = (*dev)(first); });
        expect_equal(done, ok, "read");
        open.add(opening);
        map.add(mapping);
        read.add(reading);
        all.add(opening + mapping + reading);
    }
    for (const Arm* arm : {&open, &map, &read, &all})
        arm->print();
}

}  // namespace

int main(int argc, char** argv) {
    lite_test::Arguments line(
        "What it costs to make memory usable. See env.hpp for what it takes from the environment.");
    Options options;
    line.option("--port", &options.port, "of the exchange");
    auto handles = line.command("handles", "of looking up a handle");
    handles.option("--counts", &options.counts, "LMRs mapped, ascending");
    handles.option("--calls", &options.calls, "to take the median of");
    auto map = line.command("map", "of mapping");
    map.required("--server", &options.server, "where \"costs serve\" runs");
    map.option("--length", &options.length, "bytes");
    map.option("--rounds", &options.rounds, "how often all take turns");
    map.option("--per-round", &options.per_round, "how often one is done in a turn");
    line.command("serve", "be the other end of map");
    auto first = line.command("first", "of opening, mapping and reading");
    line.parse(argc, argv);
    return lite_test::run_main("costs", [&] {
        if (handles)
            measure_handles(options);
        else if (map)
            Mappings(options).run();
        else if (first)
            measure_first(options);
        else
            serve(options);
    });
}
