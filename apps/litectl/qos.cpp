// SPDX-License-Identifier: MIT
//
// litectl qos: the rules by which a node schedules what goes to its peers. The kernel forgets them
// when the node stops; a file keeps them until it starts again.

#include "administration.hpp"
#include "cgroup.hpp"

#include "common/io.hpp"
#include "common/text/format.hpp"
#include "common/text/table.hpp"

#include <uapi/lite.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <span>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tools {
namespace {

using json = nlohmann::ordered_json;

constexpr std::array<std::string_view, LITE_QOS_MAX + 1> modes = {"none", "fair", "hw-sep",
                                                                  "sw-pri"};

constexpr std::array<std::string_view, 2> tenant_kinds = {"uid", "cgroup"};

std::string name_in(std::span<const std::string_view> names, std::uint8_t number) {
    return number < names.size() ? std::string(names[number]) : fmt::format("#{}", number);
}

std::uint8_t number_in(std::span<const std::string_view> names, std::string_view name,
                       std::string_view what) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
        throw usage_error(fmt::format("'{}' is not a {}: {}", name, what, fmt::join(names, ", ")));
    return static_cast<std::uint8_t>(found - names.begin());
}

// The least power of two, in us, below which @share of the slices waited. @waited: LITE_A_WAITED,
// the slices that waited less than 1, 2, 4, ... us, each without those before.
std::uint64_t percentile(const std::vector<std::uint64_t>& waited, double share) {
    const auto total = std::accumulate(waited.begin(), waited.end(), std::uint64_t{0});
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < waited.size(); i++) {
        sum += waited[i];
        if (sum > 0 && static_cast<double>(sum) >= share * static_cast<double>(total))
            return std::uint64_t{1} << i;
    }
    return 0;
}

// {"uid": N} or {"cgroup": NAME}; empty if the answer has neither attribute.
json tenant_of(const surroundings& world, const message& answer, std::uint16_t uid_attribute,
               std::uint16_t cgroup_attribute) {
    json said;
    if (const auto uid = answer.u32(uid_attribute))
        said["uid"] = *uid;
    else if (const auto cgroup = answer.u64(cgroup_attribute))
        said["cgroup"] = cgroups(world.cgroups).name(*cgroup);
    return said;
}

std::string tenant_text(const json& row) {
    return row.contains("cgroup") ? row["cgroup"].get<std::string>() : row["uid"].dump();
}

json counters(const message& answer, json said) {
    std::vector<std::uint64_t> waited;
    if (const auto bytes = answer.bytes(LITE_A_WAITED)) {
        waited.resize(bytes->size() / sizeof(std::uint64_t));
        std::memcpy(waited.data(), bytes->data(), waited.size() * sizeof(std::uint64_t));
    }
    said["queued"] = answer.u64(LITE_A_QUEUED).value_or(0);
    said["in_flight"] = answer.u64(LITE_A_IN_FLIGHT).value_or(0);
    said["slices"] = answer.u64(LITE_A_SLICES).value_or(0);
    said["bytes"] = answer.u64(LITE_A_BYTES).value_or(0);
    said["waited_p50_us"] = percentile(waited, 0.5);
    said["waited_p99_us"] = percentile(waited, 0.99);
    said["waited"] = waited;
    return said;
}

// {"mode": ..., "tenants_are": "uid" or "cgroup",
//  "rules": [{"uid" or "cgroup", "weight", "ceiling", "default" if it has one}, ...],
//  "classes": [{"class", "queued", ...}, ...],
//  "tenants": [{"uid" or "cgroup", "queued", ...}, ...]}
json ask_rules(const surroundings& world, channel& channel,
               const std::optional<std::uint32_t>& index) {
    json said{{"mode", "none"},
              {"tenants_are", "uid"},
              {"rules", json::array()},
              {"classes", json::array()},
              {"tenants", json::array()}};
    for (const auto& answer : ask(channel, "qos", request_for(LITE_CMD_QOS_GET, index), true)) {
        if (const auto number = answer.u8(LITE_A_QOS_MODE)) {
            said["mode"] = name_in(modes, *number);
            said["tenants_are"] = name_in(tenant_kinds, answer.u8(LITE_A_TENANTS).value_or(0));
        } else if (auto rule = tenant_of(world, answer, LITE_A_UID, LITE_A_CGROUP); !rule.empty()) {
            rule["weight"] = answer.u32(LITE_A_WEIGHT).value_or(0);
            rule["ceiling"] = answer.u8(LITE_A_CEILING).value_or(0);
            if (const auto priority = answer.u8(LITE_A_PRIORITY).value_or(0))
                rule["default"] = priority - 1U;
            said["rules"].push_back(std::move(rule));
        } else if (const auto prio = answer.u8(LITE_A_CLASS)) {
            said["classes"].push_back(counters(answer, {{"class", *prio}}));
        } else if (auto tenant = tenant_of(world, answer, LITE_A_TENANT, LITE_A_TENANT_CGROUP);
                   !tenant.empty()) {
            said["tenants"].push_back(counters(answer, std::move(tenant)));
        }
    }
    return said;
}

std::string counters_table(const json& rows, const std::string& title) {
    table text({{title, table::align::right},
                {"QUEUED", table::align::right},
                {"IN-FLIGHT", table::align::right},
                {"SLICES", table::align::right},
                {"BYTES", table::align::right},
                {"P50-US", table::align::right},
                {"P99-US", table::align::right}});
    for (const auto& row : rows)
        if (row["slices"] != 0 || row["queued"] != 0)
            text.add({row.contains("class") ? row["class"].dump() : tenant_text(row),
                      row["queued"].dump(), row["in_flight"].dump(), row["slices"].dump(),
                      row["bytes"].dump(), row["waited_p50_us"].dump(),
                      row["waited_p99_us"].dump()});
    return text.text();
}

std::string file_of(const surroundings& world, std::uint32_t index) {
    return world.qos_file + (index ? fmt::format(".{}", index) : std::string());
}

// Replaces the file as a whole, or leaves it as it was. Throws std::system_error.
void replace_file(const std::string& path, const std::string& text) {
    auto next = path + ".XXXXXX";
    const unique_fd fd(::mkostemp(next.data(), O_CLOEXEC));
    if (!fd)
        throw std::system_error(errno, std::generic_category());
    try {
        write_full(fd.get(), std::as_bytes(std::span(text)));
        if (::fchmod(fd.get(), 0644) || ::fsync(fd.get()) ||
            std::rename(next.c_str(), path.c_str()))
            throw std::system_error(errno, std::generic_category());
    } catch (...) {
        ::unlink(next.c_str());
        throw;
    }
}

// The tenant of a rule in a form that stays valid after a reboot: {"uid": N} or {"cgroup": NAME};
// null if there is none.
json lasting_tenant(const json& rule) {
    if (!rule.is_object())
        return {};
    if (const auto group = rule.find("cgroup"); group != rule.end()) {
        // After a reboot, a number may be that of another group.
        if (const auto* name = group->get_ptr<const std::string*>();
            name && !name->empty() && !name->starts_with('#'))
            return {{"cgroup", *group}};
    } else if (const auto uid = rule.find("uid"); uid != rule.end()) {
        if (uid->is_number_unsigned() && *uid <= std::numeric_limits<std::uint32_t>::max())
            return {{"uid", *uid}};
    }
    return {};
}

bool has_rule(const json& rules, const json& tenant) {
    return std::any_of(rules.begin(), rules.end(),
                       [&](const json& rule) { return lasting_tenant(rule) == tenant; });
}

// The rules in the file. Throws failure if it is malformed: then it must not be replaced.
json rules_in(const std::string& path) {
    auto rules = json::array();
    std::ifstream file(path);
    if (!file)
        return rules;
    try {
        const auto said = json::parse(file);
        for (const auto& rule : said.at("rules").get_ref<const json::array_t&>())
            if (!lasting_tenant(rule).empty())
                rules.push_back(rule);
    } catch (const json::exception& e) {
        // Drop "[json.exception.KIND.N] " at the start.
        std::string_view why = e.what();
        why.remove_prefix(std::min(why.find(' '), why.size() - 1) + 1);
        throw failure(
            fmt::format("qos: {}: nothing was changed, as this file is wrong: {}", path, why));
    }
    return rules;
}

// Writes the kernel's rules to the node's file, or removes the file if all is as by default. A rule
// in @had, the old contents of the file, stays if the kernel has none for its tenant: it could not
// be restored, or its control group was removed or made anew. It holds again when the node starts.
// The rule of @gone, which was removed, does not stay.
void keep(const surroundings& world, channel& channel, const std::optional<std::uint32_t>& index,
          const json& had, const json& gone = {}) {
    const auto path = file_of(world, index.value_or(0));
    auto rules = ask_rules(world, channel, index);
    rules.erase("classes");
    rules.erase("tenants");
    auto& list = rules["rules"];
    list.erase(std::remove_if(list.begin(), list.end(),
                              [](const json& rule) { return lasting_tenant(rule).empty(); }),
               list.end());
    for (const auto& rule : had)
        if (const auto tenant = lasting_tenant(rule); tenant != gone && !has_rule(list, tenant))
            list.push_back(rule);
    try {
        if (rules["mode"] != "none" || rules["tenants_are"] != "uid" || !list.empty())
            replace_file(path, rules.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
        else if (::unlink(path.c_str()) && errno != ENOENT)
            throw std::system_error(errno, std::generic_category());
    } catch (const std::system_error& e) {
        throw failure(fmt::format("qos: done, but it is lost when the node stops: {}: {}", path,
                                  system_text(e.code().value())));
    }
}

// Throws std::exception if @value is no number of this type.
template <typename Number>
Number number(const json& value) {
    const auto wide = value.get<std::int64_t>();
    if (!value.is_number_integer() || wide < 0 || wide > std::numeric_limits<Number>::max())
        throw std::out_of_range(fmt::format("{} is out of range", value.dump()));
    return static_cast<Number>(wide);
}

// Parses a rule of the file. Throws std::exception.
qos_arguments rule_of(const json& rule, std::uint32_t index) {
    qos_arguments args;
    args.index = index;
    if (rule.contains("cgroup"))
        args.cgroup = rule["cgroup"].get<std::string>();
    else
        args.uid = number<std::uint32_t>(rule.at("uid"));
    args.weight = number<std::uint32_t>(rule.at("weight"));
    args.ceiling = number<std::uint8_t>(rule.at("ceiling"));
    if (rule.contains("default"))
        args.standard = number<std::uint8_t>(rule["default"]);
    return args;
}

void send_mode(channel& channel, const std::optional<std::uint32_t>& index, std::uint8_t mode) {
    auto request = request_for(LITE_CMD_QOS_SET, index);
    request.put_u8(LITE_A_QOS_MODE, mode);
    ask(channel, "qos set", request);
}

void send_tenants(channel& channel, const std::optional<std::uint32_t>& index,
                  std::uint8_t tenants) {
    auto request = request_for(LITE_CMD_QOS_SET, index);
    request.put_u8(LITE_A_TENANTS, tenants);
    ask(channel, "qos set", request);
}

message rule_request(const surroundings& world, const qos_arguments& args) {
    auto request = request_for(LITE_CMD_QOS_SET, args.index);
    if (args.cgroup)
        request.put_u64(LITE_A_CGROUP, cgroups(world.cgroups).number(*args.cgroup));
    else
        request.put_u32(LITE_A_UID, args.uid.value_or(0));
    if (args.weight)
        request.put_u32(LITE_A_WEIGHT, *args.weight);
    if (args.ceiling)
        request.put_u8(LITE_A_CEILING, *args.ceiling);
    if (args.standard)
        request.put_u8(LITE_A_PRIORITY, LITE_PRIORITY(*args.standard));
    return request;
}

}  // namespace

std::uint8_t parse_qos_mode(std::string_view text) { return number_in(modes, text, "mode"); }

std::uint8_t parse_qos_tenants(std::string_view text) {
    return number_in(tenant_kinds, text, "kind of tenants");
}

int qos_show_command(const surroundings& world, const show_arguments& args) {
    const auto rules = ask_rules(world, *world.connect(), args.index);
    if (args.json) {
        print_json(world.io.out, rules);
        return 0;
    }
    table rows({{"TENANT", table::align::right},
                {"WEIGHT", table::align::right},
                {"CEILING", table::align::right},
                {"DEFAULT", table::align::right}});
    for (const auto& rule : rules["rules"])
        rows.add({tenant_text(rule), rule["weight"].dump(), rule["ceiling"].dump(),
                  rule.contains("default") ? rule["default"].dump() : "-"});
    print(world.io.out, fmt::format("mode: {}, by {}\n{}\n{}\n{}", rules["mode"].get<std::string>(),
                                    rules["tenants_are"].get<std::string>(), rows.text(),
                                    counters_table(rules["classes"], "CLASS"),
                                    counters_table(rules["tenants"], "TENANT")));
    return 0;
}

int qos_set_command(const surroundings& world, const qos_arguments& args) {
    const bool rule = args.weight || args.ceiling || args.standard;
    if (!args.mode && !args.tenants && !rule)
        throw usage_error(
            "qos set: give a mode, the kind of tenants, or a tenant with a weight, a ceiling or a "
            "default");
    if (rule != (args.uid || args.cgroup) || (args.uid && args.cgroup))
        throw usage_error(
            "qos set: weight, ceiling and default are those of a tenant (--uid or --cgroup)");
    const auto channel = world.connect();
    const auto lock = lock_rules(world);
    const auto had = rules_in(file_of(world, args.index.value_or(0)));
    // Before anything is changed: there may be no such control group.
    const auto request = rule ? std::optional(rule_request(world, args)) : std::nullopt;
    bool changed = false;
    try {
        if (args.mode) {
            send_mode(*channel, args.index, *args.mode);
            changed = true;
        }
        if (args.tenants) {
            send_tenants(*channel, args.index, *args.tenants);
            changed = true;
        }
        if (request)
            ask(*channel, "qos set", *request);
    } catch (const failure& e) {
        if (!changed)
            throw;
        // What was changed before the failure holds.
        complain(world.io.err, "litectl", e.what());
        keep(world, *channel, args.index, had);
        return 1;
    }
    keep(world, *channel, args.index, had);
    return 0;
}

int qos_reset_command(const surroundings& world, const qos_arguments& args) {
    if (args.uid.has_value() == args.cgroup.has_value())
        throw usage_error("qos reset: give the tenant (--uid or --cgroup)");
    const auto channel = world.connect();
    const auto lock = lock_rules(world);
    const auto had = rules_in(file_of(world, args.index.value_or(0)));
    json gone;
    if (args.cgroup)
        gone["cgroup"] = cgroups(world.cgroups).path(*args.cgroup);
    else
        gone["uid"] = *args.uid;
    try {
        if (args.uid || cgroups(world.cgroups).exists(*args.cgroup))
            channel->request(rule_request(world, args), false);
    } catch (const refusal& e) {
        // The rule may be only in the file.
        if (e.code() != ENOENT || !has_rule(had, gone))
            throw explained("qos reset", LITE_CMD_QOS_SET, e.code(), e.what());
    }
    keep(world, *channel, args.index, had, gone);
    return 0;
}

// A file for the lock alone: other users could open the directory, and lock that for ever. Without
// the directory there is no lock, but nothing can be kept, either.
unique_fd lock_rules(const surroundings& world) {
    unique_fd fd(::open((world.qos_file + ".lock").c_str(),
                        O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (fd)
        ::flock(fd.get(), LOCK_EX);
    return fd;
}

void restore_qos(const surroundings& world, channel& channel, std::uint32_t index) {
    const auto path = file_of(world, index);
    std::ifstream file(path);
    if (!file)
        return;
    const auto attempt = [&](const auto& step) {
        try {
            step();
        } catch (const std::exception& e) {
            complain(world.io.err, "litectl",
                     fmt::format("warning: {}: not all rules hold: {}", path, e.what()));
        }
    };
    attempt([&] {
        const auto rules = json::parse(file);
        for (const auto& rule : rules.at("rules"))
            attempt([&] { ask(channel, "qos", rule_request(world, rule_of(rule, index))); });
        if (const auto tenants = parse_qos_tenants(rules.value("tenants_are", "uid")))
            send_tenants(channel, index, tenants);
        send_mode(channel, index, parse_qos_mode(rules.at("mode").get<std::string>()));
    });
}

}  // namespace tools
