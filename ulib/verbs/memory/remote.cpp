// SPDX-License-Identifier: MIT
//
// Finds peers and their registrations, and executes one-sided operations on them with LITE.
//
// A look-up is valid until an operation fails. When a peer deregisters memory or ends, its LMRs are
// freed, and operations fail with EIDRM or ESTALE; as another process, with other memory, may have
// its number by then, EACCES and ERANGE may mean the same. It is then looked up once more.

#include "memory/remote.hpp"

#include "log.hpp"

#include <lite/cluster.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include <arpa/inet.h>
#include <sys/mman.h>

namespace lite::verbs {
namespace {

// Up to so many bytes, a write from several buffers is copied together first: one operation.
constexpr uint64_t gather_max = 65536;

bool is_gid_of(const lite_member& member, const ::ibv_gid& gid) {
    in6_addr v6 = {};
    if (::inet_pton(AF_INET6, member.address, &v6) == 1)
        return !std::memcmp(&v6, gid.raw, sizeof(gid.raw));
    in_addr v4 = {};
    if (::inet_pton(AF_INET, member.address, &v4) != 1)
        return false;
    uint8_t mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    std::memcpy(mapped + 12, &v4, sizeof(v4));
    return !std::memcmp(mapped, gid.raw, sizeof(mapped));
}

// The members that are up, those with the address first. @err: the error if none has the process.
std::vector<lite_member> members_by(const ::ibv_gid& gid, int& err) {
    std::vector<lite_member> members(64);
    size_t count = 0;
    for (;;) {
        err = lite_members(node::get()->index(), members.data(), members.size(), &count);
        if (err)
            return {};
        if (count <= members.size())
            break;
        members.resize(count);
    }
    members.resize(count);
    const auto is_down = [](const lite_member& m) { return m.state != LITE_NODE_UP; };
    const bool is_away = std::ranges::any_of(
        members, [&](const lite_member& m) { return is_down(m) && is_gid_of(m, gid); });
    err = is_away ? -EHOSTDOWN : -ENOENT;
    std::erase_if(members, is_down);
    std::stable_partition(members.begin(), members.end(),
                          [&gid](const lite_member& m) { return is_gid_of(m, gid); });
    return members;
}

bool has_gid(const table_header& header, const ::ibv_gid& gid) {
    for (uint32_t i = 0; i < std::min(header.n_gids, gids_max); i++) {
        if (!std::memcmp(header.gids[i], gid.raw, sizeof(gid.raw)))
            return true;
    }
    return false;
}

bool is_gone(int err) {
    return err == -EIDRM || err == -ESTALE || err == -ENOENT || err == -EBADF || err == -EMFILE;
}

ibv_wc_status status_of(int err, const std::vector<span>& spans) {
    switch (err) {
        case 0:
            return IBV_WC_SUCCESS;
        case -EHOSTDOWN:
        case -EHOSTUNREACH:
        case -ETIMEDOUT:
        case -ENOTCONN:
        case -ENODEV:
        case -ESTALE:
            return IBV_WC_RETRY_EXC_ERR;
        case -EIO:
        case -EPROTO:
        case -EDQUOT:
        case -ENOSPC:
            return IBV_WC_REM_OP_ERR;
        case -ENOMEM:
        case -EMFILE:
            return IBV_WC_LOC_QP_OP_ERR;
        case -EOPNOTSUPP:
        case -EINVAL:
            return IBV_WC_REM_INV_REQ_ERR;
        case -EFAULT:
            // Which memory is gone, this process's or the peer's?
            for (const span& s : spans) {
                const uint64_t at = reinterpret_cast<uintptr_t>(s.at) / 4096 * 4096;
                const uint64_t end = reinterpret_cast<uintptr_t>(s.at) + s.length;
                if (::msync(reinterpret_cast<void*>(at), end - at, MS_ASYNC))
                    return IBV_WC_LOC_PROT_ERR;
            }
            return IBV_WC_REM_ACCESS_ERR;
        default:
            return IBV_WC_REM_ACCESS_ERR;
    }
}

int submit(uint32_t opcode, lite_lh_t lh, uint64_t offset, char* buf, uint64_t length) {
    lite_op op = {};
    op.opcode = static_cast<decltype(op.opcode)>(opcode);
    op.lh = lh;
    op.offset = offset;
    op.buf = reinterpret_cast<uintptr_t>(buf);
    op.length = length;
    return lite_op_submit(node::get()->ctx(), &op);
}

// Transfers between @spans and a registration. The caller has checked the bounds.
int transfer(const remote_process::registration& to, uint32_t opcode, uint64_t offset,
             const std::vector<span>& spans) {
    uint32_t part = 0;
    for (span rest : spans) {
        while (rest.length) {
            while (offset >= to.entry.parts[part].length)
                offset -= to.entry.parts[part++].length;
            const table_part& p = to.entry.parts[part];
            const uint64_t n = std::min(rest.length, p.length - offset);
            if (const int err = submit(opcode, to.handles[part], p.offset + offset, rest.at, n))
                return err;
            rest.at += n;
            rest.length -= n;
            offset += n;
        }
    }
    return 0;
}

int run_atomic(const remote_process::registration& on, const one_sided& op, uint64_t offset,
               const std::vector<span>& spans) {
    uint32_t part = 0;
    while (offset >= on.entry.parts[part].length)
        offset -= on.entry.parts[part++].length;
    const uint64_t at = on.entry.parts[part].offset + offset;
    lite_ctx* ctx = node::get()->ctx();
    uint64_t old = 0;
    const int err = op.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD
                        ? lite_fetch_add(ctx, on.handles[part], at, op.compare_add, &old)
                        : lite_cmp_swap(ctx, on.handles[part], at, op.compare_add, op.swap, &old);
    if (err)
        return err;
    uint64_t done = 0;
    for (const span& s : spans) {
        const uint64_t n = std::min(s.length, sizeof(old) - done);
        std::memcpy(s.at, reinterpret_cast<const char*>(&old) + done, n);
        done += n;
    }
    return 0;
}

// 0, or the error if the registration does not allow the operation.
int check(const table_entry& entry, const one_sided& op, uint64_t length) {
    unsigned needed = IBV_ACCESS_REMOTE_WRITE;
    if (op.opcode == IBV_WR_RDMA_READ)
        needed = IBV_ACCESS_REMOTE_READ;
    else if (op.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || op.opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
        needed = IBV_ACCESS_REMOTE_ATOMIC;
    if (!(entry.access & needed))
        return -EACCES;
    if (op.addr < entry.iova || op.addr - entry.iova > entry.length ||
        length > entry.length - (op.addr - entry.iova))
        return -ERANGE;
    return 0;
}

}  // namespace

std::shared_ptr<remote_process> remote_process::find(const ::ibv_gid& gid, uint32_t process,
                                                     int& err) {
    static auto& mutex = *new std::mutex;
    static auto& known = *new std::map<std::string, std::weak_ptr<remote_process>>;
    std::string key(reinterpret_cast<const char*>(&process), sizeof(process));
    key.append(reinterpret_cast<const char*>(gid.raw), sizeof(gid.raw));
    {
        const std::lock_guard lock(mutex);
        std::erase_if(known, [](const auto& item) { return item.second.expired(); });
        const auto found = known.find(key);
        if (found != known.end()) {
            auto process_found = found->second.lock();
            if (process_found && process_found->m_is_trusted)
                return process_found;
        }
    }
    auto found = search(gid, process, err);
    if (found) {
        const std::lock_guard lock(mutex);
        known[key] = found;
    }
    return found;
}

std::shared_ptr<remote_process> remote_process::search(const ::ibv_gid& gid, uint32_t process,
                                                       int& err) {
    const node& here = *node::get();
    for (const lite_member& member : members_by(gid, err)) {
        lite_lh_t lh = 0;
        const int failed =
            here.map_of(member.id, table_name(member.id, process), LITE_RIGHT_READ, lh);
        if (failed) {
            if (failed != -ENOENT)
                err = failed;
            continue;
        }
        table_header header = {};
        const int unread = lite_read(here.ctx(), lh, 0, &header, sizeof(header));
        if (!unread && header.magic == table_magic && header.version == table_version &&
            has_gid(header, gid)) {
            debug("peer: node %u, process %u", member.id, process);
            return std::make_shared<remote_process>(member.id, process, lh);
        }
        if (unread)
            err = unread;
        lite_unmap(here.ctx(), lh);
    }
    return nullptr;
}

remote_process::~remote_process() {
    node* here = node::get();
    if (!here)
        return;
    for (const auto& item : m_lmrs)
        lite_unmap(here->ctx(), item.second.lh);
    for (const lite_lh_t lh : m_outgrown)
        lite_unmap(here->ctx(), lh);
    lite_unmap(here->ctx(), m_table);
}

int remote_process::open_lmr(uint32_t number, unsigned access, lite_lh_t& lh) {
    uint32_t rights = 0;
    if (access & IBV_ACCESS_REMOTE_READ)
        rights |= LITE_RIGHT_READ;
    if (access & IBV_ACCESS_REMOTE_WRITE)
        rights |= LITE_RIGHT_WRITE;
    if (access & IBV_ACCESS_REMOTE_ATOMIC)
        rights |= LITE_RIGHT_ATOMIC;
    const auto known = m_lmrs.find(number);
    if (known != m_lmrs.end()) {
        lh = known->second.lh;
        if (!(rights & ~known->second.rights))
            return 0;
        rights |= known->second.rights;
    }
    if (const int err =
            node::get()->map_of(m_node, lmr_name(m_node, m_process, number), rights, lh))
        return err;
    if (known != m_lmrs.end())
        m_outgrown.push_back(known->second.lh);
    m_lmrs[number] = {lh, rights};
    return 0;
}

std::shared_ptr<const remote_process::registration> remote_process::look_up(uint32_t key,
                                                                            int& err) {
    const std::lock_guard lock(m_mutex);
    const auto known = m_registrations.find(key);
    if (known != m_registrations.end())
        return known->second;

    auto made = std::make_shared<registration>();
    err = lite_read(node::get()->ctx(), m_table, entry_offset(key), &made->entry,
                    sizeof(made->entry));
    if (!err && !is_entry_of(made->entry, key))
        err = -EACCES;
    for (uint32_t i = 0; !err && i < made->entry.n_parts; i++)
        err = open_lmr(made->entry.parts[i].lmr, made->entry.access, made->handles[i]);
    if (err)
        return nullptr;
    debug("key %#x: %llu bytes in %u parts", key,
          static_cast<unsigned long long>(made->entry.length), made->entry.n_parts);
    m_registrations[key] = made;
    // No process has as many registrations: most of these are gone.
    if (m_registrations.size() > slots_max)
        m_is_trusted = false;
    return made;
}

void remote_peer::connect(const ::ibv_gid* gid) {
    m_gid.reset();
    if (gid)
        m_gid = *gid;
    m_processes.clear();
}

int remote_peer::try_run(const one_sided& op, const std::vector<span>& spans) {
    int err = 0;
    // Without an address: a process of that number may be of any node.
    if (!m_gid)
        return -EHOSTUNREACH;
    std::shared_ptr<remote_process>& process = m_processes[process_of(op.key)];
    if (!process || !process->is_trusted())
        process = remote_process::find(*m_gid, process_of(op.key), err);
    if (!process)
        return err;
    const auto to = process->look_up(op.key, err);
    if (!to)
        return err;

    uint64_t length = 0;
    for (const span& s : spans)
        length += s.length;
    const bool is_atomic =
        op.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || op.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    err = check(to->entry, op, is_atomic ? sizeof(uint64_t) : length);
    if (err)
        return err;
    const uint64_t offset = op.addr - to->entry.iova;
    if (is_atomic)
        return run_atomic(*to, op, offset, spans);
    if (op.opcode == IBV_WR_RDMA_READ)
        return transfer(*to, LITE_OP_READ, offset, spans);
    if (spans.size() < 2 || length > gather_max)
        return transfer(*to, LITE_OP_WRITE, offset, spans);
    std::vector<char> gathered;
    gathered.reserve(length);
    for (const span& s : spans)
        gathered.insert(gathered.end(), s.at, s.at + s.length);
    return transfer(*to, LITE_OP_WRITE, offset, {{gathered.data(), length}});
}

void remote_peer::forget(uint32_t process) {
    const auto found = m_processes.find(process);
    if (found == m_processes.end())
        return;
    if (found->second)
        found->second->distrust();
    m_processes.erase(found);
}

ibv_wc_status remote_peer::run(const one_sided& op, const std::vector<span>& spans) {
    const bool is_empty =
        op.opcode != IBV_WR_ATOMIC_FETCH_AND_ADD && op.opcode != IBV_WR_ATOMIC_CMP_AND_SWP &&
        std::all_of(spans.begin(), spans.end(), [](const span& s) { return s.length == 0; });
    if (is_empty)
        return IBV_WC_SUCCESS;  // like a device, without a look at the key

    int err = try_run(op, spans);
    if (is_gone(err) || err == -EACCES || err == -ERANGE) {
        // The process's number, or the key, may be another one's by now.
        forget(process_of(op.key));
        err = try_run(op, spans);
    }
    if (!err)
        return IBV_WC_SUCCESS;
    forget(process_of(op.key));
    debug("operation %d on %llu bytes at %#llx, key %#x: %s", static_cast<int>(op.opcode),
          static_cast<unsigned long long>(spans.empty() ? 0 : spans[0].length),
          static_cast<unsigned long long>(op.addr), op.key, lite_strerror(err));
    return status_of(err, spans);
}

}  // namespace lite::verbs
