// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "workload.hpp"
#include "workloads/first_byte.hpp"

namespace perf {

Field::Field(std::span<const std::string> arms, const Target& target, const Choice& choice,
             std::span<const Workload* const> workloads)
    : arms_(arms.begin(), arms.end()),
      target_(target),
      choice_(choice),
      first_name_(fmt::format("lite-perf-first-{}-{}", target.lite_index, getpid())) {
    unsigned processes = 0;
    for (const Workload* workload : workloads) {
        if (workload->processes())
            processes = *std::ranges::max_element(choice.processes);
    }
    const bool nurseries = std::ranges::any_of(workloads, &Workload::new_processes);
    Target small = target;
    small.bytes = echo_max;
    small.window = 1;
    if (std::ranges::any_of(workloads, &Workload::streaming_processes))
        add_streamers();
    for (const std::string& arm : arms_) {
        Entry& entry = entries_[arm];
        if (processes && !arm_of(arm).in_kernel)
            entry.crew.emplace(arm, small, processes);
        if (nurseries && arm_of(arm).one_sided && arm_of(arm).variant_of.empty()) {
            entry.nursery.emplace([this, arm](const Order& order) {
                Answer answer;
                answer.value = time_in_new_process([&] {
                    if (order.kind == Order::Kind::nothing)
                        return Clock::now();
                    return arm == "lite" ? first_byte_of_lite(target_.lite_index, first_name_)
                                         : first_byte_of(arm, target_);
                });
                return answer;
            });
        }
    }
}

Transport& Field::transport(std::string_view arm) {
    Entry& entry = entries_.find(arm)->second;
    if (!entry.transport) {
        entry.transport = make_transport(arm, target_);
        verify(*entry.transport);
    }
    return *entry.transport;
}

std::vector<std::string> Field::able(Op op) {
    std::vector<std::string> result;
    for (const std::string& name : arms_) {
        const Arm& arm = arm_of(name);
        if ((op == Op::echo ? arm.echoes : arm.one_sided) && transport(name).supports(op))
            result.push_back(name);
    }
    return result;
}

Transport& Field::caller(std::string_view arm, unsigned i) {
    if (!i)
        return transport(arm);
    auto& callers = entries_.find(arm)->second.callers;
    Target small = target_;
    small.bytes = echo_max;
    small.window = 1;
    while (callers.size() < i)
        callers.push_back(make_transport(arm, small));
    return *callers[i - 1];
}

void Field::add_streamers() {
    const unsigned most = *std::ranges::max_element(choice_.processes);
    if (most == 1)
        return;  // this process makes the stream
    Target large = target_;
    large.bytes = choice_.stream_bytes;
    // Each has one in flight, but the time limit must allow for those of all processes.
    large.window = most;
    large.patient = true;
    for (const std::string& arm : arms_) {
        const Arm& kind = arm_of(arm);
        if (kind.in_kernel || !kind.variant_of.empty())
            continue;
        // Native echoes are measured beside a stream of verbs.
        streamers_.try_emplace(kind.one_sided ? arm : "verbs", kind.one_sided ? arm : "verbs",
                               large, most);
    }
}

Crew& Field::streamers(std::string_view arm) { return streamers_.find(arm)->second; }

Crew& Field::crew(std::string_view arm) { return entries_.find(arm)->second.crew.value(); }

double Field::first_byte(std::string_view arm) {
    // Not measured: the LMR usually exists before a process needs it.
    if (arm == "lite" && !first_lmr_)
        first_lmr_ = std::make_shared<NamedLmr>(target_, 4096, first_name_);
    return entries_.find(arm)->second.nursery.value().ask({}).value;
}

double Field::process_alone(std::string_view arm) {
    return entries_.find(arm)->second.nursery.value().ask({Order::Kind::nothing}).value;
}

}  // namespace perf
