// SPDX-License-Identifier: MIT
// Random operations of all kinds, by many workers, on all nodes, against a model that knows the
// possible results.
//
//   stress coordinate --port P --workers N   decides the operations of all workers, and checks the
//                                            results (model.hpp)
//   stress work --connect HOST:PORT          on each node: carries them out
//
// Takes its seed from LITE_TEST_SEED (env.hpp) and prints it. Decisions depend on the seed, and on
// the order in which operations end: a run with the same seed has the same kinds of operations, not
// the same operations.
#include "../common/run_main.hpp"
#include "protocol.hpp"

#include <CLI/CLI.hpp>

#include <string>

namespace {

lite_stress::Address parse(const std::string& text) {
    const auto colon = text.find(':');
    if (colon == std::string::npos)
        throw std::runtime_error("not HOST:PORT: " + text);
    return {text.substr(0, colon), static_cast<std::uint16_t>(std::stoul(text.substr(colon + 1)))};
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Random operations on LMRs by many processes, against a model.");
    lite_stress::CoordinatorOptions coordinator;
    lite_stress::WorkerOptions worker;
    std::string connect;
    auto* coordinate = app.add_subcommand("coordinate", "decides and checks");
    coordinate->add_option("--port", coordinator.port);
    coordinate->add_option("--workers", coordinator.workers, "how many to wait for");
    coordinate->add_option("--operations", coordinator.operations);
    coordinate->add_option("--seconds", coordinator.seconds, "go on so long instead");
    coordinate->add_option("--check-every", coordinator.check_every,
                           "operations between two looks at everything");
    coordinate->add_option("--patience", coordinator.patience_s,
                           "seconds that an operation may take");
    auto* work = app.add_subcommand("work", "does what it is told");
    work->add_option("--connect", connect, "HOST:PORT of the coordinator")->required();
    work->add_option("--index", worker.index, "the N of /dev/liteN");
    work->add_option("--count", worker.count, "how many processes");
    app.require_subcommand(1);
    CLI11_PARSE(app, argc, argv);
    return lite_test::run_main("stress", [&] {
        if (*coordinate)
            return lite_stress::coordinate(coordinator);
        worker.coordinator = parse(connect);
        return lite_stress::work(worker);
    });
}
