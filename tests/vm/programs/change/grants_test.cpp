// SPDX-License-Identifier: MIT
// Grants: the rights that they give, to which users on which nodes; and the users that may give
// them.
#include "fixture.hpp"

#include <tuple>

using namespace lite_test;

namespace {

constexpr std::uint64_t kGrantedLength = 20000;

std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> sorted(
    const std::vector<lite_grant>& grants) {
    std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> all;
    for (const auto& grant : grants)
        all.emplace_back(grant.uid, grant.node, grant.rights);
    std::sort(all.begin(), all.end());
    return all;
}

}  // namespace

TEST_CASE_METHOD(ChangeSingle, "grants: give what the mode does not", "[grants]") {
    INFO(where.label);
    NamedLmr lmr(dev, kGrantedLength, where.nodes, 0);
    for (const auto rights : {kR, kW, kA, kR | kW, kRWA, kR | kM, kS | kR, kRWA | kS | kM}) {
        INFO("rights " << rights);
        dev.grant(lmr.name(), kBob.uid, 0, rights);
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            INFO("node " << i);
            for (const auto wanted : {kR, kW, kA, kS, kM, kRWA}) {
                INFO("wanted " << wanted);
                CHECK(try_map_as(kBob, node(i), lmr.name(), wanted) ==
                      (wanted & ~rights ? err(EACCES) : ok));
            }
            const auto lh = map_as(kBob, node(i), lmr.name(), rights);
            CHECK_NOTHROW(expect_rights(node(i), lh, rights));
            node(i).unmap(lh);
            CHECK(try_map_as(kCarol, node(i), lmr.name(), kR) == err(EACCES));
        }
    }
}

TEST_CASE_METHOD(ChangeSingle, "grants: a grant for one node is for that node only", "[grants]") {
    INFO(where.label);
    NamedLmr lmr(dev, kGrantedLength, where.nodes, 0);
    for (std::size_t to = 0; to < nodes.size(); ++to) {
        dev.grant(lmr.name(), kBob.uid, id(to), kR);
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            INFO("granted on node " << to << ", opened on node " << i);
            CHECK(try_map_as(kBob, node(i), lmr.name(), kR) == (i == to ? ok : err(EACCES)));
        }
        dev.grant(lmr.name(), kBob.uid, id(to), 0);
        CHECK(try_map_as(kBob, node(to), lmr.name(), kR) == err(EACCES));
    }
}

TEST_CASE_METHOD(ChangeSingle, "grants: of a node and of all nodes add up, and go one by one",
                 "[grants]") {
    INFO(where.label);
    NamedLmr lmr(dev, kGrantedLength, where.nodes, 0);
    dev.grant(lmr.name(), kBob.uid, 0, kR);
    dev.grant(lmr.name(), kBob.uid, id(0), kW);
    CHECK(try_map_as(kBob, node(0), lmr.name(), kR | kW) == ok);
    if (nodes.size() > 1)
        CHECK(try_map_as(kBob, node(1), lmr.name(), kW) == err(EACCES));
    dev.grant(lmr.name(), kBob.uid, 0, 0);
    CHECK(try_map_as(kBob, node(0), lmr.name(), kR) == err(EACCES));
    CHECK(try_map_as(kBob, node(0), lmr.name(), kW) == ok);
    // Another grant to the same user and node replaces the first one.
    dev.grant(lmr.name(), kBob.uid, id(0), kA);
    CHECK(try_map_as(kBob, node(0), lmr.name(), kW) == err(EACCES));
    CHECK(try_map_as(kBob, node(0), lmr.name(), kA) == ok);
    CHECK(dev.grants(lmr.name()).size() == 1);
}

TEST_CASE_METHOD(ChangeSingle, "grants: add to the class that applies", "[grants]") {
    INFO(where.label);
    NamedLmr lmr(dev, kGrantedLength, where.nodes, 0604);
    dev.grant(lmr.name(), kBob.uid, 0, kA);
    CHECK(try_map_as(kBob, dev, lmr.name(), kR | kA) == ok);
    CHECK(try_map_as(kBob, dev, lmr.name(), kW) == err(EACCES));
    CHECK(try_map_as(kCarol, dev, lmr.name(), kA) == err(EACCES));
}

TEST_CASE_METHOD(ChangeSingle, "grants: are shown to all users, on every node", "[grants]") {
    INFO(where.label);
    NamedLmr lmr(dev, kGrantedLength, where.nodes, 0);
    CHECK(dev.grants(lmr.name()).empty());
    dev.grant(lmr.lh(), kBob.uid, 0, kR);
    dev.grant(lmr.name(), kCarol.uid, 3, kRWA | kS | kM);
    dev.grant(lmr.name(), 4000000000, 65535, kM);
    const decltype(sorted({})) wanted{
        {kBob.uid, 0, kR}, {kCarol.uid, 3, LITE_RIGHTS_ALL}, {4000000000, 65535, kM}};
    for (std::size_t i = 0; i < nodes.size(); ++i)
        CHECK(sorted(node(i).grants(lmr.name())) == wanted);
    CHECK(sorted(dev.grants(lmr.lh())) == wanted);
    CHECK_NOTHROW(as_user({65534, 65534}, [&] {
        expect(sorted(dev.grants(lmr.name())) == wanted, "grants as nobody");
    }));

    // Too little room is no error.
    std::array<lite_grant, 2> few{};
    auto args = grants_args(lmr.name(), few);
    CHECK(dev(args) == ok);
    CHECK(args.n_grants == 3);
    CHECK(few[0].rights != 0);
    CHECK(few[1].rights != 0);
    args = grants_args(lmr.name(), {});
    CHECK(dev(args) == ok);
    CHECK(args.n_grants == 3);
    CHECK(dev(grants_args(std::string_view("no-such-lmr"), few)) == err(ENOENT));
    CHECK(dev(grants_args(std::uint64_t{12345}, few)) == err(EBADF));
}

TEST_CASE_METHOD(ChangeSingle, "grants: a program that knows more of an entry gets zeroes there",
                 "[grants]") {
    struct Later {
        lite_grant grant;
        std::uint64_t unknown[2];
    };
    INFO(where.label);
    NamedLmr lmr(dev, kGrantedLength, where.nodes, 0);
    dev.grant(lmr.name(), kBob.uid, 0, kR);
    dev.grant(lmr.name(), kCarol.uid, 3, kRWA);
    std::array<Later, 3> entries{};
    for (auto& entry : entries)
        entry.unknown[0] = entry.unknown[1] = ~0ULL;
    auto args = grants_args(lmr.name(), {});
    args.grants = reinterpret_cast<std::uintptr_t>(entries.data());
    args.n_grants = static_cast<std::uint32_t>(entries.size());
    args.grant_size = sizeof(Later);
    REQUIRE(dev(args) == ok);
    REQUIRE(args.n_grants == 2);
    CHECK(sorted({entries[0].grant, entries[1].grant}) ==
          decltype(sorted({})){{kBob.uid, 0, kR}, {kCarol.uid, 3, kRWA}});
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const std::uint64_t wanted = i < args.n_grants ? 0 : ~0ULL;
        CHECK(entries[i].unknown[0] == wanted);
        CHECK(entries[i].unknown[1] == wanted);
    }
    CHECK(entries[2].grant.uid == 0);

    std::array<lite_grant, 3> grants{};
    args = grants_args(lmr.name(), grants);
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, sizeof(lite_grant) - 1, kPage + 1}) {
        args.grant_size = static_cast<std::uint32_t>(size);
        CHECK(dev(args) == err(EINVAL));
    }
}

TEST_CASE_METHOD(ChangeSingle, "grants: their number is limited", "[grants]") {
    INFO(where.label);
    NamedLmr lmr(dev, kGrantedLength, where.nodes, 0);
    for (std::uint32_t i = 0; i < LITE_GRANTS_MAX; ++i)
        dev.grant(lmr.name(), 5000 + i, i % 3, kR);
    CHECK(dev(grant_args(lmr.name(), kBob.uid, 0, kR)) == err(ENOSPC));
    CHECK(dev.grants(lmr.name()).size() == LITE_GRANTS_MAX);
    dev.grant(lmr.name(), 5000, 0, kW);
    dev.grant(lmr.name(), 5001, 1, 0);
    dev.grant(lmr.name(), kBob.uid, 0, kR);
    CHECK(dev.grants(lmr.name()).size() == LITE_GRANTS_MAX);
    CHECK(try_map_as(kBob, dev, lmr.name(), kR) == ok);
}

TEST_CASE_METHOD(ChangeSingle, "grants: invalid ones are refused", "[grants]") {
    INFO(where.label);
    NamedLmr lmr(dev, kGrantedLength, where.nodes, 0);
    for (unsigned bit = 0; bit < 32; ++bit) {
        if (LITE_RIGHTS_ALL & (1U << bit))
            continue;
        INFO("bit " << bit);
        CHECK(dev(grant_args(lmr.name(), kBob.uid, 0, kR | 1U << bit)) == err(EOPNOTSUPP));
    }
    CHECK(dev(grant_args(std::string_view("no-such-lmr"), 1, 0, kR)) == err(ENOENT));
    CHECK(dev(grant_args(std::string_view(), 1, 0, kR)) == err(EINVAL));
    CHECK(dev(grant_args(std::uint64_t{12345}, 1, 0, kR)) == err(EBADF));
    CHECK(dev.grants(lmr.name()).empty());
    const auto lh = dev.map(lmr.name(), kM);
    dev.free(lmr.lh());
    CHECK(dev(grant_args(lh, kBob.uid, 0, kR)) == err(EIDRM));
}

TEST_CASE_METHOD(ChangeSingle, "grants: strangers give and take nothing", "[grants]") {
    INFO(where.label);
    NamedLmr lmr(dev, kGrantedLength, where.nodes, 0666);
    dev.grant(lmr.name(), kCarol.uid, 0, kR);
    for (const auto rights : {kR, kRWA, kM, 0U}) {
        CHECK(call_as(kBob, [&] { return dev(grant_args(lmr.name(), kBob.uid, 0, rights)); }) ==
              err(EACCES));
        CHECK(call_as(kBob, [&] { return dev(grant_args(lmr.name(), kCarol.uid, 0, rights)); }) ==
              err(EACCES));
    }
    const auto lh = map_as(kBob, dev, lmr.name(), kRWA);
    CHECK(call_as(kBob, [&] { return dev(grant_args(lh, kBob.uid, 0, kR)); }) == err(EACCES));
    CHECK(dev.grants(lmr.name()).size() == 1);
}

TEST_CASE_METHOD(ChangeSingle, "grants: a user with SHARE may pass its own rights on", "[grants]") {
    INFO(where.label);
    NamedLmr lmr(dev, kGrantedLength, where.nodes, 0);
    dev.grant(lmr.name(), kBob.uid, 0, kS | kR);
    const auto give = [&](const Identity& to, std::uint32_t rights) {
        return call_as(kBob, [&] { return dev(grant_args(lmr.name(), to.uid, 0, rights)); });
    };
    CHECK(give(kCarol, kW) == err(EACCES));
    CHECK(give(kCarol, kR | kA) == err(EACCES));
    CHECK(give(kCarol, kR | kS) == err(EACCES));
    CHECK(give(kCarol, kR | kM) == err(EACCES));
    CHECK(dev.grants(lmr.name()).size() == 1);
    CHECK(give(kCarol, kR) == ok);
    CHECK(try_map_as(kCarol, node(1), lmr.name(), kR) == ok);

    // With SHARE, Bob takes no right away: not all rights of a user, not some of them, nor any of
    // Bob's.
    CHECK(give(kCarol, 0) == err(EACCES));
    dev.grant(lmr.name(), kCarol.uid, 0, kR | kW);
    CHECK(give(kCarol, kR) == err(EACCES));
    CHECK(give(kBob, kR) == err(EACCES));
    CHECK(try_map_as(kCarol, dev, lmr.name(), kR | kW) == ok);

    // By handle, the handle's SHARE and rights count.
    const auto lh = map_as(kBob, dev, lmr.name(), kS | kR);
    CHECK(call_as(kBob, [&] { return dev(grant_args(lh, kAlice.uid, 0, kR)); }) == ok);
    const auto plain = map_as(kBob, dev, lmr.name(), kR);
    CHECK(call_as(kBob, [&] { return dev(grant_args(plain, 77, 0, kR)); }) == err(EACCES));
    const auto bare = map_as(kBob, dev, lmr.name(), kS);
    CHECK(call_as(kBob, [&] { return dev(grant_args(bare, 77, 0, kR)); }) == err(EACCES));
    // Rights that the granter has lost cannot be passed on.
    dev.grant(lmr.name(), kBob.uid, 0, kR);
    CHECK(call_as(kBob, [&] { return dev(grant_args(lh, 77, 0, kR)); }) == err(EACCES));
    CHECK(give(kAlice, kR) == err(EACCES));
}

TEST_CASE_METHOD(ChangeSingle, "grants: there may be several masters", "[grants]") {
    INFO(where.label);
    const auto name = unique_name("masters");
    REQUIRE_NOTHROW(
        as_user(kAlice, [&] { dev.unmap(dev.alloc(kGrantedLength, where.nodes, name, 0)); }));
    for (const auto& who : {kBob, kCarol})
        dev.grant(name, who.uid, 0, kM);
    const auto by = [&](const Identity& who, auto call) { return call_as(who, call); };
    // Each master may do what the owner may do, on any node.
    CHECK(by(kBob, [&] { return node(1)(grant_args(name, 77, 0, LITE_RIGHTS_ALL)); }) == ok);
    CHECK(by(kCarol, [&] { return node(2)(grant_args(name, 77, 0, 0)); }) == ok);
    CHECK(by(kBob, [&] { return dev(setattr_args(name, LITE_KEEP, LITE_KEEP, 0604)); }) == ok);
    CHECK(by(kCarol, [&] { return dev(resize_args(name, kGrantedLength * 2)); }) == ok);
    CHECK(by(kBob, [&] { return dev(move_args(name, id(1))); }) == ok);
    CHECK(by(kCarol, [&] { return dev(rename_args(name, name + "-new")); }) == ok);
    CHECK(by(kBob, [&] { return dev(rename_args(name + "-new", name)); }) == ok);
    // A master dismisses another one; the owner always stays a master.
    CHECK(by(kBob, [&] { return dev(grant_args(name, kCarol.uid, 0, 0)); }) == ok);
    CHECK(by(kCarol, [&] { return dev(resize_args(name, kGrantedLength)); }) == err(EPERM));
    CHECK(by(kCarol, [&] { return dev(move_args(name, 0)); }) == err(EPERM));
    CHECK(by(kCarol, [&] { return dev(rename_args(name, name + "-x")); }) == err(EPERM));
    CHECK(by(kCarol, [&] { return dev(setattr_args(name, LITE_KEEP, LITE_KEEP, 0)); }) ==
          err(EPERM));
    CHECK(by(kCarol, [&] { return dev(free_args(name)); }) == err(EPERM));
    CHECK(by(kAlice, [&] { return dev(resize_args(name, kGrantedLength)); }) == ok);
    // Also through a handle.
    const auto lh = map_as(kBob, node(1), name, kM);
    CHECK(by(kBob, [&] { return node(1)(free_args(lh)); }) == ok);
    CHECK(dev(stat_args(name)) == err(ENOENT));
}
