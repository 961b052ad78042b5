// SPDX-License-Identifier: MIT
// A process with memory that is missing (userfaultfd):
//
//   absent INDEX NODE FUNCTION     calls FUNCTION, with requests and reply buffers in missing
//                                  memory; says "waiting" when the kernel waits for all of them,
//                                  and waits for the end of its input; then the memory comes, and
//                                  each call must return ENODEV
#include <lite/lite.hpp>

#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr std::size_t page = 4096;
constexpr int patience_ms = 600000;

int check(long got, const char* what) {
    if (got < 0)
        throw std::system_error(errno, std::generic_category(), what);
    return static_cast<int>(got);
}

// Pages that are missing until come() provides them.
class Absent {
  public:
    explicit Absent(std::size_t pages)
        : size_(pages * page), fd_(check(::syscall(SYS_userfaultfd, O_CLOEXEC), "userfaultfd")) {
        void* memory =
            ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            throw std::system_error(errno, std::generic_category(), "mmap");
        memory_ = static_cast<std::byte*>(memory);
        uffdio_api api{UFFD_API, 0, 0};
        check(::ioctl(fd_, UFFDIO_API, &api), "UFFDIO_API");
        uffdio_register arg{};
        arg.range = range();
        arg.mode = UFFDIO_REGISTER_MODE_MISSING;
        check(::ioctl(fd_, UFFDIO_REGISTER, &arg), "UFFDIO_REGISTER");
    }
    Absent(const Absent&) = delete;
    Absent& operator=(const Absent&) = delete;

    std::byte* at(std::size_t i) const { return memory_ + i * page; }

    // Waits until a thread waits for each page.
    void await_all() const {
        std::set<std::uint64_t> missed;
        while (missed.size() < size_ / page) {
            uffd_msg message{};
            if (check(::read(fd_, &message, sizeof(message)), "read") == sizeof(message))
                missed.insert(message.arg.pagefault.address / page);
        }
    }

    void come() const {
        uffdio_zeropage arg{};
        arg.range = range();
        check(::ioctl(fd_, UFFDIO_ZEROPAGE, &arg), "UFFDIO_ZEROPAGE");
    }

  private:
    uffdio_range range() const { return {reinterpret_cast<std::uintptr_t>(memory_), size_}; }

    std::size_t size_;
    int fd_;
    std::byte* memory_ = nullptr;
};

int run(unsigned index, std::uint32_t node, std::uint32_t function) {
    lite::context here(static_cast<int>(index));
    lite_ctx* ctx = here.get();
    const Absent absent(4);
    std::array<std::byte, page> reply;
    std::array<int, 4> said{};
    std::size_t length = 0;

    // A call that has been answered already, for the thread that collects it.
    if (lite_rpc_start(ctx, node, function, "x", 1, page, patience_ms, 1))
        throw std::runtime_error("cannot call");
    std::array<std::thread, 4> threads{
        std::thread([&] {
            said[0] = lite_rpc_call(ctx, node, function, absent.at(0), page, reply.data(), page,
                                    &length, patience_ms, nullptr);
        }),
        std::thread([&] {
            said[1] = lite_rpc_start(ctx, node, function, absent.at(1), page, page, patience_ms, 2);
        }),
        std::thread([&] {
            lite_rpc_result result{};
            said[2] = lite_rpc_collect(ctx, absent.at(2), page, patience_ms, &result);
        }),
        std::thread([&] {
            std::size_t n = 0;
            said[3] = lite_rpc_call(ctx, node, function, "y", 1, absent.at(3), page, &n,
                                    patience_ms, nullptr);
        }),
    };
    absent.await_all();
    std::puts("waiting");
    std::fflush(stdout);
    char byte;
    while (::read(STDIN_FILENO, &byte, 1) > 0)
        ;
    absent.come();
    bool right = true;
    for (std::size_t i = 0; i < threads.size(); i++) {
        threads[i].join();
        std::printf("%zu: %d\n", i, said[i]);
        right &= said[i] == -ENODEV;
    }
    return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc != 4)
            throw std::runtime_error("usage: absent INDEX NODE FUNCTION");
        return run(static_cast<unsigned>(std::stoul(argv[1])),
                   static_cast<std::uint32_t>(std::stoul(argv[2])),
                   static_cast<std::uint32_t>(std::stoul(argv[3])));
    } catch (const std::exception& e) {
        std::fprintf(stderr, "absent: %s\n", e.what());
        return 2;
    }
}
