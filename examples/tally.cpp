// SPDX-License-Identifier: MIT
//
// tally: a server with one thread for many callers, made of coroutines.
//
//    tally                serves: adds numbers up, in memory of the cluster
//    tally NODE NUMBER... has it add all these numbers, at the same time
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include <lite/async.hpp>

namespace {

constexpr auto function_name = "tally";
constexpr int callers_at_a_time = 16;

using number = std::array<std::uint64_t, 1>;

// One of many: while it waits, the others work.
lite::task<> serve(lite::executor& ex, const lite::function& tally, const lite::region& sum) {
    for (;;) {
        number n{};
        const auto request = co_await ex.receive(tally, std::as_writable_bytes(std::span(n)));
        n[0] += co_await ex.fetch_add(sum, 0, n[0]);
        co_await ex.reply(request, 0, std::as_bytes(std::span(n)));
    }
}

lite::task<> ask(lite::executor& ex, std::uint32_t node, std::uint32_t function, number n) {
    const auto reply = co_await ex.call(node, function, std::as_bytes(std::span(n)));
    number sum{};
    std::memcpy(sum.data(), reply.bytes.data(), std::min(sizeof(sum), reply.bytes.size()));
    std::cout << "+ " << n[0] << " = " << sum[0] << '\n';
}

lite::task<> ask_all(lite::executor& ex, std::uint32_t node, std::uint32_t function,
                     std::span<char*> numbers) {
    std::vector<lite::task<>> asking;
    for (const char* text : numbers)
        asking.push_back(ask(ex, node, function, {std::strtoull(text, nullptr, 0)}));
    co_await ex.all(std::move(asking));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 2) {
        std::cerr << "usage: tally [NODE NUMBER...]\n";
        return 2;
    }
    try {
        lite::context context;
        lite::executor ex(context);
        if (argc > 1) {
            const auto node = static_cast<std::uint32_t>(std::atoi(argv[1]));
            const auto function = lite::find_function(context, node, function_name);
            ex.run(ask_all(ex, node, function, std::span(argv, argv + argc).subspan(2)));
            return 0;
        }
        const lite::region sum = context.alloc({.length = sizeof(number)});
        const lite::function tally(context, {.name = function_name, .mode = 0666});
        for (int i = 1; i < callers_at_a_time; i++)
            ex.spawn(serve(ex, tally, sum));
        std::cout << "serving" << std::endl;
        ex.run(serve(ex, tally, sum));
    } catch (const lite::error& error) {
        std::cerr << "tally: " << error.what() << '\n';
        return 1;
    }
}
