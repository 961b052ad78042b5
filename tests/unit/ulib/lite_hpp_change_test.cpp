// SPDX-License-Identifier: MIT
//
// The C++ API for changing LMRs, on a fake cluster.

#include "error_of.hpp"
#include "fake_node.hpp"

#include <lite/lite.hpp>

#include "catch.hpp"

#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

using namespace std::string_literals;
using lite::rights;

namespace {

constexpr std::uint32_t alice = 1000;
constexpr std::uint32_t bob = 1001;

}  // namespace

TEST_CASE("grants are given, shown and taken away", "[lite.hpp][change]") {
    fake::cluster cluster;
    auto node = cluster.context();
    auto region = node.alloc({.name = "x", .length = 64});
    CHECK(region.grants().empty());
    region.grant({bob, lite::every_node, rights::read | rights::write});
    node.grant("x", {7, 3, rights::all});
    const std::vector<lite::grant> wanted{{bob, 0, rights::read | rights::write},
                                          {7, 3, rights::all}};
    CHECK(region.grants() == wanted);
    CHECK(node.grants("x") == wanted);

    cluster.uid = bob;
    auto bobs = node.map("x");
    bobs.store(0, 5);
    CHECK(error_of([&] {
              bobs.grant({7, 3, rights::none});
          }).code() == std::errc::permission_denied);
    CHECK(error_of([&] { node.chmod("x", 0666); }).code() == std::errc::operation_not_permitted);

    cluster.uid = alice;
    region.grant({bob, lite::every_node, rights::read});
    CHECK(bobs.load<int>(0) == 5);
    CHECK(error_of([&] { bobs.store(0, 6); }).code() == std::errc::permission_denied);
    region.grant({bob, lite::every_node, rights::none});
    CHECK(error_of([&] { bobs.load<int>(0); }).code() == std::errc::permission_denied);
    CHECK(node.grants("x").size() == 1);
    CHECK(error_of([&] { node.grants("nobody"); }).what() == "grants nobody: no LMR of that name"s);
}

TEST_CASE("a full list of grants is shown", "[lite.hpp][change]") {
    fake::cluster cluster;
    auto node = cluster.context();
    auto region = node.alloc({.name = "x", .length = 64});
    for (std::uint32_t i = 0; i < LITE_GRANTS_MAX; i++)
        region.grant({i, 1, rights::read});
    CHECK(region.grants().size() == LITE_GRANTS_MAX);
    CHECK(error_of([&] {
              region.grant({99, 1, rights::read});
          }).code() == std::errc::no_space_on_device);
    region.grant({5, 1, rights::write});
    CHECK(region.grants().size() == LITE_GRANTS_MAX);
}

TEST_CASE("SHARE lets a user grant only its own rights, and revoke none", "[lite.hpp][change]") {
    fake::cluster cluster;
    auto node = cluster.context();
    node.create({.name = "x", .length = 64});
    node.grant("x", {bob, lite::every_node, rights::read | rights::share});
    cluster.uid = bob;
    node.grant("x", {7, lite::every_node, rights::read});
    for (const auto too_much : {rights::write, rights::read | rights::atomic, rights::share,
                                rights::master, rights::none})
        CHECK(error_of([&] {
                  node.grant("x", {7, lite::every_node, too_much});
              }).code() == std::errc::permission_denied);
}

TEST_CASE("owner, group and mode", "[lite.hpp][change]") {
    fake::cluster cluster;
    auto node = cluster.context();
    auto region = node.alloc({.name = "x", .length = 64});
    region.chmod(0640);
    CHECK(region.stat().info.mode == 0640);
    node.chmod("x", 0444);
    CHECK(error_of([&] { region.store(0, 1); }).code() == std::errc::permission_denied);
    CHECK(error_of([&] { region.chmod(0777); }).code() == std::errc::invalid_argument);
    CHECK(error_of([&] { region.chown(bob, lite::keep); }).code() ==
          std::errc::operation_not_permitted);
    cluster.uid = 0;
    node.chown("x", bob, lite::keep);
    CHECK(node.stat("x").info.uid == bob);
    CHECK(node.stat("x").info.gid == 1000);
    region = node.map("x", rights::master);
    region.chown(lite::keep, 5);
    CHECK(node.stat("x").info.gid == 5);
}

TEST_CASE("rename", "[lite.hpp][change]") {
    fake::cluster cluster;
    auto node = cluster.context();
    auto region = node.alloc({.length = 64});
    node.create({.name = "taken", .length = 64});
    CHECK(error_of([&] { region.rename("taken"); }).code() == std::errc::file_exists);
    region.rename("named");
    node.rename("named", "renamed");
    CHECK(cluster.find("renamed"));
    CHECK_FALSE(cluster.find("named"));
    region.store(0, 1);
    CHECK(error_of([&] { node.rename("named", "x"); }).what() ==
          "rename named: no LMR of that name"s);
    CHECK(error_of([&] { region.rename("a\0b"s); }).code() == std::errc::invalid_argument);
}

TEST_CASE("resize keeps the remaining bytes and adds zeroes", "[lite.hpp][change]") {
    fake::cluster cluster;
    auto node = cluster.context();
    auto region = node.alloc({.name = "x", .length = 64});
    region.store(0, 7);
    region.store(60, 8);
    region.resize(100000);
    CHECK(region.length() == 100000);
    CHECK(region.load<int>(60) == 8);
    CHECK(region.load<int>(99996) == 0);
    node.resize("x", 60);
    CHECK(region.length() == 100000);  // not changed by resize() elsewhere
    CHECK(region.stat().info.length == 60);
    CHECK(error_of([&] { region.load<int>(60); }).code() == std::errc::result_out_of_range);
    region.resize(64);
    CHECK(region.load<int>(0) == 7);
    CHECK(region.load<int>(60) == 0);
    CHECK(error_of([&] { region.resize(0); }).code() == std::errc::invalid_argument);
    CHECK(region.length() == 64);
}

TEST_CASE("move", "[lite.hpp][change]") {
    fake::cluster cluster;
    auto node = cluster.context();
    auto region = node.alloc({.name = "x", .length = 40000});
    region.move(2, 4096, 8192);
    CHECK(region.stat().nodes == std::vector<std::uint32_t>{1, 2});
    node.move("x", 3);
    CHECK(region.stat().nodes == std::vector<std::uint32_t>{3});
    CHECK(error_of([&] { region.move(9); }).code() == std::errc::host_unreachable);
    CHECK(error_of([&] { region.move(2, 36864, 4097); }).code() == std::errc::result_out_of_range);

    cluster.intercept = [](unsigned long request, void* arg) -> std::optional<int> {
        if (request != LITE_IOC_MOVE)
            return std::nullopt;
        static_cast<lite_ioc_move*>(arg)->moved = 12288;
        return -EHOSTDOWN;
    };
    CHECK(error_of([&] { region.move(2); }).transferred() == 12288);
    const auto e = error_of([&] { node.move("x", 2); });
    CHECK(e.transferred() == 12288);
    CHECK(e.what() == "move x: the node is down"s);
}

TEST_CASE("empty regions cannot be changed", "[lite.hpp][change]") {
    lite::region none;
    const auto bad = std::errc::bad_file_descriptor;
    CHECK(error_of([&] { none.grant({1, 0, rights::read}); }).code() == bad);
    CHECK(error_of([&] { none.grants(); }).code() == bad);
    CHECK(error_of([&] { none.chmod(0); }).code() == bad);
    CHECK(error_of([&] { none.chown(1, 1); }).code() == bad);
    CHECK(error_of([&] { none.rename("x"); }).code() == bad);
    CHECK(error_of([&] { none.resize(1); }).code() == bad);
    CHECK(error_of([&] { none.move(1); }).code() == bad);
}
