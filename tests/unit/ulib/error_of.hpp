// SPDX-License-Identifier: MIT
// What the C++ library throws.
#pragma once

#include <lite/lite.hpp>

#include "catch.hpp"

#include <stdexcept>

// The error that something throws; fails the test if it throws none.
inline lite::error error_of(const auto& body) {
    try {
        body();
    } catch (const lite::error& e) {
        return e;
    }
    FAIL("no lite::error");
    throw std::logic_error("unreachable");
}
