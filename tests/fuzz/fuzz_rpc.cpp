// SPDX-License-Identifier: MIT
// Rings: records are taken and freed in any order; a peer sends records, bindings and lists.
#include "fuzz.hpp"

#include <algorithm>
#include <vector>

using namespace lite_fuzz;

namespace {

void use_ring(Input& in) {
    const std::uint32_t chunk = in.take<std::uint8_t>() + 1U;
    const std::uint32_t units = chunk * (in.take<std::uint8_t>() % 4 + 1U);
    std::vector<unsigned long> bits(BITS_TO_LONGS(units));
    std::vector<bool> taken(units);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> records;
    lite_ring_map map{};
    lite_ring_map_init(&map, units, chunk, bits.data());
    while (!in.empty()) {
        const std::uint32_t n = in.take<std::uint8_t>();
        if (n % 3 == 0 && !records.empty()) {
            const auto which = n / 3 % records.size();
            const auto [at, length] = records[which];
            lite_ring_give(&map, at, length);
            std::fill_n(taken.begin() + at, length, false);
            records[which] = records.back();
            records.pop_back();
            continue;
        }
        const auto at = lite_ring_take(&map, n, units);
        if (at == LITE_RING_NONE)
            continue;
        require(lite_ring_record_check(units, chunk, at, std::uint64_t{n} * LITE_RING_UNIT) == 0,
                "a record that is none");
        for (std::uint32_t i = at; i < at + n; ++i) {
            require(!taken[i], "a unit that is taken");
            taken[i] = true;
        }
        records.emplace_back(at, n);
    }
    require(map.used == static_cast<std::uint32_t>(std::count(taken.begin(), taken.end(), true)),
            "a sum");
}

void use_record(Input& in) {
    const auto chunk = in.take<std::uint16_t>() + 1U;
    const auto units = chunk * (in.take<std::uint8_t>() + 1U);
    const auto at = in.take<std::uint32_t>();
    const auto bytes = in.take<std::uint64_t>();
    if (lite_ring_record_check(units, chunk, at, bytes))
        return;
    require(bytes > 0, "an empty record");
    require(std::uint64_t{at} * LITE_RING_UNIT + bytes <= std::uint64_t{units} * LITE_RING_UNIT,
            "a record beyond the ring");
    require(at / chunk == (at + (bytes - 1) / LITE_RING_UNIT) / chunk, "a record across chunks");
}

void use_bind_reply(const std::uint8_t* payload, std::size_t size) {
    if (lite_wire_reply_check(LITE_CALL_RPC_BIND, payload, size))
        return;
    lite_wire_rpc_bind_reply reply{};
    std::memcpy(&reply, payload, sizeof(reply));
    const auto n = le32_to_cpu(reply.n_chunks);
    const auto bytes = le32_to_cpu(reply.chunk_bytes);
    require(size == sizeof(reply) + n * sizeof(std::uint64_t), "missing addresses");
    require(std::uint64_t{n} * bytes <= std::uint64_t{LITE_RING_UNITS_MAX} * LITE_RING_UNIT,
            "units without a number");
    const auto body =
        lite_rpc_body_max(le32_to_cpu(reply.func.max_request), le32_to_cpu(reply.func.max_reply));
    require(body + LITE_RPC_HEADER <= bytes, "a record too long");
    require(le32_to_cpu(reply.depth) <= LITE_RPC_DEPTH, "slots");
}

void use_header(const std::uint8_t* payload, std::size_t size) {
    lite_wire_rpc header{};
    std::memcpy(&header, payload, std::min(size, sizeof(header)));
    for (const bool request : {true, false}) {
        if (lite_wire_rpc_check(&header, request))
            continue;
        require(le16_to_cpu(header.slot) < LITE_RPC_DEPTH, "a slot");
        const auto flags = le32_to_cpu(header.flags);
        const auto most = flags & LITE_RPC_F_BULK ? LITE_RPC_BULK_MAX : LITE_RPC_BYTES_MAX;
        require(!request || le32_to_cpu(header.room) <= most, "a room");
        require(!request || le32_to_cpu(header.length) <= most, "a length");
        require(request || header.status < LITE_RPC_STATUSES, "a status");
    }
}

void use_list(Input& in) {
    const auto n_request = in.take<std::uint8_t>();
    const auto n_reply = in.take<std::uint8_t>();
    const auto length = in.take<std::uint32_t>();
    const auto room = in.take<std::uint32_t>();
    std::vector<lite_wire_rpc_chunk> chunks(std::size_t{n_request} + n_reply);
    for (auto& chunk : chunks)
        chunk = in.take<lite_wire_rpc_chunk>();
    if (lite_wire_rpc_bulk_check(chunks.data(), n_request, n_reply, length, room))
        return;
    std::uint64_t sums[2] = {};
    for (std::size_t i = 0; i < chunks.size(); i++) {
        require(chunks[i].addr && chunks[i].bytes, "a chunk that is none");
        sums[i >= n_request] += le32_to_cpu(chunks[i].bytes);
    }
    require(length <= (n_request ? sums[0] : LITE_RPC_BYTES_MAX), "a request that is nowhere");
    require(room <= (n_reply ? sums[1] : LITE_RPC_BYTES_MAX), "a reply that goes nowhere");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input in(data, size);
    switch (in.take<std::uint8_t>() % 6) {
        case 0:
            use_ring(in);
            break;
        case 1:
            use_record(in);
            break;
        case 2:
            use_bind_reply(data + 1, size ? size - 1 : 0);
            break;
        case 3:
            use_header(data + 1, size ? size - 1 : 0);
            break;
        case 4:
            use_list(in);
            break;
        default: {
            const auto imm = in.take<std::uint32_t>();
            lite_imm_kind kind{};
            std::uint16_t ring = 0;
            std::uint16_t at = 0;
            if (!lite_imm_is_ring(imm))
                break;
            lite_imm_decode(imm, &kind, &ring, &at);
            require(lite_imm_encode(kind, ring, at) == imm, "an immediate");
        }
    }
    return 0;
}
