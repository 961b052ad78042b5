// SPDX-License-Identifier: MIT
// Which operations are under way, and what comes of them: keeps the model (model.hpp) and judges
// what comes back. Does not say what is to be done.
#pragma once

#include "model.hpp"

#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace lite_stress {

using Clock = std::chrono::steady_clock;

struct Divergence : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Worker {
    unsigned number = 0;
    int fd = -1;
    Person who;
    std::map<std::uint64_t, Handle> handles;
    std::optional<Operation> operation;
    Clock::time_point since;
    bool doomed = false;  // it ends, sooner or later, as it was told
};

template <std::size_t N>
void set_name(char (&field)[N], const std::string& name) {
    if (name.size() >= N)
        throw std::logic_error("a name that is too long");
    std::memset(field, 0, N);
    std::memcpy(field, name.data(), name.size());
}

class Ledger {
  public:
    // The last that was done, above all to the LMR with which something is wrong.
    void explain(const std::string& why);

  protected:
    Ledger() = default;
    ~Ledger() = default;

    // Has a worker begin with something; true.
    bool start(Worker& worker, const Command& command);
    // It has answered. Throws Divergence.
    void finish(Worker& worker, const Reply& reply, std::span<const std::byte> data);
    // It will not answer any more: it is gone, and all that only it had.
    void abandon(Worker& worker);
    // What only it had is nobody's.
    void forget_handles(Worker& worker);
    void send(Worker& worker, const Command& command);

    void say(std::string text);
    void suspect(const Worker& worker);
    static std::string describe_worker(const Worker& worker);

    std::vector<Worker> workers_;
    std::map<std::string, LmrPtr> names_;  // all there can be, and whose they are
    std::set<std::string> busy_names_;     // being given or taken away, or wanted to stay taken
    std::size_t live_ = 0;                 // LMRs
    unsigned lmrs_ = 0;                    // that there have ever been
    std::uint64_t done_ = 0;               // operations
    std::map<std::string, std::uint64_t> counts_;

  private:
    using Meet = std::function<void(Worker&, Operation&)>;

    void others_on(const LmrPtr& lmr, const Operation& self, const Meet& meet);
    static Acl changed_acl(const Operation& op);
    // What it can meet from the beginning.
    void bound(const Worker& worker, Operation& op);
    // The other range of @op, as an operation of its own.
    void bound_second(const Worker& worker, Operation& op);
    static std::vector<std::byte> wanted_bytes(const Operation& op);
    static void release(const Operation& op);
    void take_name(Operation& op, const char* name);
    // What others, who are at it already, can meet from now on.
    void announce(Operation& op);
    void begin_write(Operation& op);

    void conclude(Worker& worker, Operation& op, const Reply& reply,
                  std::span<const std::byte> data);
    void end_alloc(Worker& worker, const Operation& op, const Reply& reply);
    void open_handle(Worker& worker, const Operation& op, std::uint64_t lh);
    // An anonymous LMR goes with the last handle of its maker.
    void close_handle(Worker& worker, std::uint64_t lh);
    void bury(Lmr& lmr);
    void end_free(Worker& worker, const Operation& op, bool good);
    void end_acl(const Operation& op, bool good);
    void end_rename(const Operation& op, bool good);
    void end_write(const Operation& op, const Reply& reply);
    void leave_open(Lmr& lmr, const WritePtr& write);
    static void end_peek(const Operation& op, bool good, std::span<const std::byte> data);

    static std::string lmr_name(const Operation& op);
    static std::string describe(const Worker& worker, const Operation& op);

    std::uint64_t started_ = 0;
    std::deque<std::string> log_;
    std::string suspect_;  // "L5": with which something is wrong
};

}  // namespace lite_stress
