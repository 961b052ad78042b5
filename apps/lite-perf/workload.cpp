// SPDX-License-Identifier: MIT
#include "workload.hpp"

#include <fmt/format.h>

namespace perf {

std::span<const Workload* const> workloads() {
    static const std::vector<const Workload*> all = [] {
        std::vector<const Workload*> list = operation_workloads();
        for (const auto& more : {crowd_workloads(), memory_workloads()})
            list.insert(list.end(), more.begin(), more.end());
        return list;
    }();
    return all;
}

std::string label_of(std::string_view arm, unsigned width) {
    return width == 1 ? std::string(arm) : fmt::format("{} x{}", arm, width);
}

}  // namespace perf
