// SPDX-License-Identifier: MIT
//
// litectl secret and start.

#include "administration.hpp"
#include "secret.hpp"

#include <uapi/lite.h>

#include <fmt/format.h>

#include <cerrno>

#include <sys/stat.h>

namespace tools {
namespace {

std::optional<secret> find_secret(const surroundings& world, const start_arguments& args,
                                  std::uint16_t port) {
    if (args.insecure) {
        complain(world.io.err, "litectl",
                 fmt::format("warning: no cluster secret: any host that reaches port {} can join "
                             "and use all memory",
                             port));
        return std::nullopt;
    }
    if (args.secret_file)
        return read_secret(*args.secret_file, world.io.in);
    struct stat status {};
    if (::lstat(world.default_secret.c_str(), &status) == 0)
        return read_secret(world.default_secret, world.io.in);
    if (errno != ENOENT)
        throw failure(fmt::format("start: cannot see whether there is a cluster secret: {}: {}",
                                  world.default_secret, system_text(errno)));
    throw failure(
        fmt::format("start: there is no cluster secret: {} does not exist; 'litectl secret' makes "
                    "one, which all members need (or --insecure: without)",
                    world.default_secret));
}

std::unique_ptr<channel> connect(const surroundings& world) {
    try {
        return world.connect();
    } catch (const module_missing&) {
        world.load();
    }
    return world.connect();
}

}  // namespace

int secret_command(const surroundings& world, const secret_arguments& args) {
    const auto file = args.file.value_or(world.default_secret);
    make_secret(file, world.io.out);
    if (file != "-")
        print(world.io.out, fmt::format("{}: made; all members need a copy\n", file));
    return status_ok;
}

int start_command(const surroundings& world, const start_arguments& args) {
    if (args.insecure && args.secret_file)
        throw usage_error("--insecure and --secret-file exclude each other");
    if (args.heartbeat_ms && args.dead_ms && *args.dead_ms <= *args.heartbeat_ms)
        throw usage_error("--dead must be longer than --heartbeat");

    std::optional<ip_address> address;
    std::uint16_t port = LITE_DEFAULT_PORT;
    if (args.address) {
        address = resolve(args.address->host);
        port = args.address->port.value_or(port);
    }
    const auto place = choose_place(rdma_devices(world.devices, !args.device || !address),
                                    world.addresses(), args.device, address);
    const auto secret = find_secret(world, args, port);

    auto request = request_for(LITE_CMD_NODE_START, args.index);
    request.put_string(LITE_A_DEV, place.device);
    request.put_bytes(LITE_A_ADDR, place.address.bytes());
    request.put_u16(LITE_A_PORT, port);
    if (args.id)
        request.put_u16(LITE_A_NODE_ID, *args.id);
    if (secret)
        request.put_bytes(LITE_A_SECRET, secret->bytes());
    if (args.insecure)
        request.put_flag(LITE_A_INSECURE);
    if (args.queue_pairs)
        request.put_u8(LITE_A_NUM_QPS, *args.queue_pairs);
    if (args.mem_limit)
        request.put_u64(LITE_A_MEM_LIMIT, *args.mem_limit);
    if (args.uid_limit)
        request.put_u64(LITE_A_UID_LIMIT, *args.uid_limit);
    if (args.root_squash)
        request.put_flag(LITE_A_ROOT_SQUASH);
    if (args.unpinned)
        request.put_flag(LITE_A_UNPINNED);
    if (args.idle)
        request.put_flag(LITE_A_IDLE);
    // With mode 0 the kernel announces no mode, and udev would let the group use the device.
    if (args.mode)
        request.put_u32(LITE_A_MODE, *args.mode ? *args.mode : 0600);
    if (args.handle_limit)
        request.put_u32(LITE_A_HANDLE_LIMIT, *args.handle_limit);
    if (args.heartbeat_ms)
        request.put_u32(LITE_A_HEARTBEAT_MS, *args.heartbeat_ms);
    if (args.dead_ms)
        request.put_u32(LITE_A_DEAD_MS, *args.dead_ms);
    if (args.op_timeout_ms)
        request.put_u32(LITE_A_OP_TIMEOUT_MS, *args.op_timeout_ms);
    if (args.orphan_ms)
        request.put_u32(LITE_A_ORPHAN_MS, *args.orphan_ms);

    const auto channel = connect(world);
    const auto lock = lock_rules(world);
    const auto answers = ask(*channel, "start", request);
    std::uint32_t index = args.index.value_or(0);
    std::uint16_t id = 0;
    if (!answers.empty()) {
        index = answers.front().u32(LITE_A_INDEX).value_or(index);
        id = answers.front().u16(LITE_A_NODE_ID).value_or(0);
    }
    restore_qos(world, *channel, index);
    print(world.io.out, fmt::format("/dev/lite{}: started on {} at {}{}\n", index, place.device,
                                    to_string(place.address, port),
                                    id ? fmt::format(" as node {}", id) : std::string()));
    return status_ok;
}

}  // namespace tools
