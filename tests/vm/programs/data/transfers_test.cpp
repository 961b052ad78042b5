// SPDX-License-Identifier: MIT
// What is written can be read: random transfers, all sizes, many processes and threads at once.
// Another process checks the results through another node.
#include "fixture.hpp"

#include <algorithm>
#include <random>

using namespace lite_test;

namespace {

// Not a multiple of anything. With three nodes, the seams do not lie on round numbers of pages.
constexpr std::uint64_t kLength = (20 << 20) + 12345;

void check_elsewhere(const std::string& name,
                     const std::function<void(const lite::region&)>& check) {
    in_child([&] {
        lite::context other(other_index());
        check(other.map(name, lite::rights::read));
    });
}

// Many small transfers, or a few of up to 16 MB: each size class gets its share without moving
// gigabytes.
Plan plan_for(const Placement& where, bool large) {
    Plan plan;
    plan.seed = env().seed + large;
    plan.lmr_length = kLength;
    plan.max_length = large ? env().scaled(16 << 20, 64 << 10) : 64 << 10;
    plan.n_nodes = static_cast<std::uint32_t>(where.nodes.size());
    plan.count = large ? 12 : env().scaled(250, 30);
    return plan;
}

}  // namespace

TEST_CASE_METHOD(DataEverywhere, "transfers: random transfers agree with the model",
                 "[transfers]") {
    INFO(where.label);
    NamedLmr lmr(dev, kLength, where.nodes);
    auto region = node.map(lmr.name(), kAccess);
    for (const bool large : {false, true}) {
        const auto plan = plan_for(where, large);
        if (large)
            region.write(0, std::vector<std::byte>(kLength));  // the model starts from zeroes
        REQUIRE_NOTHROW(carry_out(region, plan));
        REQUIRE_NOTHROW(
            check_elsewhere(lmr.name(), [&](const auto& r) { check_outcome(r, plan); }));
    }
}

TEST_CASE_METHOD(DataEverywhere, "transfers: sizes around every threshold", "[transfers]") {
    INFO(where.label);
    NamedLmr lmr(dev, 9 << 20, where.nodes);
    auto region = node.map(lmr.name(), kAccess);
    const std::size_t largest = env().scaled(4 << 20, 128 << 10);
    std::uint64_t seed = env().seed;
    for (std::size_t size = 1; size <= largest; size *= 2) {
        for (const std::size_t length : {size - 1, size, size + 1}) {
            if (length == 0)
                continue;
            const std::uint64_t offset = mix(++seed) % ((9 << 20) - length + 1);
            INFO(length << " bytes at " << offset);
            region.write(offset, make_pattern(length, seed));
            std::vector<std::byte> back(length);
            region.read(offset, std::span(back));
            REQUIRE(find_mismatch(back, seed) == std::nullopt);
        }
    }
}

TEST_CASE_METHOD(DataEverywhere, "transfers: an LMR of any size holds what it is given",
                 "[transfers]") {
    const auto length = GENERATE(as<std::uint64_t>{}, 1, 4096, (4 << 20) + 1);
    INFO(where.label << ", " << length << " bytes");
    NamedLmr lmr(dev, length, where.nodes);
    auto region = node.map(lmr.name(), kAccess);
    write_pattern(region, env().seed);
    REQUIRE_NOTHROW(
        check_elsewhere(lmr.name(), [](const auto& r) { check_pattern(r, env().seed); }));
}

TEST_CASE_METHOD(DataEverywhere, "transfers: a write touches nothing beside itself",
                 "[transfers]") {
    INFO(where.label);
    constexpr std::size_t kSize = 3 * kPage;
    NamedLmr lmr(dev, kSize, where.nodes);
    auto region = node.map(lmr.name(), kAccess);
    std::vector<std::byte> model(kSize);
    std::mt19937_64 random(env().seed);
    for (std::size_t i = 0; i < env().scaled(400, 20); ++i) {
        const std::size_t length = 1 + random() % 300;
        const std::size_t offset = random() % (kSize - length + 1);
        const auto bytes = make_pattern(length, random());
        region.write(offset, bytes);
        std::copy(bytes.begin(), bytes.end(), model.begin() + static_cast<std::ptrdiff_t>(offset));
    }
    std::vector<std::byte> now(kSize);
    region.read(0, std::span(now));
    CHECK(compare(now, model, 0).empty());
}

TEST_CASE_METHOD(DataEverywhere, "transfers: a read writes exactly its buffer", "[transfers]") {
    INFO(where.label);
    NamedLmr lmr(dev, 1 << 20, where.nodes);
    auto region = node.map(lmr.name(), kAccess);
    write_pattern(region, env().seed);
    for (const std::size_t length : {1U, 63U, 64U, 65U, 4095U, 4096U, 4097U, 70001U, 500003U}) {
        for (const std::size_t skew : {0U, 1U, 7U, 4095U}) {
            std::vector<std::byte> buffer(length + skew + 4096, std::byte{0xcc});
            region.read(17, std::span(buffer).subspan(skew, length));
            INFO(length << " bytes, skew " << skew);
            CHECK(find_mismatch(std::span(buffer).subspan(skew, length), env().seed, 17) ==
                  std::nullopt);
            const auto untouched = [](std::byte b) { return b == std::byte{0xcc}; };
            CHECK(std::all_of(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(skew),
                              untouched));
            CHECK(std::all_of(buffer.begin() + static_cast<std::ptrdiff_t>(skew + length),
                              buffer.end(), untouched));
        }
    }
}

TEST_CASE_METHOD(DataEverywhere, "transfers: four processes at once in interleaved stripes",
                 "[transfers]") {
    INFO(where.label);
    constexpr std::size_t kProcesses = 4;
    // Odd, so that stripes of different processes share pages, cache lines and packets.
    const std::size_t stripe = GENERATE(as<std::size_t>{}, 61, 4099, 100003);
    const std::size_t stripes =
        std::min<std::size_t>(env().scaled(160, 8), (8 << 20) / stripe) / kProcesses * kProcesses;
    NamedLmr lmr(dev, stripe * stripes, where.nodes, 0666);

    Shared<Signal> start;
    std::vector<Child> writers;
    for (std::size_t me = 0; me < kProcesses; ++me) {
        writers.emplace_back([&, me] {
            lite::context mine(index_for(me));
            auto region = mine.map(lmr.name(), kAccess);
            start->wait("the start");
            std::vector<std::byte> back(stripe);
            // Three rounds: the data of the last round stays.
            for (std::uint64_t round = 0; round < 3; ++round) {
                for (std::size_t i = me; i < stripes; i += kProcesses)
                    region.write(i * stripe, make_pattern(stripe, round, i * stripe));
                for (std::size_t i = me; i < stripes; i += kProcesses) {
                    region.read(i * stripe, std::span(back));
                    expect(!find_mismatch(back, round, i * stripe),
                           "own stripe " + std::to_string(i));
                }
            }
        });
    }
    for (std::size_t i = 0; i < kProcesses; ++i)
        start->post();
    for (auto& writer : writers)
        REQUIRE_NOTHROW(writer.join());
    REQUIRE_NOTHROW(check_elsewhere(lmr.name(), [](const auto& r) { check_pattern(r, 2); }));
}

TEST_CASE_METHOD(DataEverywhere, "transfers: many threads on one handle", "[transfers]") {
    INFO(where.label);
    constexpr std::size_t kThreads = 8;
    constexpr std::size_t kStripe = 30011;
    const std::size_t rounds = env().scaled(20, 2);
    NamedLmr lmr(dev, kThreads * kStripe, where.nodes);
    auto region = node.map(lmr.name(), kAccess);
    Threads threads;
    for (std::size_t me = 0; me < kThreads; ++me) {
        threads.start([&, me] {
            std::vector<std::byte> back(kStripe);
            for (std::uint64_t round = 0; round < rounds; ++round) {
                // Small and large transfers take different paths and share their resources
                // differently.
                const std::size_t length = round % 2 ? kStripe : 100 + me;
                region.write(me * kStripe, make_pattern(length, round * kThreads + me));
                region.read(me * kStripe, std::span(back).first(length));
                expect(!find_mismatch(std::span(back).first(length), round * kThreads + me),
                       "own stripe");
            }
        });
    }
    REQUIRE_NOTHROW(threads.join());
}

TEST_CASE_METHOD(DataEverywhere, "transfers: a node reads what another node has written",
                 "[transfers]") {
    INFO(where.label);
    // Data first, then a sequence number in a write of its own: a reader that sees the number must
    // see the data.
    constexpr std::size_t kPayload = 5000;
    const std::uint64_t rounds = env().scaled(100, 10);
    NamedLmr lmr(dev, 2 * kPage + kPayload, where.nodes);
    Child reader([&] {
        lite::context other(other_index());
        auto region = other.map(lmr.name(), kAccess);
        std::vector<std::byte> back(kPayload);
        for (std::uint64_t round = 1; round <= rounds; ++round) {
            wait_until("the next number", [&] { return region.load<std::uint64_t>(0) == round; });
            region.read(2 * kPage, std::span(back));
            expect(!find_mismatch(back, round), "data of round " + std::to_string(round));
            region.store<std::uint64_t>(kPage, round);
        }
    });
    auto region = node.map(lmr.name(), kAccess);
    for (std::uint64_t round = 1; round <= rounds; ++round) {
        region.write(2 * kPage, make_pattern(kPayload, round));
        region.store<std::uint64_t>(0, round);
        REQUIRE_NOTHROW(
            wait_until("the answer", [&] { return region.load<std::uint64_t>(kPage) == round; }));
    }
    REQUIRE_NOTHROW(reader.join());
}

// For machines with enough memory: LITE_TEST_TIMEOUT must allow for two gigabytes through the
// network.
TEST_CASE_METHOD(Data, "transfers: one gigabyte", "[.][huge]") {
    const std::vector<std::uint32_t> nodes =
        env().remote.size() > 1 ? std::vector{env().self, env().remote[0], env().remote[1]}
                                : std::vector{env().self, env().peer()};
    NamedLmr lmr(dev, 1ULL << 30, nodes);
    auto region = node.map(lmr.name(), kAccess);
    // All of it, or the first and the last of its 64 pieces and two between if time is short.
    const std::size_t every = env().scale < 1 ? 21 : 1;
    write_pattern(region, env().seed, 16 << 20, every);
    REQUIRE_NOTHROW(check_elsewhere(
        lmr.name(), [&](const auto& r) { check_pattern(r, env().seed, 16 << 20, every); }));
}
