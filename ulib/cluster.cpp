// SPDX-License-Identifier: MIT
//
// Membership over generic netlink: what programs need of litectl(8), without depending on libnl.

#include "context.hpp"

#include "cancellation.hpp"

#include <lite/cluster.h>
#include <uapi/lite_netlink.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include <arpa/inet.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace lite::internal {
namespace {

using bytes = std::span<const std::byte>;

// Beyond the time-out: after admission the kernel connects to all members.
constexpr std::chrono::seconds join_grace(60);
constexpr std::size_t headers = NLMSG_HDRLEN + GENL_HDRLEN;

// Calls @use(type, payload) for each attribute; false if they are malformed.
bool for_each_attribute(bytes rest, const auto& use) {
    while (rest.size() >= sizeof(nlattr)) {
        nlattr head;
        std::memcpy(&head, rest.data(), sizeof(head));
        if (head.nla_len < sizeof(head) || head.nla_len > rest.size())
            return false;
        use(head.nla_type & NLA_TYPE_MASK, rest.subspan(sizeof(head), head.nla_len - sizeof(head)));
        rest = rest.subspan(std::min<std::size_t>(NLA_ALIGN(head.nla_len), rest.size()));
    }
    return true;
}

template <typename T>
void take(T& to, bytes payload) {
    if (payload.size() == sizeof(T))
        std::memcpy(&to, payload.data(), sizeof(T));
}

class request {
  public:
    request(std::uint16_t family, std::uint8_t command, std::uint16_t flags) : m_bytes(headers) {
        m_head.nlmsg_type = family;
        m_head.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
        const genlmsghdr generic{command, LITE_GENL_VERSION, 0};
        std::memcpy(m_bytes.data() + NLMSG_HDRLEN, &generic, sizeof(generic));
    }

    void put(std::uint16_t type, bytes payload) {
        const nlattr head{static_cast<std::uint16_t>(sizeof(nlattr) + payload.size()), type};
        append(std::as_bytes(std::span(&head, 1)));
        append(payload);
    }
    template <typename T>
    void put_value(std::uint16_t type, T value) {
        put(type, std::as_bytes(std::span(&value, 1)));
    }

    bytes finish(std::uint32_t sequence) {
        m_head.nlmsg_len = static_cast<std::uint32_t>(m_bytes.size());
        m_head.nlmsg_seq = sequence;
        std::memcpy(m_bytes.data(), &m_head, sizeof(m_head));
        return m_bytes;
    }

  private:
    void append(bytes what) {
        m_bytes.insert(m_bytes.end(), what.begin(), what.end());
        m_bytes.resize(NLMSG_ALIGN(m_bytes.size()));
    }

    nlmsghdr m_head{};
    std::vector<std::byte> m_bytes;
};

class netlink_socket {
  public:
    netlink_socket() : m_fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC)) {
        // Without an address of its own the socket gets no events.
        sockaddr_nl any{};
        any.nl_family = AF_NETLINK;
        if (m_fd < 0 || ::bind(m_fd, reinterpret_cast<const sockaddr*>(&any), sizeof(any)))
            m_error = -errno;
    }
    ~netlink_socket() {
        if (m_fd >= 0)
            ::close(m_fd);
    }
    netlink_socket(const netlink_socket&) = delete;
    netlink_socket& operator=(const netlink_socket&) = delete;

    int error() const { return m_error; }

    int subscribe(std::uint32_t group) {
        return ::setsockopt(m_fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group))
                   ? -errno
                   : 0;
    }

    // Sends a request and calls @use(type, payload) for each attribute of the answer, and @use(0,
    // {}) at the end of each of its messages. 0 or a negative errno.
    int ask(request& what, const auto& use) {
        const auto message = what.finish(++m_sequence);
        if (::send(m_fd, message.data(), message.size(), 0) < 0)
            return -errno;
        for (;;) {
            int err = receive();
            for (bytes rest(m_buffer); !err && rest.size() >= sizeof(nlmsghdr);) {
                nlmsghdr head;
                std::memcpy(&head, rest.data(), sizeof(head));
                if (head.nlmsg_len < sizeof(head) || head.nlmsg_len > rest.size())
                    return -EPROTO;
                const auto one = rest.first(head.nlmsg_len);
                rest =
                    rest.subspan(std::min<std::size_t>(NLMSG_ALIGN(head.nlmsg_len), rest.size()));
                if (head.nlmsg_seq != m_sequence)
                    continue;
                if (head.nlmsg_type == NLMSG_ERROR || head.nlmsg_type == NLMSG_DONE) {
                    take(err, one.size() < NLMSG_HDRLEN + sizeof(err)
                                  ? bytes()
                                  : one.subspan(NLMSG_HDRLEN, sizeof(err)));
                    return err;
                }
                if (one.size() < headers || !for_each_attribute(one.subspan(headers), use))
                    return -EPROTO;
                use(0, {});
            }
            if (err)
                return err;
        }
    }

    // Waits for a message and takes it: 0; -ETIMEDOUT; -ENOBUFS: some were lost.
    int await(std::chrono::milliseconds limit) {
        pollfd fd{m_fd, POLLIN, 0};
        int ready;
        do
            ready =
                ::poll(&fd, 1, static_cast<int>(std::min<std::int64_t>(limit.count(), INT_MAX)));
        while (ready < 0 && errno == EINTR);
        if (ready < 0)
            return -errno;
        return ready ? receive() : -ETIMEDOUT;
    }

  private:
    int receive() {
        m_buffer.resize(64 << 10);
        ssize_t got;
        do
            got = ::recv(m_fd, m_buffer.data(), m_buffer.size(), 0);
        while (got < 0 && errno == EINTR);
        m_buffer.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
        return got < 0 ? -errno : 0;
    }

    int m_fd;
    int m_error = 0;
    std::uint32_t m_sequence = 0;
    std::vector<std::byte> m_buffer;
};

// Looks up the module's family and its event group: 0 or a negative errno.
int find_family(netlink_socket& socket, std::uint16_t& family, std::uint32_t& events) {
    request what(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, NLM_F_ACK);
    what.put(CTRL_ATTR_FAMILY_NAME, std::as_bytes(std::span(LITE_GENL_NAME)));
    const auto on_group = [&](int, bytes group) {
        for_each_attribute(group, [&](int type, bytes payload) {
            if (type == CTRL_ATTR_MCAST_GRP_ID)
                take(events, payload);
        });
    };
    const int err = socket.ask(what, [&](int type, bytes payload) {
        if (type == CTRL_ATTR_FAMILY_ID)
            take(family, payload);
        else if (type == CTRL_ATTR_MCAST_GROUPS)
            for_each_attribute(payload, on_group);
    });
    return err == -ENOENT ? -ENODEV : err;
}

// What every function here begins with. Check @error first.
struct administration {
    explicit administration(int wanted) : index(node_index(wanted)) {
        error = index < 0 ? index : socket.error();
        if (!error)
            error = find_family(socket, family, events);
    }

    request about(std::uint8_t command, std::uint16_t flags = NLM_F_ACK) const {
        request what(family, command, flags);
        what.put_value(LITE_A_INDEX, static_cast<std::uint32_t>(index));
        return what;
    }

    netlink_socket socket;
    int index;
    int error;
    std::uint16_t family = 0;
    std::uint32_t events = 0;
};

void take_address(lite_member& to, bytes payload) {
    const int family = payload.size() == 4 ? AF_INET : AF_INET6;
    if (payload.size() == 4 || payload.size() == 16)
        ::inet_ntop(family, payload.data(), to.address, sizeof(to.address));
}

void take_attribute(lite_member& to, int type, bytes payload) {
    std::uint16_t number = 0;
    std::uint8_t state = 0;
    switch (type) {
        case LITE_A_NODE_ID:
            take(number, payload);
            to.id = number;
            break;
        case LITE_A_PORT:
            take(number, payload);
            to.port = number;
            break;
        case LITE_A_STATE:
            take(state, payload);
            to.state = state;
            break;
        case LITE_A_INCARNATION:
            take(to.incarnation, payload);
            break;
        case LITE_A_ADDR:
            take_address(to, payload);
            break;
        case LITE_A_SELF:
            to.flags |= LITE_MEMBER_SELF;
            break;
        case LITE_A_INSECURE:
            to.flags |= LITE_MEMBER_INSECURE;
            break;
        default:
            break;
    }
}

int list_members(int index, lite_member* members, std::size_t max, std::size_t* count) {
    administration admin(index);
    if (admin.error)
        return admin.error;
    auto what = admin.about(LITE_CMD_PEER_GET, NLM_F_DUMP);
    std::vector<lite_member> found;
    lite_member one{};
    const int err = admin.socket.ask(what, [&](int type, bytes payload) {
        if (type) {
            take_attribute(one, type, payload);
            return;
        }
        found.push_back(one);
        one = {};
    });
    if (err)
        return err;
    std::copy_n(found.begin(), std::min(max, found.size()), members);
    *count = found.size();
    return 0;
}

// The result of a join attempt: 0 or a negative errno; 1: still in progress.
int attempt_ended(administration& admin, std::uint32_t number) {
    auto what = admin.about(LITE_CMD_NODE_GET);
    std::uint32_t last = 0;
    std::uint32_t error = INT_MAX;
    const int err = admin.socket.ask(what, [&](int type, bytes payload) {
        if (type == LITE_A_JOIN)
            take(last, payload);
        else if (type == LITE_A_JOIN_ERROR)
            take(error, payload);
    });
    // The module was unloaded meanwhile, or the node is being stopped, or started anew.
    if (err == -ENOENT || err == -EBUSY)
        return -ENODEV;
    if (err)
        return err;
    // A node that has made no attempt is not the one that began this attempt.
    if (last != number)
        return last ? -EALREADY : -ENODEV;
    return error == INT_MAX ? 1 : -static_cast<int>(error);
}

int put_address(request& what, const char* address) {
    std::byte binary[16];
    std::size_t size = 4;
    if (::inet_pton(AF_INET, address, binary) != 1) {
        size = 16;
        if (::inet_pton(AF_INET6, address, binary) != 1)
            return -EINVAL;
    }
    what.put(LITE_A_ADDR, std::span(binary).first(size));
    return 0;
}

int join(int index, const char* address, std::uint16_t port, int timeout_ms) {
    if (timeout_ms < LITE_TIMEOUT_DEFAULT || timeout_ms > LITE_TIMEOUT_MAX)
        return -EINVAL;
    const bool waits = timeout_ms != LITE_NOWAIT;
    if (!waits || timeout_ms == LITE_TIMEOUT_DEFAULT)
        timeout_ms = LITE_JOIN_TIMEOUT_DEFAULT;
    administration admin(index);
    if (admin.error)
        return admin.error;
    auto what = admin.about(LITE_CMD_NODE_JOIN);
    int err = put_address(what, address);
    if (err)
        return err;
    what.put_value(LITE_A_PORT, static_cast<std::uint16_t>(port ? port : LITE_DEFAULT_PORT));
    what.put_value(LITE_A_TIMEOUT_MS, timeout_ms);

    // Subscribe first, so that the final event cannot be missed.
    netlink_socket events;
    err = events.error() ? events.error() : events.subscribe(admin.events);
    std::uint32_t number = 0;
    if (!err)
        err = admin.socket.ask(what, [&](int type, bytes payload) {
            if (type == LITE_A_JOIN)
                take(number, payload);
        });
    if (err || !waits)
        return err ? err : -EINPROGRESS;

    const bool forever = timeout_ms == LITE_FOREVER;
    const std::chrono::milliseconds limit(forever ? 0 : timeout_ms);
    for (;;) {
        // Any event, and the loss of events, is a reason to check; without a limit, silence, too.
        err = events.await(limit + join_grace);
        if (err && err != -ENOBUFS && !(forever && err == -ETIMEDOUT))
            return err;
        err = attempt_ended(admin, number);
        if (err <= 0)
            return err;
    }
}

// 0: the node is not leaving (any more); 1: it is; a negative errno.
int leaving(administration& admin) {
    auto what = admin.about(LITE_CMD_NODE_GET);
    std::uint8_t state = 0;
    const int err = admin.socket.ask(what, [&](int type, bytes payload) {
        if (type == LITE_A_STATE)
            take(state, payload);
    });
    if (err)
        return err == -ENOENT || err == -EBUSY ? -ENODEV : err;
    return state == LITE_NODE_LEAVING;
}

int leave(int index) {
    administration admin(index);
    if (admin.error)
        return admin.error;
    netlink_socket events;
    int err = events.error() ? events.error() : events.subscribe(admin.events);
    auto what = admin.about(LITE_CMD_NODE_LEAVE);
    if (!err)
        err = admin.socket.ask(what, [](int, bytes) {});
    while (!err && (err = leaving(admin)) == 1) {
        err = events.await(join_grace);
        if (err == -ENOBUFS || err == -ETIMEDOUT)
            err = 0;
    }
    return err;
}

int guarded(const auto& body) noexcept {
    const no_cancellation guard;
    try {
        return body();
    } catch (...) {
        return -ENOMEM;
    }
}

}  // namespace
}  // namespace lite::internal

int lite_members(int index, struct lite_member* members, size_t max, size_t* count) noexcept {
    return lite::internal::guarded(
        [&] { return lite::internal::list_members(index, members, max, count); });
}

int lite_join(int index, const char* address, uint16_t port, int timeout_ms) noexcept {
    return lite::internal::guarded(
        [&] { return lite::internal::join(index, address, port, timeout_ms); });
}

int lite_leave(int index) noexcept {
    return lite::internal::guarded([&] { return lite::internal::leave(index); });
}
