// SPDX-License-Identifier: MIT
//
// The C API: the structures of the ABI that it fills in, and the results that it takes from them.

#include "fake_node.hpp"
#include "recording.hpp"

#include <lite/lite.h>
#include <lite/order.h>

#include "catch.hpp"

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

namespace {

lite_alloc_params params_for(const char* name, uint64_t length) {
    lite_alloc_params params{};
    params.size = sizeof(params);
    params.name = name;
    params.length = length;
    params.mode = 0640;
    return params;
}

class environment_variable {
  public:
    explicit environment_variable(const char* value) { ::setenv("LITE_INDEX", value, 1); }
    environment_variable(const environment_variable&) = delete;
    environment_variable& operator=(const environment_variable&) = delete;
    ~environment_variable() { ::unsetenv("LITE_INDEX"); }
};

const std::string name_255(255, 'n');
const std::string name_256(256, 'n');

}  // namespace

TEST_CASE("lite_open refuses impossible nodes", "[liblite]") {
    lite_ctx* ctx = nullptr;
    CHECK(lite_open(-2, &ctx) == -EINVAL);
    CHECK(lite_open(INT_MIN, &ctx) == -EINVAL);
    CHECK(lite_open(INT_MAX, &ctx) == -EINVAL);
    // No machine has so many nodes.
    CHECK(lite_open((1 << 20) - 1, &ctx) == -ENODEV);
    CHECK(ctx == nullptr);
    lite_close(nullptr);
}

TEST_CASE("lite_open takes the index from the environment", "[liblite]") {
    lite_ctx* ctx = nullptr;
    for (const char* bad : {"x", "1x", "-1", " 1", "0x1", "99999999999", "1048576"}) {
        const environment_variable variable(bad);
        CAPTURE(bad);
        CHECK(lite_open(-1, &ctx) == -EINVAL);
    }
    const environment_variable variable("1048575");
    CHECK(lite_open(-1, &ctx) == -ENODEV);
}

TEST_CASE("lite_fd is the device's", "[liblite]") {
    const recording<lite_ioc_query> node;
    CHECK(lite_fd(node.ctx) == 7);
}

TEST_CASE("lite_query", "[liblite]") {
    lite_ioc_query answer{};
    answer.node_id = 3;
    answer.mem_limit = 1 << 20;
    const recording<lite_ioc_query> node(answer);
    lite_ioc_query out;
    std::memset(&out, 0xaa, sizeof(out));
    REQUIRE(lite_query(node.ctx, &out) == 0);
    CHECK(node.request == LITE_IOC_QUERY);
    CHECK(node.last.size == sizeof(lite_ioc_query));
    CHECK(node.last.flags == 0);
    CHECK(out.node_id == 3);
    CHECK(out.mem_limit == 1 << 20);

    const recording<lite_ioc_query> gone({}, -ENODEV);
    out.node_id = 9;
    CHECK(lite_query(gone.ctx, &out) == -ENODEV);
    CHECK(out.node_id == 9);
}

TEST_CASE("lite_alloc passes everything on", "[liblite]") {
    lite_ioc_alloc answer{};
    answer.lh = 0x1122334455667788;
    const recording<lite_ioc_alloc> node(answer);
    const std::array<uint32_t, 3> nodes{2, 3, 5};
    auto params = params_for("table", 12345);
    params.nodes = nodes.data();
    params.n_nodes = nodes.size();

    lite_lh_t lh = 0;
    REQUIRE(lite_alloc(node.ctx, &params, &lh) == 0);
    CHECK(node.request == LITE_IOC_ALLOC);
    CHECK(node.last.size == sizeof(lite_ioc_alloc));
    CHECK(node.last.flags == 0);
    CHECK(node.last.length == 12345);
    CHECK(node.last.nodes == reinterpret_cast<uintptr_t>(nodes.data()));
    CHECK(node.last.n_nodes == 3);
    CHECK(node.last.mode == 0640);
    CHECK(node.last.lh == 0);
    CHECK(std::string(node.last.name) == "table");
    CHECK(lh == 0x1122334455667788);
}

TEST_CASE("lite_alloc makes anonymous LMRs for no name and for an empty name", "[liblite]") {
    for (const char* name : {static_cast<const char*>(nullptr), ""}) {
        const recording<lite_ioc_alloc> node;
        const auto params = params_for(name, 1);
        lite_lh_t lh;
        REQUIRE(lite_alloc(node.ctx, &params, &lh) == 0);
        CHECK(node.last.name[0] == 0);
    }
}

TEST_CASE("lite_alloc without a handle leaves the output alone", "[liblite]") {
    const recording<lite_ioc_alloc> node;
    auto params = params_for("x", 1);
    params.flags = LITE_ALLOC_NO_HANDLE;
    lite_lh_t lh = 77;
    CHECK(lite_alloc(node.ctx, &params, &lh) == 0);
    CHECK(lh == 77);
    CHECK(node.last.flags == LITE_ALLOC_NO_HANDLE);
    CHECK(lite_alloc(node.ctx, &params, nullptr) == 0);
    params.flags = 0;
    CHECK(lite_alloc(node.ctx, &params, nullptr) == -EINVAL);
}

TEST_CASE("lite_alloc takes parameters of other versions", "[liblite]") {
    const recording<lite_ioc_alloc> node;
    lite_lh_t lh;
    auto params = params_for("x", 1);

    params.size = sizeof(params) - 4;  // lacks a field of the first version
    CHECK(lite_alloc(node.ctx, &params, &lh) == -EINVAL);
    params.size = 0;
    CHECK(lite_alloc(node.ctx, &params, &lh) == -EINVAL);

    struct {
        lite_alloc_params known;
        uint64_t news;
    } longer{params_for("y", 2), 0};
    longer.known.size = sizeof(longer);
    CHECK(lite_alloc(node.ctx, &longer.known, &lh) == 0);
    CHECK(std::string(node.last.name) == "y");
    longer.news = 1;
    CHECK(lite_alloc(node.ctx, &longer.known, &lh) == -E2BIG);
    // An impossible size: memory beyond the structure is not read.
    struct {
        lite_alloc_params known;
        std::array<std::byte, 8192> zeroes;
    } garbage{params_for("z", 2), {}};
    garbage.known.size = sizeof(garbage);
    CHECK(lite_alloc(node.ctx, &garbage.known, &lh) == -E2BIG);
}

TEST_CASE("names are checked before the kernel sees them", "[liblite]") {
    const recording<lite_ioc_alloc> node;  // large enough for any request
    auto params = params_for(name_256.c_str(), 1);
    lite_lh_t lh = 0;
    lite_lmr_info info;

    CHECK(lite_alloc(node.ctx, &params, &lh) == -ENAMETOOLONG);
    CHECK(lite_map(node.ctx, name_256.c_str(), LITE_RIGHT_READ, &lh, nullptr) == -ENAMETOOLONG);
    CHECK(lite_free_name(node.ctx, name_256.c_str()) == -ENAMETOOLONG);
    CHECK(lite_stat_name(node.ctx, name_256.c_str(), &info, nullptr, nullptr) == -ENAMETOOLONG);
    for (const char* none : {"", static_cast<const char*>(nullptr)}) {
        CHECK(lite_map(node.ctx, none, LITE_RIGHT_READ, &lh, nullptr) == -EINVAL);
        CHECK(lite_free_name(node.ctx, none) == -EINVAL);
        CHECK(lite_stat_name(node.ctx, none, &info, nullptr, nullptr) == -EINVAL);
    }
    CHECK(node.request == 0);

    params.name = name_255.c_str();
    CHECK(lite_alloc(node.ctx, &params, &lh) == 0);
    CHECK(node.last.name == name_255);
}

TEST_CASE("lite_map", "[liblite]") {
    lite_ioc_map answer{};
    answer.lh = 5;
    answer.length = 4096;
    const recording<lite_ioc_map> node(answer);
    lite_lh_t lh = 0;
    uint64_t length = 0;
    REQUIRE(lite_map(node.ctx, "a", LITE_RIGHT_READ | LITE_RIGHT_ATOMIC, &lh, &length) == 0);
    CHECK(node.request == LITE_IOC_MAP);
    CHECK(node.last.size == sizeof(lite_ioc_map));
    CHECK(node.last.rights == 5);
    CHECK(lh == 5);
    CHECK(length == 4096);
    CHECK(lite_map(node.ctx, "a", LITE_RIGHT_READ, &lh, nullptr) == 0);

    const recording<lite_ioc_map> refusing(answer, -EACCES);
    lh = 0;
    length = 1;
    CHECK(lite_map(refusing.ctx, "a", LITE_RIGHT_READ, &lh, &length) == -EACCES);
    CHECK(lh == 0);
    CHECK(length == 1);
}

TEST_CASE("lite_unmap and lite_free", "[liblite]") {
    const recording<lite_ioc_unmap> unmap;
    CHECK(lite_unmap(unmap.ctx, 9) == 0);
    CHECK(unmap.request == LITE_IOC_UNMAP);
    CHECK(unmap.last.lh == 9);

    const recording<lite_ioc_free> node;
    // The kernel would take handle 0 for a request by name.
    CHECK(lite_free(node.ctx, 0) == -EBADF);
    CHECK(node.request == 0);
    CHECK(lite_free(node.ctx, 9) == 0);
    CHECK(node.request == LITE_IOC_FREE);
    CHECK(node.last.lh == 9);
    CHECK(node.last.name[0] == 0);
    CHECK(lite_free_name(node.ctx, "nine") == 0);
    CHECK(node.last.lh == 0);
    CHECK(std::string(node.last.name) == "nine");
}

TEST_CASE("lite_read and lite_write", "[liblite]") {
    const recording<lite_op> node;
    char buf[16];
    CHECK(lite_read(node.ctx, 3, 100, buf, sizeof(buf)) == 0);
    CHECK(node.request == LITE_IOC_OP);
    CHECK(node.last.size == sizeof(lite_op));
    CHECK(node.last.opcode == LITE_OP_READ);
    CHECK(node.last.lh == 3);
    CHECK(node.last.offset == 100);
    CHECK(node.last.length == sizeof(buf));
    CHECK(node.last.buf == reinterpret_cast<uintptr_t>(buf));
    CHECK(node.last.flags == 0);
    CHECK(node.last.operand == 0);

    CHECK(lite_write(node.ctx, 4, UINT64_MAX, buf, 1) == 0);
    CHECK(node.last.opcode == LITE_OP_WRITE);
    CHECK(node.last.lh == 4);
    CHECK(node.last.offset == UINT64_MAX);
    CHECK(node.last.length == 1);
}

TEST_CASE("lite_fetch_add and lite_cmp_swap", "[liblite]") {
    lite_op answer{};
    answer.result = 41;
    const recording<lite_op> node(answer);
    uint64_t old = 0;
    CHECK(lite_fetch_add(node.ctx, 3, 8, 5, &old) == 0);
    CHECK(old == 41);
    CHECK(node.last.opcode == LITE_OP_FETCH_ADD);
    CHECK(node.last.length == 8);
    CHECK(node.last.buf == 0);
    CHECK(node.last.operand == 5);
    CHECK(node.last.swap == 0);
    CHECK(lite_fetch_add(node.ctx, 3, 8, 5, nullptr) == 0);

    CHECK(lite_cmp_swap(node.ctx, 3, 16, 1, 2, &old) == 0);
    CHECK(node.last.opcode == LITE_OP_CMP_SWAP);
    CHECK(node.last.offset == 16);
    CHECK(node.last.operand == 1);
    CHECK(node.last.swap == 2);

    const recording<lite_op> failing(answer, -ERANGE);
    old = 7;
    CHECK(lite_fetch_add(failing.ctx, 3, 8, 5, &old) == -ERANGE);
    CHECK(old == 7);
}

TEST_CASE("lite_swap, lite_fetch_and, lite_fetch_or", "[liblite]") {
    lite_op answer{};
    answer.result = 41;
    const recording<lite_op> node(answer);
    struct {
        int (*call)(lite_ctx*, lite_lh_t, uint64_t, uint64_t, uint64_t*) noexcept;
        lite_opcode opcode;
    } const calls[] = {{lite_swap, LITE_OP_SWAP},
                       {lite_fetch_and, LITE_OP_FETCH_AND},
                       {lite_fetch_or, LITE_OP_FETCH_OR}};
    for (const auto& [call, opcode] : calls) {
        uint64_t old = 0;
        CHECK(call(node.ctx, 3, 8, 5, &old) == 0);
        CHECK(old == 41);
        CHECK(node.last.opcode == opcode);
        CHECK(node.last.lh == 3);
        CHECK(node.last.offset == 8);
        CHECK(node.last.length == 8);
        CHECK(node.last.operand == 5);
        CHECK(node.last.swap == 0);
        CHECK(call(node.ctx, 3, 8, 5, nullptr) == 0);
    }
}

TEST_CASE("lite_set, lite_copy, lite_compare, lite_checksum, lite_fence", "[liblite]") {
    lite_op answer{};
    answer.result = 41;
    const recording<lite_op> node(answer);
    CHECK(lite_set(node.ctx, 3, 7, 100, "\x01\x02\xff", 3) == 0);
    CHECK(node.last.opcode == LITE_OP_SET);
    CHECK(node.last.lh == 3);
    CHECK(node.last.offset == 7);
    CHECK(node.last.length == 100);
    CHECK(node.last.operand == 0xff0201);
    CHECK(node.last.swap == 3);
    CHECK(lite_set(node.ctx, 3, 7, 100, "12345678", 8) == 0);
    CHECK(node.last.operand == 0x3837363534333231);
    CHECK(lite_set(node.ctx, 3, 7, 100, "", 0) == -EINVAL);
    CHECK(lite_set(node.ctx, 3, 7, 100, "123456789", 9) == -EINVAL);

    CHECK(lite_copy(node.ctx, 3, 7, 4, 8, 100) == 0);
    CHECK(node.last.opcode == LITE_OP_COPY);
    CHECK(node.last.lh == 3);
    CHECK(node.last.offset == 7);
    CHECK(node.last.operand == 4);
    CHECK(node.last.swap == 8);
    CHECK(node.last.length == 100);

    uint64_t equal = 0;
    CHECK(lite_compare(node.ctx, 3, 7, 4, 8, 100, &equal) == 0);
    CHECK(node.last.opcode == LITE_OP_COMPARE);
    CHECK(node.last.operand == 4);
    CHECK(node.last.swap == 8);
    CHECK(equal == 41);

    uint32_t crc = 0;
    CHECK(lite_checksum(node.ctx, 3, 7, 100, 0xffffffff, &crc) == 0);
    CHECK(node.last.opcode == LITE_OP_CHECKSUM);
    CHECK(node.last.operand == 0xffffffff);
    CHECK(node.last.swap == 0);
    CHECK(crc == 41);

    CHECK(lite_fence(node.ctx, 3) == 0);
    CHECK(node.last.opcode == LITE_OP_FENCE);
    CHECK(node.last.lh == 3);
    CHECK(node.last.length == 0);

    const recording<lite_op> failing(answer, -ERANGE);
    CHECK(lite_fence(failing.ctx, 0) == -ERANGE);
    CHECK(lite_compare(failing.ctx, 3, 7, 4, 8, 100, &(equal = 7)) == -ERANGE);
    CHECK(lite_checksum(failing.ctx, 3, 7, 100, 0, &(crc = 7)) == -ERANGE);
    CHECK(equal == 7);
    CHECK(crc == 7);
}

TEST_CASE("lite_op_submit reports the bytes transferred before a failure", "[liblite]") {
    fake::cluster cluster;
    const auto context = cluster.context();
    auto params = params_for("x", 100);
    params.mode = 0600;
    lite_lh_t lh = 0;
    REQUIRE(lite_alloc(context.get(), &params, &lh) == 0);
    cluster.fail_op(LITE_OP_WRITE, ETIMEDOUT, 30);
    char buf[100] = {};
    lite_op op{};
    op.opcode = LITE_OP_WRITE;
    op.lh = lh;
    op.buf = reinterpret_cast<uintptr_t>(buf);
    op.length = sizeof(buf);
    op.result = 99;
    CHECK(lite_op_submit(context.get(), &op) == -ETIMEDOUT);
    CHECK(op.result == 30);

    // An operation that the kernel refused has moved no bytes.
    op.lh = 1;
    op.result = 99;
    CHECK(lite_op_submit(context.get(), &op) == -EBADF);
    CHECK(op.result == 0);
}

TEST_CASE("lite_stat and lite_stat_name", "[liblite]") {
    fake::cluster cluster;
    const auto context = cluster.context();
    lite_ctx* ctx = context.get();
    const std::array<uint32_t, 3> where{2, 3, 4};
    auto params = params_for("spread", 100);
    params.nodes = where.data();
    params.n_nodes = where.size();
    lite_lh_t lh = 0;
    REQUIRE(lite_alloc(ctx, &params, &lh) == 0);

    lite_lmr_info info{};
    std::array<uint32_t, 4> nodes{};
    uint32_t n = nodes.size();
    REQUIRE(lite_stat_name(ctx, "spread", &info, nodes.data(), &n) == 0);
    CHECK(info.home == 2);
    CHECK(n == 3);
    CHECK(nodes == std::array<uint32_t, 4>{2, 3, 4, 0});

    // Too little room is no error: the count says how much is needed.
    nodes = {};
    n = 1;
    REQUIRE(lite_stat(ctx, lh, &info, nodes.data(), &n) == 0);
    CHECK(n == 3);
    CHECK(nodes == std::array<uint32_t, 4>{2, 0, 0, 0});

    CHECK(lite_stat(ctx, lh, &info, nullptr, nullptr) == 0);
    n = 0;
    CHECK(lite_stat(ctx, lh, &info, nullptr, &n) == 0);
    CHECK(n == 3);
    n = 1;
    CHECK(lite_stat(ctx, lh, &info, nullptr, &n) == -EINVAL);
    CHECK(lite_stat(ctx, lh, &info, nodes.data(), nullptr) == -EINVAL);
    CHECK(lite_stat(ctx, 0, &info, nullptr, nullptr) == -EBADF);
    CHECK(lite_stat_name(ctx, "nobody", &info, nullptr, nullptr) == -ENOENT);
}

TEST_CASE("lite_list goes through all batches", "[liblite]") {
    fake::cluster cluster;
    auto context = cluster.context();
    for (int i = 0; i < 10; i++)
        context.create({.name = "lmr" + std::to_string(i), .length = 8});

    std::array<lite_lmr_info, 4> infos{};
    uint64_t cursor = 0;
    int total = 0;
    int calls = 0;
    do {
        const int n = lite_list(context.get(), &cursor, infos.data(), infos.size());
        REQUIRE(n >= 0);
        REQUIRE(n <= 4);
        total += n;
        calls++;
    } while (cursor);
    CHECK(total == 10);
    CHECK(calls == 4);  // the fake node returns three at a time
    CHECK(lite_list(context.get(), &cursor, infos.data(), 0) == -EINVAL);
}

TEST_CASE("lite_list does not trust an impossible count", "[liblite]") {
    lite_ioc_list answer{};
    answer.n_infos = 1000;
    answer.cursor = 5;
    const recording<lite_ioc_list> node(answer);
    std::array<lite_lmr_info, 4> infos;
    uint64_t cursor = 0;
    CHECK(lite_list(node.ctx, &cursor, infos.data(), infos.size()) == -EPROTO);
    CHECK(cursor == 0);
    CHECK(node.last.info_size == sizeof(lite_lmr_info));
    CHECK(node.last.infos == reinterpret_cast<uintptr_t>(infos.data()));
}

TEST_CASE("lite_list_each", "[liblite]") {
    fake::cluster cluster;
    auto context = cluster.context();
    for (int i = 0; i < 10; i++)
        context.create({.name = "lmr" + std::to_string(i), .length = 8});

    const auto count_to = [](const lite_lmr_info*, void* arg) {
        int& left = *static_cast<int*>(arg);
        return --left ? 0 : 123;
    };
    int left = 5;
    CHECK(lite_list_each(context.get(), count_to, &left) == 123);
    CHECK(left == 0);
    left = 100;
    CHECK(lite_list_each(context.get(), count_to, &left) == 0);
    CHECK(left == 90);

    cluster.intercept = [](unsigned long, void*) { return -ENOTCONN; };
    CHECK(lite_list_each(context.get(), count_to, &left) == -ENOTCONN);
}

TEST_CASE("lite_strerror knows every errno of the ABI", "[liblite]") {
    for (const int error :
         {EBADF,        EIDRM,           ESTALE,     EACCES,    EPERM,        ERANGE, EINVAL,
          E2BIG,        EFAULT,          EOPNOTSUPP, ENOTTY,    ENAMETOOLONG, ENOENT, EEXIST,
          EHOSTUNREACH, EHOSTDOWN,       EREMOTE,    ENOTCONN,  ENODEV,       EFBIG,  ENOSPC,
          EDQUOT,       EMFILE,          ENOMEM,     ETIMEDOUT, EINTR,        EPROTO, EIO,
          EOWNERDEAD,   ENOTRECOVERABLE, EBUSY,      EDEADLK,   ENOLCK,       EAGAIN, ECONNREFUSED,
          ECONNRESET,   EMSGSIZE,        ENOBUFS}) {
        const std::string text = lite_strerror(error);
        CAPTURE(error, text);
        CHECK(text == lite_strerror(-error));
        CHECK_FALSE(text.empty());
        CHECK(text.find('\n') == std::string::npos);
        CHECK(text.back() != '.');
    }
    CHECK(std::string(lite_strerror(ENOENT)) != ::strerrordesc_np(ENOENT));
    // Of lite_open() and lite_join(). An old module stays loaded when a new one is installed.
    CHECK(std::string(lite_strerror(EPROTONOSUPPORT)).find("rmmod lite") != std::string::npos);
    CHECK(std::string(lite_strerror(0)) == "success");
    CHECK(std::string(lite_strerror(EXDEV)) == ::strerrordesc_np(EXDEV));
    CHECK(std::string(lite_strerror(INT_MIN)) == "unknown error");
    CHECK(std::string(lite_strerror(INT_MAX)) == "unknown error");
}

TEST_CASE("lite_rpc_strerror says what an errno means for functions", "[liblite]") {
    // The errnos of <uapi/lite_rpc.h>.
    for (const int error : {ECONNREFUSED, EACCES,       E2BIG,  EMSGSIZE, ECONNRESET, EHOSTDOWN,
                            EHOSTUNREACH, ETIMEDOUT,    EINTR,  EAGAIN,   ENOBUFS,    ENOMEM,
                            EEXIST,       EPERM,        ENOENT, EMFILE,   ECANCELED,  EINVAL,
                            EOPNOTSUPP,   ENAMETOOLONG, ENODEV, EFAULT}) {
        const std::string text = lite_rpc_strerror(error);
        CAPTURE(error, text);
        CHECK(text == lite_rpc_strerror(-error));
        CHECK_FALSE(text.empty());
        CHECK(text.find('\n') == std::string::npos);
        CHECK(text.back() != '.');
        // Texts about calls must not mention regions or locks.
        CHECK(text.find("LMR") == std::string::npos);
        CHECK(text.find("lock") == std::string::npos);
        CHECK(text.find("handle") == std::string::npos);
        CHECK(text.find("features") == std::string::npos);
    }
    // A cancelled call may be the only one, so the text must not mention others.
    CHECK(std::string(lite_strerror(ECANCELED)).find("others") == std::string::npos);
    CHECK(std::string(lite_rpc_strerror(0)) == "success");
    CHECK(std::string(lite_rpc_strerror(EXDEV)) == ::strerrordesc_np(EXDEV));
    CHECK(std::string(lite_rpc_strerror(INT_MIN)) == "unknown error");
}
