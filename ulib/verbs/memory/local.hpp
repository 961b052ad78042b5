// SPDX-License-Identifier: MIT
//
// Memory that the program has registered.
#pragma once

#include "memory/cover.hpp"
#include "memory/keys.hpp"
#include "memory/node.hpp"
#include "rwlock.hpp"

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

// Registrations that a thread copies from or to: remove() waits until this is destroyed.
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
    static registrations& get();

    // As ibv_reg_mr_iova2(): unpinned, or else by the device. nullptr: errno is set.
    ibv_mr* add(ibv_pd* pd, void* addr, size_t length, uint64_t iova, unsigned access);
    // As ibv_dereg_mr(). After success the library does not copy from or to the memory any more.
    int remove(ibv_mr* mr);
    // As ibv_rereg_mr().
    int change(ibv_mr* mr, int flags, ibv_pd* pd, void* addr, size_t length, int access);
    // Removes all registrations of a device that the program closes.
    void forget(const ibv_context* context);
    // Does a protection domain have unpinned registrations?
    bool has(const ibv_pd* pd) const;

    // Finds the buffers of a work request. False: the keys do not allow the access. @write: they
    // will be written to. They stay registered as long as @used lives.
    bool resolve(const ibv_pd* pd, const ibv_sge* list, int n, bool write, std::vector<span>& spans,
                 memory_in_use& used) const;
    // Copies a message, or what was fetched, to the buffers of its work request: at most @length
    // bytes. IBV_WC_LOC_QP_OP_ERR: memory has run out.
    ibv_wc_status copy_to(const ibv_pd* pd, const std::vector<ibv_sge>& list, const char* from,
                          uint64_t length) const;

  private:
    struct record {
        std::unique_ptr<ibv_mr> own;  // the program's; nullptr: it has the device's
        const ibv_pd* pd;
        const ibv_context* context;
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

    // Protects m_records; never held while LITE or the device is called.
    mutable rwlock m_mutex;
    records m_records;  // by lkey

    std::mutex m_change;  // protects all below; taken before m_mutex
    std::optional<key_maker> m_keys;
    // LMRs of what peers may reach, of up to 4 GB each.
    cover m_cover{uint64_t{4} << 30};
    std::map<uint32_t, lmr> m_lmrs;
    uint32_t m_last_lmr = 0;
    std::vector<uint32_t> m_stuck;  // LMRs of no registration that LITE could not free
};

}  // namespace lite::verbs
