// SPDX-License-Identifier: MIT
// A machine that does nothing but handle interrupts:
//
//   hog MS      for MS milliseconds no other thread runs on any processor, not even the kernel's
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

namespace {

using Clock = std::chrono::steady_clock;

// Sets how much time real-time threads may use; by default, some is left to other threads.
bool set_share(const char* value) {
    std::ofstream file("/proc/sys/kernel/sched_rt_runtime_us");
    file << value << std::flush;
    return file.good();
}

bool occupy(unsigned cpu, Clock::time_point until) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    const sched_param urgent{sched_get_priority_max(SCHED_FIFO)};
    if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set) ||
        pthread_setschedparam(pthread_self(), SCHED_FIFO, &urgent))
        return false;
    while (Clock::now() < until) {
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2 || ::mlockall(MCL_CURRENT | MCL_FUTURE) || !set_share("-1")) {
        std::perror("hog");
        return 2;
    }
    const auto until = Clock::now() + std::chrono::milliseconds(std::atoi(argv[1]));
    std::atomic<bool> ok = true;
    std::vector<std::thread> threads;
    for (unsigned cpu = 1; cpu < std::thread::hardware_concurrency(); cpu++)
        threads.emplace_back([&ok, cpu, until] { ok = occupy(cpu, until) && ok; });
    ok = occupy(0, until) && ok;
    for (auto& thread : threads)
        thread.join();
    return set_share("950000") && ok ? 0 : 1;
}
