// SPDX-License-Identifier: MIT
// What the C++ library throws, as an errno.
#pragma once

#include <lite/lite.hpp>

// The errno of the lite::error that something throws, or 0.
int code_of(const auto& body) {
    try {
        body();
    } catch (const lite::error& error) {
        return error.code().value();
    }
    return 0;
}
