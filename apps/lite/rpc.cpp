// SPDX-License-Identifier: MIT
//
// lite serve, call, send: functions from the command line.

#include "commands.hpp"

#include "common/signals.hpp"
#include "common/text/format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tools {
namespace {

// A signal between the check and the wait is noticed after this time.
constexpr int look_up_ms = 1000;

// Pause before a retry after ENOMEM: other requests may release memory meanwhile.
constexpr int memory_pause_ms = 100;

failure rpc_failure(std::string_view verb, std::string_view what, int err) {
    return failure(fmt::format("{} {}: {}", verb, printable(what), lite_rpc_strerror(err)));
}

// Prints what another user has sent; on a terminal only as text.
void print_foreign(int fd, std::span<const std::byte> bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (::isatty(fd) && !is_text(text))
        print(fd, printable(text));
    else
        print(fd, bytes);
}

struct exec_pipes {
    unique_fd to_child, to_child_end;
    unique_fd from_child, from_child_end;
};

void open_pipe(unique_fd& read_end, unique_fd& write_end) {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC))
        throw failure(fmt::format("serve: pipe: {}", system_text(errno)));
    read_end = unique_fd(fds[0]);
    write_end = unique_fd(fds[1]);
}

[[noreturn]] void run_child(const exec_pipes& pipes, const std::string& command) {
    ::signal(SIGPIPE, SIG_DFL);
    ::setpgid(0, 0);
    if (::dup2(pipes.to_child_end.get(), 0) >= 0 && ::dup2(pipes.from_child_end.get(), 1) >= 0)
        ::execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
}

// Feeds the request to the command as far as it reads it, and collects its output. Throws
// std::length_error if that exceeds @most bytes.
void converse(exec_pipes& pipes, std::span<const std::byte> request, std::vector<std::byte>& reply,
              std::size_t most) {
    std::array<std::byte, 4096> buffer;
    ::fcntl(pipes.to_child.get(), F_SETFL, O_NONBLOCK);
    for (;;) {
        if (request.empty())
            pipes.to_child = unique_fd();
        std::array<pollfd, 2> fds{{{pipes.from_child.get(), POLLIN, 0},
                                   {pipes.to_child ? pipes.to_child.get() : -1, POLLOUT, 0}}};
        interrupt_guard::check();
        if (::poll(fds.data(), fds.size(), look_up_ms) <= 0)
            continue;
        if (fds[1].revents) {
            const auto n = ::write(pipes.to_child.get(), request.data(), request.size());
            if (n >= 0)
                request = request.subspan(static_cast<std::size_t>(n));
            else if (errno == EPIPE)
                request = {};
        }
        if (!fds[0].revents)
            continue;
        const auto n = ::read(pipes.from_child.get(), buffer.data(), buffer.size());
        if (n <= 0)
            return;
        reply.insert(reply.end(), buffer.begin(), buffer.begin() + n);
        if (reply.size() > most)
            throw std::length_error("reply");
    }
}

// Returns the status as of waitpid(2). A command may run on after it has closed its output.
int await_end(pid_t child) {
    // Not pidfd_open(): its declaration in glibc 2.36 lacks extern "C".
    const unique_fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    pollfd ended{pidfd.get(), POLLIN, 0};
    int status = 0;
    for (;;) {
        const pid_t found = ::waitpid(child, &status, WNOHANG);
        if (found < 0)
            throw failure(fmt::format("serve: lost a command: {}", system_text(errno)));
        if (found)
            return status;
        interrupt_guard::check();
        ::poll(&ended, 1, look_up_ms);
    }
}

// Runs the command; its exit status is the status of the reply.
std::uint32_t execute(const std::string& command, const lite_rpc_request& request,
                      std::span<const std::byte> data, std::vector<std::byte>& reply,
                      std::size_t most) {
    exec_pipes pipes;
    open_pipe(pipes.to_child_end, pipes.to_child);
    open_pipe(pipes.from_child, pipes.from_child_end);
    const pid_t pid = ::fork();
    if (pid < 0)
        throw failure(fmt::format("serve: fork: {}", system_text(errno)));
    if (pid == 0) {
        ::setenv("LITE_CALLER_NODE", std::to_string(request.node).c_str(), 1);
        ::setenv("LITE_CALLER_UID", std::to_string(request.uid).c_str(), 1);
        ::setenv("LITE_CALLER_GID", std::to_string(request.gid).c_str(), 1);
        run_child(pipes, command);
    }
    // A process group of its own, so that what the shell starts can be ended with it. Parent and
    // child both set it, since either may run first.
    ::setpgid(pid, pid);
    pipes.to_child_end = unique_fd();
    pipes.from_child_end = unique_fd();
    bool too_long = false;
    int status = 0;
    try {
        try {
            converse(pipes, data, reply, most);
        } catch (const std::length_error&) {
            too_long = true;
            reply.clear();
        }
        pipes = {};
        status = await_end(pid);
    } catch (...) {
        ::kill(-pid, SIGTERM);
        ::waitpid(pid, nullptr, 0);
        throw;
    }
    if (too_long)
        return 126;
    return WIFEXITED(status) ? static_cast<std::uint32_t>(WEXITSTATUS(status))
                             : 128U + static_cast<std::uint32_t>(WTERMSIG(status));
}

class server {
  public:
    server(session& session, const serve_arguments& args)
        : m_session(session), m_args(args), m_ctx(session.node().get()), m_buffer(args.max) {}

    int run() {
        enroll();
        // A command need not read its input (SIGPIPE); its exit status is needed (SIGCHLD).
        std::optional<signal_setting> pipes, children;
        if (m_args.exec) {
            pipes.emplace(SIGPIPE, SIG_IGN);
            children.emplace(SIGCHLD, SIG_DFL);
        }
        const interrupt_guard guard;
        lite_rpc_request request{};
        std::uint32_t status = 0;
        for (std::uint64_t served = 0; !m_args.count || served < *m_args.count; served++) {
            next(request, status);
            status = answer(request);
        }
        give(request, status);
        return status_ok;
    }

  private:
    void enroll() {
        lite_rpc_params params{};
        params.size = sizeof(params);
        params.flags = m_args.shared ? LITE_RPC_SHARED : 0;
        params.name = m_args.function.name.c_str();
        params.function = m_args.function.number;
        params.mode = m_args.mode;
        params.max_request = static_cast<std::uint32_t>(m_args.max);
        params.max_reply = static_cast<std::uint32_t>(m_args.max);
        params.ring_size = static_cast<std::uint32_t>(m_args.ring);
        std::uint32_t number = 0;
        const int err = lite_rpc_register(m_ctx, &params, &number);
        if (err)
            throw rpc_failure("serve", m_args.function.text, err);
        if (!m_args.quiet)
            tools::complain(m_session.io().err, "lite", fmt::format("serving function {}", number));
    }

    // Answers the previous request and takes the next one.
    void next(lite_rpc_request& request, std::uint32_t status) {
        for (;;) {
            // Before stopping, reply to the request that was executed.
            if (interrupt_guard::pending())
                give(request, status);
            interrupt_guard::check();
            const int err =
                lite_rpc_reply_recv(m_ctx, &request, status, m_reply.data(), m_reply.size(), 0,
                                    m_buffer.data(), m_buffer.size(), look_up_ms);
            if (!err)
                return;
            if (err == -ENOMEM)
                wait_for_memory();
            else if (err != -EINTR && err != -ETIMEDOUT)
                throw rpc_failure("serve", m_args.function.text, err);
        }
    }

    // Answers the previous request, if it is a call, without taking another.
    void give(const lite_rpc_request& request, std::uint32_t status) {
        while (request.token) {
            const int err =
                lite_rpc_reply(m_ctx, request.token, status, m_reply.data(), m_reply.size());
            if (!err || err == -ENOENT)
                return;
            if (err != -ENOMEM)
                throw failure(fmt::format("serve: {}", lite_rpc_strerror(err)));
            interrupt_guard::check();
            wait_for_memory();
        }
    }

    // Other requests may have used up the node's memory for long requests and replies. Meanwhile
    // the request, or its reply, stays pending until its caller times out. A signal ends the pause.
    static void wait_for_memory() { ::poll(nullptr, 0, memory_pause_ms); }

    std::uint32_t answer(const lite_rpc_request& request) {
        const std::span<const std::byte> data(m_buffer.data(), request.length);
        m_reply.clear();
        if (m_args.exec)
            return execute(*m_args.exec, request, data, m_reply, m_args.max);
        if (m_args.echo) {
            m_reply.assign(data.begin(), data.end());
            return 0;
        }
        print_foreign(m_session.io().out, data);
        return 0;
    }

    session& m_session;
    const serve_arguments& m_args;
    lite_ctx* m_ctx;
    std::vector<std::byte> m_buffer;
    std::vector<std::byte> m_reply;
};

std::vector<std::byte> request_data(session& session, const std::optional<std::string>& data) {
    if (data && *data != "-") {
        const auto bytes = std::as_bytes(std::span(data->data(), data->size()));
        return {bytes.begin(), bytes.end()};
    }
    if (!data)
        return {};
    // One more than allowed, so that excess is noticed.
    constexpr std::size_t most = LITE_RPC_BULK_MAX + 1;
    std::vector<std::byte> bytes;
    for (std::size_t size = LITE_RPC_BYTES_MAX; bytes.size() < most; size *= 2) {
        const std::size_t before = bytes.size();
        bytes.resize(std::min(size, most));
        const auto n = read_full(session.io().in, std::span(bytes).subspan(before));
        if (before + n < bytes.size()) {
            bytes.resize(before + n);
            break;
        }
    }
    return bytes;
}

// The number of a function on a node, or a negative errno.
int find_number(session& session, const function_name& function, std::uint32_t node) {
    if (function.number)
        return static_cast<int>(function.number);
    lite_ioc_rpc_find found{};
    const int err = lite_rpc_find(session.node().get(), node, function.name.c_str(), &found);
    return err ? err : static_cast<int>(found.function);
}

std::uint32_t function_number(session& session, std::string_view verb, const call_arguments& args) {
    const int number = find_number(session, args.function, args.nodes.front());
    if (number < 0)
        throw rpc_failure(verb, args.function.text, number);
    return static_cast<std::uint32_t>(number);
}

// Calls several nodes at once. Each line of a reply gets the node's id; failures go to io.err.
class several {
  public:
    several(session& session, const call_arguments& args)
        : m_session(session),
          m_args(args),
          m_quorum(args.quorum.value_or(0)),
          m_wanted(args.quorum.value_or(args.nodes.size())) {}

    int run() {
        if (m_wanted > m_args.nodes.size())
            throw usage_error(
                fmt::format("--quorum {}: only {} nodes", m_wanted, m_args.nodes.size()));
        const auto request = request_data(m_session, m_args.data);
        find();
        // Do not call if the quorum is out of reach; without --quorum, call the nodes found.
        if (!m_legs.empty() && m_quorum <= m_legs.size())
            call(request);
        if (m_answered < m_wanted)
            throw failure(fmt::format("call {}: {} of {} nodes have answered",
                                      printable(m_args.function.text), m_answered, m_wanted));
        return m_refused ? status_failed : status_ok;
    }

  private:
    void complain(std::uint32_t node, std::string_view what) {
        tools::complain(
            m_session.io().err, "lite",
            fmt::format("call {}: node {}: {}", printable(m_args.function.text), node, what));
    }

    // A name may have a different number on each node.
    void find() {
        for (const auto node : m_args.nodes) {
            const int number = find_number(m_session, m_args.function, node);
            if (number < 0) {
                complain(node, lite_rpc_strerror(number));
                continue;
            }
            lite_rpc_leg leg{};
            leg.node = node;
            leg.function = static_cast<std::uint32_t>(number);
            m_legs.push_back(leg);
        }
    }

    void call(std::span<const std::byte> request) {
        std::vector<std::vector<std::byte>> replies(m_legs.size());
        for (std::size_t i = 0; i < m_legs.size(); i++) {
            replies[i].resize(m_args.room);
            m_legs[i].reply = replies[i].data();
            m_legs[i].room = replies[i].size();
        }
        const int n = lite_rpc_multicall(m_session.node().get(), 0, request.data(), request.size(),
                                         m_legs.data(), m_legs.size(), m_quorum,
                                         static_cast<int>(m_args.timeout));
        if (n < 0)
            throw rpc_failure("call", m_args.function.text, n);
        m_answered = static_cast<std::size_t>(n);
        for (std::size_t i = 0; i < m_legs.size(); i++)
            tell(m_legs[i], std::span(replies[i]));
    }

    void tell(const lite_rpc_leg& leg, std::span<const std::byte> reply) {
        // Cancelled because the quorum was reached.
        if (leg.error == -ECANCELED && m_answered >= m_wanted)
            return;
        if (leg.error) {
            complain(leg.node, lite_rpc_strerror(leg.error));
            return;
        }
        print_lines(leg.node, {reinterpret_cast<const char*>(reply.data()), leg.length});
        if (leg.status) {
            complain(leg.node, fmt::format("the server says {}", leg.status));
            m_refused = true;
        }
    }

    // Each line has the id, so that no reply looks like that of another node. On a terminal, a
    // carriage return could overwrite the id.
    void print_lines(std::uint32_t node, std::string_view reply) {
        const bool terminal = ::isatty(m_session.io().out);
        std::string text;
        do {
            const auto line = reply.substr(0, reply.find('\n'));
            const bool safe = !terminal || (is_text(line) && line.find('\r') == line.npos);
            text += fmt::format("{}: {}\n", node, safe ? std::string(line) : printable(line));
            reply.remove_prefix(std::min(line.size() + 1, reply.size()));
        } while (!reply.empty());
        print(m_session.io().out, text);
    }

    session& m_session;
    const call_arguments& m_args;
    std::size_t m_quorum;
    std::size_t m_wanted;
    std::size_t m_answered = 0;
    bool m_refused = false;
    std::vector<lite_rpc_leg> m_legs;
};

}  // namespace

function_name parse_function(std::string_view text) {
    function_name function;
    function.text = text;
    if (!text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos) {
        function.number = static_cast<std::uint32_t>(parse_number(text, 1, LITE_FUNCTION_MAX));
        return function;
    }
    function.name = parse_name(text);
    if (function.name.size() > LITE_FUNCTION_NAME_MAX)
        throw usage_error(
            fmt::format("'{}': longer than {} bytes", printable(text), LITE_FUNCTION_NAME_MAX));
    return function;
}

int serve_command(session& session, const serve_arguments& args) {
    return server(session, args).run();
}

int call_command(session& session, const call_arguments& args) {
    if (args.nodes.size() > 1 || args.quorum)
        return several(session, args).run();
    const auto request = request_data(session, args.data);
    const auto number = function_number(session, "call", args);
    std::vector<std::byte> reply(args.room);
    std::size_t length = 0;
    std::uint32_t status = 0;
    const int err = lite_rpc_call(session.node().get(), args.nodes.front(), number, request.data(),
                                  request.size(), reply.data(), reply.size(), &length,
                                  static_cast<int>(args.timeout), &status);
    if (err)
        throw rpc_failure("call", args.function.text, err);
    print_foreign(session.io().out, std::span(reply).first(length));
    if (status)
        throw failure(
            fmt::format("call {}: the server says {}", printable(args.function.text), status));
    return status_ok;
}

int send_command(session& session, const call_arguments& args) {
    const auto message = request_data(session, args.data);
    const auto number = function_number(session, "send", args);
    const int err = lite_rpc_send(session.node().get(), args.nodes.front(), number, message.data(),
                                  message.size(), static_cast<int>(args.timeout));
    if (err)
        throw rpc_failure("send", args.function.text, err);
    return status_ok;
}

}  // namespace tools
