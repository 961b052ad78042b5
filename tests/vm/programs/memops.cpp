// SPDX-License-Identifier: MIT
// Memory operations that several machines use together.
//
//   chain NAME --base B --count N     put the values B+1 .. B+N into a word, by swap and by
//                                     compare-and-swap in turn; print each value that was replaced
//   bits NAME --bit B --count N       N times: set bit B (0..15) by fetch-or, count in bits 16..31
//                                     by compare-and-swap, in bits 32..63 by fetch-add, clear bit B
//                                     by fetch-and; no other process may touch bit B
//   loop KIND NAME OTHER              copy OTHER to NAME, set NAME, compare both, checksum NAME or
//                                     swap its first word, until that fails; print the errno
//   churn NAME OTHER --offset O --length L --count N --seed S
//                                     all of these at random, N times and until standard input
//                                     ends, on L bytes at O of both, which no other process
//                                     touches, against a model of these bytes
//   crowd NAME --count N --seconds S  N threads checksum NAME once; when all have, they do so again
//                                     and again for S seconds; print the lowest and the highest
//                                     number of checksums of a thread
//   each PREFIX --count N             set all of PREFIX0 .. PREFIX<N-1>, each once; say so, and
//                                     stay until standard input ends
#include "common/arguments.hpp"
#include "common/data/crc32c.hpp"
#include "common/data/pattern.hpp"
#include "common/data/shadow.hpp"
#include "common/run_main.hpp"

#include <lite/lite.hpp>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <latch>
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
    std::string kind;
    std::string name;
    std::string other;
    u64 offset = 0;
    u64 base = 0;
    u64 bit = 0;
    u64 count = 100;
    u64 length = 4096;
    u64 seed = 1;
    u64 seconds = 5;
};

constexpr auto kAtomic = lite::rights::atomic;

void say(u64 value) { std::printf("%llu\n", static_cast<unsigned long long>(value)); }

void chain(lite::context& node, const Options& options) {
    auto region = node.map(options.name, kAtomic);
    for (u64 i = 1; i <= options.count; ++i) {
        const u64 value = options.base + i;
        if (i % 2) {
            say(region.exchange(options.offset, value));
            continue;
        }
        u64 seen = 0;
        while (!region.compare_exchange(options.offset, seen, value)) {
        }
        say(seen);
    }
}

void bits(lite::context& node, const Options& options) {
    auto region = node.map(options.name, kAtomic);
    const u64 mine = u64{1} << options.bit;
    u64 seen = 0;
    for (u64 i = 0; i < options.count; ++i) {
        if (region.fetch_or(options.offset, mine) & mine)
            throw std::runtime_error("the bit was set already");
        while (!region.compare_exchange(options.offset, seen, seen + (u64{1} << 16))) {
        }
        if (!(seen & mine))
            throw std::runtime_error("the bit is gone");
        if (!(region.fetch_add(options.offset, u64{1} << 32) & mine))
            throw std::runtime_error("the bit is gone");
        if (!(region.fetch_and(options.offset, ~mine) & mine))
            throw std::runtime_error("the bit was clear already");
    }
}

void loop(lite::context& node, const Options& options) {
    auto region = node.map(options.name, lite::rights::read | lite::rights::write | kAtomic);
    const auto other =
        node.map(options.other.empty() ? options.name : options.other, lite::rights::read);
    const auto length = std::min(region.length(), other.length());
    const std::array pattern{std::byte{1}, std::byte{2}, std::byte{3}};
    const std::function<void()> once = [&] {
        if (options.kind == "copy")
            region.copy(0, other, 0, length);
        else if (options.kind == "set")
            region.set(0, length, pattern);
        else if (options.kind == "compare")
            region.compare(0, other, 0, length);
        else if (options.kind == "checksum")
            region.checksum(0, length);
        else if (options.kind == "swap")
            region.exchange(0, 1);
        else
            throw std::runtime_error("no such kind");
    };
    try {
        for (u64 round = 0;; ++round) {
            once();
            if (round)
                continue;
            std::puts("running");
            std::fflush(stdout);
        }
    } catch (const lite::error& e) {
        std::puts(strerrorname_np(e.code().value()));
    }
}

// This process's part of an LMR, and its expected contents.
struct Part {
    Part(lite::context& node, const std::string& name, const Options& options, u64 seed)
        : region(node.map(name, lite::rights::read | lite::rights::write | kAtomic)),
          offset(options.offset),
          model(lite_test::make_pattern(options.length, seed)) {
        region.write(offset, std::span(model));
    }

    void check() const {
        std::vector<std::byte> now(model.size());
        region.read(offset, std::span(now));
        const auto difference = lite_test::compare(now, model, offset);
        if (!difference.empty())
            throw std::runtime_error(difference);
    }

    std::span<std::byte> bytes(u64 at, u64 n) { return std::span(model).subspan(at, n); }

    mutable lite::region region;
    u64 offset;
    std::vector<std::byte> model;
};

class Churn {
  public:
    Churn(lite::context& node, const Options& options)
        : random_(options.seed),
          parts_{Part(node, options.name, options, options.seed),
                 Part(node, options.other, options, ~options.seed)} {}

    void once() {
        const auto size = parts_[0].model.size();
        const auto n = 1 + below(below(4) ? std::min<u64>(size, 6000) : size);
        const auto at = below(size - n + 1);
        const auto from_at = below(size - n + 1);
        Part& part = parts_[below(2)];
        Part& from = parts_[below(2)];
        switch (below(6)) {
            case 0:
            case 1:
                part.region.copy(part.offset + at, from.region, from.offset + from_at, n);
                std::memmove(part.model.data() + at, from.model.data() + from_at, n);
                break;
            case 2:
                set(part, at, n);
                break;
            case 3: {
                const auto a = part.bytes(at, n);
                const auto b = from.bytes(from_at, n);
                const auto equal = std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin();
                require(part.region.compare(part.offset + at, from.region, from.offset + from_at,
                                            n) == static_cast<u64>(equal),
                        "a comparison");
                break;
            }
            case 4:
                require(part.region.checksum(part.offset + at, n) ==
                            lite_test::crc32c(part.bytes(at, n)),
                        "a checksum");
                break;
            default:
                word(part, at / 8 * 8);
                break;
        }
    }

    void check() const {
        for (const auto& part : parts_)
            part.check();
    }

  private:
    u64 below(u64 end) { return random_() % end; }

    static void require(bool good, const char* what) {
        if (!good)
            throw std::runtime_error(std::string(what) + " is wrong");
    }

    void set(Part& part, u64 at, u64 n) {
        const auto bits = random_();
        std::array<std::byte, 8> pattern;
        std::memcpy(pattern.data(), &bits, sizeof(bits));
        const auto used = std::span(pattern).first(1 + below(pattern.size()));
        part.region.set(part.offset + at, n, used);
        for (u64 i = 0; i < n; ++i)
            part.model[at + i] = used[i % used.size()];
    }

    void word(Part& part, u64 at) {
        if (at + sizeof(u64) > part.model.size())
            return;
        const auto operand = random_();
        u64 was = 0;
        std::memcpy(&was, part.model.data() + at, sizeof(was));
        u64 old = 0;
        u64 now = operand;
        switch (below(4)) {
            case 0:
                old = part.region.exchange(part.offset + at, operand);
                break;
            case 1:
                old = part.region.fetch_and(part.offset + at, operand);
                now = was & operand;
                break;
            case 2:
                old = part.region.fetch_or(part.offset + at, operand);
                now = was | operand;
                break;
            default:
                old = part.region.fetch_add(part.offset + at, operand);
                now = was + operand;
                break;
        }
        require(old == was, "the old value of a word");
        std::memcpy(part.model.data() + at, &now, sizeof(now));
    }

    std::mt19937_64 random_;
    std::array<Part, 2> parts_;
};

bool input_has_ended() {
    // The input has no data, so it is readable only when it ends.
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    return ::poll(&input, 1, 0) > 0;
}

void churn(lite::context& node, const Options& options) {
    Churn all(node, options);
    std::puts("running");
    std::fflush(stdout);
    for (u64 i = 1; i <= options.count || !input_has_ended(); ++i) {
        all.once();
        if (i % 10 == 0)
            all.check();
    }
    all.check();
}

void crowd(lite::context& node, const Options& options) {
    const auto region = node.map(options.name, lite::rights::read);
    std::vector<u64> rounds(options.count);
    std::vector<std::exception_ptr> failures(options.count);
    std::atomic<bool> stop = false;
    std::latch first(static_cast<std::ptrdiff_t>(options.count));
    std::vector<std::thread> threads;
    for (u64 i = 0; i < options.count; ++i) {
        threads.emplace_back([&, i] {
            const auto once = [&] {
                try {
                    region.checksum(0, region.length());
                    ++rounds[i];
                } catch (...) {
                    failures[i] = std::current_exception();
                }
            };
            once();
            first.arrive_and_wait();
            while (!stop && !failures[i])
                once();
        });
    }
    first.wait();
    std::this_thread::sleep_for(std::chrono::seconds(options.seconds));
    stop = true;
    for (auto& thread : threads)
        thread.join();
    for (const auto& failure : failures) {
        if (failure)
            std::rethrow_exception(failure);
    }
    const auto [least, most] = std::minmax_element(rounds.begin(), rounds.end());
    say(*least);
    say(*most);
}

void each(lite::context& node, const Options& options) {
    const std::array pattern{std::byte{7}};
    for (u64 i = 0; i < options.count; ++i) {
        auto region = node.map(options.name + std::to_string(i), lite::rights::write);
        region.set(0, region.length(), pattern);
    }
    std::puts("done");
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
}

}  // namespace

int main(int argc, char** argv) {
    lite_test::Arguments line("Memory operations that several machines have a share in.");
    Options options;
    std::function<void(lite::context&, const Options&)> chosen;
    line.option("--index", &options.index, "the N of /dev/liteN");
    const auto add = [&](const char* verb, const char* text, auto function) {
        auto command = line.command(verb, text, [&chosen, function] { chosen = function; });
        if (std::string_view(verb) == "loop")
            command.required("kind", &options.kind);
        command.required("name", &options.name);
        command.option("other", &options.other);
        command.option("--offset", &options.offset);
        command.option("--base", &options.base);
        command.option("--bit", &options.bit);
        command.option("--count", &options.count);
        command.option("--length", &options.length);
        command.option("--seed", &options.seed);
        command.option("--seconds", &options.seconds);
    };
    add("chain", "swap values through a word", chain);
    add("bits", "several operations on one word", bits);
    add("loop", "operate until that fails", loop);
    add("churn", "everything at random, against a model", churn);
    add("crowd", "many threads at once", crowd);
    add("each", "one operation on each of many LMRs", each);
    line.parse(argc, argv);
    return lite_test::run_main("memops", [&] {
        lite::context node(options.index);
        chosen(node, options);
    });
}
