// SPDX-License-Identifier: MIT
// Coroutines that await operations on LMRs, and changes of LMRs.
#include "async_fixture.hpp"

#include <lite/vector.hpp>

#include <algorithm>

using namespace lite_test;

namespace {

struct Everywhere : Async {
    Placement where = GENERATE(from_range(env().placements()));
    lite::region there = region(65536, where.nodes);
};

std::vector<std::byte> numbers(std::size_t n) {
    std::vector<std::byte> all(n);
    for (std::size_t i = 0; i < n; i++)
        all[i] = static_cast<std::byte>(i * 7 + i / 256);
    return all;
}

std::vector<std::byte> bytes_at(const lite::region& of, std::uint64_t offset, std::size_t n) {
    std::vector<std::byte> bytes(n);
    of.read(offset, std::span(bytes));
    return bytes;
}

bool is_listed(const std::vector<lite::lmr_info>& all, const std::string& name) {
    return std::any_of(all.begin(), all.end(),
                       [&](const auto& info) { return lite::name_of(info) == name; });
}

// Every awaitable that changes an LMR as a whole, by @which: a region of the LMR, or its name.
template <typename Which>
void change(lite::executor& ex, Which& which, const lite::region& of) {
    ex.run(ex.chmod(which, 0640));
    CHECK(ex.run(ex.stat(which)).info.mode == 0640);
    ex.run(ex.chown(which, 1234, lite::keep));
    CHECK(of.stat().info.uid == 1234);
    CHECK(of.stat().info.mode == 0640);
    const lite::grant to{4711, lite::every_node, lite::rights::read};
    ex.run(ex.grant(which, to));
    CHECK(ex.run(ex.grants(which)) == std::vector{to});
    CHECK(of.grants() == std::vector{to});
    ex.run(ex.grant(which, {4711, lite::every_node, lite::rights::none}));
    CHECK(of.grants().empty());
    ex.run(ex.resize(which, 12288));
    CHECK(of.stat().info.length == 12288);
    const std::uint32_t target = env().remote.empty() ? env().self : env().remote.back();
    ex.run(ex.move(which, target));
    CHECK(of.stat().nodes == std::vector{target});
    ex.run(ex.move(which, 0, 4096, 4096));
    const auto nodes = of.stat().nodes;
    CHECK(std::find(nodes.begin(), nodes.end(), env().self) != nodes.end());
    CHECK(ex.run(errno_of(ex.move(which, 0, 12288, 4096))) == ERANGE);
}

}  // namespace

TEST_CASE_METHOD(Everywhere, "async: words", "[uring]") {
    INFO(where.label);
    CHECK(ex.run(ex.fetch_add(there, 8, 5)) == 0);
    CHECK(ex.run(ex.compare_swap(there, 8, 5, 0xf0)) == 5);
    CHECK(ex.run(ex.compare_swap(there, 8, 5, 1)) == 0xf0);
    CHECK(ex.run(ex.fetch_or(there, 8, 0x0f)) == 0xf0);
    CHECK(ex.run(ex.fetch_and(there, 8, 0x3c)) == 0xff);
    CHECK(ex.run(ex.exchange(there, 8, 99)) == 0x3c);
    CHECK(ex.run(ex.load<std::uint64_t>(there, 8)) == 99);
    ex.run(ex.store(there, 8, std::uint64_t{100}));
    CHECK(there.load<std::uint64_t>(8) == 100);
    CHECK(there.load<std::uint64_t>(0) == 0);
    CHECK(there.load<std::uint64_t>(16) == 0);
    // An operation that is asked to stop before it begins does nothing.
    std::stop_source stop;
    stop.request_stop();
    const auto asked = stop.get_token();
    CHECK(ex.run(errno_of(ex.fetch_add(there, 8, 5, asked))) == ECANCELED);
    CHECK(ex.run(errno_of(ex.compare_swap(there, 8, 100, 5, asked))) == ECANCELED);
    CHECK(ex.run(errno_of(ex.exchange(there, 8, 5, asked))) == ECANCELED);
    CHECK(ex.run(errno_of(ex.fetch_and(there, 8, 0, asked))) == ECANCELED);
    CHECK(ex.run(errno_of(ex.fetch_or(there, 8, 5, asked))) == ECANCELED);
    CHECK(ex.run(errno_of(ex.set(there, 8, 8, bytes_of({5}), asked))) == ECANCELED);
    CHECK(ex.run(errno_of(ex.store(there, 8, std::uint64_t{5}, asked))) == ECANCELED);
    CHECK(there.load<std::uint64_t>(8) == 100);
    CHECK(ex.run(errno_of(ex.exchange(there, 4, 5))) == EINVAL);
    CHECK(ex.run(errno_of(ex.fetch_or(there, there.length(), 5))) == ERANGE);
}

TEST_CASE_METHOD(Everywhere, "async: operations where the memory is", "[uring]") {
    INFO(where.label);
    auto other = region(65536, {});
    const auto data = numbers(20000);
    there.write(100, data);
    ex.run(ex.copy(other, 200, there, 100, data.size()));
    CHECK(bytes_at(other, 200, data.size()) == data);
    CHECK(ex.run(ex.compare(there, 100, other, 200, data.size())) == data.size());
    other.store(200 + 12345, std::byte(~std::to_integer<unsigned>(data[12345]) & 0xff));
    CHECK(ex.run(ex.compare(there, 100, other, 200, data.size())) == 12345);
    CHECK(ex.run(ex.checksum(there, 100, data.size())) == there.checksum(100, data.size()));
    const auto seed = ex.run(ex.checksum(there, 100, 1000));
    CHECK(ex.run(ex.checksum(there, 1100, data.size() - 1000, seed)) ==
          there.checksum(100, data.size()));
    const std::array pattern{std::byte(1), std::byte(2), std::byte(3)};
    ex.run(ex.set(there, 7, 6, pattern));
    const std::vector<std::byte> wanted{std::byte(0), std::byte(1), std::byte(2), std::byte(3),
                                        std::byte(1), std::byte(2), std::byte(3), std::byte(0)};
    CHECK(bytes_at(there, 6, 8) == wanted);
    // An overlapping copy within one LMR.
    ex.run(ex.copy(there, 9, there, 7, 6));
    CHECK(bytes_at(there, 9, 6) == std::vector(wanted.begin() + 1, wanted.begin() + 7));
    CHECK(ex.run(errno_of(ex.copy(there, 65535, other, 0, 2))) == ERANGE);
    CHECK(ex.run(errno_of(ex.compare(there, 0, other.handle() + 1000, 0, 2))) == EBADF);
    CHECK(ex.run(errno_of(ex.checksum(there, 0, 0))) == EINVAL);
    CHECK(ex.run(errno_of(ex.set(there, 65535, 2, pattern))) == ERANGE);
}

TEST_CASE_METHOD(Everywhere, "async: many operations in one", "[uring]") {
    INFO(where.label);
    auto data = numbers(300);
    std::vector<std::byte> back(300);
    there.write(1000, data);
    std::array ops{
        lite::op::write(there, 5000, data),
        lite::op::read(there, 1000, back),
        lite::op::fetch_add(there, 8, 3),
        lite::op::fetch_add(there, 4, 3),
    };
    CHECK(ex.run(ex.submit(ops)) == 1);
    CHECK(back == data);
    CHECK(bytes_at(there, 5000, data.size()) == data);
    CHECK(ops[2].error == 0);
    CHECK(lite::error_of(ops[3]) == std::errc::invalid_argument);
    CHECK(there.load<std::uint64_t>(8) == 3);
    CHECK(ex.run(ex.submit({})) == 0);
    std::stop_source stop;
    stop.request_stop();
    CHECK(ex.run(errno_of(ex.submit(ops, stop.get_token()))) == ECANCELED);
    for (const lite_op& op : ops)
        CHECK(op.error == -ECANCELED);
    CHECK(there.load<std::uint64_t>(8) == 3);
    std::vector<lite_op> many(LITE_VECTOR_MAX + 1, ops[2]);
    CHECK(ex.run(errno_of(ex.submit(many))) == EINVAL);
    CHECK(many.back().error == -EINVAL);
}

TEST_CASE_METHOD(Everywhere, "async: LMRs come and go", "[uring]") {
    INFO(where.label);
    const std::string name = unique_name("async");
    const std::string other = unique_name("async-other");
    const lite::alloc_options options{.name = name, .length = 8192, .nodes = where.nodes};
    lite::region made = ex.run(ex.alloc(options));
    CHECK(made.length() == 8192);
    made.store(0, std::uint64_t{5});
    CHECK(ex.run(errno_of(ex.alloc(options))) == EEXIST);
    CHECK(ex.run(errno_of(ex.create(options))) == EEXIST);
    lite::region mapped = ex.run(ex.map(name, kAccess));
    CHECK(mapped.length() == 8192);
    CHECK(mapped.load<std::uint64_t>(0) == 5);
    CHECK(ex.run(errno_of(ex.map(other))) == ENOENT);
    const auto status = ex.run(ex.stat(name));
    CHECK(lite::name_of(status.info) == name);
    CHECK(status.nodes == made.stat().nodes);
    CHECK(is_listed(ex.run(ex.list()), name));
    const lite_lh_t handle = mapped.handle();
    ex.run(ex.unmap(mapped));
    CHECK_FALSE(mapped);
    CHECK(ex.run(errno_of(ex.stat(handle))) == EBADF);
    CHECK(ex.run(errno_of(ex.unmap(mapped))) == EBADF);
    ex.run(ex.rename(name, other));
    CHECK(ex.run(errno_of(ex.stat(name))) == ENOENT);
    ex.run(ex.rename(made, name));
    ex.run(ex.create({.name = other, .length = 4096}));
    CHECK(ex.run(errno_of(ex.rename(name, other))) == EEXIST);
    ex.run(ex.free(other));
    CHECK(ex.run(errno_of(ex.free(other))) == ENOENT);
    ex.run(ex.free(made));
    CHECK_FALSE(made);
    CHECK_FALSE(is_listed(ex.run(ex.list()), name));
    std::stop_source stop;
    stop.request_stop();
    CHECK(ex.run(errno_of(ex.alloc(options, stop.get_token()))) == ECANCELED);
    CHECK(ex.run(errno_of(ex.map(name, kAccess, stop.get_token()))) == ECANCELED);
    CHECK(ex.run(errno_of(ex.stat(name, stop.get_token()))) == ECANCELED);
    CHECK_FALSE(is_listed(lite::list(node), name));
}

TEST_CASE_METHOD(Async, "async: more LMRs than one batch of a list", "[uring]") {
    std::vector<lite::region> many;
    for (int i = 0; i < 150; i++)
        many.push_back(region(4096, {}));
    const auto all = ex.run(ex.list());
    for (const auto& one : many) {
        const auto id = one.stat().info.id;
        CHECK(std::count_if(all.begin(), all.end(), [&](const auto& info) {
                  return info.id == id && info.home == env().self;
              }) == 1);
    }
}

TEST_CASE_METHOD(Async, "async: LMRs are changed", "[uring]") {
    const std::string name = unique_name("async");
    auto by_handle = ex.run(ex.alloc({.length = 4096}));
    change(ex, by_handle, by_handle);
    CHECK(by_handle.length() == 12288);
    auto named = ex.run(ex.alloc({.name = name, .length = 4096}));
    change(ex, name, named);
    ex.run(ex.free(name));
}

TEST_CASE_METHOD(Async, "async: memory is registered", "[uring]") {
    Mapping memory(8192);
    {
        auto registered = ex.run(ex.register_memory(memory.bytes()));
        CHECK(registered->length() == 8192);
        registered->store(4096, std::uint64_t{77});
        std::uint64_t seen = 0;
        std::memcpy(&seen, memory.bytes().data() + 4096, sizeof(seen));
        CHECK(seen == 77);
        ex.run(ex.free(*registered));
        CHECK_FALSE(*registered);
    }
    CHECK(ex.run(errno_of(ex.register_memory(memory.bytes().subspan(1)))) == EINVAL);
}
