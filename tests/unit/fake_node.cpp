// SPDX-License-Identifier: MIT

#include "fake_node.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace fake {
namespace {

constexpr std::uint32_t n_nodes = 4;

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
};

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
            case LITE_IOC_STAT:
                return call(*static_cast<lite_ioc_stat*>(arg));
            case LITE_IOC_LIST:
                return call(*static_cast<lite_ioc_list*>(arg));
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

    int handle_call(lite_ioc_query& arg) {
        if (arg.flags)
            return -EOPNOTSUPP;
        arg.uapi_version = LITE_UAPI_VERSION;
        arg.features = LITE_FEATURE_ATOMICS;
        arg.node_id = 1;
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
            made->nodes.push_back(1);
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
        m_cluster.m_lmrs[made->info.id] = made;
        if (!(arg.flags & LITE_ALLOC_NO_HANDLE))
            arg.lh = open_handle(made, allowed(arg.mode) | LITE_RIGHT_MASTER);
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
        if (arg.rights & ~(allowed(found->info.mode) | LITE_RIGHT_MASTER))
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
        if (arg.lh) {
            const auto it = m_handles.find(arg.lh);
            if (it == m_handles.end())
                return -EBADF;
            if (!(it->second.rights & LITE_RIGHT_MASTER))
                return -EACCES;
            if (it->second.target->freed)
                return -EIDRM;
            target = it->second.target;
            m_handles.erase(it);
            m_cluster.m_open_handles--;
        } else {
            target = m_cluster.find(arg.name);
            if (!target)
                return -ENOENT;
        }
        target->freed = true;
        m_cluster.m_lmrs.erase(target->info.id);
        return 0;
    }

    int handle_call(lite_op& op) {
        if (op.flags || op.priority || op.reserved0 || op.reserved1)
            return -EOPNOTSUPP;
        const auto it = m_handles.find(op.lh);
        if (it == m_handles.end())
            return -EBADF;
        auto& target = *it->second.target;
        if (target.freed)
            return -EIDRM;
        const bool atomic = op.opcode == LITE_OP_FETCH_ADD || op.opcode == LITE_OP_CMP_SWAP;
        const auto needed = atomic                       ? LITE_RIGHT_ATOMIC
                            : op.opcode == LITE_OP_WRITE ? LITE_RIGHT_WRITE
                                                         : LITE_RIGHT_READ;
        if (!(it->second.rights & needed))
            return -EACCES;
        if (!op.length || (atomic && (op.length != 8 || op.offset % 8 || op.buf)))
            return -EINVAL;
        if (op.length > target.data.size() || op.offset > target.data.size() - op.length)
            return -ERANGE;

        std::uint64_t length = op.length;
        int error = 0;
        if (m_cluster.m_failure && m_cluster.m_failure->opcode == op.opcode) {
            length = std::min(length, m_cluster.m_failure->bytes);
            error = -m_cluster.m_failure->error;
            m_cluster.m_failure.reset();
        }
        transfer(op, target.data.data() + op.offset, length, error);
        return error;
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
                if (op.opcode == LITE_OP_FETCH_ADD)
                    word += op.operand;
                else if (word == op.operand)
                    word = op.swap;
                std::memcpy(at, &word, sizeof(word));
        }
    }

    int handle_call(lite_ioc_stat& arg) {
        if (arg.flags || arg.reserved)
            return -EOPNOTSUPP;
        std::shared_ptr<lmr> target;
        if (arg.lh) {
            const auto it = m_handles.find(arg.lh);
            if (it == m_handles.end())
                return -EBADF;
            if (it->second.target->freed)
                return -EIDRM;
            target = it->second.target;
        } else {
            target = m_cluster.find(arg.info.name);
            if (!target)
                return -ENOENT;
        }
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

    // The caller is the owner of everything here.
    static std::uint32_t allowed(std::uint32_t mode) {
        return (mode & 0400 ? LITE_RIGHT_READ : 0) |
               (mode & 0200 ? LITE_RIGHT_WRITE | LITE_RIGHT_ATOMIC : 0);
    }

    std::uint64_t open_handle(std::shared_ptr<lmr> target, std::uint32_t rights) {
        const auto lh = m_next_handle++;
        m_handles[lh] = {std::move(target), rights};
        m_cluster.m_open_handles++;
        return lh;
    }

    cluster& m_cluster;
    std::map<std::uint64_t, handle> m_handles;
    std::uint64_t m_next_handle = 0x1001;
};

lite_ctx* cluster::open() { return lite::internal::make_context(std::make_unique<device>(*this)); }

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
