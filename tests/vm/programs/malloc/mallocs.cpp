// SPDX-License-Identifier: MIT
// A program that knows nothing of arenas, and checks its memory, to be run with liblite-arena.so:
//
//   mallocs cases WHERE                 each function, its refusals, forks, ends
//   mallocs random WHERE SEED ROUNDS N  N threads, which fork now and then
//   mallocs limit                       allocates until large blocks are no longer in arenas
//   mallocs not-copied                  forks when a child can get no copies, and when it can
//   mallocs register WHERE NAME MB      makes an LMR of a large malloc and says "ready"; at the end
//                                       of its input, checks that a peer has written to it
//   mallocs outlive                     has large blocks and says "ready"; at the end of its input,
//                                       uses them without their node
//
// WHERE large blocks must be: "arena" or "elsewhere". It prints "good", or what is wrong.
#include <lite/lite.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <malloc.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr std::size_t kPage = 4096, kMega = 1 << 20;

bool wants_arena = true;

#define CHECK(condition)                \
    do {                                \
        if (!(condition))               \
            fail(#condition, __LINE__); \
    } while (0)

[[noreturn]] void fail(const char* what, int line) {
    std::printf("mallocs.cpp:%d: %s (errno: %s)\n", line, what, std::strerror(errno));
    std::fflush(stdout);
    ::_exit(1);
}

// Calls @each with the size of all mappings of arenas; whether @at is in one.
bool scan_maps(const void* at, std::size_t& all) {
    std::FILE* maps = std::fopen("/proc/self/maps", "re");
    CHECK(maps);
    char line[512];
    bool found = false;
    all = 0;
    while (std::fgets(line, sizeof(line), maps)) {
        std::uintptr_t from = 0, to = 0;
        CHECK(std::sscanf(line, "%lx-%lx", &from, &to) == 2);
        if (!std::strstr(line, "lite-arena]"))
            continue;
        all += to - from;
        found |= reinterpret_cast<std::uintptr_t>(at) - from < to - from;
    }
    std::fclose(maps);
    return found;
}

std::size_t arena_bytes() {
    std::size_t all;
    scan_maps(nullptr, all);
    return all;
}

bool in_arena(const void* p) {
    std::size_t all;
    return scan_maps(p, all);
}

bool is_right(const void* p) { return p && in_arena(p) == wants_arena; }

// Distinct for each word of each block.
std::uint64_t word_of(std::uint64_t seed, std::size_t i) {
    return (seed + i) * 0x9e3779b97f4a7c15ULL + i;
}

void fill(void* p, std::size_t size, std::uint64_t seed) {
    auto* words = static_cast<std::uint64_t*>(p);
    for (std::size_t i = 0; i < size / 8; i++)
        words[i] = word_of(seed, i);
}

bool holds(const void* p, std::size_t size, std::uint64_t seed) {
    const auto* words = static_cast<const std::uint64_t*>(p);
    for (std::size_t i = 0; i < size / 8; i++)
        if (words[i] != word_of(seed, i))
            return false;
    return true;
}

bool is_zero(const void* p, std::size_t size) {
    const auto* bytes = static_cast<const char*>(p);
    return std::all_of(bytes, bytes + size, [](char c) { return !c; });
}

// The children of one test run beside each other in none: a plain fork and its end.
void in_child(const std::function<void()>& body) {
    std::fflush(stdout);
    const pid_t child = ::fork();
    sigset_t blocked;
    CHECK(child >= 0 && !::pthread_sigmask(SIG_BLOCK, nullptr, &blocked));
    CHECK(!::sigismember(&blocked, SIGUSR1));
    if (!child) {
        body();
        ::_exit(0);
    }
    int status = 1;
    CHECK(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

// ---- cases -----------------------------------------------------------------

void test_functions() {
    void* small = std::malloc(kMega - 1);
    CHECK(small && !in_arena(small));
    std::free(small);
    for (const std::size_t size : {kMega, kMega + 1, 3 * kMega + 5, 40 * kMega}) {
        void* p = std::malloc(size);
        CHECK(is_right(p));
        CHECK(::malloc_usable_size(p) >= size);
        // It can be registered as it is.
        CHECK(!wants_arena || reinterpret_cast<std::uintptr_t>(p) % kPage == 0);
        fill(p, ::malloc_usable_size(p), size);
        CHECK(holds(p, size, size));
        std::free(p);
        // Zeroed, though it may be the same again.
        p = std::calloc(size / 5 + 1, 5);
        CHECK(is_right(p) && is_zero(p, size));
        std::free(p);
    }
    for (std::size_t alignment = 8; alignment <= 4 * kMega; alignment *= 2) {
        void* other = nullptr;
        CHECK(::posix_memalign(&other, alignment, kMega + 8) == 0);
        void* all[] = {std::aligned_alloc(alignment, 4 * kMega), ::memalign(alignment, kMega),
                       other};
        for (void* p : all) {
            CHECK(p && reinterpret_cast<std::uintptr_t>(p) % alignment == 0);
            CHECK(in_arena(p) == (wants_arena && alignment <= 2 * kMega));
            fill(p, kMega, alignment);
        }
        for (void* p : all) {
            CHECK(holds(p, kMega, alignment));
            std::free(p);
        }
    }
    for (void* p : {::valloc(kMega + 1), ::pvalloc(kMega + 1)}) {
        CHECK(is_right(p) && reinterpret_cast<std::uintptr_t>(p) % kPage == 0);
        CHECK(::malloc_usable_size(p) >= kMega + 1);
        std::free(p);
    }
    std::vector<char> vector(5 * kMega, 'x');
    CHECK(is_right(vector.data()));
    std::free(nullptr);
    CHECK(::malloc_usable_size(nullptr) == 0);
}

void test_refusals() {
    // The compiler must not know the sizes.
    volatile std::size_t huge = PTRDIFF_MAX, most = SIZE_MAX, half = SIZE_MAX / 2 + 2, two = 2;
    // And one of which nine eighths are less than 2 MB, modulo 2^64.
    const std::size_t wraps = most / 9 * 8 + 0x1c0000;
    for (const std::size_t size :
         {std::size_t{huge}, std::size_t{most}, huge - 1, most - 4095, wraps}) {
        errno = 0;
        CHECK(!std::malloc(size) && errno == ENOMEM);
        errno = 0;
        CHECK(!std::calloc(size, 1) && errno == ENOMEM);
        CHECK(!std::aligned_alloc(64, size));
        void* p = std::malloc(2 * kMega);
        fill(p, 2 * kMega, 1);
        errno = 0;
        CHECK(!std::realloc(p, size) && errno == ENOMEM);
        CHECK(holds(p, 2 * kMega, 1));
        std::free(p);
    }
    errno = 0;
    CHECK(!std::calloc(half, two) && errno == ENOMEM);
    // What is left of this product is large.
    errno = 0;
    CHECK(!std::calloc(half + kMega, two) && errno == ENOMEM);
    void* p = std::malloc(2 * kMega);
    fill(p, 2 * kMega, 2);
    errno = 0;
    CHECK(!::reallocarray(p, half + kMega, two) && errno == ENOMEM);
    CHECK(holds(p, 2 * kMega, 2));
    p = ::reallocarray(p, 3 * kMega, two);
    CHECK(is_right(p) && holds(p, 2 * kMega, 2));
    void* untouched = p;
    CHECK(::posix_memalign(&untouched, 24, kMega) == EINVAL && untouched == p);
    CHECK(::posix_memalign(&untouched, 4, kMega) == EINVAL && untouched == p);
    errno = 77;
    std::free(p);
    CHECK(errno == 77);
    p = std::malloc(70 * kMega);
    CHECK(p && errno == 77);
    std::free(p);
    CHECK(errno == 77);
}

void test_realloc() {
    void* p = std::realloc(nullptr, 3000);
    fill(p, 3000, 1);
    // Into an arena, larger, shorter, shorter again, and out of it.
    p = std::realloc(p, 2 * kMega);
    CHECK(is_right(p) && holds(p, 3000, 1));
    fill(p, 2 * kMega, 2);
    p = std::realloc(p, 9 * kMega);
    CHECK(is_right(p) && holds(p, 2 * kMega, 2));
    fill(p, 9 * kMega, 3);
    p = std::realloc(p, 8 * kMega);
    CHECK(is_right(p) && holds(p, 8 * kMega, 3));
    p = std::realloc(p, 2 * kMega);
    CHECK(is_right(p) && holds(p, 2 * kMega, 3));
    CHECK(::malloc_usable_size(p) < 4 * kMega);
    p = std::realloc(p, 5000);
    CHECK(p && !in_arena(p) && holds(p, 5000, 3));
    p = std::realloc(p, kMega);
    CHECK(is_right(p) && holds(p, 5000, 3));
    CHECK(!std::realloc(p, 0));
    p = std::realloc(nullptr, kMega);
    CHECK(is_right(p));
    // A block that grows in small steps is not copied each time.
    int moves = 0;
    for (std::size_t size = kMega; size < 32 * kMega; size += kPage) {
        fill(p, 64, size);
        const auto before = reinterpret_cast<std::uintptr_t>(p);
        p = std::realloc(p, size + kPage);
        moves += reinterpret_cast<std::uintptr_t>(p) != before;
        CHECK(p && holds(p, 64, size));
    }
    CHECK(!wants_arena || moves < 60);
    std::free(p);
}

void test_fork() {
    std::array<void*, 8> all{};
    for (std::size_t i = 0; i < all.size(); i++) {
        all[i] = std::malloc((i + 1) * kMega);
        CHECK(is_right(all[i]));
        fill(all[i], (i + 1) * kMega, i);
    }
    std::free(std::exchange(all[3], nullptr));
    void* sparse = std::calloc(1, 20 * kMega);
    static_cast<char*>(sparse)[7 * kMega] = 'x';
    const auto intact = [&](std::uint64_t seed) {
        for (std::size_t i = 0; i < all.size(); i++)
            if (all[i] && !holds(all[i], (i + 1) * kMega, i + seed))
                return false;
        return true;
    };
    int go[2], done[2];
    CHECK(!::pipe(go) && !::pipe(done));
    const pid_t child = ::fork();
    CHECK(child >= 0);
    // The end of either process is an end of input for the other one.
    ::close(child ? go[0] : go[1]);
    ::close(child ? done[1] : done[0]);
    if (!child) {
        char c;
        CHECK(::read(go[0], &c, 1) == 1);  // the parent has changed its memory
        CHECK(intact(0));
        CHECK(static_cast<char*>(sparse)[7 * kMega] == 'x');
        static_cast<char*>(sparse)[7 * kMega] = 0;
        CHECK(is_zero(sparse, 20 * kMega));
        for (std::size_t i = 0; i < all.size(); i++)
            if (all[i])
                fill(all[i], (i + 1) * kMega, i + 200);
        CHECK(::write(done[1], "x", 1) == 1);
        // A grandchild has what the child had.
        in_child([&] {
            CHECK(intact(200));
            std::free(std::exchange(all[0], nullptr));
            CHECK(intact(200));
        });
        CHECK(intact(200));
        CHECK(::malloc_usable_size(all[7]) >= 8 * kMega);
        all[7] = std::realloc(all[7], 12 * kMega);
        CHECK(is_right(all[7]) && holds(all[7], 8 * kMega, 207));
        all[6] = std::realloc(all[6], 5 * kMega);
        CHECK(holds(all[6], 5 * kMega, 206));
        void* own = std::calloc(1, 5 * kMega);
        CHECK(is_right(own) && is_zero(own, 5 * kMega));
        std::free(all[5]);
        std::free(all[4]);
        fill(own, 5 * kMega, 9);
        in_child([&] { CHECK(holds(own, 5 * kMega, 9)); });
        std::free(own);
        for (void* p : {all[0], all[1], all[2], all[6], all[7], sparse})
            std::free(p);
        CHECK(arena_bytes() <= 64 * kMega);
        ::_exit(0);
    }
    for (std::size_t i = 0; i < all.size(); i++)
        if (all[i])
            fill(all[i], (i + 1) * kMega, i + 100);
    CHECK(::write(go[1], "x", 1) == 1);
    char c;
    CHECK(::read(done[0], &c, 1) == 1);  // the child has changed its own
    CHECK(intact(100));
    CHECK(static_cast<char*>(sparse)[7 * kMega] == 'x');
    int status = 1;
    CHECK(::waitpid(child, &status, 0) == child && status == 0);
    CHECK(intact(100));
    for (const void* p : all)
        CHECK(!p || is_right(p));
    ::close(go[1]);
    ::close(done[0]);
    for (void* p : all)
        std::free(p);
    std::free(sparse);
}

// What programs do to memory of theirs before they fork.
void test_fork_of_changed_memory() {
    auto* p = static_cast<char*>(std::aligned_alloc(kPage, 4 * kMega));
    fill(p, 4 * kMega, 1);
    // A guard page.
    CHECK(!::mprotect(p + kMega, kPage, PROT_NONE));
    in_child([&] {
        CHECK(holds(p, kMega, 1));
        const std::size_t after = kMega + kPage;
        const auto* words = reinterpret_cast<const std::uint64_t*>(p + after);
        CHECK(words[0] == word_of(1, after / 8));
    });
    CHECK(!::mprotect(p + kMega, kPage, PROT_READ | PROT_WRITE));
    CHECK(holds(p, 4 * kMega, 1));
    // As verbs do after ibv_fork_init(3). Shared memory must still be no way into the parent.
    CHECK(!::madvise(p, 4 * kMega, MADV_DONTFORK) && !::madvise(p, 4 * kMega, MADV_DOFORK));
    in_child([&] {
        CHECK(holds(p, 4 * kMega, 1));
        fill(p, 4 * kMega, 2);
    });
    CHECK(holds(p, 4 * kMega, 1));
    std::free(p);
}

// The main thread ends first. Then the id of the process names a task without memory.
void test_fork_without_main_thread() {
    in_child([] {
        auto* p = static_cast<char*>(std::aligned_alloc(kPage, 2 * kMega));
        CHECK(is_right(p) && !::mprotect(p + kMega, kMega, PROT_NONE));
        fill(p, kMega, 1);
        std::thread([p, main_thread = ::pthread_self()] {
            CHECK(!::pthread_join(main_thread, nullptr));
            in_child([p] { CHECK(holds(p, kMega, 1)); });
            ::_exit(0);
        }).detach();
        ::pthread_exit(nullptr);
    });
}

void test_other_children() {
    void* p = std::malloc(3 * kMega);
    fill(p, 3 * kMega, 1);
    CHECK(std::system("true") == 0);
    std::FILE* pipe = ::popen("echo here", "r");
    char line[16];
    CHECK(pipe && std::fgets(line, sizeof(line), pipe) && !std::strcmp(line, "here\n"));
    CHECK(::pclose(pipe) == 0);
    char name[] = "true";
    char* arguments[] = {name, nullptr};
    pid_t child;
    CHECK(!::posix_spawnp(&child, name, nullptr, nullptr, arguments, environ));
    int status = 1;
    CHECK(::waitpid(child, &status, 0) == child && status == 0);
    in_child([&] { ::execlp("true", "true", nullptr); });
    CHECK(holds(p, 3 * kMega, 1));
    std::free(p);
}

// malloc() is no cancellation point. The first case: this opens the node.
void test_cancelled() {
    void* made = nullptr;
    const auto body = [](void* to) -> void* {
        ::pthread_cancel(::pthread_self());
        *static_cast<void**>(to) = std::malloc(2 * kMega);
        ::pthread_testcancel();
        return nullptr;
    };
    pthread_t thread = {};
    void* end = nullptr;
    CHECK(!::pthread_create(&thread, nullptr, body, &made) && !::pthread_join(thread, &end));
    CHECK(end == PTHREAD_CANCELED && is_right(made));
    std::free(made);
}

// How much more than what was asked for. The second case: there is at most one idle chunk.
void test_growth() {
    std::array<void*, 6> all{};
    for (void*& p : all)
        p = std::malloc(4 * kMega);
    CHECK(!wants_arena || arena_bytes() >= 24 * kMega);
    CHECK(arena_bytes() <= 36 * kMega);
    for (void* p : all)
        std::free(p);
}

void test_threads() {
    void* made = nullptr;
    std::thread([&] {
        made = std::malloc(2 * kMega);
        fill(made, 2 * kMega, 1);
    }).join();
    CHECK(is_right(made) && holds(made, 2 * kMega, 1));
    std::thread([&] { std::free(made); }).join();
}

void test_idle_memory() {
    std::vector<void*> all;
    for (int i = 0; i < 200; i++)
        all.push_back(std::malloc(kMega + kPage));
    CHECK(!wants_arena || arena_bytes() >= 200 * kMega);
    for (void* p : all)
        std::free(p);
    CHECK(arena_bytes() <= 64 * kMega);
}

// Destroyed after main() and after the functions of atexit(3).
struct last {
    void* block = nullptr;
    ~last() {
        if (!block)
            return;
        CHECK(holds(block, 2 * kMega, 5));
        std::free(block);
        void* late = std::malloc(2 * kMega);
        CHECK(is_right(late));
        std::free(late);
    }
};
last at_the_end;

void run_cases() {
    // The library has read the environment before, and does not do so again.
    CHECK(!::setenv("LITE_INDEX", "none", 1) && !::setenv("LITE_ARENA_DEBUG", "1", 1));
    test_cancelled();
    at_the_end.block = std::malloc(2 * kMega);
    fill(at_the_end.block, 2 * kMega, 5);
    test_growth();
    test_functions();
    test_refusals();
    test_realloc();
    test_threads();
    test_fork();
    test_fork_of_changed_memory();
    test_fork_without_main_thread();
    test_other_children();
    test_idle_memory();
}

// ---- random ----------------------------------------------------------------

struct piece {
    void* at = nullptr;
    std::size_t size = 0;
    std::uint64_t seed = 0;
};

void check(const piece& p) {
    if (p.at)
        CHECK(holds(p.at, p.size, p.seed));
}

// Blocks that one thread has left for another.
std::array<piece, 16> table;
std::mutex table_lock;

void change(std::mt19937_64& random, piece& p) {
    std::size_t size = random() % 3 ? random() % (3 * kMega) : random() % 20000;
    if (random() % 40 == 0)
        size = random() % (24 * kMega);
    const std::uint64_t seed = random();
    switch (p.at ? random() % 3 : 3 + random() % 3) {
        case 0: {
            p.at = std::realloc(p.at, size + 1);
            CHECK(p.at && holds(p.at, std::min(size, p.size), p.seed));
            break;
        }
        case 1:
        case 2:
            check(p);
            std::free(p.at);
            p = {};
            return;
        case 3:
            p.at = std::malloc(size);
            break;
        case 4:
            p.at = std::calloc(1, size + 1);
            CHECK(p.at && is_zero(p.at, size));
            break;
        default: {
            const std::size_t alignment = kPage << random() % 11;
            CHECK(!::posix_memalign(&p.at, alignment, size));
            CHECK(reinterpret_cast<std::uintptr_t>(p.at) % alignment == 0);
        }
    }
    CHECK(p.at);
    fill(p.at, size, seed);
    p = {p.at, size, seed};
}

void run_thread(std::uint64_t seed, int rounds, int forks) {
    std::mt19937_64 random(seed);
    std::array<piece, 10> own;
    for (int i = 0; i < rounds; i++) {
        piece& p = own[random() % own.size()];
        change(random, p);
        if (random() % 8 == 0) {
            const std::lock_guard guard(table_lock);
            std::swap(p, table[random() % table.size()]);
        }
        if (forks && i % (rounds / forks) == 0)
            in_child([&] {
                for (const auto& q : own)
                    check(q);
                for (int k = 0; k < 40; k++)
                    change(random, own[random() % own.size()]);
                for (const auto& q : own) {
                    check(q);
                    std::free(q.at);
                }
            });
    }
    for (const auto& p : own) {
        check(p);
        std::free(p.at);
    }
}

void run_random(std::uint64_t seed, int rounds, int n) {
    void* large = std::malloc(2 * kMega);
    CHECK(is_right(large));
    std::free(large);
    std::vector<std::thread> threads;
    for (int i = 0; i < n; i++)
        threads.emplace_back(run_thread, seed + static_cast<unsigned>(i), rounds, 3);
    for (auto& thread : threads)
        thread.join();
    for (const auto& p : table) {
        check(p);
        std::free(p.at);
    }
    // Idle chunks, and two or three in which something small is left, if that is in arenas, too.
    CHECK(arena_bytes() <= 160 * kMega);
}

// ---- limits, LMRs ----------------------------------------------------------

void run_limit() {
    std::vector<void*> all;
    do {
        all.push_back(std::malloc(4 * kMega));
        CHECK(all.back());
        fill(all.back(), 4 * kMega, all.size());
    } while (in_arena(all.back()) && all.size() < 300);
    CHECK(all.size() > 2 && all.size() < 300);
    for (std::size_t i = 0; i < all.size(); i++)
        CHECK(holds(all[i], 4 * kMega, i + 1));
    // The node is not asked for each of these.
    for (int i = 0; i < 300; i++)
        CHECK(!in_arena(std::make_unique_for_overwrite<char[]>(4 * kMega).get()));
    // Room for one again.
    std::free(all[0]);
    all[0] = std::malloc(4 * kMega);
    CHECK(in_arena(all[0]));
    // Idle memory makes room for what does not fit into it.
    for (void* p : all)
        std::free(p);
    void* p = std::malloc((all.size() - 3) * 4 * kMega);
    CHECK(in_arena(p));
    std::free(p);
}

std::size_t mapped_pages() {
    std::size_t all = 0;
    CHECK(std::ifstream("/proc/self/statm") >> all);
    return all;
}

// A child has nothing at the places of blocks of a chunk that it has no copy of.
void run_not_copied() {
    std::array<void*, 2> both{std::malloc(kMega), std::malloc(kMega)};
    for (void* p : both) {
        CHECK(in_arena(p));
        fill(p, kMega, 1);
    }
    const std::size_t before = mapped_pages();
    const pid_t child = ::fork();
    if (!child) {
        CHECK(mapped_pages() < before + kMega / kPage);
        const rlimit none{0, 0};
        ::setrlimit(RLIMIT_CORE, &none);
        ::_exit(*static_cast<volatile char*>(std::min(both[0], both[1])));
    }
    int status = 0;
    CHECK(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    // The next child has them.
    in_child([&] { CHECK(holds(both[0], kMega, 1) && holds(both[1], kMega, 1)); });
}

void run_register(const char* name, std::size_t size) {
    // Elsewhere only this is whole pages.
    void* p = wants_arena ? std::malloc(size) : std::aligned_alloc(kPage, size);
    CHECK(is_right(p));
    fill(p, size, 1);
    lite_ctx* ctx;
    CHECK(!lite_open(-1, &ctx));
    lite_lh_t lh;
    const int err = lite_register(ctx, name, p, size, 0666, &lh);
    if (err) {
        std::printf("lite_register: %s\n", lite_strerror(err));
        std::exit(1);
    }
    std::puts("ready");
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
    // The child's copy is no LMR's.
    in_child([&] { std::memset(p, 0, size); });
    static const char text[] = "from afar";
    CHECK(!std::memcmp(static_cast<char*>(p) + kMega, text, sizeof(text) - 1));
    char read[sizeof(text)] = {};
    CHECK(!lite_read(ctx, lh, kMega, read, sizeof(text) - 1) && !std::strcmp(read, text));
    CHECK(!lite_free(ctx, lh));
    std::free(p);
    lite_close(ctx);
}

void run_outlive() {
    void* touched = std::malloc(6 * kMega);
    void* untouched = std::malloc(6 * kMega);
    CHECK(is_right(touched) && is_right(untouched));
    fill(touched, 6 * kMega, 1);
    std::puts("ready");
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
    CHECK(holds(touched, 6 * kMega, 1) && is_zero(untouched, 6 * kMega));
    fill(untouched, 6 * kMega, 2);
    in_child([&] { CHECK(holds(touched, 6 * kMega, 1) && holds(untouched, 6 * kMega, 2)); });
    void* later = std::malloc(40 * kMega);
    CHECK(later && !in_arena(later));
    fill(later, 40 * kMega, 3);
    CHECK(holds(later, 40 * kMega, 3));
    for (void* p : {touched, untouched, later})
        std::free(p);
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const std::string what = words.empty() ? "" : words[0];
    if (words.size() > 1)
        wants_arena = words[1] != "elsewhere";
    if (what == "cases" && words.size() == 2)
        run_cases();
    else if (what == "random" && words.size() == 5)
        run_random(std::stoull(words[2]), std::stoi(words[3]), std::stoi(words[4]));
    else if (what == "limit" && words.size() == 1)
        run_limit();
    else if (what == "not-copied" && words.size() == 1)
        run_not_copied();
    else if (what == "register" && words.size() == 4)
        run_register(argv[3], std::stoul(words[3]) * kMega);
    else if (what == "outlive" && words.size() == 1)
        run_outlive();
    else
        return 2;
    std::puts("good");
    return 0;
}
