// SPDX-License-Identifier: MIT
//
// Commands of io_uring: the SQEs of the library.

#include "fake_node.hpp"

#include <lite/uring.h>

#include <linux/io_uring.h>

#include "catch.hpp"

#include <cerrno>
#include <cstring>
#include <memory>

namespace {

// An SQE with old values in all fields.
struct Sqe {
    Sqe() {
        std::memset(&sqe, 0xa5, sizeof(sqe));
        sqe.user_data = 4711;
    }

    // Checks the fields that every command has. @arg: its structure.
    void check(lite_ctx* ctx, unsigned command, const void* arg) const {
        CHECK(sqe.opcode == IORING_OP_URING_CMD);
        CHECK(sqe.fd == lite_fd(ctx));
        CHECK(sqe.cmd_op == command);
        CHECK(sqe.user_data == 4711);
        CHECK(sqe.flags == 0);
        CHECK(sqe.ioprio == 0);
        CHECK(sqe.rw_flags == 0);
        CHECK(sqe.personality == 0);
        CHECK(sqe.off >> 32 == 0);  // __pad1
        lite_uring_cmd cmd{};
        std::memcpy(&cmd, reinterpret_cast<const char*>(&sqe) + 48, sizeof(cmd));
        CHECK(cmd.arg == reinterpret_cast<std::uintptr_t>(arg));
        CHECK(cmd.reserved == 0);
    }

    // On the heap, as the structure ends with a flexible array.
    std::unique_ptr<io_uring_sqe> memory = std::make_unique<io_uring_sqe>();
    io_uring_sqe& sqe = *memory;
};

struct Uring {
    fake::cluster cluster;
    lite::context node = cluster.context();
    lite_ctx* ctx = node.get();
    Sqe s;
    char buf[64] = {};
};

std::uint64_t address(const void* of) { return reinterpret_cast<std::uintptr_t>(of); }

}  // namespace

TEST_CASE_METHOD(Uring, "operations as commands", "[liblite][uring]") {
    lite_op op;
    std::memset(&op, 0xa5, sizeof(op));
    SECTION("read") {
        lite_uring_read(&s.sqe, ctx, &op, 7, 100, buf, 64);
        CHECK(op.opcode == LITE_OP_READ);
        CHECK((op.offset == 100 && op.length == 64 && op.buf == address(buf)));
        CHECK((op.operand == 0 && op.swap == 0));
    }
    SECTION("write") {
        lite_uring_write(&s.sqe, ctx, &op, 7, 100, buf, 64);
        CHECK(op.opcode == LITE_OP_WRITE);
        CHECK((op.offset == 100 && op.length == 64 && op.buf == address(buf)));
    }
    SECTION("fetch and add") {
        lite_uring_fetch_add(&s.sqe, ctx, &op, 7, 8, 5);
        CHECK(op.opcode == LITE_OP_FETCH_ADD);
        CHECK((op.offset == 8 && op.length == 8 && op.operand == 5));
    }
    SECTION("compare and swap") {
        lite_uring_cmp_swap(&s.sqe, ctx, &op, 7, 8, 5, 6);
        CHECK(op.opcode == LITE_OP_CMP_SWAP);
        CHECK((op.offset == 8 && op.length == 8 && op.operand == 5 && op.swap == 6));
    }
    s.check(ctx, LITE_IOC_OP, &op);
    CHECK(op.size == sizeof(op));
    CHECK(op.lh == 7);
    CHECK((op.flags == 0 && op.priority == 0 && op.reserved0 == 0 && op.reserved1 == 0));
    CHECK(op.result == 0);
}

TEST_CASE_METHOD(Uring, "an operation that has failed before, as a command", "[liblite][uring]") {
    lite_op op{};
    op.opcode = LITE_OP_READ;
    op.error = EHOSTDOWN;
    op.result = 7;
    lite_uring_op(&s.sqe, ctx, &op);
    s.check(ctx, LITE_IOC_OP, &op);
    // In the kernel's structure this field is reserved, and must be 0.
    CHECK(op.reserved1 == 0);
    CHECK(op.result == 0);
}

TEST_CASE_METHOD(Uring, "calls as commands", "[liblite][uring]") {
    lite_ioc_rpc_call call;
    lite_uring_call(&s.sqe, ctx, &call, 3, 2000, buf, 10, buf + 16, 20, 1500);
    s.check(ctx, LITE_IOC_RPC_CALL, &call);
    CHECK((call.size == sizeof(call) && call.flags == 0 && call.group == 0));
    CHECK((call.node == 3 && call.function == 2000 && call.timeout_ms == 1500));
    CHECK((call.request == address(buf) && call.request_len == 10));
    CHECK((call.reply == address(buf + 16) && call.reply_room == 20));
    lite_uring_call(&s.sqe, ctx, &call, 3, 2000, buf, 10, buf, 20, 0);
    CHECK((call.timeout_ms == 0 && call.flags == LITE_RPC_NOWAIT));
    lite_uring_call(&s.sqe, ctx, &call, 3, 2000, buf, 10, buf, 20, -1);
    CHECK((call.timeout_ms == LITE_FOREVER && call.flags == 0));

    lite_ioc_rpc_recv recv;
    lite_uring_recv(&s.sqe, ctx, &recv, 2000, buf, 64, 0);
    s.check(ctx, LITE_IOC_RPC_RECV, &recv);
    CHECK((recv.size == sizeof(recv) && recv.flags == LITE_RPC_NOWAIT && recv.function == 2000));
    CHECK((recv.buf == address(buf) && recv.buf_len == 64 && recv.token == 0));
    lite_uring_reply(&s.sqe, ctx, &recv, 99, 5, buf, 12);
    s.check(ctx, LITE_IOC_RPC_RECV, &recv);
    CHECK((recv.flags == LITE_RPC_REPLY_ONLY && recv.token == 99 && recv.status == 5));
    CHECK((recv.reply == address(buf) && recv.reply_len == 12 && recv.buf == 0));
}

TEST_CASE_METHOD(Uring, "locks and barriers as commands", "[liblite][uring]") {
    lite_ioc_lock lock;
    lite_uring_lock(&s.sqe, ctx, &lock, 7, 8, 42, LITE_LOCK_SHARED, 1000);
    s.check(ctx, LITE_IOC_LOCK, &lock);
    CHECK((lock.size == sizeof(lock) && lock.flags == LITE_LOCK_SHARED && lock.lh == 7));
    CHECK((lock.offset == 8 && lock.owner == 42 && lock.timeout_ms == 1000));
    lite_ioc_unlock unlock;
    lite_uring_unlock(&s.sqe, ctx, &unlock, 7, 8, 42);
    s.check(ctx, LITE_IOC_UNLOCK, &unlock);
    CHECK((unlock.size == sizeof(unlock) && unlock.flags == 0 && unlock.lh == 7));
    CHECK((unlock.offset == 8 && unlock.owner == 42));
    lite_ioc_barrier barrier;
    lite_uring_barrier(&s.sqe, ctx, &barrier, 7, 8, 5, 0);
    s.check(ctx, LITE_IOC_BARRIER, &barrier);
    CHECK((barrier.size == sizeof(barrier) && barrier.flags == 0));
    CHECK((barrier.lh == 7 && barrier.offset == 8 && barrier.n == 5 && barrier.timeout_ms == 0));
    lite_ioc_query query{};
    lite_uring_command(&s.sqe, ctx, LITE_IOC_QUERY, &query);
    s.check(ctx, LITE_IOC_QUERY, &query);
}
