// SPDX-License-Identifier: MIT
//
// The arms in the kernel: kperf.ko makes the calls and times them. See apps/kperf/device.c.
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "../kperf/kperf.h"
#include "memory.hpp"
#include "net.hpp"
#include "transport.hpp"

namespace perf {

namespace {

static_assert(static_cast<int>(Op::read) == KPERF_READ);
static_assert(static_cast<int>(Op::write) == KPERF_WRITE);
static_assert(static_cast<int>(Op::fetch_add) == KPERF_FETCH_ADD);

// Most samples of one KPERF_RUN.
constexpr std::uint64_t samples_per_run = 64 << 10;

std::string device_path() { return "/dev/" KPERF_DEVICE; }

class Session {
  public:
    Session(kperf_arm arm, const Target& target) : fd_(open_device()) {
        kperf_connect connect{};
        connect.version = KPERF_VERSION;
        connect.arm = arm;
        connect.index = target.lite_index;
        connect.node = target.node;
        connect.window = std::min(target.window, 64U);
        connect.bytes = target.bytes;
        if (arm != KPERF_LITE)
            resolve(target, connect);
        if (ioctl(fd_.get(), KPERF_CONNECT, &connect))
            throw_errno("the kernel's arm: connecting");
    }

    void run(kperf_run& run) const {
        while (ioctl(fd_.get(), KPERF_RUN, &run)) {
            if (errno != EINTR)
                throw_errno("the kernel's arm: measuring");
        }
    }

  private:
    static Fd open_device() {
        Fd fd(open(device_path().c_str(), O_RDWR | O_CLOEXEC));
        if (fd.get() < 0)
            throw_errno(fmt::format("{} (is kperf.ko loaded?)", device_path()));
        return fd;
    }

    static void resolve(const Target& target, kperf_connect& connect) {
        addrinfo hints{};
        hints.ai_socktype = SOCK_STREAM;
        addrinfo* list = nullptr;
        const int error =
            getaddrinfo(target.server.c_str(), std::to_string(target.port).c_str(), &hints, &list);
        if (error)
            throw std::runtime_error(
                fmt::format("cannot resolve '{}': {}", target.server, gai_strerror(error)));
        const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
        static_assert(sizeof(sockaddr_in6) <= sizeof connect.server);
        std::memcpy(connect.server, list->ai_addr,
                    std::min<std::size_t>(list->ai_addrlen, sizeof connect.server));
    }

    Fd fd_;
};

class KernelTransport final : public Transport {
  public:
    KernelTransport(std::string_view name, bool lite, const Target& target)
        : name_(name),
          target_(target),
          buffer_(target.bytes),
          calls_(lite ? KPERF_LITE : KPERF_RAW, target) {
        // A window needs a second connection, with completion events.
        if (!lite && target.window > 1)
            stream_.emplace(KPERF_EVENTS, target);
    }

    std::string_view name() const override { return name_; }
    std::span<std::byte> buffer() override { return buffer_.bytes(); }
    bool supports(Op op) const override { return op != Op::echo; }
    unsigned max_window() const override { return stream_ ? target_.window : 1; }

    void post(std::span<const Request> requests) override {
        for (const Request& request : requests) {
            kperf_run run = run_of(request);
            run.calls = 1;
            run.ns = UINT64_MAX;
            run.data = reinterpret_cast<std::uintptr_t>(buffer_.bytes().data());
            calls_.run(run);
            old_ = run.old;
        }
    }

    std::uint64_t collect() override { return old_; }

    std::vector<double> times(const Request& request, const Slice& slice) override {
        std::vector<std::uint32_t> ns(std::min(slice.calls, samples_per_run));
        kperf_run run = run_of(request);
        run.warm_up = warm_up_calls;
        run.calls = ns.size();
        run.ns = static_cast<std::uint64_t>(slice.time.count());
        run.samples = reinterpret_cast<std::uintptr_t>(ns.data());
        calls_.run(run);
        std::vector<double> samples(run.done);
        std::transform(ns.begin(), ns.begin() + static_cast<std::ptrdiff_t>(run.done),
                       samples.begin(), [](std::uint32_t t) { return t / 1e3; });
        return samples;
    }

    double rate(const Request& request, unsigned window, const Slice& slice) override {
        kperf_run run = run_of(request);
        run.window = window;
        run.warm_up = warm_up_calls;
        run.calls = slice.calls;
        run.ns = static_cast<std::uint64_t>(slice.time.count());
        (window > 1 ? *stream_ : calls_).run(run);
        return static_cast<double>(run.done) / (static_cast<double>(run.elapsed) / 1e9);
    }

  private:
    static kperf_run run_of(const Request& request) {
        if (request.offset || request.local || request.region)
            throw std::logic_error("the kernel's arms have one place only");
        kperf_run run{};
        run.op = static_cast<std::uint32_t>(request.op);
        run.length = request.length;
        run.window = 1;
        return run;
    }

    std::string_view name_;
    Target target_;
    Region buffer_;
    Session calls_;
    std::optional<Session> stream_;
    std::uint64_t old_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_kernel_lite_transport(const Target& target) {
    return std::make_unique<KernelTransport>("kernel-lite", true, target);
}

std::unique_ptr<Transport> make_kernel_verbs_transport(const Target& target) {
    return std::make_unique<KernelTransport>("kernel-verbs", false, target);
}

}  // namespace perf
