// SPDX-License-Identifier: MIT
// A program of plain verbs that checks every byte, completion and error:
//
//   verbs_check serve [-eiqsz] [-d DEVICE] [-x GID_INDEX] PORT MB               has MB of memory
//   verbs_check use [...] ADDRESS PORT SEED ROUNDS data|messages|errors|overlaps|all
//   verbs_check use [...] ADDRESS PORT SEED 0 changes        changes registrations
//   verbs_check use [...] ADDRESS PORT SEED ROUNDS first     times the first uses of registrations
//   verbs_check use [...] ADDRESS PORT SEED 0 successor      writes to a server; when the standard
//                                                            input has ended, to the next server
//   verbs_check use [...] ADDRESS PORT SEED MB large|fill    some bytes of so much, or all
//   verbs_check loop [-d DEVICE] [-x GID_INDEX] ROUNDS [WHAT]   destroys and resets what is in use
//   verbs_check events [-d DEVICE] [-x GID_INDEX] ROUNDS     delays the library's thread of events
//   verbs_check failures [-d DEVICE]                         LMRs and allocations fail
//   verbs_check unreliable [-d DEVICE] [-x GID_INDEX]    a receiver of a UC QP stops for a while
//   verbs_check register [-d DEVICE] KB ROUNDS               times registering
//
// -e: sleeps for completions; -i, at both ends: work requests have addresses of memory that are no
// process's (ibv_reg_mr_iova2()); -s: receives from an SRQ; -q: without liblite-verbs.so, on
// Soft-RoCE, which ends a wrong local key with IBV_WC_LOC_QP_OP_ERR, or flushes it, and cannot
// repeat what is fenced; -z: getrandom(2) gives zeros, so that the library finds the same number
// for each process. It knows nothing of LITE, but in failures.cpp.
#include "fabric.hpp"

#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

namespace {

bool gives_zeros = false;

}  // namespace

ssize_t getrandom(void* to, std::size_t length, unsigned flags) {
    if (!gives_zeros)
        return ::syscall(SYS_getrandom, to, length, flags);
    std::memset(to, 0, length);
    return static_cast<ssize_t>(length);
}

int main(int argc, char** argv) {
    using namespace verbs_check;
    const std::string role = argc > 1 ? argv[1] : "";
    Options options;
    int option = 0;
    optind = 2;
    while ((option = ::getopt(argc, argv, "eiqszd:x:")) != -1) {
        if (option == 'e')
            options.events = true;
        else if (option == 'i')
            options.shift = std::uint64_t{1} << 56;
        else if (option == 'q')
            options.is_soft = true;
        else if (option == 's')
            options.srq = true;
        else if (option == 'z')
            gives_zeros = true;
        else if (option == 'd')
            options.device = optarg;
        else if (option == 'x')
            options.gid_index = std::atoi(optarg);
        else
            return 2;
    }
    const int left = argc - optind;
    char** words = argv + optind;
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    try {
        if (role == "serve" && left == 2)
            return serve(options, std::atoi(words[0]), std::strtoull(words[1], nullptr, 0) << 20);
        if (role == "use" && left == 5)
            return use(options, words[0], std::atoi(words[1]), std::strtoull(words[2], nullptr, 0),
                       std::atoi(words[3]), words[4]);
        if (role == "loop" && (left == 1 || left == 2))
            return loop(options, std::atoi(words[0]), left == 2 ? words[1] : "");
        if (role == "events" && left == 1)
            return events(options, std::atoi(words[0]));
        if (role == "failures" && left == 0)
            return failures(options);
        if (role == "unreliable" && left == 0)
            return unreliable(options);
        if (role == "register" && left == 2)
            return registering(options, std::strtoull(words[0], nullptr, 0) << 10,
                               std::atoi(words[1]));
    } catch (const std::exception& e) {
        std::printf("%s: %s\n", role.c_str(), e.what());
        return 1;
    }
    return 2;
}
