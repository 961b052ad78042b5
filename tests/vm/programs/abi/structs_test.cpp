// SPDX-License-Identifier: MIT
// The rules that all calls share: size, flags, reserved fields, the memory of the argument itself,
// unknown calls.
#include "fixture.hpp"

#include <uapi/lite_rpc.h>

#include <sys/ioctl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

using namespace lite_test;

namespace {

// Each call as bytes that would succeed, so that the kernel can only complain of the one thing that
// a test spoils. Some calls use something up: the fixture provides it anew for each test case.
struct Call {
    const char* label;
    unsigned long request;
    std::vector<std::byte> bytes;
    bool has_reserved_u32 = false;
    std::size_t reserved_at = 0;
};

template <typename Args>
std::vector<std::byte> bytes_of(const Args& args) {
    std::vector<std::byte> bytes(sizeof(args));
    std::memcpy(bytes.data(), &args, sizeof(args));
    return bytes;
}

// Maps one page.
lite_ioc_mmap mmap_args(std::uint64_t lh) {
    lite_ioc_mmap args{};
    args.size = sizeof(args);
    args.lh = lh;
    args.length = kPage;
    args.prot = LITE_PROT_READ;
    return args;
}

lite_ioc_register register_args(const Mapping& memory) {
    lite_ioc_register args{};
    args.size = sizeof(args);
    args.addr = reinterpret_cast<std::uintptr_t>(memory.data());
    args.length = memory.size();
    args.mode = 0600;
    return args;
}

lite_ioc_lock lock_args(std::uint64_t lh, std::uint64_t offset) {
    lite_ioc_lock args{};
    args.size = sizeof(args);
    args.lh = lh;
    args.offset = offset;
    args.timeout_ms = LITE_FOREVER;
    return args;
}

lite_ioc_unlock unlock_args(std::uint64_t lh, std::uint64_t offset) {
    lite_ioc_unlock args{};
    args.size = sizeof(args);
    args.lh = lh;
    args.offset = offset;
    return args;
}

// A barrier for one participant, so it does not wait.
lite_ioc_barrier barrier_args(std::uint64_t lh, std::uint64_t offset) {
    lite_ioc_barrier args{};
    args.size = sizeof(args);
    args.lh = lh;
    args.offset = offset;
    args.n = 1;
    args.timeout_ms = LITE_FOREVER;
    return args;
}

lite_ioc_arena arena_args() {
    lite_ioc_arena args{};
    args.size = sizeof(args);
    args.length = LITE_ARENA_BLOCK;
    return args;
}

lite_ioc_priority priority_args(std::uint32_t priority) {
    lite_ioc_priority args{};
    args.size = sizeof(args);
    args.priority = priority;
    return args;
}

// Moves one page between a file and an LMR.
lite_ioc_file file_args(std::uint64_t lh, int fd) {
    lite_ioc_file args{};
    args.size = sizeof(args);
    args.lh = lh;
    args.length = kPage;
    args.fd = fd;
    return args;
}

// A vector of one operation.
lite_ioc_vector vector_args(lite_op& op) {
    lite_ioc_vector args{};
    args.size = sizeof(args);
    args.ops = reinterpret_cast<std::uintptr_t>(&op);
    args.n_ops = 1;
    args.op_size = sizeof(op);
    return args;
}

lite_ioc_rpc_register enroll_args() {
    lite_ioc_rpc_register args{};
    args.size = sizeof(args);
    args.mode = 0600;
    args.max_request = 64;
    return args;
}

lite_ioc_rpc_unregister drop_args(std::uint32_t function) {
    lite_ioc_rpc_unregister args{};
    args.size = sizeof(args);
    args.function = function;
    return args;
}

lite_ioc_rpc_find find_args(std::uint32_t function) {
    lite_ioc_rpc_find args{};
    args.size = sizeof(args);
    args.function = function;
    return args;
}

// A call of a function of this node, without data.
lite_ioc_rpc_call call_args(std::uint32_t function, std::uint32_t flags) {
    lite_ioc_rpc_call args{};
    args.size = sizeof(args);
    args.flags = flags;
    args.function = function;
    args.timeout_ms = LITE_TIMEOUT_DEFAULT;
    return args;
}

lite_ioc_rpc_collect collect_args() {
    lite_ioc_rpc_collect args{};
    args.size = sizeof(args);
    args.timeout_ms = 60000;
    return args;
}

lite_ioc_rpc_recv recv_args(std::uint32_t function) {
    lite_ioc_rpc_recv args{};
    args.size = sizeof(args);
    args.flags = LITE_RPC_NOWAIT;
    args.function = function;
    return args;
}

struct AbiCalls : Abi {
    NamedLmr lmr{dev, kLength, {}, 0600, "structs"};
    std::uint64_t to_unmap = dev.map(lmr.name(), LITE_RIGHT_READ);
    std::uint64_t to_free = dev.alloc(kPage);
    std::array<std::byte, 8> buf{};
    std::array<lite_lmr_info, 4> infos{};
    std::array<lite_grant, 4> grants{};
    std::uint64_t to_rename = dev.alloc(kPage);
    std::string renamed = unique_name("renamed");
    Mapping memory{kPage};
    std::uint32_t served = enroll();
    std::uint32_t to_drop = enroll();
    std::uint32_t silent = enroll();
    lite_op op = read_args(lmr.lh(), 0, buf.data(), buf.size());
    int file = ::memfd_create("structs", MFD_CLOEXEC);

    std::vector<Call> calls{
        {"QUERY", LITE_IOC_QUERY, bytes_of(query_args()), true, offsetof(lite_ioc_query, reserved)},
        {"ALLOC", LITE_IOC_ALLOC, bytes_of(alloc_args("", kPage))},
        {"MAP", LITE_IOC_MAP, bytes_of(map_args(lmr.name(), LITE_RIGHT_READ)), true,
         offsetof(lite_ioc_map, reserved)},
        {"UNMAP", LITE_IOC_UNMAP, bytes_of(unmap_args(to_unmap))},
        {"FREE", LITE_IOC_FREE, bytes_of(free_args(to_free))},
        {"OP", LITE_IOC_OP, bytes_of(read_args(lmr.lh(), 0, buf.data(), buf.size())), true,
         offsetof(lite_op, reserved1)},
        {"STAT", LITE_IOC_STAT, bytes_of(stat_args(lmr.name())), true,
         offsetof(lite_ioc_stat, reserved)},
        {"LIST", LITE_IOC_LIST, bytes_of(list_args(infos))},
        {"GRANT", LITE_IOC_GRANT, bytes_of(grant_args(lmr.name(), 1000, 0, LITE_RIGHT_READ)), true,
         offsetof(lite_ioc_grant, grant) + offsetof(lite_grant, reserved)},
        {"GRANTS", LITE_IOC_GRANTS, bytes_of(grants_args(lmr.name(), grants))},
        {"SETATTR", LITE_IOC_SETATTR,
         bytes_of(setattr_args(lmr.name(), LITE_KEEP, LITE_KEEP, LITE_KEEP)), true,
         offsetof(lite_ioc_setattr, reserved)},
        {"RENAME", LITE_IOC_RENAME, bytes_of(rename_args(to_rename, renamed))},
        {"RESIZE", LITE_IOC_RESIZE, bytes_of(resize_args(lmr.name(), kLength + 1))},
        {"MOVE", LITE_IOC_MOVE, bytes_of(move_args(lmr.name(), 0)), true,
         offsetof(lite_ioc_move, reserved)},
        {"MMAP", LITE_IOC_MMAP, bytes_of(mmap_args(lmr.lh())), true,
         offsetof(lite_ioc_mmap, reserved)},
        {"REGISTER", LITE_IOC_REGISTER, bytes_of(register_args(memory)), true,
         offsetof(lite_ioc_register, reserved)},
        {"VECTOR", LITE_IOC_VECTOR, bytes_of(vector_args(op))},
        {"PRIORITY", LITE_IOC_PRIORITY, bytes_of(priority_args(LITE_PRIORITY_DEFAULT)), true,
         offsetof(lite_ioc_priority, reserved)},
        {"ARENA", LITE_IOC_ARENA, bytes_of(arena_args())},
        {"SENDFILE", LITE_IOC_SENDFILE, bytes_of(file_args(lmr.lh(), file)), true,
         offsetof(lite_ioc_file, reserved)},
        {"RECVFILE", LITE_IOC_RECVFILE, bytes_of(file_args(lmr.lh(), file)), true,
         offsetof(lite_ioc_file, reserved)},
        {"LOCK", LITE_IOC_LOCK, bytes_of(lock_args(lmr.lh(), 8)), true,
         offsetof(lite_ioc_lock, reserved)},
        {"UNLOCK", LITE_IOC_UNLOCK, bytes_of(unlock_args(lmr.lh(), 16))},
        {"BARRIER", LITE_IOC_BARRIER, bytes_of(barrier_args(lmr.lh(), 32))},
        {"CONSISTENT", LITE_IOC_CONSISTENT, bytes_of(unlock_args(lmr.lh(), 24))},
        {"RPC_REGISTER", LITE_IOC_RPC_REGISTER, bytes_of(enroll_args()), true,
         offsetof(lite_ioc_rpc_register, reserved)},
        {"RPC_UNREGISTER", LITE_IOC_RPC_UNREGISTER, bytes_of(drop_args(to_drop)), true,
         offsetof(lite_ioc_rpc_unregister, reserved)},
        {"RPC_FIND", LITE_IOC_RPC_FIND, bytes_of(find_args(served)), true,
         offsetof(lite_ioc_rpc_find, reserved)},
        {"RPC_CALL", LITE_IOC_RPC_CALL, bytes_of(call_args(served, LITE_RPC_ONEWAY))},
        {"RPC_COLLECT", LITE_IOC_RPC_COLLECT, bytes_of(collect_args())},
        {"RPC_RECV", LITE_IOC_RPC_RECV, bytes_of(recv_args(served))},
    };

    // What the calls use up: a lock to release, a lock of a dead owner (its file was closed), a
    // message to take, and a call without an answer to collect.
    AbiCalls() {
        auto args = lock_args(lmr.lh(), 16);
        REQUIRE(dev.call(LITE_IOC_LOCK, &args) == ok);
        Device late{env().indexes.front()};
        args = lock_args(late.map(lmr.name()), 24);
        REQUIRE(late.call(LITE_IOC_LOCK, &args) == ok);
        late.close();
        args = lock_args(lmr.lh(), 24);
        REQUIRE(dev.call(LITE_IOC_LOCK, &args) == err(EOWNERDEAD));
        auto call = call_args(served, LITE_RPC_ONEWAY);
        REQUIRE(dev.call(LITE_IOC_RPC_CALL, &call) == ok);
        call = call_args(silent, LITE_RPC_ASYNC);
        call.timeout_ms = 1;
        REQUIRE(dev.call(LITE_IOC_RPC_CALL, &call) == ok);
    }

    ~AbiCalls() {
        (void)dev(free_args(renamed));
        ::close(file);
    }

    Errno issue(const Call& call, std::span<std::byte> bytes) {
        const Errno e = dev.call(call.request, bytes.data());
        // Nothing else ends it, and its memory counts.
        if (call.request == LITE_IOC_ARENA && e == ok) {
            lite_ioc_arena made{};
            std::memcpy(&made, bytes.data(), std::min(bytes.size(), sizeof(made)));
            ::munmap(reinterpret_cast<void*>(static_cast<std::uintptr_t>(made.addr)), made.length);
        }
        return e;
    }

    std::uint32_t enroll() {
        auto args = enroll_args();
        REQUIRE(dev.call(LITE_IOC_RPC_REGISTER, &args) == ok);
        return args.function;
    }

    static void put_u32(std::span<std::byte> bytes, std::size_t at, std::uint32_t value) {
        std::memcpy(bytes.data() + at, &value, sizeof(value));
    }
    static void put_size(std::span<std::byte> bytes, std::size_t size) {
        put_u32(bytes, 0, static_cast<std::uint32_t>(size));
    }
};

constexpr std::size_t kFlagsAt = 4;  // in all of them but lite_op

bool has_results(const Call& call) {
    for (const auto request :
         {LITE_IOC_UNMAP, LITE_IOC_FREE, LITE_IOC_GRANT, LITE_IOC_SETATTR, LITE_IOC_RENAME,
          LITE_IOC_RESIZE, LITE_IOC_LOCK, LITE_IOC_UNLOCK, LITE_IOC_CONSISTENT, LITE_IOC_BARRIER,
          LITE_IOC_RPC_UNREGISTER, LITE_IOC_PRIORITY}) {
        if (call.request == request)
            return false;
    }
    return true;
}

std::uint32_t known_flags(const Call& call) {
    switch (call.request) {
        case LITE_IOC_ALLOC:
            return LITE_ALLOC_NO_HANDLE;
        case LITE_IOC_MMAP:
            return LITE_MMAP_POPULATE;
        case LITE_IOC_ARENA:
            return LITE_ARENA_EAGER | LITE_ARENA_ZERO;
        case LITE_IOC_SENDFILE:
        case LITE_IOC_RECVFILE:
            return LITE_FILE_POSITION;
        case LITE_IOC_LOCK:
            return LITE_LOCK_SHARED | LITE_LOCK_TRY;
        case LITE_IOC_RPC_REGISTER:
            return LITE_RPC_SHARED;
        case LITE_IOC_RPC_CALL:
            return LITE_RPC_NOWAIT | LITE_RPC_ONEWAY | LITE_RPC_ASYNC | LITE_RPC_QUEUE;
        case LITE_IOC_RPC_COLLECT:
        case LITE_IOC_RPC_RECV:
            return LITE_RPC_NOWAIT | LITE_RPC_REPLY | LITE_RPC_REPLY_ONLY | LITE_RPC_DROP;
        default:
            return 0;
    }
}

std::size_t flags_at(const Call& call) {
    return call.request == LITE_IOC_OP ? offsetof(lite_op, flags) : kFlagsAt;
}

}  // namespace

TEST_CASE_METHOD(AbiCalls, "structs: every call succeeds unspoilt", "[structs]") {
    for (auto& call : calls) {
        INFO(call.label);
        CHECK(issue(call, call.bytes) == ok);
    }
}

TEST_CASE_METHOD(AbiCalls, "structs: a short structure is EINVAL", "[structs]") {
    for (auto& call : calls) {
        for (const std::size_t cut : {std::size_t{1}, std::size_t{8}, call.bytes.size() / 2}) {
            INFO(call.label << " shorter by " << cut);
            put_size(call.bytes, call.bytes.size() - cut);
            CHECK(issue(call, call.bytes) == err(EINVAL));
        }
    }
}

TEST_CASE_METHOD(AbiCalls, "structs: size 0 is EINVAL", "[structs]") {
    for (auto& call : calls) {
        INFO(call.label);
        put_size(call.bytes, 0);
        CHECK(issue(call, call.bytes) == err(EINVAL));
    }
}

TEST_CASE_METHOD(AbiCalls, "structs: a longer structure with a zero tail is taken", "[structs]") {
    for (auto& call : calls) {
        INFO(call.label);
        auto longer = call.bytes;
        longer.resize(longer.size() + 24);
        put_size(longer, longer.size());
        CHECK(issue(call, longer) == ok);
    }
}

TEST_CASE_METHOD(AbiCalls, "structs: a longer structure with a non-zero tail is E2BIG",
                 "[structs]") {
    for (auto& call : calls) {
        for (const std::size_t at : {std::size_t{0}, std::size_t{7}, std::size_t{23}}) {
            INFO(call.label << " tail byte " << at);
            auto longer = call.bytes;
            longer.resize(longer.size() + 24);
            longer[call.bytes.size() + at] = std::byte{1};
            put_size(longer, longer.size());
            CHECK(issue(call, longer) == err(E2BIG));
        }
    }
}

TEST_CASE_METHOD(AbiCalls, "structs: an absurd size is refused", "[structs]") {
    for (auto& call : calls) {
        INFO(call.label);
        put_size(call.bytes, 0xffffffff);
        // The kernel may look at the tail, which is not mapped that far, or refuse at once.
        const auto e = issue(call, call.bytes);
        CHECK((e == err(E2BIG) || e == err(EFAULT)));
    }
}

TEST_CASE_METHOD(AbiCalls, "structs: a tail that runs into unmapped memory is EFAULT",
                 "[structs]") {
    for (auto& call : calls) {
        INFO(call.label);
        GuardedBuffer guarded(call.bytes.size() + 8);
        std::memcpy(guarded.data(), call.bytes.data(), call.bytes.size());
        put_size(guarded.bytes(), call.bytes.size() + 64);
        CHECK(issue(call, guarded.bytes()) == err(EFAULT));
    }
}

TEST_CASE_METHOD(AbiCalls, "structs: every unknown flag is EOPNOTSUPP", "[structs]") {
    for (auto& call : calls) {
        for (unsigned bit = 0; bit < 32; ++bit) {
            if (known_flags(call) & (1U << bit))
                continue;
            INFO(call.label << " flag bit " << bit);
            put_u32(call.bytes, flags_at(call), 1U << bit);
            CHECK(issue(call, call.bytes) == err(EOPNOTSUPP));
        }
    }
}

TEST_CASE_METHOD(AbiCalls, "structs: a reserved field that is not zero is EOPNOTSUPP",
                 "[structs]") {
    for (auto& call : calls) {
        if (!call.has_reserved_u32)
            continue;
        for (const std::uint32_t value : {1U, 0x80000000U}) {
            INFO(call.label << " reserved " << value);
            put_u32(call.bytes, call.reserved_at, value);
            CHECK(issue(call, call.bytes) == err(EOPNOTSUPP));
        }
    }
}

TEST_CASE_METHOD(AbiWithLmr, "structs: priority and the small reserved field of an operation",
                 "[structs]") {
    auto op = read_args(lh, 0, buf.data(), 8);
    op.priority = GENERATE(as<std::uint8_t>{}, LITE_PRIORITY_MAX + 1, 255);
    CHECK(dev(op) == err(EINVAL));
    op.priority = GENERATE(as<std::uint8_t>{}, LITE_PRIORITY(0), LITE_PRIORITY(7));
    CHECK(dev(op) == ok);
    op.priority = 0;
    op.reserved0 = 1;
    CHECK(dev(op) == err(EOPNOTSUPP));
}

TEST_CASE_METHOD(AbiWithLmr, "structs: an unknown opcode is EOPNOTSUPP", "[structs]") {
    auto op = read_args(lh, 0, buf.data(), 8);
    op.opcode =
        GENERATE(as<std::uint16_t>{}, 0, LITE_OP_CHECKSUM + 2, 0x100 + LITE_OP_READ, 0xffff);
    CHECK(dev(op) == err(EOPNOTSUPP));
}

TEST_CASE_METHOD(AbiCalls, "structs: an argument that is not mapped is EFAULT", "[structs]") {
    void* const kernel = reinterpret_cast<void*>(0xffff888000000000);
    void* const non_canonical = reinterpret_cast<void*>(0x8000000000000000);
    for (auto& call : calls) {
        for (void* bad : {static_cast<void*>(nullptr), static_cast<void*>(unmapped_address(kPage)),
                          kernel, non_canonical}) {
            INFO(call.label << " at " << bad);
            CHECK(dev.call(call.request, bad) == err(EFAULT));
        }
    }
}

TEST_CASE_METHOD(AbiCalls, "structs: an argument with an unmapped end is EFAULT", "[structs]") {
    for (auto& call : calls) {
        INFO(call.label);
        GuardedBuffer guarded(call.bytes.size() - 8);
        std::memcpy(guarded.data(), call.bytes.data(), guarded.size());
        CHECK(issue(call, guarded.bytes()) == err(EFAULT));
    }
}

TEST_CASE_METHOD(AbiCalls, "structs: results that cannot be stored are EFAULT", "[structs]") {
    for (auto& call : calls) {
        if (!has_results(call))
            continue;
        INFO(call.label);
        Mapping page(kPage);
        std::memcpy(page.data(), call.bytes.data(), call.bytes.size());
        page.protect(0, kPage, PROT_READ);
        CHECK(issue(call, page.bytes()) == err(EFAULT));
    }
}

TEST_CASE_METHOD(AbiCalls, "structs: calls that cannot report their result have no effect",
                 "[structs]") {
    Mapping page(kPage);
    const auto in_vain = [&](unsigned long request, const auto& args) {
        page.protect(0, kPage, PROT_READ | PROT_WRITE);
        std::memcpy(page.data(), &args, sizeof(args));
        page.protect(0, kPage, PROT_READ);
        return dev.call(request, page.data());
    };
    CHECK(in_vain(LITE_IOC_RPC_CALL, call_args(served, LITE_RPC_ONEWAY)) == err(EFAULT));
    CHECK(in_vain(LITE_IOC_RPC_RECV, recv_args(served)) == err(EFAULT));
    CHECK(in_vain(LITE_IOC_RPC_COLLECT, collect_args()) == err(EFAULT));

    auto recv = recv_args(served);
    CHECK(dev.call(LITE_IOC_RPC_RECV, &recv) == ok);
    CHECK(recv.req_flags == LITE_RPC_REQ_ONEWAY);
    CHECK(dev.call(LITE_IOC_RPC_RECV, &recv) == err(EAGAIN));
    auto collect = collect_args();
    CHECK(dev.call(LITE_IOC_RPC_COLLECT, &collect) == ok);
    CHECK(collect.error == -ETIMEDOUT);
    CHECK(dev.call(LITE_IOC_RPC_COLLECT, &collect) == err(ENOENT));
}

TEST_CASE_METHOD(Abi, "structs: an LMR is freed if its handle cannot be returned", "[structs]") {
    REQUIRE_NOTHROW(wait_until_unused(dev));
    const auto name = unique_name("unreturned");
    Mapping page(kPage);
    const auto args = alloc_args(name, kLength);
    std::memcpy(page.data(), &args, sizeof(args));
    page.protect(0, kPage, PROT_READ);

    REQUIRE(dev.call(LITE_IOC_ALLOC, page.data()) == err(EFAULT));
    CHECK(dev(stat_args(name)) == err(ENOENT));
    CHECK(dev.query().mem_used == 0);
    // The name is free again.
    dev.free(dev.alloc(kLength, {}, name));
}

TEST_CASE_METHOD(Abi, "structs: unknown calls are ENOTTY", "[structs]") {
    std::array<std::byte, 4096> zeros{};
    const auto request =
        // The first two are next to known numbers.
        GENERATE(_IO(LITE_IOC_TYPE, 0x17), _IO(LITE_IOC_TYPE, 0x1f), _IO(LITE_IOC_TYPE, 0x3f),
                 _IO(LITE_IOC_TYPE, 0x40), _IO(LITE_IOC_TYPE, 0xff), _IO(LITE_IOC_TYPE - 1, 0x00),
                 _IO(LITE_IOC_TYPE + 1, 0x05), _IO('T', 0x7f));
    CHECK(dev.call(request, zeros.data()) == err(ENOTTY));
}

TEST_CASE_METHOD(Abi, "structs: a known number with another direction or size is ENOTTY",
                 "[structs]") {
    auto query = query_args();
    const auto request =
        GENERATE(_IOW(LITE_IOC_TYPE, 0x00, lite_ioc_query),
                 _IOWR(LITE_IOC_TYPE, 0x00, lite_ioc_query), _IOR(LITE_IOC_TYPE, 0x00, int));
    CHECK(dev.call(request, &query) == err(ENOTTY));
}

TEST_CASE_METHOD(Abi, "structs: QUERY describes this node", "[structs]") {
    const auto q = dev.query();
    CHECK(q.size == sizeof(q));
    CHECK(q.uapi_version == LITE_UAPI_VERSION);
    CHECK(q.index == env().indexes.front());
    CHECK(q.node_id >= 1);
    CHECK(q.node_id <= LITE_NODE_ID_MAX);
    CHECK(q.state == LITE_NODE_UP);
    CHECK(q.nodes_up == 1 + env().remote.size());
    CHECK(q.incarnation != 0);
    CHECK(q.mem_limit > 0);
    CHECK(q.mem_used <= q.mem_limit);
    CHECK(q.handles_max > 0);
    CHECK(q.reserved == 0);
}
