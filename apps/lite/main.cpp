// SPDX-License-Identifier: MIT

#include "session.hpp"

int main(int argc, char** argv) {
    return tools::run_main(
        [&] { return tools::run_lite(tools::arguments_of(argc, argv), tools::environment{}); });
}
