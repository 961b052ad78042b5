// SPDX-License-Identifier: MIT
#include "catch_session.hpp"
#include "support.hpp"

#include <cstdio>

int main(int argc, char** argv) {
    std::printf("seed %llu\n", static_cast<unsigned long long>(lite_test::seed()));
    std::fflush(stdout);
    return catch_session(argc, argv);
}
