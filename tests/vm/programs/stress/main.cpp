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
#include "../common/arguments.hpp"
#include "../common/run_main.hpp"
#include "protocol.hpp"

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
    lite_test::Arguments line("Random operations on LMRs by many processes, against a model.");
    lite_stress::CoordinatorOptions coordinator;
    lite_stress::WorkerOptions worker;
    std::string connect;
    auto coordinate = line.command("coordinate", "decides and checks");
    coordinate.option("--port", &coordinator.port);
    coordinate.option("--workers", &coordinator.workers, "how many to wait for");
    coordinate.option("--operations", &coordinator.operations);
    coordinate.option("--seconds", &coordinator.seconds, "go on so long instead");
    coordinate.option("--check-every", &coordinator.check_every,
                      "operations between two looks at everything");
    coordinate.option("--patience", &coordinator.patience_s, "seconds that an operation may take");
    auto work = line.command("work", "does what it is told");
    work.required("--connect", &connect, "HOST:PORT of the coordinator");
    work.option("--index", &worker.index, "the N of /dev/liteN");
    work.option("--count", &worker.count, "how many processes");
    line.parse(argc, argv);
    return lite_test::run_main("stress", [&] {
        if (coordinate)
            return lite_stress::coordinate(coordinator);
        worker.coordinator = parse(connect);
        return lite_stress::work(worker);
    });
}
