// SPDX-License-Identifier: MIT
// Shared by the tests of rights and of changes to LMRs in use.
#pragma once

#include "../common/catch.hpp"
#include "../common/data/pattern.hpp"
#include "../common/data/slots.hpp"
#include "../common/env.hpp"
#include "../common/memory.hpp"
#include "../common/process.hpp"
#include "../common/raw.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lite_test {

inline constexpr std::uint32_t kR = LITE_RIGHT_READ;
inline constexpr std::uint32_t kW = LITE_RIGHT_WRITE;
inline constexpr std::uint32_t kA = LITE_RIGHT_ATOMIC;
inline constexpr std::uint32_t kS = LITE_RIGHT_SHARE;
inline constexpr std::uint32_t kM = LITE_RIGHT_MASTER;
inline constexpr std::uint32_t kRWA = kR | kW | kA;

inline const Identity kRoot{0, 0};
inline const Identity kAlice{1000, 1000};
inline const Identity kBob{1001, 1001};
inline const Identity kCarol{1002, 1002};

// The nodes of this machine, each with an open file. Children use the files as other users. Handles
// stay in the file, so any process that has the file can try them.
struct Change {
    std::vector<Device> nodes;
    const Device& dev;

    Change() : nodes(open_all()), dev(nodes.front()) { wait_until_unused(dev); }

    static std::vector<Device> open_all() {
        std::vector<Device> all;
        for (const auto index : env().indexes)
            all.emplace_back(index);
        return all;
    }

    const Device& node(std::size_t i) const { return nodes[i % nodes.size()]; }
    std::uint32_t id(std::size_t i) const { return node(i).query().node_id; }

    // Whether all members are in this machine.
    bool all_here() const { return env().indexes.size() == env().remote.size() + 1; }

    // Memory that the nodes of this machine give to LMRs.
    std::uint64_t used() const {
        std::uint64_t sum = 0;
        for (const auto& each : nodes)
            sum += each.query().mem_used;
        return sum;
    }
};

// With an LMR at home at one node, this one or another.
struct ChangeSingle : Change {
    Placement where = GENERATE(filter([](const Placement& p) { return p.nodes.size() == 1; },
                                      from_range(env().placements())));
};

// With an LMR in every kind of place.
struct ChangeEverywhere : Change {
    Placement where = GENERATE(from_range(env().placements()));
};

// With an LMR in some kinds of place: for storms.
struct ChangeSomewhere : Change {
    Placement where = GENERATE(from_range(env().some_placements(test_name())));
};

inline SlotPlan slots_for(std::size_t users, std::uint64_t more) {
    SlotPlan plan;
    plan.users = users;
    plan.length = slots_least(users) + more;
    plan.seed = env().seed;
    return plan;
}

// Processes on all nodes of this machine that use the slots of an LMR until they are stopped.
class SlotUsers {
  public:
    SlotUsers(const std::string& name, const SlotPlan& plan) {
        for (std::size_t i = 0; i < plan.users; ++i) {
            add([&name, plan, i](SlotUsers& all) {
                const Device own(env().indexes[i % env().indexes.size()]);
                SlotUser user(own, own.map(name), plan, i);
                user.step();
                all.begun();
                while (!all.over())
                    user.step();
                user.verify();
                *all.counted_ += user.counted();
            });
        }
    }

    // One more process. It must call begun(), and end soon after over() is true.
    void add(const std::function<void(SlotUsers&)>& body) {
        children_.emplace_back([this, body] { body(*this); });
    }
    void begun() { running_->post(); }
    bool over() { return *over_; }
    void await_start() {
        for (std::size_t i = 0; i < children_.size(); ++i)
            running_->wait("the users");
    }

    // Throws Failure if one of them has failed; else returns how often they have counted.
    std::uint64_t stop() {
        *over_ = true;
        for (auto& child : children_)
            child.join();
        return *counted_;
    }

  private:
    Shared<Signal> running_;
    Shared<std::atomic<bool>> over_;
    Shared<std::atomic<std::uint64_t>> counted_;
    std::vector<Child> children_;
};

constexpr std::uint64_t whole_pages(std::uint64_t bytes) {
    return (bytes + kPage - 1) / kPage * kPage;
}

// The result of @call as the user @who.
template <typename Call>
Errno call_as(const Identity& who, Call call) {
    Shared<std::atomic<int>> result;
    as_user(who, [&] { *result = call().value; });
    return err(*result);
}

// A handle that @who opens. It belongs to the file, which the parent has, too.
inline std::uint64_t map_as(const Identity& who, const Device& dev, const std::string& name,
                            std::uint32_t rights) {
    Shared<std::atomic<std::uint64_t>> lh;
    as_user(who, [&] { *lh = dev.map(name, rights); });
    return *lh;
}

inline Errno try_map_as(const Identity& who, const Device& dev, const std::string& name,
                        std::uint32_t rights) {
    return call_as(who, [&] {
        auto args = map_args(name, rights);
        const auto e = dev(args);
        if (e == ok)
            dev.unmap(args.lh);
        return e;
    });
}

// Operations succeed or fail as @rights say.
inline void expect_rights(const Device& dev, std::uint64_t lh, std::uint32_t rights) {
    std::array<std::byte, 8> buf{};
    const auto wanted = [&](std::uint32_t right) { return rights & right ? ok : err(EACCES); };
    expect_equal(dev(read_args(lh, 0, buf.data(), 8)), wanted(kR), "read");
    expect_equal(dev(write_args(lh, 0, buf.data(), 8)), wanted(kW), "write");
    expect_equal(dev(fetch_add_args(lh, 0, 0)), wanted(kA), "fetch-add");
}

// The result for a user without MASTER: by name, or through a handle without MASTER.
inline bool is_refusal(const Errno& e) { return e == err(EPERM) || e == err(EACCES); }

}  // namespace lite_test
