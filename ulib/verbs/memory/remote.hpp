// SPDX-License-Identifier: MIT
//
// Memory that peers have registered, reached through LITE.
#pragma once

#include "memory/local.hpp"
#include "memory/node.hpp"

#include <infiniband/verbs.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace lite::verbs {

// A process that has registered memory, on any node.
class remote_process {
  public:
    // Finds a process by its number and the address of a device. Queue pairs share what is found.
    // nullptr: @err is set to a negative errno.
    static std::shared_ptr<remote_process> find(const ::ibv_gid& gid, uint32_t process, int& err);

    remote_process(uint32_t node, uint32_t process, lite_lh_t table)
        : m_node(node), m_process(process), m_table(table) {}
    remote_process(const remote_process&) = delete;
    remote_process& operator=(const remote_process&) = delete;
    ~remote_process();

    // An operation has failed: find() does not return it any more.
    void distrust() { m_is_trusted = false; }
    bool is_trusted() const { return m_is_trusted; }

    struct registration {
        table_entry entry;
        lite_lh_t handles[parts_max];
    };
    // nullptr: @err is set to a negative errno.
    std::shared_ptr<const registration> look_up(uint32_t key, int& err);

  private:
    static std::shared_ptr<remote_process> search(const ::ibv_gid& gid, uint32_t process, int& err);
    int open_lmr(uint32_t lmr, unsigned access, lite_lh_t& lh);

    struct opened {
        lite_lh_t lh;
        uint32_t rights;
    };

    const uint32_t m_node;
    const uint32_t m_process;
    const lite_lh_t m_table;
    std::atomic<bool> m_is_trusted = true;
    std::mutex m_mutex;
    std::map<uint32_t, std::shared_ptr<const registration>> m_registrations;  // by key
    std::map<uint32_t, opened> m_lmrs;
    std::vector<lite_lh_t> m_outgrown;  // handles with fewer rights than were needed later
};

struct one_sided {
    ibv_wr_opcode opcode;
    uint64_t addr;  // peer's address (iova)
    uint32_t key;
    uint64_t compare_add, swap;  // of atomics
};

// The peer processes that a queue pair reaches: one, unless the program at the other end also hands
// out keys of other processes. Used by one thread at a time.
class remote_peer {
  public:
    // @gid: the peer's; nullptr if it is unknown: then all operations are refused.
    void connect(const ::ibv_gid* gid);
    // Executes an operation, with buffers @spans. Returns its outcome once it has taken effect.
    ibv_wc_status run(const one_sided& op, const std::vector<span>& spans);

  private:
    int try_run(const one_sided& op, const std::vector<span>& spans);
    void forget(uint32_t process);

    std::optional<::ibv_gid> m_gid;
    std::map<uint32_t, std::shared_ptr<remote_process>> m_processes;
};

}  // namespace lite::verbs
