// SPDX-License-Identifier: MIT
#include "transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <stdexcept>

namespace perf {

namespace {

constexpr std::array all_arms{
    Arm{.name = "lite",
        .make = make_lite_transport,
        .needs_node = true,
        .one_sided = true,
        .echoes = true,
        .many_regions = true,
        .by_default = true},
    // For windows only: for single requests it is slower than lite.
    Arm{.name = "lite-vector",
        .make = make_lite_vector_transport,
        .needs_node = true,
        .one_sided = true,
        .variant_of = "lite"},
    Arm{.name = "lite-uring",
        .make = make_lite_uring_transport,
        .needs_node = true,
        .one_sided = true,
        .variant_of = "lite"},
    Arm{.name = "verbs",
        .make = make_verbs_transport,
        .one_sided = true,
        .many_regions = true,
        .by_default = true},
    Arm{.name = "verbs-events",
        .make = make_verbs_events_transport,
        .one_sided = true,
        .variant_of = "verbs"},
    Arm{.name = "tcp",
        .make = make_tcp_transport,
        .one_sided = true,
        .echoes = true,
        .by_default = true},
    // These two need kperf.ko.
    Arm{.name = "kernel-lite",
        .make = make_kernel_lite_transport,
        .needs_node = true,
        .one_sided = true,
        .in_kernel = true,
        .variant_of = "lite"},
    Arm{.name = "kernel-verbs",
        .make = make_kernel_verbs_transport,
        .one_sided = true,
        .in_kernel = true,
        .variant_of = "verbs"},
    Arm{.name = "write-imm", .make = make_write_imm_transport, .echoes = true, .by_default = true},
    Arm{.name = "send", .make = make_send_transport, .echoes = true, .by_default = true},
    // Not by default: the libraries of gRPC take long to load.
    Arm{.name = "grpc", .make = make_grpc_transport, .echoes = true},
};

}  // namespace

std::span<const Arm> arms() { return all_arms; }

const Arm& arm_of(std::string_view name) {
    const auto* found = std::ranges::find(all_arms, name, &Arm::name);
    if (found == all_arms.end())
        throw std::invalid_argument(fmt::format("there is no arm '{}'", name));
    return *found;
}

std::unique_ptr<Transport> make_transport(std::string_view name, const Target& target) {
    const Arm& arm = arm_of(name);
    if (arm.needs_node && target.node == 0)
        throw std::runtime_error(
            fmt::format("the arm {} needs --node, the id of the node to measure to", name));
    if (!arm.needs_node && target.server.empty())
        throw std::runtime_error(fmt::format("the arm {} needs --server", name));
    if (target.regions > 1 && !arm.many_regions)
        throw std::invalid_argument(fmt::format("the arm {} has one region only", name));
    return arm.make(target);
}

std::vector<double> Transport::times(const Request& request, const Slice& slice) {
    return time_calls(slice, [&] { call(request); });
}

double Transport::rate(const Request& request, unsigned window, const Slice& slice) {
    const unsigned batch = std::clamp(this->batch(window), 1U, window);
    const unsigned batches = window / batch;
    std::vector<Request> requests(std::size_t{batch} * batches, request);
    for (std::size_t i = 0; i < requests.size(); i++) {
        requests[i].offset += i * request.length;
        requests[i].local += i * request.length;
    }
    unsigned next = 0;
    auto post_next = [&] {
        post(std::span(requests).subspan(std::size_t{next} * batch, batch));
        next = next + 1 < batches ? next + 1 : 0;
    };
    // Filling the window is the warm-up; the first batch collected is not counted.
    for (unsigned i = 0; i < batches; i++)
        post_next();
    collect();
    Stopwatch watch(slice);
    do {
        post_next();
        collect();
        watch.lap(batch);
    } while (!watch.over());
    for (unsigned i = 1; i < batches; i++)
        collect();
    return static_cast<double>(watch.calls()) / watch.seconds();
}

void verify(Transport& transport) {
    const std::span<std::byte> buffer = transport.buffer();
    const auto bytes = static_cast<std::uint32_t>(std::min<std::size_t>(buffer.size(), 1 << 20));
    std::mt19937 random(std::random_device{}());
    std::vector<std::byte> pattern(bytes);
    for (std::byte& byte : pattern)
        byte = static_cast<std::byte>(random());

    auto fail = [&](std::string_view what) {
        throw std::runtime_error(fmt::format("{}: {}", transport.name(), what));
    };
    if (transport.supports(Op::echo)) {
        const std::uint32_t length = std::min(bytes, echo_max);
        std::ranges::copy(pattern, buffer.begin());
        std::ranges::fill(transport.echoed(), std::byte{0});
        transport.call({Op::echo, length});
        if (!std::equal(pattern.begin(), pattern.begin() + length, transport.echoed().begin()))
            fail("what came back is not what was sent");
    }
    if (!transport.supports(Op::write))
        return;
    std::ranges::copy(pattern, buffer.begin());
    transport.call({Op::write, bytes});
    std::ranges::fill(buffer, std::byte{0});
    transport.call({Op::read, bytes});
    if (!std::equal(pattern.begin(), pattern.end(), buffer.begin()))
        fail("what was read is not what was written");

    if (!transport.supports(Op::fetch_add) || bytes < atomic_bytes)
        return;
    std::uint64_t expected;
    std::memcpy(&expected, pattern.data(), sizeof expected);
    for (int i = 0; i < 2; i++, expected++) {
        if (transport.call({Op::fetch_add, atomic_bytes}) != expected)
            fail("fetch-add returned a wrong value");
    }
}

}  // namespace perf
