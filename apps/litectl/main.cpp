// SPDX-License-Identifier: MIT

#include "administration.hpp"

int main(int argc, char** argv) {
    return tools::run_main(
        [&] { return tools::run_litectl(tools::arguments_of(argc, argv), tools::surroundings{}); });
}
