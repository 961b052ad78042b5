// SPDX-License-Identifier: MIT
// One of several users of an LMR, on any machine (see common/data/slots.hpp): uses the LMR until a
// line comes on standard input, then verifies its part and prints how often it has counted. If an
// operation fails, prints its errno as the last word, and ends.
#include "common/data/slots.hpp"
#include "common/arguments.hpp"
#include "common/process.hpp"

#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <system_error>

using namespace lite_test;

namespace {

struct Options {
    unsigned index = 0;
    std::string name;
    std::uint64_t length = 0;
    std::size_t users = 1;
    std::size_t number = 0;
    std::uint64_t seed = 1;
};

void announce(const std::string& text) {
    std::puts(text.c_str());
    std::fflush(stdout);
}

bool told_to_stop() {
    pollfd in{STDIN_FILENO, POLLIN, 0};
    return ::poll(&in, 1, 0) != 0;
}

void use(const Options& options) {
    const Device dev(options.index);
    SlotUser user(dev, dev.map(options.name), {options.length, options.users, options.seed},
                  options.number);
    user.step();
    announce("running");
    while (!told_to_stop())
        user.step();
    user.verify();
    announce("counted " + std::to_string(user.counted()));
}

}  // namespace

int main(int argc, char** argv) {
    lite_test::Arguments line("A user of an LMR, one of several that know what must be in it.");
    Options options;
    line.option("--index", &options.index, "the N of /dev/liteN");
    line.required("name", &options.name, "the LMR, zero in the beginning");
    line.required("--length", &options.length, "how much of it is used");
    line.required("--users", &options.users, "how many there are");
    line.required("--number", &options.number, "which of them this is");
    line.option("--seed", &options.seed);
    line.parse(argc, argv);
    try {
        use(options);
    } catch (const std::system_error& e) {
        std::fprintf(stderr, "slots: %s\n", e.what());
        announce(strerrorname_np(e.code().value()));
        return 1;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "slots: %s\n", e.what());
        announce("DIVERGED");
        return 2;
    }
    return 0;
}
