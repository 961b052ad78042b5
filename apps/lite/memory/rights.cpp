// SPDX-License-Identifier: MIT
//
// lite grant, lite revoke, lite grants, lite chmod, lite chown.

#include "commands.hpp"

#include "common/text/format.hpp"
#include "common/text/table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <tuple>

namespace tools {
namespace {

void set_grant(session& session, std::string_view verb, const grant_arguments& args) {
    auto& node = session.node();
    try {
        node.grant(args.name, {args.uid, args.node, lite::rights(args.rights)});
    } catch (const lite::error& e) {
        // The general text of ENOSPC is about memory.
        if (e.code().value() == ENOSPC)
            throw failure(
                fmt::format("{} {}: it has {} grants and cannot have more, or its home "
                            "has no memory left for them",
                            verb, printable(args.name), LITE_GRANTS_MAX));
        throw explain(verb, args.name, e);
    }
}

int for_each(session& session, std::string_view verb, const std::vector<std::string>& names,
             const std::function<void(lite::context&, const std::string& name)>& change) {
    auto& node = session.node();
    int status = status_ok;
    for (const auto& name : names) {
        try {
            change(node, name);
        } catch (const lite::error& e) {
            complain(session.io().err, "lite", explain(verb, name, e).what());
            status = status_failed;
        }
    }
    return status;
}

std::vector<lite::grant> sorted_grants(session& session, const std::string& name) {
    auto& node = session.node();
    try {
        auto all = node.grants(name);
        std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
            return std::tie(a.uid, a.node) < std::tie(b.uid, b.node);
        });
        return all;
    } catch (const lite::error& e) {
        throw explain("grants", name, e);
    }
}

}  // namespace

int grant_command(session& session, const grant_arguments& args) {
    set_grant(session, "grant", args);
    return status_ok;
}

int revoke_command(session& session, const grant_arguments& args) {
    set_grant(session, "revoke", args);
    return status_ok;
}

int grants_command(session& session, const grants_arguments& args) {
    const auto all = sorted_grants(session, args.name);
    users users;

    if (args.json) {
        auto document = nlohmann::ordered_json::array();
        for (const auto& grant : all) {
            nlohmann::ordered_json object;
            object["uid"] = grant.uid;
            object["user"] = users.user(grant.uid);
            object["node"] = grant.node == lite::every_node ? nlohmann::ordered_json()
                                                            : nlohmann::ordered_json(grant.node);
            object["rights"] = rights_text(static_cast<std::uint32_t>(grant.allowed), false);
            document.push_back(std::move(object));
        }
        print_json(session.io().out, document);
        return status_ok;
    }

    table table({{"USER"}, {"NODE", table::align::right}, {"RIGHTS"}});
    for (const auto& grant : all)
        table.add({users.user(grant.uid),
                   grant.node == lite::every_node ? "all" : fmt::to_string(grant.node),
                   rights_text(static_cast<std::uint32_t>(grant.allowed))});
    print(session.io().out, table.text());
    return status_ok;
}

int chmod_command(session& session, const chmod_arguments& args) {
    return for_each(session, "chmod", args.names, [&](lite::context& node, const auto& name) {
        const auto before = args.mode.is_relative() ? node.stat(name).info.mode : 0;
        node.chmod(name, args.mode.apply(before));
    });
}

int chown_command(session& session, const chown_arguments& args) {
    return for_each(session, "chown", args.names, [&](lite::context& node, const auto& name) {
        node.chown(name, args.to.uid, args.to.gid);
    });
}

}  // namespace tools
