// SPDX-License-Identifier: MIT
//
// The command line of "litectl", as documented in litectl(8).

#include "administration.hpp"

#include "common/cli.hpp"
#include "common/text/parse.hpp"

#include "version.h"

#include <uapi/lite.h>

#include <cstdint>
#include <limits>

namespace tools {
namespace {

template <typename T>
auto in_range(std::uint64_t low, std::uint64_t high = std::numeric_limits<T>::max()) {
    return [low, high](std::string_view text) {
        return static_cast<T>(parse_number(text, low, high));
    };
}

std::uint32_t parse_ms(std::string_view text) {
    return static_cast<std::uint32_t>(parse_time(text, 1, UINT32_MAX));
}

std::uint32_t parse_timeout(std::string_view text) {
    return static_cast<std::uint32_t>(parse_time(text, 1, LITE_TIMEOUT_MAX));
}

class command_line {
  public:
    command_line(CLI::App& app, const surroundings& world) : m_app(app), m_world(world) {
        add_secret();
        add_start();
        add_join();
        add_plain("leave", "leave the cluster in order", leave_command, m_leave);
        add_plain("stop", "leave the cluster and remove the node", stop_command, m_stop);
        add_show("nodes", "list the members of the cluster", nodes_command, m_nodes);
        add_show("status", "list the nodes of this machine", status_command, m_status);
        add_show("stats", "show a node's counters", stats_command, m_stats);
        add_qos();
        add_show("events", "follow the coming and going of nodes", events_command, m_events);
    }

    int execute() { return m_chosen(); }

  private:
    template <typename Arguments>
    CLI::App* add(const std::string& name, const std::string& description,
                  int (*command)(const surroundings&, const Arguments&), const Arguments& args) {
        return add_to(m_app, name, description, command, args);
    }

    template <typename Arguments>
    CLI::App* add_to(CLI::App& app, const std::string& name, const std::string& description,
                     int (*command)(const surroundings&, const Arguments&), const Arguments& args) {
        auto* sub = app.add_subcommand(name, description);
        sub->callback([this, command, &args] {
            m_chosen = [this, command, &args] { return command(m_world, args); };
        });
        return sub;
    }

    template <typename Target>
    static CLI::Option* add_value(CLI::App* sub, const std::string& name, auto parser,
                                  Target& target, const std::string& what,
                                  const std::string& description) {
        return add_parsed(*sub, name, std::move(parser), target, description)->type_name(what);
    }

    static void add_index(CLI::App* sub, std::optional<std::uint32_t>& target,
                          const std::string& description) {
        add_value(sub, "-i,--index", in_range<std::uint32_t>(0, (1 << 20) - 1), target, "N",
                  description);
    }

    void add_secret() {
        auto* sub = add("secret", "make a cluster secret", secret_command, m_secret);
        sub->add_option("FILE", m_secret.file,
                        "new file for it, or - for standard output (default: /etc/lite/secret)");
    }

    void add_start() {
        auto* sub = add("start", "make a LITE node of an RDMA device", start_command, m_start);
        auto& args = m_start;
        sub->add_option("-d,--dev", args.device, "RDMA device (default: the one with the address)")
            ->type_name("DEVICE");
        add_value(sub, "-a,--addr", parse_endpoint, args.address, "IP[:PORT]",
                  "address (default: the device's first global one, port 18500)");
        add_index(sub, args.index, "make it /dev/liteN (default: the lowest free)");
        add_value(sub, "--id", in_range<std::uint16_t>(1), args.id, "N",
                  "id in the cluster (default: given by the cluster)");
        sub->add_option("-s,--secret-file", args.secret_file,
                        "file with the cluster secret (default: /etc/lite/secret)")
            ->type_name("FILE");
        sub->add_flag("--insecure", args.insecure,
                      "no secret: any host that reaches the port can join and use all memory");
        add_value(sub, "--qps", in_range<std::uint8_t>(1, 4), args.queue_pairs, "K",
                  "queue pairs per peer, 1..4 (default: 2)");
        add_value(sub, "--mem-limit", parse_size, args.mem_limit, "SIZE",
                  "memory for LMRs (default: half of the RAM)");
        add_value(sub, "--uid-limit", parse_size, args.uid_limit, "SIZE",
                  "memory for the LMRs of one user but root (default: a fourth of --mem-limit)");
        add_value(sub, "--handle-limit", in_range<std::uint32_t>(1), args.handle_limit, "N",
                  "handles per open file (default: 1048576)");
        sub->add_flag("--root-squash", args.root_squash,
                      "root of other nodes is uid 65534 here, with what that was granted");
        sub->add_flag("--unpinned", args.unpinned,
                      "let users register memory without pinning it (unpinned LMRs)");
        sub->add_flag("--idle", args.idle, "be in no cluster until 'litectl join'");
        add_value(sub, "--mode", parse_mode, args.mode, "MODE",
                  "permissions of /dev/liteN, octal (default: 0660)");
        add_value(sub, "--heartbeat", parse_ms, args.heartbeat_ms, "TIME",
                  "time between heartbeats (default: 1s)");
        add_value(sub, "--dead", parse_ms, args.dead_ms, "TIME",
                  "silence after which a peer is down (default: 5s)");
        add_value(sub, "--op-timeout", parse_ms, args.op_timeout_ms, "TIME",
                  "how long a queue pair that has work may complete nothing (default: 10s)");
        add_value(sub, "--orphan-time", parse_ms, args.orphan_ms, "TIME",
                  "how long anonymous LMRs of a node that is down are kept (default: 10m)");
        sub->footer(
            "\nSizes: decimal or 0x hexadecimal, with K, M, G, T or P for powers of 1024."
            "\nTimes: a number with ms, s, m or h; without, of milliseconds.");
    }

    void add_join() {
        auto* sub = add("join", "join the cluster that another node is in", join_command, m_join);
        add_parsed(*sub, "ADDRESS", parse_endpoint, m_join.address,
                   "of any member: IP or host name, [IPV6] with a port; port 18500 by default")
            ->required();
        add_value(sub, "-t,--timeout", parse_timeout, m_join.timeout_ms, "TIME",
                  "time to wait for it (default: 15s)");
        add_index(sub, m_join.index, "for /dev/liteN (default: 0)");
    }

    void add_qos() {
        auto* qos = m_app.add_subcommand("qos", "the order of what goes to other nodes");
        qos->require_subcommand(1);
        auto* show = add_to(*qos, "show", "show mode and rules", qos_show_command, m_qos_show);
        show->add_flag("-j,--json", m_qos_show.json, "as JSON");
        add_index(show, m_qos_show.index, "for /dev/liteN (default: 0)");
        auto* set = add_to(*qos, "set", "change the mode, the tenants, or a tenant's rule",
                           qos_set_command, m_qos);
        add_value(
            set, "-m,--mode", parse_qos_mode, m_qos.mode, "MODE",
            "none: first come, first served; fair: by class and weight; hw-sep: queue pairs of "
            "their own for high and low classes; sw-pri: low classes are held back while high "
            "ones are loaded");
        add_value(set, "-u,--uid", in_range<std::uint32_t>(0), m_qos.uid, "UID",
                  "the user that the rule is for");
        set->add_option("-g,--cgroup", m_qos.cgroup, "the control group that the rule is for")
            ->type_name("PATH");
        add_value(set, "-t,--tenants", parse_qos_tenants, m_qos.tenants, "KIND",
                  "what shares by weight: uid, users; cgroup: control groups");
        add_value(set, "-w,--weight", in_range<std::uint32_t>(1, 1000), m_qos.weight, "N",
                  "share, 1..1000 (default: 100)");
        add_value(set, "-d,--default", in_range<std::uint8_t>(0, 7), m_qos.standard, "CLASS",
                  "class of what it does without saying otherwise (default: 4)");
        add_value(set, "-c,--ceiling", in_range<std::uint8_t>(0, 7), m_qos.ceiling, "CLASS",
                  "highest class that it may use, 0..7 (default: 4)");
        add_index(set, m_qos.index, "for /dev/liteN (default: 0)");
        auto* reset = add_to(*qos, "reset", "remove a tenant's rule", qos_reset_command, m_qos);
        add_value(reset, "-u,--uid", in_range<std::uint32_t>(0), m_qos.uid, "UID", "the user");
        reset->add_option("-g,--cgroup", m_qos.cgroup, "the control group")->type_name("PATH");
        add_index(reset, m_qos.index, "for /dev/liteN (default: 0)");
    }

    void add_plain(const std::string& name, const std::string& description,
                   int (*command)(const surroundings&, const node_arguments&),
                   node_arguments& args) {
        add_index(add(name, description, command, args), args.index, "for /dev/liteN (default: 0)");
    }

    void add_show(const std::string& name, const std::string& description,
                  int (*command)(const surroundings&, const show_arguments&),
                  show_arguments& args) {
        auto* sub = add(name, description, command, args);
        sub->add_flag("-j,--json", args.json, "as JSON");
        const bool shows_all = name == "status" || name == "events";
        add_index(sub, args.index,
                  shows_all ? "only of /dev/liteN (default: all)" : "for /dev/liteN (default: 0)");
    }

    CLI::App& m_app;
    const surroundings& m_world;
    std::function<int()> m_chosen;
    secret_arguments m_secret;
    start_arguments m_start;
    join_arguments m_join;
    node_arguments m_leave;
    node_arguments m_stop;
    show_arguments m_nodes;
    show_arguments m_status;
    show_arguments m_stats;
    show_arguments m_events;
    show_arguments m_qos_show;
    qos_arguments m_qos;
};

}  // namespace

int run_litectl(const arguments& words, const surroundings& world) {
    CLI::App app("Administration of the LITE nodes of this machine.", "litectl");
    app.set_version_flag("-V,--version", "litectl " LITE_VERSION, "print the version and exit");
    app.require_subcommand(1);
    command_line commands(app, world);
    return run(app, words, world.io, [&] { return commands.execute(); });
}

}  // namespace tools
