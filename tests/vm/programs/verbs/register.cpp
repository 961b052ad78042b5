// SPDX-License-Identifier: MIT
// What it takes to register memory.
#include "fabric.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstdio>

namespace verbs_check {
namespace {

constexpr unsigned kAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

std::uint8_t* map(std::size_t bytes) {
    void* memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(memory != MAP_FAILED, "mmap");
    return static_cast<std::uint8_t*>(memory);
}

}  // namespace

// New memory that was not touched, and the same memory again when it was: medians.
int registering(const Options& options, std::size_t bytes, int rounds) {
    ibv_context* context = open_device(options.device);
    ibv_pd* pd = ibv_alloc_pd(context);
    check(pd != nullptr, "pd");
    std::vector<double> untouched, touched, deregistered;
    for (int i = 0; i < rounds; i++) {
        std::uint8_t* memory = map(bytes);
        for (std::vector<double>* times : {&untouched, &touched}) {
            double begun = microseconds();
            ibv_mr* mr = ibv_reg_mr(pd, memory, bytes, kAccess);
            times->push_back(microseconds() - begun);
            check(mr != nullptr, std::string("ibv_reg_mr: ") + std::strerror(errno));
            if (times == &untouched)
                std::memset(memory, 1, bytes);
            begun = microseconds();
            check(!ibv_dereg_mr(mr), "dereg");
            deregistered.push_back(microseconds() - begun);
        }
        ::munmap(memory, bytes);
    }
    check(!ibv_dealloc_pd(pd) && !ibv_close_device(context), "close");
    std::printf("untouched %.1f us, touched %.1f us, deregister %.1f us\n", median(untouched),
                median(touched), median(deregistered));
    return 0;
}

}  // namespace verbs_check
