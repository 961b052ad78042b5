// SPDX-License-Identifier: MIT
//
// Prints bytes from outside: whatever they are, and however they are cut into pieces, the output
// must contain nothing that a terminal obeys.

#include "common/text/format.hpp"
#include "common/text/hexdump.hpp"
#include "common/text/progress.hpp"
#include "common/text/table.hpp"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

void require(bool condition) {
    if (!condition)
        std::abort();
}

std::string dump(std::uint64_t address, std::span<const std::byte> bytes, std::size_t piece) {
    tools::hexdump dump(address);
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); i += piece)
        out += dump.feed(bytes.subspan(i, std::min(piece, bytes.size() - i)));
    return out + dump.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 17)
        return 0;
    std::uint64_t a;
    std::uint64_t b;
    std::memcpy(&a, data, sizeof(a));
    std::memcpy(&b, data + 8, sizeof(b));
    const std::size_t piece = data[16] % 40U + 1U;
    const std::string_view text(reinterpret_cast<const char*>(data) + 17, size - 17);
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));

    const auto whole = dump(a, bytes, std::max<std::size_t>(bytes.size(), 1));
    require(whole == dump(a, bytes, piece));
    require(tools::is_text(whole));

    const auto shown = tools::printable(text);
    require(tools::is_text(shown) && shown.find('\n') == shown.npos);
    // A name has no NUL, so the parser accepts none.
    require(text.find('\0') != text.npos || tools::unprintable(shown) == text);

    tools::table table({{"A"}, {"B", tools::table::align::right}});
    table.add({shown, "x"});
    table.add({"y", shown});
    require(tools::is_text(table.text()));

    const std::chrono::duration<double> elapsed(static_cast<double>(piece) / 7);
    require(tools::progress_line(a, b, elapsed, 80).size() <= 80);
    require(tools::progress_line(b, std::nullopt, elapsed, piece).size() <= piece);
    return 0;
}
