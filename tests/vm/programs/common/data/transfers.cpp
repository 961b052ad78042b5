// SPDX-License-Identifier: MIT
#include "transfers.hpp"

#include "../process.hpp"
#include "pattern.hpp"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

namespace lite_test {
namespace {

constexpr std::size_t kPiece = 4 << 20;

std::string describe(const Plan& plan, std::size_t number, const Transfer& t) {
    std::ostringstream text;
    text << "seed " << plan.seed << ", transfer " << number << " ("
         << (t.kind == Transfer::Kind::read ? "read" : "write") << " of " << t.length << " at "
         << t.offset << "): ";
    return text.str();
}

// Calls @visit(offset, length) for pieces of the region: each, or every @every-th, and the last.
template <typename Visit>
void for_each_piece(const lite::region& region, std::size_t piece, std::size_t every, Visit visit) {
    for (std::uint64_t at = 0; at < region.length(); at += piece)
        if (at / piece % every == 0 || region.length() - at <= piece)
            visit(at,
                  static_cast<std::size_t>(std::min<std::uint64_t>(piece, region.length() - at)));
}

}  // namespace

void carry_out(lite::region& region, const Plan& plan) {
    TransferStream stream(plan);
    Shadow shadow(plan.lmr_length);
    std::vector<std::byte> buffer;
    for (std::size_t i = 0; i < plan.count; ++i) {
        const auto t = stream.next();
        // Neither page- nor word-aligned, and with another alignment each time.
        const auto skew = 1 + i % 67;
        buffer.assign(t.length + skew, std::byte{0xee});
        const auto data = std::span(buffer).subspan(skew);
        try {
            if (t.kind == Transfer::Kind::read) {
                region.read(t.offset, data);
                const auto difference = compare(data, shadow.part(t.offset, t.length), t.offset);
                expect(difference.empty(), describe(plan, i, t) + difference);
            } else {
                fill_pattern(data, t.pattern);
                region.write(t.offset, data);
                shadow.apply(t);
            }
        } catch (const lite::error& e) {
            expect(false, describe(plan, i, t) + e.what());
        }
    }
}

void check_outcome(const lite::region& region, const Plan& plan) {
    const Shadow shadow(plan);
    std::vector<std::byte> buffer(kPiece);
    expect_equal(region.length(), plan.lmr_length, "length of the LMR");
    for_each_piece(region, kPiece, 1, [&](std::uint64_t at, std::size_t length) {
        const auto data = std::span(buffer).first(length);
        region.read(at, data);
        const auto difference = compare(data, shadow.part(at, length), at);
        expect(difference.empty(),
               "seed " + std::to_string(plan.seed) + ", outcome: " + difference);
    });
}

void write_pattern(lite::region& region, std::uint64_t seed, std::size_t piece, std::size_t every) {
    std::vector<std::byte> buffer(piece);
    for_each_piece(region, piece, every, [&](std::uint64_t at, std::size_t length) {
        const auto data = std::span(buffer).first(length);
        fill_pattern(data, seed, at);
        region.write(at, data);
    });
}

void check_pattern(const lite::region& region, std::uint64_t seed, std::size_t piece,
                   std::size_t every) {
    std::vector<std::byte> buffer(piece);
    for_each_piece(region, piece, every, [&](std::uint64_t at, std::size_t length) {
        const auto data = std::span(buffer).first(length);
        region.read(at, data);
        const auto wrong = find_mismatch(data, seed, at);
        expect(!wrong, "seed " + std::to_string(seed) + ": wrong byte at offset " +
                           std::to_string(at + wrong.value_or(0)));
    });
}

}  // namespace lite_test
