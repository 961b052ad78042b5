// SPDX-License-Identifier: MIT
#include "support.hpp"

#include <map>
#include <random>
#include <vector>

using namespace lite_test;

namespace {

// A ring, and a model of it for comparison.
class Ring {
  public:
    Ring(std::uint32_t units, std::uint32_t chunk)
        : chunk_(chunk), bits_(BITS_TO_LONGS(units)), taken_(units) {
        lite_ring_map_init(&map_, units, chunk, bits_.data());
    }

    // Takes a record. Checks that it is free and in one chunk. False: the ring has no room.
    bool take(std::uint32_t n) {
        const bool room = has_room(n);
        const auto at = lite_ring_take(&map_, n, static_cast<std::uint32_t>(taken_.size()));
        CHECK((at != LITE_RING_NONE) == room);
        if (at == LITE_RING_NONE)
            return false;
        REQUIRE(at + n <= taken_.size());
        REQUIRE(at / chunk_ == (at + n - 1) / chunk_);
        for (std::uint32_t i = at; i < at + n; i++) {
            REQUIRE(!taken_[i]);
            taken_[i] = true;
        }
        records_[at] = n;
        used_ += n;
        CHECK(map_.used == used_);
        return true;
    }

    void give(std::size_t which) {
        const auto it = std::next(records_.begin(), static_cast<std::ptrdiff_t>(which));
        lite_ring_give(&map_, it->first, it->second);
        for (std::uint32_t i = it->first; i < it->first + it->second; i++)
            taken_[i] = false;
        used_ -= it->second;
        CHECK(map_.used == used_);
        records_.erase(it);
    }

    std::size_t records() const { return records_.size(); }

    // Does every bit of the map agree with the model?
    bool agrees() const {
        for (std::uint32_t i = 0; i < taken_.size(); i++) {
            if ((bits_[i / 64] >> i % 64 & 1) != (taken_[i] ? 1U : 0U))
                return false;
        }
        return true;
    }

  private:
    bool has_room(std::uint32_t n) const {
        if (!n || n > chunk_)
            return false;
        std::uint32_t run = 0;
        for (std::uint32_t i = 0; i < taken_.size(); i++) {
            if (i % chunk_ == 0)
                run = 0;
            run = taken_[i] ? 0 : run + 1;
            if (run == n)
                return true;
        }
        return false;
    }

    std::uint32_t chunk_;
    lite_ring_map map_{};
    std::vector<unsigned long> bits_;
    std::vector<bool> taken_;
    std::map<std::uint32_t, std::uint32_t> records_;
    std::uint32_t used_ = 0;
};

}  // namespace

TEST_CASE("ring: records follow each other, and come around") {
    Ring ring(128, 64);
    CHECK(!ring.take(0));
    CHECK(!ring.take(65));
    CHECK(ring.take(64));
    CHECK(ring.take(64));
    CHECK(!ring.take(1));
    ring.give(0);
    for (int i = 0; i < 64; i++)
        CHECK(ring.take(1));
    CHECK(!ring.take(1));
}

TEST_CASE("ring: room before and behind the start of the search") {
    Ring ring(100, 100);
    CHECK(ring.take(40));
    CHECK(ring.take(40));
    ring.give(0);
    // [0, 40) and [80, 100) are free, and the search starts at 80.
    CHECK(ring.take(20));
    CHECK(ring.take(40));
    CHECK(!ring.take(1));
}

TEST_CASE("ring: after any records taken and freed it is sound, and finds room if there is any") {
    std::mt19937_64 random(seed());
    for (const auto& [units, chunk] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{
             {64, 64}, {1, 1}, {1088, 1088}, {3264, 1088}, {512, 64}, {190, 95}, {2048, 512}}) {
        CAPTURE(seed(), units, chunk);
        Ring ring(units, chunk);
        for (int i = 0; i < 3000; i++) {
            const auto most = random() % 4 ? std::min(chunk, 8U) : chunk;
            if (random() % 5 < 3)
                ring.take(static_cast<std::uint32_t>(random() % (most + 1)));
            else if (ring.records())
                ring.give(random() % ring.records());
        }
        CHECK(ring.agrees());
        while (ring.records())
            ring.give(random() % ring.records());
        CHECK(ring.take(chunk));
    }
}

TEST_CASE("ring: a user leaves room for the longest record of another") {
    for (const std::uint32_t chunk : {64U, 512U, 576U, 1088U}) {
        for (std::uint32_t chunks = 1; chunks <= 16; chunks++) {
            for (std::uint32_t most = 1; most <= chunk; most++) {
                const auto units = chunks * chunk;
                const auto limit = lite_ring_limit(units, chunk, most);
                CAPTURE(chunk, chunks, most, limit);
                std::vector<unsigned long> bits(BITS_TO_LONGS(units));
                lite_ring_map map{};
                lite_ring_map_init(&map, units, chunk, bits.data());
                std::uint32_t n = 0;
                while (lite_ring_take(&map, most, limit) != LITE_RING_NONE)
                    n++;
                if (limit < units) {
                    REQUIRE(n >= 2);
                    REQUIRE(lite_ring_take(&map, most, units) != LITE_RING_NONE);
                } else {
                    REQUIRE(n <= 3 * (chunk / most));
                }
                if (chunks >= 3)
                    REQUIRE(limit < units);
            }
        }
    }
    CHECK(lite_ring_limit(64, 64, 0) == 64);
    CHECK(lite_ring_limit(64, 64, 65) == 64);
}

TEST_CASE("ring: the valid records") {
    CHECK(lite_ring_record_check(128, 64, 0, 64) == 0);
    CHECK(lite_ring_record_check(128, 64, 127, 64) == 0);
    CHECK(lite_ring_record_check(128, 64, 127, 65) == -EPROTO);
    CHECK(lite_ring_record_check(128, 64, 63, 65) == -EPROTO);
    CHECK(lite_ring_record_check(128, 64, 64, 64 * 64) == 0);
    CHECK(lite_ring_record_check(128, 64, 64, 64 * 64 + 1) == -EPROTO);
    CHECK(lite_ring_record_check(128, 64, 128, 64) == -EPROTO);
    CHECK(lite_ring_record_check(128, 64, 0, 0) == -EPROTO);
    CHECK(lite_ring_record_check(128, 64, 0, ~0ULL) == -EPROTO);
    CHECK(lite_ring_record_check(128, 64, ~0U, 64) == -EPROTO);
}

TEST_CASE("ring: a few calls never take the whole window") {
    std::uint32_t left = 256;
    std::vector<std::uint32_t> taken;
    // Each ring takes as much as it can get.
    while (left) {
        std::uint32_t has = 0;
        for (; has < LITE_RPC_DEPTH && lite_window_has_room(has, left); left--)
            has++;
        REQUIRE(has > 0);
        taken.push_back(has);
    }
    CHECK(taken.size() == 13);
    CHECK(taken[0] == LITE_RPC_DEPTH);
    CHECK(taken[1] == LITE_RPC_DEPTH);
    CHECK_FALSE(lite_window_has_room(0, 0));
}

TEST_CASE("ring: immediates survive the round trip") {
    for (const auto kind : {LITE_IMM_RPC_REQUEST, LITE_IMM_RPC_REPLY}) {
        for (const std::uint32_t ring : {0U, 1U, 4095U}) {
            for (const std::uint32_t at : {0U, 1U, 65535U}) {
                const auto imm = lite_imm_encode(kind, static_cast<std::uint16_t>(ring),
                                                 static_cast<std::uint16_t>(at));
                lite_imm_kind kind_back{};
                std::uint16_t ring_back = 0;
                std::uint16_t at_back = 0;
                REQUIRE(lite_imm_is_ring(imm));
                lite_imm_decode(imm, &kind_back, &ring_back, &at_back);
                CHECK(kind_back == kind);
                CHECK(ring_back == ring);
                CHECK(at_back == at);
            }
        }
    }
    for (const std::uint32_t kind : {0U, 1U, 2U, 5U, 15U})
        CHECK(!lite_imm_is_ring(kind << 28));
}

TEST_CASE("wire: headers of records") {
    lite_wire_rpc request{};
    request.magic = cpu_to_le32(LITE_WIRE_MAGIC);
    request.version = LITE_WIRE_VERSION;
    request.reply = cpu_to_le64(4096);
    CHECK(lite_wire_rpc_check(&request, true) == 0);
    CHECK(lite_wire_rpc_check(&request, false) == -EPROTO);
    lite_wire_rpc reply = request;
    reply.reply = 0;
    CHECK(lite_wire_rpc_check(&reply, false) == 0);
    CHECK(lite_wire_rpc_check(&reply, true) == -EPROTO);

    const auto refused = [](lite_wire_rpc header, bool is_request, auto change) {
        change(header);
        return lite_wire_rpc_check(&header, is_request) == -EPROTO;
    };
    for (const bool is_request : {true, false}) {
        const auto& good = is_request ? request : reply;
        CHECK(refused(good, is_request, [](auto& h) { h.magic = 0; }));
        CHECK(refused(good, is_request, [](auto& h) { h.version++; }));
        CHECK(refused(good, is_request, [](auto& h) { h.slot = cpu_to_le16(LITE_RPC_DEPTH); }));
        CHECK(refused(good, is_request, [](auto& h) { h.reserved[0] = 1; }));
        CHECK(refused(good, is_request, [](auto& h) { h.reserved[1] = 1; }));
        CHECK(refused(good, is_request, [](auto& h) { h.flags = cpu_to_le32(4); }));
    }
    CHECK(refused(request, true, [](auto& h) { h.room = cpu_to_le32(LITE_RPC_BYTES_MAX + 1); }));
    CHECK(refused(request, true, [](auto& h) { h.length = cpu_to_le32(LITE_RPC_BYTES_MAX + 1); }));
    CHECK(refused(reply, false, [](auto& h) { h.uid = cpu_to_le32(1); }));
    CHECK(refused(reply, false, [](auto& h) { h.status = LITE_RPC_STATUSES; }));
    CHECK(refused(request, true, [](auto& h) { h.status = LITE_PRIORITY_MAX + 1; }));
    request.status = LITE_PRIORITY_MAX;
    CHECK(lite_wire_rpc_check(&request, true) == 0);

    // Requests and replies by reference may be longer.
    const auto bulk = cpu_to_le32(LITE_RPC_F_BULK);
    request.flags = bulk;
    request.room = request.length = cpu_to_le32(LITE_RPC_BULK_MAX);
    CHECK(lite_wire_rpc_check(&request, true) == 0);
    CHECK(refused(request, true, [](auto& h) { h.room = cpu_to_le32(LITE_RPC_BULK_MAX + 1); }));
    CHECK(refused(request, true, [](auto& h) { h.length = cpu_to_le32(LITE_RPC_BULK_MAX + 1); }));
    // The flag is valid only for a reply that has bytes.
    reply.flags = bulk;
    reply.length = cpu_to_le32(1);
    CHECK(lite_wire_rpc_check(&reply, false) == 0);
    CHECK(refused(reply, false, [](auto& h) { h.length = 0; }));
    CHECK(refused(reply, false, [](auto& h) { h.status = LITE_RPC_TOO_LONG; }));
    CHECK(refused(reply, false, [](auto& h) { h.flags |= cpu_to_le32(LITE_RPC_F_ONEWAY); }));
}

TEST_CASE("wire: lists of chunks") {
    const auto chunk = [](std::uint64_t addr, std::uint32_t bytes, std::uint32_t reserved = 0) {
        lite_wire_rpc_chunk c{};
        c.addr = cpu_to_le64(addr);
        c.bytes = cpu_to_le32(bytes);
        c.reserved = cpu_to_le32(reserved);
        return c;
    };
    const auto check = [](const std::vector<lite_wire_rpc_chunk>& request,
                          const std::vector<lite_wire_rpc_chunk>& reply, std::uint32_t length,
                          std::uint32_t room) {
        auto all = request;
        all.insert(all.end(), reply.begin(), reply.end());
        return lite_wire_rpc_bulk_check(all.data(), static_cast<std::uint32_t>(request.size()),
                                        static_cast<std::uint32_t>(reply.size()), length, room);
    };
    const auto mb = chunk(1 << 20, 1 << 20);
    const auto page = chunk(4096, 4096);
    CHECK(check({mb}, {}, 1 << 20, 100) == 0);
    CHECK(check({mb, page}, {page, mb}, (1 << 20) + 4096, (1 << 20) + 4096) == 0);
    CHECK(check({}, {mb}, LITE_RPC_BYTES_MAX, 1 << 20) == 0);
    // An empty list; then a request and a reply that fit neither the chunks nor the record.
    CHECK(check({}, {}, 1, 1) == -EPROTO);
    CHECK(check({}, {mb}, LITE_RPC_BYTES_MAX + 1, 1) == -EPROTO);
    CHECK(check({mb}, {}, 1, LITE_RPC_BYTES_MAX + 1) == -EPROTO);
    // Chunks that are too short.
    CHECK(check({mb}, {}, (1 << 20) + 1, 0) == -EPROTO);
    CHECK(check({mb}, {page}, 1, 4097) == -EPROTO);
    // Invalid chunks.
    CHECK(check({chunk(0, 4096), mb}, {}, 1, 0) == -EPROTO);
    CHECK(check({mb, chunk(4096, 0)}, {}, 1, 0) == -EPROTO);
    CHECK(check({mb}, {chunk(4096, 4096, 1)}, 1, 0) == -EPROTO);
    // The largest list does not overflow the sum.
    CHECK(check(std::vector(LITE_RPC_BULK_CHUNKS_MAX, chunk(4096, UINT32_MAX)), {},
                LITE_RPC_BULK_MAX, 0) == 0);
}

TEST_CASE("wire: the part of a call that goes through the ring") {
    // All of a short call.
    CHECK(lite_rpc_body_max(100, 4096) == 4096);
    CHECK(lite_rpc_body_max(LITE_RPC_BYTES_MAX, 1) == LITE_RPC_BYTES_MAX);
    CHECK(lite_rpc_body_bytes(100, 200, 0, 0, 0) == 200);
    CHECK(lite_rpc_body_bytes(300, 200, 0, 0, 0) == 300);
    // The list instead of a long request; room for a short reply instead of a long one.
    CHECK(lite_rpc_body_bytes(1 << 20, 200, lite_rpc_list_bytes(1), 1, 0) == 200);
    CHECK(lite_rpc_body_bytes(1 << 20, 0, lite_rpc_list_bytes(1), 1, 0) == lite_rpc_list_bytes(1));
    CHECK(lite_rpc_body_bytes(100, 1 << 20, lite_rpc_list_bytes(1), 0, 1) == LITE_RPC_BULK_INLINE);
    // The longest call fits.
    const auto most = lite_rpc_body_max(LITE_RPC_BULK_MAX, 0);
    const auto list = lite_rpc_list_bytes(2 * LITE_RPC_BULK_CHUNKS_MAX);
    CHECK(lite_rpc_body_bytes(LITE_RPC_BYTES_MAX, LITE_RPC_BULK_MAX, list, 0, 1) == most);
    CHECK(lite_rpc_body_bytes(LITE_RPC_BULK_MAX, LITE_RPC_BYTES_MAX, list, 1, 0) <= most);
}
