// SPDX-License-Identifier: MIT
// The operations in flight, and their results: keeps the model (model.hpp) and judges replies. Does
// not decide what to do.
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
    bool doomed = false;  // it was told to end, and will do so
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
    // Prints the last operations, above all those on the LMR with the error.
    void explain(const std::string& why);

  protected:
    Ledger() = default;
    ~Ledger() = default;

    // Makes a worker begin an operation; returns true.
    bool start(Worker& worker, const Command& command);
    // Handles the worker's reply. Throws Divergence.
    void finish(Worker& worker, const Reply& reply, std::span<const std::byte> data);
    // Handles the end of a worker that has not replied: its handles and anonymous LMRs are gone.
    void abandon(Worker& worker);
    // Drops the worker's handles; anonymous LMRs that only it had are gone.
    void forget_handles(Worker& worker);
    void send(Worker& worker, const Command& command);

    void say(std::string text);
    void suspect(const Worker& worker);
    static std::string describe_worker(const Worker& worker);

    std::vector<Worker> workers_;
    std::map<std::string, LmrPtr> names_;  // all possible names, and their LMRs
    std::set<std::string> busy_names_;     // being given or taken away, or reserved
    std::size_t live_ = 0;                 // LMRs
    unsigned lmrs_ = 0;                    // made so far
    std::uint64_t done_ = 0;               // operations
    std::map<std::string, std::uint64_t> counts_;

  private:
    using Meet = std::function<void(Worker&, Operation&)>;

    void others_on(const LmrPtr& lmr, const Operation& self, const Meet& meet);
    static Acl changed_acl(const Operation& op);
    // Sets the bounds that are known when the operation begins.
    void bound(const Worker& worker, Operation& op);
    // Sets up the other range of @op, as an operation of its own.
    void bound_second(const Worker& worker, Operation& op);
    static std::vector<std::byte> wanted_bytes(const Operation& op);
    static void release(const Operation& op);
    void take_name(Operation& op, const char* name);
    // Adjusts the bounds of operations that are in flight already.
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
    std::string suspect_;  // "L5": the LMR with the error
};

}  // namespace lite_stress
