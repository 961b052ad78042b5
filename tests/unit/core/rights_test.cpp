// SPDX-License-Identifier: MIT
#include "support.hpp"

#include <algorithm>
#include <memory>
#include <vector>

using namespace lite_test;

namespace {

constexpr std::uint32_t kOwner = 1000;
constexpr std::uint32_t kGroup = 2000;

// Rights on this node, without grants, with root trusted.
std::uint32_t rights_of(const lite_cred* cred, std::uint32_t uid, std::uint32_t gid,
                        std::uint32_t mode) {
    const lite_acl acl{uid, gid, mode, 0, nullptr};
    return lite_rights_of(cred, 1, &acl, false);
}

// An LMR of kOwner, with grants to other users.
struct Shared {
    std::vector<lite_grant> grants;
    std::uint32_t mode = 0600;

    std::uint32_t rights(std::uint32_t uid, std::uint32_t node, bool squash = false) {
        const lite_cred cred{uid, 1, 0, {}};
        const auto list = acl();
        return lite_rights_of(&cred, node, &list, squash);
    }
    lite_acl acl() {
        return {kOwner, kGroup, mode, static_cast<std::uint32_t>(grants.size()), grants.data()};
    }
};

struct Bits {
    bool read;
    bool write;
};

// The rule of POSIX.1-2017, 4.5 "File Access Permissions", as decisions instead of shifts.
std::uint32_t oracle(bool root, bool owner, bool in_group, Bits user, Bits group, Bits other) {
    if (root)
        return LITE_RIGHTS_ALL;
    const Bits& bits = owner ? user : in_group ? group : other;
    std::uint32_t rights = owner ? LITE_RIGHT_MASTER | LITE_RIGHT_SHARE : 0;
    if (bits.read)
        rights |= LITE_RIGHT_READ;
    if (bits.write)
        rights |= LITE_RIGHT_WRITE | LITE_RIGHT_ATOMIC;
    return rights;
}

std::uint32_t mode_of(Bits user, Bits group, Bits other) {
    const auto octal = [](Bits b) { return (b.read ? 4U : 0U) | (b.write ? 2U : 0U); };
    return octal(user) << 6 | octal(group) << 3 | octal(other);
}

Bits bits_of(unsigned number) { return {(number & 1) != 0, (number & 2) != 0}; }

}  // namespace

TEST_CASE("rights: the whole truth table") {
    // Every class of caller against every mode.
    for (unsigned who = 0; who < 16; ++who) {
        const bool root = who & 1;
        const bool owner = who & 2;
        const bool primary = who & 4;
        const bool supplementary = who & 8;
        lite_cred cred{};
        cred.uid = root ? 0 : owner ? kOwner : 1;
        cred.gid = primary ? kGroup : 1;
        cred.n_groups = 3;
        cred.groups[0] = 7;
        cred.groups[1] = supplementary ? kGroup : 8;
        cred.groups[2] = kOwner;  // a group with the owner's number must not count
        for (unsigned number = 0; number < 64; ++number) {
            const auto user = bits_of(number), group = bits_of(number >> 2),
                       other = bits_of(number >> 4);
            const auto mode = mode_of(user, group, other);
            CAPTURE(root, owner, primary, supplementary, mode);
            CHECK(rights_of(&cred, kOwner, kGroup, mode) ==
                  oracle(root, owner, primary || supplementary, user, group, other));
        }
    }
}

TEST_CASE("rights: execute, set-id and sticky bits give nothing") {
    const lite_cred stranger{1, 1, 0, {}};
    const lite_cred owner{kOwner, 1, 0, {}};
    const lite_cred member{1, kGroup, 0, {}};
    for (const std::uint32_t mode : {0111U, 07111U, ~0666U}) {
        CHECK(rights_of(&stranger, kOwner, kGroup, mode) == 0);
        CHECK(rights_of(&member, kOwner, kGroup, mode) == 0);
        CHECK(rights_of(&owner, kOwner, kGroup, mode) == (LITE_RIGHT_MASTER | LITE_RIGHT_SHARE));
    }
}

TEST_CASE("rights: a supplementary group counts at every position within the count") {
    for (std::uint32_t at = 0; at < LITE_CRED_GROUPS; ++at) {
        lite_cred cred{1, 1, LITE_CRED_GROUPS, {}};
        cred.groups[at] = kGroup;
        CAPTURE(at);
        CHECK(rights_of(&cred, kOwner, kGroup, 0040) == LITE_RIGHT_READ);
        cred.n_groups = at;
        CHECK(rights_of(&cred, kOwner, kGroup, 0040) == 0);
        cred.n_groups = at + 1;
        CHECK(rights_of(&cred, kOwner, kGroup, 0040) == LITE_RIGHT_READ);
    }
}

TEST_CASE("rights: a caller with a full list of groups has only what group and others both have") {
    const lite_cred some{1, 1, LITE_CRED_GROUPS - 1, {}};
    const lite_cred full{1, 1, LITE_CRED_GROUPS, {}};

    // The list may be cut off, and the LMR's group, with fewer rights than others, missing from it.
    CHECK(rights_of(&some, kOwner, kGroup, 0604) == LITE_RIGHT_READ);
    CHECK(rights_of(&full, kOwner, kGroup, 0604) == 0);
    CHECK(rights_of(&full, kOwner, kGroup, 0644) == LITE_RIGHT_READ);
    CHECK(rights_of(&full, kOwner, kGroup, 0646) == LITE_RIGHT_READ);
    CHECK(rights_of(&full, kOwner, kGroup, 0660) == 0);
}

TEST_CASE("rights: a count of groups beyond the array is bounded") {
    // On the heap, so that the address sanitizer sees a read behind the array.
    const auto cred = std::make_unique<lite_cred>();
    cred->uid = cred->gid = 1;
    std::fill(std::begin(cred->groups), std::end(cred->groups), 3U);
    for (const std::uint32_t n : {LITE_CRED_GROUPS + 1U, 0x80000000U, ~0U}) {
        cred->n_groups = n;
        CHECK(rights_of(cred.get(), kOwner, kGroup, 0060) == 0);
    }
}

TEST_CASE("rights: an LMR of root belongs to root only") {
    const lite_cred stranger{1, 1, 0, {}};
    const lite_cred root{0, 1, 0, {}};
    CHECK(rights_of(&stranger, 0, 0, 0600) == 0);
    CHECK(rights_of(&root, 0, 0, 0000) == LITE_RIGHTS_ALL);
    // Group 0 gives no special rights.
    const lite_cred wheel{1, 0, 0, {}};
    CHECK(rights_of(&wheel, kOwner, kGroup, 0660) == 0);
}

TEST_CASE("rights: a grant is to one user, on one node or on all") {
    Shared lmr{{{5, 2, LITE_RIGHT_READ, 0},
                {5, 0, LITE_RIGHT_WRITE, 0},
                {6, 0, LITE_RIGHT_MASTER, 0},
                {kOwner, 3, LITE_RIGHT_ATOMIC, 0}}};
    CHECK(lmr.rights(5, 2) == (LITE_RIGHT_READ | LITE_RIGHT_WRITE));
    CHECK(lmr.rights(5, 1) == LITE_RIGHT_WRITE);
    // A master is not a reader.
    CHECK(lmr.rights(6, 9) == LITE_RIGHT_MASTER);
    CHECK(lmr.rights(7, 2) == 0);
    // A grant adds to the rights of the mode bits, also for the owner.
    lmr.mode = 0404;
    CHECK(lmr.rights(5, 1) == (LITE_RIGHT_READ | LITE_RIGHT_WRITE));
    CHECK(lmr.rights(kOwner, 3) ==
          (LITE_RIGHT_READ | LITE_RIGHT_ATOMIC | LITE_RIGHT_SHARE | LITE_RIGHT_MASTER));
    CHECK(lmr.rights(kOwner, 2) == (LITE_RIGHT_READ | LITE_RIGHT_SHARE | LITE_RIGHT_MASTER));
}

TEST_CASE("rights: squashed root has the rights of others, and its grants") {
    Shared lmr{{{0, 2, LITE_RIGHT_WRITE, 0}}, 0604};
    CHECK(lmr.rights(0, 2) == LITE_RIGHTS_ALL);
    CHECK(lmr.rights(0, 1, true) == LITE_RIGHT_READ);
    CHECK(lmr.rights(0, 2, true) == (LITE_RIGHT_READ | LITE_RIGHT_WRITE));
    // Squashing does not change other users.
    CHECK(lmr.rights(kOwner, 1, true) == lmr.rights(kOwner, 1, false));
    // Groups of a squashed root do not count.
    const lite_cred root{0, kGroup, 1, {kGroup}};
    lmr.mode = 0060;
    const auto acl = lmr.acl();
    CHECK(lite_rights_of(&root, 1, &acl, true) == 0);
}

TEST_CASE("rights: grants are found by user and node") {
    Shared lmr{{{5, 2, 1, 0}, {5, 0, 1, 0}, {6, 2, 1, 0}}};
    const auto acl = lmr.acl();
    CHECK(lite_grant_find(&acl, 5, 2) == 0);
    CHECK(lite_grant_find(&acl, 5, 0) == 1);
    CHECK(lite_grant_find(&acl, 6, 2) == 2);
    CHECK(lite_grant_find(&acl, 6, 0) == 3);
    CHECK(lite_grant_find(&acl, 2, 5) == 3);
}

TEST_CASE("rights: the grants that a caller may make") {
    constexpr std::uint32_t plain = LITE_RIGHT_READ | LITE_RIGHT_WRITE | LITE_RIGHT_ATOMIC;
    for (std::uint32_t own = 0; own <= LITE_RIGHTS_ALL; ++own)
        for (std::uint32_t old = 0; old <= LITE_RIGHTS_ALL; ++old)
            for (std::uint32_t now = 0; now <= LITE_RIGHTS_ALL; ++now) {
                bool expected = true;
                for (std::uint32_t bit = 1; bit <= LITE_RIGHT_MASTER; bit <<= 1) {
                    const bool was = old & bit, is = now & bit;
                    if (was && !is)
                        expected = false;  // only a master may revoke rights
                    if (is && !was && !(own & bit & plain))
                        expected = false;  // the granter lacks this right
                }
                expected = (expected && (own & LITE_RIGHT_SHARE)) || (own & LITE_RIGHT_MASTER);
                CAPTURE(own, old, now);
                REQUIRE(lite_grant_allowed(own, old, now) == expected);
            }
}
