// SPDX-License-Identifier: MIT
//
// The other end of the arms. LITE needs it for echoes only, since the kernel serves its memory.
#include "serve.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <optional>
#include <stdexcept>

#include "arms/lite/lite_server.hpp"
#include "arms/tcp/grpc_arm.hpp"
#include "arms/tcp/tcp_server.hpp"
#include "arms/verbs/verbs_echo_server.hpp"
#include "arms/verbs/verbs_server.hpp"
#include "net.hpp"

namespace perf {

namespace {

constexpr std::chrono::milliseconds start_limit{15000};

/// The writing end of a pipe, on which a child tells its parent that the server is ready.
class ReadyPipe {
  public:
    /// Returns in the child only; the parent exits when the child is ready or has failed.
    static ReadyPipe fork_behind() {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC))
            throw_errno("pipe");
        Fd reader(ends[0]);
        Fd writer(ends[1]);
        const pid_t child = fork();
        if (child < 0)
            throw_errno("fork");
        if (child > 0) {
            writer = Fd();
            _exit(await(reader.get(), child));
        }
        setsid();
        return ReadyPipe(std::move(writer));
    }

    /// Tells the parent that the server is ready, and detaches from the terminal.
    void ready() {
        const char byte = 0;
        if (write(writer_.get(), &byte, 1) != 1)
            throw_errno("write to the parent");
        const Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
        for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
            if (dup2(null.get(), fd) < 0)
                throw_errno("/dev/null");
        }
        writer_ = Fd();
    }

  private:
    explicit ReadyPipe(Fd writer) : writer_(std::move(writer)) {}

    // End of file instead of the byte: the child has printed an error and died.
    static int await(int fd, pid_t child) {
        pollfd waiting{fd, POLLIN, 0};
        if (poll(&waiting, 1, static_cast<int>(start_limit.count())) <= 0) {
            fmt::print(stderr, "lite-perf: the server does not start\n");
            kill(child, SIGKILL);
            return 1;
        }
        char byte;
        if (read(fd, &byte, 1) != 1)
            return 1;
        fmt::print("pid {}\n", child);
        if (!std::fflush(stdout))
            return 0;
        // Without the pid, the caller could not end the server.
        fmt::print(stderr, "lite-perf: write error on standard output\n");
        kill(child, SIGTERM);
        return 1;
    }

    Fd writer_;
};

/// Blocks SIGINT and SIGTERM for wait_for(). Call it before threads start: they inherit the mask.
sigset_t block_stop_signals() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    return signals;
}

void wait_for(const sigset_t& signals, std::chrono::seconds limit) {
    const Clock::time_point end = Clock::now() + limit;
    for (;;) {
        const timespec left{
            std::max<std::chrono::seconds::rep>(
                0, std::chrono::ceil<std::chrono::seconds>(end - Clock::now()).count()),
            0};
        if (sigtimedwait(&signals, nullptr, limit.count() ? &left : nullptr) >= 0 ||
            errno == EAGAIN)
            return;
    }
}

}  // namespace

int serve(const ServeOptions& options) {
    // Fork before anything is opened: verbs objects do not survive a fork.
    std::optional<ReadyPipe> parent;
    if (options.background)
        parent = ReadyPipe::fork_behind();

    const sigset_t signals = block_stop_signals();
    auto wanted = [&](std::string_view arm) { return std::ranges::count(options.arms, arm) > 0; };
    std::optional<TcpServer> tcp;
    std::optional<VerbsServer> verbs;
    std::optional<VerbsEchoServer> echo;
    std::optional<GrpcServer> grpc;
    std::optional<LiteServer> lite;
    if (wanted("tcp"))
        tcp.emplace(options.address, options.port);
    if (wanted("verbs"))
        verbs.emplace(options.address, options.port);
    if (wanted("write-imm") || wanted("send"))
        echo.emplace(options.address, options.port, options.spin);
    if (wanted("grpc"))
        grpc.emplace(options.address, options.port);
    if (wanted("lite"))
        lite.emplace(options.lite_index);
    if (!tcp && !verbs && !echo && !grpc && !lite)
        throw std::runtime_error("nothing to serve");

    fmt::print("serving {} on port {}\n", fmt::join(options.arms, ", "), options.port);
    std::fflush(stdout);
    if (parent)
        parent->ready();
    wait_for(signals, options.limit);
    return 0;
}

}  // namespace perf
