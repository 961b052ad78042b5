// SPDX-License-Identifier: MIT
// Revocation under fire: LMRs that processes on several nodes read and write without a break are
// freed, and their memory is given to another LMR at once. No old handle may read or overwrite the
// new contents.
//
//   revoke home     on the node that frees: makes the LMR of each round, waits until every attacker
//                   uses it, frees it, makes another of the same size in the same places and fills
//                   that with canaries, which have to stay until all attackers have noticed
//   revoke attack   on any node: threads that use the LMR of the round until they are told that it
//                   is gone
//
// With --at-once N there are N rounds at a time: N LMRs in use are freed in random order, one after
// the other, while the rest is still used. So the rounds need to synchronize N times less often.
//
// An LMR holds only the word of its round, which attackers write again and again, and nothing else
// is ever read through a handle on it; so any other value comes from another LMR. The home and the
// attackers derive the parameters of a round from the same seed. They meet in a small LMR, the
// board.
//
// The test is only worth something if memory is reused at once: with --trace the home reads from a
// kernel probe on lite_dma_unmap_page() which addresses each of the two LMRs had.
#include "common/arguments.hpp"
#include "common/data/pattern.hpp"
#include "common/env.hpp"
#include "common/process.hpp"
#include "common/raw.hpp"
#include "common/run_main.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace lite_test;

namespace {

struct Options {
    std::string stem = "revoke";
    std::uint64_t seed = 1;
    std::uint64_t rounds = 1000;
    std::uint64_t at_once = 1;
    std::uint64_t most = 9 << 20;  // bytes of an LMR
    unsigned attackers = 0;        // threads, of all nodes
    std::string trace;
    double least_reused = 0.5;
    unsigned index = 0;
    unsigned processes = 2;
    unsigned threads = 2;
};

using Words = std::vector<std::uint64_t>;

constexpr std::uint64_t kOver = UINT64_MAX;
constexpr std::uint64_t kMost = 4;                             // times as many rounds as are wanted
constexpr std::size_t kTransferMax = (1 << 20) + (256 << 10);  // more than is pinned at a time

// ---- what a round is like
// ------------------------------------------------------------------------

struct Round {
    std::uint64_t number;
    std::uint64_t length;   // a multiple of 8
    std::uint64_t word;     // that fills its LMR
    std::uint64_t canary;   // that fills its memory afterwards
    std::size_t placement;  // modulo the number of placements
    unsigned delay_us;      // how long all use it before it is freed
    bool look_first;        // check the memory before it gets its canaries
};

std::uint64_t some_length(std::mt19937_64& random, std::uint64_t most) {
    const auto kind = random() % 100;
    const std::uint64_t wanted = kind < 60   ? 16 << 10
                                 : kind < 90 ? 256 << 10
                                 : kind < 99 ? 1 << 20
                                             : 9 << 20;  // more than one piece of memory
    const auto limit = std::min(wanted, most);
    return (limit / 8 + random() % (limit / 8 * 7)) / 8 * 8;
}

Round make_round(const Options& options, std::uint64_t number) {
    std::mt19937_64 random(mix(options.seed) ^ number);
    Round r{};
    r.number = number;
    r.length = some_length(random, options.most);
    // Neither word is the zero of fresh memory, nor a word of any other round.
    r.word = (number << 8) | 0xaa00000000000001;
    r.canary = (number << 8) | 0xcc00000000000002;
    r.placement = random();
    r.delay_us = random() % 4 ? static_cast<unsigned>(random() % 3000) : 0;
    r.look_first = random() % 2;
    return r;
}

// The rounds that run at the same time, numbered from 1.
std::vector<Round> make_volley(const Options& options, std::uint64_t number) {
    std::vector<Round> rounds;
    for (auto n = (number - 1) * options.at_once; n < number * options.at_once; ++n)
        rounds.push_back(make_round(options, n + 1));
    return rounds;
}

std::string name_of(const Options& options, const Round& round) {
    return options.stem + "-" + std::to_string(round.number);
}

std::span<std::byte> bytes_of(Words& words, std::uint64_t length) {
    return std::as_writable_bytes(std::span(words)).first(length);
}

std::string hex(std::uint64_t word) {
    std::array<char, 17> text{};
    std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(word));
    return text.data();
}

// "" if all of @words are @wanted, else the place and value of the first other word.
std::string odd_one(std::span<const std::uint64_t> words, std::uint64_t wanted) {
    const auto odd = std::find_if(words.begin(), words.end(), [&](auto w) { return w != wanted; });
    if (odd == words.end())
        return "";
    return hex(*odd) + " instead of " + hex(wanted) + " in word " +
           std::to_string(odd - words.begin()) + " of " + std::to_string(words.size());
}

// ---- the board
// -----------------------------------------------------------------------------------

// Words of the board, in cache lines of their own.
enum : std::uint64_t { kVolley = 0, kInUse = 64, kNoticed = 128, kFailed = 192 };

class Board {
  public:
    Board(const Options& options, unsigned index) : dev_(index), name_(options.stem + "-board") {}

    void make() { lh_ = dev_.alloc(4096, {}, name_, 0666); }
    void open() { lh_ = dev_.map(name_); }

    std::uint64_t get(std::uint64_t at) const {
        std::uint64_t word = 0;
        dev_.read(lh_, at, std::as_writable_bytes(std::span(&word, 1)));
        return word;
    }
    void set(std::uint64_t at, std::uint64_t word) const {
        dev_.write(lh_, at, std::as_bytes(std::span(&word, 1)));
    }
    void count(std::uint64_t at) const { dev_.fetch_add(lh_, at, 1); }

  private:
    Device dev_;
    std::string name_;
    std::uint64_t lh_ = 0;
};

// ---- attackers
// -----------------------------------------------------------------------------------

struct Tally {
    std::atomic<std::uint64_t> operations = 0;
    std::atomic<std::uint64_t> maps = 0;
};

class Attacker {
  public:
    // A @restless attacker also maps and unmaps in between.
    Attacker(const Options& options, const Device& dev, const Board& board, Tally& tally,
             std::uint64_t number, bool restless)
        : options_(options),
          dev_(dev),
          board_(board),
          tally_(tally),
          restless_(restless),
          random_(mix(options.seed ^ mix(number))),
          buffer_(kTransferMax / 8) {}

    void run() {
        for (std::uint64_t last = 0;;) {
            const auto now = board_.get(kVolley);
            if (now == kOver)
                return;
            if (now == last) {
                ::usleep(2000);  // each look is an operation that the home has to wait for
                continue;
            }
            last = now;
            attack(make_volley(options_, now));
            board_.count(kNoticed);
        }
    }

  private:
    struct Target {
        Round round;
        std::uint64_t lh;
    };

    void attack(const std::vector<Round>& rounds) {
        std::vector<Target> targets;
        for (const auto& round : rounds)
            targets.push_back({round, dev_.map(name_of(options_, round))});
        // No LMR is freed before all are in use.
        for (const auto& target : targets)
            expect(use(target), "in use");
        board_.count(kInUse);
        while (!targets.empty()) {
            const auto target =
                targets.begin() + static_cast<std::ptrdiff_t>(random_() % targets.size());
            bool there = use(*target);
            if (there && restless_ && random_() % 4 == 0) {
                dev_.unmap(target->lh);
                if (!remap(*target)) {
                    targets.erase(target);
                    continue;
                }
            }
            if (!there) {
                dev_.unmap(target->lh);
                targets.erase(target);
            }
        }
    }

    // Returns false if the LMR is gone.
    bool use(const Target& target) {
        const auto e = operate(target.round, target.lh);
        if (e == err(EIDRM))
            return false;
        expect_equal(e, ok, "operation in round " + std::to_string(target.round.number));
        ++tally_.operations;
        return true;
    }

    bool remap(Target& target) {
        auto args = map_args(name_of(options_, target.round),
                             LITE_RIGHT_READ | LITE_RIGHT_WRITE | LITE_RIGHT_ATOMIC);
        const auto mapped = dev_(args);
        if (mapped == err(ENOENT))
            return false;
        expect_equal(mapped, ok, "mapping in round " + std::to_string(target.round.number));
        ++tally_.maps;
        target.lh = args.lh;
        return true;
    }

    Errno operate(const Round& round, std::uint64_t lh) {
        const auto kind = random_() % 8;
        if (kind == 0)
            return add_nothing(round, lh);
        const std::uint64_t most = kind < 4 ? 4096 : kind < 6 ? 64 << 10 : kTransferMax;
        const auto words = 1 + random_() % (std::min(most, round.length) / 8);
        const auto offset = random_() % (round.length / 8 - words + 1) * 8;
        auto* const at =
            buffer_.data() +
            random_() % (std::min<std::size_t>(round.length, kTransferMax) / 8 - words + 1);
        std::fill_n(at, words, round.word);
        if (random_() % 2)
            return dev_(write_args(lh, offset, at, words * 8));
        const auto e = dev_(read_args(lh, offset, at, words * 8));
        // Also checks what a transfer that failed on its way has left in the buffer.
        const auto odd = odd_one(std::span(at, words), round.word);
        expect(odd.empty(),
               "round " + std::to_string(round.number) + ", read through a handle: " + odd);
        return e;
    }

    // An addition of 0 is a write, too, and returns the old value.
    Errno add_nothing(const Round& round, std::uint64_t lh) {
        auto args = fetch_add_args(lh, random_() % (round.length / 8) * 8, 0);
        const auto e = dev_(args);
        if (e == ok)
            expect(args.result == round.word, "round " + std::to_string(round.number) +
                                                  ", an atomic found " + hex(args.result) +
                                                  " instead of " + hex(round.word));
        return e;
    }

    const Options& options_;
    const Device& dev_;
    const Board& board_;
    Tally& tally_;
    bool restless_;
    std::mt19937_64 random_;
    Words buffer_;
};

void attack_in_process(const Options& options, unsigned process, Tally& tally) {
    const Device dev(options.index);
    Board board(options, options.index);
    board.open();
    Threads threads;
    for (unsigned i = 0; i < options.threads; ++i) {
        threads.start([&, i] {
            try {
                const auto number = (options.index * 100ULL + process) * 100 + i;
                Attacker(options, dev, board, tally, number, i == 0 && process == 0).run();
            } catch (const std::exception& e) {
                std::fprintf(stderr, "revoke: %s\n", e.what());
                board.count(kFailed);
                throw;
            }
        });
    }
    threads.join();
}

void attack(const Options& options) {
    Shared<Tally> tally;
    std::vector<std::unique_ptr<Child>> children;
    for (unsigned i = 0; i < options.processes; ++i)
        children.push_back(
            std::make_unique<Child>([&, i] { attack_in_process(options, i, *tally); }));
    // Without a time-out: the calling test limits the time.
    Board board(options, options.index);
    board.open();
    while (board.get(kVolley) != kOver) {
        expect(!board.get(kFailed), "an attacker has failed");
        ::usleep(20000);
    }
    for (const auto& child : children)
        child->join();
    std::printf("%llu operations, %llu maps in between\n",
                static_cast<unsigned long long>(tally->operations.load()),
                static_cast<unsigned long long>(tally->maps.load()));
}

// ---- home
// ----------------------------------------------------------------------------------------

using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // from, to

// The memory that has been unmapped, from the trace of a kernel probe.
class Trace {
  public:
    explicit Trace(const std::string& path) {
        if (!path.empty() && (fd_ = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) < 0)
            throw std::runtime_error("cannot open " + path);
    }
    ~Trace() {
        if (fd_ >= 0)
            ::close(fd_);
    }
    Trace(const Trace&) = delete;
    Trace& operator=(const Trace&) = delete;

    explicit operator bool() const { return fd_ >= 0; }

    // The ranges since the last call.
    Ranges take() {
        Ranges ranges;
        std::array<char, 4096> chunk;
        for (ssize_t n; fd_ >= 0 && (n = ::read(fd_, chunk.data(), chunk.size())) > 0;)
            text_.append(chunk.data(), static_cast<std::size_t>(n));
        std::size_t at = 0;
        for (std::size_t end; (end = text_.find('\n', at)) != std::string::npos; at = end + 1) {
            const std::string line = text_.substr(at, end - at);
            const auto dma = value(line, "dma=0x", 16);
            ranges.emplace_back(dma, dma + value(line, "size=", 10));
        }
        text_.erase(0, at);
        return ranges;
    }

  private:
    static std::uint64_t value(const std::string& line, const char* key, int base) {
        std::uint64_t v = 0;
        const auto at = line.find(key);
        if (at == std::string::npos)
            throw std::runtime_error("not what a probe should say: " + line);
        std::from_chars(line.data() + at + std::strlen(key), line.data() + line.size(), v, base);
        return v;
    }

    int fd_ = -1;
    std::string text_;
};

std::uint64_t size_of(const Ranges& ranges) {
    std::uint64_t sum = 0;
    for (const auto& [from, to] : ranges)
        sum += to - from;
    return sum;
}

std::uint64_t overlap(const Ranges& a, const Ranges& b) {
    std::uint64_t sum = 0;
    for (const auto& [a_from, a_to] : a)
        for (const auto& [b_from, b_to] : b)
            if (std::max(a_from, b_from) < std::min(a_to, b_to))
                sum += std::min(a_to, b_to) - std::max(a_from, b_from);
    return sum;
}

class Home {
  public:
    explicit Home(const Options& options)
        : options_(options),
          dev_(env().indexes.front()),
          board_(options, env().indexes.front()),
          trace_(options.trace),
          places_(env().placements()),
          random_(mix(options.seed)),
          buffer_(kTransferMax / 8) {}

    void run() {
        board_.make();
        std::puts("ready");
        std::fflush(stdout);
        const auto volleys = (options_.rounds + options_.at_once - 1) / options_.at_once;
        const auto most = kMost * volleys;
        for (std::uint64_t number = 1; number <= volleys || (lacks_reuse() && number <= most);
             ++number) {
            carry_out(number);
            done_ = number * options_.at_once;
            say_how_far();
        }
        board_.set(kVolley, kOver);
        report();
    }

  private:
    // Others may take the memory first, more often on a busy machine: then there are more rounds.
    bool lacks_reuse() const {
        return trace_ && static_cast<double>(reused_rounds_) <
                             options_.least_reused * static_cast<double>(options_.rounds);
    }

    // Once a minute, as a hundred thousand rounds take an hour.
    void say_how_far() {
        const auto now = std::chrono::steady_clock::now();
        if (now - said_ < std::chrono::minutes(1))
            return;
        said_ = now;
        std::printf("%llu of %llu rounds\n", static_cast<unsigned long long>(done_),
                    static_cast<unsigned long long>(options_.rounds));
        std::fflush(stdout);
    }

    struct Region {
        Round round;
        std::uint64_t lh;
        std::uint64_t other;
        Ranges freed;
    };

    void carry_out(std::uint64_t number) {
        std::vector<Region> regions;
        for (const auto& round : make_volley(options_, number))
            regions.push_back({round, make(round), 0, {}});
        board_.set(kVolley, number);
        const auto all = number * options_.attackers;
        wait_for(kInUse, all, "all attackers have it in use");
        std::shuffle(regions.begin(), regions.end(), random_);
        if (const auto delay = regions.front().round.delay_us)
            ::usleep(delay);
        for (auto& region : regions)
            replace(region);
        // While some attackers may not have noticed yet, and once more after that.
        std::size_t next = 0;
        wait_for(kNoticed, all, "all attackers have noticed",
                 [&] { check_canaries(regions[next++ % regions.size()]); });
        for (const auto& region : regions)
            check_canaries(region);
        for (const auto& region : regions) {
            (void)trace_.take();
            dev_.free(region.other);
            account(region.freed, trace_.take());
        }
    }

    const std::vector<std::uint32_t>& nodes_of(const Round& round) const {
        return places_[round.placement % places_.size()].nodes;
    }

    std::uint64_t make(const Round& round) {
        const auto lh = dev_.alloc(round.length, nodes_of(round), name_of(options_, round), 0666);
        fill(lh, round.length, round.word);
        return lh;
    }

    void replace(Region& region) {
        const auto& round = region.round;
        (void)trace_.take();
        dev_.free(region.lh);
        region.freed = trace_.take();
        // Anonymous, so that no other process finds it.
        region.other = dev_.alloc(round.length, nodes_of(round));
        if (round.look_first)
            check(round, region.other, 0, "fresh memory");
        fill(region.other, round.length, round.canary);
    }

    void check_canaries(const Region& region) {
        check(region.round, region.other, region.round.canary, "canaries");
    }

    void fill(std::uint64_t lh, std::uint64_t length, std::uint64_t word) {
        std::fill_n(buffer_.begin(), std::min<std::size_t>(length, kTransferMax) / 8, word);
        in_pieces(length, [&](std::uint64_t offset, std::uint64_t n) {
            dev_.write(lh, offset, bytes_of(buffer_, n));
        });
    }

    void check(const Round& round, std::uint64_t lh, std::uint64_t word, const char* what) {
        in_pieces(round.length, [&](std::uint64_t offset, std::uint64_t n) {
            dev_.read(lh, offset, bytes_of(buffer_, n));
            const auto odd = odd_one(std::span(buffer_).first(n / 8), word);
            expect(odd.empty(), "round " + std::to_string(round.number) + ", " + what +
                                    " overwritten from offset " + std::to_string(offset) +
                                    " on: " + odd);
        });
    }

    template <typename F>
    static void in_pieces(std::uint64_t length, F function) {
        for (std::uint64_t at = 0; at < length; at += kTransferMax)
            function(at, std::min<std::uint64_t>(kTransferMax, length - at));
    }

    void wait_for(
        std::uint64_t at, std::uint64_t wanted, const char* what,
        const std::function<void()>& meanwhile = [] {}) {
        wait_until(what, [&] {
            expect(!board_.get(kFailed), "an attacker has failed");
            if (board_.get(at) >= wanted)
                return true;
            meanwhile();
            return false;
        });
    }

    void account(const Ranges& freed, const Ranges& other) {
        // The trace is of this machine only.
        if (freed.empty())
            return;
        const auto bytes = overlap(freed, other);
        ++seen_rounds_;
        reused_rounds_ += bytes > 0;
        reused_bytes_ += bytes;
        freed_bytes_ += size_of(freed);
    }

    void report() const {
        std::printf("seed %llu, %llu rounds", static_cast<unsigned long long>(options_.seed),
                    static_cast<unsigned long long>(done_));
        if (trace_) {
            const auto bytes =
                static_cast<double>(reused_bytes_) / static_cast<double>(freed_bytes_);
            std::printf("; in %llu of %llu the same memory again, %.0f %% of its bytes",
                        static_cast<unsigned long long>(reused_rounds_),
                        static_cast<unsigned long long>(seen_rounds_), 100 * bytes);
            std::fflush(stdout);
            expect(!lacks_reuse(), "memory is too seldom used again for this to be a test");
        }
        std::puts("");
    }

    const Options& options_;
    Device dev_;
    Board board_;
    Trace trace_;
    std::vector<Placement> places_;
    std::mt19937_64 random_;
    Words buffer_;
    std::chrono::steady_clock::time_point said_ = std::chrono::steady_clock::now();
    std::uint64_t done_ = 0;  // rounds
    std::uint64_t seen_rounds_ = 0;
    std::uint64_t reused_rounds_ = 0;
    std::uint64_t reused_bytes_ = 0;
    std::uint64_t freed_bytes_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    lite_test::Arguments line(
        "Frees LMRs that are being used. See env.hpp for what it takes from the environment.");
    Options options;
    line.option("--stem", &options.stem, "what all names begin with");
    line.option("--seed", &options.seed, "of all rounds; the same at all ends");
    line.range("--at-once", &options.at_once, 1, 1000, "rounds at a time; the same at all ends");
    line.range("--most", &options.most, 4096, 9 << 20, "bytes of an LMR; the same at all ends");
    auto home = line.command("home", "free and fill");
    home.option("--rounds", &options.rounds, "how often, at least");
    home.required("--attackers", &options.attackers, "threads that attack, of all nodes");
    home.option("--trace", &options.trace, "trace_pipe with the probe");
    home.option("--least-reused", &options.least_reused,
                "in this part of these rounds memory must be used again at once");
    auto attackers = line.command("attack", "use what is freed");
    attackers.option("--index", &options.index, "the N of /dev/liteN");
    attackers.option("--processes", &options.processes);
    attackers.option("--threads", &options.threads, "of each process");
    line.parse(argc, argv);
    return lite_test::run_main("revoke", [&] {
        if (home)
            Home(options).run();
        else
            attack(options);
    });
}
