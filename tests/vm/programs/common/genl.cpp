// SPDX-License-Identifier: MIT
#include "genl.hpp"

#include "process.hpp"

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace lite_test {
namespace {

constexpr std::size_t kAlign = 4;
constexpr std::size_t kHeaders = NLMSG_HDRLEN + GENL_HDRLEN;

[[noreturn]] void throw_errno(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
}

template <typename T>
T take(std::span<const std::byte> bytes, std::size_t offset = 0) {
    T value{};
    if (bytes.size() < offset + sizeof(T))
        throw Failure("netlink: a message is cut off");
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
}

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
    to.insert(to.end(), bytes.begin(), bytes.end());
    to.resize((to.size() + kAlign - 1) / kAlign * kAlign);
}

std::optional<std::span<const std::byte>> find_attribute(std::span<const std::byte> attributes,
                                                         std::uint16_t type) {
    while (attributes.size() >= sizeof(nlattr)) {
        const auto head = take<nlattr>(attributes);
        if (head.nla_len < sizeof(nlattr) || head.nla_len > attributes.size())
            throw Failure("netlink: an attribute of the kernel's has a bad length");
        if ((head.nla_type & NLA_TYPE_MASK) == type)
            return attributes.subspan(sizeof(nlattr), head.nla_len - sizeof(nlattr));
        attributes =
            attributes.subspan(std::min<std::size_t>(NLA_ALIGN(head.nla_len), attributes.size()));
    }
    return std::nullopt;
}

// The text of an error or acknowledgement, if the kernel attached one.
std::string extended_text(std::span<const std::byte> message) {
    const auto head = take<nlmsghdr>(message);
    if (!(head.nlmsg_flags & NLM_F_ACK_TLVS))
        return "";
    std::size_t at = NLMSG_HDRLEN + sizeof(nlmsgerr);
    if (!(head.nlmsg_flags & NLM_F_CAPPED))
        at += NLMSG_ALIGN(take<nlmsgerr>(message, NLMSG_HDRLEN).msg.nlmsg_len) - sizeof(nlmsghdr);
    if (at > message.size())
        return "";
    const auto found = find_attribute(message.subspan(at), NLMSGERR_ATTR_MSG);
    if (!found || found->empty())
        return "";
    return {reinterpret_cast<const char*>(found->data()), found->size() - 1};
}

}  // namespace

GenlRequest& GenlRequest::put(std::uint16_t type, std::span<const std::byte> payload) {
    const nlattr head{static_cast<std::uint16_t>(sizeof(nlattr) + payload.size()), type};
    append(attributes_, std::as_bytes(std::span(&head, 1)));
    append(attributes_, payload);
    return *this;
}

GenlRequest& GenlRequest::put_string(std::uint16_t type, std::string_view text) {
    const std::string terminated(text);
    return put(type, std::as_bytes(std::span(terminated.c_str(), terminated.size() + 1)));
}

GenlRequest& GenlRequest::put_raw(std::span<const std::byte> bytes) {
    append(attributes_, bytes);
    return *this;
}

GenlRequest& GenlRequest::put_reserved(std::uint16_t value) {
    reserved_ = value;
    return *this;
}

std::optional<std::vector<std::byte>> GenlAnswer::find(std::uint16_t type) const {
    for (const auto& message : messages) {
        const auto found = find_attribute(std::span(message).subspan(kHeaders), type);
        if (found)
            return std::vector(found->begin(), found->end());
    }
    return std::nullopt;
}

GenlSocket::GenlSocket(const std::string& family)
    : fd_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC)) {
    if (fd_ < 0)
        throw_errno("socket");
    const int on = 1;
    ::setsockopt(fd_, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
    const auto limit = patience();
    const timeval timeout{limit.count() / 1000, limit.count() % 1000 * 1000};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));

    family_ = exchange(GENL_ID_CTRL, 1,
                       GenlRequest(CTRL_CMD_GETFAMILY).put_string(CTRL_ATTR_FAMILY_NAME, family));
    const auto id = family_.value<std::uint16_t>(CTRL_ATTR_FAMILY_ID);
    if (!id) {
        ::close(fd_);
        throw std::system_error(family_.error.value, std::generic_category(),
                                "netlink family " + family);
    }
    type_ = *id;
}

GenlSocket::~GenlSocket() { ::close(fd_); }

GenlAnswer GenlSocket::ask(const GenlRequest& request) {
    return exchange(type_, LITE_GENL_VERSION, request);
}

GenlAnswer GenlSocket::exchange(std::uint16_t type, std::uint8_t version,
                                const GenlRequest& request) {
    nlmsghdr head{};
    head.nlmsg_len = static_cast<std::uint32_t>(kHeaders + request.attributes().size());
    head.nlmsg_type = type;
    head.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | request.flags());
    head.nlmsg_seq = ++sequence_;
    const genlmsghdr generic{request.command(), version, request.reserved()};
    std::vector<std::byte> bytes;
    append(bytes, std::as_bytes(std::span(&head, 1)));
    append(bytes, std::as_bytes(std::span(&generic, 1)));
    append(bytes, request.attributes());
    if (::send(fd_, bytes.data(), bytes.size(), 0) < 0) {
        // For instance an injected fault.
        return {err(errno), "", {}};
    }

    GenlAnswer answer;
    std::vector<std::byte> buffer(64 << 10);
    for (;;) {
        const auto got = ::recv(fd_, buffer.data(), buffer.size(), 0);
        // The kernel could not make the answer, or could not deliver it: the result is unknown.
        if (got < 0 && (errno == ENOBUFS || errno == EFAULT))
            return {err(errno), "", {}};
        if (got < 0)
            throw Failure(std::string("netlink: no answer: ") + std::strerror(errno));
        std::span<const std::byte> rest = std::span(buffer).first(static_cast<std::size_t>(got));
        while (rest.size() >= sizeof(nlmsghdr)) {
            const auto reply = take<nlmsghdr>(rest);
            const auto message = rest.first(reply.nlmsg_len);
            rest = rest.subspan(std::min<std::size_t>(NLMSG_ALIGN(reply.nlmsg_len), rest.size()));
            if (reply.nlmsg_seq != sequence_)
                continue;  // the late answer to a request that was given up
            if (reply.nlmsg_type == NLMSG_ERROR || reply.nlmsg_type == NLMSG_DONE) {
                answer.error = err(-take<std::int32_t>(message, NLMSG_HDRLEN));
                if (reply.nlmsg_type == NLMSG_ERROR)
                    answer.text = extended_text(message);
                return answer;
            }
            answer.messages.emplace_back(message.begin(), message.end());
        }
    }
}

}  // namespace lite_test
