// SPDX-License-Identifier: MIT
//
// lite ls, lite stat.

#include "commands.hpp"

#include "common/text/format.hpp"
#include "common/text/table.hpp"
#include "users.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <tuple>

namespace tools {
namespace {

std::string shown_name(const lite::lmr_info& info) {
    const auto name = lite::name_of(info);
    return name.empty() ? "(anonymous)" : printable(name);
}

nlohmann::ordered_json to_json(const lite::lmr_info& info, users& users) {
    nlohmann::ordered_json object;
    const auto name = lite::name_of(info);
    // Escaped, since JSON cannot hold bytes that are not UTF-8. All commands take this as NAME.
    object["name"] =
        name.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(printable(name));
    object["size"] = info.length;
    object["mode"] = fmt::format("{:04o}", info.mode);
    object["uid"] = info.uid;
    object["gid"] = info.gid;
    object["owner"] = users.user(info.uid);
    object["group"] = users.group(info.gid);
    object["home"] = info.home;
    object["id"] = info.id;
    object["node_count"] = info.n_nodes;
    object["extents"] = info.n_extents;
    object["mappers"] = info.n_mappers;
    return object;
}

std::vector<lite::lmr_info> sorted_list(const lite::context& node) {
    try {
        auto all = lite::list(node);
        std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
            return std::tuple(lite::name_of(a), a.home, a.id) <
                   std::tuple(lite::name_of(b), b.home, b.id);
        });
        return all;
    } catch (const lite::error& e) {
        throw failure(fmt::format("ls: {}", e.code().message()));
    }
}

}  // namespace

int list_command(session& session, const list_arguments& args) {
    const auto all = sorted_list(session.node());
    users users;

    if (args.json) {
        auto document = nlohmann::ordered_json::array();
        for (const auto& info : all)
            document.push_back(to_json(info, users));
        print_json(session.io().out, document);
        return status_ok;
    }

    table table({{"MODE"},
                 {"OWNER"},
                 {"GROUP"},
                 {"SIZE", table::align::right},
                 {"HOME", table::align::right},
                 {"NODES", table::align::right},
                 {"NAME"}});
    for (const auto& info : all)
        table.add({mode_text(info.mode), users.user(info.uid), users.group(info.gid),
                   args.human ? human_size(info.length) : fmt::to_string(info.length),
                   fmt::to_string(info.home), fmt::to_string(info.n_nodes), shown_name(info)});
    print(session.io().out, table.text());
    return status_ok;
}

int stat_command(session& session, const stat_arguments& args) {
    auto& node = session.node();
    const auto status = [&] {
        try {
            return node.stat(args.name);
        } catch (const lite::error& e) {
            throw explain("stat", args.name, e);
        }
    }();
    const auto& info = status.info;
    users users;

    if (args.json) {
        auto object = to_json(info, users);
        object["nodes"] = status.nodes;
        print_json(session.io().out, object);
        return status_ok;
    }
    print(session.io().out,
          fmt::format("   Name: {}\n"
                      "   Size: {} ({})\n"
                      "   Mode: {:04o} ({})\n"
                      "  Owner: {} ({})\n"
                      "  Group: {} ({})\n"
                      "   Home: node {}, id {}\n"
                      "  Nodes: {}\n"
                      "Extents: {}\n"
                      "Mappers: {}\n",
                      shown_name(info), byte_count(info.length), human_size(info.length), info.mode,
                      mode_text(info.mode), info.uid, users.user(info.uid), info.gid,
                      users.group(info.gid), info.home, info.id, fmt::join(status.nodes, ", "),
                      info.n_extents, info.n_mappers));
    return status_ok;
}

}  // namespace tools
