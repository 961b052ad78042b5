// SPDX-License-Identifier: MIT
#include "support.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

using namespace lite_test;

namespace {

int check(const std::string& name) {
    std::array<char, LITE_NAME_SIZE> field{};
    std::copy_n(name.begin(), std::min(name.size(), field.size()), field.begin());
    return lite_name_check(field.data(), field.size());
}

std::string nth_name(std::size_t i) { return "object/" + std::to_string(i); }

std::uint64_t hash(const std::string& name) { return lite_name_hash(name.data(), name.size()); }

// The rule that name.h states: greatest weight, then lowest id.
std::uint32_t directory(const std::string& name, const std::vector<std::uint32_t>& nodes) {
    const auto h = hash(name);
    return *std::max_element(nodes.begin(), nodes.end(), [&](std::uint32_t a, std::uint32_t b) {
        const auto wa = lite_rendezvous_weight(h, a);
        const auto wb = lite_rendezvous_weight(h, b);
        return wa != wb ? wa < wb : a > b;
    });
}

constexpr std::size_t kNames = 20000;

}  // namespace

TEST_CASE("names: lengths") {
    CHECK(check("") == -EINVAL);
    CHECK(check("a") == 1);
    CHECK(check(std::string(LITE_NAME_MAX, 'x')) == LITE_NAME_MAX);
    CHECK(check(std::string(LITE_NAME_SIZE, 'x')) == -ENAMETOOLONG);
}

TEST_CASE("names: every byte value, at every position class") {
    for (int value = 1; value < 256; ++value) {
        const char byte = static_cast<char>(value);
        const bool allowed = value >= 0x20 && value != 0x7f;
        for (const std::string& name :
             {std::string(1, byte), "ab" + std::string(1, byte), std::string(1, byte) + "ab",
              std::string(254, 'x') + byte}) {
            CAPTURE(value, name.size());
            CHECK(check(name) == (allowed ? static_cast<int>(name.size()) : -EINVAL));
        }
    }
}

TEST_CASE("names: bytes behind the NUL, or behind the field, do not matter") {
    CHECK(lite_name_check("ab\0\t\n", 6) == 2);
    // Full fields on the heap: the address sanitizer sees a read behind them.
    const std::vector<char> filled(LITE_NAME_SIZE, 'x');
    CHECK(lite_name_check(filled.data(), filled.size()) == -ENAMETOOLONG);
    const std::vector<char> one{'x'};
    CHECK(lite_name_check(one.data(), 1) == -ENAMETOOLONG);
    CHECK(lite_name_check(one.data(), 0) == -ENAMETOOLONG);
}

TEST_CASE("names: the hash is part of the protocol and never changes") {
    // Computed independently in Python: FNV-1a of 64 bits, then MurmurHash3's finalizer.
    CHECK(lite_name_hash("", 0) == 0xefd01f60ba992926);
    CHECK(hash("a") == 0x82a2a958a9bece5b);
    CHECK(hash("greeting") == 0x151fd25d2d4fb978);
    CHECK(hash("gr\xc3\xb6\xc3\x9f"
               "e") == 0x2eb895f56869eaa1);
    CHECK(lite_rendezvous_weight(0x0123456789abcdef, 1) == 0x46555ecc1a730d13);
    CHECK(lite_rendezvous_weight(0x0123456789abcdef, 65535) == 0x2b354aac0aad75c0);
}

TEST_CASE("names: the directory does not depend on the order of the members") {
    std::vector<std::uint32_t> nodes{1, 2, 3, 17, 400, 65535};
    auto reversed = nodes;
    std::reverse(reversed.begin(), reversed.end());
    for (std::size_t i = 0; i < 1000; ++i)
        REQUIRE(directory(nth_name(i), nodes) == directory(nth_name(i), reversed));
}

TEST_CASE("names: the directories are balanced") {
    const std::size_t members = GENERATE(as<std::size_t>{}, 2, 3, 5, 16, 64);
    const bool scattered = GENERATE(false, true);
    std::vector<std::uint32_t> nodes;
    for (std::size_t i = 0; i < members; ++i)
        nodes.push_back(static_cast<std::uint32_t>(scattered ? 1 + i * 997 : 1 + i));

    std::map<std::uint32_t, std::size_t> load;
    for (std::size_t i = 0; i < kNames; ++i)
        ++load[directory(nth_name(i), nodes)];

    // Chi-square with members - 1 degrees of freedom: its mean plus six standard deviations.
    const double expected = static_cast<double>(kNames) / static_cast<double>(members);
    double chi2 = 0;
    for (const auto node : nodes) {
        const double off = static_cast<double>(load[node]) - expected;
        chi2 += off * off / expected;
    }
    const double freedom = static_cast<double>(members) - 1;
    CAPTURE(members, scattered);
    CHECK(chi2 < freedom + 6 * std::sqrt(2 * freedom));
}

TEST_CASE("names: a member that leaves or joins moves only its own names") {
    std::vector<std::uint32_t> nodes{1, 2, 3, 4, 5, 6, 7};
    const std::uint32_t leaver = GENERATE(1U, 4U, 7U);
    auto fewer = nodes;
    fewer.erase(std::find(fewer.begin(), fewer.end(), leaver));
    std::size_t moved = 0;
    for (std::size_t i = 0; i < kNames; ++i) {
        const auto before = directory(nth_name(i), nodes);
        const auto after = directory(nth_name(i), fewer);
        if (before == leaver)
            ++moved;
        else
            REQUIRE(after == before);
    }
    CHECK(moved > kNames / 14);  // the leaver had a fair share
}
