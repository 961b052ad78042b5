// SPDX-License-Identifier: MIT
#include "workload.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace perf {

std::span<const Workload* const> workloads() {
    static const std::vector<const Workload*> all = [] {
        std::vector<const Workload*> list = operation_workloads();
        for (const auto& more : {crowd_workloads(), memory_workloads(), arena_workloads(),
                                 qos_workloads(), file_workloads()})
            list.insert(list.end(), more.begin(), more.end());
        return list;
    }();
    return all;
}

std::vector<std::uint64_t> sizes_within(const Choice& choice, std::uint32_t least,
                                        std::uint32_t most) {
    std::vector<std::uint64_t> sizes;
    std::ranges::copy_if(choice.sizes, std::back_inserter(sizes),
                         [=](std::uint32_t size) { return size >= least && size <= most; });
    return sizes;
}

std::string label_of(std::string_view arm, unsigned width) {
    return width == 1 ? std::string(arm) : fmt::format("{} x{}", arm, width);
}

}  // namespace perf
