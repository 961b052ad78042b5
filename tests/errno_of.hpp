// SPDX-License-Identifier: MIT
// How a coroutine of the C++ library fails.
#pragma once

#include <lite/async.hpp>

// The errno of a task that fails, or 0.
template <typename T>
lite::task<int> errno_of(lite::task<T> work) {
    try {
        co_await work;
    } catch (const lite::error& error) {
        co_return error.code().value();
    }
    co_return 0;
}
