// SPDX-License-Identifier: MIT
// Processes and threads of a test: they report failures to the test case, and no wait is unlimited.
//
// Catch2's macros belong to the thread and process that runs the test case. Code that runs
// elsewhere uses expect().
#pragma once

#include <semaphore.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <mutex>
#include <source_location>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace lite_test {

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The limit for a step that should take no noticeable time: a quarter of a test case's limit.
std::chrono::milliseconds patience();

void expect(bool condition, std::string_view what,
            std::source_location where = std::source_location::current());

template <typename A, typename B>
void expect_equal(const A& actual, const B& wanted, std::string_view what,
                  std::source_location where = std::source_location::current()) {
    if (actual == wanted)
        return;
    std::ostringstream text;
    text << what << ": got " << actual << ", wanted " << wanted;
    expect(false, text.str(), where);
}

// A value in memory that child processes share.
template <typename T>
class Shared;

// Counts posts; may live in Shared.
class Signal {
  public:
    Signal();
    ~Signal();
    Signal(const Signal&) = delete;
    Signal& operator=(const Signal&) = delete;

    void post();
    // Throws Failure after patience().
    void wait(std::string_view what);

  private:
    sem_t semaphore_;
};

// Polls, with short sleeps, until @condition holds; throws Failure after patience(). For conditions
// that other processes or the kernel bring about without an event.
void wait_until(std::string_view what, const std::function<bool()>& condition);

// A forked child that runs @body. It ends with status 0, or reports the text of the exception that
// @body threw.
class Child {
  public:
    explicit Child(const std::function<void()>& body);
    ~Child();  // kills it if it still runs
    Child(Child&& other) noexcept;
    Child& operator=(Child&&) = delete;

    pid_t pid() const { return pid_; }
    void kill(int signal) const;
    // Waits for the child to end: returns "" after success, else what went wrong. Throws Failure
    // after patience().
    std::string wait();
    // The same, but throws Failure unless it succeeded.
    void join();

  private:
    pid_t pid_ = -1;
    int pidfd_ = -1;
    int report_ = -1;
};

// Runs @body in a child and throws Failure if it fails: for actions that cannot be undone, such as
// setresuid(2).
void in_child(const std::function<void()>& body);

// The same as another user, with only that user's group and supplementary groups.
struct Identity {
    uid_t uid;
    gid_t gid;
    std::vector<gid_t> groups = {};
};
void become(const Identity& who);
void as_user(const Identity& who, const std::function<void()>& body);

// Runs a program with arguments and returns what it wrote to stdout and stderr; throws Failure if
// it fails.
std::string run_program(const std::vector<std::string>& command);

// Threads that pass their exceptions on to the test case.
class Threads {
  public:
    ~Threads();
    void start(std::function<void()> body);
    // Waits for all threads and rethrows the first exception. The watchdog ends the program if a
    // thread never ends.
    void join();

  private:
    std::mutex mutex_;
    std::exception_ptr first_;
    std::vector<std::thread> threads_;
};

void* map_shared(std::size_t size);
void unmap_shared(void* memory, std::size_t size);

template <typename T>
class Shared {
  public:
    Shared() : value_(new (map_shared(sizeof(T))) T{}) {}
    ~Shared() { unmap_shared(value_, sizeof(T)); }
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;

    T* operator->() { return value_; }
    T& operator*() { return *value_; }

  private:
    T* value_;
};

}  // namespace lite_test
