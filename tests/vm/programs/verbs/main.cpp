// SPDX-License-Identifier: MIT
// A program of plain verbs that checks every byte, completion and error:
//
//   verbs_check serve [-e] [-s] [-d DEVICE] [-x GID_INDEX] PORT MB     has MB of memory
//   verbs_check use [...] ADDRESS PORT SEED ROUNDS data|messages|errors|overlaps|all
//   verbs_check use [...] ADDRESS PORT SEED MB large
//   verbs_check loop [-d DEVICE] [-x GID_INDEX] ROUNDS    destroys and resets what is in use
//
// -e: sleeps for completions; -s: receives from an SRQ. It knows nothing of LITE, and must say the
// same with liblite-verbs.so and without.
#include "fabric.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

int main(int argc, char** argv) {
    using namespace verbs_check;
    const std::string role = argc > 1 ? argv[1] : "";
    Options options;
    int option = 0;
    optind = 2;
    while ((option = ::getopt(argc, argv, "esd:x:")) != -1) {
        if (option == 'e')
            options.events = true;
        else if (option == 's')
            options.srq = true;
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
        if (role == "loop" && left == 1)
            return loop(options, std::atoi(words[0]));
    } catch (const std::exception& e) {
        std::printf("%s: %s\n", role.c_str(), e.what());
        return 1;
    }
    return 2;
}
