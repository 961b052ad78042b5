// SPDX-License-Identifier: MIT

#include "common/text/parse.hpp"
#include "common/endpoint.hpp"
#include "common/error.hpp"

#include <uapi/lite.h>

#include "catch.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

using namespace tools;
using namespace std::string_literals;

namespace {

// A parser's message about a word; empty if it accepts the word.
std::string complaint(const auto& parser, const std::string& word) {
    try {
        parser(word);
    } catch (const usage_error& e) {
        return e.what();
    }
    return {};
}

bool refuses(const auto& parser, const std::string& word) {
    return !complaint(parser, word).empty();
}

}  // namespace

TEST_CASE("sizes", "[parse]") {
    CHECK(parse_size("0") == 0);
    CHECK(parse_size("4096") == 4096);
    CHECK(parse_size("0x1000") == 4096);
    CHECK(parse_size("0XfF") == 255);
    CHECK(parse_size("4K") == 4096);
    CHECK(parse_size("4k") == 4096);
    CHECK(parse_size("4KiB") == 4096);
    CHECK(parse_size("4kiB") == 4096);
    CHECK(parse_size("3M") == 3U << 20);
    CHECK(parse_size("3G") == 3ULL << 30);
    CHECK(parse_size("2TiB") == 2ULL << 40);
    CHECK(parse_size("1P") == 1ULL << 50);
    CHECK(parse_size("0x10K") == 16384);
    CHECK(parse_size("010") == 10);  // decimal, not octal
    CHECK(parse_size("18446744073709551615") == UINT64_MAX);
    CHECK(parse_size("16383P") == 16383ULL << 50);
}

TEST_CASE("bad sizes", "[parse]") {
    for (const char* bad :
         {"",    " ",   "K",   "-1", "+1", "1.5G", "1 K", " 1",  "1 ",   "0x", "0xK",
          "1KK", "1Ki", "1iB", "1X", "1E", "4KIB", "1e3", "x10", "0x1h", "1B"}) {
        CAPTURE(bad);
        CHECK(refuses(parse_size, bad));
    }
    for (const char* large :
         {"18446744073709551616", "16384P", "0x10000000000000000", "99999999999999999999999K"}) {
        CAPTURE(large);
        CHECK(complaint(parse_size, large).find("too large") != std::string::npos);
    }
    CHECK(complaint(parse_size, "1KB") == "'1KB' is ambiguous: write K or KiB for powers of 1024");
    CHECK(refuses(parse_size, "4\0"s));
    // The message escapes control characters for the terminal.
    CHECK(complaint(parse_size, "4\x1b[2J").starts_with("'4\\x1b[2J' is not a size"));
}

TEST_CASE("numbers in a range", "[parse]") {
    const auto port = [](std::string_view text) { return parse_number(text, 1, 65535); };
    CHECK(port("1") == 1);
    CHECK(port("65535") == 65535);
    CHECK(complaint(port, "0") == "'0' is out of range (1..65535)");
    CHECK(refuses(port, "65536"));
    CHECK(refuses(port, "99999999999999999999"));
    CHECK(complaint(port, "ten") == "'ten' is not a number (decimal or 0x hexadecimal)");
    CHECK(refuses(port, "1K"));
    CHECK(refuses(port, "-1"));
}

TEST_CASE("times", "[parse]") {
    const auto parse = [](const std::string& word) { return parse_time(word, 0, 3600000); };
    CHECK(parse("0") == 0);
    CHECK(parse("500") == 500);
    CHECK(parse("500ms") == 500);
    CHECK(parse("0.5ms") == 1);
    CHECK(parse("5s") == 5000);
    CHECK(parse("0.3s") == 300);
    CHECK(parse(".25s") == 250);
    CHECK(parse("1.0005s") == 1001);
    CHECK(parse("1.5m") == 90000);
    CHECK(parse("1h") == 3600000);
    for (const char* bad : {"", "s", ".", "-1", "-1s", "+1s", "1 s", " 1s", "1s ", "1S", "1sec",
                            "1d", "0x10", "1e3", "1e3s", "1.2.3s", "inf", "nan", "1m30s"}) {
        CAPTURE(bad);
        CHECK_THAT(complaint(parse, bad), Catch::StartsWith("'"s + bad + "' is not a time"));
    }
    CHECK(complaint(parse, "0.5") == "'0.5' lacks a unit, as in 0.5s or 0.5ms");
    for (const auto& late : {"3600001"s, "61m"s, "2h"s, std::string(400, '9')}) {
        CAPTURE(late);
        CHECK(complaint(parse, late) == "'" + late + "' is out of range (0..3600000 ms)");
    }
}

TEST_CASE("addends", "[parse]") {
    CHECK(parse_addend("5") == 5);
    CHECK(parse_addend("-1") == UINT64_MAX);
    CHECK(parse_addend("-0x10") == 0 - std::uint64_t{16});
    CHECK(parse_addend("-0") == 0);
    CHECK(parse_addend("-9223372036854775808") == std::uint64_t{1} << 63);
    CHECK(parse_addend("18446744073709551615") == UINT64_MAX);
    for (const char* bad :
         {"-9223372036854775809", "-", "--1", "-x", "1-", "-18446744073709551616"}) {
        CAPTURE(bad);
        CHECK(refuses(parse_addend, bad));
    }
}

TEST_CASE("patterns", "[parse]") {
    CHECK(parse_pattern("00") == std::vector{std::byte{0}});
    CHECK(parse_pattern("01fF") == std::vector{std::byte{1}, std::byte{0xff}});
    CHECK(parse_pattern("0102030405060708").size() == 8);
    for (const char* bad : {"", "0", "0x1", "001", "0g", "g0", " 00", "+1", "010203040506070809"}) {
        CAPTURE(bad);
        CHECK(refuses(parse_pattern, bad));
    }
}

TEST_CASE("modes", "[parse]") {
    CHECK(parse_mode("0600") == 0600);
    CHECK(parse_mode("666") == 0666);
    CHECK(parse_mode("0") == 0);
    for (const char* bad : {"", "0777", "08", "rw", "-1", "0x1", "1000", "77777777777777"}) {
        CAPTURE(bad);
        CHECK(refuses(parse_mode, bad));
    }
}

TEST_CASE("changes of modes", "[parse]") {
    const auto change = [](std::string_view text, std::uint32_t from) {
        return parse_mode_change(text).apply(from);
    };
    CHECK(change("0640", 0) == 0640);
    CHECK(change("0", 0666) == 0);
    CHECK_FALSE(parse_mode_change("600").is_relative());
    CHECK(parse_mode_change("a=rw").is_relative());
    CHECK(change("u+w", 0444) == 0644);
    CHECK(change("g-r", 0644) == 0604);
    CHECK(change("o=rw", 0640) == 0646);
    CHECK(change("ug=r", 0666) == 0446);
    CHECK(change("=r", 0666) == 0444);
    CHECK(change("+w", 0400) == 0622);
    CHECK(change("a-w", 0666) == 0444);
    CHECK(change("o=", 0666) == 0660);
    CHECK(change("u=rw,g+r,o-rw", 0066) == 0660);
    CHECK(change("u=r+w-r", 0) == 0200);
    for (const char* bad : {"", "x", "u", "u+x", "u=s", "rw", "u+r,", ",", "0777", "888", "u+r g+r",
                            "-5", "u!r", "0x1"}) {
        CAPTURE(bad);
        CHECK(refuses(parse_mode_change, bad));
    }
}

TEST_CASE("rights", "[parse]") {
    CHECK(parse_rights("r") == LITE_RIGHT_READ);
    CHECK(parse_rights("rw") == (LITE_RIGHT_READ | LITE_RIGHT_WRITE));
    CHECK(parse_rights("msawr") == LITE_RIGHTS_ALL);
    for (const char* bad : {"", "rr", "R", "rx", "r,w", "r ", "5"}) {
        CAPTURE(bad);
        CHECK(refuses(parse_rights, bad));
    }
}

TEST_CASE("lists of nodes", "[parse]") {
    CHECK(parse_nodes("1") == std::vector<std::uint32_t>{1});
    CHECK(parse_nodes("3,1,65535") == std::vector<std::uint32_t>{3, 1, 65535});
    for (const char* bad :
         {"", ",", "1,", ",1", "1,,2", "0", "65536", "1;2", "1, 2", "-1", "1,2,1"}) {
        CAPTURE(bad);
        CHECK(refuses(parse_nodes, bad));
    }
    std::string many = "1";
    for (int i = 2; i <= 64; i++)
        many += "," + std::to_string(i);
    CHECK(parse_nodes(many).size() == 64);
    CHECK(refuses(parse_nodes, many + ",65"));
}

TEST_CASE("names", "[parse]") {
    CHECK(parse_name("a") == "a");
    CHECK(parse_name("-.ä b") == "-.ä b");
    CHECK(parse_name("/a/b") == "/a/b");
    CHECK(parse_name("\\xff\\x5cx") == "\xff\\x");
    std::string longest;
    for (int i = 0; i < 255; i++)
        longest += "\\x80";
    CHECK(parse_name(longest) == std::string(255, '\x80'));
    CHECK(refuses(parse_name, longest + "x"));
    CHECK(parse_name(std::string(255, 'x')).size() == 255);
    CHECK(complaint(parse_name, std::string(256, 'x')) ==
          "'xxxxxxxxxxxxxxxx...' is too long for a name (256 bytes, 255 at most)");
    for (const auto& bad : {""s, "a\nb"s, "\x7f"s, "a\0"s, "\\x0a"s}) {
        CAPTURE(bad);
        CHECK(refuses(parse_name, bad));
    }
    CHECK(complaint(parse_name, "\x1b[2J").find('\x1b') == std::string::npos);
}

TEST_CASE("endpoints", "[parse]") {
    const auto check = [](const char* text, const char* host, std::optional<std::uint16_t> port) {
        CAPTURE(text);
        const auto result = parse_endpoint(text);
        CHECK(result.host == host);
        CHECK(result.port == port);
    };
    check("10.0.0.1", "10.0.0.1", std::nullopt);
    check("10.0.0.1:18500", "10.0.0.1", 18500);
    check("node-7.cluster:1", "node-7.cluster", 1);
    check("[::1]:65535", "::1", 65535);
    check("[fd00::7]", "fd00::7", std::nullopt);
    check("fd00::7", "fd00::7", std::nullopt);
    check("::", "::", std::nullopt);

    for (const char* bad : {"",
                            ":",
                            ":1",
                            "10.0.0.1:",
                            "10.0.0.1:0",
                            "10.0.0.1:65536",
                            "10.0.0.1:x",
                            "[::1",
                            "::1]",
                            "[::1]x",
                            "[::1]1",
                            "[::1]:",
                            "[10.0.0.1]:1",
                            "[]",
                            "[]:1",
                            "1:2:3",
                            "a b",
                            "a/b",
                            "fe80::1%eth0",
                            "[fe80::1%eth0]:1",
                            "10.0.0.1:1:2",
                            "10.0.0.1:-1"}) {
        CAPTURE(bad);
        CHECK(refuses(parse_endpoint, bad));
    }
}

TEST_CASE("messages about endpoints escape control characters", "[parse]") {
    CHECK(complaint(parse_endpoint, "\x1b]/x").find('\x1b') == std::string::npos);
}

TEST_CASE("addresses", "[parse]") {
    const auto v4 = ip_address::from_text("192.168.1.2");
    REQUIRE(v4);
    CHECK(v4->bytes().size() == 4);
    CHECK(v4->bytes()[0] == std::byte{192});
    CHECK(v4->to_string() == "192.168.1.2");
    CHECK(to_string(*v4, 18500) == "192.168.1.2:18500");

    const auto v6 = ip_address::from_text("fd00:0::1");
    REQUIRE(v6);
    CHECK(v6->is_v6());
    CHECK(to_string(*v6, 1) == "[fd00::1]:1");
    CHECK(*v6 == *ip_address::from_text("fd00::1"));
    CHECK(*v6 != *v4);

    CHECK_FALSE(ip_address::from_text("192.168.1"));
    CHECK_FALSE(ip_address::from_text("192.168.1.2\0x"s));
    CHECK_FALSE(ip_address::from_text(""));
    CHECK_THROWS_AS(ip_address({}), std::length_error);

    CHECK(ip_address::from_text("127.8.0.1")->is_loopback());
    CHECK(ip_address::from_text("::1")->is_loopback());
    CHECK_FALSE(ip_address::from_text("::2")->is_loopback());
    CHECK_FALSE(v4->is_loopback());
    CHECK(ip_address::from_text("169.254.3.4")->is_link_local());
    CHECK(ip_address::from_text("febf::1")->is_link_local());
    CHECK_FALSE(ip_address::from_text("fec0::1")->is_link_local());

    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(0x0a000001);
    CHECK(ip_address::from_sockaddr(reinterpret_cast<const sockaddr*>(&in))->to_string() ==
          "10.0.0.1");
    const sockaddr other{};
    CHECK_FALSE(ip_address::from_sockaddr(&other));
    CHECK_FALSE(ip_address::from_sockaddr(nullptr));
}

TEST_CASE("resolving", "[parse]") {
    CHECK(resolve("10.0.0.1").to_string() == "10.0.0.1");
    CHECK(resolve("::1").to_string() == "::1");
    CHECK_THROWS_AS(resolve("fe80::1"), failure);
    // A name that no server is asked for: a label has 63 characters at most.
    CHECK_THROWS_AS(resolve(std::string(64, 'x') + ".invalid"), failure);
}
