// SPDX-License-Identifier: MIT
//
// The commands of "lite" that take locks and wait at barriers. The test plays the kernel.

#include "lite_machine.hpp"

#include "common/signals.hpp"

#include <cerrno>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

// A fake kernel for locks and barriers, with the results that the test sets.
struct locks {
    explicit locks(machine& lite) {
        lite.cluster.intercept = [this](unsigned long request, void* arg) -> std::optional<int> {
            switch (request) {
                case LITE_IOC_LOCK:
                    lock = *static_cast<lite_ioc_lock*>(arg);
                    did += 'L';
                    return lock_error;
                case LITE_IOC_UNLOCK:
                    CHECK(static_cast<lite_ioc_unlock*>(arg)->owner == lock.owner);
                    CHECK(static_cast<lite_ioc_unlock*>(arg)->offset == lock.offset);
                    did += 'U';
                    return unlock_error;
                case LITE_IOC_CONSISTENT:
                    CHECK(static_cast<lite_ioc_unlock*>(arg)->owner == lock.owner);
                    did += 'C';
                    return 0;
                case LITE_IOC_BARRIER:
                    barrier = *static_cast<lite_ioc_barrier*>(arg);
                    did += 'B';
                    return barrier_error;
                default:
                    return std::nullopt;
            }
        };
    }

    std::string did;  // a letter per request, in order
    lite_ioc_lock lock{};
    lite_ioc_barrier barrier{};
    int lock_error = 0;
    int unlock_error = 0;
    int barrier_error = 0;
};

// The program's output is not redirected: tests see its exit status and its files.
result run_locked(machine& lite, const std::vector<std::string>& before,
                  const std::string& script) {
    auto words = before;
    words.insert(words.end(), {"--", "sh", "-c", script});
    return lite(words);
}

}  // namespace

TEST_CASE("lite lock", "[lite][sync]") {
    machine lite;
    lite({"alloc", "x", "4K"});
    locks l(lite);
    const temporary_directory directory;
    const auto seen = directory / "seen";

    auto r = run_locked(lite, {"lock", "x", "0x10"}, "echo $LITE_OWNER_DIED > " + seen);
    check_silent(r);
    CHECK(l.did == "LU");
    CHECK(l.lock.offset == 16);
    CHECK(l.lock.flags == 0);
    CHECK(l.lock.timeout_ms == LITE_FOREVER);
    CHECK(read_file(seen) == "0\n");
    CHECK(lite.cluster.open_handles() == 0);

    // The exit status is that of the program.
    CHECK(run_locked(lite, {"lock", "x", "0"}, "exit 3").status == 3);
    CHECK(run_locked(lite, {"lock", "x", "0"}, "kill -KILL $$").status == 128 + SIGKILL);
    CHECK(l.did == "LULULU");

    // The program gets its words unchanged.
    check_silent(run_locked(lite, {"lock", "x", "0"}, "[ -d / ]"));
    check_silent(lite({"lock", "x", "0", "--", "sh", "-c", "printf '%s|' \"$@\" > " + seen, "-",
                       "[a,b]", "[]", "{}", "--", "-s", ""}));
    CHECK(read_file(seen) == "[a,b]|[]|{}|--|-s||");

    l.did.clear();
    l.lock_error = -ETIMEDOUT;
    check_failure(run_locked(lite, {"lock", "x", "0", "-t", "1.0005s"}, "echo > " + seen),
                  "lock x: not in time (1001 ms)");
    CHECK(l.lock.timeout_ms == 1001);
    CHECK(l.lock.flags == 0);
    // A time-out of 0 means "do not wait"; the longest does not mean "for ever".
    l.lock_error = -EBUSY;
    check_failure(run_locked(lite, {"lock", "x", "0", "-st", "0"}, "echo > " + seen),
                  "lock x: another holder has the lock");
    CHECK(l.lock.timeout_ms == LITE_NOWAIT);
    CHECK(l.lock.flags == LITE_LOCK_SHARED);
    CHECK(run_locked(lite, {"lock", "x", "0", "-t", "86400000"}, "true").status == 1);
    CHECK(l.lock.timeout_ms == LITE_TIMEOUT_MAX);
    l.lock_error = -EINVAL;
    check_failure(run_locked(lite, {"lock", "x", "8"}, "true"),
                  "lock x: what is at offset 8 is no lock");
    CHECK(l.did == "LLLL");
    CHECK(read_file(seen) == "[a,b]|[]|{}|--|-s||");

    l.did.clear();
    l.lock_error = 0;
    check_failure(lite({"lock", "x", "4", "--", "true"}),
                  "lock x: offset 4 is not a multiple of 8");
    CHECK(lite({"lock", "x", "4K", "--", "true"}).status == 1);
    check_failure(lite({"lock", "nobody", "0", "--", "true"}), "lock nobody: no LMR of that name");
    CHECK(l.did.empty());
}

TEST_CASE("lite lock: a holder that died, and errors of unlocking", "[lite][sync]") {
    machine lite;
    lite({"alloc", "x", "4K"});
    locks l(lite);
    const temporary_directory directory;
    const auto seen = directory / "seen";
    l.lock_error = -EOWNERDEAD;
    auto r = run_locked(lite, {"lock", "x", "0"}, "echo $LITE_OWNER_DIED > " + seen);
    CHECK(r.status == 0);
    CHECK(r.err == "lite: lock x: its previous holder died\n");
    CHECK(l.did == "LCU");
    CHECK(read_file(seen) == "1\n");
    // A shared holder does not make the lock consistent.
    l.did.clear();
    CHECK(run_locked(lite, {"lock", "-s", "x", "0"}, "true").status == 0);
    CHECK(l.did == "LU");

    l.lock_error = 0;
    l.unlock_error = -ENOLCK;
    r = run_locked(lite, {"lock", "x", "0"}, "true");
    CHECK(r.status == 1);
    CHECK(r.err.starts_with("lite: unlock x: "));
    CHECK(run_locked(lite, {"lock", "x", "0"}, "exit 9").status == 9);
}

TEST_CASE("lite lock: signals that the parent has left ignored", "[lite][sync]") {
    machine lite;
    lite({"alloc", "x", "4K"});
    locks l(lite);
    const tools::signal_setting children(SIGCHLD, SIG_IGN);
    const auto r = run_locked(lite, {"lock", "x", "0"}, "exit 3");
    CHECK(r.status == 3);
    CHECK(r.err.empty());
    CHECK(l.did == "LU");
}

TEST_CASE("lite lock that is killed keeps the lock until its program is gone", "[lite][sync]") {
    machine lite;
    lite({"alloc", "x", "4K"});
    const locks l(lite);
    // Only lite has the first pipe open, like its node; the program has the second open, too.
    int device[2];
    int program[2];
    REQUIRE(::pipe2(device, O_CLOEXEC) == 0);
    REQUIRE(::pipe2(program, O_CLOEXEC) == 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::fcntl(program[1], F_SETFD, 0);
        const auto script = "echo >&" + std::to_string(program[1]) + "; exec sleep 1000";
        lite({"lock", "x", "0", "--", "sh", "-c", script});
        ::_exit(1);
    }
    REQUIRE(pid > 0);
    ::close(device[1]);
    ::close(program[1]);
    char byte = 0;
    CHECK(::read(program[0], &byte, 1) == 1);
    ::kill(pid, SIGKILL);
    CHECK(::read(device[0], &byte, 1) == 0);
    pollfd gone{program[0], POLLIN, 0};
    CHECK(::poll(&gone, 1, 0) == 1);
    CHECK(gone.revents == POLLHUP);
    ::waitpid(pid, nullptr, 0);
    ::close(device[0]);
    ::close(program[0]);
}

TEST_CASE("lite barrier", "[lite][sync]") {
    machine lite;
    lite({"alloc", "x", "4K"});
    locks l(lite);
    check_silent(lite({"barrier", "x", "3"}));
    CHECK(l.barrier.n == 3);
    CHECK(l.barrier.offset == 0);
    CHECK(l.barrier.timeout_ms == LITE_FOREVER);
    check_silent(lite({"barrier", "x", "4096", "-o", "2K", "-t", "250"}));
    CHECK(l.barrier.n == LITE_BARRIER_MAX);
    CHECK(l.barrier.offset == 2048);
    CHECK(l.barrier.timeout_ms == 250);

    l.barrier_error = -ETIMEDOUT;
    check_failure(lite({"barrier", "x", "3", "-t", "0"}),
                  "barrier x: not all have come in time (1 ms)");
    CHECK(l.barrier.timeout_ms == 1);
    l.barrier_error = -EINVAL;
    check_failure(lite({"barrier", "x", "3"}),
                  "barrier x: others wait with another number of participants");
    l.barrier_error = -EHOSTDOWN;
    CHECK(lite({"barrier", "x", "3"}).status == 1);
    CHECK(l.did == "BBBBB");
    check_failure(lite({"barrier", "x", "3", "-o", "4"}),
                  "barrier x: offset 4 is not a multiple of 8");
    CHECK(l.did == "BBBBB");
}
