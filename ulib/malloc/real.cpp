// SPDX-License-Identifier: MIT
#include "real.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include <dlfcn.h>
#include <unistd.h>

namespace lite::large {

constinit real_functions real = {};

namespace {

// What dlsym() allocates, in some C libraries, before there is an allocator.
namespace early {

alignas(64) constinit std::byte memory[8192];
constinit size_t used = 0;
constinit decltype(&::free) later = nullptr;

bool has(const void* p) { return p >= memory && p < memory + sizeof(memory); }

void* malloc(size_t size) noexcept {
    if (size > sizeof(memory) - used)
        std::abort();
    void* p = memory + used;
    used = std::min(sizeof(memory), (used + size + 15) & ~size_t{15});
    return p;
}

void* calloc(size_t n, size_t size) noexcept { return malloc(n * size); }

void* realloc(void* p, size_t size) noexcept {
    void* fresh = malloc(size);
    if (p)
        std::memmove(fresh, p, size);  // both are in the array
    return fresh;
}

void free(void* p) noexcept {
    if (!has(p) && later)
        later(p);
}

}  // namespace early

template <typename F>
void find(F& function, const char* name) {
    void* found = ::dlsym(RTLD_NEXT, name);
    if (!found) {
        constexpr char text[] = "liblite-arena: no malloc found behind this library\n";
        [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, sizeof(text) - 1);
        std::abort();
    }
    function = reinterpret_cast<F>(found);
}

}  // namespace

void find_real() noexcept {
    real.malloc = early::malloc;
    real.calloc = early::calloc;
    real.realloc = early::realloc;
    real.free = early::free;
    real_functions r = {};
    find(r.malloc, "malloc");
    find(r.calloc, "calloc");
    find(r.realloc, "realloc");
    find(r.free, "free");
    find(r.aligned_alloc, "aligned_alloc");
    find(r.posix_memalign, "posix_memalign");
    find(r.memalign, "memalign");
    find(r.valloc, "valloc");
    find(r.pvalloc, "pvalloc");
    find(r.malloc_usable_size, "malloc_usable_size");
    if (early::used) {
        early::later = r.free;
        r.free = early::free;
    }
    real = r;
}

}  // namespace lite::large

// NOLINTBEGIN(misc-new-delete-overloads): what this library does not use is missing
void* operator new(std::size_t size) {
    if (void* p = lite::large::real.malloc(size))
        return p;
    throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return lite::large::real.malloc(size);
}
void operator delete(void* p) noexcept { lite::large::real.free(p); }
void operator delete(void* p, std::size_t) noexcept { lite::large::real.free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { lite::large::real.free(p); }
// NOLINTEND(misc-new-delete-overloads)
