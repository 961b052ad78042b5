// SPDX-License-Identifier: MIT
// Rights that are taken away: handles that are open lose them, on every node, before the call
// returns.
#include "fixture.hpp"

#include <unistd.h>

#include <functional>

using namespace lite_test;

namespace {

constexpr std::uint64_t kRevokedLength = 200000;

// The same LMR opened by the same user on each node of this machine.
struct Handles {
    Handles(const Change& change, const Identity& who, const std::string& name,
            std::uint32_t rights)
        : change_(change) {
        for (const auto& node : change.nodes)
            lhs_.push_back(map_as(who, node, name, rights));
    }

    void expect_each(std::uint32_t rights) const {
        for (std::size_t i = 0; i < lhs_.size(); ++i)
            expect_rights(change_.node(i), lhs_[i], rights);
    }

  private:
    const Change& change_;
    std::vector<std::uint64_t> lhs_;
};

// Processes that use an LMR as Bob without pause, on all nodes, until they are refused.
class Fire {
  public:
    // @gone is set when the right has certainly been taken away.
    struct State {
        std::atomic<bool> gone = false;
        Signal running;
    };

    Fire(const std::string& name, std::size_t users) {
        for (std::size_t i = 0; i < users; ++i)
            users_.emplace_back([&, i] { use(name, i); });
        for (std::size_t i = 0; i < users; ++i)
            state_->running.wait("the users");
    }

    void revoked() { state_->gone = true; }
    void join() {
        for (auto& user : users_)
            user.join();
    }

  private:
    void use(const std::string& name, std::size_t i) {
        const auto& indexes = env().indexes;
        become(kBob);
        const Device own(indexes[i % indexes.size()]);
        const auto lh = own.map(name, i % 4 == 3 ? kA : i % 2 ? kR : kW);
        std::vector<std::byte> poison(kRevokedLength, std::byte{0xff});
        for (bool first = true;; first = false) {
            const bool late = state_->gone;
            const auto e = i % 4 == 3   ? own(fetch_add_args(lh, 0, 1))
                           : i % 2      ? own(read_args(lh, 0, poison.data(), kRevokedLength))
                           : i % 4 == 0 ? own(write_args(lh, 0, poison.data(), kRevokedLength))
                                        : own(write_args(lh, 100, poison.data(), 64));
            expect(e == ok || e == err(EACCES), "an operation while rights are taken away");
            expect(!(late && e == ok), "an operation succeeded after the right was taken away");
            if (first) {
                expect_equal(e, ok, "the first operation");
                state_->running.post();
            }
            if (late)
                return;
        }
    }

    Shared<State> state_;
    std::vector<Child> users_;
};

}  // namespace

TEST_CASE_METHOD(ChangeEverywhere, "revocation: reaches open handles on every node",
                 "[revocation]") {
    INFO(where.label);
    NamedLmr lmr(dev, kRevokedLength, where.nodes, 0);
    dev.grant(lmr.name(), kBob.uid, 0, kRWA);
    dev.grant(lmr.name(), kCarol.uid, 0, kRWA);
    const Handles bobs(*this, kBob, lmr.name(), kRWA);
    const Handles bobs_reading(*this, kBob, lmr.name(), kR);
    const Handles carols(*this, kCarol, lmr.name(), kRWA);
    CHECK_NOTHROW(bobs.expect_each(kRWA));

    dev.grant(lmr.name(), kBob.uid, 0, kR | kA);
    CHECK_NOTHROW(bobs.expect_each(kR | kA));
    CHECK_NOTHROW(bobs_reading.expect_each(kR));
    CHECK_NOTHROW(carols.expect_each(kRWA));
    node(1).grant(lmr.name(), kBob.uid, 0, 0);
    CHECK_NOTHROW(bobs.expect_each(0));
    CHECK_NOTHROW(bobs_reading.expect_each(0));
    CHECK_NOTHROW(carols.expect_each(kRWA));
    CHECK_NOTHROW(expect_rights(dev, lmr.lh(), kRWA));
}

TEST_CASE_METHOD(ChangeSingle, "revocation: of one node's grant leaves the others' handles",
                 "[revocation]") {
    INFO(where.label);
    NamedLmr lmr(dev, kRevokedLength, where.nodes, 0);
    std::vector<std::uint64_t> lhs;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        dev.grant(lmr.name(), kBob.uid, id(i), kRWA);
        lhs.push_back(map_as(kBob, node(i), lmr.name(), kRWA));
    }
    for (std::size_t gone = 0; gone < nodes.size(); ++gone) {
        dev.grant(lmr.name(), kBob.uid, id(gone), 0);
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            INFO("node " << i << " after node " << gone << " has lost it");
            CHECK_NOTHROW(expect_rights(node(i), lhs[i], i <= gone ? 0 : kRWA));
        }
    }
}

TEST_CASE_METHOD(ChangeSingle, "revocation: by mode, group and owner", "[revocation]") {
    INFO(where.label);
    const auto name = unique_name("attributes");
    REQUIRE_NOTHROW(
        as_user(kAlice, [&] { dev.unmap(dev.alloc(kRevokedLength, where.nodes, name, 0666)); }));
    const Identity fellow{1001, 77, {kAlice.gid}};
    const Handles owner(*this, kAlice, name, kRWA);
    const Handles group(*this, fellow, name, kRWA);
    const Handles others(*this, kCarol, name, kRWA);

    dev.chmod(name, 0664);
    CHECK_NOTHROW(others.expect_each(kR));
    CHECK_NOTHROW(group.expect_each(kRWA));
    dev.chmod(name, 0620);
    CHECK_NOTHROW(others.expect_each(0));
    CHECK_NOTHROW(group.expect_each(kW | kA));
    CHECK_NOTHROW(owner.expect_each(kRWA));
    // The group changes, so its former member is only one of the others.
    CHECK(dev(setattr_args(name, LITE_KEEP, 4711, LITE_KEEP)) == ok);
    CHECK_NOTHROW(group.expect_each(0));
    CHECK_NOTHROW(owner.expect_each(kRWA));
    dev.chmod(name, 0400);
    CHECK_NOTHROW(owner.expect_each(kR));
    // The owner changes, and the former owner is no master any more.
    const auto master = map_as(kAlice, dev, name, kR | kM);
    CHECK(dev(setattr_args(name, kBob.uid, LITE_KEEP, LITE_KEEP)) == ok);
    CHECK_NOTHROW(owner.expect_each(0));
    CHECK(is_refusal(call_as(kAlice, [&] { return dev(free_args(master)); })));
    CHECK(call_as(kAlice, [&] { return dev(free_args(name)); }) == err(EPERM));
    CHECK(call_as(kBob, [&] { return node(1)(free_args(name)); }) == ok);
}

TEST_CASE_METHOD(ChangeSingle, "revocation: a handle that lost everything can be closed",
                 "[revocation]") {
    INFO(where.label);
    NamedLmr lmr(dev, kRevokedLength, where.nodes, 0);
    dev.grant(lmr.name(), kBob.uid, 0, kR);
    const auto lh = map_as(kBob, node(1), lmr.name(), kR);
    dev.grant(lmr.name(), kBob.uid, 0, 0);
    CHECK(node(1)(stat_args(lh)) == ok);
    CHECK(node(1)(unmap_args(lh)) == ok);
    // The user can open the LMR anew after a new grant, but the old handle stays closed.
    dev.grant(lmr.name(), kBob.uid, 0, kR | kW);
    const auto again = map_as(kBob, node(1), lmr.name(), kR | kW);
    CHECK_NOTHROW(expect_rights(node(1), again, kR | kW));
    CHECK(node(1)(unmap_args(lh)) == err(EBADF));
}

TEST_CASE_METHOD(ChangeSomewhere, "revocation: under fire", "[revocation]") {
    INFO(where.label);
    for (std::size_t round = 0; round < env().scaled(12, 3); ++round) {
        NamedLmr lmr(dev, kRevokedLength, where.nodes, 0);
        dev.grant(lmr.name(), kBob.uid, 0, kRWA);
        Fire fire(lmr.name(), 6);
        if (round % 3 == 2)
            node(round).grant(lmr.name(), kBob.uid, 0, kM | kS);
        else
            node(round).grant(lmr.name(), kBob.uid, 0, 0);
        // From here on only this process writes.
        std::vector<std::byte> back(kRevokedLength);
        const auto data = make_pattern(kRevokedLength, round);
        dev.write(lmr.lh(), 0, data);
        fire.revoked();
        for (int look = 0; look < 3; ++look) {
            dev.read(lmr.lh(), 0, back);
            REQUIRE(find_mismatch(back, round) == std::nullopt);
        }
        REQUIRE_NOTHROW(fire.join());
        dev.read(lmr.lh(), 0, back);
        REQUIRE(find_mismatch(back, round) == std::nullopt);
    }
}

TEST_CASE_METHOD(ChangeSomewhere, "revocation: under fire, by mode", "[revocation]") {
    INFO(where.label);
    for (std::size_t round = 0; round < env().scaled(6, 2); ++round) {
        NamedLmr lmr(dev, kRevokedLength, where.nodes, 0666);
        Fire fire(lmr.name(), 6);
        node(round).chmod(lmr.name(), 0600);
        fire.revoked();
        REQUIRE_NOTHROW(fire.join());
    }
}

TEST_CASE_METHOD(ChangeSingle, "revocation: grants and revocations of many at once",
                 "[revocation]") {
    INFO(where.label);
    NamedLmr lmr(dev, kRevokedLength, where.nodes, 0);
    std::vector<Child> people;
    // Each process grants to and revokes from a user of its own, and finds exactly that.
    for (std::size_t i = 0; i < 4; ++i) {
        people.emplace_back([&, i] {
            const Device own(env().indexes[i % env().indexes.size()]);
            const auto uid = static_cast<std::uint32_t>(3000 + i);
            for (std::size_t round = 0; round < env().scaled(20, 3); ++round) {
                own.grant(lmr.name(), uid, 0, kRWA);
                const auto lh = map_as({uid, uid}, own, lmr.name(), kRWA);
                expect_rights(own, lh, kRWA);
                own.grant(lmr.name(), uid, 0, round % 2 ? kR : 0);
                expect_rights(own, lh, round % 2 ? kR : 0);
                own.unmap(lh);
            }
        });
    }
    for (auto& person : people)
        REQUIRE_NOTHROW(person.join());
}
