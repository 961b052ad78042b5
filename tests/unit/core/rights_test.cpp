// SPDX-License-Identifier: MIT
#include "support.hpp"

#include <algorithm>
#include <memory>

using namespace lite_test;

namespace {

constexpr std::uint32_t kOwner = 1000;
constexpr std::uint32_t kGroup = 2000;

struct Bits {
    bool read;
    bool write;
};

// What POSIX.1-2017, 4.5 "File Access Permissions" says, put as a decision and not as shifts.
std::uint32_t oracle(bool root, bool owner, bool in_group, Bits user, Bits group, Bits other) {
    if (root)
        return LITE_RIGHTS_ALL;
    const Bits& bits = owner ? user : in_group ? group : other;
    std::uint32_t rights = owner ? LITE_RIGHT_MASTER : 0;
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
        cred.groups[2] = kOwner;  // a group with the number of the user is another thing
        for (unsigned number = 0; number < 64; ++number) {
            const auto user = bits_of(number), group = bits_of(number >> 2),
                       other = bits_of(number >> 4);
            const auto mode = mode_of(user, group, other);
            CAPTURE(root, owner, primary, supplementary, mode);
            CHECK(lite_rights_of(&cred, kOwner, kGroup, mode) ==
                  oracle(root, owner, primary || supplementary, user, group, other));
        }
    }
}

TEST_CASE("rights: execute, set-id and sticky bits give nothing") {
    const lite_cred stranger{1, 1, 0, {}};
    const lite_cred owner{kOwner, 1, 0, {}};
    const lite_cred member{1, kGroup, 0, {}};
    for (const std::uint32_t mode : {0111U, 07111U, ~0666U}) {
        CHECK(lite_rights_of(&stranger, kOwner, kGroup, mode) == 0);
        CHECK(lite_rights_of(&member, kOwner, kGroup, mode) == 0);
        CHECK(lite_rights_of(&owner, kOwner, kGroup, mode) == LITE_RIGHT_MASTER);
    }
}

TEST_CASE("rights: a supplementary group counts wherever it stands, and only within the count") {
    for (std::uint32_t at = 0; at < LITE_CRED_GROUPS; ++at) {
        lite_cred cred{1, 1, LITE_CRED_GROUPS, {}};
        cred.groups[at] = kGroup;
        CAPTURE(at);
        CHECK(lite_rights_of(&cred, kOwner, kGroup, 0040) == LITE_RIGHT_READ);
        cred.n_groups = at;
        CHECK(lite_rights_of(&cred, kOwner, kGroup, 0040) == 0);
        cred.n_groups = at + 1;
        CHECK(lite_rights_of(&cred, kOwner, kGroup, 0040) == LITE_RIGHT_READ);
    }
}

TEST_CASE("rights: a count of groups beyond the array is not believed") {
    // On the heap, so that the address sanitizer sees a read behind it.
    const auto cred = std::make_unique<lite_cred>();
    cred->uid = cred->gid = 1;
    std::fill(std::begin(cred->groups), std::end(cred->groups), 3U);
    for (const std::uint32_t n : {LITE_CRED_GROUPS + 1U, 0x80000000U, ~0U}) {
        cred->n_groups = n;
        CHECK(lite_rights_of(cred.get(), kOwner, kGroup, 0060) == 0);
    }
}

TEST_CASE("rights: an LMR of root belongs to root only") {
    const lite_cred stranger{1, 1, 0, {}};
    const lite_cred root{0, 1, 0, {}};
    CHECK(lite_rights_of(&stranger, 0, 0, 0600) == 0);
    CHECK(lite_rights_of(&root, 0, 0, 0000) == LITE_RIGHTS_ALL);
    // Being in group 0 is nothing special.
    const lite_cred wheel{1, 0, 0, {}};
    CHECK(lite_rights_of(&wheel, kOwner, kGroup, 0660) == 0);
}
