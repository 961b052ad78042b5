// SPDX-License-Identifier: MIT
//
// lite lock: runs a program while holding a lock. lite barrier: waits for other participants.

#include "commands.hpp"

#include "common/signals.hpp"
#include "common/text/format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tools {
namespace {

// Exit statuses, as a shell reports them.
constexpr int status_not_executable = 126;
constexpr int status_not_found = 127;
constexpr int status_of_signal = 128;

// Ignores a terminal's signals: they are for the program, and this process must release the lock.
class patience {
  public:
    patience() noexcept : m_int(::signal(SIGINT, SIG_IGN)), m_quit(::signal(SIGQUIT, SIG_IGN)) {}
    patience(const patience&) = delete;
    patience& operator=(const patience&) = delete;
    ~patience() { restore(); }

    void restore() const noexcept {
        ::signal(SIGINT, m_int);
        ::signal(SIGQUIT, m_quit);
    }

  private:
    using handler = void (*)(int);
    handler m_int;
    handler m_quit;
};

[[noreturn]] void become(const std::vector<std::string>& words, pid_t parent, int ready) {
    // The program must die with its parent, which holds the lock, and must not start before the
    // parent has a keeper: then the parent writes to the pipe.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    char go = 0;
    if (::getppid() != parent || ::read(ready, &go, 1) != 1)
        ::_exit(status_not_found);
    std::vector<char*> argv;
    for (const auto& word : words)
        argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    ::execvp(argv[0], argv.data());
    const int error = errno;
    const auto text = fmt::format("lite: lock: {}: {}\n", printable(words[0]), system_text(error));
    if (::write(STDERR_FILENO, text.data(), text.size()) < 0)
        ::_exit(status_not_executable);
    ::_exit(error == ENOENT ? status_not_found : status_not_executable);
}

// If this process is killed, its files are closed before PDEATHSIG kills the program, and another
// process could get the lock while the program still runs. So a child keeps them open until the
// program ends. Returns the child's pid, or -1.
pid_t keep_open(pid_t program) {
    // Not pidfd_open(): its declaration in glibc 2.36 lacks extern "C".
    const unique_fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, program, 0)));
    const pid_t keeper = pidfd ? ::fork() : -1;
    if (keeper)
        return keeper;
    for (const int signal : {SIGTERM, SIGHUP})
        ::signal(signal, SIG_IGN);
    pollfd ended{pidfd.get(), POLLIN, 0};
    while (::poll(&ended, 1, -1) <= 0)
        continue;
    ::_exit(0);
}

// Returns the status as of waitpid(2).
int await_end(pid_t child, const std::string& name) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
        if (errno != EINTR)
            throw failure(fmt::format("lock: lost {}: {}", printable(name), system_text(errno)));
    }
    return status;
}

[[noreturn]] void cannot_start(const std::string& name) {
    throw failure(fmt::format("lock: cannot start {}: {}", printable(name), system_text(errno)));
}

int run_program(const std::vector<std::string>& words, bool owner_died) {
    const patience patience;
    // If SIGCHLD is ignored, exit statuses are lost.
    const signal_setting children(SIGCHLD, SIG_DFL);
    const pid_t parent = ::getpid();
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC))
        cannot_start(words[0]);
    const unique_fd ready(ends[0]);
    const unique_fd start(ends[1]);
    const pid_t child = ::fork();
    if (child < 0)
        cannot_start(words[0]);
    if (child == 0) {
        patience.restore();
        // This is the only thread. NOLINTNEXTLINE(concurrency-mt-unsafe)
        ::setenv("LITE_OWNER_DIED", owner_died ? "1" : "0", 1);
        become(words, parent, ready.get());
    }
    const pid_t keeper = keep_open(child);
    if (keeper < 0 || ::write(start.get(), "", 1) != 1) {
        const int error = errno;
        ::kill(child, SIGKILL);
        await_end(child, words[0]);
        errno = error;
        cannot_start(words[0]);
    }
    const int status = await_end(child, words[0]);
    await_end(keeper, words[0]);
    return WIFSIGNALED(status) ? status_of_signal + WTERMSIG(status) : WEXITSTATUS(status);
}

bool take(session& session, const lock_arguments& args, const lite::region& region,
          std::uint64_t owner) {
    const std::uint32_t flags = args.shared ? LITE_LOCK_SHARED : 0U;
    const int timeout = args.timeout_ms ? static_cast<int>(*args.timeout_ms) : LITE_FOREVER;
    auto& node = session.node();
    const int err = lite_lock(node.get(), region.handle(), args.offset, owner, flags, timeout);
    if (err == -ETIMEDOUT && args.timeout_ms)
        throw failure(fmt::format("lock {}: not in time ({} ms)", printable(args.name), timeout));
    if (err == -EINVAL)
        throw failure(fmt::format("lock {}: what is at offset {} is no lock", printable(args.name),
                                  args.offset));
    if (err && err != -EOWNERDEAD)
        throw explain("lock", args.name, lite::error(err, "lock"));
    return err == -EOWNERDEAD;
}

}  // namespace

int lock_command(session& session, const lock_arguments& args) {
    if (args.offset % word_size)
        throw failure(fmt::format("lock {}: offset {} is not a multiple of {}",
                                  printable(args.name), args.offset, word_size));
    const auto region =
        map_for(session, "lock", args.name, lite::rights::write | lite::rights::atomic);
    check_range("lock", args.name, args.offset, word_size, region.length());
    auto* node = session.node().get();
    const auto owner = static_cast<std::uint64_t>(::getpid());
    const bool owner_died = take(session, args, region, owner);
    if (owner_died) {
        complain(session.io().err, "lite",
                 fmt::format("lock {}: its previous holder died", printable(args.name)));
        if (!args.shared)
            lite_lock_consistent(node, region.handle(), args.offset, owner);
    }
    int status = 0;
    try {
        status = run_program(args.command, owner_died);
    } catch (...) {
        // Otherwise the next holder would get EOWNERDEAD.
        lite_unlock(node, region.handle(), args.offset, owner);
        throw;
    }
    if (const int err = lite_unlock(node, region.handle(), args.offset, owner)) {
        const auto failed = explain("unlock", args.name, lite::error(err, "unlock"));
        complain(session.io().err, "lite", failed.what());
        return status ? status : status_failed;
    }
    return status;
}

int barrier_command(session& session, const barrier_arguments& args) {
    if (args.offset % word_size)
        throw failure(fmt::format("barrier {}: offset {} is not a multiple of {}",
                                  printable(args.name), args.offset, word_size));
    auto* node = session.node().get();
    lite::region region;
    lite_lh_t lh = 0;
    if (args.create) {
        if (const int err = lite_barrier_open(node, args.name.c_str(), args.mode, &lh))
            throw explain("barrier", args.name, lite::error(err, "barrier"));
        region = lite::region(node, lh, word_size);
    } else {
        region = map_for(session, "barrier", args.name, lite::rights::write | lite::rights::atomic);
        check_range("barrier", args.name, args.offset, word_size, region.length());
        lh = region.handle();
    }
    // With 0, lite_barrier() does not wait, but fails with EAGAIN: wait a millisecond instead.
    const int timeout =
        args.timeout_ms ? std::max(static_cast<int>(*args.timeout_ms), 1) : LITE_FOREVER;
    const int err = lite_barrier(node, lh, args.offset, args.n, timeout);
    if (err == -ETIMEDOUT && args.timeout_ms)
        throw failure(fmt::format("barrier {}: not all have come in time ({} ms)",
                                  printable(args.name), timeout));
    if (err == -EINVAL)
        throw failure(fmt::format("barrier {}: others wait with another number of participants",
                                  printable(args.name)));
    if (err)
        throw explain("barrier", args.name, lite::error(err, "barrier"));
    return status_ok;
}

}  // namespace tools
