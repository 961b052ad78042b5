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

    // The @n-th one from here on fails.
    void arm(unsigned n);

    // Whether the failure has been injected; none will be from here on.
    bool disarm();

  private:
    void put(unsigned n);

    int fd_;
};

struct Attempt {
    std::string label;
    std::function<Errno()> call;
    // After @call, with what it returned: checks that nothing is left of a failed attempt and makes
    // everything ready for the next one; throws Failure.
    std::function<void(Errno)> restore;
    // Makes everything ready for the first one.
    std::function<void()> prepare = [] {};
};

// All faults of a call, one after the other, until it succeeds because it makes no more; or, if it
// makes more than
// @samples, so many of them, evenly spread. Throws Failure at what an error path has done wrong.
void sweep(FailNth& faults, const Attempt& attempt, unsigned samples);

// All calls of /dev/liteN, on LMRs in every place that the cluster has.
void sweep_ioctls(FailNth& faults, unsigned samples);

// Those of functions and calls, of this node and another one of this machine.
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
