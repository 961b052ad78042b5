// SPDX-License-Identifier: MIT
// Catch2, in the version that this distribution has (Debian 12 has 2, newer ones have 3).
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <string>

namespace lite_test {

inline std::string test_name() {
    return std::string(Catch::getResultCapture().getCurrentTestName());
}

}  // namespace lite_test
