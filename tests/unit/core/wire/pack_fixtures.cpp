// SPDX-License-Identifier: MIT
// OP_PACK and its replies.
#include "wire_fixtures.hpp"

#include <utility>

namespace lite_test {

// Two LMRs; a write of 5 bytes to one, and a read of 7 bytes of the other.
Message pack() {
    lite_wire_pack head{};
    head.n_ranges = cpu_to_le32(2);
    head.n_ops = cpu_to_le32(2);
    lite_wire_range range{};
    range.id = cpu_to_le64(9);
    range.home = cpu_to_le32(3);
    lite_wire_pack_op write{cpu_to_le64(kAllOnes), cpu_to_le16(5), 1, 1};
    lite_wire_pack_op read{cpu_to_le64(0), cpu_to_le16(7), 0, 0};
    Bytes payload = to_bytes(head, std::vector<lite_wire_range>(2, range));
    for (const auto& part : {to_bytes(write), to_bytes(read), Bytes(5)})
        payload.insert(payload.end(), part.begin(), part.end());
    const auto spoiler = [](const char* field, std::size_t offset, std::size_t size,
                            std::vector<std::uint64_t> refused) {
        return Spoiler{field, offset, size, std::move(refused)};
    };
    const std::size_t second = sizeof(head) + sizeof(range);
    const std::size_t first_op = second + sizeof(range);
    const std::size_t last_op = first_op + sizeof(write);
    return {"OP_PACK",
            LITE_CALL_OP_PACK,
            payload,
            {FIELD(lite_wire_pack, n_ranges, 0, 1, 3, LITE_PACK_RANGES + 1, 0x10000000, kAllOnes),
             FIELD(lite_wire_pack, n_ops, 0, 1, 3, LITE_PACK_OPS + 1, 0x10000000, kAllOnes),
             spoiler("range[1].id", second + offsetof(lite_wire_range, id), 8, {0}),
             spoiler("range[1].home", second + offsetof(lite_wire_range, home), 4, {0}),
             spoiler("range[1].offset", second + offsetof(lite_wire_range, offset), 8, {1}),
             spoiler("range[1].reserved", second + offsetof(lite_wire_range, reserved), 4, {1}),
             spoiler("op[0].length", first_op + offsetof(lite_wire_pack_op, length), 2,
                     {0, 4, 6, LITE_PACK_BYTES + 1, 0xffff}),
             spoiler("op[0].range", first_op + offsetof(lite_wire_pack_op, range), 1, {2, 255}),
             spoiler("op[0].write", first_op + offsetof(lite_wire_pack_op, write), 1, {0, 2, 255}),
             spoiler("op[1].length", last_op + offsetof(lite_wire_pack_op, length), 2,
                     {0, LITE_PACK_BYTES + 1, 0xffff}),
             spoiler("op[1].write", last_op + offsetof(lite_wire_pack_op, write), 1, {1})}};
}

Message pack_reply(std::uint32_t status, std::uint32_t error) {
    lite_wire_pack_reply reply{};
    reply.status = cpu_to_le32(status);
    reply.error = cpu_to_le32(error);
    reply.at = cpu_to_le32(LITE_PACK_OPS - 1);
    std::vector<Spoiler> spoilers = {
        FIELD(lite_wire_pack_reply, at, LITE_PACK_OPS, kAllOnes),
        FIELD(lite_wire_pack_reply, reserved, 1, kAllOnes),
        FIELD(lite_wire_pack_reply, error, 4096, kAllOnes),
        FIELD(lite_wire_pack_reply, status, LITE_WIRE_OP_DIFFERENT, LITE_WIRE_OP_BUSY, kAllOnes)};
    // Not both a status and an error.
    if (status)
        spoilers[2].refused.push_back(1);
    else
        spoilers[3].refused.push_back(LITE_WIRE_OP_UNMAPPED);
    return {"OP_PACK", LITE_CALL_OP_PACK, to_bytes(reply), spoilers};
}

}  // namespace lite_test
