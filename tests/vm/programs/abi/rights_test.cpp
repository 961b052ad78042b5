// SPDX-License-Identifier: MIT
// Rights: those that a handle was opened with, and those that the mode bits give to each user.
// Children become other users; the file is opened before, so that these tests are about the LMR and
// not about access to /dev/liteN.
#include "fixture.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using namespace lite_test;

namespace {

constexpr std::uint32_t kR = LITE_RIGHT_READ;
constexpr std::uint32_t kW = LITE_RIGHT_WRITE;
constexpr std::uint32_t kA = LITE_RIGHT_ATOMIC;
constexpr std::uint32_t kM = LITE_RIGHT_MASTER;

constexpr Identity kAlice{1000, 1000};
constexpr gid_t kStaff = 500;

// Operations succeed or fail as @rights say.
void expect_rights(const Device& dev, std::uint64_t lh, std::uint32_t rights) {
    std::array<std::byte, 8> buf{};
    const auto wanted = [&](std::uint32_t right) { return rights & right ? ok : err(EACCES); };
    expect_equal(dev(read_args(lh, 0, buf.data(), 8)), wanted(kR), "read");
    expect_equal(dev(write_args(lh, 0, buf.data(), 8)), wanted(kW), "write");
    expect_equal(dev(fetch_add_args(lh, 0, 0)), wanted(kA), "fetch-add");
    expect_equal(dev(cmp_swap_args(lh, 0, 0, 0)), wanted(kA), "compare-and-swap");
}

// A named LMR that belongs to Alice.
class AlicesLmr {
  public:
    AlicesLmr(const Device& dev, std::uint32_t mode, std::span<const std::uint32_t> nodes)
        : dev_(dev) {
        as_user(kAlice, [&] {
            auto args = alloc_args(name_, kLength, mode, LITE_ALLOC_NO_HANDLE);
            set_nodes(args, nodes);
            expect_equal(dev(args), ok, "alloc");
        });
    }
    ~AlicesLmr() { dev_(free_args(name_)); }
    const std::string& name() const { return name_; }

  private:
    const Device& dev_;
    std::string name_ = unique_name("alice");
};

struct AbiRights : Abi {
    // At home here, and at another node: there the caller's identity has travelled.
    Placement where = GENERATE(filter([](const Placement& p) { return p.nodes.size() == 1; },
                                      from_range(env().placements())));
};

// Exactly the bits that POSIX would give: those of the class that applies, not of the best one.
std::uint32_t granted(const Identity& who, std::uint32_t mode, gid_t group) {
    const bool in_group = who.gid == group || std::find(who.groups.begin(), who.groups.end(),
                                                        group) != who.groups.end();
    const auto shift = who.uid == kAlice.uid ? 6 : in_group ? 3 : 0;
    const auto bits = mode >> shift;
    return (bits & 4 ? kR : 0) | (bits & 2 ? kW | kA : 0);
}

}  // namespace

TEST_CASE_METHOD(AbiRights, "rights: a handle has only the rights it was opened with", "[rights]") {
    INFO(where.label);
    NamedLmr lmr(dev, kLength, where.nodes, 0666);
    for (const std::uint32_t rights :
         {kR, kW, kA, kM, kR | kW, kR | kA, kW | kA, kR | kM, kR | kW | kA, kR | kW | kA | kM}) {
        INFO("rights " << rights);
        const auto lh = dev.map(lmr.name(), rights);
        CHECK_NOTHROW(expect_rights(dev, lh, rights));
        dev.unmap(lh);
    }
}

TEST_CASE_METHOD(AbiRights, "rights: freeing through a handle needs MASTER", "[rights]") {
    INFO(where.label);
    NamedLmr lmr(dev, kLength, where.nodes, 0666);
    const auto plain = dev.map(lmr.name(), kR | kW | kA);
    CHECK(dev(free_args(plain)) == err(EACCES));
    CHECK_NOTHROW(expect_rights(dev, plain, kR | kW | kA));
    const auto master = dev.map(lmr.name(), kM);
    CHECK(dev(free_args(master)) == ok);
}

TEST_CASE_METHOD(AbiRights, "rights: opening without rights is EINVAL", "[rights]") {
    NamedLmr lmr(dev, kLength, where.nodes);
    CHECK(dev(map_args(lmr.name(), 0)) == err(EINVAL));
}

TEST_CASE_METHOD(AbiRights, "rights: unknown rights are EOPNOTSUPP", "[rights]") {
    NamedLmr lmr(dev, kLength, where.nodes);
    for (unsigned bit = 0; bit < 32; ++bit) {
        if (LITE_RIGHTS_ALL & (1U << bit))
            continue;
        INFO("bit " << bit);
        CHECK(dev(map_args(lmr.name(), kR | 1U << bit)) == err(EOPNOTSUPP));
    }
}

TEST_CASE_METHOD(AbiRights, "rights: the maker's handle has what the mode gives, and MASTER",
                 "[rights]") {
    INFO(where.label);
    const auto mode = GENERATE(as<std::uint32_t>{}, 0000, 0400, 0200, 0600, 0066, 0666);
    INFO("mode " << std::oct << mode);
    CHECK_NOTHROW(as_user(kAlice, [&] {
        const auto lh = dev.alloc(kLength, where.nodes, "", mode);
        expect_rights(dev, lh, granted(kAlice, mode, kAlice.gid));
        expect_equal(dev(free_args(lh)), ok, "free");
    }));
}

TEST_CASE_METHOD(AbiRights, "rights: modes against users, groups and supplementary groups",
                 "[rights]") {
    INFO(where.label);
    const std::vector<Identity> people{
        {1000, 1000},                // the owner
        {1000, 77},                  // the owner in another group
        {1001, 1000},                // of the group
        {1001, 77, {5, 1000, 9}},    // of the group by a supplementary one
        {1001, 77, {1001, kStaff}},  // of other groups
        {1001, 1001},                // another user
        {65534, 65534},              // the user "nobody"
    };
    std::map<std::uint32_t, AlicesLmr> lmrs;  // by mode
    for (const std::uint32_t mode : {0600U, 0400U, 0200U, 0060U, 0040U, 0006U, 0004U, 0002U, 0640U,
                                     0604U, 0066U, 0606U, 0660U, 0664U, 0666U, 0000U})
        lmrs.try_emplace(mode, dev, mode, where.nodes);
    // A process for each of them, and not for each mode: it takes long to start one.
    for (const auto& who : people) {
        INFO("uid " << who.uid << " gid " << who.gid << " and " << who.groups.size() << " more");
        CHECK_NOTHROW(as_user(who, [&] {
            for (const auto& [mode, lmr] : lmrs) {
                const auto allowed =
                    granted(who, mode, kAlice.gid) | (who.uid == kAlice.uid ? kM : 0);
                for (const std::uint32_t wanted :
                     {kR, kW, kA, kM, kR | kW, kR | kW | kA, kR | kW | kA | kM}) {
                    std::ostringstream what;
                    what << "mode " << std::oct << mode << ", map with rights " << wanted;
                    auto args = map_args(lmr.name(), wanted);
                    const auto e = (wanted & ~allowed) == 0 ? ok : err(EACCES);
                    expect_equal(dev(args), e, what.str());
                    if (e == ok)
                        expect_rights(dev, args.lh, wanted);
                }
            }
        }));
    }
}

TEST_CASE_METHOD(AbiRights, "rights: root may open what other users may not", "[rights]") {
    INFO(where.label);
    const AlicesLmr lmr(dev, 0000, where.nodes);
    const auto lh = dev.map(lmr.name(), LITE_RIGHTS_ALL);
    CHECK_NOTHROW(expect_rights(dev, lh, kR | kW | kA));
}

TEST_CASE_METHOD(AbiRights, "rights: only owner and root free by name", "[rights]") {
    INFO(where.label);
    const AlicesLmr lmr(dev, 0666, where.nodes);
    for (const Identity& who :
         {Identity{1001, 1000}, Identity{1001, 1001, {1000}}, Identity{65534, 65534}}) {
        INFO("uid " << who.uid);
        CHECK_NOTHROW(as_user(who, [&] {
            expect_equal(dev(free_args(lmr.name())), err(EPERM), "free by a stranger");
        }));
    }
    CHECK(dev.stat(lmr.name()).uid == kAlice.uid);
    CHECK_NOTHROW(as_user(kAlice, [&] { expect_equal(dev(free_args(lmr.name())), ok, "free"); }));
    const AlicesLmr second(dev, 0600, where.nodes);
    CHECK(dev(free_args(second.name())) == ok);
}

TEST_CASE_METHOD(AbiRights, "rights: the effective ids count, not the real ones", "[rights]") {
    INFO(where.label);
    const AlicesLmr lmr(dev, 0600, where.nodes);
    CHECK_NOTHROW(in_child([&] {
        // Real uid root, effective uid another user.
        expect(setresgid(0, 1001, 0) == 0 && setresuid(0, 1001, 0) == 0, "setresuid");
        expect_equal(dev(map_args(lmr.name(), kR)), err(EACCES), "as a stranger");
        expect_equal(dev(free_args(lmr.name())), err(EPERM), "free as a stranger");
        expect(setresuid(0, 0, 0) == 0 && setresuid(0, kAlice.uid, 0) == 0, "setresuid");
        expect_equal(dev(map_args(lmr.name(), kR)), ok, "as the owner");
    }));
}

TEST_CASE_METHOD(AbiRights, "rights: a handle keeps its rights when the process changes its user",
                 "[rights]") {
    INFO(where.label);
    const AlicesLmr lmr(dev, 0600, where.nodes);
    CHECK_NOTHROW(as_user(kAlice, [&] {
        // Rights are checked at opening, as for a file. So they also hold for a handle that another
        // user's process inherits.
        const auto lh = dev.map(lmr.name(), kR | kW | kA);
        expect_rights(dev, lh, kR | kW | kA);
    }));
    const auto lh = dev.map(lmr.name(), kR);
    CHECK_NOTHROW(as_user({1001, 1001}, [&] { expect_rights(dev, lh, kR); }));
}

TEST_CASE_METHOD(AbiRights, "rights: STAT tells owner, group and mode, and needs no right",
                 "[rights]") {
    INFO(where.label);
    const auto mode = GENERATE(as<std::uint32_t>{}, 0000, 0640, 0666);
    const AlicesLmr lmr(dev, mode, where.nodes);
    CHECK_NOTHROW(as_user({65534, 65534}, [&] {
        const auto info = dev.stat(lmr.name());
        expect_equal(info.uid, kAlice.uid, "uid");
        expect_equal(info.gid, kAlice.gid, "gid");
        expect_equal(info.mode, mode, "mode");
    }));
}

TEST_CASE_METHOD(AbiRights, "rights: a mode with other bits than 0666 is EINVAL", "[rights]") {
    const auto mode =
        GENERATE(as<std::uint32_t>{}, 0100, 0010, 0001, 0777, 01600, 02600, 04600, 0x80000600);
    auto args = alloc_args("", kLength, mode);
    set_nodes(args, where.nodes);
    INFO("mode " << std::oct << mode);
    CHECK(dev(args) == err(EINVAL));
}

TEST_CASE_METHOD(Abi, "rights: all users may open the device, which is not executable",
                 "[rights]") {
    struct stat status {};
    REQUIRE(::fstat(dev.fd(), &status) == 0);
    CHECK(S_ISCHR(status.st_mode));
    CHECK((status.st_mode & 0777) == 0666);
}
