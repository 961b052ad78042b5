// SPDX-License-Identifier: MIT
//
// greet: a function that programs on other machines call, by its name.
//
//    greet              serves it, until SIGINT or SIGTERM
//    greet NODE NAME    calls it
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include <lite/rpc.hpp>

namespace {

constexpr auto function_name = "greet";
// The node of a caller refuses a longer name. A greeting is longer than the name in it.
constexpr std::uint32_t longest_name = 1024;
constexpr std::uint32_t longest_greeting = longest_name + 64;

volatile std::sig_atomic_t end_wanted = 0;

// The signal also interrupts the wait for a request.
void end(int) { end_wanted = 1; }

std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
}

std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void serve(lite::context& context) {
    std::signal(SIGINT, end);
    std::signal(SIGTERM, end);
    lite::function greet(context, {.name = function_name,
                                   .mode = 0666,
                                   .max_request = longest_name,
                                   .max_reply = longest_greeting});
    std::cout << "serving" << std::endl;
    const auto answer = [](const lite::call_info& caller, std::span<const std::byte> name,
                           std::vector<std::byte>& reply) {
        const auto text = "hello, " + text_of(name) + " of node " + std::to_string(caller.node);
        const auto said = bytes_of(text);
        reply.assign(said.begin(), said.end());
        return 0U;  // a status of any value, for the caller
    };
    greet.serve(answer, [] { return !end_wanted; });
}

void call(lite::context& context, std::uint32_t node, const std::string& name) {
    const auto function = lite::find_function(context, node, function_name);
    std::cout << text_of(lite::call(context, node, function, bytes_of(name)).bytes) << '\n';
}

}  // namespace

int main(int argc, char** argv) {
    const auto node = argc == 3 ? static_cast<std::uint32_t>(std::atoi(argv[1])) : 0;
    if (argc != 1 && node == 0) {
        std::cerr << "usage: greet [NODE NAME]\n";
        return 2;
    }
    try {
        lite::context context;
        if (argc == 1)
            serve(context);
        else
            call(context, node, argv[2]);
    } catch (const lite::error& error) {
        std::cerr << "greet: " << error.what() << '\n';
        return 1;
    }
}
