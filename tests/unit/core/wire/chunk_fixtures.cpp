// SPDX-License-Identifier: MIT
// Chunks of unpinned LMRs.
#include "wire_fixtures.hpp"

namespace lite_test {

Message chunk() {
    lite_wire_chunk c{};
    c.id = cpu_to_le64(9);
    c.offset = cpu_to_le64(3 * LITE_PAGE_SIZE + 8);
    c.write = cpu_to_le32(1);
    return {"LMR_CHUNK",
            LITE_CALL_LMR_CHUNK,
            to_bytes(c),
            {FIELD(lite_wire_chunk, write, 2, kAllOnes), FIELD(lite_wire_chunk, reserved, 1)}};
}

Message chunk_reply() {
    lite_wire_map_reply head{};
    head.id = cpu_to_le64(10);
    head.length = cpu_to_le64(5 * LITE_PAGE_SIZE);
    head.n_extents = cpu_to_le32(2);
    head.n_shares = cpu_to_le32(1);
    head.rights = cpu_to_le32(LITE_RIGHT_WRITE);
    head.n_told = cpu_to_le32(2);
    head.of = cpu_to_le64(9);
    head.base = cpu_to_le64(2 * LITE_PAGE_SIZE);
    // The share is as long as an extent.
    return {
        "LMR_CHUNK",
        LITE_CALL_LMR_CHUNK,
        to_bytes(head, std::vector<lite_wire_extent>(3)),
        {FIELD(lite_wire_map_reply, id, 0, LITE_LMR_ID_MAX + 1, kAllOnes),
         FIELD(lite_wire_map_reply, length, 0, LITE_LMR_SIZE_MAX + 1, kAllOnes),
         FIELD(lite_wire_map_reply, n_extents, 0, 1, 3, 6, kAllOnes),
         FIELD(lite_wire_map_reply, n_shares, 0, 2, kAllOnes),
         FIELD(lite_wire_map_reply, rights, 1U << 5, 1U << 31),
         FIELD(lite_wire_map_reply, n_told, 0, 1, 3, kAllOnes), FIELD(lite_wire_map_reply, of, 0),
         FIELD(lite_wire_map_reply, base, LITE_LMR_SIZE_MAX + 1, kAllOnes)}};
}

Message ends() {
    lite_wire_ends head{};
    head.count = cpu_to_le32(3);
    return {"LMR_ENDS",
            LITE_CALL_LMR_ENDS,
            to_bytes(head, std::vector<std::uint64_t>{7, 8, 9}),
            {FIELD(lite_wire_ends, count, 0, 2, 4, LITE_ENDS_PER_CALL + 1, 0x20000000, kAllOnes),
             FIELD(lite_wire_ends, reserved, 1)}};
}

Message unmaps() {
    lite_wire_unmaps head{};
    head.count = cpu_to_le32(2);
    lite_wire_unmap unmap{};
    unmap.id = cpu_to_le64(10);
    unmap.count = cpu_to_le32(1);
    unmap.flags = cpu_to_le32(LITE_UNMAP_UNCLEAN | LITE_UNMAP_LAST);
    Spoiler second{"unmap[1].flags",
                   sizeof(head) + sizeof(unmap) + offsetof(lite_wire_unmap, flags),
                   4,
                   {4, kAllOnes}};
    return {
        "LMR_UNMAP",
        LITE_CALL_LMR_UNMAP,
        to_bytes(head, std::vector<lite_wire_unmap>(2, unmap)),
        {FIELD(lite_wire_unmaps, count, 0, 1, 3, LITE_UNMAPS_PER_CALL + 1, 0x10000000, kAllOnes),
         FIELD(lite_wire_unmaps, reserved, 1), second}};
}

}  // namespace lite_test
