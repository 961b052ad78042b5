// SPDX-License-Identifier: MIT
// Locks that several machines use together.
//
//   hold NAME --offset O [--shared] [--try] [--timeout MS] [--threads N] [--leave]
//                          N threads take the lock. Each says "held" (or "died", or the errno) when
//                          it has the lock, keeps it until a line comes on standard input, and says
//                          the result of releasing it. --leave: does not make it consistent before
//   many NAME --offset O --count C [--shared]
//                          takes C locks, in the words of the LMR, says "held", and exits with them
//                          when a line comes on standard input
//   cut NAME --count BYTES says "ready" and its process id, and after a line on standard input cuts
//                          the LMR to BYTES; then it says "cut"
//   crowd NAME --offset O --count C [--measure] [--others]
//                          one file takes the lock C times, shared, as so many owners, or until it
//                          is refused, and prints how many it has, and the errno of the next
//                          attempt. --others: then also takes the locks in the words behind it,
//                          not shared, until it is refused; they count, too. --measure: also prints
//                          the median nanoseconds to take the lock and release it, and of as many
//                          reads in between, with none of them and with nearly all of them (0 and
//                          1: that was refused), of the quickest of ten rounds. Exits with the
//                          locks when a line comes on standard input
//   storm NAME --offset O --threads N --count C
//                          N threads take the lock C times each; with it they count, in words
//                          behind it, by reading and writing. Each checks that no other thread
//                          works there, and repairs what a killed thread has left. Prints how often
//                          a holder had died.
//   phases NAME --offset O --threads N --writers W --count C
//                          the same with readers: W of the threads take the lock exclusively
//   order NAME --offset O --threads N --count C
//                          N threads only take and release the lock; prints the microseconds
//   rounds NAME --offset O --threads N --all A --count C
//                          N threads go through a barrier for A threads of all machines C times;
//                          a counter behind it shows that none passes before all have arrived
//   meet NAME --offset O --threads N --all A --timeout MS --count C
//                          N threads go through a barrier for A threads of all machines C times; a
//                          thread gives up after a random time up to MS, and comes again at once
//   arrive NAME --offset O --all A --timeout MS
//                          says "ready", and after a line on standard input waits at a barrier for
//                          A callers; prints the errno, or 0
//   scribble NAME --offset O
//                          writes valid and invalid values to the word, until it is killed
//   spoilt NAME --offset O --threads N --count C
//                          N threads try to take the lock C times each, in all ways, and accept
//                          any result
#include "common/arguments.hpp"

#include <lite/lite.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using u64 = std::uint64_t;

struct Options {
    int index = 0;
    std::string name;
    u64 offset = 0;
    bool shared = false;
    bool try_only = false;
    bool leave = false;
    bool measure = false;
    bool others = false;
    int timeout = LITE_FOREVER;
    unsigned threads = 1;
    unsigned writers = 1;
    std::uint32_t all = 1;
    u64 count = 100;
};

constexpr auto kRights = lite::rights::read | lite::rights::write | lite::rights::atomic;

// The data that the lock protects: words behind it.
struct Area {
    u64 busy = 0;     // the thread that works on it
    u64 count = 0;    // how often threads have worked on it
    u64 checked = 0;  // the same, written last
};

Area area_at(const lite::region& region, u64 at) {
    Area area;
    region.read(at, std::as_writable_bytes(std::span(&area, 1)));
    return area;
}

void say(const std::string& text) {
    static std::mutex mutex;
    const std::scoped_lock lock(mutex);
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
}

std::string name_of(int err) {
    const char* name = ::strerrorname_np(err < 0 ? -err : err);
    return name ? name : "?";
}

void in_threads(unsigned n, const std::function<void(unsigned)>& body) {
    std::vector<std::thread> threads;
    std::vector<std::exception_ptr> failures(n);
    for (unsigned i = 0; i < n; ++i)
        threads.emplace_back([&, i] {
            try {
                body(i);
            } catch (...) {
                failures[i] = std::current_exception();
            }
        });
    for (auto& thread : threads)
        thread.join();
    for (auto& failure : failures)
        if (failure)
            std::rethrow_exception(failure);
}

void hold(lite::context& node, const Options& options) {
    const auto region = node.map(options.name, kRights);
    const auto flags =
        (options.shared ? LITE_LOCK_SHARED : 0U) | (options.try_only ? LITE_LOCK_TRY : 0U);
    std::atomic<bool> go = false;
    std::thread([&go] {
        std::getchar();
        go = true;
        go.notify_all();
    }).detach();
    in_threads(options.threads, [&](unsigned i) {
        const int err =
            lite_lock(node.get(), region.handle(), options.offset, i + 1, flags, options.timeout);
        say(err == 0 ? "held" : err == -EOWNERDEAD ? "died" : name_of(err));
        if (err && err != -EOWNERDEAD)
            return;
        go.wait(false);
        if (err == -EOWNERDEAD && !options.shared && !options.leave)
            lite_lock_consistent(node.get(), region.handle(), options.offset, i + 1);
        const int back = lite_unlock(node.get(), region.handle(), options.offset, i + 1);
        say(back ? name_of(back) : "ok");
    });
}

// If they are shared, the home knows their words from the beginning, whether another thread wants
// them or not; otherwise only the holder does.
void many(lite::context& node, const Options& options) {
    const auto region = node.map(options.name, kRights);
    const auto flags = options.shared ? LITE_LOCK_SHARED : 0U;
    for (u64 i = 0; i < options.count; ++i)
        if (const int err = lite_lock(node.get(), region.handle(), options.offset + i * sizeof(u64),
                                      1, flags, LITE_FOREVER))
            throw lite::error(err, "lock");
    say("held");
    std::getchar();
}

void cut(lite::context& node, const Options& options) {
    const auto region = node.map(options.name, lite::rights::master);
    say("ready " + std::to_string(::getpid()));
    std::getchar();
    if (const int err = lite_resize(node.get(), region.handle(), options.count))
        throw lite::error(err, "resize");
    say("cut");
}

void crowd(lite::context& node, const Options& options) {
    const auto region = node.map(options.name, kRights);
    const auto take = [&](u64 owner) {
        return lite_lock(node.get(), region.handle(), options.offset, owner, LITE_LOCK_SHARED,
                         LITE_FOREVER);
    };
    const auto give = [&](u64 owner) {
        if (const int err = lite_unlock(node.get(), region.handle(), options.offset, owner))
            throw lite::error(err, "unlock");
    };
    const auto ns_of = [](const auto& work) {
        const auto begun = std::chrono::steady_clock::now();
        work();
        return static_cast<u64>((std::chrono::steady_clock::now() - begun).count());
    };
    struct Medians {
        u64 lock;
        u64 read;
        bool operator<(const Medians& other) const { return lock * other.read < other.lock * read; }
    };
    constexpr int kTimes = 31;
    const auto measure = [&](u64 owner) -> Medians {
        std::array<std::vector<u64>, 2> took;
        for (int i = 0; i < kTimes; ++i) {
            bool was_refused = false;
            took[0].push_back(ns_of([&] {
                was_refused = take(owner);
                if (!was_refused)
                    give(owner);
            }));
            if (was_refused)
                return {0, 1};
            took[1].push_back(ns_of([&] { area_at(region, options.offset); }));
        }
        for (auto& some : took)
            std::ranges::nth_element(some, some.begin() + kTimes / 2);
        return {took[0][kTimes / 2], took[1][kTimes / 2]};
    };
    // A lock wakes threads, and a read does not: on a busy host only the quickest round tells what
    // LITE does.
    const auto medians = [&](u64 owner) {
        Medians best = {0, 1};
        for (int i = 0; i < 10; ++i) {
            const Medians one = measure(owner);
            if (one.lock && (!best.lock || one < best))
                best = one;
        }
        return " " + std::to_string(best.lock) + " " + std::to_string(best.read);
    };
    const std::string few = options.measure ? medians(0) : "";
    u64 taken = 0;
    int refused = 0;
    while (taken < options.count && !refused) {
        refused = take(taken);
        taken += !refused;
    }
    u64 others = 0;
    while (options.others && !refused) {
        refused = lite_lock(node.get(), region.handle(),
                            options.offset + (others + 1) * sizeof(u64), 1, 0, LITE_FOREVER);
        others += !refused;
    }
    if (!refused)
        refused = take(taken);
    std::string many;
    if (options.measure) {
        // Leaves room: the home counts a claim until the node has heard that it was granted.
        const u64 most = taken;
        for (u64 i = 0; i < 64 && taken; ++i)
            give(--taken);
        many = medians(taken);
        while (taken < most && !take(taken))
            ++taken;
    }
    say(std::to_string(taken + others) + " " + (refused ? name_of(refused) : "0") + few + many);
    std::getchar();
}

// Works on the area, which must have no other user.
void work(lite::region& region, u64 at, u64 me, bool died) {
    auto area = area_at(region, at);
    if (area.busy && !died)
        throw std::runtime_error("another thread is at it: " + std::to_string(area.busy));
    if (!died && area.count != area.checked)
        throw std::runtime_error("half done: " + std::to_string(area.count) + ", " +
                                 std::to_string(area.checked));
    region.store(at, me);
    ++area.count;
    region.store(at + 8, area.count);
    region.store(at + 16, area.count);
    if (area_at(region, at).busy != me)
        throw std::runtime_error("another thread came");
    region.store(at, u64{0});
}

void storm(lite::context& node, const Options& options) {
    auto region = node.map(options.name, kRights);
    std::atomic<u64> died = 0;
    say("running");
    in_threads(options.threads, [&](unsigned i) {
        lite::mutex mutex(node, region, options.offset);
        const u64 me = static_cast<u64>(::getpid()) << 32 | (i + 1);
        for (u64 n = 0; n < options.count; ++n) {
            mutex.lock();
            work(region, options.offset + 8, me, mutex.owner_died());
            if (mutex.owner_died()) {
                ++died;
                mutex.make_consistent();
            }
            mutex.unlock_or_throw();
        }
    });
    say(std::to_string(died));
}

void phases(lite::context& node, const Options& options) {
    auto region = node.map(options.name, kRights);
    std::atomic<u64> died = 0;
    say("running");
    in_threads(options.threads, [&](unsigned i) {
        lite::mutex mutex(node, region, options.offset);
        const u64 me = static_cast<u64>(::getpid()) << 32 | (i + 1);
        for (u64 n = 0; n < options.count; ++n) {
            if (i < options.writers) {
                mutex.lock();
                const bool was_died = mutex.owner_died();
                work(region, options.offset + 8, me, was_died);
                if (was_died) {
                    ++died;
                    mutex.make_consistent();
                }
                mutex.unlock_or_throw();
                continue;
            }
            const int err = lite_lock(node.get(), region.handle(), options.offset, me,
                                      LITE_LOCK_SHARED, LITE_FOREVER);
            if (err && err != -EOWNERDEAD)
                throw lite::error(err, "lock shared");
            const auto before = area_at(region, options.offset + 8);
            const auto after = area_at(region, options.offset + 8);
            if (!err && (before.busy || before.count != before.checked))
                throw std::runtime_error("a writer is at it");
            if (std::memcmp(&before, &after, sizeof(before)) != 0)
                throw std::runtime_error("it changes under a reader");
            const int back = lite_unlock(node.get(), region.handle(), options.offset, me);
            if (back)
                throw lite::error(back, "unlock shared");
        }
    });
    say(std::to_string(died));
}

void order(lite::context& node, const Options& options) {
    auto region = node.map(options.name, kRights);
    say("running");
    const auto begun = std::chrono::steady_clock::now();
    in_threads(options.threads, [&](unsigned) {
        lite::mutex mutex(node, region, options.offset);
        for (u64 n = 0; n < options.count; ++n) {
            mutex.lock();
            mutex.unlock_or_throw();
        }
    });
    const auto took = std::chrono::steady_clock::now() - begun;
    say(std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(took).count()));
}

void rounds(lite::context& node, const Options& options) {
    auto region = node.map(options.name, kRights);
    const lite::barrier barrier(node, region, options.offset, options.all);
    say("running");
    in_threads(options.threads, [&](unsigned) {
        for (u64 n = 0; n < options.count; ++n) {
            region.fetch_add(options.offset + 8, 1);
            barrier.arrive_and_wait();
            const u64 came = region.fetch_add(options.offset + 8, 0);
            if (came < options.all * (n + 1))
                throw std::runtime_error("too early: " + std::to_string(came));
            if (came > options.all * (n + 2))
                throw std::runtime_error("too late: " + std::to_string(came));
        }
    });
    say("through");
}

// All threads have the same number of meetings if a thread that was told that it was not counted
// really did not count.
void meet(lite::context& node, const Options& options) {
    const auto region = node.map(options.name, kRights);
    constexpr unsigned kInVain = 5000;
    std::atomic<u64> late = 0;
    say("running");
    in_threads(options.threads, [&](unsigned i) {
        std::mt19937_64 random(i + static_cast<u64>(::getpid()));
        for (u64 n = 0, in_vain = 0; n < options.count;) {
            const int err =
                lite_barrier(node.get(), region.handle(), options.offset, options.all,
                             1 + static_cast<int>(random() % static_cast<u64>(options.timeout)));
            if (err && err != -ETIMEDOUT)
                throw lite::error(err, "barrier");
            if (!err) {
                ++n;
                in_vain = 0;
            } else if (++late, ++in_vain == kInVain) {
                throw std::runtime_error("alone after " + std::to_string(n));
            }
        }
    });
    say(std::to_string(late));
}

void arrive(lite::context& node, const Options& options) {
    const auto region = node.map(options.name, kRights);
    say("ready");
    std::getchar();
    say(name_of(
        lite_barrier(node.get(), region.handle(), options.offset, options.all, options.timeout)));
}

void scribble(lite::context& node, const Options& options) {
    auto region = node.map(options.name, kRights);
    constexpr unsigned kKinds = 8;
    constexpr unsigned kKindShift = 61;
    std::mt19937_64 random(1);
    std::vector<u64> seen{0};
    say("running");
    for (;;) {
        // Old values come back later: among them those of holders that may still live.
        u64 value = seen[random() % seen.size()];
        switch (random() % 4) {
            case 0:
                value = (random() % kKinds) << kKindShift;
                break;
            case 1:
                value = random();
                break;
            default:
                break;
        }
        const u64 old = region.exchange(options.offset, value);
        if (seen.size() < 64)
            seen.push_back(old);
        else
            seen[random() % seen.size()] = old;
    }
}

void spoilt(lite::context& node, const Options& options) {
    const auto region = node.map(options.name, kRights);
    std::atomic<u64> taken = 0;
    say("running");
    in_threads(options.threads, [&](unsigned i) {
        std::mt19937_64 random(i + static_cast<u64>(::getpid()));
        for (u64 n = 0; n < options.count; ++n) {
            const auto flags = static_cast<std::uint32_t>(random() % 4);
            const int timeout = flags & LITE_LOCK_TRY ? 0 : 1 + static_cast<int>(random() % 50);
            const int err =
                lite_lock(node.get(), region.handle(), options.offset, i + 1, flags, timeout);
            if (err && err != -EOWNERDEAD)
                continue;
            ++taken;
            lite_unlock(node.get(), region.handle(), options.offset, i + 1);
        }
    });
    say(std::to_string(taken));
}

}  // namespace

int main(int argc, char** argv) {
    lite_test::Arguments line("Locks that several machines have a share in.");
    Options options;
    line.option("--index", &options.index);
    std::function<void(lite::context&, const Options&)> chosen;
    const auto add = [&](const char* name, void (*body)(lite::context&, const Options&)) {
        auto sub = line.command(name, "", [&chosen, body] { chosen = body; });
        sub.required("name", &options.name);
        sub.option("--offset", &options.offset);
        sub.option("--threads", &options.threads);
        sub.option("--writers", &options.writers);
        sub.option("--all", &options.all);
        sub.option("--count", &options.count);
        sub.option("--timeout", &options.timeout);
        sub.flag("--shared", options.shared);
        sub.flag("--try", options.try_only);
        sub.flag("--leave", options.leave);
        sub.flag("--measure", options.measure);
        sub.flag("--others", options.others);
    };
    add("hold", hold);
    add("many", many);
    add("cut", cut);
    add("crowd", crowd);
    add("storm", storm);
    add("phases", phases);
    add("order", order);
    add("rounds", rounds);
    add("meet", meet);
    add("arrive", arrive);
    add("scribble", scribble);
    add("spoilt", spoilt);
    line.parse(argc, argv);
    try {
        lite::context node(options.index);
        chosen(node, options);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
    // The thread that reads standard input may still run.
    std::fflush(stdout);
    ::_exit(0);
}
