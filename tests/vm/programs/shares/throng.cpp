// SPDX-License-Identifier: MIT
// Two users of one node: alice has many threads in a cgroup, and bob works beside them.
//
//   throng throttled INDEX NODE BOX THREADS ROUNDS PEER HERE
//       the cgroup gives alice's threads next to no processor time. They look at an LMR at NODE,
//       fill it, swap words, there and here, ask for a name that an LMR at NODE has, call the
//       function "echo" of NODE, and serve a function. Meanwhile carol, at /dev/litePEER, calls
//       alice's function, at the node HERE, until many of her calls have timed out, and that
//       node's "echo". Prints what bob and carol do, and the median milliseconds
//   throng idle INDEX NODE BOX THREADS ROUNDS PEER HERE
//       the same, but alice's threads have the policy SCHED_IDLE, and others in the cgroup compute
//   throng crowd INDEX NODE BOX THREADS ROUNDS
//       alice's threads do nothing but look at an LMR at NODE, and bob looks at its grants. Before
//       each call of bob the kernel's trace gets the line "bob asks"
//   throng restless INDEX NODE BOX THREADS 0
//       as throttled, but without bob and carol and with locks, beside sessions that end: prints
//       "ready", and ends when it reads a line. A lock never fails for the end of a session
//   throng held INDEX NODE BOX THREADS NAME
//       as throttled, but without bob, and with operations of all kinds on the LMR of that name:
//       prints "ready", and ends when it reads a line. The LMR may be freed
//
// Any error that bob sees ends it, and any of carol's but those. Run by root.
#include <lite/sync.h>
#include <lite/vector.h>
#include <lite/lite.hpp>
#include <lite/order.hpp>
#include <lite/rpc.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "../common/process.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using lite_test::Child;
using lite_test::Identity;
using lite_test::Shared;
using lite_test::Signal;

const Identity kAlice{1000, 1000};
const Identity kBob{1001, 1001};
const Identity kCarol{1002, 1002};
constexpr std::uint64_t kBytes = 4096;
constexpr std::uint64_t kLocks = kBytes;  // those of the slow threads, behind what they fill
constexpr std::array kPattern{std::byte{7}};
constexpr const char* kTaken = "taken";
constexpr const char* kEcho = "echo";
constexpr const char* kSlow = "slow";  // alice's function
constexpr std::size_t kLong = 100000;  // bytes of a request that goes by reference
constexpr auto kPatient = std::chrono::minutes(2);
constexpr std::uint64_t kWord = kBytes - sizeof(std::uint64_t);  // bob's lock

struct Options {
    int index = 0;
    std::uint32_t node = 0;
    std::string box;
    int threads = 0;
    int rounds = 0;
    std::string name;
    int peer = 0;
    std::uint32_t here = 0;
};

struct Common {
    Signal serves;                         // alice has registered her function
    Signal begun;                          // all of alice's threads have done something
    Signal starved;                        // they get next to no processor time
    std::atomic<int> ready = 0;            // of these threads
    std::atomic<std::uint64_t> looks = 0;  // at the LMR, by alice
};

// What a user has: a page at the other node and one at this.
struct Pages {
    explicit Pages(const Options& options)
        : context(options.index),
          there(context.alloc({.length = 2 * kBytes, .nodes = {options.node}})),
          here(context.alloc({.length = kBytes})) {}

    lite::context context;
    lite::region there;
    lite::region here;
};

void move_to(const std::string& box, pid_t pid) {
    std::ofstream file(box + "/cgroup.procs");
    file << pid << std::flush;
    if (!file)
        throw std::runtime_error("cannot move a process to " + box);
}

// ---- alice --------------------------------------------------------------------------------------

enum class Mode { throttled, idle, crowd, restless, held };

bool beside_bob(Mode mode) { return mode == Mode::throttled || mode == Mode::idle; }

// A slow thread may be too slow for its own operations, asks for a name that is taken, and sessions
// may end.
bool expected(const std::system_error& e, Mode mode) {
    const int err = e.code().value();
    return err == ETIMEDOUT || err == EEXIST || (mode == Mode::restless && err == EHOSTDOWN);
}

// Taking it waits for the next session; releasing it may be left to LITE.
void take_lock(Pages& pages, std::uint64_t word) {
    const auto ctx = pages.context.get();
    const auto lh = pages.there.handle();
    const int err = lite_lock(ctx, lh, word, 1, 0, LITE_FOREVER);
    if (!err)
        (void)lite_unlock(ctx, lh, word, 1);
    else if (err != -ETIMEDOUT)
        throw std::runtime_error("cannot take the lock: " + std::to_string(err));
}

// What a thread of hers does again and again. The last kind serves, only beside bob.
constexpr int kWork = 8;

void operate(Pages& pages, int kind, std::uint64_t word, Mode mode, std::uint32_t node,
             std::uint32_t echo) {
    switch (kind) {
        case 0:
            (void)pages.there.stat();
            return;
        case 1:
            return pages.there.set(0, kBytes, kPattern);
        case 2:
            (void)pages.there.exchange(word, 1);
            return;
        case 3:
            (void)pages.here.exchange(word, 1);
            return;
        case 4:
            if (!beside_bob(mode))
                return take_lock(pages, kLocks + word);
            (void)pages.context.alloc({.name = kTaken, .length = kBytes});
            return;
        case 5:
            // With so much room a few calls fill the ring.
            (void)lite::call(pages.context, node, echo, kPattern, LITE_RPC_BYTES_MAX);
            return;
        default:
            (void)lite::call(pages.context, node, echo, std::vector<std::byte>(kLong), kLong);
            return;
    }
}

void work_as_alice(Pages& pages, Common& common, const Options& options, int number, Mode mode,
                   std::uint32_t echo) {
    const auto word = static_cast<std::uint64_t>(number) * sizeof(std::uint64_t);
    const int kind = mode == Mode::crowd ? 0 : number % (kWork - !beside_bob(mode));
    for (bool first = true;; first = false) {
        try {
            operate(pages, kind, word, mode, options.node, echo);
            if (kind == 0)
                common.looks++;
        } catch (const std::system_error& e) {
            if (!expected(e, mode))
                throw;
        }
        if (first)
            common.ready++;
    }
}

void serve_as_alice(lite::function& function, Common& common) {
    bool first = true;
    function.serve(
        [&](const lite::call_info&, std::span<const std::byte>, std::vector<std::byte>&) {
            // So that its time is used up while it has a request.
            for (const auto until = Clock::now() + std::chrono::milliseconds(1);
                 Clock::now() < until;) {
            }
            if (std::exchange(first, false))
                common.ready++;
            return 0U;
        });
}

// Operations of one kind on an LMR, until it is gone.
class Holder {
  public:
    Holder(lite::context& context, lite::region& lmr, lite::region& own, int number)
        : context_(context),
          lmr_(lmr),
          own_(own),
          kind_(number % kKinds),
          word_(static_cast<std::uint64_t>(number) * sizeof(std::uint64_t)),
          large_(lmr.length()) {}

    void run() {
        std::array<std::byte, 64> small{};
        switch (kind_) {
            case 0:
                return lmr_.read(0, small);
            case 1:
                return lmr_.write(0, small);
            case 2:
                (void)lmr_.fetch_add(word_, 1);
                return;
            case 3:
                return lmr_.write(0, std::span<const std::byte>(large_));
            case 4:
                return lmr_.read(0, std::span<std::byte>(large_));
            case 5:
                return run_vector();
            case 6:
                return lmr_.set(0, kBytes, kPattern);
            case 7:
                (void)lmr_.exchange(word_, 1);
                return;
            case 8:
                return lmr_.copy(0, own_, 0, kBytes);
            case 9:
                (void)own_.compare(0, lmr_, 0, kBytes);
                return;
            default:
                lite::fence(context_, lmr_);
                return;
        }
    }
    static constexpr int kKinds = 11;

  private:
    // Of two priorities, and too few to go in messages; and many, which do on Soft-RoCE.
    void run_vector() {
        std::vector<lite_op> ops;
        many_ = !many_;
        for (std::uint64_t i = 0; i < (many_ ? 32U : 6U); i++) {
            lite_op op{};
            op.size = sizeof(op);
            op.opcode = i % 2 ? LITE_OP_READ : LITE_OP_WRITE;
            op.lh = lmr_.handle();
            op.offset = i * sizeof(std::uint64_t);
            op.length = sizeof(std::uint64_t);
            op.buf = reinterpret_cast<std::uintptr_t>(large_.data() + op.offset);
            op.priority = many_ || i % 3 ? 0 : 8;
            ops.push_back(op);
        }
        const int failed = lite_vector(context_.get(), ops.data(), ops.size());
        if (failed)
            for (const auto& op : ops)
                if (op.error)
                    throw std::system_error(-op.error, std::generic_category(), "vector");
    }

    lite::context& context_;
    lite::region& lmr_;
    lite::region& own_;
    int kind_;
    bool many_ = false;
    std::uint64_t word_;
    std::vector<std::byte> large_;
};

void hold_as_alice(lite::context& context, lite::region& lmr, lite::region& own, Common& common,
                   int number) {
    Holder holder(context, lmr, own, number);
    for (bool first = true;; first = false) {
        try {
            holder.run();
        } catch (const std::system_error& e) {
            // Gone; or this thread is too slow for its own operations.
            if (e.code().value() == EIDRM || e.code().value() == ESTALE)
                return;
            if (e.code().value() != ETIMEDOUT)
                throw;
        }
        if (first)
            common.ready++;
    }
}

void wait_for_threads(const Options& options, Common& common) {
    while (common.ready < options.threads)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    common.begun.post();
}

[[noreturn]] void hold(const Options& options, Common& common) {
    lite_test::become(kAlice);
    lite::context context(options.index);
    auto lmr =
        context.map(options.name, lite::rights::read | lite::rights::write | lite::rights::atomic);
    auto own = context.alloc({.length = kBytes});
    std::vector<std::jthread> threads;
    for (int i = 0; i < options.threads; i++)
        threads.emplace_back([&, i] { hold_as_alice(context, lmr, own, common, i); });
    wait_for_threads(options, common);
    for (;;)
        ::pause();
}

[[noreturn]] void be_alice(const Options& options, Common& common, Mode mode) {
    if (mode == Mode::held)
        hold(options, common);
    lite_test::become(kAlice);
    Pages pages(options);
    std::optional<lite::function> slow;
    if (beside_bob(mode)) {
        (void)pages.context.alloc({.name = kTaken, .length = kBytes, .nodes = {options.node}});
        slow.emplace(pages.context,
                     lite::function_options{.name = kSlow, .mode = 0666, .max_request = kLong});
        common.serves.post();
    }
    const auto echo =
        mode == Mode::crowd ? 0 : lite::find_function(pages.context, options.node, kEcho);
    std::vector<std::jthread> threads;
    for (int i = 0; i < options.threads; i++) {
        if (slow && i % kWork == kWork - 1)
            threads.emplace_back([&] { serve_as_alice(*slow, common); });
        else
            threads.emplace_back([&, i] { work_as_alice(pages, common, options, i, mode, echo); });
    }
    wait_for_threads(options, common);
    threads.front().join();
    throw std::logic_error("a thread without an end has ended");
}

// From here on a process gets a processor when no others want it.
void make_idle(pid_t pid) {
    const sched_param none{};
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task"))
        if (::sched_setscheduler(std::stoi(task.path().filename()), SCHED_IDLE, &none))
            throw std::runtime_error("cannot set the policy of a thread");
}

// Wants a processor all the time, more than all other processes of its cgroup.
[[noreturn]] void occupy(unsigned cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (::sched_setaffinity(0, sizeof(set), &set) || ::setpriority(PRIO_PROCESS, 0, -20))
        throw std::runtime_error("cannot occupy a processor");
    for (volatile bool forever = true; forever;) {
    }
    throw std::logic_error("it is over");
}

// Alice's process, in the cgroup.
class Alice {
  public:
    Alice(const Options& options, Common& common, Mode mode)
        : outside_(options.box.substr(0, options.box.rfind('/'))),
          child_([&] { be_alice(options, common, mode); }) {
        common.begun.wait("alice's threads");
        if (mode == Mode::idle) {
            make_idle(child_.pid());
            for (unsigned cpu = 0; cpu < std::thread::hardware_concurrency(); cpu++)
                move_to(options.box, others_.emplace_back([cpu] { occupy(cpu); }).pid());
        }
        move_to(options.box, child_.pid());
    }
    Alice(const Alice&) = delete;
    Alice& operator=(const Alice&) = delete;
    // In the cgroup the slow threads would take long to exit.
    ~Alice() {
        others_.clear();
        move_to(outside_, child_.pid());
        child_.kill(SIGKILL);
        (void)child_.wait();
    }
    bool running() const {
        siginfo_t info{};
        return !::waitid(P_PID, static_cast<id_t>(child_.pid()), &info,
                         WEXITED | WNOHANG | WNOWAIT) &&
               !info.si_pid;
    }

  private:
    std::string outside_;
    Child child_;
    std::vector<Child> others_;
};

void wait_throttled(const std::string& box) {
    lite_test::wait_until("the cgroup is throttled", [&] {
        std::ifstream file(box + "/cpu.stat");
        std::string word;
        int value = 0;
        while (file >> word >> value)
            if (word == "nr_throttled")
                return value > 1;
        return false;
    });
}

// ---- bob ----------------------------------------------------------------------------------------

template <typename T>
T median_of(std::vector<T> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

template <typename Operation>
void time(const char* what, int rounds, Operation operation) {
    std::vector<double> took;
    for (int i = 0; i < rounds; i++) {
        const auto begun = Clock::now();
        try {
            operation();
        } catch (const std::exception& e) {
            throw std::runtime_error(std::string(what) + ": " + e.what());
        }
        took.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begun).count());
    }
    std::printf("%s %.3f\n", what, median_of(took));
    std::fflush(stdout);
}

void find_nothing(lite::context& context, std::uint32_t node) {
    try {
        (void)lite::find_function(context, node, "nothing");
    } catch (const std::system_error& e) {
        if (e.code().value() == ECONNREFUSED)
            return;
        throw;
    }
    throw std::logic_error("there is such a function");
}

void work_as_bob(const Options& options) {
    Pages pages(options);
    const int rounds = options.rounds;
    time("stat", rounds, [&] { (void)pages.there.stat(); });
    time("alloc", rounds, [&] {
        auto made = pages.context.alloc({.length = kBytes, .nodes = {options.node}});
        made.unmap();
    });
    time("name", rounds, [&] {
        auto made = pages.context.alloc({.name = "bob's", .length = kBytes});
        made.free();
    });
    time("find", rounds, [&] { find_nothing(pages.context, options.node); });
    const auto echo = lite::find_function(pages.context, options.node, kEcho);
    time("call", rounds,
         [&] { (void)lite::call(pages.context, options.node, echo, kPattern, kBytes, kPatient); });
    time("read", rounds, [&] {
        std::array<std::byte, kBytes> page{};
        pages.there.read(0, page);
    });
    time("set", rounds, [&] { pages.there.set(0, kBytes / 2, kPattern); });
    time("swap-there", rounds, [&] { (void)pages.there.exchange(0, 1); });
    time("swap-here", rounds, [&] { (void)pages.here.exchange(0, 1); });
    time("lock", rounds, [&] {
        const auto ctx = pages.context.get();
        const auto lh = pages.there.handle();
        int err = lite_lock(ctx, lh, kWord, 1, 0, LITE_FOREVER);
        if (!err)
            err = lite_unlock(ctx, lh, kWord, 1);
        if (err)
            throw std::system_error(-err, std::generic_category(), "cannot take and release it");
    });
}

// ---- carol --------------------------------------------------------------------------------------

constexpr int kAskers = 8;
constexpr auto kImpatient = std::chrono::seconds(1);
// After so many of these a session has ended if anything of these calls could end it.
constexpr int kLate = 15;

void ask_alice(lite::context& context, const Options& options, std::size_t bytes) {
    const auto slow = lite::find_function(context, options.here, kSlow);
    const std::vector<std::byte> request(bytes);
    for (int late = 0; late < kLate;) {
        try {
            (void)lite::call(context, options.here, slow, request, 0, kImpatient);
        } catch (const std::system_error& e) {
            if (e.code().value() != ETIMEDOUT)
                throw;
            late++;
        }
    }
}

void be_carol(const Options& options, Common& common) {
    common.serves.wait("alice's function");
    lite_test::become(kCarol);
    lite::context context(options.peer);
    std::vector<std::jthread> threads;
    for (int i = 0; i < kAskers; i++)
        threads.emplace_back([&, i] { ask_alice(context, options, i % 2 ? kLong : 1); });
    const auto echo = lite::find_function(context, options.here, kEcho);
    common.starved.wait("alice gets no processor");
    time("ask", options.rounds,
         [&] { (void)lite::call(context, options.here, echo, kPattern, kBytes, kPatient); });
}

// ---- both ---------------------------------------------------------------------------------------

void beside_alice(const Options& options, Mode mode) {
    Shared<Common> common;
    Child carol([&] { be_carol(options, *common); });
    Alice alice(options, *common, mode);
    if (mode == Mode::throttled)
        wait_throttled(options.box);
    common->starved.post();
    lite_test::as_user(kBob, [&] { work_as_bob(options); });
    carol.join();
}

void crowd(const Options& options) {
    Shared<Common> common;
    Alice alice(options, *common, Mode::crowd);
    // So that bob does not wait for a processor between the line in the trace and the call.
    if (::setpriority(PRIO_PROCESS, 0, -20))
        throw std::runtime_error("cannot raise the priority");
    std::ofstream trace("/sys/kernel/tracing/trace_marker");
    lite_test::as_user(kBob, [&] {
        Pages pages(options);
        const auto begun = common->looks.load();
        const auto wanted = static_cast<std::uint64_t>(options.threads);
        // Until it is certain that her threads are at it.
        for (int i = 0; i < options.rounds || common->looks - begun < wanted; i++) {
            if (!(trace << "bob asks" << std::flush))
                throw std::runtime_error("cannot write to the kernel's trace");
            (void)pages.there.grants();
        }
    });
}

void alone(const Options& options, Mode mode) {
    Shared<Common> common;
    Alice alice(options, *common, mode);
    wait_throttled(options.box);
    std::printf("ready\n");
    std::fflush(stdout);
    (void)std::getchar();
    if (!alice.running())
        throw std::runtime_error("alice has seen an error");
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const bool beside = !words.empty() && (words[0] == "throttled" || words[0] == "idle");
    if (words.size() != (beside ? 8 : 6))
        return 2;
    try {
        const bool named = words[0] == "held";
        const Options options{std::stoi(words[1]),
                              static_cast<std::uint32_t>(std::stoul(words[2])),
                              words[3],
                              std::stoi(words[4]),
                              named ? 0 : std::stoi(words[5]),
                              words[5],
                              beside ? std::stoi(words[6]) : 0,
                              beside ? static_cast<std::uint32_t>(std::stoul(words[7])) : 0};
        if (beside)
            beside_alice(options, words[0] == "idle" ? Mode::idle : Mode::throttled);
        else if (words[0] == "crowd")
            crowd(options);
        else if (words[0] == "restless")
            alone(options, Mode::restless);
        else if (named)
            alone(options, Mode::held);
        else
            return 2;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "throng: %s\n", e.what());
        return 1;
    }
    return 0;
}
