// SPDX-License-Identifier: MIT
//
// <lite/async.hpp> without LITE: tasks, time, descriptors, and the release of locks, handles and
// requests after a failure.
//
// /dev/null accepts any command of io_uring and does nothing: so each command of the executor
// succeeds at once. The executor uses ioctls for undoing; the test's device records these.

#include "context.hpp"

#include "catch.hpp"
#include "code_of.hpp"
#include "errno_of.hpp"

#include <lite/async.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

struct called {
    unsigned long request;
    lite_ioc_unlock unlock;
    lite_ioc_unmap unmap;
    lite_ioc_rpc_recv recv;
};

class null_device final : public lite::internal::device {
  public:
    explicit null_device(std::vector<called>& calls) : m_calls(calls) {}
    ~null_device() override { ::close(m_fd); }

    int control(unsigned long request, void* arg) noexcept override {
        called one{};
        one.request = request;
        if (request == LITE_IOC_UNLOCK)
            one.unlock = *static_cast<lite_ioc_unlock*>(arg);
        if (request == LITE_IOC_UNMAP)
            one.unmap = *static_cast<lite_ioc_unmap*>(arg);
        if (request == LITE_IOC_RPC_RECV)
            one.recv = *static_cast<lite_ioc_rpc_recv*>(arg);
        m_calls.push_back(one);
        return 0;
    }

    int fd() const noexcept override { return m_fd; }

  private:
    std::vector<called>& m_calls;
    int m_fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
};

// Some containers have no io_uring, and before Linux 6.0 /dev/null accepts no commands.
bool works() {
    static const bool works = [] {
        std::vector<called> calls;
        auto node = lite::context::adopt(
            lite::internal::make_context(std::make_unique<null_device>(calls)));
        try {
            lite::executor ex(node);
            lite_ioc_query query{};
            return ex.run(ex.command(LITE_IOC_QUERY, query)) == 0;
        } catch (const lite::error&) {
            return false;
        }
    }();
    if (!works)
        WARN("skipped: io_uring cannot be used here");
    return works;
}

struct Async {
    std::vector<called> calls;
    lite::context node =
        lite::context::adopt(lite::internal::make_context(std::make_unique<null_device>(calls)));
    std::optional<lite::executor> executor;

    lite::executor& ex() {
        if (!executor)
            executor.emplace(node);
        return *executor;
    }

    std::size_t count(unsigned long request) const {
        return static_cast<std::size_t>(std::count_if(
            calls.begin(), calls.end(), [=](const called& c) { return c.request == request; }));
    }
};

class Pipe {
  public:
    Pipe() { REQUIRE(::pipe2(m_fds.data(), O_CLOEXEC) == 0); }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    ~Pipe() {
        ::close(m_fds[0]);
        close_writer();
    }
    int reader() const { return m_fds[0]; }
    void write() const { REQUIRE(::write(m_fds[1], "x", 1) == 1); }
    void close_writer() {
        if (m_fds[1] >= 0)
            ::close(std::exchange(m_fds[1], -1));
    }

  private:
    std::array<int, 2> m_fds{};
};

lite::task<> after(lite::executor& ex, std::chrono::milliseconds time, std::function<void()> act) {
    co_await ex.sleep(time);
    act();
}

lite::task<> wait_for_nothing() { co_await std::suspend_always{}; }

lite::task<int> number(int n) { co_return n; }

lite::task<> run_within(lite::executor& ex, int& err) {
    err = code_of([&] { ex.run(number(5)); });
    co_return;
}

lite::task<> fail(std::string what) {
    throw std::runtime_error(what);
    co_return;
}

lite::task<> hold_and_throw(lite::executor& ex) {
    const auto held = co_await ex.lock(7, 8, 42);
    CHECK(held.is_held());
    throw std::runtime_error("in between");
}

lite::task<> hold_for_ever(lite::executor& ex) {
    const auto held = co_await ex.lock(7, 8, 42);
    co_await ex.sleep(24h);
}

lite::task<> lock_only(lite::executor& ex, bool& went_on) {
    const auto held = co_await ex.lock(7, 8, 42);
    went_on = true;
}

lite::task<> map_only(lite::executor& ex, bool& went_on) {
    const auto region = co_await ex.map("table");
    went_on = true;
}

lite::task<> poll_for_ever(lite::executor& ex, int fd) { co_await ex.poll(fd, POLLIN); }

lite::task<> sleep_and_tell(lite::executor& on, bool& is_over) {
    struct teller {
        ~teller() { to = true; }
        bool& to;
    } at_the_end{is_over};
    co_await on.sleep(24h);
}

lite::task<> sleep_for_ever(lite::executor& ex) { co_await ex.sleep(24h); }

}  // namespace

TEST_CASE_METHOD(Async, "async: tasks, and what they throw", "[async]") {
    if (!works())
        return;
    CHECK(ex().run(number(5)) == 5);
    CHECK_THROWS_WITH(ex().run(fail("as it should")), "as it should");
    // All tasks run to their end; all() throws the failure of the first task in the list.
    int ended = 0;
    std::vector<lite::task<>> tasks;
    tasks.push_back(after(ex(), 5ms, [&] { ended++; }));
    tasks.push_back(after(ex(), 3ms, [&] { throw std::runtime_error("the second task"); }));
    tasks.push_back(after(ex(), 1ms, [&] { throw std::runtime_error("the third task"); }));
    tasks.push_back(after(ex(), 10ms, [&] { ended++; }));
    CHECK_THROWS_WITH(ex().run(ex().all(std::move(tasks))), "the second task");
    CHECK(ended == 2);
    // The failure of a spawned task ends run().
    ex().spawn(after(ex(), 1ms, [] { throw std::runtime_error("beside"); }));
    CHECK_THROWS_WITH(ex().run(sleep_for_ever(ex())), "beside");
    // The failure of run()'s task ends spawned ones, which may use memory of run()'s caller.
    bool is_over = false;
    ex().spawn(sleep_and_tell(ex(), is_over));
    CHECK_THROWS_WITH(ex().run(fail("in the end")), "in the end");
    CHECK(is_over);
    CHECK(ex().run(number(6)) == 6);
}

TEST_CASE_METHOD(Async, "async: a spawned task fails before its first wait", "[async]") {
    if (!works())
        return;
    // run() would wait for a day if it did not look first.
    ::alarm(60);
    ex().spawn(fail("at once"));
    CHECK_THROWS_WITH(ex().run(sleep_for_ever(ex())), "at once");
    CHECK_THROWS_WITH(ex().run([](lite::executor& on) -> lite::task<> {
        on.spawn(fail("from within"));
        co_await on.sleep(24h);
    }(ex())),
                      "from within");
    ex().spawn(fail("the cause"));
    CHECK_THROWS_WITH(ex().run(wait_for_nothing()), "the cause");
    CHECK(ex().run(number(6)) == 6);
    ::alarm(0);
}

TEST_CASE_METHOD(Async, "async: nothing is under way", "[async]") {
    if (!works())
        return;
    CHECK(ex().run(errno_of(ex().sleep(0ms))) == 0);
    try {
        ex().run(wait_for_nothing());
        FAIL("run() has returned");
    } catch (const lite::error& error) {
        CHECK(error.code() == std::errc::no_child_process);
        CHECK(std::string(error.what()).find("nothing that is under way") != std::string::npos);
        CHECK(std::string(error.what()).find("lock") == std::string::npos);
    }
}

TEST_CASE_METHOD(Async, "async: a coroutine does not run its executor", "[async]") {
    if (!works())
        return;
    int err = 0;
    ex().run(run_within(ex(), err));
    CHECK(err == EDEADLK);
    err = 0;
    ex().spawn(run_within(ex(), err));
    CHECK(err == EDEADLK);
    CHECK(ex().run(number(6)) == 6);
    CHECK_THROWS_WITH(ex().run(fail("as it should")), "as it should");
    CHECK(ex().run(number(6)) == 6);
}

TEST_CASE_METHOD(Async, "async: an executor is for the thread that made it", "[async]") {
    if (!works())
        return;
    CHECK(ex().run(number(5)) == 5);
    int ran = 0;
    int spawned = 0;
    std::thread([&] {
        ran = code_of([&] { ex().run(ex().sleep(1ms)); });
        spawned = code_of([&] { ex().spawn(ex().sleep(1ms)); });
    }).join();
    CHECK((ran == EEXIST && spawned == EEXIST));
    CHECK(ex().run(errno_of(ex().sleep(1ms))) == 0);
}

TEST_CASE("async: a region's operations have its priority", "[async]") {
    lite::region region;
    region.set_priority(LITE_PRIORITY(2));
    CHECK(lite::lmr(region).priority == LITE_PRIORITY(2));
    CHECK(lite::lmr(7).priority == LITE_PRIORITY_DEFAULT);
}

TEST_CASE_METHOD(Async, "async: sleep", "[async]") {
    if (!works())
        return;
    const auto begun = steady_clock::now();
    ex().run(ex().sleep(40ms));
    CHECK(steady_clock::now() - begun >= 40ms);
    ex().run(ex().sleep(-1s));
    CHECK(ex().run(errno_of(ex().sleep(std::chrono::nanoseconds(1)))) == 0);
    // Sleeps are independent: the shortest ends first.
    std::string order;
    std::vector<lite::task<>> tasks;
    tasks.push_back(after(ex(), 600ms, [&] { order += 'c'; }));
    tasks.push_back(after(ex(), 5ms, [&] { order += 'a'; }));
    tasks.push_back(after(ex(), 300ms, [&] { order += 'b'; }));
    ex().run(ex().all(std::move(tasks)));
    CHECK(order == "abc");
    // Even the longest sleep is accepted.
    std::stop_source stop;
    ex().spawn(after(ex(), 5ms, [&] { stop.request_stop(); }));
    CHECK(ex().run(errno_of(ex().sleep(std::chrono::hours::max(), stop.get_token()))) == ECANCELED);
    CHECK(ex().run(errno_of(ex().sleep(1h, stop.get_token()))) == ECANCELED);
    CHECK(steady_clock::now() - begun < 30s);
}

TEST_CASE_METHOD(Async, "async: poll", "[async]") {
    if (!works())
        return;
    Pipe pipe;
    bool written = false;
    ex().spawn(after(ex(), 20ms, [&] {
        written = true;
        pipe.write();
    }));
    CHECK(ex().run(ex().poll(pipe.reader(), POLLIN)) == POLLIN);
    CHECK(written);
    // The byte is still unread.
    CHECK(ex().run(ex().poll(pipe.reader(), POLLIN)) == POLLIN);
    CHECK(ex().run(errno_of(ex().poll(-1, POLLIN))) == EBADF);

    Pipe other;
    std::stop_source stop;
    ex().spawn(after(ex(), 5ms, [&] { stop.request_stop(); }));
    CHECK(ex().run(errno_of(ex().poll(other.reader(), POLLIN, stop.get_token()))) == ECANCELED);
    other.close_writer();
    CHECK((ex().run(ex().poll(other.reader(), POLLIN)) & POLLHUP) != 0);
}

TEST_CASE_METHOD(Async, "async: poll on a signalfd", "[async]") {
    if (!works())
        return;
    sigset_t signals;
    sigset_t before;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, SIGTERM);
    REQUIRE(::pthread_sigmask(SIG_BLOCK, &signals, &before) == 0);
    const int fd = ::signalfd(-1, &signals, SFD_CLOEXEC);
    ex().spawn(after(ex(), 10ms, [] { ::kill(::getpid(), SIGTERM); }));
    CHECK(ex().run(ex().poll(fd, POLLIN)) == POLLIN);
    signalfd_siginfo came{};
    CHECK(::read(fd, &came, sizeof(came)) == sizeof(came));
    CHECK(came.ssi_signo == SIGTERM);
    ::close(fd);
    REQUIRE(::pthread_sigmask(SIG_SETMASK, &before, nullptr) == 0);
}

TEST_CASE_METHOD(Async, "async: a signal that has a handler ends nothing", "[async]") {
    if (!works())
        return;
    static volatile std::sig_atomic_t rung;
    rung = 0;
    struct sigaction act {};
    struct sigaction before {};
    act.sa_handler = [](int) { rung = rung + 1; };
    REQUIRE(::sigaction(SIGALRM, &act, &before) == 0);
    const itimerval often{{0, 5000}, {0, 5000}};
    const itimerval never{};
    REQUIRE(::setitimer(ITIMER_REAL, &often, nullptr) == 0);
    // Signals that come while the host runs something else are one.
    while (rung < 2) {
        const auto begun = steady_clock::now();
        CHECK(ex().run(errno_of(ex().sleep(60ms))) == 0);
        CHECK(steady_clock::now() - begun >= 60ms);
    }
    REQUIRE(::setitimer(ITIMER_REAL, &never, nullptr) == 0);
    REQUIRE(::sigaction(SIGALRM, &before, nullptr) == 0);
}

TEST_CASE_METHOD(Async, "async: a lock is given back", "[async]") {
    if (!works())
        return;
    const auto is_ours = [](const called& c) {
        return c.unlock.lh == 7 && c.unlock.offset == 8 && c.unlock.owner == 42;
    };
    SECTION("after an exception") {
        CHECK_THROWS_WITH(ex().run(hold_and_throw(ex())), "in between");
        REQUIRE(count(LITE_IOC_UNLOCK) == 1);
        CHECK(is_ours(calls.back()));
    }
    SECTION("after an exception of another task") {
        ex().spawn(hold_for_ever(ex()));
        ex().spawn(after(ex(), 5ms, [] { throw std::runtime_error("beside"); }));
        CHECK_THROWS_WITH(ex().run(sleep_for_ever(ex())), "beside");
        REQUIRE(count(LITE_IOC_UNLOCK) == 1);
        CHECK(is_ours(calls.back()));
    }
    SECTION("with the executor") {
        ex().spawn(hold_for_ever(ex()));
        ex().run(ex().sleep(5ms));
        CHECK(count(LITE_IOC_UNLOCK) == 0);
        executor.reset();
        REQUIRE(count(LITE_IOC_UNLOCK) == 1);
        CHECK(is_ours(calls.back()));
    }
    SECTION("if its task never resumed") {
        bool went_on = false;
        ex().spawn(lock_only(ex(), went_on));
        executor.reset();
        CHECK_FALSE(went_on);
        REQUIRE(count(LITE_IOC_UNLOCK) == 1);
        CHECK(is_ours(calls.back()));
    }
    SECTION("once, if the task awaits unlock()") {
        ex().run([](lite::executor& on) -> lite::task<> {
            auto held = co_await on.lock(7, 8, 42);
            CHECK(held.is_held());
            CHECK_FALSE(held.owner_died());
            co_await on.make_consistent(held);
            co_await on.unlock(held);
            CHECK_FALSE(held.is_held());
            const int again = co_await errno_of(on.unlock(held));
            CHECK(again == EPERM);
            auto shared = co_await on.try_lock_shared_for(7, 8, 43, 1s);
            REQUIRE(shared);
            shared->release();
        }(ex()));
        CHECK(count(LITE_IOC_UNLOCK) == 0);
    }
    SECTION("not if a stop was requested before") {
        std::stop_source stop;
        stop.request_stop();
        CHECK(ex().run(errno_of(ex().lock(7, 8, 42, stop.get_token()))) == ECANCELED);
        CHECK(ex().run(errno_of(ex().try_lock(7, 8, 42, stop.get_token()))) == ECANCELED);
        ex().run([](lite::executor& on, std::stop_token asked) -> lite::task<> {
            auto held = co_await on.lock(7, 8, 42);
            const int err = co_await errno_of(on.unlock(held, asked));
            CHECK(err == ECANCELED);
            CHECK(held.is_held());
            held.release();
        }(ex(), stop.get_token()));
        CHECK(count(LITE_IOC_UNLOCK) == 0);
    }
}

TEST_CASE_METHOD(Async, "async: a handle is closed if its task never resumed", "[async]") {
    if (!works())
        return;
    bool went_on = false;
    ex().spawn(map_only(ex(), went_on));
    executor.reset();
    CHECK_FALSE(went_on);
    CHECK(count(LITE_IOC_UNMAP) == 1);
}

TEST_CASE_METHOD(Async, "async: waiting tasks end with the executor", "[async]") {
    if (!works())
        return;
    Pipe pipe;
    const auto begun = steady_clock::now();
    for (int i = 0; i < 20; i++) {
        ex().spawn(poll_for_ever(ex(), pipe.reader()));
        ex().spawn(sleep_for_ever(ex()));
    }
    ex().run(ex().sleep(1ms));
    executor.reset();
    CHECK(steady_clock::now() - begun < 30s);
}

TEST_CASE_METHOD(Async, "async: a request is given back", "[async]") {
    lite::call_info info{};
    info.function = 2000;
    info.token = 99;
    {
        lite::taken_request first(node.get(), info);
        lite::taken_request request(std::move(first));
        CHECK(request.token == 99);
        CHECK(calls.empty());
    }
    REQUIRE(count(LITE_IOC_RPC_RECV) == 1);
    const auto& recv = calls.back().recv;
    CHECK((recv.flags == (LITE_RPC_REPLY_ONLY | LITE_RPC_DROP) && recv.token == 99));
    { CHECK(lite::taken_request(node.get(), info).release().token == 99); }
    // No caller waits for the reply to a message.
    info.token = 0;
    { const lite::taken_request message(node.get(), info); }
    CHECK(count(LITE_IOC_RPC_RECV) == 1);
    if (!works())
        return;
    info.token = 98;
    lite::taken_request answered(node.get(), info);
    std::stop_source stop;
    stop.request_stop();
    CHECK(ex().run(errno_of(ex().reply(answered, 0, {}, stop.get_token()))) == ECANCELED);
    CHECK(answered.token == 98);
    ex().run(ex().reply(answered, 0, {}));
    CHECK(answered.token == 0);
    CHECK(count(LITE_IOC_RPC_RECV) == 1);
}

TEST_CASE_METHOD(Async, "async: a child leaves to its parent what that holds", "[async]") {
    if (!works())
        return;
    std::optional<lite::held_lock> held(std::in_place, node.get(), 7, 8, 42);
    lite::call_info info{};
    info.token = 99;
    std::optional<lite::taken_request> request(std::in_place, node.get(), info);
    ex().spawn(hold_for_ever(ex()));
    std::stop_source stop;
    ex().spawn(ex().sleep(24h, stop.get_token()));
    ex().run(ex().sleep(1ms));
    const pid_t child = ::fork();
    if (!child) {
        // It would wait for ever if it waited for the parent's operations.
        ::alarm(60);
        // Nothing of this reaches the parent's ring.
        stop.request_stop();
        if (code_of([&] { ex().run(ex().sleep(1ms)); }) != EEXIST ||
            code_of([&] { ex().spawn(ex().sleep(1ms)); }) != EEXIST)
            ::_exit(2);
        held.reset();
        request.reset();
        executor.reset();
        ::_exit(calls.empty() ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    ex().run(ex().sleep(1ms));
    held.reset();
    request.reset();
    executor.reset();
    CHECK(count(LITE_IOC_UNLOCK) == 2);
    CHECK(count(LITE_IOC_RPC_RECV) == 1);
}

TEST_CASE_METHOD(Async, "async: invalid arguments are refused at once", "[async]") {
    if (!works())
        return;
    const std::array<std::byte, 9> pattern{};
    const std::string long_name(300, 'x');
    CHECK(code_of([&] { (void)ex().set(7, 0, 64, pattern); }) == EINVAL);
    CHECK(code_of([&] { (void)ex().set(7, 0, 64, {}); }) == EINVAL);
    CHECK(code_of([&] { (void)ex().map(long_name); }) == ENAMETOOLONG);
    CHECK(code_of([&] { (void)ex().alloc({.length = 1, .unpinned = true}); }) == EINVAL);
    CHECK(code_of([&] { (void)ex().create({.name = "x", .length = 1, .unpinned = true}); }) ==
          EINVAL);
    CHECK(code_of([&] { (void)ex().map(""); }) == EINVAL);
    CHECK(code_of([&] { (void)ex().chmod(lite::region(), 0600); }) == EBADF);
    CHECK(code_of([&] { (void)ex().rename("table", ""); }) == EINVAL);
    CHECK(code_of([&] { (void)ex().find_function(1, ""); }) == EINVAL);
    CHECK(code_of([&] { (void)ex().find_function(1, std::string(64, 'x')); }) == ENAMETOOLONG);
    CHECK(code_of([&] { (void)ex().find_function(1, std::string(63, 'x')); }) == 0);
}

TEST_CASE("async: the rest of a time-out", "[async]") {
    lite::detail::time_left never(-1);
    lite::detail::time_left none(0);
    lite::detail::time_left some(10000000);
    lite::detail::time_left little(1);
    CHECK((never.next() == -1 && none.next() == 0 && little.next() == 1));
    CHECK(some.next() == 10000000);
    ::usleep(30000);
    CHECK((never.next() == -1 && none.next() == 0));
    const auto left = some.next();
    CHECK(left <= 9999970);
    CHECK(left > 1);
    // Not 0, which would mean "do not wait", nor less, which would mean "for ever".
    CHECK(little.next() == 1);
}
