// SPDX-License-Identifier: MIT
// Random calls to servers that crash, hang, unregister and come back, from callers that are killed.
//
//   calls_chaos serve --index I --books DIR --seed S
//   calls_chaos call --index I --nodes 1,2,3 --books DIR --seed S --calls N
//
// Both run for each node. A server writes each request that it takes into DIR/served before it
// answers; the end of each call is in DIR/ended. Both files hold lines of an id, the node that has
// the function, and what happened (order.hpp). The test checks whether they agree, with the files
// of all nodes. What a single call shows is checked here: see Plan::judge().
//
// The number and the seed determine a call. Which process is killed, and when, depends on time.
#include "../common/run_main.hpp"
#include "caller.hpp"
#include "server.hpp"

#include <CLI/CLI.hpp>

int main(int argc, char** argv) {
    CLI::App app("Calls at random to servers that come and go.");
    lite_chaos::ServerOptions server;
    lite_chaos::CallerOptions caller;
    auto* serve = app.add_subcommand("serve", "until standard input ends");
    auto* call = app.add_subcommand("call", "so many calls");
    const auto common = [](CLI::App* sub, auto& options) {
        sub->add_option("--index", options.index, "the N of /dev/liteN");
        sub->add_option("--books", options.books, "a directory")->required();
        sub->add_option("--seed", options.seed);
        sub->add_option("--slowness", options.slowness, "factor for times");
        sub->add_option("--calm", options.calm, "how seldom processes are killed, and calls long")
            ->check(CLI::PositiveNumber);
    };
    common(serve, server);
    common(call, caller);
    call->add_option("--nodes", caller.nodes, "nodes to call")->delimiter(',')->required();
    call->add_option("--calls", caller.calls);
    call->add_flag("--kernel", caller.kernel, "functions of kcalls, too");
    app.require_subcommand(1);
    CLI11_PARSE(app, argc, argv);
    return lite_test::run_main("calls_chaos", [&] {
        return *serve ? lite_chaos::serve(server) : lite_chaos::call(caller);
    });
}
