// SPDX-License-Identifier: MIT
//
// Functions that the program calls: no exceptions, no cancellation.
#pragma once

#include "../cancellation.hpp"

#include <cerrno>
#include <new>
#include <utility>

namespace lite::verbs {

// Runs the body of a function that a C program calls. If memory runs out, it returns @failure with
// errno ENOMEM. A cancelled thread ends only in a later function: here it would leave work half
// done, for example lose completions that it has taken from the device.
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
