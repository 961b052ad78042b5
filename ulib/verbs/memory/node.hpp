// SPDX-License-Identifier: MIT
//
// The process's context on the LITE node of its machine, and the table that it shows to its peers.
#pragma once

#include "memory/table.hpp"

#include <lite/lite.h>

#include <infiniband/verbs.h>

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

namespace lite::verbs {

class node {
  public:
    // The process's only one, opened at the first call and never closed: the kernel cleans up at
    // the end of the process. nullptr: there is no LITE node, or this is a child made by fork(2).
    static node* get();

    lite_ctx* ctx() const { return m_ctx; }
    uint32_t id() const { return m_id; }
    int index() const { return m_index; }
    uint32_t process() const { return m_process; }
    // A negative errno if nothing can be unpinned, else 0. -ESTALE: the node has left its cluster
    // meanwhile, which has freed the table that peers look for.
    int refusal();
    // Is the node in no cluster now?
    bool has_left() const;
    // The permission bits that LMRs of this process may have.
    uint32_t mode() const { return m_mode; }

    // Maps an LMR of a process on node @home. 0 or a negative errno: -EACCES if another node or,
    // unless LITE_VERBS_MODE lets others in, another user has registered that name.
    int map_of(uint32_t home, const std::string& name, uint32_t rights, lite_lh_t& lh) const;

    // Tells peers all addresses of a device; add_gid() one that it may have been given later.
    void add_gids(ibv_context* context);
    void add_gid(ibv_context* context, uint8_t port, int index);
    // Tells peers of a registration, or with @entry.key == 0 that it is gone.
    void show(uint32_t slot, table_entry entry);

  private:
    node() = default;
    static node* open();
    int show_table();
    void add_gid_locked(ibv_context* context, uint8_t port, int index);

    lite_ctx* m_ctx = nullptr;
    uint32_t m_id = 0;
    int m_index = 0;
    uint32_t m_process = 0;
    uint64_t m_incarnation = 0;
    std::atomic<int> m_refusal = 0;
    uint32_t m_mode = 0600;
    std::mutex m_mutex;  // held while the table is written
    table* m_table = nullptr;
};

}  // namespace lite::verbs
