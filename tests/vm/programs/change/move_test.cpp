// SPDX-License-Identifier: MIT
// Memory that moves between nodes while it is in use.
#include "fixture.hpp"

#include <signal.h>
#include <unistd.h>

using namespace lite_test;

namespace {

constexpr std::uint64_t kMovedLength = 75 * kPage + 100;

struct Move : ChangeEverywhere {
    NamedLmr lmr{dev, kMovedLength, where.nodes, 0666};

    std::vector<std::uint32_t> members() const {
        std::vector<std::uint32_t> all{env().self};
        all.insert(all.end(), env().remote.begin(), env().remote.end());
        return all;
    }

    // Every node reads the pattern through a handle that was opened before.
    void check(const std::vector<std::uint64_t>& lhs, std::uint64_t seed) const {
        std::vector<std::byte> back(kMovedLength);
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            node(i).read(lhs[i], 0, back);
            CHECK(find_mismatch(back, seed) == std::nullopt);
        }
        if (all_here())
            CHECK(used() == whole_pages(kMovedLength));
    }

    std::vector<std::uint64_t> map_everywhere() const {
        std::vector<std::uint64_t> lhs;
        for (const auto& each : nodes)
            lhs.push_back(each.map(lmr.name()));
        return lhs;
    }

    bool is_at(std::uint32_t node) const {
        const auto places = dev.places(lmr.name());
        return std::find(places.begin(), places.end(), node) != places.end();
    }
};

}  // namespace

TEST_CASE_METHOD(Move, "move: all of it, to every node and back", "[move]") {
    INFO(where.label);
    const auto home = dev.stat(lmr.name()).home;
    const auto lhs = map_everywhere();
    dev.write(lmr.lh(), 0, make_pattern(kMovedLength, 3));
    for (const auto to : members()) {
        INFO("to node " << to);
        auto args = move_args(lmr.name(), to);
        CHECK(node(to)(args) == ok);
        CHECK(args.moved >= kMovedLength);
        CHECK(dev.places(lmr.name()) == std::vector{to});
        CHECK(dev.stat(lmr.name()).home == home);
        check(lhs, 3);
        // Moving to where the memory is already.
        args = move_args(lmr.lh(), to);
        CHECK(dev(args) == ok);
        CHECK(args.moved >= kMovedLength);
        CHECK(dev.places(lmr.name()) == std::vector{to});
        check(lhs, 3);
    }
    // 0 means the caller's own node.
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        node(i).move(lmr.name(), 0);
        CHECK(dev.places(lmr.name()) == std::vector{id(i)});
    }
    check(lhs, 3);
}

TEST_CASE_METHOD(Move, "move: the memory is counted where it is", "[move]") {
    INFO(where.label);
    if (!all_here() || nodes.size() < 2)
        return;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        dev.move(lmr.name(), id(i));
        for (std::size_t other = 0; other < nodes.size(); ++other)
            CHECK(node(other).query().mem_used == (other == i ? whole_pages(kMovedLength) : 0));
    }
}

TEST_CASE_METHOD(Move, "move: parts of it, rounded to pages", "[move]") {
    INFO(where.label);
    const auto lhs = map_everywhere();
    dev.write(lmr.lh(), 0, make_pattern(kMovedLength, 4));
    const auto all = members();
    std::mt19937_64 random(env().seed);
    for (std::size_t round = 0; round < env().scaled(30, 6); ++round) {
        const auto to = all[random() % all.size()];
        const auto offset = random() % kMovedLength;
        const auto length = 1 + random() % (kMovedLength - offset);
        INFO("round " << round << ": " << length << " at " << offset << " to node " << to);
        auto args = move_args(lmr.name(), to, offset, length);
        CHECK(node(round)(args) == ok);
        CHECK(args.moved >= length);
        CHECK(is_at(to));
        check(lhs, 4);
    }
    // Without a length, to the end.
    dev.move(lmr.name(), all[0]);
    dev.move(lmr.name(), all.back(), 10 * kPage);
    CHECK(dev.places(lmr.name()).size() == (all.size() > 1 ? 2 : 1));
    check(lhs, 4);
    // Moving one byte moves its whole page.
    dev.move(lmr.name(), all[0]);
    dev.move(lmr.name(), all.back(), 5 * kPage + 17, 1);
    CHECK(is_at(all.back()));
    dev.move(lmr.name(), all[0], 5 * kPage, kPage);
    CHECK(dev.places(lmr.name()) == std::vector{all[0]});
    check(lhs, 4);
}

TEST_CASE_METHOD(Move, "move: refused moves change nothing", "[move]") {
    INFO(where.label);
    const auto lhs = map_everywhere();
    const auto before = dev.places(lmr.name());
    dev.write(lmr.lh(), 0, make_pattern(kMovedLength, 5));
    CHECK(dev(move_args(lmr.name(), 60000)) == err(EHOSTUNREACH));
    // Moves are in pages, and the last page is not full.
    constexpr auto end = whole_pages(kMovedLength);
    CHECK(dev(move_args(lmr.name(), env().self, end)) == err(ERANGE));
    CHECK(dev(move_args(lmr.name(), env().self, end, 1)) == err(ERANGE));
    CHECK(dev(move_args(lmr.name(), env().self, 0, end + 1)) == err(ERANGE));
    CHECK(dev(move_args(lmr.name(), env().self, end - 1, 2)) == err(ERANGE));
    CHECK(dev(move_args(lmr.name(), env().self, UINT64_MAX, 1)) == err(ERANGE));
    CHECK(dev(move_args(lmr.name(), env().self, 1, UINT64_MAX)) == err(ERANGE));
    CHECK(dev(move_args(lmr.lh(), 60000)) == err(EHOSTUNREACH));
    CHECK(dev(move_args(lmr.lh(), LITE_NODE_ID_MAX + 1)) == err(EINVAL));
    CHECK(call_as(kBob, [&] { return dev(move_args(lmr.name(), 0)); }) == err(EPERM));
    const auto bobs = map_as(kBob, dev, lmr.name(), kRWA);
    CHECK(is_refusal(call_as(kBob, [&] { return dev(move_args(bobs, 0)); })));
    CHECK(dev(move_args(std::string_view("no-such-lmr"), 0)) == err(ENOENT));
    CHECK(dev(move_args(std::uint64_t{12345}, 0)) == err(EBADF));
    CHECK(dev.places(lmr.name()) == before);
    check(lhs, 5);
    const auto lh = dev.map(lmr.name(), kM);
    dev.free(lmr.lh());
    CHECK(dev(move_args(lh, 0)) == err(EIDRM));
}

TEST_CASE_METHOD(Move, "move: and resize, and write again", "[move]") {
    INFO(where.label);
    const auto lhs = map_everywhere();
    const auto all = members();
    for (std::size_t round = 0; round < env().scaled(12, 3); ++round) {
        node(round).move(lmr.name(), all[round % all.size()], round * kPage, 20 * kPage);
        node(round + 1).resize(lmr.name(), kMovedLength / 2 + round);
        node(round + 2).resize(lmr.name(), kMovedLength);
        node(round).write(lhs[round % lhs.size()], 0, make_pattern(kMovedLength, round));
        check(lhs, round);
    }
}

TEST_CASE_METHOD(ChangeSomewhere, "move: while it is used by all nodes", "[move]") {
    INFO(where.label);
    const auto plan = slots_for(6, 60 * kPage);
    NamedLmr lmr(dev, plan.length, where.nodes, 0666);
    SlotUsers users(lmr.name(), plan);
    users.await_start();
    std::vector<std::uint32_t> all{env().self};
    all.insert(all.end(), env().remote.begin(), env().remote.end());
    std::mt19937_64 random(env().seed);
    for (std::size_t round = 0; round < env().scaled(30, 10); ++round) {
        const auto to = all[random() % all.size()];
        const auto offset = round % 3 ? random() % plan.length : 0;
        node(round).move(lmr.name(), to, offset,
                         round % 3 ? 1 + random() % (plan.length - offset) : 0);
    }
    std::uint64_t counted = 0;
    REQUIRE_NOTHROW(counted = users.stop());
    CHECK(dev.fetch_add(lmr.lh(), SlotUser::kCounterAt, 0) == counted);
    if (all_here())
        CHECK(used() == whole_pages(plan.length));
}

TEST_CASE_METHOD(ChangeSomewhere, "move: and free at once", "[move]") {
    INFO(where.label);
    for (std::size_t round = 0; round < env().scaled(20, 4); ++round) {
        const auto name = unique_name("gone");
        dev.unmap(dev.alloc(kMovedLength, where.nodes, name));
        const auto lh = node(round).map(name, kRWA | kM);
        Errno moved, freed;
        Threads threads;
        threads.start([&] { moved = node(round)(move_args(lh, id(round + 1))); });
        threads.start([&] { freed = node(round + 2)(free_args(name)); });
        threads.join();
        CHECK(freed == ok);
        CHECK((moved == ok || moved == err(EIDRM) || moved == err(ENOENT)));
        CHECK(node(round)(fetch_add_args(lh, 0, 1)) == err(EIDRM));
        node(round).unmap(lh);
        for (const auto& each : nodes)
            REQUIRE_NOTHROW(wait_until_unused(each));
    }
}

TEST_CASE_METHOD(ChangeEverywhere, "move: several moves and resizes at once", "[move]") {
    INFO(where.label);
    // What is moved is never cut off.
    constexpr std::uint64_t kept = 70 * kPage + 1;
    NamedLmr lmr(dev, kMovedLength, where.nodes, 0666);
    dev.write(lmr.lh(), 0, make_pattern(kMovedLength, 8));
    Threads threads;
    for (std::size_t i = 0; i < 3; ++i) {
        threads.start([&, i] {
            for (std::size_t round = 0; round < env().scaled(8, 2); ++round) {
                node(i).move(lmr.name(), id(i + round), i * 20 * kPage, 30 * kPage);
                if (i == 2) {
                    node(i).resize(lmr.name(), kMovedLength + round * 5000);
                    node(i + 1).resize(lmr.name(), kept);
                }
            }
        });
    }
    REQUIRE_NOTHROW(threads.join());
    dev.resize(lmr.name(), kMovedLength);
    std::vector<std::byte> back(kMovedLength);
    dev.read(lmr.lh(), 0, back);
    CHECK(find_mismatch(std::span(back).first(kept), 8) == std::nullopt);
    CHECK(all_are(std::span(back).subspan(kept), std::byte{}));
    if (all_here())
        CHECK(used() == whole_pages(kMovedLength));
}

TEST_CASE_METHOD(ChangeSomewhere, "move: parts that are cut off between its steps do no harm",
                 "[move]") {
    INFO(where.label);
    // Long enough for several parts, each of which is a step.
    constexpr std::uint64_t part = 4 << 20;
    NamedLmr lmr(dev, 3 * part, where.nodes, 0666);
    Threads threads;
    threads.start([&] {
        for (std::size_t round = 0; round < env().scaled(8, 2); ++round)
            node(round).move(lmr.name(), id(round + 1));
    });
    threads.start([&] {
        for (std::size_t round = 0; round < env().scaled(16, 4); ++round)
            node(round).resize(lmr.name(), round % 2 ? 3 * part : part + kPage);
    });
    REQUIRE_NOTHROW(threads.join());
}

TEST_CASE_METHOD(ChangeSomewhere, "move: by name, of one LMR, even if another gets the name",
                 "[move]") {
    INFO(where.label);
    if (!all_here() || nodes.size() < 2)
        return;
    constexpr std::uint64_t pages = 64;
    NamedLmr lmr(dev, pages * kPage, where.nodes), other(dev, pages * kPage, where.nodes);
    const std::string away = lmr.name() + "-away";
    const auto was = dev.places(other.name());
    // Each page is a part, and each second one a step.
    dev.move(lmr.name(), id(0));
    for (std::uint64_t page = 0; page < pages; page += 2)
        dev.move(lmr.name(), id(1), page * kPage, kPage);
    const auto before = node(1).query().mem_used;
    Threads threads;
    threads.start([&] { node(0).move(lmr.name(), id(1)); });
    threads.start([&] {
        wait_until("it has begun", [&] { return node(1).query().mem_used > before; });
        node(1).rename(lmr.name(), away);
        node(1).rename(other.name(), lmr.name());
    });
    REQUIRE_NOTHROW(threads.join());
    CHECK(dev.places(away) == std::vector{id(1)});
    CHECK(dev.places(lmr.name()) == was);
    dev.rename(lmr.name(), other.name());
    dev.rename(away, lmr.name());
}

TEST_CASE_METHOD(ChangeSomewhere, "move: the mover may be killed", "[move]") {
    INFO(where.label);
    constexpr std::uint64_t length = 2 << 20;  // more than is in flight at once
    NamedLmr lmr(dev, length, where.nodes, 0666);
    std::vector<std::byte> back(length);
    for (std::size_t round = 0; round < env().scaled(8, 2); ++round) {
        const auto data = make_pattern(length, round);
        dev.write(lmr.lh(), 0, data);
        Shared<std::atomic<int>> rounds;
        Child mover([&] {
            const Device own(env().indexes[round % env().indexes.size()]);
            for (std::size_t i = 0;; ++i, ++*rounds)
                own.move(lmr.name(), id(i));
        });
        REQUIRE_NOTHROW(wait_until("it is at it", [&] { return *rounds >= 1; }));
        mover.kill(SIGKILL);
        CHECK(mover.wait() == "killed by signal Killed");
        dev.read(lmr.lh(), 0, back);
        CHECK(find_mismatch(back, round) == std::nullopt);
        node(round).move(lmr.name(), id(round));
        CHECK(dev.places(lmr.name()) == std::vector{id(round)});
    }
}
