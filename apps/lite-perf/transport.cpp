// SPDX-License-Identifier: MIT
#include "transport.hpp"

#include <fmt/format.h>

#include <array>
#include <stdexcept>

namespace perf {

namespace {

struct Arm {
    std::string_view name;
    std::unique_ptr<Transport> (*make)(const Target&);
};

constexpr std::array arms{
    Arm{"lite", make_lite_transport}, Arm{"verbs", make_verbs_transport},
    Arm{"tcp", make_tcp_transport},   Arm{"write-imm", make_write_imm_transport},
    Arm{"send", make_send_transport}, Arm{"grpc", make_grpc_transport},
};

constexpr auto names = [] {
    std::array<std::string_view, arms.size()> result;
    for (std::size_t i = 0; i < arms.size(); i++)
        result[i] = arms[i].name;
    return result;
}();

}  // namespace

std::span<const std::string_view> transport_names() { return names; }

std::unique_ptr<Transport> make_transport(std::string_view name, const Target& target) {
    for (const Arm& arm : arms) {
        if (arm.name != name)
            continue;
        auto transport = arm.make(target);
        // They echo, and need no more memory than that takes.
        Target small = target;
        small.bytes = echo_max;
        transport->another_ = [make = arm.make, small] { return make(small); };
        return transport;
    }
    throw std::invalid_argument(fmt::format("there is no arm '{}'", name));
}

}  // namespace perf
