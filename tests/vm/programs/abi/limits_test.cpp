// SPDX-License-Identifier: MIT
// Limits of memory and handles, for nodes that were started with small ones. The tag is hidden: the
// tests only run on request.
//
// LITE_TEST_UID_LIMIT is the value of LITE_A_UID_LIMIT in bytes; it is below the node's memory
// limit.
#include "fixture.hpp"

#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <vector>

using namespace lite_test;

namespace {

std::uint64_t uid_limit() {
    const char* text = std::getenv("LITE_TEST_UID_LIMIT");
    if (!text)
        throw std::runtime_error("set LITE_TEST_UID_LIMIT");
    return std::strtoull(text, nullptr, 0);
}

// More than the description of one of these LMRs takes, as the limits count that, too.
constexpr std::uint64_t kDescribed = 256 * 1024;

}  // namespace

TEST_CASE_METHOD(Abi, "limits: one uid has no more than its share: EDQUOT", "[.][limits]") {
    REQUIRE(uid_limit() < dev.query().mem_limit);
    CHECK_NOTHROW(as_user({2001, 2001}, [&] {
        const auto half = dev.alloc(uid_limit() / 2);
        expect_equal(dev(alloc_args("", uid_limit() / 2)), err(EDQUOT), "all of the rest");
        expect_equal(dev(alloc_args("", uid_limit() / 2 - kDescribed)), ok,
                     "the rest but for what describes both");
        expect_equal(dev(alloc_args("", kDescribed)), err(EDQUOT), "more than is left");
        dev.free(half);
        expect_equal(dev(alloc_args("", uid_limit() / 2)), ok, "after a free");
    }));
    const auto more = dev.alloc(uid_limit() + kPage);  // root's limit is the node's
    dev.free(more);
}

TEST_CASE_METHOD(Abi, "limits: the share is per uid, not per process", "[.][limits]") {
    const auto name = unique_name("share");
    CHECK_NOTHROW(as_user({2001, 2001}, [&] {
        expect_equal(dev(alloc_args(name, uid_limit() - kDescribed, 0600, LITE_ALLOC_NO_HANDLE)),
                     ok, "first process");
    }));
    CHECK_NOTHROW(as_user({2001, 77}, [&] {
        expect_equal(dev(alloc_args("", kDescribed)), err(EDQUOT), "second process");
    }));
    CHECK_NOTHROW(
        as_user({2002, 2001}, [&] { expect_equal(dev(alloc_args("", kPage)), ok, "other uid"); }));
    dev.free(name);
    CHECK_NOTHROW(as_user({2001, 2001},
                          [&] { expect_equal(dev(alloc_args("", kPage)), ok, "after the free"); }));
}

TEST_CASE_METHOD(Abi, "limits: all uids together have no more than the node: ENOSPC",
                 "[.][limits]") {
    // A sixteenth is reserved for root.
    const auto limit = dev.query().mem_limit / 16 * 15;
    std::vector<std::string> names;
    // As many uids as are needed, each within its share.
    for (uid_t uid = 3000; (names.size() + 1) * uid_limit() <= limit; ++uid) {
        names.push_back(unique_name("full"));
        CHECK_NOTHROW(as_user({uid, uid}, [&] {
            expect_equal(
                dev(alloc_args(names.back(), uid_limit() - kDescribed, 0600, LITE_ALLOC_NO_HANDLE)),
                ok, "share");
        }));
    }
    CHECK_NOTHROW(as_user({4000, 4000}, [&] {
        const auto left = limit - dev.query().mem_used;
        expect_equal(dev(alloc_args("", left + kPage)), err(ENOSPC), "beyond the node's limit");
    }));
    CHECK(dev(alloc_args("", limit / 16)) == ok);
    for (const auto& name : names)
        dev.free(name);
}

TEST_CASE_METHOD(Abi, "limits: no more handles in one file than allowed: EMFILE", "[.][limits]") {
    const auto most = dev.query().handles_max;
    REQUIRE(most <= 10000);
    NamedLmr lmr(dev, kPage);
    std::vector<std::uint64_t> handles{lmr.lh()};
    while (handles.size() < most)
        handles.push_back(dev.map(lmr.name(), LITE_RIGHT_READ));
    const auto used = dev.query().mem_used;
    CHECK(dev(map_args(lmr.name(), LITE_RIGHT_READ)) == err(EMFILE));
    CHECK(dev(alloc_args("", kPage)) == err(EMFILE));
    CHECK(dev.query().mem_used == used);

    // The limit is per file.
    const Device other(env().indexes.front());
    CHECK(other(map_args(lmr.name(), LITE_RIGHT_READ)) == ok);

    dev.unmap(handles.back());
    CHECK(dev(map_args(lmr.name(), LITE_RIGHT_READ)) == ok);
}

TEST_CASE_METHOD(Abi, "limits: the smallest LMRs take no more than the limit", "[.][fill]") {
    // The description of an LMR is counted with its page: no less than this on any kernel.
    constexpr std::uint64_t described = 1024;
    const auto most = uid_limit() / (kPage + described);
    const auto before = dev.query().mem_used;
    const auto name = [](std::uint64_t i) { return "fill-" + std::to_string(i); };
    Shared<std::uint64_t> made;
    REQUIRE_NOTHROW(as_user({1000, 1000}, [&] {
        Errno e = ok;
        for (*made = 0; *made <= most; ++*made) {
            e = dev(alloc_args(name(*made), 1, 0600, LITE_ALLOC_NO_HANDLE));
            if (e != ok)
                break;
        }
        expect_equal(e, err(EDQUOT), "the limit is met");
    }));
    std::cout << *made << " LMRs\n";
    CHECK(*made <= most);
    // At least half of the limit is pages: the descriptions take no more than the pages.
    CHECK(dev.query().mem_used - before == *made * kPage);
    CHECK(*made * kPage >= uid_limit() / 2);
    // A test that keeps the input open may look at the machine now.
    std::cout << "filled" << std::endl;
    std::cin.get();
    for (std::uint64_t i = 0; i < *made; ++i)
        dev.free(name(i));
    CHECK(dev.query().mem_used == before);
}
