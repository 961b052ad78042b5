// SPDX-License-Identifier: MIT
#include "wire_fixtures.hpp"

#include <algorithm>
#include <map>
#include <vector>

using namespace lite_test;

namespace {

using Check = int (*)(std::uint16_t, const void*, std::size_t);

// Bytes in a block of exactly their size, so that the address sanitizer sees a read beyond them.
int run(Check check, std::uint16_t call, const Bytes& payload) {
    const Bytes exact(payload.begin(), payload.end());
    return check(call, exact.data(), exact.size());
}

void check_lengths(Check check, const Message& message) {
    for (std::size_t length = 0; length <= LITE_WORK_PAYLOAD_MAX; ++length) {
        if (length == message.payload.size())
            continue;
        Bytes other = message.payload;
        other.resize(length);
        if (run(check, message.call, other) != -EPROTO)
            FAIL_CHECK(message.label << " of " << length << " bytes instead of "
                                     << message.payload.size() << " was not refused");
    }
}

void check_spoilers(Check check, const Message& message) {
    for (const auto& spoiler : message.spoilers) {
        for (const auto value : spoiler.refused) {
            CAPTURE(message.label, spoiler.field, value);
            Bytes bad = message.payload;
            poke(bad, spoiler.offset, spoiler.size, value);
            CHECK(run(check, message.call, bad) == -EPROTO);
        }
    }
}

// Random payloads, and sound ones with a few bytes changed: the sanitizers find bad accesses.
void check_noise(Check check, const Message& message) {
    Random random;
    for (int i = 0; i < 3000; ++i) {
        Bytes bytes = message.payload;
        if (random.between(0, 3) == 0)
            bytes.resize(random.between(0, LITE_WORK_PAYLOAD_MAX));
        for (auto n = bytes.empty() ? 0 : random.between(1, 8); n > 0; --n)
            bytes[random.between(0, bytes.size() - 1)] = static_cast<std::byte>(random.bits());
        const int e = run(check, message.call, bytes);
        if (e != 0 && e != -EPROTO)
            FAIL_CHECK("seed " << seed() << ": " << message.label << " returned " << e);
    }
}

}  // namespace

TEST_CASE("wire: sound requests are accepted") {
    for (const auto& message : requests()) {
        CAPTURE(message.label);
        CHECK(run(lite_wire_request_check, message.call, message.payload) == 0);
    }
}

TEST_CASE("wire: sound replies are accepted") {
    for (const auto& message : replies()) {
        CAPTURE(message.label);
        CHECK(run(lite_wire_reply_check, message.call, message.payload) == 0);
    }
}

TEST_CASE("wire: every call has a request and a reply, and fits a slot") {
    const auto all = requests();
    const auto answers = replies();
    REQUIRE(all.size() == answers.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        CAPTURE(all[i].label, answers[i].label);
        CHECK(all[i].call == answers[i].call);
        CHECK(all[i].payload.size() <= lite_call_payload_max(all[i].call));
        CHECK(answers[i].payload.size() <= lite_call_payload_max(answers[i].call));
    }
}

TEST_CASE("wire: requests of a wrong length are -EPROTO") {
    for (const auto& message : requests())
        check_lengths(lite_wire_request_check, message);
}

TEST_CASE("wire: replies of a wrong length are -EPROTO") {
    for (const auto& message : replies())
        check_lengths(lite_wire_reply_check, message);
}

TEST_CASE("wire: requests with a bad field are -EPROTO") {
    for (const auto& message : requests())
        check_spoilers(lite_wire_request_check, message);
}

TEST_CASE("wire: replies with a bad field are -EPROTO") {
    for (const auto& message : replies())
        check_spoilers(lite_wire_reply_check, message);
}

TEST_CASE("wire: a reply to a memory operation has exactly one result, of the operation's kind") {
    for (const auto& message : operation_replies()) {
        CAPTURE(message.label, message.call);
        CHECK(run(lite_wire_reply_check, message.call, message.payload) == 0);
        check_spoilers(lite_wire_reply_check, message);
    }
}

TEST_CASE("wire: the reads of a pack fit into its reply, which has all of their bytes") {
    const auto pack = [](std::uint32_t n, std::uint16_t length) {
        lite_wire_pack head{cpu_to_le32(1), cpu_to_le32(n)};
        lite_wire_range range{};
        range.id = cpu_to_le64(1);
        range.home = cpu_to_le32(1);
        Bytes bytes = to_bytes(head, std::vector{range});
        const auto ops = to_bytes(lite_wire_pack_op{0, cpu_to_le16(length), 0, 0});
        for (std::uint32_t i = 0; i < n; ++i)
            bytes.insert(bytes.end(), ops.begin(), ops.end());
        return run(lite_wire_request_check, LITE_CALL_OP_PACK, bytes);
    };
    static_assert(LITE_PACK_OPS >= LITE_PACK_IN_MAX / LITE_PACK_BYTES);
    for (std::uint16_t length = 1; length <= LITE_PACK_BYTES; ++length) {
        const std::uint32_t most = std::min(LITE_PACK_IN_MAX / length, LITE_PACK_OPS);
        CAPTURE(length, most);
        CHECK(pack(most, length) == 0);
        CHECK(pack(most + 1, length) == -EPROTO);
    }
    lite_wire_pack_reply well{};
    Bytes reply = to_bytes(well);
    reply.resize(LITE_WORK_PAYLOAD_MAX);
    CHECK(run(lite_wire_reply_check, LITE_CALL_OP_PACK, reply) == 0);
    // A complete reply means that all operations were executed.
    poke(reply, offsetof(lite_wire_pack_reply, at), sizeof(well.at), 1);
    CHECK(run(lite_wire_reply_check, LITE_CALL_OP_PACK, reply) == -EPROTO);
}

TEST_CASE("wire: the answer to a MAP has no more extents than the LMR") {
    for (const std::uint16_t call : {LITE_CALL_LMR_MAP, LITE_CALL_LMR_CREATE, LITE_CALL_NAME_OPEN})
        for (const std::uint32_t shares : {1U, 2U, 64U})
            for (std::uint32_t told = 0; told <= 5; ++told) {
                CAPTURE(call, shares, told);
                CHECK(run(lite_wire_reply_check, call, map_reply(shares, told)) ==
                      (told <= 4 ? 0 : -EPROTO));
            }
}

TEST_CASE(
    "wire: only a directory may say that an LMR is at home elsewhere, and then nothing else") {
    lite_wire_map_reply elsewhere{};
    elsewhere.id = cpu_to_le64(9);
    elsewhere.home = cpu_to_le32(3);
    CHECK(run(lite_wire_reply_check, LITE_CALL_NAME_OPEN, to_bytes(elsewhere)) == 0);
    CHECK(run(lite_wire_reply_check, LITE_CALL_LMR_MAP, to_bytes(elsewhere)) == -EPROTO);
    CHECK(run(lite_wire_reply_check, LITE_CALL_LMR_CREATE, to_bytes(elsewhere)) == -EPROTO);
    check_spoilers(
        lite_wire_reply_check,
        {"elsewhere",
         LITE_CALL_NAME_OPEN,
         to_bytes(elsewhere),
         {FIELD(lite_wire_map_reply, length, 1), FIELD(lite_wire_map_reply, n_extents, 1),
          FIELD(lite_wire_map_reply, rights, 1), FIELD(lite_wire_map_reply, n_told, 1),
          FIELD(lite_wire_map_reply, of, 8), FIELD(lite_wire_map_reply, base, LITE_PAGE_SIZE)}});
}

TEST_CASE("wire: only its home stores an unpinned LMR, which has no extents") {
    for (const std::uint16_t call :
         {LITE_CALL_LMR_MAP, LITE_CALL_LMR_CREATE, LITE_CALL_NAME_OPEN}) {
        for (const std::uint32_t shares : {1U, 2U}) {
            for (const std::uint32_t told : {0U, 1U}) {
                Bytes reply = map_reply(shares, told);
                poke(reply, offsetof(lite_wire_map_reply, n_extents), 4, 0);
                CAPTURE(call, shares, told);
                CHECK(run(lite_wire_reply_check, call, reply) ==
                      (shares == 1 && !told ? 0 : -EPROTO));
            }
        }
    }
}

TEST_CASE("wire: only by its id a chunk is mapped, with its place in its LMR") {
    for (const std::uint16_t call :
         {LITE_CALL_LMR_MAP, LITE_CALL_LMR_CREATE, LITE_CALL_NAME_OPEN}) {
        for (const std::uint64_t base : {std::uint64_t{0}, std::uint64_t{LITE_PAGE_SIZE}}) {
            Bytes reply = map_reply(1, 2);
            poke(reply, offsetof(lite_wire_map_reply, of), 8, 8);
            poke(reply, offsetof(lite_wire_map_reply, base), 8, base);
            CAPTURE(call, base);
            CHECK(run(lite_wire_reply_check, call, reply) ==
                  (call == LITE_CALL_LMR_MAP ? 0 : -EPROTO));
            // A chunk must have extents.
            reply = map_reply(1, 0);
            poke(reply, offsetof(lite_wire_map_reply, of), 8, 8);
            poke(reply, offsetof(lite_wire_map_reply, n_extents), 4, 0);
            CHECK(run(lite_wire_reply_check, call, reply) == -EPROTO);
        }
    }
}

TEST_CASE("wire: a chunk has one share") {
    // As long as a good one: two shares and one extent.
    Message m = chunk_reply();
    REQUIRE(run(lite_wire_reply_check, m.call, m.payload) == 0);
    poke(m.payload, offsetof(lite_wire_map_reply, n_shares), 4, 2);
    poke(m.payload, offsetof(lite_wire_map_reply, n_told), 4, 1);
    poke(m.payload, offsetof(lite_wire_map_reply, n_extents), 4, 1);
    CHECK(run(lite_wire_reply_check, m.call, m.payload) == -EPROTO);
}

TEST_CASE("wire: the most extents that an answer to a MAP can have fit") {
    const auto entries = static_cast<std::uint32_t>(LITE_MAP_ENTRIES);
    for (const std::uint32_t shares : {1U, 64U}) {
        for (const std::uint32_t told : {entries - shares, entries - shares + 1}) {
            lite_wire_map_reply head{};
            head.id = cpu_to_le64(9);
            head.length = cpu_to_le64(1000 * LITE_PAGE_SIZE);
            head.n_extents = cpu_to_le32(1000);
            head.n_shares = cpu_to_le32(shares);
            head.n_told = cpu_to_le32(told);
            Bytes bytes = to_bytes(head, std::vector<lite_wire_share>(shares));
            bytes.resize(bytes.size() + told * sizeof(lite_wire_extent));
            CAPTURE(shares, told);
            CHECK(run(lite_wire_reply_check, LITE_CALL_LMR_MAP, bytes) == 0);
            CHECK((bytes.size() <= lite_call_payload_max(LITE_CALL_LMR_MAP)) ==
                  (told + shares == entries));
        }
    }
}

TEST_CASE("wire: only copies may go backward, and all but PREPARE may be careful") {
    for (auto message : requests()) {
        if (message.call < LITE_CALL_OP_SET || message.call > LITE_CALL_OP_PREPARE)
            continue;
        CAPTURE(message.label);
        for (const std::uint32_t flags : {0U, 1U, 2U, 3U}) {
            poke(message.payload, offsetof(lite_wire_op, flags), sizeof(flags), flags);
            const bool good =
                message.call == LITE_CALL_OP_COPY ||
                (message.call == LITE_CALL_OP_PREPARE ? !flags : !(flags & LITE_WIRE_OP_BACKWARD));
            CHECK(run(lite_wire_request_check, message.call, message.payload) ==
                  (good ? 0 : -EPROTO));
        }
    }
}

TEST_CASE("wire: names that fill their field without a NUL are -EPROTO") {
    for (const auto& message : requests()) {
        const auto at = message.call == LITE_CALL_LMR_CREATE ? offsetof(lite_wire_create, name)
                                                             : offsetof(lite_wire_name, name);
        if (message.payload.size() < at + LITE_NAME_SIZE || message.call == LITE_CALL_MEM_FREE)
            continue;
        CAPTURE(message.label);
        Bytes bad = message.payload;
        std::fill_n(bad.begin() + static_cast<std::ptrdiff_t>(at), LITE_NAME_SIZE, std::byte{'x'});
        CHECK(run(lite_wire_request_check, message.call, bad) == -EPROTO);
    }
}

TEST_CASE("wire: CREATE without a name is accepted") {
    lite_wire_create create{};
    create.length = cpu_to_le64(1);
    create.n_nodes = cpu_to_le32(1);
    CHECK(run(lite_wire_request_check, LITE_CALL_LMR_CREATE, to_bytes(create)) == 0);
}

TEST_CASE("wire: the longest lists fit, and not one entry more") {
    lite_wire_list_reply head{};
    lite_wire_lmr lmr{};
    lmr.id = cpu_to_le64(9);
    head.count = cpu_to_le32(LITE_LMRS_PER_REPLY);
    CHECK(run(lite_wire_reply_check, LITE_CALL_LMR_LIST,
              to_bytes(head, std::vector<lite_wire_lmr>(LITE_LMRS_PER_REPLY, lmr))) == 0);
    head.count = cpu_to_le32(LITE_LMRS_PER_REPLY + 1);
    CHECK(run(lite_wire_reply_check, LITE_CALL_LMR_LIST,
              to_bytes(head, std::vector<lite_wire_lmr>(LITE_LMRS_PER_REPLY + 1, lmr))) == -EPROTO);
}

TEST_CASE("wire: calls that do not exist") {
    std::vector<bool> known(65536);
    for (const auto& message : requests())
        known[message.call] = true;
    for (std::uint32_t call = 0; call < 65536; ++call) {
        if (known[call])
            continue;
        const Bytes some(64);
        const int e = run(lite_wire_request_check, static_cast<std::uint16_t>(call), some);
        const int r = run(lite_wire_reply_check, static_cast<std::uint16_t>(call), some);
        if (e != -EOPNOTSUPP || r != -EPROTO)
            FAIL_CHECK("call " << call << ": request " << e << ", reply " << r);
    }
}

TEST_CASE("wire: noise is refused or accepted, without bad accesses") {
    for (const auto& message : requests())
        check_noise(lite_wire_request_check, message);
    for (const auto& message : replies())
        check_noise(lite_wire_reply_check, message);
}

TEST_CASE("wire: the head of a message") {
    lite_wire_msg good{};
    good.magic = cpu_to_le32(LITE_WIRE_MAGIC);
    good.version = LITE_WIRE_VERSION;
    good.call = cpu_to_le16(LITE_CALL_PING);
    good.length = cpu_to_le32(LITE_PAYLOAD_MAX);
    good.error = cpu_to_le32(4095);
    REQUIRE(lite_wire_msg_check(&good) == 0);

    for (std::size_t bit = 0; bit < 8 * sizeof(good); ++bit) {
        auto bytes = to_bytes(good);
        bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
        lite_wire_msg spoilt{};
        std::memcpy(&spoilt, bytes.data(), sizeof(spoilt));
        // Other code checks these fields: any value is valid here, or any smaller value of a size.
        const auto at = bit / 8;
        const bool free_field =
            (at >= offsetof(lite_wire_msg, call) && at < offsetof(lite_wire_msg, length)) ||
            (at >= offsetof(lite_wire_msg, seq) && at < offsetof(lite_wire_msg, reserved));
        const bool smaller =
            (at >= offsetof(lite_wire_msg, length) && at < offsetof(lite_wire_msg, seq)) &&
            le32_to_cpu(spoilt.length) <= LITE_PAYLOAD_MAX && le32_to_cpu(spoilt.error) <= 4095;
        // Calls of some lanes have smaller slots.
        const bool fits =
            le32_to_cpu(spoilt.length) <= lite_call_payload_max(le16_to_cpu(spoilt.call));
        CAPTURE(bit);
        CHECK(lite_wire_msg_check(&spoilt) == ((free_field && fits) || smaller ? 0 : -EPROTO));
    }
}

TEST_CASE("wire: no message is longer than its slot") {
    for (const auto& message : requests()) {
        lite_wire_msg msg{};
        msg.magic = cpu_to_le32(LITE_WIRE_MAGIC);
        msg.version = LITE_WIRE_VERSION;
        msg.call = cpu_to_le16(message.call);
        const std::uint32_t slot = lite_lane_first[lite_call_lane(message.call)];
        const std::uint32_t most = lite_call_payload_max(message.call);
        CAPTURE(message.label, slot, most);
        CHECK(sizeof(msg) + most <= lite_slot_bytes(slot));
        msg.length = cpu_to_le32(most);
        CHECK(lite_wire_msg_check(&msg) == 0);
        msg.length = cpu_to_le32(most + 1);
        CHECK(lite_wire_msg_check(&msg) == -EPROTO);
    }
}

TEST_CASE("wire: slots follow each other, and the scratch follows the last") {
    std::uint32_t end = 0;
    for (std::uint32_t slot = 0; slot < LITE_SLOT_COUNT; ++slot) {
        CAPTURE(slot);
        CHECK(lite_slot_offset(slot) == end);
        CHECK(lite_slot_offset(slot) % 64 == 0);
        end = lite_slot_offset(slot) + lite_slot_bytes(slot);
    }
    CHECK(end <= LITE_SLOTS_SCRATCH);
    CHECK(LITE_SLOTS_SCRATCH + 8 == LITE_SLOTS_BYTES);
}

TEST_CASE("wire: private data of every kind is accepted, padded or not") {
    for (const auto& data : private_data()) {
        CAPTURE(data.kind);
        for (const std::size_t padding : {0U, 1U, 20U, 196U}) {
            Bytes padded = data.bytes;
            padded.resize(padded.size() + padding);
            lite_cm_kind kind{};
            REQUIRE(lite_cm_check(padded.data(), padded.size(), &kind) == 0);
            CHECK(kind == data.kind);
        }
    }
}

TEST_CASE("wire: private data that is cut off is -EPROTO") {
    for (const auto& data : private_data()) {
        for (std::size_t length = 0; length < data.bytes.size(); ++length) {
            const Bytes cut(data.bytes.begin(),
                            data.bytes.begin() + static_cast<std::ptrdiff_t>(length));
            lite_cm_kind kind{};
            CAPTURE(data.kind, length);
            CHECK(lite_cm_check(cut.data(), cut.size(), &kind) == -EPROTO);
        }
    }
    lite_cm_kind kind{};
    CHECK(lite_cm_check(nullptr, 0, &kind) == -EPROTO);
}

TEST_CASE("wire: private data with a bad header") {
    const std::vector<Spoiler> refused{
        {"magic", offsetof(lite_cm_hdr, magic), 4, {0, LITE_WIRE_MAGIC ^ 1, ~0ULL}},
        {"kind", offsetof(lite_cm_hdr, kind), 1, {0, LITE_CM_REFUSE + 1, 255}},
        {"nqps", offsetof(lite_cm_hdr, nqps), 1, {0, LITE_QPS_MAX + 1, 255}},
        {"quirks", offsetof(lite_cm_hdr, quirks), 1, {LITE_CM_QUIRKS + 1, 128}},
    };
    for (const auto& data : private_data()) {
        lite_cm_kind kind{};
        for (const auto& spoiler : refused) {
            for (const auto value : spoiler.refused) {
                CAPTURE(data.kind, spoiler.field, value);
                Bytes bad = data.bytes;
                poke(bad, spoiler.offset, spoiler.size, value);
                CHECK(lite_cm_check(bad.data(), bad.size(), &kind) == -EPROTO);
            }
        }
        for (const int version : {0, LITE_WIRE_VERSION + 1, 255}) {
            Bytes other = data.bytes;
            poke(other, offsetof(lite_cm_hdr, version), 1, static_cast<std::uint64_t>(version));
            CHECK(lite_cm_check(other.data(), other.size(), &kind) == -EPROTONOSUPPORT);
        }
    }
}

TEST_CASE("wire: credentials survive the round trip, and a wild count is bounded") {
    Random random;
    for (int i = 0; i < 1000; ++i) {
        lite_cred cred{};
        cred.uid = static_cast<std::uint32_t>(random.bits());
        cred.gid = static_cast<std::uint32_t>(random.bits());
        cred.n_groups = static_cast<std::uint32_t>(random.between(0, LITE_CRED_GROUPS));
        for (std::uint32_t g = 0; g < cred.n_groups; ++g)
            cred.groups[g] = static_cast<std::uint32_t>(random.bits());
        lite_wire_cred wire{};
        lite_wire_cred_put(&wire, &cred);
        lite_cred back{};
        lite_wire_cred_get(&back, &wire);
        REQUIRE(std::memcmp(&back, &cred, sizeof(cred)) == 0);
    }
    lite_wire_cred wild{};
    wild.n_groups = cpu_to_le32(~0U);
    lite_cred cred{};
    lite_wire_cred_get(&cred, &wild);
    CHECK(cred.groups[LITE_CRED_GROUPS - 1] == 0);
}

TEST_CASE("wire: a handler makes calls only in later lanes than its own") {
    const std::multimap<std::uint16_t, std::vector<std::uint16_t>> makes = {
        {LITE_CALL_LMR_CREATE,
         {LITE_CALL_MEM_ALLOC, LITE_CALL_MEM_EXTENTS, LITE_CALL_MEM_FREE, LITE_CALL_NAME_PROBE,
          LITE_CALL_NAME_ENTER, LITE_CALL_NAME_DROP}},
        {LITE_CALL_LMR_UNMAP, {LITE_CALL_LMR_REVOKE, LITE_CALL_MEM_FREE, LITE_CALL_NAME_DROP}},
        {LITE_CALL_LMR_FREE, {LITE_CALL_LMR_REVOKE, LITE_CALL_MEM_FREE, LITE_CALL_NAME_DROP}},
        {LITE_CALL_LMR_GRANT, {LITE_CALL_LMR_RECALL, LITE_CALL_MEM_FREE}},
        {LITE_CALL_LMR_SETATTR, {LITE_CALL_LMR_RECALL, LITE_CALL_MEM_FREE}},
        {LITE_CALL_LMR_RENAME, {LITE_CALL_NAME_PROBE, LITE_CALL_NAME_ENTER, LITE_CALL_NAME_DROP}},
        {LITE_CALL_LMR_RESIZE,
         {LITE_CALL_LMR_RECALL, LITE_CALL_MEM_ALLOC, LITE_CALL_MEM_EXTENTS, LITE_CALL_MEM_COPY,
          LITE_CALL_MEM_FREE}},
        {LITE_CALL_LMR_MOVE,
         {LITE_CALL_LMR_RECALL, LITE_CALL_MEM_ALLOC, LITE_CALL_MEM_EXTENTS, LITE_CALL_MEM_COPY,
          LITE_CALL_MEM_FREE}},
        // AWAIT waits for the end of any of these.
        {LITE_CALL_LMR_AWAIT,
         {LITE_CALL_LMR_GRANT, LITE_CALL_LMR_SETATTR, LITE_CALL_LMR_RESIZE, LITE_CALL_LMR_MOVE}},
        {LITE_CALL_OP_PREPARE, {LITE_CALL_LMR_MAP, LITE_CALL_LMR_EXTENTS, LITE_CALL_LMR_UNMAP}},
        // These wait for operations that have entered, which may wait for a call on the right.
        {LITE_CALL_LMR_REVOKE, {LITE_CALL_OP_COPY}},
        {LITE_CALL_LMR_RECALL,
         {LITE_CALL_OP_SET, LITE_CALL_OP_COPY, LITE_CALL_OP_COMPARE, LITE_CALL_OP_CHECKSUM,
          LITE_CALL_OP_ATOMIC, LITE_CALL_OP_PACK}},
        // Bringing in pages may need memory, for which other chunks may have to end.
        {LITE_CALL_LMR_CHUNK, {LITE_CALL_LMR_ENDS}},
        {LITE_CALL_LMR_ENDS,
         {LITE_CALL_OP_SET, LITE_CALL_OP_COPY, LITE_CALL_OP_COMPARE, LITE_CALL_OP_CHECKSUM,
          LITE_CALL_OP_ATOMIC, LITE_CALL_OP_PACK}},
        {LITE_CALL_MEM_FREE, {LITE_CALL_OP_COPY}},
    };
    for (const auto& [caller, callees] : makes)
        for (const auto callee : callees)
            CHECK(lite_call_lane(caller) < lite_call_lane(callee));
}

TEST_CASE("wire: the lanes have all slots, no lane is empty, and every call has a lane") {
    CHECK(lite_lane_first[0] == 0);
    CHECK(lite_lane_first[LITE_LANES] == LITE_SLOT_COUNT);
    for (int lane = 0; lane < LITE_LANES; ++lane) {
        REQUIRE(lite_lane_first[lane] < lite_lane_first[lane + 1]);
        for (std::uint32_t slot = lite_lane_first[lane]; slot < lite_lane_first[lane + 1]; ++slot)
            CHECK(lite_slot_lane(slot) == lane);
    }
    for (const auto& message : requests())
        CHECK(lite_call_lane(message.call) < LITE_LANES);
}

TEST_CASE("wire: a guest may attach, ask for the members, and join, and only a guest may join") {
    for (const auto& message : requests()) {
        CAPTURE(message.label);
        const bool greets = message.call == LITE_CALL_ATTACH || message.call == LITE_CALL_MEMBERS;
        const bool joins = message.call == LITE_CALL_JOIN;
        CHECK(static_cast<bool>(lite_call_by(message.call) & LITE_BY_GUEST) == (greets || joins));
        CHECK(static_cast<bool>(lite_call_by(message.call) & LITE_BY_MEMBER) == !joins);
    }
    // A guest may not make unknown calls.
    for (const unsigned call : {0U, 6U, 100U, 65535U})
        CHECK_FALSE(lite_call_by(static_cast<std::uint16_t>(call)) & LITE_BY_GUEST);
}

TEST_CASE("wire: an unexpected errno from a peer becomes -EIO") {
    CHECK(lite_wire_error(0) == 0);
    CHECK(lite_wire_error(ENOSPC) == -ENOSPC);
    for (const std::uint32_t error :
         {0U + EAGAIN, 0U + EBADMSG, 0U + EINPROGRESS, 134U, 512U, 4095U, ~0U})
        CHECK(lite_wire_error(error) == -EIO);
}

TEST_CASE("wire: a refusal to connect is never an errno with a local meaning") {
    for (const int error : {ENOTCONN, EEXIST, ESTALE, EKEYREJECTED, EBUSY, EALREADY})
        CHECK(lite_wire_refusal(static_cast<std::uint32_t>(error)) == -error);
    CHECK(lite_wire_refusal(0) == -EPROTO);
    // Locally these mean: try again, time-out, killed caller, internal to the kernel.
    for (const std::uint32_t error :
         {0U + EAGAIN, 0U + ETIMEDOUT, 0U + EINTR, 0U + EBADMSG, 512U, 4095U, ~0U})
        CHECK(lite_wire_refusal(error) == -EIO);
}
