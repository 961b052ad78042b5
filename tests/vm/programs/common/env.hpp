// SPDX-License-Identifier: MIT
// What a test program is told about the cluster it runs in, through the environment:
//
//   LITE_TEST_INDEXES   the N of the /dev/liteN of this machine that are members: "0,1,2";
//                       default "0"
//   LITE_TEST_REMOTE    ids of the members other than /dev/lite<first index>: "2,3"; default: those
//                       of the other indexes
//   LITE_TEST_SCALE     factor for counts and volumes; default 1
//   LITE_TEST_SLOWNESS  factor for time limits, as debug kernels are slow; default 1
//   LITE_TEST_SEED      seed of everything random; default: a fixed one. Programs print it.
//   LITE_TEST_TIMEOUT   seconds that one test case may take; default 120
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lite_test {

// The places of an LMR's memory, as the array of node ids that LITE_IOC_ALLOC takes.
struct Placement {
    std::string label;
    std::vector<std::uint32_t> nodes;
};

struct Env {
    std::vector<unsigned> indexes;
    std::vector<std::uint32_t> remote;
    double scale = 1.0;
    int slowness = 1;
    std::uint64_t seed = 0;
    unsigned timeout_s = 0;

    std::uint32_t self = 0;  // id of the node behind the first index; 0 while it is in no cluster

    // The first remote member. Without one the program fails instead of skipping the test: the test
    // was started in the wrong place.
    std::uint32_t peer() const;

    // @count at full scale, and never less than @least.
    std::size_t scaled(std::size_t count, std::size_t least = 1) const;

    // Local, remote, and spread over each possible number of nodes, starting at this node and
    // starting elsewhere.
    std::vector<Placement> placements() const;

    // Whether what is the same in many places need not be tested in each. Debug kernels do little
    // of everything, but everywhere.
    bool in_few_places() const { return scale < 1 && slowness == 1; }

    // All placements, or in few places two, one node and several, by the seed and the test: for
    // storms that are the same everywhere.
    std::vector<Placement> some_placements(const std::string& test) const;
};

// Reads the environment once; throws std::runtime_error if it is invalid.
const Env& env();

// A name that no other test, process or node uses.
std::string unique_name(const std::string& stem);

}  // namespace lite_test
