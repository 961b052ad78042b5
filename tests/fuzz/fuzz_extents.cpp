// SPDX-License-Identifier: MIT
// Tables of extents from a peer, and ranges from a user: a transfer that passes both checks must
// stay within the extents.
#include "fuzz.hpp"

#include <vector>

using namespace lite_fuzz;

namespace {

constexpr std::uint32_t kShares = 4;

// Half of the values are small, because random 64-bit numbers hardly ever make a sound table.
std::uint64_t take_number(Input& input) {
    const auto word = input.take<std::uint64_t>();
    return word & 1 ? word >> 1 : (word >> 1) % 65536;
}

std::vector<lite_extent> take_table(Input& input) {
    std::vector<lite_extent> table;
    std::uint64_t end = 0;
    const unsigned n = input.take<std::uint8_t>() % 16U;
    for (unsigned i = 0; i < n; ++i) {
        lite_extent e{};
        const auto flags = input.take<std::uint8_t>();
        e.length = take_number(input);
        e.addr = take_number(input);
        e.start = flags & 0x10 ? take_number(input) : end;
        e.share = flags % (kShares + 1);
        end = e.start + e.length;
        table.push_back(e);
    }
    return table;
}

// Walks through the table like a transfer: every piece is in its extent, and all make up the range.
void carry_out(const std::vector<lite_extent>& table, std::uint64_t offset, std::uint64_t length) {
    const auto n = static_cast<std::uint32_t>(table.size());
    auto i = lite_extent_find(table.data(), n, offset);
    while (length > 0) {
        require(i < n, "a range that goes on behind the last extent");
        const auto& e = table[i];
        require(offset >= e.start && offset - e.start < e.length,
                "an extent that does not hold the offset");
        const auto skip = offset - e.start;
        const auto take = e.length - skip < length ? e.length - skip : length;
        require(e.addr + skip + (take - 1) >= e.addr, "an address that wraps");
        require(e.share < kShares, "a share that the LMR does not have");
        offset += take;
        length -= take;
        ++i;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    const auto table = take_table(input);
    std::uint64_t sum = 0;
    for (const auto& e : table)
        sum += e.length;
    const auto claimed = input.take<std::uint8_t>() % 8 ? sum : take_number(input);
    const auto n = static_cast<std::uint32_t>(table.size());
    if (lite_extent_table_check(table.data(), n, claimed, kShares) != 0)
        return 0;
    while (!input.empty()) {
        const auto offset = take_number(input);
        const auto length = take_number(input);
        if (lite_bounds_check(offset, length, claimed) == 0)
            carry_out(table, offset, length);
        if (lite_atomic_check(offset, length, claimed) == 0)
            require(offset % 8 == 0 && length == 8 && offset + 8 <= claimed,
                    "an atomic out of bounds");
    }
    return 0;
}
