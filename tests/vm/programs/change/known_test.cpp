// SPDX-License-Identifier: MIT
// A node caches LMRs that it has opened by name: an open by name must find the LMR that has the
// name now, with the rights that this user has now.
#include "fixture.hpp"

using namespace lite_test;

namespace {

struct Known : Change {
    std::string name = unique_name("known");
    std::string other = unique_name("other");

    ~Known() {
        (void)dev(free_args(name));
        (void)dev(free_args(other));
    }
    void make(const std::string& as, std::uint64_t length, std::size_t home,
              std::uint32_t mode = 0600) const {
        dev.unmap(dev.alloc(length, std::vector{id(home)}, as, mode));
    }
    // Opens the LMR and closes it again, so that every node caches it.
    std::uint64_t length_at(std::size_t i, const std::string& of) const {
        auto args = map_args(of, kR);
        expect_equal(node(i)(args), ok, "map");
        node(i).unmap(args.lh);
        return args.length;
    }
};

}  // namespace

TEST_CASE_METHOD(Known, "known: an LMR that is freed and made anew is another one", "[rename]") {
    for (std::uint64_t round = 1; round <= env().scaled(20, 3); ++round) {
        INFO("round " << round);
        make(name, round * 1000, round);
        for (std::size_t i = 0; i < nodes.size(); ++i)
            REQUIRE(length_at(i, name) == round * 1000);
        const auto kept = node(round).map(name);
        node(round + 1).free(name);
        for (std::size_t i = 0; i < nodes.size(); ++i)
            CHECK(try_map_as(kRoot, node(i), name, kR) == err(ENOENT));
        node(round).unmap(kept);
    }
}

TEST_CASE_METHOD(Known, "known: two LMRs exchange their names", "[rename]") {
    make(name, 1000, 0);
    make(other, 2000, 1);
    const auto third = unique_name("third");
    for (std::uint64_t round = 0; round < env().scaled(20, 3); ++round) {
        INFO("round " << round);
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            CHECK(length_at(i, name) == (round % 2 ? 2000 : 1000));
            CHECK(length_at(i, other) == (round % 2 ? 1000 : 2000));
        }
        node(round).rename(name, third);
        node(round + 1).rename(other, name);
        node(round + 2).rename(third, other);
    }
}

TEST_CASE_METHOD(Known, "known: no user gets rights of another, or old rights", "[rename]") {
    make(name, 1000, 1);
    dev.grant(name, kAlice.uid, 0, kR);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        INFO("node " << i);
        CHECK(try_map_as(kAlice, node(i), name, kR) == ok);
        CHECK(try_map_as(kAlice, node(i), name, kR) == ok);
        CHECK(try_map_as(kAlice, node(i), name, kRWA) == err(EACCES));
        CHECK(try_map_as(kBob, node(i), name, kR) == err(EACCES));
        CHECK(try_map_as(kRoot, node(i), name, kRWA) == ok);
    }
    dev.grant(name, kAlice.uid, 0, kR | kW);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        CHECK(try_map_as(kAlice, node(i), name, kR | kW) == ok);
        CHECK(try_map_as(kAlice, node(i), name, kW) == ok);
    }
    dev.grant(name, kAlice.uid, 0, kW);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        CHECK(try_map_as(kAlice, node(i), name, kR) == err(EACCES));
        CHECK(try_map_as(kAlice, node(i), name, kW) == ok);
    }
    dev.grant(name, kAlice.uid, 0, 0);
    for (std::size_t i = 0; i < nodes.size(); ++i)
        CHECK(try_map_as(kAlice, node(i), name, kW) == err(EACCES));
}

TEST_CASE_METHOD(Known, "known: opened and closed while it gets another name", "[rename]") {
    make(name, 1000, 0);
    std::atomic<bool> done{false};
    Threads threads;
    // Under each name the LMR is found or not; if it is found, it can be read.
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        threads.start([&, i] {
            std::array<std::byte, 8> buf{};
            while (!done) {
                for (const auto& each : {name, other}) {
                    auto args = map_args(each, kR);
                    const auto e = node(i)(args);
                    if (e == err(ENOENT))
                        continue;
                    expect_equal(e, ok, "map");
                    expect_equal(node(i)(read_args(args.lh, 0, buf.data(), 8)), ok, "read");
                    node(i).unmap(args.lh);
                }
            }
        });
    }
    for (std::size_t round = 0; round < env().scaled(30, 5); ++round) {
        INFO("round " << round);
        const auto& from = round % 2 ? other : name;
        const auto& to = round % 2 ? name : other;
        node(round).rename(from, to);
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            CHECK(try_map_as(kRoot, node(i), from, kR) == err(ENOENT));
            CHECK(try_map_as(kRoot, node(i), to, kR) == ok);
        }
    }
    done = true;
    threads.join();
}
