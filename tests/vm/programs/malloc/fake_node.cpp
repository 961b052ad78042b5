// SPDX-License-Identifier: MIT
// In place of liblite in a liblite-arena.so for tests without a node: arenas are shared memory that
// children do not inherit, as the kernel's are. LITE_FAKE_LIMIT: bytes that a process may have.
// LITE_FAKE_NO_COPY: there is no memory for the first copy of a chunk.
#include "cancellation.hpp"

#include <lite/arena.h>
#include <lite/lite.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

int fake;  // what contexts point to

// Bytes of arenas that are mapped. Without malloc(): it is malloc() that asks.
size_t mapped() {
    static char text[1 << 20];
    const int fd = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    for (ssize_t got; (got = ::read(fd, text + length, sizeof(text) - 1 - length)) > 0;)
        length += static_cast<size_t>(got);
    ::close(fd);
    text[length] = 0;
    size_t sum = 0;
    for (char* line = text; line && *line;) {
        char* end = std::strchr(line, '\n');
        if (end)
            *end++ = 0;
        char* dash = nullptr;
        const size_t from = std::strtoul(line, &dash, 16);
        if (std::strstr(line, "lite-arena]"))
            sum += std::strtoul(dash + 1, nullptr, 16) - from;
        line = end;
    }
    return sum;
}

}  // namespace

// In place of the C library's, in this library alone. Only copies of chunks are read and written,
// and reserve nothing.
extern "C" void* mmap(void* addr, size_t length, int prot, int flags, int fd,
                      off_t offset) noexcept {
    static bool refused = false;
    if (prot == (PROT_READ | PROT_WRITE) && flags & MAP_NORESERVE && !refused &&
        std::getenv("LITE_FAKE_NO_COPY")) {
        refused = true;
        errno = ENOMEM;
        return MAP_FAILED;
    }
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<void*>(::syscall(SYS_mmap, addr, length, prot, flags, fd, offset));
}

int lite_open(int, lite_ctx** ctx) noexcept {
    *ctx = reinterpret_cast<lite_ctx*>(&fake);
    return 0;
}

void lite_close(lite_ctx*) noexcept {}

const char* lite_strerror(int err) noexcept { return ::strerrordesc_np(-err); }

int lite_arena_mmap(lite_ctx*, size_t length, uint32_t, void** addr) noexcept {
    static std::mutex one;
    const lite::internal::no_cancellation not_here;
    const std::lock_guard guard(one);
    const char* limit = std::getenv("LITE_FAKE_LIMIT");
    if (limit && mapped() + length > std::strtoull(limit, nullptr, 10))
        return -EDQUOT;
    const int fd = ::memfd_create("[lite-arena]", MFD_CLOEXEC);
    void* at = MAP_FAILED;
    if (fd >= 0 && !::ftruncate(fd, static_cast<off_t>(length)))
        at = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (at == MAP_FAILED)
        return -ENOMEM;
    ::madvise(at, length, MADV_DONTFORK);
    *addr = at;
    return 0;
}
