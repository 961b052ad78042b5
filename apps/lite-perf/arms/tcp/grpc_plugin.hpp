// SPDX-License-Identifier: MIT
//
// Interface between lite-perf and lite-perf-grpc.so, the arm grpc: gRPC's libraries are large, and
// loaded only to measure it. No exception crosses this interface.
#pragma once

#include <cstddef>
#include <cstdint>

namespace perf {

struct GrpcPlugin {
    /// Starts an echo server; null: failed, with a text in @error.
    void* (*serve)(const char* address, std::uint16_t port, char* error, std::size_t room);
    void (*stop)(void* server);

    /// Connects; null: failed, with a text in @error.
    void* (*connect)(const char* host, std::uint16_t port, char* error, std::size_t room);
    void (*close)(void* client);

    /// One echo. Returns the length of the reply, or a negative value, with a text in @error.
    std::int64_t (*call)(void* client, const void* request, std::size_t length, void* reply,
                         std::size_t reply_room, char* error, std::size_t room);
};

/// Symbol of the GrpcPlugin that the library exports.
inline constexpr const char* grpc_plugin_symbol = "lite_perf_grpc_plugin";

/// TCP port of gRPC, near those of the other arms.
constexpr std::uint16_t grpc_port(std::uint16_t port) {
    return static_cast<std::uint16_t>(port + 2);
}

}  // namespace perf
