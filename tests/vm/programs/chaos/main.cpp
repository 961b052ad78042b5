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
#include "../common/arguments.hpp"
#include "../common/run_main.hpp"
#include "caller.hpp"
#include "server.hpp"

#include <climits>

int main(int argc, char** argv) {
    lite_test::Arguments line("Calls at random to servers that come and go.");
    lite_chaos::ServerOptions server;
    lite_chaos::CallerOptions caller;
    auto serve = line.command("serve", "until standard input ends");
    auto call = line.command("call", "so many calls");
    const auto common = [](lite_test::Command& sub, auto& options) {
        sub.option("--index", &options.index, "the N of /dev/liteN");
        sub.required("--books", &options.books, "a directory");
        sub.option("--seed", &options.seed);
        sub.option("--slowness", &options.slowness, "factor for times");
        sub.range("--calm", &options.calm, 1, UINT_MAX,
                  "how seldom processes are killed, and calls long");
    };
    common(serve, server);
    common(call, caller);
    call.required("--nodes", &caller.nodes, "nodes to call");
    call.option("--calls", &caller.calls);
    call.flag("--kernel", caller.kernel, "functions of kcalls, too");
    line.parse(argc, argv);
    return lite_test::run_main("calls_chaos", [&] {
        return serve ? lite_chaos::serve(server) : lite_chaos::call(caller);
    });
}
