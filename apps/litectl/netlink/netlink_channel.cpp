// SPDX-License-Identifier: MIT
//
// The real channel: a generic netlink socket, using libnl.

#include "netlink/channel.hpp"

#include "common/io.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include <poll.h>
#include <sys/socket.h>

namespace tools {
namespace {

// Attempts at a dump that the kernel reports as inconsistent.
constexpr int dump_attempts = 5;

// Bytes, for bursts of events, as when a large cluster breaks up.
constexpr int event_buffer_size = 1 << 20;

using socket_ptr = std::unique_ptr<nl_sock, decltype(&::nl_socket_free)>;
using callbacks_ptr = std::unique_ptr<nl_cb, decltype(&::nl_cb_put)>;

failure netlink_failure(std::string_view doing, int error) {
    return failure(fmt::format("netlink: {}: {}", doing, ::nl_geterror(error)));
}

message to_message(nlmsghdr* header) {
    const auto* generic = static_cast<const genlmsghdr*>(::nlmsg_data(header));
    message result(generic->cmd);
    int left = ::genlmsg_attrlen(generic, 0);
    for (nlattr* attr = ::genlmsg_attrdata(generic, 0); ::nla_ok(attr, left);
         attr = ::nla_next(attr, &left))
        result.put_bytes(static_cast<std::uint16_t>(::nla_type(attr)),
                         {static_cast<const std::byte*>(::nla_data(attr)),
                          static_cast<std::size_t>(::nla_len(attr))});
    return result;
}

// The kernel's explanation of an error: an attribute after @skip bytes of payload.
std::string explanation(nlmsghdr* header, std::size_t skip) {
    const auto length = static_cast<std::size_t>(::nlmsg_datalen(header));
    if (!(header->nlmsg_flags & NLM_F_ACK_TLVS) || length < skip)
        return {};
    auto* payload = static_cast<std::byte*>(::nlmsg_data(header)) + skip;
    std::array<nlattr*, NLMSGERR_ATTR_MAX + 1> attrs{};
    if (::nla_parse(attrs.data(), NLMSGERR_ATTR_MAX, reinterpret_cast<nlattr*>(payload),
                    static_cast<int>(length - skip), nullptr) < 0 ||
        !attrs[NLMSGERR_ATTR_MSG])
        return {};
    const auto* text = static_cast<const char*>(::nla_data(attrs[NLMSGERR_ATTR_MSG]));
    return {text, ::strnlen(text, static_cast<std::size_t>(::nla_len(attrs[NLMSGERR_ATTR_MSG])))};
}

// The answer to one request. libnl, which is C, calls these functions: exceptions must not pass
// through it, so receive_once() throws them later.
struct conversation {
    std::vector<message> answers;
    bool done = false;
    int error = 0;  // positive errno
    std::string text;
    std::exception_ptr thrown;

    int guarded(const auto& body) noexcept {
        try {
            return body();
        } catch (...) {
            thrown = std::current_exception();
            done = true;
            return NL_STOP;
        }
    }

    static int on_valid(nl_msg* msg, void* arg) {
        auto& self = *static_cast<conversation*>(arg);
        return self.guarded([&] {
            self.answers.push_back(to_message(::nlmsg_hdr(msg)));
            return NL_OK;
        });
    }

    static int on_ack(nl_msg*, void* arg) {
        static_cast<conversation*>(arg)->done = true;
        return NL_STOP;
    }

    // The end of a dump carries an error number, too.
    static int on_finish(nl_msg* msg, void* arg) {
        auto& self = *static_cast<conversation*>(arg);
        return self.guarded([&] {
            auto* header = ::nlmsg_hdr(msg);
            int status = 0;
            if (::nlmsg_datalen(header) >= static_cast<int>(sizeof(status)))
                std::memcpy(&status, ::nlmsg_data(header), sizeof(status));
            if (status < 0) {
                self.error = -status;
                self.text = explanation(header, sizeof(status));
            }
            self.done = true;
            return NL_STOP;
        });
    }

    static int on_error(sockaddr_nl*, nlmsgerr* error, void* arg) {
        auto& self = *static_cast<conversation*>(arg);
        return self.guarded([&] {
            // The error is the payload of the message with this header.
            auto* header =
                reinterpret_cast<nlmsghdr*>(reinterpret_cast<std::byte*>(error) - NLMSG_HDRLEN);
            // The request follows, unless the kernel left it out.
            std::size_t skip = sizeof(nlmsgerr);
            if (!(header->nlmsg_flags & NLM_F_CAPPED))
                skip += error->msg.nlmsg_len - sizeof(nlmsghdr);
            self.error = -error->error;
            self.text = explanation(header, skip);
            self.done = true;
            // With NL_STOP libnl would return an error of its own.
            return NL_SKIP;
        });
    }
};

class netlink_channel final : public channel {
  public:
    explicit netlink_channel(const std::string& family) : m_name(family), m_socket(open_socket()) {
        m_family = ::genl_ctrl_resolve(m_socket.get(), m_name.c_str());
        if (m_family == -NLE_OBJ_NOTFOUND)
            throw module_missing("the lite module is not loaded");
        if (m_family < 0)
            throw netlink_failure("looking for the family", m_family);
    }

    std::vector<message> request(const message& request, bool dump) override {
        for (int attempt = 1;; attempt++) {
            conversation talk;
            send(request, dump);
            const int error = receive(m_socket.get(), talk);
            if (error == -NLE_DUMP_INTR && attempt < dump_attempts)
                continue;
            if (talk.error)
                throw refusal(talk.error, talk.text);
            if (error < 0)
                throw netlink_failure("receiving", error);
            return std::move(talk.answers);
        }
    }

    bool follow(const std::function<void()>& on_ready,
                const std::function<bool(const message&)>& on_event,
                const std::function<bool()>& on_loss,
                std::optional<std::chrono::milliseconds> timeout) override {
        const int group =
            ::genl_ctrl_resolve_grp(m_socket.get(), m_name.c_str(), LITE_GENL_MCGRP_EVENTS);
        if (group < 0)
            throw netlink_failure("looking for the events", group);

        const auto socket = open_socket();
        ::nl_socket_set_buffer_size(socket.get(), event_buffer_size, 0);
        if (const int error = ::nl_socket_add_membership(socket.get(), group))
            throw netlink_failure("subscribing to the events", error);
        on_ready();

        for (;;) {
            if (timeout && !readable(socket.get(), *timeout))
                return false;
            conversation talk;
            const int error = receive_once(socket.get(), talk, on_event_sequence);
            for (const auto& event : talk.answers)
                if (!on_event(event))
                    return true;
            // ENOBUFS, as libnl translates it.
            if (error == -NLE_NOMEM) {
                if (!on_loss())
                    return true;
            } else if (error < 0) {
                throw netlink_failure("receiving", error);
            }
        }
    }

  private:
    static bool readable(nl_sock* socket, std::chrono::milliseconds timeout) {
        pollfd fd{::nl_socket_get_fd(socket), POLLIN, 0};
        const auto limit = std::min<std::chrono::milliseconds::rep>(timeout.count(), INT_MAX);
        int ready;
        do
            ready = ::poll(&fd, 1, static_cast<int>(limit));
        while (ready < 0 && errno == EINTR);
        return ready != 0;
    }

    static socket_ptr open_socket() {
        socket_ptr socket(::nl_socket_alloc(), ::nl_socket_free);
        if (!socket)
            throw std::bad_alloc();
        if (const int error = ::genl_connect(socket.get()))
            throw netlink_failure("connecting", error);
        // Only for better messages; failure does not matter.
        const int on = 1;
        const int fd = ::nl_socket_get_fd(socket.get());
        ::setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
        ::setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
        return socket;
    }

    void send(const message& request, bool dump) {
        const std::unique_ptr<nl_msg, decltype(&::nlmsg_free)> msg(::nlmsg_alloc(), ::nlmsg_free);
        if (!msg)
            throw std::bad_alloc();
        if (!::genlmsg_put(msg.get(), NL_AUTO_PORT, NL_AUTO_SEQ, m_family, 0,
                           dump ? NLM_F_DUMP : NLM_F_ACK, request.command(), LITE_GENL_VERSION))
            throw std::bad_alloc();
        for (const auto& attr : request.attributes())
            if (const int error = ::nla_put(msg.get(), attr.type,
                                            static_cast<int>(attr.value.size()), attr.value.data()))
                throw netlink_failure("building a request", error);

        const int sent = ::nl_send_auto(m_socket.get(), msg.get());
        // The message may contain the cluster secret.
        auto* header = ::nlmsg_hdr(msg.get());
        ::explicit_bzero(::nlmsg_data(header), static_cast<std::size_t>(::nlmsg_datalen(header)));
        if (sent < 0)
            throw netlink_failure("sending", sent);
    }

    // Events are not answers, so do not check their sequence numbers.
    static int on_event_sequence(nl_msg*, void*) { return NL_OK; }

    static int receive_once(nl_sock* socket, conversation& talk,
                            nl_recvmsg_msg_cb_t on_sequence = nullptr) {
        const callbacks_ptr callbacks(::nl_cb_alloc(NL_CB_DEFAULT), ::nl_cb_put);
        if (!callbacks)
            throw std::bad_alloc();
        ::nl_cb_set(callbacks.get(), NL_CB_VALID, NL_CB_CUSTOM, conversation::on_valid, &talk);
        ::nl_cb_set(callbacks.get(), NL_CB_ACK, NL_CB_CUSTOM, conversation::on_ack, &talk);
        ::nl_cb_set(callbacks.get(), NL_CB_FINISH, NL_CB_CUSTOM, conversation::on_finish, &talk);
        ::nl_cb_err(callbacks.get(), NL_CB_CUSTOM, conversation::on_error, &talk);
        if (on_sequence)
            ::nl_cb_set(callbacks.get(), NL_CB_SEQ_CHECK, NL_CB_CUSTOM, on_sequence, &talk);
        const int error = ::nl_recvmsgs(socket, callbacks.get());
        if (talk.thrown)
            std::rethrow_exception(talk.thrown);
        return error;
    }

    static int receive(nl_sock* socket, conversation& talk) {
        while (!talk.done)
            if (const int error = receive_once(socket, talk); error < 0)
                return error;
        return 0;
    }

    std::string m_name;
    socket_ptr m_socket;
    int m_family = -1;
};

}  // namespace

std::unique_ptr<channel> connect_netlink(const std::string& family) {
    return std::make_unique<netlink_channel>(family);
}

}  // namespace tools
