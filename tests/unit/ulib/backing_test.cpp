// SPDX-License-Identifier: MIT
//
// Memory of LMRs with LITE_ALLOC_UNPINNED: when it goes, and what forks do to it.

#include "child.hpp"
#include "fake_node.hpp"

#include <lite/lite.h>
#include <lite/uring.h>

#include "catch.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace {

constexpr std::size_t size = 1 << 16;
constexpr lite_lh_t unknown = 1;

// A node that allows unpinned LMRs. Unmapping handle @unknown touches nothing of the fake, so that
// a thread may do it beside others.
struct machine {
    machine() {
        cluster.intercept = [this](unsigned long request, void* arg) -> std::optional<int> {
            if (request == LITE_IOC_REGISTER) {
                auto& what = *static_cast<lite_ioc_register*>(arg);
                what.flags = 0;
                memory = reinterpret_cast<void*>(static_cast<std::uintptr_t>(what.addr));
            }
            if (refusing && (request == LITE_IOC_REGISTER || request == LITE_IOC_MAP))
                return request == LITE_IOC_MAP ? -EACCES : -EEXIST;
            if (request == LITE_IOC_UNMAP && static_cast<lite_ioc_unmap*>(arg)->lh == unknown)
                return -EBADF;
            frees += request == LITE_IOC_FREE;
            stats += request == LITE_IOC_STAT;
            if (request == LITE_IOC_FREE && not_ours &&
                static_cast<lite_ioc_free*>(arg)->lh == not_ours)
                return -EACCES;
            return std::nullopt;
        };
        ctx = cluster.open();
    }
    machine(const machine&) = delete;
    machine& operator=(const machine&) = delete;
    ~machine() { lite_close(ctx); }

    lite_lh_t alloc(const char* name) const {
        lite_alloc_params params = {};
        params.size = sizeof(params);
        params.flags = LITE_ALLOC_UNPINNED;
        params.name = name;
        params.length = size;
        params.mode = 0600;
        lite_lh_t lh = 0;
        return lite_alloc(ctx, &params, &lh) ? 0 : lh;
    }

    lite_lh_t map(const char* name) const {
        lite_lh_t lh = 0;
        return lite_map(ctx, name, LITE_RIGHT_MASTER, &lh, nullptr) ? 0 : lh;
    }

    fake::cluster cluster;
    lite_ctx* ctx;
    void* memory = nullptr;  // of the last LMR
    int frees = 0;
    int stats = 0;
    lite_lh_t not_ours = 0;  // another user has got this handle's LMR
    bool refusing = false;   // no more handles of LMRs; their memory is in use
};

bool is_mapped(void* memory) {
    unsigned char resident = 0;
    return ::mincore(memory, 1, &resident) == 0;
}

}  // namespace

TEST_CASE("unpinned memory goes with its LMR", "[liblite]") {
    machine node;
    const auto lh = node.alloc("t");
    REQUIRE(lh);
    CHECK(is_mapped(node.memory));
    SECTION("by its handle") { CHECK(lite_free(node.ctx, lh) == 0); }
    SECTION("by its name") { CHECK(lite_free_name(node.ctx, "t") == 0); }
    SECTION("by another handle") {
        const auto other = node.map("t");
        CHECK(lite_free(node.ctx, other) == 0);
    }
    SECTION("by another handle, after its own was closed") {
        CHECK(lite_unmap(node.ctx, lh) == 0);
        CHECK(is_mapped(node.memory));
        CHECK(lite_free(node.ctx, node.map("t")) == 0);
    }
    SECTION("freed by another user; by another handle") {
        const auto other = node.map("t");
        lite_ctx* user = node.cluster.open();
        CHECK(lite_free_name(user, "t") == 0);
        lite_close(user);
        CHECK(is_mapped(node.memory));
        CHECK(lite_free(node.ctx, other) == -EIDRM);
        CHECK(lite_unmap(node.ctx, other) == 0);
    }
    SECTION("by a command of io_uring") {
        lite_ctx* user = node.cluster.open();
        CHECK(lite_free_name(user, "t") == 0);
        lite_close(user);
        lite_uring_freed(node.ctx, lh, -EINTR);
        CHECK(is_mapped(node.memory));
        lite_uring_freed(node.ctx, lh, 0);
    }
    CHECK(!is_mapped(node.memory));
}

TEST_CASE("closing with the handle of an LMR that another user has got, and freed", "[liblite]") {
    machine node;
    const auto lh = node.alloc("t");
    REQUIRE(lh);
    node.alloc("other");
    void* const memory = node.memory;
    node.not_ours = lh;
    lite_ctx* user = node.cluster.open();
    REQUIRE(lite_free_name(user, "t") == 0);
    lite_close(user);
    node.stats = 0;
    lite_close(std::exchange(node.ctx, node.cluster.open()));
    CHECK_FALSE(is_mapped(memory));
    // No block is looked up while all are being ended: that would destroy it.
    CHECK(node.stats == 0);
}

TEST_CASE("unpinned memory is no longer than a file may be", "[liblite]") {
    machine node;
    const int result = in_child([&] {
        const rlimit limit = {size / 2, size / 2};
        return !::setrlimit(RLIMIT_FSIZE, &limit) && !node.alloc("t") ? 0 : 1;
    });
    CHECK(result == 0);
}

TEST_CASE("unpinned memory stays if its LMR may live on", "[liblite]") {
    machine node;
    const auto lh = node.alloc("t");
    REQUIRE(lh);
    void* const memory = node.memory;
    lite_alloc_params params = {};
    params.size = sizeof(params);
    params.flags = LITE_ALLOC_NO_HANDLE;
    params.name = "other";
    params.length = size;
    params.mode = 0600;
    REQUIRE(lite_alloc(node.ctx, &params, nullptr) == 0);
    SECTION("without a handle: another LMR is freed by its name") {
        node.refusing = true;
        CHECK(lite_unmap(node.ctx, lh) == 0);
        CHECK(lite_free_name(node.ctx, "other") == 0);
        CHECK(is_mapped(memory));
    }
    SECTION("its handle was not closed") {
        const auto before = node.cluster.open_handles();
        lite_uring_unmapping(node.ctx, lh);
        lite_uring_unmapped(node.ctx, lh, -ECANCELED);
        CHECK(is_mapped(memory));
        CHECK(lite_free(node.ctx, lh) == 0);
        CHECK_FALSE(is_mapped(memory));
        CHECK(node.cluster.open_handles() == before - 1);
    }
}

TEST_CASE("a child may close handles while a thread of its parent does", "[liblite]") {
    machine node;
    SECTION("without unpinned memory") {}
    SECTION("with unpinned memory") { REQUIRE(node.alloc("t")); }
    std::atomic<bool> enough = false;
    std::thread other([&] {
        while (!enough)
            lite_unmap(node.ctx, unknown);
    });
    bool ended = true;
    for (int i = 0; ended && i < 500; i++)
        ended = in_child([&] {
                    ::alarm(100);
                    if (lite_unmap(node.ctx, unknown) != -EBADF)
                        return 1;
                    const auto mine = i % 2 ? node.alloc("of the child") : 0;
                    if (i % 2 && (!mine || lite_free(node.ctx, mine) || is_mapped(node.memory)))
                        return 2;
                    lite_close(node.ctx);
                    return 0;
                }) == 0;
    enough = true;
    other.join();
    CHECK(ended);
}

TEST_CASE("a child with the process id of its parent leaves unpinned memory alone", "[liblite]") {
    machine node;
    const int result = in_child_of_same_pid(
        [&] {
            node.alloc("t");
            return node.memory;
        },
        [&](void* memory) {
            // The child maps something else at the address.
            if (is_mapped(memory) ||
                ::mmap(memory, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                       -1, 0) != memory)
                return 1;
            lite_close(node.ctx);
            return is_mapped(memory) && node.frees == 0 ? 0 : 2;
        });
    if (result == no_namespaces)
        WARN("skipped: namespaces cannot be made here");
    else
        CHECK(result == 0);
}
