// SPDX-License-Identifier: MIT
//
// Output for users: numbers, tables, hexadecimal dumps, progress.

#include "terminal.hpp"

#include "common/text/format.hpp"
#include "common/text/hexdump.hpp"
#include "common/text/progress.hpp"
#include "common/text/table.hpp"

#include "catch.hpp"

#include <chrono>
#include <numeric>
#include <random>
#include <string>
#include <vector>

using namespace tools;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

std::string dump(std::uint64_t address, const std::string& data, std::size_t piece = SIZE_MAX) {
    hexdump dump(address);
    std::string out;
    for (std::size_t i = 0; i < data.size(); i += piece) {
        out += dump.feed(bytes_of(data).subspan(i, std::min(piece, data.size() - i)));
        if (piece == SIZE_MAX)
            break;
    }
    return out + dump.finish();
}

}  // namespace

TEST_CASE("sizes for people", "[format]") {
    CHECK(human_size(0) == "0");
    CHECK(human_size(1023) == "1023");
    CHECK(human_size(1024) == "1.0K");
    CHECK(human_size(1025) == "1.1K");  // up, as ls does
    CHECK(human_size(1536) == "1.5K");
    CHECK(human_size(10 * 1024 - 1) == "10K");
    CHECK(human_size(10 * 1024) == "10K");
    CHECK(human_size(10 * 1024 + 1) == "11K");
    CHECK(human_size(1024 * 1024 - 1) == "1.0M");
    CHECK(human_size(1ULL << 30) == "1.0G");
    CHECK(human_size(1ULL << 46) == "64T");
    CHECK(human_size(1ULL << 50) == "1.0P");
    CHECK(human_size(UINT64_MAX) == "16E");
}

TEST_CASE("durations for people", "[format]") {
    CHECK(human_duration(0s) == "0:00");
    CHECK(human_duration(61s) == "1:01");
    CHECK(human_duration(3599s) == "59:59");
    CHECK(human_duration(3600s) == "1:00:00");
    CHECK(human_duration(100h) == "-:--");
    CHECK(human_duration(-1s) == "-:--");
}

TEST_CASE("modes, counts and odd characters", "[format]") {
    CHECK(mode_text(0) == "---------");
    CHECK(mode_text(0640) == "rw-r-----");
    CHECK(mode_text(0666) == "rw-rw-rw-");
    CHECK(rights_text(0) == "-----");
    CHECK(rights_text(LITE_RIGHT_READ | LITE_RIGHT_MASTER) == "r---m");
    CHECK(rights_text(LITE_RIGHTS_ALL, false) == "rwasm");
    CHECK(rights_text(LITE_RIGHT_ATOMIC, false) == "a");
    CHECK(byte_count(1) == "1 byte");
    CHECK(byte_count(0) == "0 bytes");
    CHECK(printable("plain ä\xe2\x82\xac") == "plain ä\xe2\x82\xac");
    CHECK(printable("a\x1b[2Jb\n\x7f") == R"(a\x1b[2Jb\x0a\x7f)");
    CHECK(printable("a\xc2\x9b"
                    "2Jb\xc2") == R"(a\xc2\x9b2Jb\xc2)");
    CHECK(printable("\xff\xe2\x82 \xed\xa0\x80\xc0\xaf") == R"(\xff\xe2\x82 \xed\xa0\x80\xc0\xaf)");
    CHECK(printable("\xf0\x9f\x90\x8e") == "\xf0\x9f\x90\x8e");
    CHECK(printable(R"(a\b\x4 \x41 \x00)") == R"(a\b\x4 \x5cx41 \x00)");
    CHECK(is_text("hello\tworld\r\n\xc3\xa4"));
    CHECK(is_text(""));
    CHECK_FALSE(is_text("a\0b"s));
    CHECK_FALSE(is_text("\x1b[2J"));
    CHECK_FALSE(is_text("\b"));
    CHECK_FALSE(
        is_text("\xc2\x9b"
                "31m"));  // U+009B: CSI
    CHECK(is_text("\xc2\xa0"));
}

TEST_CASE("two texts, one after the other, make no control character", "[format]") {
    CHECK(is_text("\xc2"));
    CHECK_FALSE(
        is_text("\x9b"
                "31m"));
    CHECK_FALSE(is_text("\xa4"));

    // The pieces of one text may split a character.
    text_check text;
    CHECK(text.take("a\xe2\x82"));
    CHECK(text.take(""));
    CHECK(text.take("\xac\xc2"));
    CHECK(text.take("\xa0\xc2"));
    CHECK_FALSE(
        text.take("\x9b"
                  "31m"));
}

TEST_CASE("unprintable restores every text from its printable form", "[format]") {
    std::mt19937 random(1);
    for (int round = 0; round < 10000; round++) {
        std::string text(random() % 12, '\0');
        // Many backslashes and digits, so that escapes occur.
        for (char& c : text)
            c = random() % 2 ? R"(\x4fF0)"[random() % 6] : static_cast<char>(random() % 255 + 1);
        CAPTURE(text);
        REQUIRE(unprintable(printable(text)) == text);
    }
}

TEST_CASE("tables", "[format]") {
    table empty({{"A"}, {"B"}});
    CHECK(empty.text().empty());

    table t({{"NAME"}, {"SIZE", table::align::right}, {"NOTE"}});
    t.add({"a", "1", "x"});
    t.add({"longer", "12345", ""});
    t.add({"\xc3\xa4\xc3\xb6\xc3\xbc", "7"});  // three characters, six bytes
    CHECK(t.text() ==
          "NAME     SIZE  NOTE\n"
          "a           1  x\n"
          "longer  12345\n"
          "\xc3\xa4\xc3\xb6\xc3\xbc         7\n");
    CHECK_THROWS_AS(t.add({"1", "2", "3", "4"}), std::length_error);
}

TEST_CASE("hexadecimal dumps are those of hexdump -C", "[format]") {
    CHECK(dump(0, "").empty());
    CHECK(dump(0, "hello\n") ==
          "00000000  68 65 6c 6c 6f 0a                                 |hello.|\n"
          "00000006\n");
    std::string all(32, 0);
    std::iota(all.begin(), all.end(), static_cast<char>(0x70));
    CHECK(dump(0x10, all) ==
          "00000010  70 71 72 73 74 75 76 77  78 79 7a 7b 7c 7d 7e 7f  |pqrstuvwxyz{|}~.|\n"
          "00000020  80 81 82 83 84 85 86 87  88 89 8a 8b 8c 8d 8e 8f  |................|\n"
          "00000030\n");
    CHECK(dump(0, std::string(64, 0) + "x") ==
          "00000000  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
          "*\n"
          "00000040  78                                                |x|\n"
          "00000041\n");
    CHECK(dump(0, std::string(48, 0)) ==
          "00000000  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
          "*\n"
          "00000030\n");
    // Addresses may be long.
    CHECK(dump(0x123456789a, "a").starts_with("123456789a  61 "));
    // The size of the pieces makes no difference.
    const auto data = all + std::string(100, 'z') + all;
    for (std::size_t piece = 1; piece < 40; piece++)
        CHECK(dump(3, data, piece) == dump(3, data));
}

TEST_CASE("the line of progress", "[format]") {
    CHECK(progress_line(0, 100, 1s, 80) ==
          "  0% [>                                       ]  0/100  0/s  eta -:--");
    CHECK(progress_line(50 << 20, 100 << 20, 10s, 80) ==
          " 50% [====================>                   ]  50M/100M  5.0M/s  eta 0:10");
    CHECK(progress_line(100 << 20, 100 << 20, 10s, 80) ==
          "100% [========================================]  100M/100M  10M/s  eta 0:00");
    CHECK(progress_line(5 << 20, std::nullopt, 10s, 80) == "5.0M  512K/s  0:10");
    // On a narrow terminal: without the bar, then cut off.
    CHECK(progress_line(50 << 20, 100 << 20, 10s, 40) == " 50%  50M/100M  5.0M/s  eta 0:10");
    CHECK(progress_line(50 << 20, 100 << 20, 10s, 8) == " 50%  50");
    CHECK(progress_line(50 << 20, 100 << 20, 10s, 0).empty());
    // Impossible figures do no harm.
    CHECK(progress_line(200, 100, 0s, 80).starts_with("100%"));
    CHECK(progress_line(0, 0, 1s, 80).starts_with("100%"));
    CHECK_FALSE(progress_line(UINT64_MAX, UINT64_MAX, 1ns, 80).empty());
    CHECK_FALSE(progress_line(1, UINT64_MAX, 10000h, 80).empty());
}

TEST_CASE("progress appears after a second, on terminals only, and vanishes", "[format]") {
    const terminal screen;
    auto now = progress::clock::now();
    const auto clock = [&] { return now; };
    {
        progress shown(screen.fd(), 1000, true, clock);
        shown.advance(100);
        now += 900ms;
        shown.advance(100);
        CHECK(screen.take().empty());
        now += 200ms;
        shown.advance(100);
        const auto line = screen.take();
        CHECK(line.starts_with("\r\x1b[K 30%"));
        CHECK(line.find('\n') == line.npos);
        now += 10ms;  // too soon for another
        shown.advance(100);
        CHECK(screen.take().empty());
    }
    CHECK(screen.take() == "\r\x1b[K");
    {
        progress disabled(screen.fd(), 1000, false, clock);
        now += 5s;
        disabled.advance(1000);
    }
    CHECK(screen.take().empty());
    {
        progress quick(screen.fd(), 1000, true, clock);
        quick.advance(1000);
    }
    CHECK(screen.take().empty());
    {
        const capture file;
        progress elsewhere(file.fd(), 1000, true, clock);
        now += 5s;
        elsewhere.advance(1000);
        CHECK(file.text().empty());
    }
}
