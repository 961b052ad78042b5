// SPDX-License-Identifier: MIT
// Failures of the n-th allocation or user copy that the kernel makes for this thread:
// /proc/self/fail-nth.
#pragma once

#include "../common/raw.hpp"

#include <functional>
#include <string>
#include <vector>

namespace lite_test {

class FailNth {
  public:
    FailNth();
    ~FailNth();
    FailNth(const FailNth&) = delete;
    FailNth& operator=(const FailNth&) = delete;

    // The @n-th allocation or copy from here on fails.
    void arm(unsigned n);

    // Returns whether the failure was injected; no failure is injected from here on.
    bool disarm();

  private:
    void put(unsigned n);

    int fd_;
};

struct Attempt {
    std::string label;
    std::function<Errno()> call;
    // Called after @call, with the result of @call: checks that nothing is left of a failed
    // attempt, and prepares the next one; throws Failure.
    std::function<void(Errno)> restore;
    // Prepares the first attempt.
    std::function<void()> prepare = [] {};
};

// Injects each fault of a call, one after the other, until the call succeeds because it makes fewer
// allocations and copies. If it makes more than @samples, only so many of them fail, evenly spread.
// Throws Failure if an error path does something wrong.
void sweep(FailNth& faults, const Attempt& attempt, unsigned samples);

// All calls of /dev/liteN, on LMRs in every kind of place.
void sweep_ioctls(FailNth& faults, unsigned samples);

// Calls about functions and remote calls, of this node and another one of this machine.
void sweep_rpc(FailNth& faults, unsigned samples);

// Starting, joining, leaving and stopping a node, through netlink.
struct NodeAddress {
    std::string device;
    std::string own;
    std::string member;  // of the cluster to join
    std::string secret_file = "/etc/lite/secret";
};
void sweep_membership(FailNth& faults, const NodeAddress& address, unsigned samples);

}  // namespace lite_test
