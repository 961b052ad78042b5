// SPDX-License-Identifier: MIT
#include "ledger.hpp"

#include "../common/data/pattern.hpp"

#include "uapi/lite.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <sstream>

namespace lite_stress {
namespace {

constexpr std::size_t kLogged = 5000;

bool changes_acl(Verb verb) { return verb == Verb::grant || verb == Verb::setattr; }

// At most one of these is in flight for each LMR. (A peek changes nothing, but needs an LMR that
// does not change.)
bool is_change(Verb verb) {
    return changes_acl(verb) || verb == Verb::rename || verb == Verb::resize || verb == Verb::peek;
}

std::string hex(std::uint64_t value) {
    std::ostringstream text;
    text << std::hex << value;
    return text.str();
}

const char* outcome(const Reply& reply) {
    const char* name = reply.error ? strerrorname_np(reply.error) : "ok";
    return name ? name : "an errno without a name";
}

}  // namespace

void Ledger::others_on(const LmrPtr& lmr, const Operation& self, const Meet& meet) {
    for (auto& worker : workers_) {
        if (!worker.operation || worker.operation->number == self.number)
            continue;
        auto& theirs = *worker.operation;
        if (theirs.lmr == lmr)
            meet(worker, theirs);
        if (theirs.second && theirs.second->lmr == lmr)
            meet(worker, *theirs.second);
    }
}

Acl Ledger::changed_acl(const Operation& op) {
    Acl acl = op.lmr->acl;
    const auto& c = op.command;
    if (c.verb == Verb::grant) {
        if (c.rights)
            acl.grants[{c.uid, c.node}] = c.rights;
        else
            acl.grants.erase({c.uid, c.node});
    } else {
        acl.uid = c.uid == LITE_KEEP ? acl.uid : c.uid;
        acl.gid = c.gid == LITE_KEEP ? acl.gid : c.gid;
        acl.mode = c.mode == LITE_KEEP ? acl.mode : c.mode;
    }
    return acl;
}

bool Ledger::start(Worker& worker, const Command& command) {
    Operation op;
    op.command = command;
    op.number = ++started_;
    if (op.by_handle())
        op.lmr = worker.handles.at(command.lh).lmr;
    else if (command.verb != Verb::alloc)
        op.lmr = names_.at(command.name);
    if (op.lmr)
        bound(worker, op);
    if (command.lh2)
        bound_second(worker, op);
    if (command.verb == Verb::rename)
        take_name(op, command.to);
    if (command.verb == Verb::alloc && *command.name)
        take_name(op, command.name);
    if (op.lmr)
        announce(op);
    worker.doomed |= command.die_after_us != 0;
    say(describe(worker, op));
    worker.operation = std::move(op);
    worker.since = Clock::now();
    send(worker, command);
    return true;
}

void Ledger::bound(const Worker& worker, Operation& op) {
    auto& lmr = *op.lmr;
    if (op.by_handle()) {
        const auto& handle = worker.handles.at(op.command.lh);
        op.must = handle.must;
        op.may = handle.may;
        if (lmr.next)
            op.meet_acl(*lmr.next, worker.who, handle.opened);
    } else {
        op.must = op.may = lmr.acl.rights_of(worker.who);
        if (lmr.next)
            op.meet_acl(*lmr.next, worker.who, LITE_RIGHTS_ALL);
        op.name_unsure = busy_names_.contains(lmr.name);
    }
    op.low = lmr.low;
    op.high = lmr.high;
    if (lmr.low < lmr.length)
        op.shrunk = lmr.low;
    op.changed = lmr.changing;
    op.maybe_dead = lmr.state != Lmr::State::alive;
    op.surely_dead = lmr.state == Lmr::State::dead;
    if (op.reads()) {
        op.before.assign(op.command.length, std::byte{});
        const auto n = op.end() <= kCapacity ? op.command.length : 0;
        std::copy_n(lmr.bytes.begin() + static_cast<std::ptrdiff_t>(n ? op.command.offset : 0), n,
                    op.before.begin());
        for (const auto& write : lmr.writes)
            op.meet_write(write);
    }
}

void Ledger::bound_second(const Worker& worker, Operation& op) {
    op.second = std::make_shared<Operation>();
    auto& second = *op.second;
    second.number = op.number;
    second.command.verb = Verb::read;
    second.command.lh = op.command.lh2;
    second.command.offset = op.command.offset2;
    second.command.length = op.command.length;
    second.lmr = worker.handles.at(second.command.lh).lmr;
    bound(worker, second);
    if (op.command.verb != Verb::copy)
        return;
    op.pin = std::make_shared<Pin>(Pin{second.command.offset, second.end()});
    second.lmr->pins.push_back(op.pin);
}

void Ledger::release(const Operation& op) {
    if (op.pin)
        std::erase(op.second->lmr->pins, op.pin);
}

void Ledger::take_name(Operation& op, const char* name) {
    const auto& owner = names_.at(name);
    op.name_taken = owner && owner != op.lmr;
    busy_names_.insert(name);
}

void Ledger::announce(Operation& op) {
    auto& lmr = *op.lmr;
    const auto verb = op.command.verb;
    if (is_change(verb))
        lmr.changing = true;
    if (changes_acl(verb)) {
        lmr.next = changed_acl(op);
        others_on(op.lmr, op, [&](Worker& other, Operation& theirs) {
            const auto opened =
                theirs.by_handle() ? other.handles.at(theirs.command.lh).opened : LITE_RIGHTS_ALL;
            theirs.meet_acl(*lmr.next, other.who, opened);
        });
    } else if (verb == Verb::resize) {
        lmr.low = std::min(lmr.length, op.command.length);
        lmr.high = std::max(lmr.length, op.command.length);
        others_on(op.lmr, op,
                  [&](Worker&, Operation& theirs) { theirs.meet_length(op.command.length); });
    } else if (verb == Verb::rename || verb == Verb::free) {
        if (!lmr.name.empty())
            busy_names_.insert(lmr.name);
        if (verb == Verb::free)
            lmr.state = Lmr::State::freeing;
        others_on(op.lmr, op, [&](Worker&, Operation& theirs) {
            theirs.changed = true;
            theirs.name_unsure = true;
            theirs.maybe_dead |= verb == Verb::free;
        });
    } else if (verb == Verb::move) {
        ++lmr.moving;
    } else if (op.writes()) {
        begin_write(op);
    }
}

std::vector<std::byte> Ledger::wanted_bytes(const Operation& op) {
    const auto& c = op.command;
    if (c.verb == Verb::copy)
        return op.second->before;
    std::vector<std::byte> bytes(c.length);
    if (c.verb == Verb::write) {
        lite_test::fill_pattern(bytes, c.value, c.offset);
    } else if (c.verb == Verb::set) {
        for (std::size_t i = 0; i < bytes.size(); ++i)
            bytes[i] = static_cast<std::byte>(c.value >> 8 * (i % c.pattern));
    } else {
        std::uint64_t word = 0;
        if (op.end() <= kCapacity)
            std::memcpy(&word, op.lmr->bytes.data() + c.offset, sizeof(word));
        word = combined(c.verb, word, c.value);
        std::memcpy(bytes.data(), &word, sizeof(word));
    }
    return bytes;
}

void Ledger::begin_write(Operation& op) {
    auto write = std::make_shared<Write>();
    write->offset = op.command.offset;
    write->bytes = wanted_bytes(op);
    op.write = write;
    op.lmr->writes.push_back(write);
    others_on(op.lmr, op, [&](Worker&, Operation& theirs) { theirs.meet_write(write); });
}

void Ledger::finish(Worker& worker, const Reply& reply, std::span<const std::byte> data) {
    auto op = std::move(*worker.operation);
    worker.operation.reset();
    release(op);
    ++done_;
    ++counts_[std::string(name_of(op.command.verb)) + " " + outcome(reply)];
    say("  " + std::to_string(op.number) + " " + lmr_name(op) + " -> " + outcome(reply));
    const auto wrong = op.judge(reply, data, worker.who);
    if (!wrong.empty()) {
        suspect_ = lmr_name(op);
        throw Divergence(wrong + ": " + describe(worker, op) + "; rights " +
                         std::to_string(op.must) + ".." + std::to_string(op.may) + ", length " +
                         std::to_string(op.low) + ".." + std::to_string(op.high));
    }
    conclude(worker, op, reply, data);
}

void Ledger::conclude(Worker& worker, Operation& op, const Reply& reply,
                      std::span<const std::byte> data) {
    const bool good = reply.error == 0;
    const auto& c = op.command;
    if (c.verb == Verb::alloc)
        return end_alloc(worker, op, reply);
    if (!op.lmr)
        return;
    auto& lmr = *op.lmr;
    if (is_change(c.verb))
        lmr.changing = false;
    if (op.writes())
        return end_write(op, reply);
    switch (c.verb) {
        case Verb::map:
            if (good)
                open_handle(worker, op, reply.value);
            break;
        case Verb::unmap:
            close_handle(worker, c.lh);
            break;
        case Verb::free:
            end_free(worker, op, good);
            break;
        case Verb::peek:
            end_peek(op, good, data);
            break;
        case Verb::grant:
        case Verb::setattr:
            end_acl(op, good);
            break;
        case Verb::rename:
            end_rename(op, good);
            break;
        case Verb::resize:
            if (good)
                lmr.set_length(c.length);
            else
                lmr.low = lmr.high = lmr.length;
            break;
        case Verb::move:
            --lmr.moving;
            break;
        default:
            break;
    }
}

void Ledger::end_alloc(Worker& worker, const Operation& op, const Reply& reply) {
    const auto& c = op.command;
    const std::string name = c.name;
    busy_names_.erase(name);
    if (reply.error)
        return;
    const auto lmr = std::make_shared<Lmr>();
    lmr->number = ++lmrs_;
    lmr->name = name;
    lmr->acl = {worker.who.uid, worker.who.gid, c.mode, {}};
    lmr->set_length(c.length);
    if (name.empty())
        lmr->maker = worker.number;
    else
        names_[name] = lmr;
    ++live_;
    Handle handle{lmr, lmr->acl.rights_of(worker.who), 0, 0};
    // Root has all rights, but a handle of the maker has at least those of the mode.
    handle.must = Acl{1, 1, c.mode, {}}.rights_of({1, 1, 0});
    handle.may = handle.opened;
    worker.handles[reply.value] = handle;
    say("  it is L" + std::to_string(lmr->number) + " , handle " + hex(reply.value));
}

void Ledger::open_handle(Worker& worker, const Operation& op, std::uint64_t lh) {
    const auto wanted = op.command.rights;
    auto now = op.lmr->acl.rights_of(worker.who);
    auto maybe = now;
    if (op.lmr->next) {
        const auto next = op.lmr->next->rights_of(worker.who);
        maybe |= next;
        now &= next;
    }
    worker.handles[lh] = {op.lmr, wanted, wanted & op.must & now, wanted & maybe};
    say("  handle " + hex(lh) + " of L" + std::to_string(op.lmr->number) + " ");
}

void Ledger::close_handle(Worker& worker, std::uint64_t lh) {
    const auto lmr = worker.handles.at(lh).lmr;
    worker.handles.erase(lh);
    if (lmr->maker != worker.number)
        return;
    for (const auto& [other, handle] : worker.handles) {
        if (handle.lmr == lmr)
            return;
    }
    bury(*lmr);
}

void Ledger::bury(Lmr& lmr) {
    if (lmr.state == Lmr::State::dead)
        return;
    lmr.state = Lmr::State::dead;
    lmr.maker.reset();
    lmr.open.clear();
    lmr.writes.clear();
    --live_;
}

void Ledger::end_free(Worker& worker, const Operation& op, bool good) {
    auto& lmr = *op.lmr;
    busy_names_.erase(lmr.name);
    if (!good) {
        lmr.state = Lmr::State::alive;
        return;
    }
    if (!lmr.name.empty())
        names_[lmr.name] = nullptr;
    if (op.by_handle())
        worker.handles.erase(op.command.lh);
    bury(lmr);
}

void Ledger::end_acl(const Operation& op, bool good) {
    auto& lmr = *op.lmr;
    if (good) {
        lmr.acl = *lmr.next;
        for (auto& worker : workers_) {
            const auto rights = lmr.acl.rights_of(worker.who);
            for (auto& [lh, handle] : worker.handles) {
                if (handle.lmr == op.lmr) {
                    handle.must &= rights;
                    handle.may = handle.opened & rights;
                }
            }
        }
    }
    lmr.next.reset();
}

void Ledger::end_rename(const Operation& op, bool good) {
    auto& lmr = *op.lmr;
    busy_names_.erase(op.command.to);
    busy_names_.erase(lmr.name);
    if (!good)
        return;
    if (!lmr.name.empty())
        names_[lmr.name] = nullptr;
    lmr.name = op.command.to;
    lmr.maker.reset();
    names_[lmr.name] = op.lmr;
}

void Ledger::end_write(const Operation& op, const Reply& reply) {
    auto& lmr = *op.lmr;
    auto& write = *op.write;
    const bool cut = write.end() > op.shrunk;
    if (lmr.state == Lmr::State::dead) {
        lmr.forget(op.write);
        return;
    }
    bool open = reply.error == 0 && cut;
    // Was it refused at once, or in the middle?
    const bool word = is_atomic(op.command.verb);
    if (!word)
        open |= (reply.error == EACCES && op.may & LITE_RIGHT_WRITE) || reply.error == EIDRM ||
                (reply.error == ERANGE && op.low != op.high);
    if (word && !reply.error) {
        const auto now = combined(op.command.verb, reply.value, op.command.value);
        std::memcpy(write.bytes.data(), &now, sizeof(now));
    }
    if (open) {
        leave_open(lmr, op.write);
        return;
    }
    if (!reply.error)
        std::copy(write.bytes.begin(), write.bytes.end(),
                  lmr.bytes.begin() + static_cast<std::ptrdiff_t>(write.offset));
    lmr.forget(op.write);
}

void Ledger::leave_open(Lmr& lmr, const WritePtr& write) {
    say("  its outcome is open: L" + std::to_string(lmr.number) + " " +
        std::to_string(write->bytes.size()) + " at " + std::to_string(write->offset));
    // A write beyond the longest possible LMR cannot be read again.
    if (write->offset >= kCapacity || lmr.state == Lmr::State::dead)
        lmr.forget(write);
    else
        lmr.open.push_back(write);
}

void Ledger::end_peek(const Operation& op, bool good, std::span<const std::byte> data) {
    auto& lmr = *op.lmr;
    if (!good || lmr.open.empty())
        return;
    // The bytes were judged already: each has its old value or one that a write wanted. If such a
    // write is still in flight, it is judged later.
    for (std::size_t i = 0; i < data.size(); ++i) {
        const auto at = op.command.offset + i;
        if (lmr.open.front()->overlaps(at, at + 1))
            lmr.bytes[at] = data[i];
    }
    lmr.forget(lmr.open.front());
}

void Ledger::forget_handles(Worker& worker) {
    for (auto& [lh, handle] : worker.handles) {
        if (handle.lmr->maker == worker.number)
            bury(*handle.lmr);
    }
    worker.handles.clear();
}

void Ledger::explain(const std::string& why) {
    std::fprintf(stderr, "stress: DIVERGENCE: %s\n", why.c_str());
    std::fprintf(stderr, "--- what was done with it\n");
    const auto tag = suspect_ + " ";
    std::vector<std::string> about;
    for (const auto& line : log_) {
        if (!suspect_.empty() && line.find(tag) != std::string::npos)
            about.push_back(line);
    }
    const auto skipped = about.size() > 80 ? about.size() - 80 : 0;
    for (auto i = skipped; i < about.size(); ++i)
        std::fprintf(stderr, "%s\n", about[i].c_str());
    std::fprintf(stderr, "--- the last of all\n");
    const auto all = log_.size() > 40 ? log_.size() - 40 : 0;
    for (auto i = all; i < log_.size(); ++i)
        std::fprintf(stderr, "%s\n", log_[i].c_str());
    std::fprintf(stderr, "--- under way\n");
    for (const auto& worker : workers_) {
        if (worker.operation)
            std::fprintf(stderr, "%s\n", describe(worker, *worker.operation).c_str());
    }
}

std::string Ledger::lmr_name(const Operation& op) {
    return op.lmr ? "L" + std::to_string(op.lmr->number) : "-";
}

std::string Ledger::describe_worker(const Worker& worker) {
    return "worker " + std::to_string(worker.number) + " (node " + std::to_string(worker.who.node) +
           ", uid " + std::to_string(worker.who.uid) + ")";
}

std::string Ledger::describe(const Worker& worker, const Operation& op) {
    const auto& c = op.command;
    std::ostringstream text;
    text << op.number << " " << lmr_name(op) << " " << describe_worker(worker) << ": "
         << name_of(c.verb);
    if (c.lh)
        text << " handle " << std::hex << c.lh << std::dec;
    else
        text << " '" << c.name << "'";
    if (*c.to)
        text << " to '" << c.to << "'";
    text << " offset " << c.offset << " length " << c.length;
    if (op.second)
        text << " and " << lmr_name(*op.second) << " handle " << std::hex << c.lh2 << std::dec
             << " offset " << c.offset2;
    if (c.verb == Verb::map || c.verb == Verb::grant)
        text << " rights " << c.rights;
    if (c.verb == Verb::grant || c.verb == Verb::setattr)
        text << " uid " << c.uid;
    if (c.verb == Verb::setattr)
        text << " gid " << c.gid << " mode " << std::oct << c.mode << std::dec;
    if (c.verb == Verb::grant || c.verb == Verb::move)
        text << " node " << c.node;
    if (c.die_after_us)
        text << " (dies after " << c.die_after_us << " us)";
    return text.str();
}

void Ledger::say(std::string text) {
    log_.push_back(std::move(text));
    if (log_.size() > kLogged)
        log_.pop_front();
}

void Ledger::abandon(Worker& worker) {
    if (!worker.doomed)
        throw Divergence(describe_worker(worker) + " has gone");
    say(describe_worker(worker) + " is gone");
    if (worker.operation) {
        const auto op = std::move(*worker.operation);
        worker.operation.reset();
        ++counts_[std::string(name_of(op.command.verb)) + " killed"];
        release(op);
        if (op.write)
            leave_open(*op.lmr, op.write);
        if (op.lmr && op.command.verb == Verb::move)
            --op.lmr->moving;
    }
    forget_handles(worker);
}

void Ledger::send(Worker& worker, const Command& command) {
    worker.since = Clock::now();
    // A dying worker does not read the command; that shows when its connection ends.
    if (!send_all(worker.fd, &command, sizeof(command)) && !worker.doomed)
        throw Divergence(describe_worker(worker) + " cannot be told anything");
}

void Ledger::suspect(const Worker& worker) {
    if (worker.operation)
        suspect_ = lmr_name(*worker.operation);
}

}  // namespace lite_stress
