// SPDX-License-Identifier: MIT
//
// Between lite-perf and lite-perf-grpc.so, the arm grpc: gRPC's libraries are large, and are loaded
// only by who measures them. Nothing throws across this border.
#pragma once

#include <cstddef>
#include <cstdint>

namespace perf {

struct GrpcPlugin {
    /// A server of echoes, or null, with an error text in @error.
    void* (*serve)(const char* address, std::uint16_t port, char* error, std::size_t room);
    void (*stop)(void* server);

    /// A connection of its own, or null, likewise.
    void* (*connect)(const char* host, std::uint16_t port, char* error, std::size_t room);
    void (*close)(void* client);

    /// One echo. The length of the reply, or negative, with an error text.
    std::int64_t (*call)(void* client, const void* request, std::size_t length, void* reply,
                         std::size_t reply_room, char* error, std::size_t room);
};

/// What the library exports.
inline constexpr const char* grpc_plugin_symbol = "lite_perf_grpc_plugin";

/// TCP port of gRPC, next to those of the other arms.
constexpr std::uint16_t grpc_port(std::uint16_t port) {
    return static_cast<std::uint16_t>(port + 2);
}

}  // namespace perf
