// SPDX-License-Identifier: MIT
#include "workloads/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "report/stats.hpp"

namespace perf {

int load(LoadOptions options) {
    options.target.bytes = echo_max;
    const auto transport = make_transport(options.arm, options.target);
    if (!transport->supports(Op::echo))
        throw std::runtime_error(fmt::format("the arm {} cannot call", options.arm));
    verify(*transport);
    const Request request{Op::echo, static_cast<std::uint32_t>(options.size)};
    const auto count =
        std::max<std::uint64_t>(1, static_cast<std::uint64_t>(options.rate * options.seconds));
    std::vector<double> times;
    times.reserve(std::min<std::uint64_t>(count, 1U << 20));
    fmt::print("running\n");
    std::fflush(stdout);

    const Clock::time_point start = Clock::now();
    const Clock::time_point end = start + std::chrono::duration_cast<Clock::duration>(
                                              std::chrono::duration<double>(options.seconds));
    for (std::uint64_t i = 0; i < count; i++) {
        // After a late call the next ones follow at once, to keep the average rate if possible.
        const std::chrono::duration<double> due(static_cast<double>(i) / options.rate);
        std::this_thread::sleep_until(start + std::chrono::duration_cast<Clock::duration>(due));
        const Clock::time_point begin = Clock::now();
        if (i && begin >= end)
            break;
        transport->call(request);
        times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    }
    // The period of the last call counts in full.
    const double seconds = std::max(std::chrono::duration<double>(Clock::now() - start).count(),
                                    static_cast<double>(times.size()) / options.rate);
    fmt::print("{:.1f} calls/s, median {:.1f} us\n", static_cast<double>(times.size()) / seconds,
               summarize({times}).p50);
    return 0;
}

}  // namespace perf
