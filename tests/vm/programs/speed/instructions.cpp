// SPDX-License-Identifier: MIT
// What small operations cost in instructions, on a machine that counts them instead of time (QEMU's
// -icount: an instruction is a nanosecond), in which LITE talks to itself:
//
//   instructions INDEX NODE SERVER
//   instructions INDEX NODE loop OPERATION
//
// INDEX is the N of /dev/liteN, NODE another node of the same machine; "lite-perf serve --arms
// verbs" is at SERVER, and kperf.ko is loaded. Prints lines "ARM OPERATION INSTRUCTIONS": medians,
// less the cost of reading the clock. Or, for a trace, repeats one of liblite's operations, and
// prints the address of a function that it calls before each of them.
#include "../../../../apps/kperf/kperf.h"
#include "../common/run_main.hpp"

#include "lite/lite.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace {

constexpr std::uint32_t length = 64;
constexpr std::uint64_t region_bytes = 4096;
constexpr std::uint16_t server_port = 18600;
// Enough calls for the averages that LITE keeps to settle, and for the median to be that of calls
// without an interrupt.
constexpr std::uint32_t warm_up = 100, calls = 501;

struct Operation {
    const char* name;
    kperf_op op;
    std::uint32_t length;
};
constexpr std::array operations{Operation{"read", KPERF_READ, length},
                                Operation{"write", KPERF_WRITE, length},
                                Operation{"fetch-add", KPERF_FETCH_ADD, sizeof(std::uint64_t)}};

void check(int err, const char* what) {
    if (err)
        throw std::system_error(-err, std::generic_category(), what);
}

std::uint32_t median(std::vector<std::uint32_t> samples) {
    const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
    std::nth_element(samples.begin(), middle, samples.end());
    return *middle;
}

void print(const char* arm, const char* operation, std::uint32_t instructions) {
    std::printf("%s %s %u\n", arm, operation, instructions);
}

// ---- from user space

template <typename F>
std::uint32_t median_of(F call) {
    using Clock = std::chrono::steady_clock;
    std::vector<std::uint32_t> samples(calls);
    for (std::uint32_t i = 0; i < warm_up; ++i)
        call();
    for (auto& sample : samples) {
        const auto begun = Clock::now();
        call();
        sample = static_cast<std::uint32_t>((Clock::now() - begun).count());
    }
    return median(std::move(samples));
}

// Marks the beginning of an operation.
[[gnu::noinline]] void begin() { asm volatile(""); }

class User {
  public:
    User(int index, std::uint32_t node) : clock_(median_of([] {})) {
        lite_ctx* ctx = nullptr;
        check(lite_open(index, &ctx), "lite_open");
        ctx_.reset(ctx);
        lite_alloc_params params{};
        params.size = sizeof params;
        params.length = region_bytes;
        params.nodes = &node;
        params.n_nodes = 1;
        params.mode = 0600;
        check(lite_alloc(ctx, &params, &lh_), "lite_alloc");
    }

    void measure() {
        // No such command: only the way into the kernel and back.
        measure("ioctl", "unknown", [this] {
            if (!ioctl(lite_fd(ctx_.get()), _IO(LITE_IOC_TYPE, 0xff), 0) || errno != ENOTTY)
                throw std::runtime_error("an unknown ioctl is known");
        });
        measure("lite", "read", [this] { read(); });
        measure("lite", "write", [this] { write(); });
        measure("lite", "fetch-add", [this] { fetch_add(); });
    }

    [[noreturn]] void loop(const std::string& operation) {
        std::printf("%p\n", reinterpret_cast<void*>(begin));
        std::fflush(stdout);
        if (operation == "read")
            repeat([this] { read(); });
        if (operation == "write")
            repeat([this] { write(); });
        if (operation == "fetch-add")
            repeat([this] { fetch_add(); });
        throw std::runtime_error("no operation " + operation);
    }

  private:
    void read() { check(lite_read(ctx_.get(), lh_, 0, buffer_, length), "lite_read"); }
    void write() { check(lite_write(ctx_.get(), lh_, 0, buffer_, length), "lite_write"); }
    void fetch_add() { check(lite_fetch_add(ctx_.get(), lh_, 0, 1, &old_), "lite_fetch_add"); }

    template <typename F>
    [[noreturn]] static void repeat(F call) {
        for (;;) {
            begin();
            call();
        }
    }

    template <typename F>
    void measure(const char* arm, const char* operation, F call) const {
        print(arm, operation, median_of(call) - clock_);
    }

    struct Close {
        void operator()(lite_ctx* ctx) const { lite_close(ctx); }
    };
    std::unique_ptr<lite_ctx, Close> ctx_;
    std::uint32_t clock_;
    lite_lh_t lh_ = 0;
    std::uint64_t old_ = 0;
    alignas(64) unsigned char buffer_[length]{};
};

// ---- in the kernel

class Session {
  public:
    Session(kperf_arm arm, int index, std::uint32_t node, const std::string& server)
        : fd_(open("/dev/" KPERF_DEVICE, O_RDWR | O_CLOEXEC)) {
        if (fd_ < 0)
            throw std::system_error(errno, std::generic_category(), "/dev/" KPERF_DEVICE);
        kperf_connect connect{};
        connect.version = KPERF_VERSION;
        connect.arm = arm;
        connect.index = static_cast<std::uint32_t>(index);
        connect.node = node;
        connect.window = 1;
        connect.bytes = region_bytes;
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(server_port);
        if (inet_pton(AF_INET, server.c_str(), &address.sin_addr) != 1)
            throw std::runtime_error("no address: " + server);
        std::memcpy(connect.server, &address, sizeof address);
        if (ioctl(fd_, KPERF_CONNECT, &connect))
            throw std::system_error(errno, std::generic_category(), "KPERF_CONNECT");
    }
    ~Session() { close(fd_); }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    std::uint32_t cost(const Operation& operation) const {
        std::vector<std::uint32_t> samples(calls);
        kperf_run run{};
        run.op = operation.op;
        run.length = operation.length;
        run.window = 1;
        run.warm_up = warm_up;
        run.calls = calls;
        run.ns = UINT64_MAX;
        run.samples = reinterpret_cast<std::uintptr_t>(samples.data());
        if (ioctl(fd_, KPERF_RUN, &run))
            throw std::system_error(errno, std::generic_category(), "KPERF_RUN");
        samples.resize(run.done);
        return median(std::move(samples));
    }

  private:
    int fd_;
};

int run(const std::vector<std::string>& args) {
    const bool looping = args.size() == 4 && args[2] == "loop";
    if (args.size() != 3 && !looping)
        throw std::runtime_error("usage: instructions INDEX NODE (SERVER | loop OPERATION)");
    const int index = std::stoi(args[0]);
    const auto node = static_cast<std::uint32_t>(std::stoul(args[1]));
    if (looping)
        User(index, node).loop(args[3]);
    const Session nothing(KPERF_NOTHING, index, node, args[2]);
    const Session raw(KPERF_RAW, index, node, args[2]);
    const Session lite(KPERF_LITE, index, node, args[2]);
    for (const auto& operation : operations)
        print("raw", operation.name, raw.cost(operation) - nothing.cost(operation));
    for (const auto& operation : operations)
        print("kernel-lite", operation.name, lite.cost(operation) - nothing.cost(operation));
    User(index, node).measure();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return lite_test::run_main("instructions", [&] { return run({argv + 1, argv + argc}); });
}
