// SPDX-License-Identifier: MIT
// What main() does in programs without Catch2.
#pragma once

#include <cstdio>
#include <exception>
#include <type_traits>

namespace lite_test {

// Runs @body. Returns the exit status that it returns, or 0 if it returns none; 1 if it throws,
// with the reason on stderr.
int run_main(const char* name, const auto& body) {
    try {
        if constexpr (std::is_void_v<decltype(body())>)
            body();
        else
            return body();
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s: %s\n", name, e.what());
        return 1;
    }
    return 0;
}

}  // namespace lite_test
