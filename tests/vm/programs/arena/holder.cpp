// SPDX-License-Identifier: MIT
// A process with an arena, for tests that end the node:
//
//   arena_holder NAME INDEX   maps four blocks, stores into the first two, and registers all as an
//                             LMR of this name; says "ready", and waits for the end of its input;
//                             then says whether the stored bytes are still there, and which signal
//                             a load from the third block gets
#include "fixture.hpp"

#include <cstdio>
#include <exception>

using namespace lite_test;

int main(int argc, char** argv) {
    if (argc != 3)
        return 2;
    try {
        const Device dev(static_cast<unsigned>(std::stoul(argv[2])));
        const Arena arena(dev, 4 * kBlock);
        fill_pattern(arena.bytes(0, 2 * kBlock), 1);
        register_memory(dev, arena.bytes(), argv[1], 0666);
        std::puts("ready");
        std::fflush(stdout);
        char byte;
        while (::read(STDIN_FILENO, &byte, 1) > 0)
            ;
        std::puts(find_mismatch(arena.bytes(0, 2 * kBlock), 1) ? "damaged" : "intact");
        std::puts(load_signal(arena.data() + 2 * kBlock) == SIGBUS ? "SIGBUS" : "loaded");
        return 0;
    } catch (const std::exception& e) {
        std::printf("%s\n", e.what());
        return 1;
    }
}
