// SPDX-License-Identifier: MIT
// What threads do late. The library's: poll(2) tells it of an event of the device, but returns only
// when this program says so. The program's: so does read(2) of a channel. For a library that has
// such a thread, and reads channels so.
#include "loopback.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <semaphore>
#include <thread>

namespace verbs_check {
namespace {

// Where the library's thread is.
class Gate {
  public:
    // The next event that poll(2) reports is held.
    void close() { set(is_closed_, true); }
    void open() { set(is_closed_, false); }
    // Until poll(2) has an event to report.
    void wait_held() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return is_held_; });
    }
    // Until what was held is done: the thread calls poll(2) again.
    void wait_passed() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return is_polling_ && !is_held_; });
    }

    int poll(pollfd* fds, nfds_t n) {
        set(is_polling_, true);
        const int ret = ::ppoll(fds, n, nullptr, nullptr);
        std::unique_lock lock(mutex_);
        is_polling_ = false;
        if (ret > 0 && fds[0].revents && is_closed_) {
            is_held_ = true;
            changed_.notify_all();
            changed_.wait(lock, [&] { return !is_closed_; });
            is_held_ = false;
        }
        return ret;
    }

  private:
    void set(bool& what, bool value) {
        const std::lock_guard lock(mutex_);
        what = value;
        changed_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_closed_ = false;
    bool is_held_ = false;
    bool is_polling_ = false;
};
Gate gate;

// A thread that has read from a channel, and not looked further, until it may go on.
thread_local constinit bool is_late = false;
std::binary_semaphore has_read(0);
std::binary_semaphore may_go_on(0);

// The event that the library's thread is about to take goes with its CQ.
void gone(const Options& options) {
    Loopback loop(options);
    gate.close();
    loop.arm();
    loop.send(1);
    gate.wait_held();
    loop.take_receive();
    loop.destroy_queues();
    gate.open();
    // Closing the device waits for the thread.
}

// An event only for what completed after the program had asked for events.
void stale(const Options& options) {
    Loopback loop(options);
    gate.close();
    loop.arm();
    loop.send(2);
    gate.wait_held();
    loop.take_receive();
    loop.take_event();
    loop.arm();
    gate.open();
    gate.wait_passed();
    check(!loop.has_event(), "an event of a completion of before the CQ was armed");
    loop.take_receive();
    loop.send(1);
    loop.take_event();
    loop.take_receive();
}

// A program that polls once for each event, and gets as many completions as it asked for.
void backlog(const Options& options) {
    Loopback loop(options, 32);
    loop.arm();
    loop.send(20);
    loop.take_event();
    loop.arm();
    loop.take_receives(16);
    loop.take_event();
    loop.arm();
    loop.take_receives(4);
    check(!loop.has_event(), "an event, and nothing is left");
    // Both have had their events.
    for (int i = 0; i < 2; i++) {
        loop.send(1);
        loop.take_event();
        loop.arm();
    }
    loop.take_receives(1);
    check(!loop.has_event(), "a second event of one completion");
    loop.take_receive();
    // Two have had theirs, and a third one has none yet: it gets one.
    for (int i = 0; i < 2; i++) {
        loop.arm();
        loop.send(1);
        loop.take_event();
    }
    loop.send(1);
    loop.arm();
    loop.take_receives(1);
    loop.take_event();
    loop.arm();
    loop.take_receives(1);
    check(!loop.has_event(), "an event more than there were completions");
    loop.take_receive();
}

// A thread is about to take an event that goes with its CQ. It gets that of the next CQ, and then
// there is none.
void taken_over(const Options& options) {
    Loopback loop(options);
    loop.arm();
    loop.send(1);
    std::thread taker([&loop] {
        is_late = true;
        loop.take_event();
    });
    has_read.acquire();
    loop.destroy_queues();
    loop.make_queues(options);
    loop.arm();
    loop.send(1);
    check(loop.has_event(-1), "the new CQ's event");
    may_go_on.release();
    taker.join();
    check(!loop.has_event(), "poll(2) reports an event, and there is none");
    loop.take_receive();
}

// If the answer to a send is there before the send's completion, "ib_send_lat -e" of perftest 4.5,
// which has one channel for both, sends again before it polls that completion.
void unpolled(const Options& options) {
    Loopback loop(options, 1);
    for (int i = 0; i < 3; i++) {
        loop.receive(1, 8);
        loop.post(1, 8);
        loop.take_receive();
        if (i) {
            check(!loop.has_room(), "three sends are posted, and there is room for two");
            loop.take_send();
        }
    }
    loop.take_send();
}

}  // namespace

int events(const Options& options, int rounds) {
    for (int i = 0; i < rounds; i++) {
        gone(options);
        stale(options);
        taken_over(options);
        unpolled(options);
        backlog(options);
    }
    std::printf("events: %d rounds\ngood\n", rounds);
    return 0;
}

}  // namespace verbs_check

// The library's, too, finds these before those of the C library.
extern "C" int poll(pollfd* fds, nfds_t n, int timeout) {
    if (timeout < 0 && ::gettid() != ::getpid())
        return verbs_check::gate.poll(fds, n);
    const timespec time = {timeout / 1000, timeout % 1000 * 1000000L};
    return ::ppoll(fds, n, timeout < 0 ? nullptr : &time, nullptr);
}

extern "C" ssize_t read(int fd, void* to, std::size_t length) {
    const ssize_t ret = ::syscall(SYS_read, fd, to, length);
    if (verbs_check::is_late) {
        verbs_check::is_late = false;
        verbs_check::has_read.release();
        verbs_check::may_go_on.acquire();
    }
    return ret;
}
