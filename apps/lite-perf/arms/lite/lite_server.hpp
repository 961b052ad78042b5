// SPDX-License-Identifier: MIT
#pragma once

#include <lite/lite.h>

#include <memory>
#include <thread>
#include <vector>

namespace perf {

inline constexpr const char* lite_echo_name = "lite-perf-echo";

/// Serves echoes of the arm lite, with one thread per CPU. Stops when destroyed.
class LiteServer {
  public:
    explicit LiteServer(unsigned index);
    ~LiteServer();

  private:
    struct Close {
        void operator()(lite_ctx* context) const { lite_close(context); }
    };

    void run();

    std::unique_ptr<lite_ctx, Close> context_;
    std::uint32_t function_ = 0;
    std::vector<std::jthread> threads_;
};

}  // namespace perf
