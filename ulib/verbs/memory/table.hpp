// SPDX-License-Identifier: MIT
//
// What a process tells its peers: a table in its memory, which is an unpinned LMR, says what each
// key stands for. A peer reads an entry once, with one read of LITE, when it first meets the key.
//
// LMR "verbs/NODE/PROCESS": the table. LMR "verbs/NODE/PROCESS/N": whole pages of the process. A
// registration consists of up to four parts of such LMRs.
#pragma once

#include "memory/keys.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace lite::verbs {

inline constexpr uint32_t table_magic = 0x4c565442;
inline constexpr uint32_t table_version = 1;
inline constexpr uint32_t parts_max = 4;
inline constexpr uint32_t gids_max = 255;

struct table_part {
    uint32_t lmr;
    uint32_t reserved;
    uint64_t offset;
    uint64_t length;
};

struct table_entry {
    uint32_t key;     // 0: none
    uint32_t access;  // IBV_ACCESS_REMOTE_*
    uint64_t iova;    // address of the first byte for peers
    uint64_t length;
    uint32_t n_parts;
    uint32_t check;  // sum of the rest: a peer may read while the owner writes
    table_part parts[parts_max];
};
static_assert(sizeof(table_entry) == 128);

struct table_header {
    uint32_t magic;
    uint32_t version;
    uint32_t node;
    uint32_t n_gids;
    uint8_t gids[gids_max][16];  // of the RDMA devices that the process has opened
};
static_assert(sizeof(table_header) == 4096);

struct table {
    alignas(4096) table_header header;
    alignas(4096) table_entry entries[slots_max];
};

// FNV-1a over an entry, as if its check were 0.
inline uint32_t check_of(table_entry entry) noexcept {
    entry.check = 0;
    const auto* bytes = reinterpret_cast<const unsigned char*>(&entry);
    uint32_t hash = 2166136261U;
    for (unsigned i = 0; i < sizeof(entry); i++)
        hash = (hash ^ bytes[i]) * 16777619U;
    return hash;
}

// Is this a complete entry of a key? A peer is not trusted: the parts must add up to the length.
inline bool is_entry_of(const table_entry& entry, uint32_t key) noexcept {
    if (entry.key != key || entry.n_parts > parts_max || entry.check != check_of(entry))
        return false;
    uint64_t rest = entry.length;
    for (uint32_t i = 0; i < entry.n_parts; i++) {
        if (entry.parts[i].length > rest)
            return false;
        rest -= entry.parts[i].length;
    }
    return !entry.access || !rest;
}

inline uint64_t entry_offset(uint32_t key) noexcept {
    return offsetof(table, entries) + uint64_t{slot_of(key)} * sizeof(table_entry);
}

inline std::string table_name(uint32_t node, uint32_t process) {
    return "verbs/" + std::to_string(node) + "/" + std::to_string(process);
}

inline std::string lmr_name(uint32_t node, uint32_t process, uint32_t lmr) {
    return table_name(node, process) + "/" + std::to_string(lmr);
}

}  // namespace lite::verbs
