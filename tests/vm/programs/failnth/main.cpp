// SPDX-License-Identifier: MIT
// Makes the first, the second, the third ... allocation or user copy of a call fail, until the call
// succeeds because it makes fewer: so every error path is taken. After each failure nothing may be
// left of the attempt, and the same call must work. The calling test checks the kernel's messages
// and leaks.
#include "../common/run_main.hpp"
#include "faults.hpp"

#include <CLI/CLI.hpp>

int main(int argc, char** argv) {
    CLI::App app("Takes every error path of LITE's calls by fault injection.");
    unsigned samples = 1000;
    lite_test::NodeAddress address;
    app.add_option("--samples", samples, "at most so many faults per call, evenly spread");
    app.add_subcommand("ioctls", "the calls of /dev/liteN");
    CLI::App* rpc = app.add_subcommand("rpc", "those of functions");
    CLI::App* membership =
        app.add_subcommand("membership", "start, join, leave and stop of a node of its own");
    membership->add_option("device", address.device, "RDMA device")->required();
    membership->add_option("own", address.own, "IPv4 address of the node")->required();
    membership
        ->add_option("member", address.member, "IPv4 address of a member of the cluster to join")
        ->required();
    membership->add_option("--secret-file", address.secret_file, "with the cluster's secret");
    app.require_subcommand(1);
    CLI11_PARSE(app, argc, argv);
    return lite_test::run_main("failnth", [&] {
        lite_test::FailNth faults;
        if (*membership)
            lite_test::sweep_membership(faults, address, samples);
        else if (*rpc)
            lite_test::sweep_rpc(faults, samples);
        else
            lite_test::sweep_ioctls(faults, samples);
    });
}
