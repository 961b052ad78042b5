// SPDX-License-Identifier: MIT
// What is done next.
//
// Not decided, so that the model stays exact: two writes to the same bytes at the same time, or a
// write to those that are being copied, or another length for their LMR; two
// changes of the same LMR (grants, attributes, name, length), but for moves, which go on beside
// everything; and a name that is given to an LMR while somebody looks for it in vain. All else may
// be under way at the same time as all else.
#pragma once

#include "ledger.hpp"

#include <random>

namespace lite_stress {

class Decider : public Ledger {
  protected:
    explicit Decider(std::uint64_t seed);
    ~Decider() = default;

    void decide(Worker& worker);
    // What is open is looked at by root. False: there is nothing, or not now.
    bool decide_resolve(Worker& worker);

    std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
    // The nodes that have workers.
    std::vector<std::uint32_t> nodes() const;

  private:
    // They are false if there is nothing of the kind to be done.
    bool decide_data(Worker& worker);
    Verb random_data();
    // The second range of a copy or a comparison. False: not this one.
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
    // By a name that is nobody's.
    bool look_for_nobody(Worker& worker, Command& command);
    // By name, or by a handle if there is one. False: there is no such LMR, or it is being changed.
    bool choose_target(Worker& worker, Command& command, LmrPtr& lmr, bool changing);

    bool one_in(std::uint64_t n) { return below(n) == 0; }
    std::uint32_t random_rights();
    std::uint32_t random_mode();
    std::uint32_t random_uid();
    std::uint32_t random_node();
    // One that has a name, or none.
    LmrPtr random_named();
    Handle* random_handle(Worker& worker, std::uint64_t& lh);
    // A name that is nobody's; @to_give: and that nobody looks for.
    std::string free_name(bool to_give);
    bool is_looked_for(const std::string& name) const;
    // One that stays taken as long as it is busy.
    std::string taken_name();

    std::mt19937_64 random_;
};

}  // namespace lite_stress
