// SPDX-License-Identifier: MIT
#include "pattern.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace lite_test {
namespace {

std::uint64_t word_at(std::uint64_t seed, std::uint64_t index) {
    return mix(seed + index * 0x9e3779b97f4a7c15ULL);
}

// Calls @visit with pieces of the pattern that lie in one word each: (offset in the span, bytes).
template <typename Visit>
void for_each_word(std::size_t length, std::uint64_t seed, std::uint64_t offset, Visit visit) {
    std::size_t done = 0;
    while (done < length) {
        const auto at = offset + done;
        const auto skip = static_cast<std::size_t>(at % sizeof(std::uint64_t));
        const auto take = std::min(sizeof(std::uint64_t) - skip, length - done);
        const auto word = word_at(seed, at / sizeof(std::uint64_t));
        std::array<std::byte, sizeof(word)> bytes;
        std::memcpy(bytes.data(), &word, sizeof(word));
        if (!visit(done, std::span<const std::byte>(bytes).subspan(skip, take)))
            return;
        done += take;
    }
}

}  // namespace

std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

void fill_pattern(std::span<std::byte> into, std::uint64_t seed, std::uint64_t offset) {
    for_each_word(into.size(), seed, offset, [&](std::size_t at, std::span<const std::byte> bytes) {
        std::byte* const to = into.data() + at;
        // A constant length needs no call.
        if (bytes.size() == sizeof(std::uint64_t))
            std::memcpy(to, bytes.data(), sizeof(std::uint64_t));
        else
            std::memcpy(to, bytes.data(), bytes.size());
        return true;
    });
}

std::vector<std::byte> make_pattern(std::size_t length, std::uint64_t seed, std::uint64_t offset) {
    std::vector<std::byte> bytes(length);
    fill_pattern(bytes, seed, offset);
    return bytes;
}

std::optional<std::size_t> find_mismatch(std::span<const std::byte> bytes, std::uint64_t seed,
                                         std::uint64_t offset) {
    std::optional<std::size_t> found;
    for_each_word(bytes.size(), seed, offset, [&](std::size_t at, std::span<const std::byte> word) {
        const auto part = bytes.subspan(at, word.size());
        if (word.size() == sizeof(std::uint64_t)
                ? std::memcmp(part.data(), word.data(), sizeof(std::uint64_t)) == 0
                : std::memcmp(part.data(), word.data(), word.size()) == 0)
            return true;
        const auto [here, there] = std::mismatch(part.begin(), part.end(), word.begin());
        found = at + static_cast<std::size_t>(here - part.begin());
        return false;
    });
    return found;
}

bool all_are(std::span<const std::byte> bytes, std::byte value) {
    return bytes.empty() ||
           (bytes[0] == value && !std::memcmp(&bytes[0], bytes.data() + 1, bytes.size() - 1));
}

}  // namespace lite_test
