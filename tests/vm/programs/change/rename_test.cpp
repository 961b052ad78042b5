// SPDX-License-Identifier: MIT
// Other names for LMRs in use.
#include "fixture.hpp"

using namespace lite_test;

namespace {

constexpr std::uint64_t kRenamedLength = 20000;

struct Names : ChangeSingle {
    std::string from = unique_name("from");
    std::string to = unique_name("to");

    ~Names() {
        (void)dev(free_args(from));
        (void)dev(free_args(to));
    }
    void make(std::uint32_t mode = 0600) const {
        dev.unmap(dev.alloc(kRenamedLength, where.nodes, from, mode));
    }
    std::vector<std::string> all() const {
        std::vector<std::string> names;
        for (const auto& info : dev.list()) {
            const std::string name = info.name;
            if (name == from || name == to)
                names.push_back(name);
        }
        return names;
    }
};

}  // namespace

TEST_CASE_METHOD(Names, "rename: the old name is free at once, handles stay", "[rename]") {
    INFO(where.label);
    make();
    std::vector<std::uint64_t> lhs;
    for (const auto& each : nodes)
        lhs.push_back(each.map(from));
    dev.write(lhs[0], 0, make_pattern(kRenamedLength, 5));
    node(1).rename(from, to);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        INFO("node " << i);
        CHECK(node(i)(map_args(from, kR)) == err(ENOENT));
        CHECK(node(i)(stat_args(from)) == err(ENOENT));
        CHECK(try_map_as(kRoot, node(i), to, kRWA) == ok);
        CHECK_NOTHROW(expect_rights(node(i), lhs[i], kRWA));
        auto stat = stat_args(lhs[i]);
        CHECK(node(i)(stat) == ok);
        CHECK(std::string(stat.info.name) == to);
    }
    CHECK(all() == std::vector{to});
    // Any LMR may take the old name.
    node(2).unmap(node(2).alloc(100, {}, from));
    CHECK(dev(rename_args(to, from)) == err(EEXIST));
    CHECK(dev.stat(to).length == kRenamedLength);
    CHECK(dev.stat(from).length == 100);
    dev.free(from);
    dev.rename(to, from);
    std::vector<std::byte> back(kRenamedLength - 8);
    dev.read(lhs[0], 8, back);
    CHECK(find_mismatch(back, 5, 8) == std::nullopt);
    CHECK(all() == std::vector{from});
}

TEST_CASE_METHOD(Names, "rename: never replaces; to its own name is no change", "[rename]") {
    INFO(where.label);
    make();
    CHECK(dev(rename_args(from, from)) == ok);
    CHECK(node(1)(rename_args(from, from)) == ok);
    CHECK(dev.stat(from).length == kRenamedLength);
    dev.unmap(dev.alloc(100, {}, to));
    CHECK(dev(rename_args(from, to)) == err(EEXIST));
    CHECK(node(1)(rename_args(from, to)) == err(EEXIST));
    CHECK(dev.stat(from).length == kRenamedLength);
    CHECK(dev.stat(to).length == 100);
}

TEST_CASE_METHOD(Names, "rename: needs a master", "[rename]") {
    INFO(where.label);
    make(0666);
    CHECK(call_as(kBob, [&] { return dev(rename_args(from, to)); }) == err(EPERM));
    const auto lh = map_as(kBob, dev, from, kRWA);
    CHECK(is_refusal(call_as(kBob, [&] { return dev(rename_args(lh, to)); })));
    const auto without = dev.map(from, kRWA);
    CHECK(is_refusal(dev(rename_args(without, to))));
    CHECK(all() == std::vector{from});
}

TEST_CASE_METHOD(Names, "rename: an anonymous LMR with a name outlives its maker", "[rename]") {
    INFO(where.label);
    {
        Device own(env().indexes.front());
        const auto lh = own.alloc(kRenamedLength, where.nodes);
        own.write(lh, 0, make_pattern(kRenamedLength, 6));
        own.rename(lh, to);
        own.close();
    }
    std::vector<std::byte> back(kRenamedLength);
    node(1).read(node(1).map(to, kR), 0, back);
    CHECK(find_mismatch(back, 6) == std::nullopt);
    // Unmapping the last handle does not free it either.
    const auto second = dev.alloc(kRenamedLength, where.nodes);
    dev.rename(second, from);
    dev.unmap(second);
    CHECK(dev.stat(from).length == kRenamedLength);
}

TEST_CASE_METHOD(Names, "rename: invalid names", "[rename]") {
    make();
    CHECK(dev(rename_args(from, "")) == err(EINVAL));
    CHECK(dev(rename_args(from, "a\nb")) == err(EINVAL));
    CHECK(dev(rename_args(from, std::string(256, 'x'))) == err(ENAMETOOLONG));
    CHECK(dev(rename_args(to, from)) == err(ENOENT));
    CHECK(dev(rename_args(std::uint64_t{12345}, to)) == err(EBADF));
    const std::string longest = to + std::string(255 - to.size(), 'x');
    CHECK(dev(rename_args(from, longest)) == ok);
    CHECK(dev(rename_args(longest, from)) == ok);
    const auto lh = dev.map(from, kM);
    dev.free(from);
    CHECK(dev(rename_args(lh, to)) == err(EIDRM));
}

TEST_CASE_METHOD(Names, "rename: of many rivals for a name one gets it", "[rename]") {
    INFO(where.label);
    for (std::size_t round = 0; round < env().scaled(15, 3); ++round) {
        constexpr std::size_t rivals = 4;
        std::vector<std::uint64_t> lhs;
        for (std::size_t i = 0; i < rivals; ++i)
            lhs.push_back(node(i).alloc(kPage, where.nodes));
        std::array<Errno, rivals> results{};
        Threads threads;
        for (std::size_t i = 0; i < rivals; ++i)
            threads.start([&, i] { results[i] = node(i)(rename_args(lhs[i], to)); });
        threads.join();
        CHECK(std::count(results.begin(), results.end(), ok) == 1);
        CHECK(std::count(results.begin(), results.end(), err(EEXIST)) == rivals - 1);
        CHECK(all() == std::vector{to});
        for (std::size_t i = 0; i < rivals; ++i)
            node(i).free(lhs[i]);
        CHECK(all().empty());
    }
}

TEST_CASE_METHOD(Names, "rename: back and forth, during look-ups", "[rename]") {
    INFO(where.label);
    make();
    Shared<std::atomic<bool>> over;
    std::vector<Child> seekers;
    for (std::size_t i = 0; i < 3; ++i) {
        seekers.emplace_back([&, i] {
            const Device own(env().indexes[i % env().indexes.size()]);
            while (!*over) {
                for (const auto& name : {from, to}) {
                    auto args = map_args(name, kA);
                    const auto e = own(args);
                    expect(e == ok || e == err(ENOENT), "map of what changes its name");
                    if (e == ok) {
                        (void)own.fetch_add(args.lh, 0, 1);
                        own.unmap(args.lh);
                    }
                }
            }
        });
    }
    for (std::size_t round = 0; round < env().scaled(50, 5); ++round) {
        node(round).rename(from, to);
        node(round + 1).rename(to, from);
    }
    *over = true;
    for (auto& seeker : seekers)
        REQUIRE_NOTHROW(seeker.join());
    CHECK(all() == std::vector{from});
}
