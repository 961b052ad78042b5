// SPDX-License-Identifier: MIT
//
// litectl join, leave and stop.

#include "administration.hpp"

#include <uapi/lite.h>

#include <fmt/format.h>

#include <cerrno>
#include <chrono>

namespace tools {

namespace {

// In addition to the kernel's timeout: once admitted, the node still connects to all members.
constexpr std::chrono::seconds grace(60);

// May a node that could not join for this reason be the first of a cluster? Not after a refusal,
// which has a text. ENOTCONN: the other node is in no cluster either.
bool is_silence(std::uint32_t error, const std::string& text) {
    return text.empty() && (error == ECONNREFUSED || error == EHOSTUNREACH || error == ETIMEDOUT ||
                            error == ENOTCONN);
}

// The node's id once attempt @number has succeeded; none while it is in progress. Throws failure.
std::optional<std::uint16_t> joined(channel& channel, const std::optional<std::uint32_t>& index,
                                    std::uint32_t number) {
    const auto answers = ask(channel, "join", request_for(LITE_CMD_NODE_GET, index));
    if (answers.empty() || answers.front().u32(LITE_A_JOIN) != number)
        throw failure("join: another attempt to join has taken the place of this one");
    const auto& node = answers.front();
    const auto error = node.u32(LITE_A_JOIN_ERROR);
    if (!error)
        return std::nullopt;
    if (*error) {
        const auto text = node.string(LITE_A_JOIN_WHY).value_or("");
        throw explained("join", LITE_CMD_NODE_JOIN, static_cast<int>(*error), text,
                        is_silence(*error, text) ? status_no_answer : status_failed);
    }
    return node.u16(LITE_A_NODE_ID);
}

bool is_about(const message& event, const node_arguments& args) {
    return event.u32(LITE_A_INDEX).value_or(0) == args.index.value_or(0);
}

}  // namespace

int join_command(const surroundings& world, const join_arguments& args) {
    const auto address = resolve(args.address.host);
    auto request = request_for(LITE_CMD_NODE_JOIN, args.index);
    request.put_bytes(LITE_A_ADDR, address.bytes());
    request.put_u16(LITE_A_PORT, args.address.port.value_or(LITE_DEFAULT_PORT));
    if (args.timeout_ms)
        request.put_u32(LITE_A_TIMEOUT_MS, *args.timeout_ms);

    const auto channel = world.connect();
    std::uint32_t number = 0;
    std::optional<std::uint16_t> id;
    const auto begin = [&] {
        try {
            const auto answers = channel->request(request, false);
            if (!answers.empty())
                number = answers.front().u32(LITE_A_JOIN).value_or(0);
        } catch (const refusal& e) {
            // EINVAL: the node's own address, where no other member can be.
            throw explained("join", LITE_CMD_NODE_JOIN, e.code(), e.what(),
                            e.code() == EINVAL ? status_no_answer : status_failed);
        }
    };
    // Check after any event of this node, and after a loss of events.
    const auto look = [&] {
        id = joined(*channel, args.index, number);
        return !id;
    };
    const auto on_event = [&](const message& event) {
        return event.u32(LITE_A_INDEX).value_or(0) != args.index.value_or(0) || look();
    };
    const std::chrono::milliseconds timeout(args.timeout_ms.value_or(LITE_JOIN_TIMEOUT_DEFAULT));
    if (!channel->follow(begin, on_event, look, timeout + grace))
        throw failure("join: still in progress; 'litectl status' shows how it ends");
    print(world.io.out,
          fmt::format("/dev/lite{}: joined as node {}\n", args.index.value_or(0), *id));
    return status_ok;
}

int leave_command(const surroundings& world, const node_arguments& args) {
    const auto channel = world.connect();
    const auto begin = [&] {
        ask(*channel, "leave", request_for(LITE_CMD_NODE_LEAVE, args.index));
    };
    const auto goes_on = [&] {
        const auto answers = ask(*channel, "leave", request_for(LITE_CMD_NODE_GET, args.index));
        return !answers.empty() && answers.front().u8(LITE_A_STATE) == LITE_NODE_LEAVING;
    };
    channel->follow(
        begin, [&](const message& event) { return !is_about(event, args) || goes_on(); }, goes_on);
    return status_ok;
}

int stop_command(const surroundings& world, const node_arguments& args) {
    const auto channel = world.connect();
    const auto begin = [&] { ask(*channel, "stop", request_for(LITE_CMD_NODE_STOP, args.index)); };
    const auto on_event = [&](const message& event) {
        return !is_about(event, args) || event.u8(LITE_A_STATE) != LITE_NODE_STOPPED;
    };
    const auto on_loss = [&] {
        try {
            channel->request(request_for(LITE_CMD_NODE_GET, args.index), false);
        } catch (const refusal& refused) {
            return refused.code() != ENODEV;
        }
        return true;
    };
    channel->follow(begin, on_event, on_loss);
    return status_ok;
}

}  // namespace tools
