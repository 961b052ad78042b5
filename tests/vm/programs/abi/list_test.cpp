// SPDX-License-Identifier: MIT
// STAT and LIST.
#include "fixture.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

using namespace lite_test;

namespace {

// The LMRs of one test, at all nodes of the cluster.
struct AbiList : Abi {
    std::vector<std::unique_ptr<NamedLmr>> lmrs;

    void make(std::size_t count) {
        const auto places = env().placements();
        for (std::size_t i = 0; i < count; ++i)
            lmrs.push_back(
                std::make_unique<NamedLmr>(dev, kPage + i, places[i % places.size()].nodes));
    }

    bool mine(const lite_lmr_info& info) const {
        return std::any_of(lmrs.begin(), lmrs.end(),
                           [&](const auto& l) { return l->name() == info.name; });
    }
};

}  // namespace

TEST_CASE_METHOD(AbiEverywhere, "stat: describes the LMR, by name and by handle", "[stat]") {
    INFO(where.label);
    NamedLmr lmr(dev, kLength, where.nodes, 0640);
    std::vector<std::uint32_t> nodes(LITE_SPREAD_MAX, 0xdeadbeef);
    auto by_name = stat_args(lmr.name());
    auto by_handle = stat_args(lmr.lh());
    for (auto* args : {&by_name, &by_handle}) {
        args->nodes = reinterpret_cast<std::uintptr_t>(nodes.data());
        args->n_nodes = LITE_SPREAD_MAX;
        REQUIRE(dev(*args) == ok);
        CHECK(args->info.name == lmr.name());
        CHECK(args->info.length == kLength);
        CHECK(args->info.home == where.nodes.front());
        CHECK(args->info.uid == 0);
        CHECK(args->info.gid == 0);
        CHECK(args->info.mode == 0640);
        CHECK(args->info.n_nodes == where.nodes.size());
        CHECK(args->info.n_extents >= where.nodes.size());
        CHECK(args->info.n_mappers >= 1);
        CHECK(args->info.reserved == 0);
        REQUIRE(args->n_nodes == where.nodes.size());
        CHECK(std::equal(where.nodes.begin(), where.nodes.end(), nodes.begin()));
    }
    CHECK(by_name.info.id == by_handle.info.id);
}

TEST_CASE_METHOD(AbiWithLmr, "stat: an anonymous LMR has no name", "[stat]") {
    auto args = stat_args(lh);
    REQUIRE(dev(args) == ok);
    CHECK(args.info.name == std::string());
    CHECK(args.info.length == kLength);
    CHECK(args.info.home == env().self);
}

TEST_CASE_METHOD(AbiEverywhere, "stat: stores only as many nodes as there is room for", "[stat]") {
    INFO(where.label);
    const std::uint32_t room = GENERATE(0U, 1U, 2U);
    std::array<std::uint32_t, 4> nodes{7, 7, 7, 7};
    auto args = stat_args(lh);
    args.nodes = room ? reinterpret_cast<std::uintptr_t>(nodes.data()) : 0;
    args.n_nodes = room;
    REQUIRE(dev(args) == ok);
    CHECK(args.n_nodes == where.nodes.size());
    const auto stored = std::min<std::size_t>(room, where.nodes.size());
    CHECK(std::equal(nodes.begin(), nodes.begin() + stored, where.nodes.begin()));
    CHECK(std::all_of(nodes.begin() + stored, nodes.end(), [](auto n) { return n == 7; }));
}

TEST_CASE_METHOD(AbiWithLmr, "stat: an array for nodes that is not mapped is EFAULT", "[stat]") {
    auto args = stat_args(lh);
    args.n_nodes = 1;
    args.nodes = reinterpret_cast<std::uintptr_t>(unmapped_address(kPage));
    CHECK(dev(args) == err(EFAULT));
}

TEST_CASE_METHOD(AbiWithLmr, "stat: room for more nodes than there can be is no harm", "[stat]") {
    auto args = stat_args(lh);
    std::array<std::uint32_t, LITE_SPREAD_MAX> nodes{};
    args.nodes = reinterpret_cast<std::uintptr_t>(nodes.data());
    args.n_nodes = GENERATE(as<std::uint32_t>{}, LITE_SPREAD_MAX, 0x40000000U, 0xffffffffU);
    const auto e = dev(args);
    CHECK((e == ok || e == err(EINVAL)));
    if (e == ok)
        CHECK(args.n_nodes == 1);
}

TEST_CASE_METHOD(AbiList, "list: names every LMR once, whatever the room", "[list]") {
    make(11);
    const std::uint32_t room = GENERATE(1U, 2U, 3U, 64U, 1000U);
    INFO("room for " << room);
    std::multiset<std::string> names;
    for (const auto& info : dev.list(room)) {
        if (mine(info))
            names.insert(info.name);
    }
    CHECK(names.size() == lmrs.size());
    for (const auto& lmr : lmrs)
        CHECK(names.count(lmr->name()) == 1);
}

TEST_CASE_METHOD(AbiList, "list: is in order of home and id, and agrees with STAT", "[list]") {
    make(7);
    const auto all = dev.list();
    CHECK(std::is_sorted(all.begin(), all.end(), [](const auto& a, const auto& b) {
        return std::pair(a.home, a.id) < std::pair(b.home, b.id);
    }));
    for (const auto& info : all) {
        if (!mine(info))
            continue;
        const auto stat = dev.stat(info.name);
        CHECK(stat.id == info.id);
        CHECK(stat.home == info.home);
        CHECK(stat.length == info.length);
        CHECK(stat.mode == info.mode);
        CHECK(stat.n_nodes == info.n_nodes);
    }
}

TEST_CASE_METHOD(AbiList, "list: goes on when LMRs come and go in the middle", "[list]") {
    make(9);
    std::array<lite_lmr_info, 2> some{};
    auto first = list_args(some);
    REQUIRE(dev(first) == ok);
    REQUIRE(first.cursor != 0);
    const std::string freed = lmrs.back()->name();
    lmrs.pop_back();
    make(3);

    std::set<std::string> seen;
    for (const auto& info : std::span(some).first(first.n_infos))
        seen.insert(info.name);
    std::uint64_t cursor = first.cursor;
    for (int rounds = 0; cursor != 0; ++rounds) {
        REQUIRE(rounds < 1000);
        auto args = list_args(some, cursor);
        REQUIRE(dev(args) == ok);
        for (const auto& info : std::span(some).first(args.n_infos)) {
            const bool again = !seen.insert(info.name).second && info.name[0] != '\0';
            CHECK_FALSE(again);
        }
        cursor = args.cursor;
    }
    for (std::size_t i = 0; i < 8; ++i)
        CHECK(seen.count(lmrs[i]->name()) == 1);
}

TEST_CASE_METHOD(AbiList, "list: room for none is EINVAL", "[list]") {
    std::array<lite_lmr_info, 1> infos{};
    auto args = list_args(infos);
    args.n_infos = 0;
    CHECK(dev(args) == err(EINVAL));
}

TEST_CASE_METHOD(AbiList, "list: a wrong size of an entry is EINVAL", "[list]") {
    std::array<lite_lmr_info, 1> infos{};
    auto args = list_args(infos);
    args.info_size = GENERATE(0U, 1U, 8U, static_cast<std::uint32_t>(sizeof(lite_lmr_info)) - 8);
    CHECK(dev(args) == err(EINVAL));
}

TEST_CASE_METHOD(AbiList, "list: a program that knows more of an entry gets zeroes there",
                 "[list]") {
    struct Later {
        lite_lmr_info info;
        std::uint64_t unknown[2];
    };
    make(2);
    std::array<Later, 2> entries{};
    for (auto& entry : entries)
        entry.unknown[0] = entry.unknown[1] = ~0ULL;
    std::array<lite_lmr_info, 2> none{};
    auto args = list_args(none);
    args.infos = reinterpret_cast<std::uintptr_t>(entries.data());
    args.info_size = sizeof(Later);
    REQUIRE(dev(args) == ok);
    REQUIRE(args.n_infos == 2);
    for (const auto& entry : entries) {
        CHECK(entry.info.length != 0);
        CHECK(entry.unknown[0] == 0);
        CHECK(entry.unknown[1] == 0);
    }
}

TEST_CASE_METHOD(AbiList, "list: an array that is not mapped is EFAULT", "[list]") {
    make(1);
    std::array<lite_lmr_info, 1> infos{};
    auto args = list_args(infos);
    for (void* bad : {static_cast<void*>(nullptr), static_cast<void*>(unmapped_address(kPage)),
                      reinterpret_cast<void*>(0xffff888000001000)}) {
        args.infos = reinterpret_cast<std::uintptr_t>(bad);
        CHECK(dev(args) == err(EFAULT));
    }
}

TEST_CASE_METHOD(AbiList, "list: never writes more entries than there are", "[list]") {
    make(1);
    // The call claims more room than the buffer has; the buffer has more room than there are LMRs.
    const auto live = dev.list().size();
    GuardedBuffer guarded((live + 1) * sizeof(lite_lmr_info));
    auto args = list_args({reinterpret_cast<lite_lmr_info*>(guarded.data()), live + 1});
    args.n_infos = GENERATE(1000000U, 0x10000000U, 0xffffffffU);
    const auto e = dev(args);
    CHECK((e == ok || e == err(EINVAL)));
    if (e == ok)
        CHECK(args.n_infos <= live);
}

TEST_CASE_METHOD(AbiList, "list: an invalid cursor does no harm", "[list]") {
    make(2);
    std::array<lite_lmr_info, 4> infos{};
    auto args =
        list_args(infos, GENERATE(as<std::uint64_t>{}, 1, 0xffff, 1ULL << 48, 1ULL << 63, ~0ULL));
    const auto e = dev(args);
    CHECK((e == ok || e == err(EINVAL)));
}
