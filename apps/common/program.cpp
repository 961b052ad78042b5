// SPDX-License-Identifier: MIT

#include "program.hpp"

#include "io.hpp"
#include "signals.hpp"

namespace tools {

arguments arguments_of(int argc, char** argv) {
    return argc > 0 ? arguments(argv + 1, argv + argc) : arguments();
}

int run_main(const std::function<int()>& body) noexcept {
    reserve_standard_streams();
    try {
        return body();
    } catch (const interrupted& e) {
        die_of(e.signal);
    }
}

}  // namespace tools
