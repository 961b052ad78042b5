// SPDX-License-Identifier: MIT
//
// hello++ NODE: memory of another machine, from C++.
//
// Makes a counter on that node, which all nodes can open by its name, adds 1 to it 1000 times, and
// prints it. Run it on several nodes at once: no count is lost.
#include <cstdlib>
#include <iostream>
#include <lite/lite.hpp>

namespace {

constexpr auto name = "hello-counter";

lite::region open_counter(lite::context& context, std::uint32_t node) {
    try {
        return context.alloc({.name = name, .length = sizeof(std::uint64_t), .nodes = {node}});
    } catch (const lite::error& error) {
        if (error.code() != std::errc::file_exists)
            throw;
    }
    // An earlier run has made it.
    return context.map(name, lite::rights::read | lite::rights::atomic);
}

}  // namespace

int main(int argc, char** argv) {
    const auto node = argc == 2 ? static_cast<std::uint32_t>(std::atoi(argv[1])) : 0;
    if (node == 0) {
        std::cerr << "usage: hello++ NODE\n";
        return 2;
    }
    try {
        lite::context context;
        lite::region counter = open_counter(context, node);
        for (int i = 0; i < 1000; i++)
            counter.fetch_add(0, 1);
        std::cout << "counted to " << counter.load<std::uint64_t>(0) << ", in the memory of node "
                  << counter.stat().info.home << '\n';
    } catch (const lite::error& error) {
        std::cerr << "hello++: " << error.what() << '\n';
        return 1;
    }
}
