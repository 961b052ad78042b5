// SPDX-License-Identifier: MIT
// Threads that get a processor only when others let them, in the middle of the work of others:
//
//   starved receive HERE THERE NODE   an ordinary thread calls from /dev/liteHERE, and so does a
//                                     real-time thread. The ordinary thread may take the other's
//                                     replies from the device. Another real-time thread keeps
//                                     their processor until the real-time caller has gone on. NODE
//                                     is the node of /dev/liteTHERE.
//   starved occupy CPU                keeps a processor from all other threads, also from those of
//                                     the kernel, except for the one that does the work that
//                                     interrupts leave
//   starved write INDEX NAME BYTES WRITERS COUNT [CGROUP]
//                                     many threads write to an LMR without a pause, one computes,
//                                     and one of the policy SCHED_IDLE, or in a threaded cgroup,
//                                     prints its id and writes as well, COUNT times
//   starved call INDEX NAME BYTES WRITERS NODE
//                                     many threads write to an LMR, and one has its kernel call
//                                     the kernel of the node; prints a lower bound of the bytes
//                                     that the others have written meanwhile
#include <lite/lite.hpp>
#include <lite/rpc.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <semaphore>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;

// The limit for real-time threads; by default, it leaves some time to ordinary threads.
constexpr auto kShare = "/proc/sys/kernel/sched_rt_runtime_us";

void set_policy(int policy, int priority) {
    const sched_param param{priority};
    if (pthread_setschedparam(pthread_self(), policy, &param))
        throw std::runtime_error("cannot set the policy");
}

void stay_on(unsigned cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set))
        throw std::runtime_error("cannot choose the processor");
}

// The thread of a processor that does the work that interrupts leave, also that of RCU. Without it
// no kernel goes on for long, with or without LITE.
pid_t ksoftirqd(unsigned cpu) {
    const auto name = "ksoftirqd/" + std::to_string(cpu);
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        std::ifstream file(entry.path() / "comm");
        std::string comm;
        if (std::getline(file, comm) && comm == name)
            return std::stoi(entry.path().filename());
    }
    throw std::runtime_error("there is no " + name);
}

void let_interrupts_work(unsigned cpu) {
    const sched_param most_urgent{60};
    if (sched_setscheduler(ksoftirqd(cpu), SCHED_FIFO, &most_urgent))
        throw std::runtime_error("cannot set the policy of another thread");
}

// ---- receive ------------------------------------------------------------------------------------

constexpr std::uint32_t kFunction = 2100;
constexpr int kRounds = 100;
// Calls that the real-time caller makes while the ordinary one has no processor.
constexpr int kCalls = 3;
constexpr auto kPatience = std::chrono::seconds(15);

struct Shared {
    std::atomic<bool> end = false;
    std::atomic<bool> served = false;  // the last caller has ended
    std::atomic<int> calls = 0;
    std::counting_semaphore<> called{0};
    unsigned here = 0;
    std::uint32_t node = 0;
};

void serve(Shared& shared, unsigned index, std::binary_semaphore& ready) {
    stay_on(1);
    lite::context context(static_cast<int>(index));
    lite::function echo(context, {.number = kFunction, .max_request = 8, .max_reply = 8});
    ready.release();
    echo.serve(
        [](const lite::call_info&, std::span<const std::byte> in, std::vector<std::byte>& out) {
            out.assign(in.begin(), in.end());
            return 0U;
        },
        [&shared] { return !shared.served; });
}

void call_once(lite::context& context, const Shared& shared) {
    const std::uint64_t word = 1;
    (void)lite::call(context, shared.node, kFunction, std::as_bytes(std::span(&word, 1)));
}

void call_as_ordinary(Shared& shared) {
    stay_on(0);
    lite::context context(static_cast<int>(shared.here));
    while (!shared.end)
        call_once(context, shared);
}

void call_urgently(Shared& shared) {
    lite::context context(static_cast<int>(shared.here));
    stay_on(0);
    set_policy(SCHED_FIFO, 50);
    while (!shared.end) {
        call_once(context, shared);
        shared.calls++;
        shared.called.release();
    }
}

// Whether the real-time caller has gone on each time.
bool occupy(Shared& shared) {
    stay_on(0);
    set_policy(SCHED_FIFO, 40);
    for (int round = 0; round < kRounds; round++) {
        shared.called.acquire();
        const int wanted = shared.calls + kCalls;
        Clock::duration spun{};
        for (auto last = Clock::now(); shared.calls < wanted;) {
            const auto now = Clock::now();
            // Time in which the machine stood still does not count.
            spun += std::min(now - last, Clock::duration(std::chrono::milliseconds(10)));
            last = now;
            if (spun > kPatience)
                return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        while (shared.called.try_acquire()) {
        }
    }
    return true;
}

int receive(unsigned here, unsigned there, std::uint32_t node) {
    std::ofstream(kShare) << "-1" << std::flush;
    let_interrupts_work(0);
    Shared shared;
    shared.here = here;
    shared.node = node;
    std::binary_semaphore ready{0};
    std::thread server([&] { serve(shared, there, ready); });
    ready.acquire();
    std::thread ordinary([&] { call_as_ordinary(shared); });
    std::thread urgent([&] { call_urgently(shared); });
    bool ok = false;
    std::thread([&] { ok = occupy(shared); }).join();
    shared.end = true;
    ordinary.join();
    urgent.join();
    shared.served = true;
    // Waits for a request.
    lite::context context(static_cast<int>(here));
    call_once(context, shared);
    server.join();
    std::puts(ok ? "went on" : "stuck behind a thread without a processor");
    return ok ? 0 : 1;
}

[[noreturn]] void occupy_for_good(unsigned cpu) {
    std::ofstream(kShare) << "-1" << std::flush;
    let_interrupts_work(cpu);
    stay_on(cpu);
    set_policy(SCHED_FIFO, 40);
    std::puts("ready");
    std::fflush(stdout);
    for (volatile bool forever = true; forever;) {
    }
    throw std::logic_error("it is over");
}

// ---- write, and call
// -----------------------------------------------------------------------------

constexpr int kKernelCalls = 5;

// Threads that write to an LMR, each to its own part.
class Writers {
  public:
    Writers(lite::context& context, const std::string& name, std::size_t bytes, int count)
        : m_bytes(bytes) {
        // Before there is any traffic to wait behind.
        for (int i = 0; i < count; i++)
            m_lmrs.push_back(context.map(name));
        for (std::size_t i = 0; i < m_lmrs.size(); i++)
            m_threads.emplace_back([this, i] { write(i); });
        while (m_written < static_cast<std::uint64_t>(count) && !m_failed)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    Writers(const Writers&) = delete;
    Writers& operator=(const Writers&) = delete;
    ~Writers() { end(); }

    void end() {
        m_end = true;
        for (auto& thread : m_threads)
            thread.join();
        m_threads.clear();
    }
    std::uint64_t bytes() const { return m_written * m_bytes; }
    bool failed() const { return m_failed; }
    std::uint64_t place_behind() const { return m_threads.size() * m_bytes; }

  private:
    void write(std::size_t i) {
        try {
            const std::vector<std::byte> data(m_bytes);
            while (!m_end) {
                m_lmrs[i].write(i * m_bytes, data);
                m_written++;
            }
        } catch (const std::exception& e) {
            std::fprintf(stderr, "starved: a writer: %s\n", e.what());
            m_failed = true;
        }
    }

    const std::size_t m_bytes;
    std::vector<lite::region> m_lmrs;
    std::atomic<bool> m_end = false;
    std::atomic<bool> m_failed = false;
    std::atomic<std::uint64_t> m_written = 0;
    std::vector<std::thread> m_threads;
};

// Also computes for longer than the cgroup's quota for a period, so that the quota is used up when
// the thread writes.
void enter_cgroup(const std::string& path) {
    std::ofstream threads(path + "/cgroup.threads");
    threads << ::gettid() << std::flush;
    if (!threads)
        throw std::runtime_error("cannot enter the cgroup");
    for (const auto until = Clock::now() + std::chrono::milliseconds(500); Clock::now() < until;) {
    }
}

int write(unsigned index, const std::string& name, std::size_t bytes, int threads, int count,
          const std::string& cgroup) {
    lite::context context(static_cast<int>(index));
    auto lmr = context.map(name);
    Writers writers(context, name, bytes, threads);
    std::atomic<bool> end = false;
    std::thread computing([&end] {
        while (!end) {
        }
    });
    bool ok = false;
    std::thread([&] {
        const std::vector<std::byte> data(bytes);
        std::printf("%d\n", static_cast<int>(::gettid()));
        std::fflush(stdout);
        try {
            if (cgroup.empty())
                set_policy(SCHED_IDLE, 0);
            else
                enter_cgroup(cgroup);
            for (int i = 0; i < count; i++) {
                const auto before = writers.bytes();
                lmr.write(writers.place_behind(), data);
                std::printf("%llu writes of others\n",
                            static_cast<unsigned long long>((writers.bytes() - before) / bytes));
                std::fflush(stdout);
            }
            ok = true;
        } catch (const std::exception& e) {
            std::fprintf(stderr, "starved: the slow one: %s\n", e.what());
        }
    }).join();
    end = true;
    computing.join();
    writers.end();
    return ok && !writers.failed() ? 0 : 1;
}

int call(unsigned index, const std::string& name, std::size_t bytes, int count,
         std::uint32_t node) {
    lite::context context(static_cast<int>(index));
    Writers writers(context, name, bytes, count);
    std::uint64_t least = ~0ULL;
    for (int i = 0; i < kKernelCalls; i++) {
        const auto before = writers.bytes();
        try {
            (void)lite::find_function(context, node, "nothing");
            throw std::logic_error("there is such a function");
        } catch (const std::system_error& e) {
            if (e.code().value() != ECONNREFUSED)
                throw;
        }
        least = std::min(least, writers.bytes() - before);
    }
    writers.end();
    std::printf("%llu\n", static_cast<unsigned long long>(least));
    return writers.failed() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    try {
        if (words.size() == 4 && words[0] == "receive")
            return receive(static_cast<unsigned>(std::stoul(words[1])),
                           static_cast<unsigned>(std::stoul(words[2])),
                           static_cast<std::uint32_t>(std::stoul(words[3])));
        if (words.size() == 2 && words[0] == "occupy")
            occupy_for_good(static_cast<unsigned>(std::stoul(words[1])));
        if ((words.size() == 6 || words.size() == 7) && words[0] == "write")
            return write(static_cast<unsigned>(std::stoul(words[1])), words[2],
                         std::stoul(words[3]), std::stoi(words[4]), std::stoi(words[5]),
                         words.size() == 7 ? words[6] : std::string());
        if (words.size() == 6 && words[0] == "call")
            return call(static_cast<unsigned>(std::stoul(words[1])), words[2], std::stoul(words[3]),
                        std::stoi(words[4]), static_cast<std::uint32_t>(std::stoul(words[5])));
    } catch (const std::exception& e) {
        std::fprintf(stderr, "starved: %s\n", e.what());
        return 1;
    }
    return 2;
}
