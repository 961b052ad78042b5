// SPDX-License-Identifier: MIT
// Makes the first, the second, the third ... allocation or user copy of a call fail, until the call
// succeeds because it makes fewer: so every error path is taken. After each failure nothing may be
// left of the attempt, and the same call must work. The calling test checks the kernel's messages
// and leaks.
#include "../common/arguments.hpp"
#include "../common/run_main.hpp"
#include "faults.hpp"

int main(int argc, char** argv) {
    lite_test::Arguments line("Takes every error path of LITE's calls by fault injection.");
    unsigned samples = 1000;
    lite_test::NodeAddress address;
    line.option("--samples", &samples, "at most so many faults per call, evenly spread");
    line.command("ioctls", "the calls of /dev/liteN");
    auto rpc = line.command("rpc", "those of functions");
    auto membership =
        line.command("membership", "start, join, leave and stop of a node of its own");
    membership.required("device", &address.device, "RDMA device");
    membership.required("own", &address.own, "IPv4 address of the node");
    membership.required("member", &address.member,
                        "IPv4 address of a member of the cluster to join");
    membership.option("--secret-file", &address.secret_file, "with the cluster's secret");
    line.parse(argc, argv);
    return lite_test::run_main("failnth", [&] {
        lite_test::FailNth faults;
        if (membership)
            lite_test::sweep_membership(faults, address, samples);
        else if (rpc)
            lite_test::sweep_rpc(faults, samples);
        else
            lite_test::sweep_ioctls(faults, samples);
    });
}
