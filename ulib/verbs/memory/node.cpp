// SPDX-License-Identifier: MIT

#include "memory/node.hpp"

#include "log.hpp"
#include "registry.hpp"

#include <lite/cluster.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

namespace lite::verbs {
namespace {

uint32_t mode_from_environment() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    const char* text = std::getenv("LITE_VERBS_MODE");
    if (!text || !*text)
        return 0600;
    char* end = nullptr;
    const unsigned long mode = std::strtoul(text, &end, 8);
    if (*end || mode & ~0666UL) {
        say_once("LITE_VERBS_MODE is ignored", text);
        return 0600;
    }
    return static_cast<uint32_t>(mode);
}

}  // namespace

node* node::get() {
    static node* const only = open();
    return is_child ? nullptr : only;
}

node* node::open() {
    auto* made = new node;
    int err = lite_open(-1, &made->m_ctx);
    lite_ioc_query query = {};
    if (!err)
        err = lite_query(made->m_ctx, &query);
    if (err) {
        say_once("plain verbs: no LITE node", lite_strerror(err));
        delete made;
        return nullptr;
    }
    made->m_id = query.node_id;
    made->m_incarnation = query.incarnation;
    made->m_index = static_cast<int>(query.index);
    made->m_mode = mode_from_environment();
    made->m_refusal = made->show_table();
    if (made->m_refusal)
        say_once("all registrations are pinned", lite_strerror(made->m_refusal));
    // A child must not use its parent's objects, and lacks the threads.
    ::pthread_atfork(nullptr, nullptr, [] { is_child = true; });
    return made;
}

int node::refusal() {
    lite_ioc_query query = {};
    if (!m_refusal && !lite_query(m_ctx, &query) && query.incarnation != m_incarnation)
        m_refusal = -ESTALE;
    return m_refusal;
}

bool node::has_left() const {
    lite_ioc_query query = {};
    return !lite_query(m_ctx, &query) && query.state == LITE_NODE_IDLE;
}

int node::show_table() {
    // MAP_SHARED: a private page, after fork(2), would be copied when the owner next writes to it.
    void* memory =
        ::mmap(nullptr, sizeof(table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -errno;
    ::madvise(memory, sizeof(table), MADV_DONTFORK);
    m_table = static_cast<table*>(memory);
    m_table->header.version = table_version;
    m_table->header.node = m_id;
    m_table->header.magic = table_magic;

    uint32_t first = 0;
    if (::getrandom(&first, sizeof(first), 0) != sizeof(first))
        return -EIO;
    for (uint32_t i = 0; i < processes_max; i++) {
        m_process = (first + i) % processes_max;
        lite_lh_t lh = 0;
        // Peers only read it, whatever they may do to the memory of registrations.
        const int err =
            lite_register_with(m_ctx, table_name(m_id, m_process).c_str(), memory, sizeof(table),
                               m_mode & 0444, LITE_REGISTER_UNPINNED, &lh);
        if (err == -EEXIST)
            continue;
        if (!err)
            debug("node %u, process %u", m_id, m_process);
        return err;
    }
    return -EEXIST;
}

int node::map_of(uint32_t home, const std::string& name, uint32_t rights, lite_lh_t& lh) const {
    int err = lite_map(m_ctx, name.c_str(), rights, &lh, nullptr);
    if (err)
        return err;
    lite_lmr_info info = {};
    err = lite_stat(m_ctx, lh, &info, nullptr, nullptr);
    const bool trusts_others = m_mode & 0077;
    if (!err && (info.home != home || (info.uid != ::geteuid() && !trusts_others))) {
        say_once("an LMR is not used: it is not the peer's", name.c_str());
        err = -EACCES;
    }
    if (err)
        lite_unmap(m_ctx, lh);
    return err;
}

void node::add_gids(ibv_context* context) {
    ibv_device_attr attr = {};
    if (m_refusal || ::ibv_query_device(context, &attr))
        return;
    const std::lock_guard lock(m_mutex);
    for (uint8_t port = 1; port <= attr.phys_port_cnt; port++) {
        ibv_port_attr port_attr = {};
        if (::ibv_query_port(context, port, &port_attr))
            continue;
        for (int i = 0; i < port_attr.gid_tbl_len; i++)
            add_gid_locked(context, port, i);
    }
}

void node::add_gid(ibv_context* context, uint8_t port, int index) {
    const std::lock_guard lock(m_mutex);
    if (!m_refusal)
        add_gid_locked(context, port, index);
}

void node::add_gid_locked(ibv_context* context, uint8_t port, int index) {
    table_header& header = m_table->header;
    ::ibv_gid gid = {};
    if (::ibv_query_gid(context, port, index, &gid) || !gid.global.interface_id)
        return;
    for (uint32_t k = 0; k < header.n_gids; k++) {
        if (!std::memcmp(header.gids[k], gid.raw, sizeof(gid.raw)))
            return;
    }
    if (header.n_gids == gids_max) {
        say_once("peers do not find all addresses of this process", "there are too many");
        return;
    }
    std::memcpy(header.gids[header.n_gids], gid.raw, sizeof(gid.raw));
    header.n_gids++;
}

void node::show(uint32_t slot, table_entry entry) {
    const std::lock_guard lock(m_mutex);
    entry.check = check_of(entry);
    m_table->entries[slot] = entry;
    // The entry must be written before the program can tell a peer the key.
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace lite::verbs
