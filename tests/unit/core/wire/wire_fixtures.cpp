// SPDX-License-Identifier: MIT
#include "wire_fixtures.hpp"

namespace lite_test {
namespace {

lite_wire_cred credentials() {
    lite_wire_cred cred{};
    cred.uid = cpu_to_le32(1000);
    cred.gid = cpu_to_le32(1000);
    cred.n_groups = cpu_to_le32(2);
    return cred;
}

lite_wire_addr address() {
    lite_wire_addr addr{};
    addr.ip[15] = 1;
    addr.port = cpu_to_le16(18500);
    return addr;
}

template <typename T>
void name_it(T& message) {
    std::strcpy(message.name, "greeting");
}

lite_wire_attach attach() {
    lite_wire_attach a{};
    a.addr = address();
    a.node = cpu_to_le16(7);
    a.nqps = 1;
    return a;
}

std::vector<Spoiler> attach_spoilers() {
    return {FIELD(lite_wire_attach, nqps, LITE_QPS_MAX, 255),
            FIELD(lite_wire_attach, reserved, 1, 0x80),
            FIELD(lite_wire_attach, addr.reserved, 1, 0x8000)};
}

lite_wire_name name() {
    lite_wire_name n{.home = cpu_to_le32(3)};
    name_it(n);
    return n;
}

std::vector<Spoiler> name_spoilers() {
    // Empty, with a slash, with a control character.
    return {FIELD(lite_wire_name, name[0], 0, '\x1f', '\n', 0x7f)};
}

lite_wire_name_enter name_enter() {
    lite_wire_name_enter e{.home = cpu_to_le32(3), .id = cpu_to_le64(9)};
    name_it(e);
    return e;
}

lite_wire_create create() {
    lite_wire_create c{};
    c.length = cpu_to_le64(12345);
    c.mode = cpu_to_le32(0640);
    c.map = cpu_to_le32(1);
    c.cred = credentials();
    c.n_nodes = cpu_to_le32(2);
    c.nodes[0] = cpu_to_le32(1);
    c.nodes[1] = cpu_to_le32(2);
    name_it(c);
    return c;
}

lite_wire_map map() {
    lite_wire_map m{};
    m.id = cpu_to_le64(9);
    m.rights = cpu_to_le32(LITE_RIGHT_READ);
    m.cred = credentials();
    name_it(m);
    return m;
}

// A MAP by name, for the directory.
lite_wire_map open_request() {
    lite_wire_map m = map();
    m.id = 0;
    return m;
}

lite_wire_map_reply map_reply_head(std::uint32_t shares, std::uint32_t told) {
    lite_wire_map_reply r{};
    r.id = cpu_to_le64(9);
    r.length = cpu_to_le64(3 * LITE_PAGE_SIZE + 1);
    r.n_extents = cpu_to_le32(4);
    r.n_shares = cpu_to_le32(shares);
    r.rights = cpu_to_le32(LITE_RIGHTS_ALL);
    r.n_told = cpu_to_le32(told);
    r.home = cpu_to_le32(3);
    return r;
}

std::vector<Spoiler> map_reply_spoilers() {
    return {FIELD(lite_wire_map_reply, id, 0, LITE_LMR_ID_MAX + 1, kAllOnes),
            FIELD(lite_wire_map_reply, length, 0, LITE_LMR_SIZE_MAX + 1, kAllOnes),
            FIELD(lite_wire_map_reply, n_extents, 0, 1, 5, kAllOnes),
            FIELD(lite_wire_map_reply, base, LITE_PAGE_SIZE, kAllOnes),
            FIELD(lite_wire_map_reply, n_shares, 0, 2, LITE_SPREAD_MAX + 1, kAllOnes),
            FIELD(lite_wire_map_reply, rights, 1U << 5, 1U << 31),
            FIELD(lite_wire_map_reply, anonymous, 2, kAllOnes),
            FIELD(lite_wire_map_reply, n_told, 1, 3, LITE_MAP_ENTRIES + 1, kAllOnes),
            FIELD(lite_wire_map_reply, share[0].reserved, 1)};
}

lite_wire_lmr lmr() {
    lite_wire_lmr l{};
    l.id = cpu_to_le64(5);
    l.length = cpu_to_le64(4097);
    l.mode = cpu_to_le32(0600);
    l.n_extents = cpu_to_le32(2);
    l.n_shares = cpu_to_le32(1);
    name_it(l);
    return l;
}

template <typename T>
std::uint32_t room_for(std::size_t head) {
    return static_cast<std::uint32_t>((LITE_PAYLOAD_MAX - head) / sizeof(T));
}

lite_wire_range range(std::uint64_t id) {
    lite_wire_range r{};
    r.id = cpu_to_le64(id);
    r.incarnation = cpu_to_le64(77);
    r.generation = cpu_to_le64(3);
    r.offset = cpu_to_le64(4096);
    r.home = cpu_to_le32(2);
    return r;
}

lite_wire_op operation(bool two, std::uint64_t operand = 0, std::uint32_t arg = 0) {
    lite_wire_op op{};
    op.range = range(3);
    if (two)
        op.from = range(4);
    op.length = cpu_to_le64(100);
    op.operand = cpu_to_le64(operand);
    op.arg = cpu_to_le32(arg);
    return op;
}

// A spoiler with the flags that a memory operation may not have, if it may have @allowed.
Spoiler flags_but(std::uint32_t allowed) {
    Spoiler spoiler = FIELD(lite_wire_op, flags);
    for (const std::uint32_t flag :
         {std::uint32_t{LITE_WIRE_OP_BACKWARD}, std::uint32_t{LITE_WIRE_OP_CAREFUL}, 4U, 1U << 31})
        if (!(flag & allowed)) {
            spoiler.refused.push_back(flag);
            spoiler.refused.push_back(flag | allowed);
        }
    return spoiler;
}

// Values that every memory operation refuses, and those that this operation refuses as well.
std::vector<Spoiler> operation_spoilers(std::vector<Spoiler> more) {
    const std::vector<Spoiler> all = {
        FIELD(lite_wire_op, range.id, 0), FIELD(lite_wire_op, range.home, 0),
        FIELD(lite_wire_op, range.reserved, 1), FIELD(lite_wire_op, from.reserved, 1),
        FIELD(lite_wire_op, length, 0)};
    more.insert(more.end(), all.begin(), all.end());
    return more;
}

// A claim on a lock, or an arrival at a barrier for @n, with a valid argument; values in @refused
// are not valid.
Message lock_request(const char* label, std::uint16_t call, std::uint32_t argument,
                     std::vector<std::uint64_t> refused, std::uint32_t n = 0) {
    lite_wire_lock lock{};
    lock.id = cpu_to_le64(77);
    lock.offset = cpu_to_le64(4088);
    lock.incarnation = cpu_to_le64(kAllOnes);
    lock.ticket = cpu_to_le32(LITE_TICKET_MAX);
    lock.arg = cpu_to_le32(argument);
    lock.n = cpu_to_le32(n);
    Message message{label,
                    call,
                    to_bytes(lock),
                    {FIELD(lite_wire_lock, id, 0), FIELD(lite_wire_lock, offset, 4, 4089, kAllOnes),
                     FIELD(lite_wire_lock, ticket, 0, LITE_TICKET_MAX + 1, kAllOnes),
                     FIELD(lite_wire_lock, n, LITE_BARRIER_MAX + 1, kAllOnes)}};
    Spoiler argument_spoiler = FIELD(lite_wire_lock, arg, kAllOnes);
    argument_spoiler.refused.insert(argument_spoiler.refused.end(), refused.begin(), refused.end());
    message.spoilers.push_back(argument_spoiler);
    if (call != LITE_CALL_LOCK_WAIT || n)
        message.spoilers.push_back(FIELD(lite_wire_lock, value, 1, kAllOnes));
    if (call != LITE_CALL_LOCK_WAIT || !n && argument)
        message.spoilers.push_back(FIELD(lite_wire_lock, n, 1));
    if (call == LITE_CALL_LOCK_GRANT || call == LITE_CALL_LOCK_PROBE)
        message.spoilers.push_back(FIELD(lite_wire_lock, uid, 1, kAllOnes));
    return message;
}

Message lock_probe_reply() {
    lite_wire_lock_probe_reply reply{};
    reply.end = cpu_to_le32(LITE_LOCK_UNUSED);
    return {"LOCK_PROBE",
            LITE_CALL_LOCK_PROBE,
            to_bytes(reply),
            {FIELD(lite_wire_lock_probe_reply, end, LITE_LOCK_UNUSED + 1, kAllOnes),
             FIELD(lite_wire_lock_probe_reply, reserved, 1)}};
}

Spoiler status_spoiler(std::uint16_t call) {
    Spoiler spoiler = FIELD(lite_wire_op_reply, status, LITE_WIRE_OP_BUSY + 1, kAllOnes);
    if (call != LITE_CALL_OP_COMPARE)
        spoiler.refused.push_back(LITE_WIRE_OP_DIFFERENT);
    if (call != LITE_CALL_OP_ATOMIC)
        spoiler.refused.push_back(LITE_WIRE_OP_BUSY);
    return spoiler;
}

Message operation_reply(const char* label, std::uint16_t call, std::uint32_t status = 0,
                        std::uint32_t error = 0) {
    lite_wire_op_reply reply{};
    reply.status = cpu_to_le32(status);
    reply.error = cpu_to_le32(error);
    Message message{label,
                    call,
                    to_bytes(reply),
                    {status_spoiler(call), FIELD(lite_wire_op_reply, error, 4096, kAllOnes)}};
    // Not both a status and an error.
    if (error)
        message.spoilers.front().refused.insert(message.spoilers.front().refused.end(),
                                                {LITE_WIRE_OP_DIFFERENT, LITE_WIRE_OP_UNMAPPED,
                                                 LITE_WIRE_OP_ELSEWHERE, LITE_WIRE_OP_BUSY});
    if (status)
        message.spoilers.back().refused.insert(message.spoilers.back().refused.end(), {1, 4095});
    return message;
}

Message mem_free() {
    lite_wire_mem_free head{};
    head.n_fences = cpu_to_le32(2);
    return {
        "MEM_FREE",
        LITE_CALL_MEM_FREE,
        to_bytes(head, std::vector<__le32>(2)),
        {FIELD(lite_wire_mem_free, n_fences, 0, 1, 3, LITE_FENCES_MAX + 1, 0x10000000, kAllOnes),
         FIELD(lite_wire_mem_free, fence_all, 2, kAllOnes)}};
}

Message mem_copy() {
    lite_wire_mem_copy head{};
    head.count = cpu_to_le32(2);
    const lite_wire_extent extent{cpu_to_le64(0x1000), cpu_to_le64(5 << 8)};
    Spoiler second{"extent[1].length_share",
                   sizeof(head) + sizeof(extent) + offsetof(lite_wire_extent, length_share),
                   8,
                   {0, 255}};
    return {
        "MEM_COPY",
        LITE_CALL_MEM_COPY,
        to_bytes(head, std::vector<lite_wire_extent>(2, extent)),
        {FIELD(lite_wire_mem_copy, count, 0, 1, 3, LITE_COPY_EXTENTS_MAX + 1, 0x10000000, kAllOnes),
         second}};
}

lite_wire_change change() {
    lite_wire_change c{};
    c.id = cpu_to_le64(9);
    c.rights = cpu_to_le32(LITE_RIGHTS_ALL);
    c.cred = credentials();
    name_it(c);
    return c;
}

std::vector<Spoiler> change_spoilers() {
    return {FIELD(lite_wire_change, rights, 1U << 5, kAllOnes),
            FIELD(lite_wire_change, reserved, 1),
            FIELD(lite_wire_change, name[0], '\x1f', '\n', 0x7f),
            FIELD(lite_wire_change, cred.n_groups, LITE_CRED_GROUPS + 1, kAllOnes)};
}

// A request that begins with the head of all changes.
template <typename T, typename Fill>
Message changing(const char* label, std::uint16_t call, Fill fill, std::vector<Spoiler> spoilers) {
    T message{};
    message.change = change();
    fill(message);
    for (auto& spoiler : change_spoilers())
        spoilers.push_back(spoiler);
    return {label, call, to_bytes(message), spoilers};
}

Message grants_reply() {
    lite_wire_grants_reply head{};
    head.count = cpu_to_le32(2);
    Spoiler second{"grant[1].rights",
                   sizeof(head) + sizeof(lite_wire_grant) + offsetof(lite_wire_grant, rights),
                   4,
                   {1U << 5, kAllOnes}};
    return {
        "LMR_GRANTS",
        LITE_CALL_LMR_GRANTS,
        to_bytes(head, std::vector<lite_wire_grant>(2)),
        {FIELD(lite_wire_grants_reply, count, 0, 1, 3, LITE_GRANTS_MAX + 1, 0x10000000, kAllOnes),
         FIELD(lite_wire_grants_reply, reserved, 1), second}};
}

lite_wire_list list() {
    lite_wire_list l{};
    l.max = cpu_to_le32(6);
    return l;
}

lite_wire_mem_alloc mem_alloc() {
    lite_wire_mem_alloc m{};
    m.length = cpu_to_le64(1 << 20);
    m.uid = cpu_to_le32(1000);
    return m;
}

Message members_reply() {
    lite_wire_members_reply head{};
    head.count = cpu_to_le32(3);
    return {"MEMBERS",
            LITE_CALL_MEMBERS,
            to_bytes(head, std::vector<lite_wire_member>(3)),
            {FIELD(lite_wire_members_reply, count, 0, 2, 4,
                   room_for<lite_wire_member>(sizeof(head)) + 1, 0x10000000, kAllOnes),
             FIELD(lite_wire_members_reply, more, 2, kAllOnes)}};
}

lite_wire_rpc_func rpc_func() {
    lite_wire_rpc_func f{};
    f.cookie = cpu_to_le64(1);
    f.function = cpu_to_le32(77);
    f.mode = cpu_to_le32(0666);
    f.max_request = cpu_to_le32(100);
    f.max_reply = cpu_to_le32(4096);
    return f;
}

// A look-up by number. Refused: numbers out of range, and a name beside a number.
Message rpc_find() {
    lite_wire_rpc_find find{};
    find.function = cpu_to_le32(77);
    return {"RPC_FIND",
            LITE_CALL_RPC_FIND,
            to_bytes(find),
            {FIELD(lite_wire_rpc_find, function, 0, LITE_FUNCTION_MAX + 1, kAllOnes),
             FIELD(lite_wire_rpc_find, reserved, 1), FIELD(lite_wire_rpc_find, name[0], 'x')}};
}

Message rpc_bind() {
    lite_wire_rpc_bind bind{};
    bind.function = cpu_to_le32(1);
    return {"RPC_BIND",
            LITE_CALL_RPC_BIND,
            to_bytes(bind),
            {FIELD(lite_wire_rpc_bind, function, 0, LITE_FUNCTION_MAX + 1, kAllOnes),
             FIELD(lite_wire_rpc_bind, reserved, 1)}};
}

Message rpc_bind_reply() {
    lite_wire_rpc_bind_reply head{};
    head.func = rpc_func();
    head.depth = cpu_to_le32(LITE_RPC_DEPTH);
    head.chunk_bytes = cpu_to_le32(8192);
    head.n_chunks = cpu_to_le32(2);
    return {
        "RPC_BIND",
        LITE_CALL_RPC_BIND,
        to_bytes(head, std::vector<std::uint64_t>(2, 0x1000)),
        {FIELD(lite_wire_rpc_bind_reply, func.cookie, 0),
         FIELD(lite_wire_rpc_bind_reply, func.function, 0, LITE_FUNCTION_MAX + 1),
         FIELD(lite_wire_rpc_bind_reply, func.mode, 01000, kAllOnes),
         FIELD(lite_wire_rpc_bind_reply, func.max_request, 8192, LITE_RPC_BYTES_MAX + 1, kAllOnes),
         FIELD(lite_wire_rpc_bind_reply, func.max_reply, 8192 - 63, LITE_RPC_BYTES_MAX + 1,
               kAllOnes),
         FIELD(lite_wire_rpc_bind_reply, func.squash, 2),
         FIELD(lite_wire_rpc_bind_reply, func.reserved, 1),
         FIELD(lite_wire_rpc_bind_reply, ring, 4096, kAllOnes),
         FIELD(lite_wire_rpc_bind_reply, depth, 0, LITE_RPC_DEPTH + 1, kAllOnes),
         FIELD(lite_wire_rpc_bind_reply, chunk_bytes, 0, 4096, 8191, 0x80000000, kAllOnes),
         FIELD(lite_wire_rpc_bind_reply, n_chunks, 0, 1, 3, LITE_RPC_CHUNKS_MAX + 1, kAllOnes),
         Spoiler{"chunk[1]", sizeof(head) + 8, 8, {0}}}};
}

Message rpc_cancel() {
    lite_wire_rpc_cancel head{};
    head.count = cpu_to_le32(2);
    return {"RPC_CANCEL",
            LITE_CALL_RPC_CANCEL,
            to_bytes(head, std::vector<lite_wire_rpc_which>(2)),
            {FIELD(lite_wire_rpc_cancel, count, 0, 1, 3, LITE_RPC_CANCELS_MAX + 1, kAllOnes),
             FIELD(lite_wire_rpc_cancel, reserved, 1)}};
}

Message rpc_cancel_reply() {
    lite_wire_rpc_cancel_reply head{};
    head.count = cpu_to_le32(2);
    return {"RPC_CANCEL",
            LITE_CALL_RPC_CANCEL,
            to_bytes(head, std::vector<std::uint32_t>(2, 1)),
            {FIELD(lite_wire_rpc_cancel_reply, count, 0, 1, 3, LITE_RPC_CANCELS_MAX + 1, kAllOnes),
             FIELD(lite_wire_rpc_cancel_reply, reserved, 1),
             Spoiler{"cancelled[1]", sizeof(head) + 4, 4, {2, kAllOnes}}}};
}

Message extents_reply(const char* label, std::uint16_t call) {
    lite_wire_extents_reply head{};
    head.count = cpu_to_le32(3);
    return {label,
            call,
            to_bytes(head, std::vector<lite_wire_extent>(3)),
            {FIELD(lite_wire_extents_reply, count, 0, 2, 4,
                   room_for<lite_wire_extent>(sizeof(head)) + 1, 0x10000000, kAllOnes),
             FIELD(lite_wire_extents_reply, reserved, 1, kAllOnes)}};
}

Message list_reply() {
    lite_wire_list_reply head{};
    head.count = cpu_to_le32(2);
    Spoiler second_name{"lmr[1].name",
                        sizeof(head) + sizeof(lite_wire_lmr) + offsetof(lite_wire_lmr, name),
                        1,
                        {'\x1f', '\n'}};
    Spoiler second_shares{"lmr[1].n_shares",
                          sizeof(head) + sizeof(lite_wire_lmr) + offsetof(lite_wire_lmr, n_shares),
                          4,
                          {LITE_SPREAD_MAX + 1, kAllOnes}};
    return {"LIST",
            LITE_CALL_LMR_LIST,
            to_bytes(head, std::vector<lite_wire_lmr>(2, lmr())),
            {FIELD(lite_wire_list_reply, count, 0, 1, 3, room_for<lite_wire_lmr>(sizeof(head)) + 1,
                   0x10000000, kAllOnes),
             FIELD(lite_wire_list_reply, more, 2, kAllOnes), second_name, second_shares}};
}

lite_wire_stat_reply stat_reply() {
    lite_wire_stat_reply r{};
    r.lmr = lmr();
    return r;
}

lite_wire_mem_alloc_reply mem_alloc_reply() {
    lite_wire_mem_alloc_reply r{};
    r.id = cpu_to_le64(3);
    r.n_extents = cpu_to_le32(1);
    return r;
}

}  // namespace

Bytes map_reply(std::uint32_t shares, std::uint32_t told) {
    Bytes bytes = to_bytes(map_reply_head(shares, told), std::vector<lite_wire_share>(shares));
    bytes.resize(bytes.size() + told * sizeof(lite_wire_extent));
    return bytes;
}

std::vector<Message> requests() {
    const auto named = [](const char* label, std::uint16_t call) {
        return Message{label, call, to_bytes(name()), name_spoilers()};
    };
    return {
        {"PING", LITE_CALL_PING, to_bytes(lite_wire_ping{})},
        {"ATTACH", LITE_CALL_ATTACH, to_bytes(attach()), attach_spoilers()},
        {"JOIN",
         LITE_CALL_JOIN,
         to_bytes(lite_wire_join{address(), 0, 0, 1}),
         {FIELD(lite_wire_join, addr.reserved, 1), FIELD(lite_wire_join, reserved, 1)}},
        {"MEMBERS", LITE_CALL_MEMBERS, to_bytes(lite_wire_members{})},
        {"LEAVE",
         LITE_CALL_LEAVE,
         to_bytes(lite_wire_leave{}),
         {FIELD(lite_wire_leave, reserved, 1)}},
        named("NAME_DROP", LITE_CALL_NAME_DROP),
        named("NAME_FIND", LITE_CALL_NAME_FIND),
        {"NAME_SYNC",
         LITE_CALL_NAME_SYNC,
         to_bytes(lite_wire_name_sync{}),
         {FIELD(lite_wire_name_sync, reserved, 1)}},
        named("NAME_PROBE", LITE_CALL_NAME_PROBE),
        {"NAME_ENTER", LITE_CALL_NAME_ENTER, to_bytes(name_enter()), name_spoilers()},
        {"NAME_OPEN",
         LITE_CALL_NAME_OPEN,
         to_bytes(open_request()),
         {FIELD(lite_wire_map, id, 1), FIELD(lite_wire_map, rights, 1U << 5, 1U << 31),
          FIELD(lite_wire_map, cred.n_groups, LITE_CRED_GROUPS + 1, kAllOnes),
          FIELD(lite_wire_map, renew, 1, kAllOnes),
          FIELD(lite_wire_map, name[0], 0, '\x1f', '\t')}},
        {"LMR_CREATE",
         LITE_CALL_LMR_CREATE,
         to_bytes(create()),
         {FIELD(lite_wire_create, length, 0, LITE_LMR_SIZE_MAX + 1, 1ULL << 63, kAllOnes),
          FIELD(lite_wire_create, mode, 0100, 01000, 0777, 1U << 31),
          FIELD(lite_wire_create, map, 2, kAllOnes),
          FIELD(lite_wire_create, n_nodes, 0, LITE_SPREAD_MAX + 1, kAllOnes),
          FIELD(lite_wire_create, cred.n_groups, LITE_CRED_GROUPS + 1, kAllOnes),
          FIELD(lite_wire_create, name[3], '\x1f', '\t')}},
        {"LMR_MAP",
         LITE_CALL_LMR_MAP,
         to_bytes(map()),
         {FIELD(lite_wire_map, rights, 1U << 5, 1U << 31),
          FIELD(lite_wire_map, cred.n_groups, LITE_CRED_GROUPS + 1, kAllOnes),
          FIELD(lite_wire_map, renew, 2, kAllOnes), FIELD(lite_wire_map, name[3], '\x1f', '\t')}},
        {"LMR_EXTENTS",
         LITE_CALL_LMR_EXTENTS,
         to_bytes(lite_wire_extents{}),
         {FIELD(lite_wire_extents, reserved, 1)}},
        unmaps(),
        {"LMR_FREE", LITE_CALL_LMR_FREE, to_bytes(change()), change_spoilers()},
        changing<lite_wire_set_grant>(
            "LMR_GRANT", LITE_CALL_LMR_GRANT, [](auto&) {},
            {FIELD(lite_wire_set_grant, grant.rights, 1U << 5, kAllOnes),
             FIELD(lite_wire_set_grant, grant.node, LITE_NODE_ID_MAX + 1, kAllOnes),
             FIELD(lite_wire_set_grant, grant.reserved, 1)}),
        {"LMR_GRANTS", LITE_CALL_LMR_GRANTS, to_bytes(lite_wire_id{})},
        changing<lite_wire_setattr>("LMR_SETATTR", LITE_CALL_LMR_SETATTR,
                                    [](auto& s) { s.mode = cpu_to_le32(LITE_KEEP); },
                                    {FIELD(lite_wire_setattr, mode, 0100, 01000, 1U << 31),
                                     FIELD(lite_wire_setattr, reserved, 1)}),
        changing<lite_wire_rename>("LMR_RENAME", LITE_CALL_LMR_RENAME, [](auto& r) { name_it(r); },
                                   {FIELD(lite_wire_rename, name[0], 0, '\x1f', '\n', 0x7f)}),
        changing<lite_wire_resize>(
            "LMR_RESIZE", LITE_CALL_LMR_RESIZE, [](auto& r) { r.length = cpu_to_le64(1); },
            {FIELD(lite_wire_resize, length, 0, LITE_LMR_SIZE_MAX + 1, kAllOnes)}),
        changing<lite_wire_move>("LMR_MOVE", LITE_CALL_LMR_MOVE,
                                 [](auto& m) {
                                     m.offset = cpu_to_le64(LITE_PAGE_SIZE);
                                     m.length = cpu_to_le64(2 * LITE_PAGE_SIZE);
                                 },
                                 {FIELD(lite_wire_move, offset, LITE_LMR_SIZE_MAX + 1, kAllOnes),
                                  FIELD(lite_wire_move, length, LITE_LMR_SIZE_MAX + 1, kAllOnes),
                                  FIELD(lite_wire_move, later, 2, kAllOnes)}),
        {"LMR_RECALL", LITE_CALL_LMR_RECALL, to_bytes(lite_wire_id{})},
        {"LMR_AWAIT", LITE_CALL_LMR_AWAIT, to_bytes(lite_wire_id{})},
        {"LMR_REVOKE", LITE_CALL_LMR_REVOKE, to_bytes(lite_wire_id{})},
        {"LMR_STAT", LITE_CALL_LMR_STAT, to_bytes(lite_wire_id{})},
        {"LMR_LIST",
         LITE_CALL_LMR_LIST,
         to_bytes(list()),
         {FIELD(lite_wire_list, max, 0), FIELD(lite_wire_list, reserved, 1)}},
        {"MEM_ALLOC",
         LITE_CALL_MEM_ALLOC,
         to_bytes(mem_alloc()),
         {FIELD(lite_wire_mem_alloc, length, 0, LITE_LMR_SIZE_MAX + 1, kAllOnes),
          FIELD(lite_wire_mem_alloc, reserved, 1)}},
        {"MEM_EXTENTS",
         LITE_CALL_MEM_EXTENTS,
         to_bytes(lite_wire_extents{}),
         {FIELD(lite_wire_extents, reserved, 1)}},
        mem_free(),
        mem_copy(),
        {"MEM_SESSION",
         LITE_CALL_MEM_SESSION,
         to_bytes(lite_wire_mem_session{}),
         {FIELD(lite_wire_mem_session, reserved, 1, kAllOnes)}},
        chunk(),
        ends(),
        {"OP_SET", LITE_CALL_OP_SET, to_bytes(operation(false, 0x030201, 3)),
         operation_spoilers({FIELD(lite_wire_op, operand, 1U << 24, kAllOnes),
                             FIELD(lite_wire_op, arg, 0, 2, 9, kAllOnes),
                             flags_but(LITE_WIRE_OP_CAREFUL), FIELD(lite_wire_op, from.id, 1),
                             FIELD(lite_wire_op, from.home, 1)})},
        {"OP_COPY", LITE_CALL_OP_COPY, to_bytes(operation(true)),
         operation_spoilers({flags_but(LITE_WIRE_OP_CAREFUL | LITE_WIRE_OP_BACKWARD),
                             FIELD(lite_wire_op, arg, 1), FIELD(lite_wire_op, from.id, 0),
                             FIELD(lite_wire_op, from.home, 0)})},
        {"OP_COMPARE", LITE_CALL_OP_COMPARE, to_bytes(operation(true)),
         operation_spoilers({flags_but(LITE_WIRE_OP_CAREFUL), FIELD(lite_wire_op, arg, 1),
                             FIELD(lite_wire_op, from.id, 0), FIELD(lite_wire_op, from.home, 0)})},
        {"OP_CHECKSUM", LITE_CALL_OP_CHECKSUM, to_bytes(operation(false, ~0U)),
         operation_spoilers({flags_but(LITE_WIRE_OP_CAREFUL),
                             FIELD(lite_wire_op, operand, 1ULL << 32, kAllOnes),
                             FIELD(lite_wire_op, arg, 1), FIELD(lite_wire_op, from.id, 1)})},
        {"OP_ATOMIC", LITE_CALL_OP_ATOMIC, to_bytes(operation(false, 5, LITE_OP_FETCH_OR)),
         operation_spoilers({flags_but(LITE_WIRE_OP_CAREFUL),
                             FIELD(lite_wire_op, arg, 0, LITE_OP_CMP_SWAP, LITE_OP_SET, kAllOnes),
                             FIELD(lite_wire_op, from.id, 1)})},
        {"OP_PREPARE", LITE_CALL_OP_PREPARE, to_bytes(operation(true)),
         operation_spoilers({flags_but(0), FIELD(lite_wire_op, arg, 1, LITE_OP_SET, kAllOnes),
                             FIELD(lite_wire_op, from.home, 0)})},
        pack(),
        rpc_bind(),
        {"RPC_UNBIND",
         LITE_CALL_RPC_UNBIND,
         to_bytes(lite_wire_rpc_unbind{}),
         {FIELD(lite_wire_rpc_unbind, reserved, 1)}},
        rpc_cancel(),
        rpc_find(),
        {"RPC_GONE",
         LITE_CALL_RPC_GONE,
         to_bytes(lite_wire_rpc_unbind{}),
         {FIELD(lite_wire_rpc_unbind, reserved, 1)}},
        lock_request("LOCK_WAIT", LITE_CALL_LOCK_WAIT, LITE_WIRE_LOCK_SHARED | LITE_WIRE_LOCK_TRY,
                     {4}),
        lock_request("LOCK_WAIT(barrier)", LITE_CALL_LOCK_WAIT, LITE_WIRE_LOCK_AGAIN,
                     {LITE_WIRE_LOCK_SHARED, LITE_WIRE_LOCK_TRY, 8}, LITE_BARRIER_MAX),
        lock_request("LOCK_GRANT", LITE_CALL_LOCK_GRANT, EOWNERDEAD, {4096}),
        lock_request("LOCK_RELEASE", LITE_CALL_LOCK_RELEASE, LITE_LOCK_UNUSED,
                     {LITE_LOCK_UNUSED + 1}),
        lock_request("LOCK_PROBE", LITE_CALL_LOCK_PROBE, 0, {1}),
    };
}

std::vector<Message> replies() {
    return {
        {"PING", LITE_CALL_PING, to_bytes(lite_wire_ping{})},
        {"ATTACH", LITE_CALL_ATTACH, to_bytes(attach()), attach_spoilers()},
        {"JOIN",
         LITE_CALL_JOIN,
         to_bytes(lite_wire_join_reply{}),
         {FIELD(lite_wire_join_reply, reserved, 1)}},
        members_reply(),
        {"LEAVE", LITE_CALL_LEAVE, {}},
        {"NAME_DROP", LITE_CALL_NAME_DROP, {}},
        {"NAME_FIND", LITE_CALL_NAME_FIND, to_bytes(lite_wire_name_reply{})},
        {"NAME_SYNC", LITE_CALL_NAME_SYNC, {}},
        {"NAME_PROBE",
         LITE_CALL_NAME_PROBE,
         to_bytes(lite_wire_name_probe_reply{cpu_to_le32(LITE_WIRE_NAME_TAKEN)}),
         {FIELD(lite_wire_name_probe_reply, state, LITE_WIRE_NAME_TAKEN + 1, kAllOnes)}},
        {"NAME_ENTER", LITE_CALL_NAME_ENTER, to_bytes(lite_wire_name_reply{})},
        {"NAME_OPEN", LITE_CALL_NAME_OPEN, map_reply(1, 2), map_reply_spoilers()},
        {"LMR_CREATE", LITE_CALL_LMR_CREATE, map_reply(1, 2), map_reply_spoilers()},
        {"LMR_MAP", LITE_CALL_LMR_MAP, map_reply(1, 2), map_reply_spoilers()},
        extents_reply("LMR_EXTENTS", LITE_CALL_LMR_EXTENTS),
        {"LMR_UNMAP", LITE_CALL_LMR_UNMAP, {}},
        {"LMR_FREE", LITE_CALL_LMR_FREE, {}},
        {"LMR_GRANT", LITE_CALL_LMR_GRANT, {}},
        grants_reply(),
        {"LMR_SETATTR", LITE_CALL_LMR_SETATTR, {}},
        {"LMR_RENAME", LITE_CALL_LMR_RENAME, {}},
        {"LMR_RESIZE", LITE_CALL_LMR_RESIZE, {}},
        {"LMR_MOVE", LITE_CALL_LMR_MOVE, to_bytes(lite_wire_move_reply{})},
        {"LMR_RECALL", LITE_CALL_LMR_RECALL, {}},
        {"LMR_AWAIT", LITE_CALL_LMR_AWAIT, {}},
        {"LMR_REVOKE", LITE_CALL_LMR_REVOKE, {}},
        {"LMR_STAT",
         LITE_CALL_LMR_STAT,
         to_bytes(stat_reply()),
         {FIELD(lite_wire_stat_reply, lmr.n_shares, LITE_SPREAD_MAX + 1, kAllOnes),
          FIELD(lite_wire_stat_reply, lmr.name[0], '\x1f', '\n', 0x7f)}},
        list_reply(),
        {"MEM_ALLOC",
         LITE_CALL_MEM_ALLOC,
         to_bytes(mem_alloc_reply()),
         {FIELD(lite_wire_mem_alloc_reply, n_extents, 0),
          FIELD(lite_wire_mem_alloc_reply, reserved, 1)}},
        extents_reply("MEM_EXTENTS", LITE_CALL_MEM_EXTENTS),
        {"MEM_FREE", LITE_CALL_MEM_FREE, {}},
        {"MEM_COPY", LITE_CALL_MEM_COPY, {}},
        {"MEM_SESSION", LITE_CALL_MEM_SESSION, to_bytes(lite_wire_mem_session_reply{})},
        chunk_reply(),
        {"LMR_ENDS", LITE_CALL_LMR_ENDS, {}},
        operation_reply("OP_SET", LITE_CALL_OP_SET),
        operation_reply("OP_COPY", LITE_CALL_OP_COPY),
        operation_reply("OP_COMPARE", LITE_CALL_OP_COMPARE),
        operation_reply("OP_CHECKSUM", LITE_CALL_OP_CHECKSUM),
        operation_reply("OP_ATOMIC", LITE_CALL_OP_ATOMIC),
        {"OP_PREPARE", LITE_CALL_OP_PREPARE, {}},
        pack_reply(LITE_WIRE_OP_UNMAPPED, 0),
        rpc_bind_reply(),
        {"RPC_UNBIND", LITE_CALL_RPC_UNBIND, {}},
        rpc_cancel_reply(),
        {"RPC_FIND",
         LITE_CALL_RPC_FIND,
         to_bytes(rpc_func()),
         {FIELD(lite_wire_rpc_func, cookie, 0), FIELD(lite_wire_rpc_func, reserved, 1)}},
        {"RPC_GONE", LITE_CALL_RPC_GONE, {}},
        {"LOCK_WAIT", LITE_CALL_LOCK_WAIT, {}},
        {"LOCK_WAIT(barrier)", LITE_CALL_LOCK_WAIT, {}},
        {"LOCK_GRANT", LITE_CALL_LOCK_GRANT, {}},
        {"LOCK_RELEASE", LITE_CALL_LOCK_RELEASE, {}},
        lock_probe_reply(),
    };
}

std::vector<Message> operation_replies() {
    std::vector<Message> all;
    for (const std::uint16_t call : {LITE_CALL_OP_SET, LITE_CALL_OP_COPY, LITE_CALL_OP_COMPARE,
                                     LITE_CALL_OP_CHECKSUM, LITE_CALL_OP_ATOMIC}) {
        all.push_back(operation_reply("failed", call, 0, 4095));
        all.push_back(operation_reply("unmapped", call, LITE_WIRE_OP_UNMAPPED));
        all.push_back(operation_reply("elsewhere", call, LITE_WIRE_OP_ELSEWHERE));
    }
    all.push_back(operation_reply("different", LITE_CALL_OP_COMPARE, LITE_WIRE_OP_DIFFERENT));
    all.push_back(pack_reply(LITE_WIRE_OP_ELSEWHERE, 0));
    all.push_back(pack_reply(LITE_WIRE_OP_OK, ESTALE));
    all.push_back(operation_reply("busy", LITE_CALL_OP_ATOMIC, LITE_WIRE_OP_BUSY));
    return all;
}

}  // namespace lite_test
