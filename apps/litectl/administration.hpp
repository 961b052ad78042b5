// SPDX-License-Identifier: MIT
//
// The commands of "litectl": their options, the outside world, and the functions that execute them.
// These return an exit status, or throw failure or usage_error.
#pragma once

#include "module.hpp"
#include "netlink/channel.hpp"
#include "rdma.hpp"

#include "common/error.hpp"
#include "common/io.hpp"
#include "common/program.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tools {

// The outside world; tests replace it.
struct surroundings {
    streams io;
    std::function<std::unique_ptr<channel>()> connect = [] { return connect_netlink(); };
    std::function<void()> load = load_module;
    std::function<std::vector<interface_address>()> addresses = local_addresses;
    std::filesystem::path devices = "/sys/class/infiniband";
    std::filesystem::path cgroups = "/sys/fs/cgroup";
    std::string default_secret = "/etc/lite/secret";
    std::string qos_file = "/etc/lite/qos";  // of node 0; ".N" is appended for node N
};

int run_litectl(const arguments& words, const surroundings& world);

struct start_arguments {
    std::optional<std::string> device;
    std::optional<endpoint_text> address;
    std::optional<std::uint32_t> index;
    std::optional<std::uint16_t> id;
    std::optional<std::string> secret_file;
    std::optional<std::uint8_t> queue_pairs;
    std::optional<std::uint64_t> mem_limit;
    std::optional<std::uint64_t> uid_limit;
    bool root_squash = false;
    bool unpinned = false;
    bool idle = false;
    bool insecure = false;
    std::optional<std::uint32_t> mode;
    std::optional<std::uint32_t> handle_limit;
    std::optional<std::uint32_t> heartbeat_ms;
    std::optional<std::uint32_t> dead_ms;
    std::optional<std::uint32_t> op_timeout_ms;
    std::optional<std::uint32_t> orphan_ms;
};
int start_command(const surroundings& world, const start_arguments& args);

struct secret_arguments {
    std::optional<std::string> file;  // none: the default one; "-": standard output
};
int secret_command(const surroundings& world, const secret_arguments& args);

struct join_arguments {
    endpoint_text address;
    std::optional<std::uint32_t> timeout_ms;
    std::optional<std::uint32_t> index;
};
int join_command(const surroundings& world, const join_arguments& args);

struct node_arguments {
    std::optional<std::uint32_t> index;
};
int leave_command(const surroundings& world, const node_arguments& args);
int stop_command(const surroundings& world, const node_arguments& args);

struct show_arguments {
    std::optional<std::uint32_t> index;
    bool json = false;
};
int nodes_command(const surroundings& world, const show_arguments& args);
int status_command(const surroundings& world, const show_arguments& args);
int stats_command(const surroundings& world, const show_arguments& args);
int events_command(const surroundings& world, const show_arguments& args);

struct qos_arguments {
    std::optional<std::uint32_t> index;
    std::optional<std::uint8_t> mode;     // enum lite_qos_mode
    std::optional<std::uint8_t> tenants;  // enum lite_qos_tenants
    std::optional<std::uint32_t> uid;
    std::optional<std::string> cgroup;  // see class cgroups
    std::optional<std::uint32_t> weight;
    std::optional<std::uint8_t> ceiling;
    std::optional<std::uint8_t> standard;  // default class of files that the tenant opens
};
int qos_show_command(const surroundings& world, const show_arguments& args);
int qos_set_command(const surroundings& world, const qos_arguments& args);
int qos_reset_command(const surroundings& world, const qos_arguments& args);

// Makes other runs of litectl wait while the returned file is open, so that the file of rules gets
// the kernel's last state.
unique_fd lock_rules(const surroundings& world);

// Sends a node that has just started the rules in its file. Errors are only warned of. The caller
// has held lock_rules() since before the start.
void restore_qos(const surroundings& world, channel& channel, std::uint32_t index);

// none, fair, hw-sep or sw-pri. Throws usage_error.
std::uint8_t parse_qos_mode(std::string_view text);
std::uint8_t parse_qos_tenants(std::string_view text);

message request_for(std::uint8_t command, const std::optional<std::uint32_t>& index);

// Sends a request. Throws failure; if the kernel refuses the request, that of explained().
std::vector<message> ask(channel& channel, std::string_view verb, const message& request,
                         bool dump = false);

// "VERB: reason". The reason is @text, the kernel's, or else what @error means for @command.
failure explained(std::string_view verb, std::uint8_t command, int error, const std::string& text,
                  exit_status status = status_failed);

// "up", "down" and so on; "state 9" for an unknown one.
std::string state_name(std::uint8_t state);

// Name of an enum lite_end_cause.
std::string cause_name(std::uint8_t cause);

// ADDRESS:PORT of a node; empty if absent.
std::string address_of(const message& node);

}  // namespace tools
