// SPDX-License-Identifier: MIT
// Decides the next operation.
//
// To keep the model exact, some combinations are never decided: two writes to the same bytes at the
// same time; a write to bytes that are being copied, or another length for their LMR; two changes
// of the same LMR (grants, attributes, name, length), except for moves, which go on beside all
// else; and giving a name to an LMR while a worker looks for that name in vain. All other
// operations may be in flight at the same time.
#pragma once

#include "ledger.hpp"

#include <random>

namespace lite_stress {

class Decider : public Ledger {
  protected:
    explicit Decider(std::uint64_t seed);
    ~Decider() = default;

    void decide(Worker& worker);
    // Root reads ranges that writes with an unknown outcome have left. Returns false if there are
    // none, or not now.
    bool decide_resolve(Worker& worker);

    std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
    // The nodes that have workers.
    std::vector<std::uint32_t> nodes() const;

  private:
    // These functions return false if there is nothing of the kind to do.
    bool decide_data(Worker& worker);
    Verb random_data();
    // Chooses the second range of a copy or a comparison. Returns false if this operation is not
    // possible now.
    bool choose_source(Worker& worker, Command& command);
    bool decide_map(Worker& worker);
    bool decide_unmap(Worker& worker);
    bool decide_alloc(Worker& worker);
    bool decide_free(Worker& worker);
    bool decide_grant(Worker& worker);
    bool decide_setattr(Worker& worker);
    bool decide_rename(Worker& worker);
    bool decide_resize(Worker& worker);
    bool decide_move(Worker& worker);
    bool decide_stat(Worker& worker);
    bool decide_exit(Worker& worker);
    // Uses a name that no LMR has.
    bool look_for_nobody(Worker& worker, Command& command);
    // By name, or by a handle if the worker has one. Returns false if there is no such LMR, or it
    // is being changed.
    bool choose_target(Worker& worker, Command& command, LmrPtr& lmr, bool changing);

    bool one_in(std::uint64_t n) { return below(n) == 0; }
    std::uint32_t random_rights();
    std::uint32_t random_mode();
    std::uint32_t random_uid();
    std::uint32_t random_node();
    // A random LMR with a name, or none.
    LmrPtr random_named();
    Handle* random_handle(Worker& worker, std::uint64_t& lh);
    // A name that no LMR has; with @to_give, also one that no worker looks for.
    std::string free_name(bool to_give);
    bool is_looked_for(const std::string& name) const;
    // A name that stays taken as long as it is busy.
    std::string taken_name();

    std::mt19937_64 random_;
};

}  // namespace lite_stress
