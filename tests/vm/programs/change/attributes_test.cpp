// SPDX-License-Identifier: MIT
// Owner, group and mode: which users may change them, and to which values.
#include "fixture.hpp"

using namespace lite_test;

namespace {

constexpr std::uint64_t kAskedLength = 5000;

struct Attributes : ChangeSingle {
    std::string name = unique_name("attributes");

    Attributes() {
        as_user(kAlice, [&] { dev.unmap(dev.alloc(kAskedLength, where.nodes, name, 0640)); });
    }
    ~Attributes() { (void)dev(free_args(name)); }

    void check(std::uint32_t uid, std::uint32_t gid, std::uint32_t mode) const {
        for (const auto& each : nodes) {
            const auto info = each.stat(name);
            CHECK(info.uid == uid);
            CHECK(info.gid == gid);
            CHECK(info.mode == mode);
        }
    }
};

}  // namespace

TEST_CASE_METHOD(Attributes, "attributes: LITE_KEEP keeps", "[attributes]") {
    INFO(where.label);
    CHECK(dev(setattr_args(name, LITE_KEEP, LITE_KEEP, LITE_KEEP)) == ok);
    check(1000, 1000, 0640);
    CHECK(dev(setattr_args(name, LITE_KEEP, LITE_KEEP, 0)) == ok);
    check(1000, 1000, 0);
    CHECK(dev(setattr_args(name, LITE_KEEP, 7, LITE_KEEP)) == ok);
    check(1000, 7, 0);
    CHECK(dev(setattr_args(name, 8, LITE_KEEP, LITE_KEEP)) == ok);
    check(8, 7, 0);
    CHECK(dev(setattr_args(name, 1, 2, 0666)) == ok);
    check(1, 2, 0666);
}

TEST_CASE_METHOD(Attributes, "attributes: a mode with other bits is EINVAL", "[attributes]") {
    const auto mode =
        GENERATE(as<std::uint32_t>{}, 0100, 0777, 01600, 04600, 0x80000600, 0xfffffffe);
    INFO("mode " << std::oct << mode);
    CHECK(dev(setattr_args(name, LITE_KEEP, LITE_KEEP, mode)) == err(EINVAL));
    check(1000, 1000, 0640);
}

TEST_CASE_METHOD(Attributes, "attributes: what a master other than root may do", "[attributes]") {
    INFO(where.label);
    const Identity alice{1000, 1000, {50, 60}};
    const auto change = [&](const Identity& who, std::uint32_t uid, std::uint32_t gid,
                            std::uint32_t mode) {
        return call_as(who, [&] { return dev(setattr_args(name, uid, gid, mode)); });
    };
    CHECK(change(alice, LITE_KEEP, LITE_KEEP, 0666) == ok);
    CHECK(change(alice, LITE_KEEP, 60, LITE_KEEP) == ok);
    check(1000, 60, 0666);
    CHECK(change(alice, LITE_KEEP, 70, LITE_KEEP) == err(EPERM));
    CHECK(change(alice, 1001, LITE_KEEP, LITE_KEEP) == err(EPERM));
    // All or nothing: a refused call changes nothing.
    CHECK(change(alice, 1001, LITE_KEEP, 0600) == err(EPERM));
    CHECK(change(alice, LITE_KEEP, 70, 0600) == err(EPERM));
    check(1000, 60, 0666);
    CHECK(change(kBob, LITE_KEEP, LITE_KEEP, 0600) == err(EPERM));
    CHECK(change(kBob, LITE_KEEP, 1001, LITE_KEEP) == err(EPERM));
    check(1000, 60, 0666);
    // Through a handle, the call needs MASTER.
    const auto lh = map_as(alice, dev, name, kRWA);
    CHECK(is_refusal(
        call_as(alice, [&] { return dev(setattr_args(lh, LITE_KEEP, LITE_KEEP, 0600)); })));
    const auto master = map_as(alice, dev, name, kM);
    CHECK(call_as(alice, [&] { return dev(setattr_args(master, LITE_KEEP, LITE_KEEP, 0600)); }) ==
          ok);
    check(1000, 60, 0600);
}

TEST_CASE_METHOD(Attributes, "attributes: of an LMR that does not exist", "[attributes]") {
    CHECK(dev(setattr_args(std::string_view("no-such-lmr"), 1, 1, 0)) == err(ENOENT));
    CHECK(dev(setattr_args(std::uint64_t{12345}, 1, 1, 0)) == err(EBADF));
    const auto lh = dev.map(name, kM);
    dev.free(name);
    CHECK(dev(setattr_args(lh, 1, 1, 0)) == err(EIDRM));
    CHECK(dev(setattr_args(name, 1, 1, 0)) == err(ENOENT));
}

TEST_CASE_METHOD(Attributes, "attributes: new rights can be used at once", "[attributes]") {
    INFO(where.label);
    CHECK(try_map_as(kBob, node(1), name, kR) == err(EACCES));
    dev.chmod(name, 0644);
    CHECK(try_map_as(kBob, node(1), name, kR) == ok);
    CHECK(dev(setattr_args(name, kBob.uid, LITE_KEEP, 0600)) == ok);
    CHECK(try_map_as(kBob, node(2), name, kRWA | kS | kM) == ok);
    CHECK(try_map_as(kAlice, node(2), name, kM) == err(EACCES));
}
