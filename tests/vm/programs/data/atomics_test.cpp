// SPDX-License-Identifier: MIT
// Atomics are atomic towards each other from all nodes, the home included.
#include "fixture.hpp"

#include <algorithm>
#include <array>
#include <numeric>

using namespace lite_test;

namespace {

constexpr std::size_t kProcesses = 4;

// Runs @body(i, region) in several processes at once, over all nodes of this machine.
void at_once(const std::string& name, const std::function<void(std::size_t, lite::region&)>& body) {
    Shared<Signal> start;
    std::vector<Child> children;
    for (std::size_t i = 0; i < kProcesses; ++i) {
        children.emplace_back([&, i] {
            lite::context mine(index_for(i));
            auto region = mine.map(name, kAccess);
            start->wait("the start");
            body(i, region);
        });
    }
    for (std::size_t i = 0; i < kProcesses; ++i)
        start->post();
    for (auto& child : children)
        child.join();
}

}  // namespace

TEST_CASE_METHOD(DataEverywhere, "atomics: no fetch-add is lost, no old value comes twice",
                 "[atomics]") {
    INFO(where.label);
    const std::size_t each = env().scaled(1500, 50);
    const std::uint64_t length = 3 * kPage;
    // In the first and in the last word, which are on different nodes if the LMR is spread.
    const std::uint64_t offset = GENERATE(as<std::uint64_t>{}, 0, 3 * kPage - 8);
    NamedLmr lmr(dev, length, where.nodes);
    auto* const olds =
        static_cast<std::uint64_t*>(map_shared(kProcesses * each * sizeof(std::uint64_t)));
    REQUIRE_NOTHROW(at_once(lmr.name(), [&](std::size_t me, lite::region& region) {
        for (std::size_t i = 0; i < each; ++i)
            olds[me * each + i] = region.fetch_add(offset, 1);
    }));

    const std::span all(olds, kProcesses * each);
    for (std::size_t me = 0; me < kProcesses; ++me)
        CHECK(std::is_sorted(olds + me * each, olds + (me + 1) * each));
    std::sort(all.begin(), all.end());
    std::vector<std::uint64_t> wanted(all.size());
    std::iota(wanted.begin(), wanted.end(), 0);
    CHECK(std::equal(all.begin(), all.end(), wanted.begin()));
    unmap_shared(olds, all.size_bytes());
    CHECK(node.map(lmr.name(), kAccess).load<std::uint64_t>(offset) == kProcesses * each);
}

TEST_CASE_METHOD(DataEverywhere, "atomics: a lock made of compare-and-swap excludes", "[atomics]") {
    INFO(where.label);
    const std::size_t each = env().scaled(120, 10);
    constexpr std::uint64_t kLock = 0;
    constexpr std::uint64_t kCounter = 64;  // plain reads and writes, only safe with the lock
    NamedLmr lmr(dev, kPage, where.nodes);
    REQUIRE_NOTHROW(at_once(lmr.name(), [&](std::size_t me, lite::region& region) {
        for (std::size_t i = 0; i < each; ++i) {
            wait_until("the lock is free",
                       [&] { return region.compare_swap(kLock, 0, me + 1) == 0; });
            const auto now = region.load<std::uint64_t>(kCounter);
            region.store(kCounter, now + 1);
            expect_equal(region.compare_swap(kLock, me + 1, 0), me + 1, "owner at the release");
        }
    }));
    CHECK(node.map(lmr.name(), kAccess).load<std::uint64_t>(kCounter) == kProcesses * each);
}

TEST_CASE_METHOD(DataEverywhere, "atomics: fetch-add and compare-and-swap mix", "[atomics]") {
    INFO(where.label);
    const std::size_t each = env().scaled(400, 20);
    NamedLmr lmr(dev, kPage, where.nodes);
    REQUIRE_NOTHROW(at_once(lmr.name(), [&](std::size_t me, lite::region& region) {
        std::uint64_t guess = 0;
        for (std::size_t i = 0; i < each; ++i) {
            if (me % 2) {
                region.fetch_add(8, 1);
                continue;
            }
            while (!region.compare_exchange(8, guess, guess + 1)) {
            }
        }
    }));
    CHECK(node.map(lmr.name(), kAccess).load<std::uint64_t>(8) == kProcesses * each);
}

TEST_CASE_METHOD(DataEverywhere, "atomics: touch their eight bytes and no others", "[atomics]") {
    INFO(where.label);
    constexpr std::size_t kSize = 2 * kPage + 8;
    auto region = node.alloc({.length = kSize, .nodes = where.nodes});
    write_pattern(region, env().seed);
    auto model = make_pattern(kSize, env().seed);
    for (std::uint64_t offset = 0; offset + 8 <= kSize; offset += 8 * 37) {
        std::uint64_t word = 0;
        std::memcpy(&word, model.data() + offset, sizeof(word));
        CHECK(region.fetch_add(offset, ~0ULL) == word);
        CHECK(region.compare_swap(offset, word - 1, ~word) == word - 1);
        word = ~word;
        std::memcpy(model.data() + offset, &word, sizeof(word));
    }
    std::vector<std::byte> now(kSize);
    region.read(0, std::span(now));
    CHECK(compare(now, model, 0).empty());
}
