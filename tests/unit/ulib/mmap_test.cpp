// SPDX-License-Identifier: MIT
//
// Mapped LMRs and registered memory: the library's requests, and the ownership of its objects.

#include "fake_node.hpp"

#include <lite/lite.hpp>

#include "catch.hpp"
#include "code_of.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

static_assert(!std::is_copy_constructible_v<lite::memory_map>);
static_assert(std::is_nothrow_move_constructible_v<lite::memory_map>);
static_assert(std::is_nothrow_move_assignable_v<lite::memory_map>);
static_assert(!std::is_copy_constructible_v<lite::registration>);
static_assert(std::is_nothrow_move_constructible_v<lite::registration>);
static_assert(std::is_nothrow_move_assignable_v<lite::registration>);

namespace {

constexpr std::size_t page = 4096;

// Whole pages of this process.
struct pages {
    explicit pages(std::size_t n)
        : size(n * page),
          data(static_cast<std::byte*>(
              ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
        REQUIRE(data != MAP_FAILED);
    }
    pages(const pages&) = delete;
    pages& operator=(const pages&) = delete;
    ~pages() { ::munmap(data, size); }

    std::span<std::byte> bytes() const { return {data, size}; }

    std::size_t size;
    std::byte* data;
};

bool is_mapped(const void* at) {
    unsigned char there;
    return ::mincore(const_cast<void*>(at), page, &there) == 0;
}

}  // namespace

TEST_CASE("lite_mmap passes its arguments on", "[mmap]") {
    fake::cluster cluster;
    lite_ioc_mmap last{};
    cluster.intercept = [&](unsigned long request, void* arg) -> std::optional<int> {
        REQUIRE(request == LITE_IOC_MMAP);
        std::memcpy(&last, arg, sizeof(last));
        static_cast<lite_ioc_mmap*>(arg)->addr = 0x7000;
        return 0;
    };
    lite_ctx* ctx = cluster.open();
    void* at = nullptr;
    CHECK(lite_mmap(ctx, 77, 2 * page, 100, PROT_READ, LITE_MMAP_POPULATE, &at) == 0);
    CHECK(last.size == sizeof(last));
    CHECK(last.lh == 77);
    CHECK(last.offset == 2 * page);
    CHECK(last.length == 100);
    CHECK(last.prot == LITE_PROT_READ);
    CHECK(last.flags == LITE_MMAP_POPULATE);
    CHECK(last.reserved == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(at) == 0x7000);

    cluster.intercept = [](unsigned long, void*) { return -EREMOTE; };
    void* untouched = ctx;
    CHECK(lite_mmap(ctx, 77, 0, 100, PROT_READ, 0, &untouched) == -EREMOTE);
    CHECK(untouched == ctx);
    lite_close(ctx);
}

TEST_CASE("lite_register passes its arguments on", "[mmap]") {
    fake::cluster cluster;
    lite_ioc_register last{};
    cluster.intercept = [&](unsigned long request, void* arg) -> std::optional<int> {
        REQUIRE(request == LITE_IOC_REGISTER);
        std::memcpy(&last, arg, sizeof(last));
        static_cast<lite_ioc_register*>(arg)->lh = 78;
        return 0;
    };
    lite_ctx* ctx = cluster.open();
    const pages memory(3);
    lite_lh_t lh = 0;
    CHECK(lite_register(ctx, "mine", memory.data, memory.size, 0640, &lh) == 0);
    CHECK(last.size == sizeof(last));
    CHECK(last.addr == reinterpret_cast<std::uintptr_t>(memory.data));
    CHECK(last.length == memory.size);
    CHECK(last.mode == 0640);
    CHECK(last.flags == 0);
    CHECK(last.name == std::string("mine"));
    CHECK(lh == 78);
    CHECK(lite_register(ctx, nullptr, memory.data, memory.size, 0, &lh) == 0);
    CHECK(last.name[0] == '\0');
    const std::string too_long(LITE_NAME_SIZE, 'n');
    CHECK(lite_register(ctx, too_long.c_str(), memory.data, memory.size, 0, &lh) == -ENAMETOOLONG);
    cluster.intercept = nullptr;
    lite_close(ctx);
}

TEST_CASE("a memory_map owns its pages", "[mmap]") {
    fake::cluster cluster;
    auto node = cluster.context();
    auto lmr = node.alloc({.name = "mapped", .length = 3 * page});
    lmr.store<std::uint32_t>(page + 4, 0x12345678);
    const std::byte* at = nullptr;
    {
        auto map = lmr.mmap(page, 2 * page);
        at = map.data();
        REQUIRE(map);
        CHECK(map.size() == 2 * page);
        CHECK(map.as<std::uint32_t>().size() == 2 * page / 4);
        CHECK(map.as<std::uint32_t>()[1] == 0x12345678);
        auto moved = std::move(map);
        CHECK_FALSE(map);  // NOLINT(bugprone-use-after-move)
        CHECK(map.bytes().empty());
        CHECK(moved.data() == at);
        CHECK(is_mapped(at));
        map = std::move(moved);
        CHECK(map.data() == at);
    }
    CHECK_FALSE(is_mapped(at));
    CHECK(lmr.mmap().size() == 3 * page);

    lmr.unmap();
    CHECK(code_of([&] { (void)lmr.mmap(); }) == EBADF);
    const auto reader = node.map("mapped", lite::rights::read);
    CHECK(code_of([&] { (void)reader.mmap(); }) == EACCES);
    CHECK(code_of([&] { (void)reader.mmap(0, page, lite::protection::read); }) == 0);
    CHECK(code_of([&] { (void)reader.mmap(1, page, lite::protection::read); }) == EINVAL);
    CHECK(code_of([&] { (void)reader.mmap(page, 3 * page, lite::protection::read); }) == ERANGE);
    node.alloc({.name = "far", .length = page, .nodes = {2}}).release();
    CHECK(code_of([&] { (void)node.map("far").mmap(); }) == EREMOTE);
}

TEST_CASE("a registration frees its LMR", "[mmap]") {
    fake::cluster cluster;
    auto node = cluster.context();
    const pages memory(4);
    std::memset(memory.data, 7, memory.size);
    {
        auto mine = node.register_memory(memory.bytes(), "mine", 0644);
        REQUIRE(cluster.find("mine"));
        CHECK(cluster.find("mine")->info.mode == 0644);
        CHECK(mine->length() == memory.size);
        CHECK(mine->load<std::uint8_t>(page) == 7);
        CHECK(code_of([&] { (void)node.register_memory(memory.bytes(), "mine"); }) == EEXIST);
        // The LMR has exactly these pages, so it cannot be resized or moved.
        CHECK(code_of([&] { mine->resize(page); }) == EOPNOTSUPP);
        CHECK(code_of([&] { mine->move(2); }) == EOPNOTSUPP);
        auto moved = std::move(mine);
        CHECK((*moved).handle() != 0);
        CHECK(cluster.find("mine"));
        // Assignment frees the previous LMR.
        moved = node.register_memory(memory.bytes().first(page), "other");
        CHECK_FALSE(cluster.find("mine"));
        CHECK(cluster.find("other"));
    }
    CHECK_FALSE(cluster.find("other"));
    CHECK(cluster.open_handles() == 0);

    auto kept = node.register_memory(memory.bytes(), "kept").release();
    CHECK(cluster.find("kept"));
    kept.free();
    {
        // If the LMR is freed elsewhere, the destructor ignores the error.
        const auto gone = node.register_memory(memory.bytes(), "gone");
        node.free("gone");
    }
    CHECK(cluster.open_handles() == 0);
    CHECK(code_of([&] { (void)node.register_memory(memory.bytes().subspan(1)); }) == EINVAL);
}
