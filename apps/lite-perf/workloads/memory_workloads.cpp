// SPDX-License-Identifier: MIT
//
// Costs of memory, not of operations: making it usable, its size, and the number of regions.
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "net.hpp"
#include "report/text.hpp"
#include "workload.hpp"
#include "workloads/first_byte.hpp"

namespace perf {

namespace {

constexpr std::uint32_t probe_bytes = 64;
constexpr std::uint64_t page = 4096;

bool chosen(const Field& field, std::string_view arm) {
    return std::ranges::count(field.arms(), arm) > 0;
}

std::vector<std::string> user_arms_with_regions(const Field& field) {
    std::vector<std::string> result(field.arms().begin(), field.arms().end());
    std::erase_if(result, [](const std::string& arm) { return !arm_of(arm).many_regions; });
    return result;
}

class Map final : public Workload {
  public:
    std::string_view name() const override { return "map"; }
    std::string_view title() const override {
        return "Making memory usable: LITE maps it by name, verbs registers it and exchanges the "
               "key";
    }
    std::string_view unit() const override { return "us"; }
    bool lower_is_better() const override { return true; }
    std::vector<std::uint64_t> sizes(const Choice&) const override { return {1 << 20}; }

    std::vector<Contestant> contestants(Field& field, std::uint64_t size) const override {
        std::vector<Contestant> result;
        auto add = [&](const char* arm, const char* label, const std::shared_ptr<Mapper>& mapper) {
            result.push_back({arm, label, 1, [mapper](const Slice& slice) {
                                  // The slice includes the time that map() does not count.
                                  std::vector<double> samples;
                                  Stopwatch watch(slice);
                                  mapper->map();
                                  do {
                                      samples.push_back(mapper->map());
                                      watch.lap();
                                  } while (!watch.over());
                                  return samples;
                              }});
        };
        if (chosen(field, "lite")) {
            add("lite", "lite", make_lite_mapper(field.target(), size, false));
            add("lite", "lite, first", make_lite_mapper(field.target(), size, true));
        }
        if (chosen(field, "verbs"))
            add("verbs", "verbs", make_verbs_mapper(field.target(), size));
        return result;
    }
};

class FirstByte final : public Workload {
  public:
    std::string_view name() const override { return "connect"; }
    std::string_view title() const override {
        return "A new process until it has its first remote bytes: LITE opens, maps and reads; "
               "others connect";
    }
    std::string_view unit() const override { return "us"; }
    bool lower_is_better() const override { return true; }
    bool new_processes() const override { return true; }
    std::vector<std::uint64_t> sizes(const Choice&) const override { return {8}; }

    std::vector<Contestant> contestants(Field& field, std::uint64_t) const override {
        std::vector<Contestant> result;
        auto add = [&](const std::string& arm, const std::string& label, auto time) {
            result.push_back({arm, label, 1, [&field, arm, time](const Slice& slice) {
                                  std::vector<double> samples;
                                  Stopwatch watch(slice);
                                  do {
                                      samples.push_back((field.*time)(arm) / 1e3);
                                      watch.lap();
                                  } while (!watch.over());
                                  return samples;
                              }});
        };
        for (const std::string& arm : field.arms()) {
            if (arm_of(arm).one_sided && arm_of(arm).variant_of.empty())
                add(arm, arm, &Field::first_byte);
        }
        // The part that is common to all arms.
        if (!result.empty())
            add(result.front().arm, "process alone", &Field::process_alone);
        return result;
    }
};

/// READs at random places in regions of one shape, compared with the smallest shape.
class Places : public Workload {
  public:
    bool on_request() const override { return true; }
    std::string_view unit() const override { return "us"; }
    bool lower_is_better() const override { return true; }
    std::vector<std::uint64_t> sizes(const Choice&) const override { return {probe_bytes}; }

  protected:
    static void add(std::vector<Contestant>& to, const Field& field, const std::string& arm,
                    const std::string& label, std::uint32_t regions, std::uint64_t bytes) {
        Target target = field.target();
        target.bytes = bytes;
        target.regions = regions;
        target.local = page;
        target.window = 1;
        std::shared_ptr<Transport> transport = make_transport(arm, target);
        auto random = std::make_shared<std::mt19937_64>(regions);
        Contestant contestant{
            arm, label, 1, [=](const Slice& slice) {
                return time_calls(slice, [&] {
                    Request request{Op::read, probe_bytes};
                    request.offset = (*random)() % (bytes / probe_bytes) * probe_bytes;
                    request.region = static_cast<std::uint32_t>((*random)() % regions);
                    transport->call(request);
                });
            }};
        const auto first = std::ranges::find(to, arm, &Contestant::arm);
        if (first != to.end())
            contestant.against = first->label;
        to.push_back(std::move(contestant));
    }
};

class ManyRegions final : public Places {
  public:
    std::string_view name() const override { return "lmrs"; }
    std::string_view title() const override {
        return "READ of one of so many LMRs (verbs: memory regions) of 4 KB";
    }

    std::vector<Contestant> contestants(Field& field, std::uint64_t) const override {
        std::vector<Contestant> result;
        for (const std::string& arm : user_arms_with_regions(field)) {
            for (const std::uint32_t count : field.choice().counts)
                add(result, field, arm, fmt::format("{} of {}", arm, count), count, page);
        }
        return result;
    }
};

class LargeRegions final : public Places {
  public:
    std::string_view name() const override { return "lmr-size"; }
    std::string_view title() const override {
        return "READ somewhere in one LMR (verbs: memory region) of this size";
    }

    std::vector<Contestant> contestants(Field& field, std::uint64_t) const override {
        std::vector<Contestant> result;
        for (const std::string& arm : user_arms_with_regions(field)) {
            for (const std::uint64_t bytes : field.choice().lmr_sizes) {
                // A server grants no more; large native regions are not the question here.
                if (arm != "lite" && bytes > region_max)
                    continue;
                add(result, field, arm, fmt::format("{} in {}", arm, size_text(bytes)), 1, bytes);
            }
        }
        return result;
    }
};

const Map map;
const FirstByte first_byte;
const ManyRegions many_regions;
const LargeRegions large_regions;

}  // namespace

std::vector<const Workload*> memory_workloads() {
    return {&map, &first_byte, &many_regions, &large_regions};
}

}  // namespace perf
