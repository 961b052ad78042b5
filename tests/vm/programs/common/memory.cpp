// SPDX-License-Identifier: MIT
#include "memory.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <system_error>

namespace lite_test {
namespace {

std::byte* map(std::size_t size, int fd, int flags) {
    void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (memory == MAP_FAILED)
        throw std::system_error(errno, std::generic_category(), "mmap");
    return static_cast<std::byte*>(memory);
}

void must(int result, const char* what) {
    if (result < 0)
        throw std::system_error(errno, std::generic_category(), what);
}

std::size_t whole_pages(std::size_t size) { return (size + kPage - 1) / kPage * kPage; }

}  // namespace

Mapping::Mapping(std::size_t size) : Mapping(size, -1, MAP_PRIVATE | MAP_ANONYMOUS) {}

Mapping::Mapping(std::size_t size, int fd, int flags) : data_(map(size, fd, flags)), size_(size) {}

Mapping::~Mapping() {
    if (data_)
        ::munmap(data_, size_);
}

void Mapping::protect(std::size_t offset, std::size_t size, int protection) const {
    must(::mprotect(data_ + offset, size, protection), "mprotect");
}

void Mapping::cut(std::size_t offset, std::size_t size) const {
    must(::munmap(data_ + offset, size), "munmap");
}

void Mapping::replace(std::size_t offset, std::size_t size, int protection, int flags,
                      int fd) const {
    if (::mmap(data_ + offset, size, protection, flags | MAP_FIXED, fd, 0) == MAP_FAILED)
        throw std::system_error(errno, std::generic_category(), "mmap");
}

GuardedBuffer::GuardedBuffer(std::size_t size)
    : size_(size),
      mapping_(whole_pages(size) + kPage),
      data_(mapping_.data() + whole_pages(size) - size) {
    // Inaccessible, not unmapped: nothing else can be mapped there, and for the kernel it is the
    // same fault.
    mapping_.protect(whole_pages(size), kPage, PROT_NONE);
}

std::byte* unmapped_address(std::size_t size) {
    // Unmapped again at once. A single-threaded test maps no memory between this and its use.
    return Mapping(size).data();
}

}  // namespace lite_test
