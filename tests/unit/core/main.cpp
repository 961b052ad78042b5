// SPDX-License-Identifier: MIT
#define CATCH_CONFIG_RUNNER
#include "support.hpp"

#include <cstdio>

int main(int argc, char** argv) {
    std::printf("seed %llu\n", static_cast<unsigned long long>(lite_test::seed()));
    std::fflush(stdout);
    return Catch::Session().run(argc, argv);
}
