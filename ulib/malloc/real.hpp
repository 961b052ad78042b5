// SPDX-License-Identifier: MIT
//
// The allocator behind this library: the next one that the program has, usually the C library's.
#pragma once

#include <cstddef>
#include <cstdlib>

#include <malloc.h>

namespace lite::large {

struct real_functions {
    decltype(&::malloc) malloc;
    decltype(&::calloc) calloc;
    decltype(&::realloc) realloc;
    decltype(&::free) free;
    decltype(&::aligned_alloc) aligned_alloc;
    decltype(&::posix_memalign) posix_memalign;
    decltype(&::memalign) memalign;
    decltype(&::valloc) valloc;
    decltype(&::pvalloc) pvalloc;
    decltype(&::malloc_usable_size) malloc_usable_size;
};

// All are null until find_real() is called. This library's own operator new uses them: the
// program may have replaced the usual one, and hold a lock of it while it calls malloc().
extern real_functions real;

// To be called once, while the process has one thread; it may call malloc() and free(). Ends the
// process if a function is missing.
void find_real() noexcept;

}  // namespace lite::large
