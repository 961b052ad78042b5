// SPDX-License-Identifier: MIT
#include "process.hpp"

#include "env.hpp"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace lite_test {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void throw_errno(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

// Waits until @fd is readable (a pidfd: until the process ended). False after @limit.
bool readable_within(int fd, std::chrono::milliseconds limit) {
    const auto deadline = Clock::now() + limit;
    for (;;) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
        pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
        const int n = ::poll(&entry, 1, left > 0 ? static_cast<int>(left) : 0);
        if (n > 0)
            return true;
        if (n == 0 && left <= 0)
            return false;
        if (n < 0 && errno != EINTR)
            throw_errno("poll");
    }
}

std::string read_all(int fd) {
    std::string text;
    std::array<char, 4096> chunk;
    for (;;) {
        const auto n = ::read(fd, chunk.data(), chunk.size());
        if (n <= 0)
            return text;
        text.append(chunk.data(), static_cast<std::size_t>(n));
    }
}

void write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const auto n = ::write(fd, text.data(), text.size());
        if (n <= 0)
            return;
        text.remove_prefix(static_cast<std::size_t>(n));
    }
}

std::string describe(int status) {
    if (WIFSIGNALED(status))
        return std::string("killed by signal ") + strsignal(WTERMSIG(status));
    return "exit status " + std::to_string(WEXITSTATUS(status));
}

[[noreturn]] void run_child(const std::function<void()>& body, int report) {
    // Catch2 reports signals as failures of the test case, which must not happen in a child.
    for (const int signal : {SIGTERM, SIGINT, SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGALRM})
        ::signal(signal, SIG_DFL);
    ::signal(SIGPIPE, SIG_IGN);
    int status = 0;
    try {
        body();
    } catch (const std::exception& e) {
        write_all(report, e.what());
        status = 1;
    } catch (...) {
        // Catch2's own assertion exceptions have no base class, and must not be thrown in a child.
        write_all(report, "an exception that is no std::exception: a Catch2 macro in a child?");
        status = 1;
    }
    ::_exit(status);
}

}  // namespace

std::chrono::milliseconds patience() {
    return std::chrono::milliseconds(env().timeout_s * 1000 / 4);
}

void expect(bool condition, std::string_view what, std::source_location where) {
    if (condition)
        return;
    std::ostringstream text;
    text << where.file_name() << ':' << where.line() << ": " << what;
    throw Failure(text.str());
}

Signal::Signal() {
    if (sem_init(&semaphore_, 1, 0) < 0)
        throw_errno("sem_init");
}

Signal::~Signal() { sem_destroy(&semaphore_); }

void Signal::post() { sem_post(&semaphore_); }

void Signal::wait(std::string_view what) {
    const auto limit = patience();
    timespec deadline{};
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += limit.count() / 1000;
    while (sem_clockwait(&semaphore_, CLOCK_MONOTONIC, &deadline) < 0) {
        if (errno != EINTR)
            throw Failure("waited in vain for: " + std::string(what));
    }
}

void wait_until(std::string_view what, const std::function<bool()>& condition) {
    const auto deadline = Clock::now() + patience();
    while (!condition()) {
        if (Clock::now() > deadline)
            throw Failure("waited in vain until: " + std::string(what));
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

Child::Child(const std::function<void()>& body) {
    std::array<int, 2> pipe_ends{};
    if (::pipe2(pipe_ends.data(), O_CLOEXEC) < 0)
        throw_errno("pipe2");
    pid_ = ::fork();
    if (pid_ < 0)
        throw_errno("fork");
    if (pid_ == 0)
        run_child(body, pipe_ends[1]);
    ::close(pipe_ends[1]);
    report_ = pipe_ends[0];
    // Not pidfd_open(): glibc 2.36 declares it without extern "C".
    pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
    if (pidfd_ < 0)
        throw_errno("pidfd_open");
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::exchange(other.pidfd_, -1)),
      report_(std::exchange(other.report_, -1)) {}

Child::~Child() {
    if (pid_ > 0) {
        kill(SIGKILL);
        // A child that the kernel does not let end must not hang the test as well.
        if (readable_within(pidfd_, patience()))
            ::waitpid(pid_, nullptr, 0);
    }
    if (pidfd_ >= 0)
        ::close(pidfd_);
    if (report_ >= 0)
        ::close(report_);
}

void Child::kill(int signal) const { ::kill(pid_, signal); }

std::string Child::wait() {
    if (!readable_within(pidfd_, patience()))
        throw Failure("child " + std::to_string(pid_) + " does not end");
    int status = 0;
    if (::waitpid(pid_, &status, 0) < 0)
        throw_errno("waitpid");
    pid_ = -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return "";
    const auto text = read_all(report_);
    return text.empty() ? describe(status) : text;
}

void Child::join() {
    const auto problem = wait();
    if (!problem.empty())
        throw Failure("in child: " + problem);
}

void in_child(const std::function<void()>& body) { Child(body).join(); }

void become(const Identity& who) {
    if (::setgroups(who.groups.size(), who.groups.data()) < 0)
        throw_errno("setgroups");
    if (::setresgid(who.gid, who.gid, who.gid) < 0)
        throw_errno("setresgid");
    if (::setresuid(who.uid, who.uid, who.uid) < 0)
        throw_errno("setresuid");
}

void as_user(const Identity& who, const std::function<void()>& body) {
    in_child([&] {
        become(who);
        body();
    });
}

std::string run_program(const std::vector<std::string>& command) {
    std::array<int, 2> pipe_ends{};
    if (::pipe2(pipe_ends.data(), O_CLOEXEC) < 0)
        throw_errno("pipe2");
    Child child([&] {
        std::vector<char*> argv;
        for (const auto& word : command)
            argv.push_back(const_cast<char*>(word.c_str()));
        argv.push_back(nullptr);
        ::dup2(pipe_ends[1], STDOUT_FILENO);
        ::dup2(pipe_ends[1], STDERR_FILENO);
        ::execvp(argv[0], argv.data());
        throw_errno(argv[0]);
    });
    ::close(pipe_ends[1]);
    // The output of these programs fits into the pipe, so they end without a reader.
    const auto problem = child.wait();
    const auto output = read_all(pipe_ends[0]);
    ::close(pipe_ends[0]);
    if (!problem.empty())
        throw Failure(command.front() + ": " + problem + ": " + output);
    return output;
}

Threads::~Threads() {
    for (auto& thread : threads_) {
        if (thread.joinable())
            thread.join();
    }
}

void Threads::start(std::function<void()> body) {
    threads_.emplace_back([this, body = std::move(body)] {
        try {
            body();
        } catch (...) {
            const std::lock_guard lock(mutex_);
            if (!first_)
                first_ = std::current_exception();
        }
    });
}

void Threads::join() {
    for (auto& thread : threads_)
        thread.join();
    threads_.clear();
    if (first_)
        std::rethrow_exception(std::exchange(first_, nullptr));
}

void* map_shared(std::size_t size) {
    void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        throw_errno("mmap");
    return memory;
}

void unmap_shared(void* memory, std::size_t size) { ::munmap(memory, size); }

}  // namespace lite_test
