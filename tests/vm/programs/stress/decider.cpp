// SPDX-License-Identifier: MIT
#include "decider.hpp"

#include "uapi/lite.h"

#include <algorithm>
#include <array>

namespace lite_stress {
namespace {

constexpr std::size_t kNames = 16;
constexpr std::size_t kLmrs = 14;
constexpr std::size_t kHandles = 8;        // of a worker
constexpr std::uint32_t kNowhere = 60000;  // no node has this id

}  // namespace

Decider::Decider(std::uint64_t seed) : random_(seed) {
    for (std::size_t i = 0; i < kNames; ++i)
        names_["stress-" + std::to_string(i)] = nullptr;
}

std::uint32_t Decider::random_rights() {
    static constexpr std::array some{
        std::uint32_t{LITE_RIGHT_READ},
        std::uint32_t{LITE_RIGHT_WRITE},
        std::uint32_t{LITE_RIGHT_READ | LITE_RIGHT_WRITE},
        std::uint32_t{LITE_RIGHT_READ | LITE_RIGHT_WRITE | LITE_RIGHT_ATOMIC},
        std::uint32_t{LITE_RIGHT_READ | LITE_RIGHT_SHARE},
        std::uint32_t{LITE_RIGHTS_ALL},
    };
    return some[below(some.size())];
}

std::uint32_t Decider::random_mode() {
    static constexpr std::array some{0600U, 0640U, 0660U, 0644U, 0666U, 0400U, 0000U, 0662U};
    return some[below(some.size())];
}

std::uint32_t Decider::random_uid() {
    static constexpr std::array some{1000U, 1001U, 1002U};
    return some[below(some.size())];
}

std::uint32_t Decider::random_node() {
    const auto all = nodes();
    return all[below(all.size())];
}

std::vector<std::uint32_t> Decider::nodes() const {
    std::set<std::uint32_t> all;
    for (const auto& worker : workers_)
        all.insert(worker.who.node);
    return {all.begin(), all.end()};
}

LmrPtr Decider::random_named() {
    std::vector<LmrPtr> all;
    for (const auto& [name, lmr] : names_) {
        if (lmr)
            all.push_back(lmr);
    }
    return all.empty() ? nullptr : all[below(all.size())];
}

void Decider::decide(Worker& worker) {
    using Decision = bool (Decider::*)(Worker&);
    struct Choice {
        unsigned weight;
        Decision decision;
    };
    static constexpr std::array choices{
        Choice{40, &Decider::decide_data},   Choice{10, &Decider::decide_map},
        Choice{4, &Decider::decide_unmap},   Choice{4, &Decider::decide_alloc},
        Choice{2, &Decider::decide_free},    Choice{8, &Decider::decide_grant},
        Choice{3, &Decider::decide_setattr}, Choice{2, &Decider::decide_rename},
        Choice{4, &Decider::decide_resize},  Choice{5, &Decider::decide_move},
        Choice{3, &Decider::decide_stat},    Choice{1, &Decider::decide_exit},
    };
    unsigned sum = 0;
    for (const auto& choice : choices)
        sum += choice.weight;
    if (decide_resolve(worker))
        return;
    for (int tries = 0; tries < 20; ++tries) {
        auto at = below(sum);
        for (const auto& choice : choices) {
            if (at < choice.weight) {
                if ((this->*choice.decision)(worker))
                    return;
                break;
            }
            at -= choice.weight;
        }
    }
}

Handle* Decider::random_handle(Worker& worker, std::uint64_t& lh) {
    if (worker.handles.empty())
        return nullptr;
    auto it = worker.handles.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(below(worker.handles.size())));
    lh = it->first;
    return &it->second;
}

bool Decider::decide_data(Worker& worker) {
    Command command;
    const Handle* handle = random_handle(worker, command.lh);
    if (!handle)
        return false;
    const auto& lmr = *handle->lmr;
    command.verb = random_data();
    Operation would;
    would.command.verb = command.verb;
    // Operations that are certain to be refused are tried only now and then.
    if (!one_in(4) && (!(handle->may & would.needed()) || lmr.state == Lmr::State::dead))
        return false;
    // Mostly within the LMR, now and then beyond its end.
    const auto room = one_in(12) ? kCapacity : std::max<std::uint64_t>(lmr.length, 16);
    command.length = one_in(10) ? 1 + below(room) : 1 + below(std::min<std::uint64_t>(room, 5000));
    command.offset = below(room - command.length + 1);
    command.value = random_();
    if (is_atomic(command.verb)) {
        command.length = sizeof(std::uint64_t);
        command.offset = below(room / 8) * 8;
    } else if (command.verb == Verb::set) {
        command.pattern = static_cast<std::uint32_t>(1 + below(8));
        command.value >>= 64 - 8 * command.pattern;
    } else if (command.verb == Verb::checksum) {
        command.value = 0;
    }
    if (would.writes() && !lmr.is_free(command.offset, command.offset + command.length))
        return false;
    if ((command.verb == Verb::copy || command.verb == Verb::compare) &&
        !choose_source(worker, command))
        return false;
    if (one_in(150) && !is_atomic(command.verb))
        command.die_after_us = static_cast<std::uint32_t>(1 + below(20000));
    return start(worker, command);
}

Verb Decider::random_data() {
    static constexpr std::array verbs{
        Verb::read,      Verb::read,    Verb::read,      Verb::read,     Verb::write,
        Verb::write,     Verb::write,   Verb::write,     Verb::write,    Verb::fetch_add,
        Verb::fetch_add, Verb::swap,    Verb::fetch_and, Verb::fetch_or, Verb::set,
        Verb::set,       Verb::copy,    Verb::copy,      Verb::copy,     Verb::copy,
        Verb::compare,   Verb::compare, Verb::checksum,  Verb::checksum,
    };
    return verbs[below(verbs.size())];
}

bool Decider::choose_source(Worker& worker, Command& command) {
    const Handle* handle = random_handle(worker, command.lh2);
    const auto& lmr = *handle->lmr;
    if (!one_in(4) && (!(handle->may & LITE_RIGHT_READ) || lmr.state == Lmr::State::dead))
        return false;
    const auto room = std::max(command.length, one_in(12) ? kCapacity : lmr.length);
    command.offset2 = below(room - command.length + 1);
    // One of three comparisons compares a range with itself.
    if (command.verb == Verb::compare && one_in(3)) {
        command.lh2 = command.lh;
        command.offset2 = command.offset;
    }
    return command.verb == Verb::compare ||
           (lmr.low == lmr.high && lmr.is_quiet(command.offset2, command.offset2 + command.length));
}

bool Decider::decide_map(Worker& worker) {
    Command command;
    command.verb = Verb::map;
    command.rights = random_rights();
    if (worker.handles.size() >= kHandles)
        return decide_unmap(worker);
    if (one_in(15))
        return look_for_nobody(worker, command);
    const auto lmr = random_named();
    if (!lmr)
        return false;
    if (!one_in(4))
        command.rights &= lmr->acl.rights_of(worker.who);
    if (!command.rights)
        return false;
    set_name(command.name, lmr->name);
    if (one_in(200))
        command.die_after_us = static_cast<std::uint32_t>(1 + below(5000));
    return start(worker, command);
}

bool Decider::look_for_nobody(Worker& worker, Command& command) {
    const auto name = free_name(false);
    if (name.empty())
        return false;
    set_name(command.name, name);
    return start(worker, command);
}

std::string Decider::free_name(bool to_give) {
    std::vector<std::string> all;
    for (const auto& [name, lmr] : names_) {
        if (!lmr && !busy_names_.contains(name) && !(to_give && is_looked_for(name)))
            all.push_back(name);
    }
    return all.empty() ? "" : all[below(all.size())];
}

bool Decider::is_looked_for(const std::string& name) const {
    return std::any_of(workers_.begin(), workers_.end(), [&](const Worker& worker) {
        return worker.operation && !worker.operation->by_handle() &&
               name == worker.operation->command.name;
    });
}

bool Decider::decide_unmap(Worker& worker) {
    Command command;
    command.verb = Verb::unmap;
    return random_handle(worker, command.lh) && start(worker, command);
}

bool Decider::decide_alloc(Worker& worker) {
    if (live_ >= kLmrs)
        return false;
    Command command;
    command.verb = Verb::alloc;
    command.length = 1 + below(one_in(4) ? kCapacity : 40000);
    command.mode = random_mode();
    auto all = nodes();
    std::shuffle(all.begin(), all.end(), random_);
    command.n_nodes =
        static_cast<std::uint32_t>(one_in(3) ? 1 + below(std::min<std::size_t>(all.size(), 8)) : 1);
    std::copy_n(all.begin(), command.n_nodes, command.nodes);
    if (one_in(6))
        return start(worker, command);
    const auto name = one_in(10) ? taken_name() : free_name(true);
    if (name.empty())
        return false;
    set_name(command.name, name);
    return start(worker, command);
}

std::string Decider::taken_name() {
    const auto lmr = random_named();
    return !lmr || busy_names_.contains(lmr->name) ? "" : lmr->name;
}

bool Decider::choose_target(Worker& worker, Command& command, LmrPtr& lmr, bool changing) {
    if (const Handle* handle = one_in(2) ? random_handle(worker, command.lh) : nullptr) {
        lmr = handle->lmr;
    } else {
        command.lh = 0;
        lmr = random_named();
        if (!lmr)
            return false;
        set_name(command.name, lmr->name);
    }
    return !(changing && (lmr->changing || lmr->state != Lmr::State::alive));
}

bool Decider::decide_free(Worker& worker) {
    Command command;
    command.verb = Verb::free;
    LmrPtr lmr;
    if (!choose_target(worker, command, lmr, false) || lmr->state != Lmr::State::alive ||
        busy_names_.contains(lmr->name))
        return false;
    return start(worker, command);
}

bool Decider::decide_grant(Worker& worker) {
    Command command;
    command.verb = Verb::grant;
    command.uid = random_uid();
    command.node = one_in(2) ? 0 : random_node();
    command.rights = one_in(2) ? 0 : random_rights();
    LmrPtr lmr;
    return choose_target(worker, command, lmr, true) && start(worker, command);
}

bool Decider::decide_setattr(Worker& worker) {
    Command command;
    command.verb = Verb::setattr;
    command.uid = one_in(4) ? random_uid() : LITE_KEEP;
    command.gid = one_in(4) ? 1000 + static_cast<std::uint32_t>(below(3)) : LITE_KEEP;
    command.mode = one_in(4) ? LITE_KEEP : random_mode();
    LmrPtr lmr;
    if (!choose_target(worker, command, lmr, true))
        return false;
    // Whether a user may "change" a value to what it is already is not defined.
    if (command.uid == lmr->acl.uid)
        command.uid = LITE_KEEP;
    if (command.gid == lmr->acl.gid)
        command.gid = LITE_KEEP;
    return start(worker, command);
}

bool Decider::decide_rename(Worker& worker) {
    Command command;
    command.verb = Verb::rename;
    LmrPtr lmr;
    if (!choose_target(worker, command, lmr, true) || busy_names_.contains(lmr->name))
        return false;
    const auto to = one_in(6) ? taken_name() : free_name(true);
    if (to.empty())
        return false;
    set_name(command.to, to);
    return start(worker, command);
}

bool Decider::decide_resize(Worker& worker) {
    Command command;
    command.verb = Verb::resize;
    LmrPtr lmr;
    if (!choose_target(worker, command, lmr, true) || !lmr->pins.empty())
        return false;
    command.length = one_in(5) ? lmr->length : 1 + below(kCapacity);
    return start(worker, command);
}

bool Decider::decide_move(Worker& worker) {
    Command command;
    command.verb = Verb::move;
    LmrPtr lmr;
    if (!choose_target(worker, command, lmr, false) || lmr->moving >= 2)
        return false;
    command.node = one_in(40) ? kNowhere : random_node();
    command.offset = one_in(3) ? 0 : below(lmr->length);
    command.length = 1 + below(lmr->length - command.offset);
    if (one_in(40))
        command.die_after_us = static_cast<std::uint32_t>(1 + below(20000));
    return start(worker, command);
}

bool Decider::decide_stat(Worker& worker) {
    Command command;
    command.verb = one_in(2) ? Verb::stat : Verb::grants;
    LmrPtr lmr;
    return choose_target(worker, command, lmr, false) && start(worker, command);
}

bool Decider::decide_exit(Worker& worker) {
    if (!one_in(4))
        return false;
    Command command;
    command.verb = Verb::exit;
    say(describe_worker(worker) + " exits");
    forget_handles(worker);
    worker.doomed = true;
    send(worker, command);
    return true;
}

bool Decider::decide_resolve(Worker& worker) {
    if (worker.who.uid != 0)
        return false;
    for (const auto& [name, lmr] : names_) {
        if (!lmr || lmr->open.empty() || lmr->changing || lmr->state != Lmr::State::alive ||
            busy_names_.contains(name))
            continue;
        const auto write = lmr->open.front();
        if (write->offset >= lmr->length) {
            lmr->forget(write);
            continue;
        }
        Command command;
        command.verb = Verb::peek;
        command.offset = write->offset;
        command.length = std::min(write->end(), lmr->length) - write->offset;
        set_name(command.name, name);
        return start(worker, command);
    }
    return false;
}

}  // namespace lite_stress
