// SPDX-License-Identifier: MIT
// Shared by the tests of mapped LMRs and of registered memory.
#pragma once

#include "../common/catch.hpp"
#include "../common/data/pattern.hpp"
#include "../common/env.hpp"
#include "../common/memory.hpp"
#include "../common/process.hpp"
#include "../common/raw.hpp"

#include <algorithm>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/mman.h>

namespace lite_test {

inline constexpr std::uint32_t kReadWrite = LITE_PROT_READ | LITE_PROT_WRITE;
inline constexpr std::uint32_t kUse = LITE_RIGHT_READ | LITE_RIGHT_WRITE | LITE_RIGHT_ATOMIC;

struct Mmap {
    Device dev{env().indexes.front()};

    Mmap() { wait_until_unused(dev); }
    void check_nothing_used() const { REQUIRE_NOTHROW(wait_until_unused(dev)); }
};

// The device for the @i-th of several users: they use the nodes of this machine in turn.
inline Device device_for(std::size_t i) { return Device(env().indexes[i % env().indexes.size()]); }

inline lite_ioc_mmap mmap_args(std::uint64_t lh, std::uint64_t offset, std::uint64_t length,
                               std::uint32_t prot = kReadWrite, std::uint32_t flags = 0) {
    lite_ioc_mmap args{};
    args.size = sizeof(args);
    args.flags = flags;
    args.lh = lh;
    args.offset = offset;
    args.length = length;
    args.prot = prot;
    return args;
}

inline lite_ioc_register register_args(std::string_view name, const void* addr,
                                       std::uint64_t length, std::uint32_t mode = 0600) {
    lite_ioc_register args{};
    args.size = sizeof(args);
    args.addr = reinterpret_cast<std::uintptr_t>(addr);
    args.length = length;
    args.mode = mode;
    set_name(args.name, name);
    return args;
}

// A mapped part of an LMR.
class View {
  public:
    View(const Device& dev, std::uint64_t lh, std::uint64_t offset, std::size_t length,
         std::uint32_t prot = kReadWrite, std::uint32_t flags = 0)
        : size_((length + kPage - 1) / kPage * kPage) {
        auto args = mmap_args(lh, offset, length, prot, flags);
        const Errno e = dev.call(LITE_IOC_MMAP, &args);
        if (e != ok)
            throw Failure("LITE_IOC_MMAP: " + std::string(::strerrorname_np(e.value)));
        data_ = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(args.addr));
    }
    ~View() { unmap(); }
    View(View&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
    View& operator=(View&&) = delete;

    std::byte* data() const { return data_; }
    std::size_t size() const { return size_; }
    std::span<std::byte> bytes() const { return {data_, size_}; }
    volatile std::uint64_t& word(std::size_t offset) const {
        return *reinterpret_cast<volatile std::uint64_t*>(data_ + offset);
    }
    void unmap() {
        if (data_)
            ::munmap(std::exchange(data_, nullptr), size_);
    }

  private:
    std::byte* data_ = nullptr;
    std::size_t size_;
};

inline Errno try_mmap(const Device& dev, lite_ioc_mmap args) {
    const Errno e = dev.call(LITE_IOC_MMAP, &args);
    if (e == ok)
        ::munmap(reinterpret_cast<void*>(static_cast<std::uintptr_t>(args.addr)), args.length);
    return e;
}

inline std::uint64_t register_memory(const Device& dev, std::span<std::byte> memory,
                                     std::string_view name = {}, std::uint32_t mode = 0600) {
    auto args = register_args(name, memory.data(), memory.size(), mode);
    const Errno e = dev.call(LITE_IOC_REGISTER, &args);
    if (e != ok)
        throw Failure("LITE_IOC_REGISTER: " + std::string(::strerrorname_np(e.value)));
    return args.lh;
}

// Memory and two handles of the LMR that is made of it: @lh at the node of its process, @elsewhere
// at another one. Throws Failure if they do not have the same bytes.
inline void check_same_bytes(const Device& dev, std::uint64_t lh, const Device& other,
                             std::uint64_t elsewhere, std::span<std::byte> memory) {
    std::vector<std::byte> got(memory.size());
    fill_pattern(memory, 1);
    other.read(elsewhere, 0, got);
    expect(!find_mismatch(got, 1), "stores seen from another node");
    dev.read(lh, 0, got);
    expect(!find_mismatch(got, 1), "stores seen from this node");
    other.write(elsewhere, 0, make_pattern(memory.size(), 2));
    expect(!find_mismatch(memory, 2), "writes of another node seen in memory");
    dev.write(lh, 0, make_pattern(memory.size(), 3));
    expect(!find_mismatch(memory, 3), "writes of this node seen in memory");
}

// The signal that @body got, or 0. For one thread at a time; leaving @body in the middle must be
// safe.
inline sigjmp_buf fault_exit;
inline volatile std::sig_atomic_t fault_expected = 0;

inline void on_fault(int signal) {
    if (!fault_expected) {
        ::signal(signal, SIG_DFL);
        ::raise(signal);
    }
    siglongjmp(fault_exit, signal);
}

inline int signal_of(const std::function<void()>& body) {
    struct sigaction action {};
    action.sa_handler = on_fault;
    ::sigaction(SIGBUS, &action, nullptr);
    ::sigaction(SIGSEGV, &action, nullptr);
    const int got = sigsetjmp(fault_exit, 1);
    if (!got) {
        fault_expected = 1;
        body();
    }
    fault_expected = 0;
    return got;
}

inline int load_signal(const volatile std::byte* at) {
    return signal_of([at] { (void)*at; });
}

inline int store_signal(volatile std::byte* at) {
    return signal_of([at] { *at = std::byte{0xff}; });
}

}  // namespace lite_test
