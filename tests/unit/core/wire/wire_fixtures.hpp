// SPDX-License-Identifier: MIT
// A well-formed message of every kind, and the ways to spoil it.
#pragma once

#include "../support.hpp"

// By offset, because references cannot be bound to members of packed structures.
#define FIELD(type, member, ...)                                               \
    Spoiler {                                                                  \
#member, offsetof(type, member), sizeof(type::member), { __VA_ARGS__ } \
    }

namespace lite_test {

constexpr std::uint64_t kAllOnes = ~0ULL;

using Bytes = std::vector<std::byte>;

template <typename T>
Bytes to_bytes(const T& value) {
    Bytes bytes(sizeof(value));
    std::memcpy(bytes.data(), &value, sizeof(value));
    return bytes;
}

// A header and @n entries behind it.
template <typename Head, typename Entry>
Bytes to_bytes(const Head& head, const std::vector<Entry>& entries) {
    Bytes bytes = to_bytes(head);
    for (const auto& entry : entries) {
        const auto more = to_bytes(entry);
        bytes.insert(bytes.end(), more.begin(), more.end());
    }
    return bytes;
}

// A field, and values in it that the check must refuse.
struct Spoiler {
    const char* field;
    std::size_t offset;
    std::size_t size;
    std::vector<std::uint64_t> refused;
};

struct Message {
    const char* label;
    std::uint16_t call;
    Bytes payload;
    std::vector<Spoiler> spoilers = {};
};

// All calls, in the order of their numbers.
std::vector<Message> requests();
std::vector<Message> replies();

// OP_PACK, many operations in one call: pack_fixtures.cpp.
Message pack();
Message pack_reply(std::uint32_t status, std::uint32_t error);

// Chunks of unpinned LMRs: chunk_fixtures.cpp.
Message chunk();
Message chunk_reply();
Message ends();
Message unmaps();

// The answer to a MAP of an LMR of four extents, with so many shares and extents after the head.
Bytes map_reply(std::uint32_t shares, std::uint32_t told);

// Further answers to memory operations.
std::vector<Message> operation_replies();

// Every private data that the RDMA CM may carry, by kind.
struct PrivateData {
    lite_cm_kind kind;
    Bytes bytes;
};
std::vector<PrivateData> private_data();

void poke(Bytes& bytes, std::size_t offset, std::size_t size, std::uint64_t value);

}  // namespace lite_test
