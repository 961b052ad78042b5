// SPDX-License-Identifier: MIT
//
// Shared by the commands of litectl: requests to the kernel, and texts.

#include "administration.hpp"

#include <uapi/lite.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>

namespace tools {
namespace {

// Text for an errno that came without the kernel's explanation; see <uapi/lite_netlink.h>.
std::string reason(std::uint8_t command, int error) {
    switch (error) {
        case EPERM:
            if (command == LITE_CMD_NODE_START)
                return "only root may do that (CAP_NET_ADMIN and CAP_SYS_RAWIO)";
            return "only root may do that (CAP_NET_ADMIN)";
        case ENODEV:
            if (command == LITE_CMD_NODE_START)
                return "no such RDMA device, or it does not have that address";
            return "no such LITE node on this machine ('litectl status' lists them)";
        case EEXIST:
            if (command == LITE_CMD_NODE_START)
                return "the index is in use by another node";
            if (command == LITE_CMD_NODE_JOIN)
                return "another node of the cluster has the id that this one was started with";
            break;
        case EBUSY:
            if (command == LITE_CMD_NODE_JOIN)
                return "this node has LMRs, or is in a cluster already";
            break;
        case EADDRNOTAVAIL:
            return "not an address of this machine";
        case EOPNOTSUPP:
            if (command == LITE_CMD_NODE_START)
                return "the RDMA device lacks what LITE needs";
            break;
        case EPROTONOSUPPORT:
            if (command == LITE_CMD_NODE_JOIN)
                return "the other node runs another version of LITE";
            break;
        case EKEYREJECTED:
            return "the cluster has another secret";
        case ENOKEY:
            return "a cluster secret is missing";
        case ETIMEDOUT:
            return "no answer in time";
        case ENOTCONN:
            return "the node is in no cluster";
        default:
            break;
    }
    return system_text(error);
}

}  // namespace

message request_for(std::uint8_t command, const std::optional<std::uint32_t>& index) {
    message request(command);
    if (index)
        request.put_u32(LITE_A_INDEX, *index);
    return request;
}

std::vector<message> ask(channel& channel, std::string_view verb, const message& request,
                         bool dump) {
    try {
        return channel.request(request, dump);
    } catch (const refusal& e) {
        throw explained(verb, request.command(), e.code(), e.what());
    }
}

failure explained(std::string_view verb, std::uint8_t command, int error, const std::string& text,
                  exit_status status) {
    return failure(fmt::format("{}: {}", verb, text.empty() ? reason(command, error) : text),
                   status);
}

std::string state_name(std::uint8_t state) {
    switch (state) {
        case LITE_NODE_IDLE:
            return "idle";
        case LITE_NODE_JOINING:
            return "joining";
        case LITE_NODE_UP:
            return "up";
        case LITE_NODE_LEAVING:
            return "leaving";
        case LITE_NODE_DOWN:
            return "down";
        case LITE_NODE_STOPPED:
            return "stopped";
        default:
            return fmt::format("state {}", state);
    }
}

std::string cause_name(std::uint8_t cause) {
    switch (cause) {
        case LITE_END_SILENCE:
            return "silence";
        case LITE_END_OP_TIMEOUT:
            return "op_timeout";
        case LITE_END_TRANSPORT:
            return "transport";
        case LITE_END_REVOKE:
            return "revoke";
        case LITE_END_CALL:
            return "call";
        case LITE_END_MESSAGE:
            return "message";
        case LITE_END_DEVICE:
            return "device";
        case LITE_END_PEER:
            return "peer";
        case LITE_END_FENCE:
            return "fence";
        case LITE_END_REPLACED:
            return "replaced";
        case LITE_END_LEAVE:
            return "leave";
        default:
            return fmt::format("cause {}", cause);
    }
}

std::string address_of(const message& node) {
    const auto bytes = node.bytes(LITE_A_ADDR);
    if (!bytes)
        return {};
    if (bytes->size() != 4 && bytes->size() != 16)
        throw failure("the kernel's answer is malformed (an address of neither 4 nor 16 bytes)");
    return to_string(ip_address(*bytes), node.u16(LITE_A_PORT).value_or(0));
}

}  // namespace tools
