// SPDX-License-Identifier: MIT
// All that comes from a peer: private data of connections, heads of messages, requests, replies. A
// message that passes its check must be safe to use: the fuzzer reads it as the module does.
#include "fuzz.hpp"

using namespace lite_fuzz;

namespace {

void use_cred(const lite_wire_cred& wire) {
    lite_cred cred{};
    lite_wire_cred_get(&cred, &wire);
    require(cred.n_groups <= LITE_CRED_GROUPS, "more groups than there is room for");
    lite_grant grant{cred.uid, 1, LITE_RIGHT_READ, 0};
    const lite_acl acl{1000, 1000, 0640, 1, &grant};
    const auto rights = lite_rights_of(&cred, 1, &acl, true);
    require((rights & ~LITE_RIGHTS_ALL) == 0, "unknown rights");
}

void use_name(const char (&name)[LITE_NAME_SIZE]) {
    require(strnlen(name, sizeof(name)) < sizeof(name), "a name without an end");
}

template <typename Head, typename Entry>
void walk(const std::uint8_t* payload, std::size_t size, std::uint32_t count) {
    require(size == sizeof(Head) + count * sizeof(Entry),
            "a count that is not that of the entries");
    for (std::uint32_t i = 0; i < count; ++i) {
        Entry entry{};
        std::memcpy(&entry, payload + sizeof(Head) + i * sizeof(Entry), sizeof(entry));
        if constexpr (requires { entry.name; })
            use_name(entry.name);
    }
}

template <typename Head>
Head head_of(const std::uint8_t* payload) {
    Head head{};
    std::memcpy(&head, payload, sizeof(head));
    return head;
}

void use_request(std::uint16_t call, const std::uint8_t* payload, std::size_t size) {
    switch (call) {
        case LITE_CALL_LMR_CREATE: {
            lite_wire_create create{};
            require(size == sizeof(create), "CREATE of another size");
            std::memcpy(&create, payload, sizeof(create));
            use_cred(create.cred);
            use_name(create.name);
            const std::uint32_t n = le32_to_cpu(create.n_nodes);
            const std::uint64_t length = le64_to_cpu(create.length);
            require(n >= 1 && n <= LITE_SPREAD_MAX, "a number of nodes");
            std::uint64_t sum = 0;
            for (std::uint32_t i = 0; i < n; ++i)
                sum += lite_spread_share(length, n, i);
            require(sum == length, "shares that are not the whole");
            break;
        }
        case LITE_CALL_NAME_DROP:
        case LITE_CALL_NAME_FIND:
        case LITE_CALL_NAME_PROBE:
        case LITE_CALL_NAME_ENTER: {
            lite_wire_name name{};
            std::memcpy(&name, payload, sizeof(name));
            use_name(name.name);
            break;
        }
        case LITE_CALL_NAME_OPEN:
        case LITE_CALL_LMR_MAP: {
            lite_wire_map map{};
            std::memcpy(&map, payload, sizeof(map));
            use_cred(map.cred);
            if (map.name[0])
                use_name(map.name);
            break;
        }
        case LITE_CALL_LMR_FREE: {
            lite_wire_change free{};
            std::memcpy(&free, payload, sizeof(free));
            use_cred(free.cred);
            if (free.name[0])
                use_name(free.name);
            break;
        }
        case LITE_CALL_LMR_GRANT:
        case LITE_CALL_LMR_SETATTR:
        case LITE_CALL_LMR_RESIZE:
        case LITE_CALL_LMR_MOVE: {
            lite_wire_change change{};
            require(size >= sizeof(change), "a change without a head");
            std::memcpy(&change, payload, sizeof(change));
            use_cred(change.cred);
            if (change.name[0])
                use_name(change.name);
            break;
        }
        case LITE_CALL_LMR_RENAME: {
            lite_wire_rename rename{};
            require(size == sizeof(rename), "RENAME of another size");
            std::memcpy(&rename, payload, sizeof(rename));
            use_cred(rename.change.cred);
            use_name(rename.name);
            break;
        }
        case LITE_CALL_MEM_COPY: {
            lite_wire_mem_copy copy{};
            std::memcpy(&copy, payload, sizeof(copy));
            const std::uint32_t n = le32_to_cpu(copy.count);
            require(n >= 1 && size == sizeof(copy) + n * sizeof(lite_wire_extent), "COPY");
            for (std::uint32_t i = 0; i < n; ++i) {
                lite_wire_extent extent{};
                std::memcpy(&extent, payload + sizeof(copy) + i * sizeof(extent), sizeof(extent));
                require(le64_to_cpu(extent.length_share) >> 8, "an extent of nothing");
            }
            break;
        }
        case LITE_CALL_OP_PACK: {
            const auto* head = reinterpret_cast<const lite_wire_pack*>(payload);
            const auto* bytes = static_cast<const std::uint8_t*>(lite_wire_pack_bytes(head));
            std::size_t in = 0;
            for (std::uint32_t i = 0; i < le32_to_cpu(head->n_ops); ++i) {
                const auto& op = lite_wire_pack_ops(head)[i];
                require(lite_wire_pack_ranges(head)[op.range].id, "an operation without an LMR");
                if (op.write)
                    bytes += le16_to_cpu(op.length);
                else
                    in += le16_to_cpu(op.length);
            }
            require(bytes == payload + size, "PACK has bytes of no operation");
            require(in <= LITE_PACK_IN_MAX, "PACK reads more than fits");
            break;
        }
        case LITE_CALL_LMR_ENDS: {
            const auto count = le32_to_cpu(head_of<lite_wire_ends>(payload).count);
            require(count >= 1 && count <= LITE_ENDS_PER_CALL, "a number of chunks");
            walk<lite_wire_ends, std::uint64_t>(payload, size, count);
            break;
        }
        case LITE_CALL_LMR_UNMAP: {
            const auto count = le32_to_cpu(head_of<lite_wire_unmaps>(payload).count);
            require(count >= 1 && count <= LITE_UNMAPS_PER_CALL, "a number of MAPs");
            walk<lite_wire_unmaps, lite_wire_unmap>(payload, size, count);
            break;
        }
        case LITE_CALL_MEM_FREE: {
            const auto count = le32_to_cpu(head_of<lite_wire_mem_free>(payload).n_fences);
            require(count <= LITE_FENCES_MAX, "a number of fences");
            walk<lite_wire_mem_free, std::uint32_t>(payload, size, count);
            break;
        }
        default:
            break;
    }
}

void use_reply(std::uint16_t call, const std::uint8_t* payload, std::size_t size) {
    switch (call) {
        case LITE_CALL_MEMBERS:
            walk<lite_wire_members_reply, lite_wire_member>(
                payload, size, le32_to_cpu(head_of<lite_wire_members_reply>(payload).count));
            break;
        case LITE_CALL_LMR_LIST:
            walk<lite_wire_list_reply, lite_wire_lmr>(
                payload, size, le32_to_cpu(head_of<lite_wire_list_reply>(payload).count));
            break;
        case LITE_CALL_LMR_EXTENTS:
        case LITE_CALL_MEM_EXTENTS: {
            const std::uint32_t count =
                le32_to_cpu(head_of<lite_wire_extents_reply>(payload).count);
            require(count > 0,
                    "an answer without extents, which would be asked for again for ever");
            walk<lite_wire_extents_reply, lite_wire_extent>(payload, size, count);
            break;
        }
        case LITE_CALL_NAME_OPEN:
        case LITE_CALL_LMR_CREATE:
        case LITE_CALL_LMR_CHUNK:
        case LITE_CALL_LMR_MAP: {
            const auto reply = head_of<lite_wire_map_reply>(payload);
            const std::size_t shares = le32_to_cpu(reply.n_shares);
            const std::size_t told = le32_to_cpu(reply.n_told);
            require(shares <= LITE_SPREAD_MAX, "a number of shares");
            require(shares || call == LITE_CALL_NAME_OPEN, "an LMR without a home");
            require(size == sizeof(reply) + shares * sizeof(lite_wire_share) +
                                told * sizeof(lite_wire_extent),
                    "counts that are not those of the shares and extents");
            require(told <= le32_to_cpu(reply.n_extents), "more extents than the LMR has");
            const std::uint64_t pages =
                (le64_to_cpu(reply.length) + LITE_PAGE_SIZE - 1) / LITE_PAGE_SIZE;
            require(le32_to_cpu(reply.n_extents) <= pages, "more extents than pages");
            require(reply.n_extents || (shares <= 1 && !reply.of), "unpinned, and not at home");
            if (call == LITE_CALL_LMR_CHUNK)
                require(reply.of && shares == 1 && reply.n_told == reply.n_extents, "no chunk");
            else
                require(!reply.of || call == LITE_CALL_LMR_MAP, "a handle of a chunk");
            require(reply.of || !reply.base, "a place in no LMR");
            break;
        }
        default:
            break;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    const auto kind = input.take<std::uint8_t>() % 4;
    const auto call = input.take<std::uint8_t>();
    const auto bytes = input.rest();
    switch (kind) {
        case 0: {
            lite_cm_kind cm{};
            if (lite_cm_check(bytes.get(), input.size(), &cm) == 0)
                require(cm >= LITE_CM_HELLO && cm <= LITE_CM_REFUSE, "an unknown kind");
            break;
        }
        case 1: {
            const auto msg = input.take<lite_wire_msg>();
            if (lite_wire_msg_check(&msg) == 0)
                require(le32_to_cpu(msg.length) <= lite_call_payload_max(le16_to_cpu(msg.call)),
                        "a length beyond the slot");
            break;
        }
        case 2:
            if (lite_wire_request_check(call, bytes.get(), input.size()) == 0)
                use_request(call, bytes.get(), input.size());
            break;
        default:
            if (lite_wire_reply_check(call, bytes.get(), input.size()) == 0)
                use_reply(call, bytes.get(), input.size());
            break;
    }
    return 0;
}
