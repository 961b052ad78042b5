// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "arms/tcp/grpc_plugin.hpp"

namespace perf {

/// Serves the arm grpc, with threads of gRPC. Stops when destroyed.
class GrpcServer {
  public:
    GrpcServer(const std::string& address, std::uint16_t port);

  private:
    std::unique_ptr<void, void (*)(void*)> server_;
};

}  // namespace perf
