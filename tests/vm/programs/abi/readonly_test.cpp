// SPDX-License-Identifier: MIT
// What a program can do with a read-only descriptor of the device; and invalid time-outs.
#include "fixture.hpp"

#include <lite/lite.h>

#include <memory>
#include <string>

using namespace lite_test;

namespace {

using Closer = decltype([](lite_ctx* ctx) { lite_close(ctx); });

std::unique_ptr<lite_ctx, Closer> reader() {
    lite_ctx* ctx = nullptr;
    REQUIRE(lite_open_readonly(static_cast<int>(env().indexes.front()), &ctx) == 0);
    return std::unique_ptr<lite_ctx, Closer>(ctx);
}

}  // namespace

TEST_CASE_METHOD(Abi, "read-only: the descriptor allows queries, and no changes", "[readonly]") {
    const NamedLmr lmr(dev, kLength, {}, 0666, "looked-at");
    const auto& name = lmr.name();
    const std::array<std::byte, 8> bytes{std::byte{1}, std::byte{2}};
    dev.write(lmr.lh(), 0, bytes);
    const auto ctx = reader();
    auto* look = ctx.get();

    lite_lh_t lh = 0;
    std::array<std::byte, 8> buf{};
    lite_lmr_info info{};
    lite_ioc_query query{};
    lite_ioc_rpc_find found{};
    std::uint32_t n_grants = 0;
    std::uint32_t crc = 0;
    REQUIRE(lite_map(look, name.c_str(), LITE_RIGHT_READ, &lh, nullptr) == 0);
    CHECK(lite_read(look, lh, 0, buf.data(), buf.size()) == 0);
    CHECK(buf == bytes);
    CHECK(lite_checksum(look, lh, 0, kLength, 0, &crc) == 0);
    CHECK(lite_query(look, &query) == 0);
    CHECK(lite_stat(look, lh, &info, nullptr, nullptr) == 0);
    CHECK(lite_grants(look, lh, nullptr, &n_grants) == 0);
    CHECK(lite_rpc_find(look, 0, "none", &found) == -ECONNREFUSED);

    // This user owns the LMR and is root, but this descriptor gives no access.
    lite_lh_t more = 0;
    for (const std::uint32_t right :
         {LITE_RIGHT_WRITE, LITE_RIGHT_ATOMIC, LITE_RIGHT_SHARE, LITE_RIGHT_MASTER})
        CHECK(lite_map(look, name.c_str(), LITE_RIGHT_READ | right, &more, nullptr) == -EACCES);
    lite_alloc_params params{};
    params.size = sizeof(params);
    params.length = kPage;
    CHECK(lite_alloc(look, &params, &more) == -EACCES);
    CHECK(lite_write(look, lh, 0, buf.data(), buf.size()) == -EACCES);
    CHECK(lite_fetch_add(look, lh, 0, 1, nullptr) == -EACCES);
    CHECK(lite_set(look, lh, 0, 8, "x", 1) == -EACCES);
    CHECK(lite_lock(look, lh, 8, 1, 0, LITE_NOWAIT) == -EACCES);
    CHECK(lite_barrier(look, lh, 8, 1, LITE_NOWAIT) == -EACCES);
    CHECK(lite_free(look, lh) == -EACCES);
    CHECK(lite_free_name(look, name.c_str()) == -EACCES);
    CHECK(lite_chmod_name(look, name.c_str(), 0600) == -EACCES);
    CHECK(lite_rename_name(look, name.c_str(), "mine") == -EACCES);
    CHECK(lite_resize_name(look, name.c_str(), kPage) == -EACCES);
    CHECK(lite_move_name(look, name.c_str(), 0, 0, 0, nullptr) == -EACCES);
    CHECK(lite_grant_set_name(look, name.c_str(), 1000, 0, LITE_RIGHT_READ) == -EACCES);
    CHECK(lite_rpc_call(look, 0, LITE_FUNCTION_MAX, nullptr, 0, nullptr, 0, nullptr, 10, nullptr) ==
          -EACCES);
    lite_rpc_params function{};
    function.size = sizeof(function);
    CHECK(lite_rpc_register(look, &function, nullptr) == -EACCES);

    dev.read(lmr.lh(), 0, buf);
    CHECK(buf == bytes);
    CHECK(lite_unmap(look, lh) == 0);
}

TEST_CASE_METHOD(AbiWithLmr, "time-outs: invalid ones are EINVAL, LITE_NOWAIT does not wait",
                 "[readonly]") {
    lite_ctx* opened = nullptr;
    REQUIRE(lite_open(static_cast<int>(env().indexes.front()), &opened) == 0);
    const std::unique_ptr<lite_ctx, Closer> ctx(opened);
    lite_lh_t own = 0;
    lite_alloc_params params{};
    params.size = sizeof(params);
    params.length = kPage;
    params.mode = 0600;
    REQUIRE(lite_alloc(opened, &params, &own) == 0);
    lite_rpc_params function{};
    function.size = sizeof(function);
    function.max_request = function.max_reply = 8;
    std::uint32_t number = 0;
    REQUIRE(lite_rpc_register(opened, &function, &number) == 0);
    std::array<std::byte, 8> at{};
    lite_rpc_request request{};
    lite_rpc_result result{};

    for (const int none : {-3, LITE_TIMEOUT_MAX + 1}) {
        INFO("time-out " << none);
        CHECK(lite_lock(opened, own, 0, 1, 0, none) == -EINVAL);
        CHECK(lite_barrier(opened, own, 8, 1, none) == -EINVAL);
        CHECK(lite_rpc_recv(opened, number, at.data(), at.size(), none, &request) == -EINVAL);
        CHECK(lite_rpc_collect(opened, nullptr, 0, none, &result) == -EINVAL);
        CHECK(lite_rpc_call(opened, 0, number, nullptr, 0, nullptr, 0, nullptr, none, nullptr) ==
              -EINVAL);
        CHECK(lite_rpc_send(opened, 0, number, nullptr, 0, none) == -EINVAL);
    }
    REQUIRE(lite_lock(opened, own, 0, 1, 0, LITE_TIMEOUT_DEFAULT) == 0);
    CHECK(lite_lock(opened, own, 0, 2, 0, LITE_NOWAIT) == -EBUSY);
    CHECK(lite_lock(opened, own, 0, 2, LITE_LOCK_TRY, LITE_FOREVER) == -EBUSY);
    CHECK(lite_unlock(opened, own, 0, 1) == 0);
    CHECK(lite_barrier(opened, own, 8, 2, LITE_NOWAIT) == -EAGAIN);
    CHECK(lite_barrier(opened, own, 8, 1, LITE_FOREVER) == 0);
    CHECK(lite_rpc_recv(opened, number, at.data(), at.size(), LITE_NOWAIT, &request) == -EAGAIN);
}
