// SPDX-License-Identifier: MIT
// Freeing LMRs in use: the call returns, users get EIDRM, and no user can reach the memory when it
// is reused.
#include "fixture.hpp"

#include <signal.h>
#include <unistd.h>

using namespace lite_test;

namespace {

constexpr std::uint64_t kFreedLength = 200000;

// Repeats @op until it fails; throws Failure unless it fails with EIDRM.
template <typename Op>
void until_freed(Op op) {
    for (;;) {
        const Errno e = op();
        if (e == ok)
            continue;
        expect_equal(e, err(EIDRM), "the operation that found the LMR freed");
        return;
    }
}

// The operations of a user that never stops, by number.
Errno use(const Device& dev, std::uint64_t lh, std::size_t kind, std::vector<std::byte>& buffer) {
    switch (kind % 4) {
        case 0:
            return dev(write_args(lh, 0, buffer.data(), kFreedLength));
        case 1:
            return dev(write_args(lh, kFreedLength - 64, buffer.data(), 64));
        case 2:
            return dev(read_args(lh, 1, buffer.data(), kFreedLength - 1));
        default:
            return dev(fetch_add_args(lh, 8, 1));
    }
}

}  // namespace

TEST_CASE_METHOD(LifeEverywhere, "free: mapped elsewhere: EIDRM there, at once and for ever",
                 "[free]") {
    INFO(where.label);
    NamedLmr lmr(dev, kFreedLength, where.nodes);
    const Device other = device_for(1);
    const auto elsewhere = other.map(lmr.name(), LITE_RIGHTS_ALL);
    std::vector<std::byte> buffer(kFreedLength);
    other.write(elsewhere, 0, buffer);

    dev.free(lmr.lh());
    for (int again = 0; again < 3; ++again) {
        for (std::size_t kind = 0; kind < 4; ++kind)
            CHECK(use(other, elsewhere, kind, buffer) == err(EIDRM));
    }
    CHECK(other(unmap_args(elsewhere)) == ok);
    CHECK(other(map_args(lmr.name(), LITE_RIGHT_READ)) == err(ENOENT));
    check_nothing_used();
}

TEST_CASE_METHOD(LifeSomewhere, "free: while many users use it", "[free]") {
    INFO(where.label);
    const std::size_t rounds = env().scaled(6, 2);
    for (std::size_t round = 0; round < rounds; ++round) {
        NamedLmr lmr(dev, kFreedLength, where.nodes);
        Shared<Signal> running;
        std::vector<Child> users;
        for (std::size_t i = 0; i < 6; ++i) {
            users.emplace_back([&, i] {
                const Device own = device_for(i);
                const auto lh = own.map(lmr.name());
                std::vector<std::byte> buffer(kFreedLength);
                expect_equal(use(own, lh, i, buffer), ok, "before the free");
                running->post();
                until_freed([&] { return use(own, lh, i, buffer); });
                expect_equal(own(unmap_args(lh)), ok, "unmap afterwards");
            });
        }
        for (std::size_t i = 0; i < users.size(); ++i)
            running->wait("the users");
        // By name from another node, by handle from this one.
        if (round % 2)
            device_for(1).free(lmr.name());
        else
            dev.free(lmr.lh());
        for (auto& user : users)
            REQUIRE_NOTHROW(user.join());
    }
    check_nothing_used();
}

TEST_CASE_METHOD(LifeSomewhere, "free: memory that is reused stays untouched by its former users",
                 "[free]") {
    INFO(where.label);
    // Users write 0xff as fast as they can while their LMR is freed and its memory is given to a
    // canary at once. A byte 0xff in the canary comes from a write after the free had returned.
    const std::size_t rounds = env().scaled(8, 3);
    for (std::size_t round = 0; round < rounds; ++round) {
        NamedLmr lmr(dev, kFreedLength, where.nodes);
        Shared<Signal> running;
        std::vector<Child> users;
        for (std::size_t i = 0; i < 4; ++i) {
            users.emplace_back([&, i] {
                const Device own = device_for(i);
                const auto lh = own.map(lmr.name(), LITE_RIGHT_WRITE);
                const std::vector<std::byte> poison(kFreedLength, std::byte{0xff});
                running->post();
                until_freed([&] {
                    return own(write_args(lh, 0, poison.data(), i % 2 ? kFreedLength : 100));
                });
            });
        }
        for (std::size_t i = 0; i < users.size(); ++i)
            running->wait("the users");
        dev.free(lmr.lh());

        const auto canary = dev.alloc(kFreedLength, where.nodes);
        std::vector<std::byte> now(kFreedLength, std::byte{0xee});
        for (int look = 0; look < 3; ++look) {
            dev.read(canary, 0, now);
            REQUIRE(
                std::all_of(now.begin(), now.end(), [](std::byte b) { return b == std::byte{}; }));
        }
        for (auto& user : users)
            REQUIRE_NOTHROW(user.join());
        dev.read(canary, 0, now);
        REQUIRE(std::all_of(now.begin(), now.end(), [](std::byte b) { return b == std::byte{}; }));
        dev.free(canary);
    }
    check_nothing_used();
}

TEST_CASE_METHOD(LifeSomewhere, "free: of concurrent frees one succeeds", "[free]") {
    INFO(where.label);
    for (std::size_t round = 0; round < env().scaled(10, 3); ++round) {
        const auto name = unique_name("twice");
        const auto lh = dev.alloc(kFreedLength, where.nodes, name);
        const Device other = device_for(1);
        const auto elsewhere = other.map(name, LITE_RIGHTS_ALL);
        std::array<Errno, 3> results{};
        Threads threads;
        threads.start([&] { results[0] = dev(free_args(lh)); });
        threads.start([&] { results[1] = other(free_args(elsewhere)); });
        threads.start([&] { results[2] = other(free_args(name)); });
        threads.join();
        CHECK(std::count(results.begin(), results.end(), ok) == 1);
        for (const auto e : results)
            CHECK((e == ok || e == err(EIDRM) || e == err(ENOENT)));
        CHECK(dev(stat_args(name)) == err(ENOENT));
    }
    check_nothing_used();
}

TEST_CASE_METHOD(LifeSomewhere, "free: against map, again and again", "[free]") {
    INFO(where.label);
    const auto name = unique_name("churn");
    Shared<std::atomic<bool>> over;
    std::vector<Child> mappers;
    for (std::size_t i = 0; i < 3; ++i) {
        mappers.emplace_back([&, i] {
            const Device own = device_for(i);
            while (!*over) {
                auto args = map_args(name, LITE_RIGHT_READ | LITE_RIGHT_ATOMIC);
                const auto e = own(args);
                if (e != ok) {
                    expect((e == err(ENOENT) || e == err(EIDRM)),
                           "map of an LMR that comes and goes");
                    continue;
                }
                const auto used = own(fetch_add_args(args.lh, 0, 1));
                expect(used == ok || used == err(EIDRM), "use of an LMR that comes and goes");
                expect_equal(own(unmap_args(args.lh)), ok, "unmap");
            }
        });
    }
    for (std::size_t round = 0; round < env().scaled(30, 10); ++round) {
        const auto lh = dev.alloc(kPage, where.nodes, name);
        (void)dev.fetch_add(lh, 0, 1);
        dev.free(lh);
    }
    *over = true;
    for (auto& mapper : mappers)
        REQUIRE_NOTHROW(mapper.join());
    check_nothing_used();
}

TEST_CASE_METHOD(LifeEverywhere, "free: an anonymous LMR by handle", "[free]") {
    INFO(where.label);
    const auto lh = dev.alloc(kFreedLength, where.nodes);
    dev.free(lh);
    CHECK(dev(free_args(lh)) == err(EBADF));
    check_nothing_used();
}

TEST_CASE_METHOD(Life, "free: revokes mappings that were mapped many times", "[free]") {
    // After a change each handle asks the home again, which counts that as a MAP. The counts of the
    // two mappings are below 256, and their sum above it: a home that counted in bytes would forget
    // the second mapping when the first one is given back.
    constexpr std::size_t kFirst = 120;
    NamedLmr lmr(dev, kPage);
    std::vector<std::uint64_t> handles(kFirst + 140);
    for (auto& lh : handles)
        lh = dev.map(lmr.name());
    dev.chmod(lmr.name(), 0640);
    for (std::size_t i = 0; i < kFirst; ++i)
        (void)dev.fetch_add(handles[i], 0, 1);
    for (std::size_t i = 1; i < kFirst; ++i)
        dev.unmap(handles[i]);
    dev.chmod(lmr.name(), 0600);
    for (std::size_t i = kFirst; i < handles.size(); ++i)
        (void)dev.fetch_add(handles[i], 0, 1);
    dev.unmap(handles.front());
    dev.free(lmr.name());
    std::uint64_t word = 0;
    CHECK(dev(read_args(handles.back(), 0, &word, sizeof(word))) == err(EIDRM));
    check_nothing_used();
}
