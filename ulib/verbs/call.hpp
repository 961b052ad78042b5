// SPDX-License-Identifier: MIT
//
// What the program calls.
#pragma once

#include "../cancellation.hpp"

#include <cerrno>
#include <new>
#include <utility>

namespace lite::verbs {

// Runs the body of a function that a C program calls. Where it would throw for want of memory it
// returns @failure, with errno ENOMEM. A cancelled thread ends in a later function: here it would
// leave work half done, completions that it has taken from the device included.
template <typename T, typename F>
T call(T failure, F&& body) {
    const lite::internal::no_cancellation guard;
    try {
        return std::forward<F>(body)();
    } catch (const std::bad_alloc&) {
        errno = ENOMEM;
        return failure;
    }
}

}  // namespace lite::verbs
