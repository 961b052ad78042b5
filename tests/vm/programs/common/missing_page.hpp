// SPDX-License-Identifier: MIT
// A page of a mapping that is missing until come() provides it (userfaultfd).
#pragma once

#include "memory.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <system_error>

namespace lite_test {

class MissingPage {
  public:
    // @page: never touched.
    explicit MissingPage(std::byte* page)
        : range_{reinterpret_cast<std::uintptr_t>(page), kPage},
          fd_(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC))) {
        uffdio_api api{UFFD_API, 0, 0};
        uffdio_register arg{};
        arg.range = range_;
        arg.mode = UFFDIO_REGISTER_MODE_MISSING;
        if (fd_ < 0 || ::ioctl(fd_, UFFDIO_API, &api) || ::ioctl(fd_, UFFDIO_REGISTER, &arg))
            throw std::system_error(errno, std::generic_category(), "userfaultfd");
    }
    ~MissingPage() { ::close(fd_); }
    MissingPage(const MissingPage&) = delete;
    MissingPage& operator=(const MissingPage&) = delete;

    // Waits until a thread waits for the page.
    void await() const {
        uffd_msg message{};
        if (::read(fd_, &message, sizeof(message)) != sizeof(message))
            throw std::system_error(errno, std::generic_category(), "userfaultfd: read");
    }
    // Provides the page, filled with zeroes.
    void come() const {
        uffdio_zeropage arg{};
        arg.range = range_;
        if (::ioctl(fd_, UFFDIO_ZEROPAGE, &arg))
            throw std::system_error(errno, std::generic_category(), "UFFDIO_ZEROPAGE");
    }

  private:
    uffdio_range range_;
    int fd_;
};

}  // namespace lite_test
