// SPDX-License-Identifier: MIT
// Calls at random to servers that crash, hang, let go and come back, by callers that are killed.
//
//   calls_chaos serve --index I --books DIR --seed S
//   calls_chaos call --index I --nodes 1,2,3 --books DIR --seed S --calls N
//
// Both for each node. What a server takes it writes into DIR/served, before it answers; how a call
// has ended is in DIR/ended; both are lines of an id, a node (whose function it was) and what
// (order.hpp). Whether they agree is for the test to see, when it has those of all nodes. What can
// be seen of a single call is seen here: see Plan::judge().
//
// A number and the seed say what call it is. Who is killed, and when, depends on time.
#include "caller.hpp"
#include "server.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>

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
    call->add_option("--nodes", caller.nodes, "whom to call")->delimiter(',')->required();
    call->add_option("--calls", caller.calls);
    call->add_flag("--kernel", caller.kernel, "functions of kcalls, too");
    app.require_subcommand(1);
    CLI11_PARSE(app, argc, argv);
    try {
        return *serve ? lite_chaos::serve(server) : lite_chaos::call(caller);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "calls_chaos: %s\n", e.what());
        return 1;
    }
}
