// SPDX-License-Identifier: MIT
//
// litectl nodes, status and stats.

#include "administration.hpp"

#include "common/text/format.hpp"
#include "common/text/table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>

namespace tools {
namespace {

using json = nlohmann::ordered_json;

template <typename T>
std::string cell(const std::optional<T>& value) {
    return value ? fmt::to_string(*value) : "-";
}

std::string size_cell(const std::optional<std::uint64_t>& value) {
    return value ? human_size(*value) : "-";
}

std::string state_cell(const message& node) {
    const auto state = node.u8(LITE_A_STATE);
    return state ? state_name(*state) : "-";
}

void warn_insecure(const surroundings& world, const std::vector<message>& nodes) {
    if (std::any_of(nodes.begin(), nodes.end(),
                    [](const message& node) { return node.flag(LITE_A_INSECURE); }))
        complain(world.io.err, "litectl",
                 "warning: there is no cluster secret (start --insecure): any host that reaches a "
                 "port can join and use all memory");
}

std::string address_cell(const message& node) {
    const auto address = address_of(node);
    return address.empty() ? "-" : address;
}

template <typename T>
json value(const std::optional<T>& value) {
    return value ? json(*value) : json();
}

void put_identity(json& object, const message& node) {
    object["id"] = value(node.u16(LITE_A_NODE_ID));
    object["state"] = node.u8(LITE_A_STATE) ? json(state_cell(node)) : json();
    const auto bytes = node.bytes(LITE_A_ADDR);
    object["address"] =
        bytes && !address_of(node).empty() ? json(ip_address(*bytes).to_string()) : json();
    object["port"] = value(node.u16(LITE_A_PORT));
    object["incarnation"] = value(node.u64(LITE_A_INCARNATION));
}

std::vector<message> sorted(std::vector<message> nodes, const auto& key) {
    std::stable_sort(nodes.begin(), nodes.end(),
                     [&](const message& a, const message& b) { return key(a) < key(b); });
    return nodes;
}

}  // namespace

int nodes_command(const surroundings& world, const show_arguments& args) {
    const auto nodes =
        sorted(ask(*world.connect(), "nodes", request_for(LITE_CMD_PEER_GET, args.index), true),
               [](const message& node) { return node.u16(LITE_A_NODE_ID); });
    if (args.json) {
        auto document = json::array();
        for (const auto& node : nodes) {
            json object;
            put_identity(object, node);
            object["self"] = node.flag(LITE_A_SELF);
            object["insecure"] = node.flag(LITE_A_INSECURE);
            document.push_back(std::move(object));
        }
        print_json(world.io.out, document);
        return status_ok;
    }
    table table({{"ID", table::align::right},
                 {"STATE"},
                 {"ADDRESS"},
                 {"INCARNATION", table::align::right},
                 {"SELF"}});
    for (const auto& node : nodes)
        table.add({cell(node.u16(LITE_A_NODE_ID)), state_cell(node), address_cell(node),
                   cell(node.u64(LITE_A_INCARNATION)), node.flag(LITE_A_SELF) ? "*" : ""});
    print(world.io.out, table.text());
    warn_insecure(world, nodes);
    return status_ok;
}

int status_command(const surroundings& world, const show_arguments& args) {
    // With an index a do request for one node, otherwise a dump of all nodes.
    const auto nodes = sorted(
        ask(*world.connect(), "status", request_for(LITE_CMD_NODE_GET, args.index), !args.index),
        [](const message& node) { return node.u32(LITE_A_INDEX); });
    if (args.json) {
        auto document = json::array();
        for (const auto& node : nodes) {
            json object;
            object["index"] = value(node.u32(LITE_A_INDEX));
            object["device"] = value(node.string(LITE_A_DEV));
            put_identity(object, node);
            object["peers"] = value(node.u32(LITE_A_PEERS));
            object["lmrs"] = value(node.u32(LITE_A_LMRS));
            object["mem_used"] = value(node.u64(LITE_A_MEM_USED));
            object["mem_limit"] = value(node.u64(LITE_A_MEM_LIMIT));
            object["uid_limit"] = value(node.u64(LITE_A_UID_LIMIT));
            object["handle_limit"] = value(node.u32(LITE_A_HANDLE_LIMIT));
            object["root_squash"] = node.flag(LITE_A_ROOT_SQUASH);
            object["unpinned"] = node.flag(LITE_A_UNPINNED);
            object["insecure"] = node.flag(LITE_A_INSECURE);
            object["qps_per_peer"] = value(node.u8(LITE_A_NUM_QPS));
            object["heartbeat_ms"] = value(node.u32(LITE_A_HEARTBEAT_MS));
            object["dead_ms"] = value(node.u32(LITE_A_DEAD_MS));
            object["op_timeout_ms"] = value(node.u32(LITE_A_OP_TIMEOUT_MS));
            object["orphan_ms"] = value(node.u32(LITE_A_ORPHAN_MS));
            document.push_back(std::move(object));
        }
        print_json(world.io.out, document);
        return status_ok;
    }
    table table({{"INDEX", table::align::right},
                 {"DEVICE"},
                 {"ID", table::align::right},
                 {"STATE"},
                 {"ADDRESS"},
                 {"PEERS", table::align::right},
                 {"LMRS", table::align::right},
                 {"USED", table::align::right},
                 {"LIMIT", table::align::right},
                 {"SECRET"}});
    for (const auto& node : nodes)
        table.add({cell(node.u32(LITE_A_INDEX)), cell(node.string(LITE_A_DEV)),
                   cell(node.u16(LITE_A_NODE_ID)), state_cell(node), address_cell(node),
                   cell(node.u32(LITE_A_PEERS)), cell(node.u32(LITE_A_LMRS)),
                   size_cell(node.u64(LITE_A_MEM_USED)), size_cell(node.u64(LITE_A_MEM_LIMIT)),
                   node.flag(LITE_A_INSECURE) ? "none" : "yes"});
    print(world.io.out, table.text());
    warn_insecure(world, nodes);
    return status_ok;
}

int stats_command(const surroundings& world, const show_arguments& args) {
    const auto counters =
        ask(*world.connect(), "stats", request_for(LITE_CMD_STATS_GET, args.index), true);
    json document = json::object();
    table table({{"COUNTER"}, {"VALUE", table::align::right}});
    for (const auto& counter : counters) {
        const auto name = counter.string(LITE_A_STAT_NAME);
        const auto sum = counter.u64(LITE_A_STAT_VALUE);
        if (!name || !sum)
            continue;
        // Only a gauge can be below 0, and only for a moment.
        const auto number = static_cast<std::int64_t>(*sum);
        document[*name] = number;
        table.add({*name, fmt::to_string(std::max<std::int64_t>(number, 0))});
    }
    if (args.json)
        print_json(world.io.out, document);
    else
        print(world.io.out, table.text());
    return status_ok;
}

}  // namespace tools
