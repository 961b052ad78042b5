// SPDX-License-Identifier: MIT

#include "fake_node.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

namespace fake {
namespace {

constexpr std::uint32_t n_nodes = 4;
constexpr std::uint32_t this_node = 1;
constexpr std::uint64_t page = 4096;
constexpr std::uint64_t registered_max = 1 << 20;  // RLIMIT_MEMLOCK

std::uint64_t pages_of(std::uint64_t bytes) { return (bytes + page - 1) / page; }

template <typename T>
T* pointer(__u64 address) {
    return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
}

bool has_nul(const char (&name)[LITE_NAME_SIZE]) {
    return ::memchr(name, 0, sizeof(name)) != nullptr;
}

struct handle {
    std::shared_ptr<lmr> target;
    std::uint32_t rights;
    std::uint32_t uid;  // of the user that opened it
    std::uint32_t gid;
};

// The rights from owner, group, mode and grants.
std::uint32_t rights_of(const lmr& target, std::uint32_t uid, std::uint32_t gid) {
    if (uid == 0)
        return LITE_RIGHTS_ALL;
    const auto& info = target.info;
    const auto bits = uid == info.uid   ? info.mode >> 6
                      : gid == info.gid ? info.mode >> 3
                                        : info.mode;
    std::uint32_t rights = uid == info.uid ? LITE_RIGHT_SHARE | LITE_RIGHT_MASTER : 0;
    rights |= (bits & 4 ? LITE_RIGHT_READ : 0);
    rights |= (bits & 2 ? LITE_RIGHT_WRITE | LITE_RIGHT_ATOMIC : 0);
    for (const auto& grant : target.grants)
        if (grant.uid == uid && (!grant.node || grant.node == this_node))
            rights |= grant.rights;
    return rights;
}

}  // namespace

class device final : public lite::internal::device {
  public:
    explicit device(cluster& cluster) : m_cluster(cluster) { m_cluster.m_open_files++; }

    ~device() override {
        m_cluster.m_open_handles -= m_handles.size();
        m_cluster.m_open_files--;
    }

    int fd() const noexcept override { return 42; }

    int control(unsigned long request, void* arg) noexcept override {
        if (m_cluster.intercept)
            if (const auto result = m_cluster.intercept(request, arg))
                return *result;
        switch (request) {
            case LITE_IOC_QUERY:
                return call(*static_cast<lite_ioc_query*>(arg));
            case LITE_IOC_ALLOC:
                return call(*static_cast<lite_ioc_alloc*>(arg));
            case LITE_IOC_MAP:
                return call(*static_cast<lite_ioc_map*>(arg));
            case LITE_IOC_UNMAP:
                return call(*static_cast<lite_ioc_unmap*>(arg));
            case LITE_IOC_FREE:
                return call(*static_cast<lite_ioc_free*>(arg));
            case LITE_IOC_OP:
                return call(*static_cast<lite_op*>(arg));
            case LITE_IOC_VECTOR:
                return call(*static_cast<lite_ioc_vector*>(arg));
            case LITE_IOC_STAT:
                return call(*static_cast<lite_ioc_stat*>(arg));
            case LITE_IOC_LIST:
                return call(*static_cast<lite_ioc_list*>(arg));
            case LITE_IOC_GRANT:
                return call(*static_cast<lite_ioc_grant*>(arg));
            case LITE_IOC_GRANTS:
                return call(*static_cast<lite_ioc_grants*>(arg));
            case LITE_IOC_SETATTR:
                return call(*static_cast<lite_ioc_setattr*>(arg));
            case LITE_IOC_RENAME:
                return call(*static_cast<lite_ioc_rename*>(arg));
            case LITE_IOC_RESIZE:
                return call(*static_cast<lite_ioc_resize*>(arg));
            case LITE_IOC_MOVE:
                return call(*static_cast<lite_ioc_move*>(arg));
            case LITE_IOC_SENDFILE:
                return call(*static_cast<lite_ioc_file*>(arg), true);
            case LITE_IOC_RECVFILE:
                return call(*static_cast<lite_ioc_file*>(arg), false);
            case LITE_IOC_MMAP:
                return call(*static_cast<lite_ioc_mmap*>(arg));
            case LITE_IOC_REGISTER:
                return call(*static_cast<lite_ioc_register*>(arg));
            default:
                return -ENOTTY;
        }
    }

  private:
    template <typename T>
    int call(T& arg) {
        if (arg.size != sizeof(T))
            return -EINVAL;
        return handle_call(arg);
    }

    // Only for files that have offsets.
    int call(lite_ioc_file& arg, bool send) {
        arg.moved = 0;
        if (arg.size != sizeof(arg) || arg.flags || arg.reserved)
            return -EINVAL;
        const auto it = m_handles.find(arg.lh);
        if (it == m_handles.end())
            return -EBADF;
        if (it->second.target->freed)
            return -EIDRM;
        if (!(it->second.rights & (send ? LITE_RIGHT_WRITE : LITE_RIGHT_READ)))
            return -EACCES;
        auto& data = it->second.target->data;
        if (arg.offset > data.size())
            return -ERANGE;
        auto length = std::min<std::uint64_t>(arg.length, data.size() - arg.offset);
        if (m_cluster.m_file_failure) {
            length = std::min(length, m_cluster.m_file_failure->bytes);
            const int error = m_cluster.m_file_failure->error;
            m_cluster.m_file_failure.reset();
            if (!length)
                return -error;
            m_cluster.m_file_failure = cluster::failure{{}, error, 0};
        }
        const auto at = static_cast<off_t>(arg.file_offset);
        const auto n = send ? ::pread(arg.fd, data.data() + arg.offset, length, at)
                            : ::pwrite(arg.fd, data.data() + arg.offset, length, at);
        if (n < 0)
            return errno == ESPIPE ? -EINVAL : -errno;
        arg.moved = static_cast<std::uint64_t>(n);
        arg.file_offset += arg.moved;
        return 0;
    }

    int handle_call(lite_ioc_query& arg) {
        if (arg.flags)
            return -EOPNOTSUPP;
        arg.uapi_version = LITE_UAPI_VERSION;
        arg.features = LITE_FEATURE_ATOMICS;
        arg.node_id = this_node;
        arg.state = LITE_NODE_UP;
        arg.nodes_up = n_nodes;
        arg.lmr_size_max = LITE_LMR_SIZE_MAX;
        arg.mem_limit = 1 << 30;
        return 0;
    }

    int handle_call(lite_ioc_alloc& arg) {
        if (arg.flags & ~LITE_ALLOC_NO_HANDLE)
            return -EOPNOTSUPP;
        if (!has_nul(arg.name))
            return -ENAMETOOLONG;
        if (!arg.length || arg.mode & ~0666U)
            return -EINVAL;
        if (arg.length > (1 << 30))
            return -ENOSPC;
        if (*arg.name && m_cluster.find(arg.name))
            return -EEXIST;

        auto made = std::make_shared<lmr>();
        const auto* nodes = pointer<const std::uint32_t>(arg.nodes);
        made->nodes.assign(nodes, nodes + arg.n_nodes);
        if (made->nodes.empty())
            made->nodes.push_back(this_node);
        for (const auto node : made->nodes)
            if (node < 1 || node > n_nodes)
                return -EHOSTUNREACH;
        made->info.id = m_cluster.m_next_id++;
        made->info.length = arg.length;
        made->info.home = made->nodes.front();
        made->info.uid = m_cluster.uid;
        made->info.gid = m_cluster.gid;
        made->info.mode = arg.mode;
        made->info.n_extents = static_cast<std::uint32_t>(made->nodes.size());
        made->info.n_nodes = made->info.n_extents;
        std::memcpy(made->info.name, arg.name, sizeof(arg.name));
        made->data.resize(arg.length);
        const auto share = pages_of(pages_of(arg.length) * page / made->nodes.size());
        for (std::uint64_t i = 0; i < pages_of(arg.length); i++)
            made->pages.push_back(made->nodes[std::min(i / share, made->nodes.size() - 1)]);
        m_cluster.m_lmrs[made->info.id] = made;
        if (!(arg.flags & LITE_ALLOC_NO_HANDLE))
            arg.lh = open_handle(made, rights_of(*made, m_cluster.uid, m_cluster.gid));
        return 0;
    }

    int handle_call(lite_ioc_map& arg) {
        if (arg.flags || arg.reserved)
            return -EOPNOTSUPP;
        if (!has_nul(arg.name))
            return -ENAMETOOLONG;
        if (!arg.rights || !*arg.name)
            return -EINVAL;
        const auto found = m_cluster.find(arg.name);
        if (!found)
            return -ENOENT;
        if (arg.rights & ~rights_of(*found, m_cluster.uid, m_cluster.gid))
            return -EACCES;
        arg.lh = open_handle(found, arg.rights);
        arg.length = found->info.length;
        return 0;
    }

    int handle_call(lite_ioc_unmap& arg) {
        if (!m_handles.erase(arg.lh))
            return -EBADF;
        m_cluster.m_open_handles--;
        return 0;
    }

    int handle_call(lite_ioc_free& arg) {
        std::shared_ptr<lmr> target;
        const int err = find_as_master(arg, target);
        if (err)
            return err;
        if (m_handles.erase(arg.lh))
            m_cluster.m_open_handles--;
        target->freed = true;
        m_cluster.m_lmrs.erase(target->info.id);
        return 0;
    }

    int handle_call(lite_op& op) {
        if (op.flags || op.reserved0 || op.reserved1)
            return -EOPNOTSUPP;
        const auto it = m_handles.find(op.lh);
        if (it == m_handles.end())
            return -EBADF;
        auto& target = *it->second.target;
        if (target.freed)
            return -EIDRM;
        const bool atomic = op.opcode >= LITE_OP_FETCH_ADD && op.opcode <= LITE_OP_FETCH_OR;
        const bool writes =
            op.opcode == LITE_OP_WRITE || op.opcode == LITE_OP_SET || op.opcode == LITE_OP_COPY;
        const auto needed = atomic   ? LITE_RIGHT_ATOMIC
                            : writes ? LITE_RIGHT_WRITE
                                     : LITE_RIGHT_READ;
        if (!(rights_left(it->second) & needed))
            return -EACCES;
        if (!op.length || (atomic && (op.length != 8 || op.offset % 8 || op.buf)))
            return -EINVAL;
        if (op.length > target.data.size() || op.offset > target.data.size() - op.length)
            return -ERANGE;

        const std::byte* second = nullptr;
        if (const int refused = check_operands(op, second))
            return refused;
        std::uint64_t length = op.length;
        int error = 0;
        if (m_cluster.m_failure && m_cluster.m_failure->opcode == op.opcode) {
            length = std::min(length, m_cluster.m_failure->bytes);
            error = -m_cluster.m_failure->error;
            m_cluster.m_failure.reset();
        }
        if (op.opcode >= LITE_OP_SET)
            operate(op, target.data.data() + op.offset, second, length, error);
        else
            transfer(op, target.data.data() + op.offset, length, error);
        return error;
    }

    int handle_call(lite_ioc_vector& arg) {
        if (arg.flags)
            return -EOPNOTSUPP;
        if (!arg.n_ops || arg.n_ops > LITE_VECTOR_MAX || arg.op_size != sizeof(lite_op))
            return -EINVAL;
        auto* const ops = reinterpret_cast<lite_op*>(static_cast<std::uintptr_t>(arg.ops));
        arg.n_failed = 0;
        // Backwards, because the order is unspecified.
        for (__u32 i = arg.n_ops; i-- > 0;) {
            ops[i].reserved1 = 0;
            ops[i].result = 0;
            ops[i].error = call(ops[i]);
            arg.n_failed += ops[i].error != 0;
        }
        arg.n_done = arg.n_ops;
        return 0;
    }

    // Checks operand and swap, depending on the opcode; @second: the second range.
    int check_operands(const lite_op& op, const std::byte*& second) {
        if (op.opcode < LITE_OP_READ || op.opcode > LITE_OP_CHECKSUM)
            return -EOPNOTSUPP;
        if (op.opcode == LITE_OP_SET)
            return op.swap < 1 || op.swap > 8 || (op.swap < 8 && op.operand >> (8 * op.swap))
                       ? -EINVAL
                       : 0;
        if (op.opcode == LITE_OP_CHECKSUM)
            return op.swap ? -EOPNOTSUPP : op.operand > UINT32_MAX ? -EINVAL : 0;
        if (op.opcode != LITE_OP_COPY && op.opcode != LITE_OP_COMPARE)
            return 0;
        const auto it = m_handles.find(op.operand);
        if (it == m_handles.end())
            return -EBADF;
        if (it->second.target->freed)
            return -EIDRM;
        if (!(it->second.rights & LITE_RIGHT_READ))
            return -EACCES;
        const auto& data = it->second.target->data;
        if (op.length > data.size() || op.swap > data.size() - op.length)
            return -ERANGE;
        second = data.data() + op.swap;
        return 0;
    }

    static std::uint32_t crc32c(std::uint32_t crc, const std::byte* at, std::uint64_t length) {
        static const auto remainders = [] {
            std::array<std::uint32_t, 256> table{};
            for (std::uint32_t i = 0; i < table.size(); i++) {
                table[i] = i;
                for (int bit = 0; bit < 8; bit++)
                    table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0x82f63b78U : 0);
            }
            return table;
        }();
        crc = ~crc;
        for (std::uint64_t i = 0; i < length; i++)
            crc = crc >> 8 ^ remainders[(crc ^ std::to_integer<std::uint32_t>(at[i])) & 0xff];
        return ~crc;
    }

    static void operate(lite_op& op, std::byte* at, const std::byte* second, std::uint64_t length,
                        int error) {
        switch (op.opcode) {
            case LITE_OP_SET:
                for (std::uint64_t i = 0; i < length; i++)
                    at[i] = static_cast<std::byte>(op.operand >> (8 * (i % op.swap)));
                op.result = length;
                return;
            case LITE_OP_COPY:
                std::memmove(at, second, length);
                op.result = length;
                return;
            case LITE_OP_COMPARE:
                op.result =
                    static_cast<std::uint64_t>(std::mismatch(at, at + length, second).first - at);
                return;
            default:
                op.result = error ? 0 : crc32c(static_cast<std::uint32_t>(op.operand), at, length);
        }
    }

    void transfer(lite_op& op, std::byte* at, std::uint64_t length, int error) {
        std::uint64_t word = 0;
        switch (op.opcode) {
            case LITE_OP_READ:
                std::memcpy(pointer<void>(op.buf), at, length);
                op.result = length;
                return;
            case LITE_OP_WRITE:
                std::memcpy(at, pointer<void>(op.buf), length);
                op.result = length;
                return;
            default:
                if (error)
                    return;
                std::memcpy(&word, at, sizeof(word));
                op.result = word;
                switch (op.opcode) {
                    case LITE_OP_FETCH_ADD:
                        word += op.operand;
                        break;
                    case LITE_OP_CMP_SWAP:
                        word = word == op.operand ? op.swap : word;
                        break;
                    case LITE_OP_FETCH_AND:
                        word &= op.operand;
                        break;
                    case LITE_OP_FETCH_OR:
                        word |= op.operand;
                        break;
                    default:
                        word = op.operand;
                }
                std::memcpy(at, &word, sizeof(word));
        }
    }

    int handle_call(lite_ioc_stat& arg) {
        if (arg.flags || arg.reserved)
            return -EOPNOTSUPP;
        std::shared_ptr<lmr> target;
        const int err = find(arg.lh, arg.info.name, target);
        if (err)
            return err;
        std::copy_n(target->nodes.begin(), std::min<std::size_t>(arg.n_nodes, target->nodes.size()),
                    pointer<std::uint32_t>(arg.nodes));
        arg.n_nodes = static_cast<std::uint32_t>(target->nodes.size());
        arg.info = target->info;
        return 0;
    }

    int handle_call(lite_ioc_list& arg) {
        if (arg.flags || arg.info_size != sizeof(lite_lmr_info))
            return -EOPNOTSUPP;
        if (!arg.n_infos)
            return -EINVAL;
        const auto room = std::min(arg.n_infos, m_cluster.list_batch);
        auto* infos = pointer<lite_lmr_info>(arg.infos);
        auto it = m_cluster.m_lmrs.upper_bound(arg.cursor);
        std::uint32_t n = 0;
        for (; it != m_cluster.m_lmrs.end() && n < room; ++it)
            infos[n++] = it->second->info;
        arg.n_infos = n;
        arg.cursor = it == m_cluster.m_lmrs.end() ? 0 : std::prev(it)->first;
        return 0;
    }

    // A snapshot: the mapping does not share its memory with the LMR.
    int handle_call(lite_ioc_mmap& arg) {
        if (arg.flags & ~LITE_MMAP_POPULATE || arg.reserved)
            return -EOPNOTSUPP;
        if (!(arg.prot & LITE_PROT_READ) || arg.prot & ~(LITE_PROT_READ | LITE_PROT_WRITE) ||
            !arg.length || arg.offset % page)
            return -EINVAL;
        const auto it = m_handles.find(arg.lh);
        if (it == m_handles.end())
            return -EBADF;
        if (!(it->second.rights & LITE_RIGHT_READ) ||
            (arg.prot & LITE_PROT_WRITE && !(it->second.rights & LITE_RIGHT_WRITE)))
            return -EACCES;
        const auto& target = *it->second.target;
        if (target.freed)
            return -EIDRM;
        if (arg.length > target.data.size() || arg.offset > target.data.size() - arg.length)
            return -ERANGE;
        if (target.nodes != std::vector<std::uint32_t>{1})
            return -EREMOTE;
        void* memory =
            ::mmap(nullptr, arg.length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return -ENOMEM;
        std::memcpy(memory, target.data.data() + arg.offset, arg.length);
        ::mprotect(memory, arg.length, static_cast<int>(arg.prot));
        arg.addr = reinterpret_cast<std::uintptr_t>(memory);
        return 0;
    }

    // The LMR is only a copy of the registered memory.
    int handle_call(lite_ioc_register& arg) {
        if (arg.flags || arg.reserved)
            return -EOPNOTSUPP;
        if (!has_nul(arg.name))
            return -ENAMETOOLONG;
        if (!arg.length || arg.length % page || arg.addr % page || arg.mode & ~0666U)
            return -EINVAL;
        if (arg.length > registered_max)
            return -EDQUOT;
        lite_ioc_alloc alloc{};
        alloc.size = sizeof(alloc);
        alloc.length = arg.length;
        alloc.mode = arg.mode;
        std::memcpy(alloc.name, arg.name, sizeof(alloc.name));
        const int err = handle_call(alloc);
        if (err)
            return err;
        auto& made = *m_handles.at(alloc.lh).target;
        made.registered = true;
        std::memcpy(made.data.data(), pointer<const void>(arg.addr), made.data.size());
        arg.lh = alloc.lh;
        return 0;
    }

    int handle_call(lite_ioc_grant& arg) {
        if (arg.flags || arg.grant.reserved || arg.grant.rights & ~LITE_RIGHTS_ALL)
            return -EOPNOTSUPP;
        if (arg.grant.node > LITE_NODE_ID_MAX)
            return -EINVAL;
        std::shared_ptr<lmr> target;
        std::uint32_t has = 0;
        const int err = find(arg.lh, arg.name, target, &has);
        if (err)
            return err;
        auto& all = target->grants;
        const auto at = std::find_if(all.begin(), all.end(), [&](const auto& grant) {
            return grant.uid == arg.grant.uid && grant.node == arg.grant.node;
        });
        const auto before = at == all.end() ? 0 : at->rights;
        const auto sharable = has & (LITE_RIGHT_READ | LITE_RIGHT_WRITE | LITE_RIGHT_ATOMIC);
        const bool shares = has & LITE_RIGHT_SHARE && !(before & ~arg.grant.rights) &&
                            !(arg.grant.rights & ~before & ~sharable);
        if (!(has & LITE_RIGHT_MASTER) && !shares)
            return -EACCES;
        if (at != all.end())
            all.erase(at);
        else if (arg.grant.rights && all.size() == LITE_GRANTS_MAX)
            return -ENOSPC;
        if (arg.grant.rights)
            all.push_back(arg.grant);
        return 0;
    }

    int handle_call(lite_ioc_grants& arg) {
        if (arg.flags)
            return -EOPNOTSUPP;
        if (arg.grant_size != sizeof(struct lite_grant))
            return -EINVAL;
        std::shared_ptr<lmr> target;
        const int err = find(arg.lh, arg.name, target);
        if (err)
            return err;
        const auto& all = target->grants;
        std::copy_n(all.begin(), std::min<std::size_t>(arg.n_grants, all.size()),
                    pointer<struct lite_grant>(arg.grants));
        arg.n_grants = static_cast<std::uint32_t>(all.size());
        return 0;
    }

    int handle_call(lite_ioc_setattr& arg) {
        if (arg.flags || arg.reserved)
            return -EOPNOTSUPP;
        if (arg.mode != LITE_KEEP && arg.mode & ~0666U)
            return -EINVAL;
        std::shared_ptr<lmr> target;
        const int err = find_as_master(arg, target);
        if (err)
            return err;
        auto& info = target->info;
        const bool other_owner = arg.uid != LITE_KEEP && arg.uid != info.uid;
        const bool other_group =
            arg.gid != LITE_KEEP && arg.gid != info.gid && arg.gid != m_cluster.gid;
        if (m_cluster.uid && (other_owner || other_group))
            return -EPERM;
        info.uid = arg.uid == LITE_KEEP ? info.uid : arg.uid;
        info.gid = arg.gid == LITE_KEEP ? info.gid : arg.gid;
        info.mode = arg.mode == LITE_KEEP ? info.mode : arg.mode;
        return 0;
    }

    int handle_call(lite_ioc_rename& arg) {
        if (arg.flags)
            return -EOPNOTSUPP;
        if (!has_nul(arg.to))
            return -ENAMETOOLONG;
        if (!*arg.to)
            return -EINVAL;
        std::shared_ptr<lmr> target;
        const int err = find_as_master(arg, target);
        if (err)
            return err;
        const auto taken = m_cluster.find(arg.to);
        if (taken && taken != target)
            return -EEXIST;
        std::memcpy(target->info.name, arg.to, sizeof(arg.to));
        return 0;
    }

    int handle_call(lite_ioc_resize& arg) {
        if (arg.flags)
            return -EOPNOTSUPP;
        if (!arg.length)
            return -EINVAL;
        if (arg.length > LITE_LMR_SIZE_MAX)
            return -EFBIG;
        std::shared_ptr<lmr> target;
        const int err = find_as_master(arg, target);
        if (err)
            return err;
        if (target->registered)
            return -EOPNOTSUPP;
        if (arg.length > (1 << 30))
            return -ENOSPC;
        target->data.resize(arg.length);
        target->pages.resize(pages_of(arg.length), target->pages.back());
        target->info.length = arg.length;
        count_nodes(*target);
        return 0;
    }

    int handle_call(lite_ioc_move& arg) {
        arg.moved = 0;
        if (arg.flags || arg.reserved)
            return -EOPNOTSUPP;
        std::shared_ptr<lmr> target;
        const int err = find_as_master(arg, target);
        if (err)
            return err;
        if (target->registered)
            return -EOPNOTSUPP;
        const auto size = target->info.length;
        const auto room = pages_of(size) * page;
        if (arg.offset >= size || arg.length > room || arg.offset > room - arg.length)
            return -ERANGE;
        const auto to = arg.node ? arg.node : this_node;
        if (to > n_nodes)
            return -EHOSTUNREACH;
        const auto length = arg.length ? arg.length : size - arg.offset;
        std::fill(
            target->pages.begin() + static_cast<std::ptrdiff_t>(arg.offset / page),
            target->pages.begin() + static_cast<std::ptrdiff_t>(pages_of(arg.offset + length)), to);
        arg.moved = length;
        count_nodes(*target);
        return 0;
    }

    static void count_nodes(lmr& target) {
        target.nodes.clear();
        for (const auto node : target.pages)
            if (std::find(target.nodes.begin(), target.nodes.end(), node) == target.nodes.end())
                target.nodes.push_back(node);
        target.info.n_nodes = static_cast<std::uint32_t>(target.nodes.size());
    }

    // By handle, or by name if that is 0. @has: the rights of the handle, or those of the caller.
    int find(std::uint64_t lh, const char (&name)[LITE_NAME_SIZE], std::shared_ptr<lmr>& target,
             std::uint32_t* has = nullptr) {
        std::uint32_t rights = 0;
        if (lh) {
            const auto it = m_handles.find(lh);
            if (it == m_handles.end())
                return -EBADF;
            target = it->second.target;
            if (target->freed)
                return -EIDRM;
            rights = rights_left(it->second);
        } else {
            if (!has_nul(name))
                return -ENAMETOOLONG;
            target = m_cluster.find(name);
            if (!*name || !target)
                return *name ? -ENOENT : -EINVAL;
            rights = rights_of(*target, m_cluster.uid, m_cluster.gid);
        }
        if (has)
            *has = rights;
        return 0;
    }

    template <typename T>
    int find_as_master(const T& arg, std::shared_ptr<lmr>& target) {
        std::uint32_t has = 0;
        const int err = find(arg.lh, arg.name, target, &has);
        if (err || has & LITE_RIGHT_MASTER)
            return err;
        return arg.lh ? -EACCES : -EPERM;
    }

    // A handle loses the rights that its user loses.
    static std::uint32_t rights_left(const handle& handle) {
        return handle.rights & rights_of(*handle.target, handle.uid, handle.gid);
    }

    std::uint64_t open_handle(std::shared_ptr<lmr> target, std::uint32_t rights) {
        const auto lh = m_next_handle++;
        m_handles[lh] = {std::move(target), rights, m_cluster.uid, m_cluster.gid};
        m_cluster.m_open_handles++;
        return lh;
    }

    cluster& m_cluster;
    std::map<std::uint64_t, handle> m_handles;
    std::uint64_t m_next_handle = 0x1001;
};

lite_ctx* cluster::open() { return lite::internal::make_context(std::make_unique<device>(*this)); }

void cluster::fail_file(int error, std::uint64_t bytes) {
    m_file_failure = failure{{}, error, bytes};
}

void cluster::fail_op(lite_opcode opcode, int error, std::uint64_t bytes) {
    m_failure = failure{opcode, error, bytes};
}

std::shared_ptr<lmr> cluster::find(const std::string& name) const {
    for (const auto& [id, candidate] : m_lmrs)
        if (lite::name_of(candidate->info) == name)
            return candidate;
    return nullptr;
}

}  // namespace fake
