// SPDX-License-Identifier: MIT
//
// The C API for changing LMRs: grants, attributes, rename, resize, move.

#include "fake_node.hpp"
#include "recording.hpp"

#include <lite/lite.h>

#include "catch.hpp"

#include <array>
#include <cerrno>
#include <string>

namespace {

const std::string long_name(256, 'n');

}  // namespace

TEST_CASE("lite_grant_set", "[liblite][change]") {
    const recording<lite_ioc_grant> node;
    CHECK(lite_grant_set(node.ctx, 0, 1, 2, 3) == -EBADF);
    CHECK(node.request == 0);
    REQUIRE(lite_grant_set(node.ctx, 9, 1000, 3, LITE_RIGHT_READ | LITE_RIGHT_SHARE) == 0);
    CHECK(node.request == LITE_IOC_GRANT);
    CHECK(node.last.size == sizeof(lite_ioc_grant));
    CHECK(node.last.flags == 0);
    CHECK(node.last.lh == 9);
    CHECK(node.last.grant.uid == 1000);
    CHECK(node.last.grant.node == 3);
    CHECK(node.last.grant.rights == 9);
    CHECK(node.last.grant.reserved == 0);
    CHECK(node.last.name[0] == 0);

    REQUIRE(lite_grant_set_name(node.ctx, "x", 5, 0, 0) == 0);
    CHECK(node.last.lh == 0);
    CHECK(std::string(node.last.name) == "x");
    CHECK(node.last.grant.uid == 5);
    CHECK(node.last.grant.rights == 0);
    CHECK(lite_grant_set_name(node.ctx, "", 5, 0, 1) == -EINVAL);
    CHECK(lite_grant_set_name(node.ctx, long_name.c_str(), 5, 0, 1) == -ENAMETOOLONG);

    const recording<lite_ioc_grant> full({}, -ENOSPC);
    CHECK(lite_grant_set(full.ctx, 9, 1, 0, 1) == -ENOSPC);
}

TEST_CASE("lite_grants", "[liblite][change]") {
    fake::cluster cluster;
    auto context = cluster.context();
    lite_ctx* ctx = context.get();
    auto region = context.alloc({.name = "x", .length = 10});
    for (std::uint32_t i = 0; i < 3; i++)
        REQUIRE(lite_grant_set(ctx, region.handle(), 100 + i, i, LITE_RIGHT_READ) == 0);

    std::array<struct lite_grant, 4> found{};
    std::uint32_t n = found.size();
    REQUIRE(lite_grants(ctx, region.handle(), found.data(), &n) == 0);
    CHECK(n == 3);
    CHECK(found[2].uid == 102);
    CHECK(found[2].node == 2);
    CHECK(found[2].rights == LITE_RIGHT_READ);

    // Too little room is no error: the count says how much is needed.
    found = {};
    n = 1;
    REQUIRE(lite_grants_name(ctx, "x", found.data(), &n) == 0);
    CHECK(n == 3);
    CHECK(found[0].uid == 100);
    CHECK(found[1].uid == 0);
    n = 0;
    REQUIRE(lite_grants_name(ctx, "x", nullptr, &n) == 0);
    CHECK(n == 3);

    n = 1;
    CHECK(lite_grants(ctx, region.handle(), nullptr, &n) == -EINVAL);
    CHECK(n == 1);
    CHECK(lite_grants(ctx, region.handle(), found.data(), nullptr) == -EINVAL);
    CHECK(lite_grants(ctx, 0, found.data(), &n) == -EBADF);
    CHECK(lite_grants_name(ctx, "nobody", found.data(), &n) == -ENOENT);
    CHECK(n == 1);
    CHECK(lite_grants_name(ctx, long_name.c_str(), found.data(), &n) == -ENAMETOOLONG);
}

TEST_CASE("lite_setattr, lite_chmod and lite_chown", "[liblite][change]") {
    const recording<lite_ioc_setattr> node;
    lite_ctx* ctx = node.ctx;
    CHECK(lite_setattr(ctx, 0, 1, 2, 0) == -EBADF);
    CHECK(lite_chmod(ctx, 0, 0) == -EBADF);
    CHECK(lite_chown(ctx, 0, 1, 2) == -EBADF);
    CHECK(lite_setattr_name(ctx, "", 1, 2, 0) == -EINVAL);
    CHECK(lite_chmod_name(ctx, nullptr, 0) == -EINVAL);
    CHECK(lite_chown_name(ctx, long_name.c_str(), 1, 2) == -ENAMETOOLONG);
    CHECK(node.request == 0);

    const auto check = [&](std::uint64_t lh, const char* name, std::uint32_t uid, std::uint32_t gid,
                           std::uint32_t mode) {
        CHECK(node.request == LITE_IOC_SETATTR);
        CHECK(node.last.size == sizeof(lite_ioc_setattr));
        CHECK(node.last.flags == 0);
        CHECK(node.last.reserved == 0);
        CHECK(node.last.lh == lh);
        CHECK(std::string(node.last.name) == name);
        CHECK(node.last.uid == uid);
        CHECK(node.last.gid == gid);
        CHECK(node.last.mode == mode);
    };
    REQUIRE(lite_setattr(ctx, 7, 1, 2, 0640) == 0);
    check(7, "", 1, 2, 0640);
    REQUIRE(lite_setattr_name(ctx, "x", 3, LITE_KEEP, 0) == 0);
    check(0, "x", 3, LITE_KEEP, 0);
    REQUIRE(lite_chmod(ctx, 7, 0600) == 0);
    check(7, "", LITE_KEEP, LITE_KEEP, 0600);
    REQUIRE(lite_chmod_name(ctx, "x", 0666) == 0);
    check(0, "x", LITE_KEEP, LITE_KEEP, 0666);
    REQUIRE(lite_chown(ctx, 7, 1, LITE_KEEP) == 0);
    check(7, "", 1, LITE_KEEP, LITE_KEEP);
    REQUIRE(lite_chown_name(ctx, "x", LITE_KEEP, 0) == 0);
    check(0, "x", LITE_KEEP, 0, LITE_KEEP);
}

TEST_CASE("lite_rename", "[liblite][change]") {
    const recording<lite_ioc_rename> node;
    CHECK(lite_rename(node.ctx, 0, "to") == -EBADF);
    CHECK(lite_rename(node.ctx, 7, "") == -EINVAL);
    CHECK(lite_rename(node.ctx, 7, nullptr) == -EINVAL);
    CHECK(lite_rename(node.ctx, 7, long_name.c_str()) == -ENAMETOOLONG);
    CHECK(lite_rename_name(node.ctx, "", "to") == -EINVAL);
    CHECK(lite_rename_name(node.ctx, "from", long_name.c_str()) == -ENAMETOOLONG);
    CHECK(node.request == 0);

    REQUIRE(lite_rename(node.ctx, 7, "to") == 0);
    CHECK(node.request == LITE_IOC_RENAME);
    CHECK(node.last.size == sizeof(lite_ioc_rename));
    CHECK(node.last.lh == 7);
    CHECK(node.last.name[0] == 0);
    CHECK(std::string(node.last.to) == "to");
    REQUIRE(lite_rename_name(node.ctx, "from", "to") == 0);
    CHECK(node.last.lh == 0);
    CHECK(std::string(node.last.name) == "from");
    const recording<lite_ioc_rename> taken({}, -EEXIST);
    CHECK(lite_rename(taken.ctx, 7, "to") == -EEXIST);
}

TEST_CASE("lite_resize", "[liblite][change]") {
    const recording<lite_ioc_resize> node;
    CHECK(lite_resize(node.ctx, 0, 1) == -EBADF);
    CHECK(lite_resize_name(node.ctx, "", 1) == -EINVAL);
    CHECK(node.request == 0);
    REQUIRE(lite_resize(node.ctx, 7, 12345) == 0);
    CHECK(node.request == LITE_IOC_RESIZE);
    CHECK(node.last.size == sizeof(lite_ioc_resize));
    CHECK(node.last.lh == 7);
    CHECK(node.last.length == 12345);
    REQUIRE(lite_resize_name(node.ctx, "x", 1) == 0);
    CHECK(node.last.lh == 0);
    CHECK(std::string(node.last.name) == "x");
    CHECK(node.last.length == 1);
}

TEST_CASE("lite_move says how much was moved, also when it fails", "[liblite][change]") {
    lite_ioc_move answer{};
    answer.moved = 8192;
    std::uint64_t moved = 99;
    {
        const recording<lite_ioc_move> node(answer);
        CHECK(lite_move(node.ctx, 0, 0, 0, 2, &moved) == -EBADF);
        CHECK(moved == 0);
        moved = 99;
        CHECK(lite_move_name(node.ctx, "", 0, 0, 2, &moved) == -EINVAL);
        CHECK(moved == 0);
        CHECK(lite_move_name(node.ctx, "", 0, 0, 2, nullptr) == -EINVAL);
        CHECK(node.request == 0);

        REQUIRE(lite_move(node.ctx, 7, 4096, 16384, 2, &moved) == 0);
        CHECK(node.request == LITE_IOC_MOVE);
        CHECK(node.last.size == sizeof(lite_ioc_move));
        CHECK(node.last.flags == 0);
        CHECK(node.last.reserved == 0);
        CHECK(node.last.lh == 7);
        CHECK(node.last.offset == 4096);
        CHECK(node.last.length == 16384);
        CHECK(node.last.moved == 0);
        CHECK(node.last.node == 2);
        CHECK(moved == 8192);
        REQUIRE(lite_move_name(node.ctx, "x", 0, 0, 0, nullptr) == 0);
        CHECK(node.last.lh == 0);
        CHECK(std::string(node.last.name) == "x");
    }
    const recording<lite_ioc_move> failing(answer, -EHOSTDOWN);
    moved = 0;
    CHECK(lite_move(failing.ctx, 7, 0, 0, 2, &moved) == -EHOSTDOWN);
    CHECK(moved == 8192);
}
