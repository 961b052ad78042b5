// SPDX-License-Identifier: MIT
// ALLOC, MAP and FREE: names, nodes and sizes.
#include "fixture.hpp"

#include <string>
#include <vector>

using namespace lite_test;

namespace {

const std::string kLongest(LITE_NAME_MAX, 'n');

// A node id that no test's cluster has: tests number nodes from 1.
constexpr std::uint32_t kNobody = 54321;

Errno alloc_on(const Device& dev, std::vector<std::uint32_t> nodes,
               std::uint64_t length = kLength) {
    auto args = alloc_args("", length);
    set_nodes(args, nodes);
    return dev(args);
}

}  // namespace

TEST_CASE_METHOD(Abi, "names: a name that is too long is ENAMETOOLONG", "[names]") {
    const std::string filled(LITE_NAME_SIZE, 'x');  // not terminated within the field
    CHECK(dev(alloc_args(filled, kLength)) == err(ENAMETOOLONG));
    CHECK(dev(map_args(filled, LITE_RIGHT_READ)) == err(ENAMETOOLONG));
    CHECK(dev(free_args(filled)) == err(ENAMETOOLONG));
    CHECK(dev(stat_args(filled)) == err(ENAMETOOLONG));
}

TEST_CASE_METHOD(Abi, "names: the longest name works", "[names]") {
    const auto lh = dev.alloc(kLength, {}, kLongest);
    CHECK(dev.stat(kLongest).name == kLongest);
    const auto second = dev.map(kLongest);
    CHECK(dev.fetch_add(second, 0, 1) == 0);
    dev.free(lh);
    CHECK(dev(stat_args(kLongest)) == err(ENOENT));
}

TEST_CASE_METHOD(Abi, "names: an empty name where one is needed is EINVAL", "[names]") {
    CHECK(dev(map_args("", LITE_RIGHT_READ)) == err(EINVAL));
    CHECK(dev(free_args("")) == err(EINVAL));
    CHECK(dev(stat_args("")) == err(EINVAL));
    CHECK(dev(alloc_args("", kLength, 0600, LITE_ALLOC_NO_HANDLE)) == err(EINVAL));
}

TEST_CASE_METHOD(Abi, "names: control characters are EINVAL", "[names]") {
    const std::string name =
        GENERATE("new\nline", "tab\t", "\x01", "bell\x07", "esc\x1b[31m", "del\x7f");
    INFO(name);
    CHECK(dev(alloc_args(name, kLength)) == err(EINVAL));
    CHECK(dev(map_args(name, LITE_RIGHT_READ)) == err(EINVAL));
    CHECK(dev(free_args(name)) == err(EINVAL));
    CHECK(dev(stat_args(name)) == err(EINVAL));
}

TEST_CASE_METHOD(Abi, "names: all other bytes are fine", "[names]") {
    const std::string name = GENERATE("a name", ".", "..", "-r", "größe", "%s%n", "'; rm", "/",
                                      "a/b", "/a", "a/", "\xff", "\xc3", "\\");
    INFO(name);
    const auto lh = dev.alloc(kLength, {}, name);
    CHECK(dev.stat(name).name == name);
    dev.free(lh);
}

TEST_CASE_METHOD(Abi, "names: what follows the terminator does not matter", "[names]") {
    const auto name = unique_name("terminated");
    auto args = alloc_args(name, kLength);
    args.name[name.size() + 1] = 'x';
    args.name[LITE_NAME_SIZE - 1] = '\n';
    REQUIRE(dev(args) == ok);
    CHECK(dev.stat(name).length == kLength);
    dev.free(name);
}

TEST_CASE_METHOD(AbiEverywhere, "names: a taken name is EEXIST", "[names]") {
    INFO(where.label);
    NamedLmr lmr(dev, kLength, where.nodes);
    CHECK(dev(alloc_args(lmr.name(), kLength)) == err(EEXIST));
    // Wherever the second LMR would have been.
    for (const auto& other : env().placements()) {
        auto args = alloc_args(lmr.name(), 1);
        set_nodes(args, other.nodes);
        CHECK(dev(args) == err(EEXIST));
    }
    CHECK(dev.stat(lmr.name()).length == kLength);
}

TEST_CASE_METHOD(AbiEverywhere, "names: a name is free again after its LMR was freed", "[names]") {
    INFO(where.label);
    const auto name = unique_name("again");
    for (int round = 0; round < 8; ++round) {
        const auto made = dev.alloc(kLength, where.nodes, name);
        CHECK(dev.fetch_add(made, 0, 1) == 0);
        if (round % 2)
            dev.free(made);
        else
            dev.free(name);
    }
    CHECK(dev(map_args(name, LITE_RIGHT_READ)) == err(ENOENT));
}

TEST_CASE_METHOD(Abi, "names: an unknown name is ENOENT", "[names]") {
    const auto name = unique_name("unknown");
    CHECK(dev(map_args(name, LITE_RIGHT_READ)) == err(ENOENT));
    CHECK(dev(free_args(name)) == err(ENOENT));
    CHECK(dev(stat_args(name)) == err(ENOENT));
}

TEST_CASE_METHOD(Abi, "names: a failed ALLOC leaves its name free", "[names]") {
    const auto name = unique_name("failed");
    auto args = alloc_args(name, LITE_LMR_SIZE_MAX);
    REQUIRE(dev(args) == err(ENOSPC));
    CHECK(dev(stat_args(name)) == err(ENOENT));
    dev.free(dev.alloc(1, {}, name));
}

TEST_CASE_METHOD(Abi, "names: exactly one of two rivals for a name wins", "[names]") {
    const auto name = unique_name("race");
    for (int round = 0; round < 20; ++round) {
        std::array<Errno, 4> results{};
        Threads threads;
        for (auto& result : results) {
            threads.start([&dev = dev, &name, &result] {
                result = dev(alloc_args(name, kPage, 0600, LITE_ALLOC_NO_HANDLE));
            });
        }
        threads.join();
        CHECK(std::count(results.begin(), results.end(), ok) == 1);
        CHECK(std::count(results.begin(), results.end(), err(EEXIST)) == 3);
        dev.free(name);
    }
}

TEST_CASE_METHOD(Abi, "nodes: a node that the cluster does not know is EHOSTUNREACH", "[nodes]") {
    CHECK(alloc_on(dev, {kNobody}) == err(EHOSTUNREACH));
    CHECK(alloc_on(dev, {env().self, kNobody}) == err(EHOSTUNREACH));
    CHECK(alloc_on(dev, {kNobody, env().self}) == err(EHOSTUNREACH));
    CHECK(alloc_on(dev, {LITE_NODE_ID_MAX}) == err(EHOSTUNREACH));
}

TEST_CASE_METHOD(Abi, "nodes: an id beyond the largest is EINVAL", "[nodes]") {
    const std::uint32_t id = GENERATE(65536U, 65536U + 1, 0x80000000U, 0xffffffffU);
    CHECK(alloc_on(dev, {id}) == err(EINVAL));
    CHECK(alloc_on(dev, {env().self, id}) == err(EINVAL));
}

TEST_CASE_METHOD(Abi, "nodes: a node named twice is EINVAL", "[nodes]") {
    CHECK(alloc_on(dev, {env().self, env().self}) == err(EINVAL));
    CHECK(alloc_on(dev, {env().peer(), env().self, env().peer()}) == err(EINVAL));
    // 0 also means this node.
    CHECK(alloc_on(dev, {0, env().self}) == err(EINVAL));
}

TEST_CASE_METHOD(Abi, "nodes: 0 means this node", "[nodes]") {
    const auto name = unique_name("zero");
    auto args = alloc_args(name, kLength);
    const std::array<std::uint32_t, 1> nodes{0};
    set_nodes(args, nodes);
    REQUIRE(dev(args) == ok);
    CHECK(dev.stat(name).home == env().self);
    dev.free(name);
}

TEST_CASE_METHOD(Abi, "nodes: too many nodes are EINVAL", "[nodes]") {
    std::vector<std::uint32_t> many(LITE_SPREAD_MAX + 1);
    for (std::size_t i = 0; i < many.size(); ++i)
        many[i] = static_cast<std::uint32_t>(1000 + i);
    CHECK(alloc_on(dev, many) == err(EINVAL));

    auto args = alloc_args("", kLength);
    set_nodes(args, many);
    args.n_nodes = GENERATE(0x7fffffffU, 0x80000000U, 0xffffffffU);
    CHECK(dev(args) == err(EINVAL));
}

TEST_CASE_METHOD(Abi, "nodes: the maximum number of nodes is looked up", "[nodes]") {
    std::vector<std::uint32_t> many(LITE_SPREAD_MAX);
    for (std::size_t i = 0; i < many.size(); ++i)
        many[i] = static_cast<std::uint32_t>(kNobody + i);
    CHECK(alloc_on(dev, many, LITE_SPREAD_MAX * kPage) == err(EHOSTUNREACH));
}

TEST_CASE_METHOD(Abi, "nodes: an array that is not mapped is EFAULT", "[nodes]") {
    auto args = alloc_args("", kLength);
    args.n_nodes = 2;
    const GuardedBuffer one_only(sizeof(std::uint32_t));
    for (void* bad :
         {static_cast<void*>(nullptr), static_cast<void*>(unmapped_address(kPage)),
          static_cast<void*>(one_only.data()), reinterpret_cast<void*>(0xffff888000001000)}) {
        INFO(bad);
        args.nodes = reinterpret_cast<std::uintptr_t>(bad);
        CHECK(dev(args) == err(EFAULT));
    }
}

TEST_CASE_METHOD(Abi, "nodes: without nodes the array is not read", "[nodes]") {
    auto args = alloc_args("", kLength);
    args.nodes = 8;
    CHECK(dev(args) == ok);
}

TEST_CASE_METHOD(AbiEverywhere, "sizes: 0 is EINVAL", "[sizes]") {
    CHECK(alloc_on(dev, where.nodes, 0) == err(EINVAL));
}

TEST_CASE_METHOD(AbiEverywhere, "sizes: a size beyond the maximum is EFBIG", "[sizes]") {
    const auto length = GENERATE(as<std::uint64_t>{}, LITE_LMR_SIZE_MAX + 1, 1ULL << 62, 1ULL << 63,
                                 (1ULL << 63) + 1, ~0ULL - 4095, ~0ULL);
    INFO(where.label << ", length " << length);
    CHECK(alloc_on(dev, where.nodes, length) == err(EFBIG));
}

TEST_CASE_METHOD(AbiEverywhere, "sizes: a size beyond the node's limit is ENOSPC", "[sizes]") {
    INFO(where.label);
    dev.free(lh);
    REQUIRE_NOTHROW(wait_until_unused(dev));
    CHECK(alloc_on(dev, where.nodes, LITE_LMR_SIZE_MAX) == err(ENOSPC));
    // More than any of the machines has, but too little for an arithmetic overflow.
    CHECK(alloc_on(dev, where.nodes, 1ULL << 42) == err(ENOSPC));
    CHECK(dev.query().mem_used == 0);
}

TEST_CASE_METHOD(AbiEverywhere, "sizes: from one byte up", "[sizes]") {
    const auto length =
        GENERATE(as<std::uint64_t>{}, 1, 2, 3, 7, 8, 4095, 4096, 4097, 65537, (4 << 20) + 1);
    INFO(where.label << ", length " << length);
    const auto name = unique_name("size");
    auto args = alloc_args(name, length);
    set_nodes(args, where.nodes);
    const auto e = dev(args);
    if (length < where.nodes.size()) {
        // One node would have an empty share: either result is acceptable, but a success must work.
        CHECK((e == ok || e == err(EINVAL)));
        if (e != ok)
            return;
    }
    REQUIRE(e == ok);
    CHECK(dev.stat(name).length == length);
    std::byte last{0x77};
    dev.write(args.lh, length - 1, {&last, 1});
    last = {};
    dev.read(args.lh, length - 1, {&last, 1});
    CHECK(last == std::byte{0x77});
    CHECK(dev(read_args(args.lh, length, &last, 1)) == err(ERANGE));
    dev.free(name);
}

TEST_CASE_METHOD(Abi, "sizes: freed memory can be allocated again", "[sizes]") {
    REQUIRE_NOTHROW(wait_until_unused(dev));
    const auto lh = dev.alloc(8 << 20);
    CHECK(dev.query().mem_used == 8 << 20);
    dev.free(lh);
    CHECK(dev.query().mem_used == 0);
}
