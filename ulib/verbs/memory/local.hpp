// SPDX-License-Identifier: MIT
//
// Memory that the program has registered.
#pragma once

#include "memory/cover.hpp"
#include "memory/keys.hpp"
#include "memory/node.hpp"

#include <infiniband/verbs.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <vector>

namespace lite::verbs {

// A buffer of a work request, in memory of the process.
struct span {
    char* at;
    uint64_t length;
};

// What a thread copies from or to: removing it waits for the thread.
class memory_in_use {
  public:
    memory_in_use() = default;
    memory_in_use(const memory_in_use&) = delete;
    memory_in_use& operator=(const memory_in_use&) = delete;
    ~memory_in_use();

  private:
    friend class registrations;
    std::vector<std::shared_ptr<std::atomic<uint32_t>>> m_users;
};

class registrations {
  public:
    // The process's only one.
    static registrations& get();

    // As ibv_reg_mr_iova2(): unpinned, or else with the device. nullptr and errno.
    ibv_mr* add(ibv_pd* pd, void* addr, size_t length, uint64_t iova, unsigned access);
    // As ibv_dereg_mr(). On success nothing copies from or to the memory any more.
    int remove(ibv_mr* mr);
    // As ibv_rereg_mr().
    int change(ibv_mr* mr, int flags, ibv_pd* pd, void* addr, size_t length, int access);
    // Has a protection domain unpinned registrations?
    bool has(const ibv_pd* pd) const;

    // Where the buffers of a work request are, and whether the keys allow that: false if not.
    // @write: they will be written to. They stay registered as long as @used lives.
    bool resolve(const ibv_pd* pd, const ibv_sge* list, int n, bool write, std::vector<span>& spans,
                 memory_in_use& used) const;

  private:
    struct record {
        std::unique_ptr<ibv_mr> own;  // what the program got, unless it is the device's
        const ibv_pd* pd;
        char* addr;
        uint64_t iova;
        uint64_t length;
        unsigned access;
        std::vector<uint32_t> lmrs;
        std::shared_ptr<std::atomic<uint32_t>> users = std::make_shared<std::atomic<uint32_t>>(0);

        void wait_unused() const;
    };
    struct lmr {
        lite_lh_t lh;
        uint32_t mode;
    };

    using records = std::map<uint32_t, record>;

    static records::node_type make_record(record made);
    ibv_mr* add_own(ibv_pd* pd, void* addr, size_t length, uint64_t iova, unsigned access,
                    int& err);
    ibv_mr* add_real(ibv_pd* pd, void* addr, size_t length, uint64_t iova, unsigned access);
    int publish(record& r, uint32_t key);
    int cover_with_lmrs(record& r, table_entry& entry);
    int make_lmr(const piece& part, uint32_t mode, uint32_t& id);
    void forget_lmrs(std::vector<uint32_t>& lmrs) noexcept;
    uint32_t mode_for(unsigned access) const;

    // For m_records; never held while LITE or the device is called.
    mutable std::shared_mutex m_mutex;
    records m_records;  // by lkey

    std::mutex m_change;  // for all below; taken before m_mutex
    std::optional<key_maker> m_keys;
    // Of what peers may reach.
    cover m_cover{uint64_t{4} << 30};
    std::map<uint32_t, lmr> m_lmrs;
    uint32_t m_last_lmr = 0;
    std::vector<uint32_t> m_stuck;  // LMRs that could not be freed, and are no registration's
};

}  // namespace lite::verbs
