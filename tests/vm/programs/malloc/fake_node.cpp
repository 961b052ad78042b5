// SPDX-License-Identifier: MIT
// In place of liblite in a liblite-arena.so for tests without a node: arenas are shared memory that
// children do not inherit, as the kernel's are. It also checks what liblite-arena.so does.
//
//   LITE_FAKE_LIMIT    bytes that a process may have
//   LITE_FAKE_ASKED    a file, which gets a byte for each arena that is asked for
//   LITE_FAKE_NO_COPY  there is no memory for the first copy of a chunk
//   LITE_FAKE_NO_MOVE  the first child cannot move its copies
//   LITE_FAKE_NO_READ  process_vm_readv(2) is forbidden
#include "cancellation.hpp"
#include "context.hpp"

#include <lite/arena.h>
#include <lite/lite.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

int fake;  // what contexts point to

// Of chunks, for children.
int copies = 0;

// A child made by fork(2) need not tell anything.
const pid_t first_process = ::getpid();
// What madvise(2) has thrown out last.
void* thrown_out = nullptr;
size_t thrown_out_size = 0;

[[noreturn]] void fail(const char* what) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, what, std::strlen(what));
    std::abort();
}

void count_request() {
    const char* path = std::getenv("LITE_FAKE_ASKED");
    if (!path)
        return;
    const int fd = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (::write(fd, "x", 1) != 1)
        fail("LITE_FAKE_ASKED cannot be written\n");
    ::close(fd);
}

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

// In place of the C library's, in this library alone.
extern "C" {

void* mmap(void* addr, size_t length, int prot, int flags, int fd, off_t offset) noexcept {
    // Only copies of chunks are read and written, and reserve nothing.
    if (prot == (PROT_READ | PROT_WRITE) && flags & MAP_NORESERVE && ++copies == 1 &&
        std::getenv("LITE_FAKE_NO_COPY")) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    if (flags & MAP_FIXED && ::getpid() == first_process &&
        (addr != thrown_out || length != thrown_out_size))
        fail("no madvise(2) before mmap(2): caches of registrations keep the old pages\n");
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<void*>(::syscall(SYS_mmap, addr, length, prot, flags, fd, offset));
}

int madvise(void* addr, size_t length, int advice) noexcept {
    if (advice == MADV_DONTNEED) {
        thrown_out = addr;
        thrown_out_size = length;
    }
    return static_cast<int>(::syscall(SYS_madvise, addr, length, advice));
}

void* mremap(void* addr, size_t old, size_t length, int flags, ...) noexcept {
    va_list more;
    va_start(more, flags);
    void* to = va_arg(more, void*);
    va_end(more);
    if (copies == 1 && std::getenv("LITE_FAKE_NO_MOVE")) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<void*>(::syscall(SYS_mremap, addr, old, length, flags, to));
}

// Called while a thread that forks holds the locks of the heap.
ssize_t process_vm_readv(pid_t pid, const iovec* to, unsigned long n_to, const iovec* from,
                         unsigned long n_from, unsigned long flags) noexcept {
    sigset_t blocked;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    if (!::sigismember(&blocked, SIGUSR1))
        fail("a handler of signals could allocate while the heap is locked\n");
    if (std::getenv("LITE_FAKE_NO_READ")) {
        errno = EPERM;
        return -1;
    }
    return ::syscall(SYS_process_vm_readv, pid, to, n_to, from, n_from, flags);
}
}

// LITE_INDEX must be that of mallocs_test.sh.
int lite::internal::node_index(int index) noexcept {
    if (index != -1)
        return index;
    const char* text = std::getenv("LITE_INDEX");
    return text ? std::atoi(text) : 0;
}

int lite_open(int index, lite_ctx** ctx) noexcept {
    if (lite::internal::node_index(index) != 1048575)
        return -ENODEV;
    *ctx = reinterpret_cast<lite_ctx*>(&fake);
    return 0;
}

void lite_close(lite_ctx*) noexcept {}

const char* lite_strerror(int err) noexcept { return ::strerrordesc_np(-err); }

int lite_arena_mmap(lite_ctx*, size_t length, uint32_t, void** addr) noexcept {
    static std::mutex one;
    const lite::internal::no_cancellation not_here;
    const std::lock_guard guard(one);
    count_request();
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
