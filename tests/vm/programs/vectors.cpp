// SPDX-License-Identifier: MIT
// Many operations in one call.
//
//   churn NAME... --offset O --length L --count N --seed S
//                           random vectors of all operations, good and bad, N times and until
//                           standard input ends, on L bytes at O of each LMR, which no other
//                           process touches, against a model of these bytes; print the CRC-32C of
//                           each
//   until NAME KEPT         operate on both in each vector until all operations on NAME fail; none
//                           may fail on KEPT, and none on NAME may succeed after that; print the
//                           errno
//   count NAME... --count N vectors of additions of 1 to the first word of each LMR and of writes
//                           behind it, N times and until standard input ends; print how many
//                           additions were certainly carried out, and for how many it is unknown
//   stamp NAME...           vectors that write the number of the round to some words of each LMR,
//                           until standard input ends; data of a successful write stays, even if
//                           writes before it have failed; print how many rounds succeeded, and how
//                           many did not
#include "common/arguments.hpp"
#include "common/data/crc32c.hpp"
#include "common/data/pattern.hpp"
#include "common/data/shadow.hpp"
#include "common/run_main.hpp"

#include <lite/vector.hpp>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using u64 = std::uint64_t;

struct Options {
    int index = 0;
    std::vector<std::string> names;
    u64 offset = 0;
    u64 length = 4096;
    u64 count = 100;
    u64 seed = 1;
};

constexpr auto kAll = lite::rights::read | lite::rights::write | lite::rights::atomic;

bool input_has_ended() {
    // The input has no data, so it is readable only when it ends.
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    return ::poll(&input, 1, 0) > 0;
}

void say_running() {
    std::puts("running");
    std::fflush(stdout);
}

void require(bool good, const std::string& what) {
    if (!good)
        throw std::runtime_error(what);
}

// This process's part of an LMR, and its expected contents.
struct Part {
    Part(lite::context& node, const std::string& name, const Options& options, u64 seed)
        : region(node.map(name, kAll)),
          offset(options.offset),
          model(lite_test::make_pattern(options.length, seed)) {
        region.write(offset, std::span(model));
    }

    void check() {
        std::vector<std::byte> now(model.size());
        region.read(offset, std::span(now));
        const auto difference = lite_test::compare(now, model, offset);
        require(difference.empty(), difference);
    }

    lite::region region;
    u64 offset;
    std::vector<std::byte> model;
    std::vector<bool> taken;  // by an operation of the current vector
};

// One vector. Its operations have no byte in common, as their order is undefined. Every second
// vector has only small reads and writes, which may go in messages.
class Vector {
  public:
    Vector(std::deque<Part>& parts, std::mt19937_64& random) : parts_(parts), random_(random) {
        for (auto& part : parts_)
            part.taken.assign(part.model.size(), false);
        small_ = below(2);
        const auto n = below(8) ? 1 + below(100) : 1 + below(400);
        for (u64 i = 0; i < n; ++i)
            add();
    }

    void run(lite::context& node) {
        std::size_t failed = 0;
        for (const auto& expected : expected_)
            failed += expected.error != 0;
        const auto seen = lite::submit(node, ops_);
        for (std::size_t i = 0; i < ops_.size(); ++i)
            check(i);
        require(seen == failed, "the number of failures");
    }

  private:
    struct Expected {
        int error = 0;
        u64 result = 0;
        std::vector<std::byte> wanted{};  // of a read
        std::vector<std::byte> bytes{};   // that it reads into, or writes
    };

    u64 below(u64 end) { return random_() % end; }

    u64 some_length(u64 most) {
        static constexpr std::array<u64, 8> kUsual{64, 256, 256, 1024, 1500, 4096, 6000, 20000};
        // One in a hundred may be too long for a message.
        if (small_)
            return 1 + below(std::min<u64>(most, below(100) ? 256 : 300));
        return 1 + below(std::min(most, kUsual[below(kUsual.size())]));
    }

    // @n bytes that no other operation of this vector uses.
    bool take(Part& part, u64 n, u64 align, u64& at) {
        for (int tries = 0; tries < 4; ++tries) {
            at = below(part.model.size() - n + 1) / align * align;
            const auto begin = part.taken.begin() + static_cast<std::ptrdiff_t>(at);
            const auto end = begin + static_cast<std::ptrdiff_t>(n);
            if (std::find(begin, end, true) != end)
                continue;
            std::fill(begin, end, true);
            return true;
        }
        return false;
    }

    Expected& push(lite_op op) {
        op.error = static_cast<__s32>(below(100));  // an old value, which does not matter
        ops_.push_back(op);
        return expected_.emplace_back();
    }

    void add() {
        Part& part = parts_[below(parts_.size())];
        if (small_ && below(200))
            return transfer(part, below(2) ? LITE_OP_READ : LITE_OP_WRITE);
        switch (below(10)) {
            case 0:
            case 1:
            case 2:
                return transfer(part, LITE_OP_READ);
            case 3:
            case 4:
            case 5:
                return transfer(part, LITE_OP_WRITE);
            case 6:
            case 7:
                return word(part);
            case 8:
                return below(3) ? transfer(part, LITE_OP_WRITE) : memory(part);
            default:
                return below(3) ? word(part) : bad(part);
        }
    }

    void transfer(Part& part, lite_opcode opcode) {
        const auto n = some_length(part.model.size());
        u64 at = 0;
        if (!take(part, n, 1, at))
            return;
        auto* const model = part.model.data() + at;
        Expected& expected = push(lite::op::make(opcode, part.region, part.offset + at, n));
        expected.result = n;
        expected.bytes.resize(n);
        if (opcode == LITE_OP_READ) {
            expected.wanted.assign(model, model + n);
        } else {
            expected.bytes = lite_test::make_pattern(n, random_());
            std::copy_n(expected.bytes.data(), n, model);
        }
        ops_.back().buf = reinterpret_cast<std::uintptr_t>(expected.bytes.data());
    }

    void word(Part& part) {
        u64 at = 0;
        if (!take(part, sizeof(u64), sizeof(u64), at))
            return;
        u64 was = 0;
        std::memcpy(&was, part.model.data() + at, sizeof(was));
        const auto operand = random_();
        auto swap = random_();
        auto now = operand;
        auto opcode = LITE_OP_SWAP;
        u64 given = operand;
        switch (below(8)) {
            case 0:
                break;
            case 1:
                opcode = LITE_OP_FETCH_AND;
                now = was & operand;
                break;
            case 2:
                opcode = LITE_OP_FETCH_OR;
                now = was | operand;
                break;
            case 3:
            case 4:
                opcode = LITE_OP_CMP_SWAP;
                given = below(2) ? was : operand;
                now = given == was ? swap : was;
                break;
            default:
                opcode = LITE_OP_FETCH_ADD;
                now = was + operand;
                break;
        }
        push(lite::op::word(opcode, part.region, part.offset + at, given, swap)).result = was;
        std::memcpy(part.model.data() + at, &now, sizeof(now));
    }

    void memory(Part& part) {
        Part& other = parts_[below(parts_.size())];
        const auto n = some_length(part.model.size());
        u64 at = 0;
        u64 from = 0;
        if (!take(part, n, 1, at))
            return;
        auto* const model = part.model.data() + at;
        const auto kind = below(4);
        if (kind == 0) {
            const auto byte = below(256);
            auto op = lite::op::make(LITE_OP_SET, part.region, part.offset + at, n);
            op.operand = byte;
            op.swap = 1;
            push(op).result = n;
            std::fill_n(model, n, static_cast<std::byte>(byte));
        } else if (kind == 1) {
            push(lite::op::make(LITE_OP_CHECKSUM, part.region, part.offset + at, n)).result =
                lite_test::crc32c(std::span(model, n));
        } else if (take(other, n, 1, from)) {
            const auto* const source = other.model.data() + from;
            const auto opcode = kind == 2 ? LITE_OP_COPY : LITE_OP_COMPARE;
            auto op = lite::op::make(opcode, part.region, part.offset + at, n);
            op.operand = other.region.handle();
            op.swap = other.offset + from;
            Expected& expected = push(op);
            expected.result = n;
            if (kind == 2)
                std::copy_n(source, n, model);
            else
                expected.result =
                    static_cast<u64>(std::mismatch(model, model + n, source).first - model);
        }
    }

    void bad(Part& part) {
        static std::array<std::byte, 8> bytes;
        auto op = lite::op::read(part.region, part.offset, bytes);
        int error = EOPNOTSUPP;
        switch (below(6)) {
            case 0:
                op.lh = ~op.lh;
                error = EBADF;
                break;
            case 1:
                op.offset = LITE_LMR_SIZE_MAX;  // beyond the end of any LMR
                error = ERANGE;
                break;
            case 2:
                op.length = 0;
                error = EINVAL;
                break;
            case 3:
                op.flags = 1;
                break;
            case 4:
                op.opcode = LITE_OP_CHECKSUM + 2;
                break;
            default:
                op.buf = 8;  // in a page that is never mapped
                error = EFAULT;
                break;
        }
        push(op).error = error;
    }

    void check(std::size_t i) const {
        const auto& op = ops_[i];
        const auto& expected = expected_[i];
        const auto what = "operation " + std::to_string(i) + " of " + std::to_string(ops_.size()) +
                          ", opcode " + std::to_string(op.opcode) + ", length " +
                          std::to_string(op.length) + ": ";
        require(-op.error == expected.error, what + "errno " + std::to_string(-op.error) + " for " +
                                                 std::to_string(expected.error));
        require(op.error || op.result == expected.result, what + "the result is wrong");
        require(expected.wanted.empty() || expected.wanted == expected.bytes,
                what + "wrong bytes were read");
    }

    std::deque<Part>& parts_;
    std::mt19937_64& random_;
    bool small_ = false;
    std::vector<lite_op> ops_;
    std::deque<Expected> expected_;
};

void churn(lite::context& node, const Options& options) {
    std::mt19937_64 random(options.seed);
    std::deque<Part> parts;
    for (const auto& name : options.names)
        parts.emplace_back(node, name, options, random());
    say_running();
    for (u64 i = 1; i <= options.count || !input_has_ended(); ++i) {
        Vector(parts, random).run(node);
        if (i % 10)
            continue;
        for (auto& part : parts)
            part.check();
    }
    for (auto& part : parts) {
        part.check();
        std::printf("%08x\n", lite_test::crc32c(part.model));
    }
}

void until(lite::context& node, const Options& options) {
    const auto doomed = node.map(options.names.at(0), kAll);
    const auto kept = node.map(options.names.at(1), kAll);
    std::array<std::array<std::byte, 64>, 16> bytes{};
    int last = 0;
    std::size_t failed = 0;
    for (u64 round = 0; failed < bytes.size(); ++round) {
        std::vector<lite_op> ops;
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            for (const auto* region : {&doomed, &kept}) {
                if (i % 4 == 0)
                    ops.push_back(lite::op::fetch_add(*region, 8 * i, 1));
                else if (i % 4 == 1)
                    ops.push_back(lite::op::read(*region, 1000 * i, bytes[i]));
                else
                    ops.push_back(lite::op::write(*region, 1000 * i, bytes[i]));
            }
        }
        lite::submit(node, ops);
        const bool none_before = failed == 0;
        failed = 0;
        for (std::size_t i = 0; i < ops.size(); ++i) {
            require(i % 2 == 0 || !ops[i].error,
                    "what is kept failed: errno " + std::to_string(-ops[i].error));
            failed += ops[i].error != 0;
            last = ops[i].error ? -ops[i].error : last;
        }
        require(none_before || failed == bytes.size(), "something was done after the end");
        if (!round)
            say_running();
    }
    std::puts(strerrorname_np(last));
}

void count(lite::context& node, const Options& options) {
    constexpr int kEach = 16;
    std::vector<lite::region> regions;
    for (const auto& name : options.names)
        regions.push_back(node.map(name, kAll));
    std::array<std::byte, 64> bytes{};
    u64 sure = 0;
    u64 unknown = 0;
    say_running();
    for (u64 round = 0; round < options.count || !input_has_ended(); ++round) {
        std::vector<lite_op> ops;
        for (int i = 0; i < kEach; ++i) {
            for (const auto& region : regions) {
                ops.push_back(lite::op::fetch_add(region, 0, 1));
                ops.push_back(lite::op::write(region, 64, bytes));
            }
        }
        lite::submit(node, ops);
        for (const auto& op : ops) {
            const auto error = -op.error;
            require(!error || error == EHOSTDOWN || error == ETIMEDOUT || error == EIO,
                    "errno " + std::to_string(error));
            if (op.opcode != LITE_OP_FETCH_ADD)
                continue;
            ++(error ? unknown : sure);
        }
    }
    std::printf("%llu %llu\n", static_cast<unsigned long long>(sure),
                static_cast<unsigned long long>(unknown));
}

// Submits a vector on connections that may break. Returns whether all operations succeeded; only
// the errors of a broken connection are allowed.
bool submit_despite(lite::context& node, std::vector<lite_op>& ops) {
    lite::submit(node, ops);
    bool good = true;
    for (const auto& op : ops) {
        const auto error = -op.error;
        require(!error || error == EHOSTDOWN || error == ETIMEDOUT || error == EIO,
                "errno " + std::to_string(error));
        good &= !error;
    }
    return good;
}

void stamp(lite::context& node, const Options& options) {
    constexpr std::size_t kWords = 24;
    std::vector<lite::region> regions;
    for (const auto& name : options.names)
        regions.push_back(node.map(name, kAll));
    std::vector<u64> seen(kWords * regions.size());
    u64 good = 0;
    u64 bad = 0;
    say_running();
    for (u64 round = 1; !good || !input_has_ended(); ++round) {
        std::vector<lite_op> writes;
        std::vector<lite_op> reads;
        for (std::size_t i = 0; i < seen.size(); ++i) {
            const auto& region = regions[i % regions.size()];
            const u64 at = options.offset + 72 * i;
            writes.push_back(lite::op::write(region, at, std::as_bytes(std::span(&round, 1))));
            reads.push_back(
                lite::op::read(region, at, std::as_writable_bytes(std::span(&seen[i], 1))));
        }
        const bool written = submit_despite(node, writes);
        const bool read = submit_despite(node, reads);
        ++(written && read ? good : bad);
        for (std::size_t i = 0; i < seen.size(); ++i) {
            if (writes[i].error || reads[i].error)
                continue;
            require(seen[i] == round, "word " + std::to_string(i) + " is of round " +
                                          std::to_string(seen[i]) + " after round " +
                                          std::to_string(round));
        }
    }
    std::printf("%llu %llu\n", static_cast<unsigned long long>(good),
                static_cast<unsigned long long>(bad));
}

}  // namespace

int main(int argc, char** argv) {
    lite_test::Arguments line("Many operations in one call.");
    Options options;
    std::function<void(lite::context&, const Options&)> chosen;
    line.option("--index", &options.index, "the N of /dev/liteN");
    const auto add = [&](const char* verb, const char* text, auto function) {
        auto command = line.command(verb, text, [&chosen, function] { chosen = function; });
        command.several("names", options.names);
        command.option("--offset", &options.offset);
        command.option("--length", &options.length);
        command.option("--count", &options.count);
        command.option("--seed", &options.seed);
    };
    add("churn", "everything at random, against a model", churn);
    add("until", "operate until that fails", until);
    add("count", "additions, and what is known of them", count);
    add("stamp", "writes that stay, though others have failed", stamp);
    line.parse(argc, argv);
    return lite_test::run_main("vectors", [&] {
        lite::context node(options.index);
        chosen(node, options);
    });
}
