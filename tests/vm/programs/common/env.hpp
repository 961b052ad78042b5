// SPDX-License-Identifier: MIT
// What a test program is told about the cluster it runs in, through the environment:
//
//   LITE_TEST_INDEXES   the N of the /dev/liteN of this machine that are members: "0,1,2";
//                       default "0"
//   LITE_TEST_REMOTE    ids of the members other than /dev/lite<first index>: "2,3"; default: those
//                       of the other indexes
//   LITE_TEST_SCALE     factor for counts and volumes; default 1
//   LITE_TEST_SLOWNESS  factor for what may take its time, since debug kernels are slow; default 1
//   LITE_TEST_SEED      seed of everything random; default: a fixed one. Programs print it.
//   LITE_TEST_TIMEOUT   seconds that one test case may take; default 120
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lite_test {

// Where an LMR's memory is, as the array of node ids that LITE_IOC_ALLOC takes.
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

    // The first remote member. Fails the program, not skips: a test that needs one was started in
    // the wrong place.
    std::uint32_t peer() const;

    // @count at full scale, at least @least at any.
    std::size_t scaled(std::size_t count, std::size_t least = 1) const;

    // Local, remote, and spread over every subset size that the cluster has, starting here and
    // starting elsewhere.
    std::vector<Placement> placements() const;
};

// Read once; throws std::runtime_error on nonsense.
const Env& env();

// A name that no other test, process or node uses.
std::string unique_name(const std::string& stem);

}  // namespace lite_test
