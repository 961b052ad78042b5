// SPDX-License-Identifier: MIT
#include "faults.hpp"

#include "../common/process.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <set>
#include <sstream>
#include <system_error>

namespace lite_test {
namespace {

// More than any call makes: if this number is reached, the kernel does not count.
constexpr unsigned kMost = 20000;

// Errors that a failed allocation or copy may lead to. Any other error would hide the cause. ENFILE
// comes from a socket that cannot be made: Soft-RoCE has one for each queue pair.
bool plausible(Errno e) {
    constexpr std::array kinds{ENOMEM, ENOBUFS, EFAULT, ENOSPC, EIO, ETIMEDOUT, ENFILE};
    return std::find(kinds.begin(), kinds.end(), e.value) != kinds.end();
}

std::string name_of(Errno e) {
    std::ostringstream text;
    text << e;
    return text.str();
}

// One attempt with the @n-th fault. False if the call makes fewer.
bool try_fault(FailNth& faults, const Attempt& attempt, unsigned n, std::set<std::string>& seen) {
    faults.arm(n);
    const Errno e = attempt.call();
    const bool injected = faults.disarm();
    const auto label = attempt.label + ", fault " + std::to_string(n) + ": " + name_of(e);
    expect(e == ok || (injected && plausible(e)), label);
    try {
        attempt.restore(e);
    } catch (const std::exception& problem) {
        throw Failure(label + "; then: " + problem.what());
    }
    seen.insert(name_of(e));
    return injected;
}

}  // namespace

FailNth::FailNth() : fd_(::open("/proc/self/fail-nth", O_RDWR | O_CLOEXEC)) {
    if (fd_ < 0)
        throw std::system_error(errno, std::generic_category(), "/proc/self/fail-nth");
}

FailNth::~FailNth() { ::close(fd_); }

void FailNth::arm(unsigned n) { put(n); }

bool FailNth::disarm() {
    std::array<char, 32> text{};
    if (::pread(fd_, text.data(), text.size() - 1, 0) <= 0) {
        // The fault hit this very copy.
        if (errno == EFAULT)
            return false;
        throw std::system_error(errno, std::generic_category(), "fail-nth");
    }
    put(0);
    return std::strtoul(text.data(), nullptr, 10) == 0;
}

void FailNth::put(unsigned n) {
    const auto text = std::to_string(n);
    ssize_t done = ::pwrite(fd_, text.data(), text.size(), 0);
    // The fault hit this very copy; now it is spent.
    if (done < 0 && errno == EFAULT)
        done = ::pwrite(fd_, text.data(), text.size(), 0);
    if (done < 0)
        throw std::system_error(errno, std::generic_category(), "fail-nth");
}

void sweep(FailNth& faults, const Attempt& attempt, unsigned samples) {
    std::set<std::string> seen;
    attempt.prepare();
    unsigned beyond = 1;
    while (try_fault(faults, attempt, beyond, seen)) {
        expect(beyond < kMost, attempt.label + ": faults without end");
        beyond *= 2;
    }
    const double step = std::max(1.0, static_cast<double>(beyond) / samples);
    unsigned tried = 0;
    for (double at = 1; static_cast<unsigned>(at) < beyond; at += step, ++tried) {
        if (!try_fault(faults, attempt, static_cast<unsigned>(at), seen))
            break;
    }
    expect_equal(attempt.call(), ok, attempt.label + " without a fault");
    attempt.restore(ok);
    std::printf("%-40s %4u faults, up to number %u:", attempt.label.c_str(), tried, beyond);
    for (const auto& what : seen)
        std::printf(" %s", what.c_str());
    std::printf("\n");
    std::fflush(stdout);
}

}  // namespace lite_test
