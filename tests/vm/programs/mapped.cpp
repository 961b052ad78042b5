// SPDX-License-Identifier: MIT
// A process with memory shared with LITE, for tests that end one or the other:
//
//   mapped map NAME INDEX OFFSET   maps the LMR from an offset on, says "ready", and stores and
//                                  loads until it gets SIGBUS; then says so and ends with status 0
//   mapped again NAME INDEX COUNT  so many processes map and unmap the LMR again and again, until
//                                  it is gone; prints their numbers and "ready", and ends, with
//                                  them, at the end of its input
//   mapped hold NAME INDEX OFFSET COUNT
//                                  so many processes map the LMR from an offset on, and have all
//                                  its pages; as again otherwise
//   mapped read NAME INDEX COUNT   as again, with reads of the first bytes
//   mapped grow NAME INDEX PAGES   extends the LMR of a page by one page after the other, each
//                                  in an extent of its own
//   mapped register NAME INDEX     registers 4 MB, says "ready", and waits for the end of its
//                                  input; then says how much it has pinned
#include <lite/lite.hpp>

#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include <unistd.h>

#include "common/process.hpp"

namespace {

sigjmp_buf out;

void on_bus(int) { siglongjmp(out, 1); }

int use(lite::context& node, const std::string& name, std::uint64_t offset) {
    const auto lmr = node.map(name);
    const auto map = lmr.mmap(offset, lmr.length() - offset);
    const auto words = map.as<std::uint64_t>();
    if (sigsetjmp(out, 1)) {
        std::puts("SIGBUS");
        return 0;
    }
    std::signal(SIGBUS, on_bus);
    for (auto& word : words)
        word = 1;
    std::puts("ready");
    std::fflush(stdout);
    for (std::size_t i = 0;; i = (i + 4099) % words.size()) {
        auto& word = const_cast<volatile std::uint64_t&>(words[i]);
        word = word + 1;
    }
}

void until_end_of_input() {
    char byte;
    while (::read(STDIN_FILENO, &byte, 1) > 0)
        ;
}

void ready_until_end_of_input() {
    std::puts("ready");
    std::fflush(stdout);
    until_end_of_input();
}

[[noreturn]] void map_until_gone(int index, const std::string& name, lite_test::Signal& mapped) {
    lite::context node(index);
    const auto lmr = node.map(name);
    (void)lmr.mmap(0, lmr.length());
    mapped.post();
    try {
        for (;;)
            (void)lmr.mmap(0, lmr.length());
    } catch (const std::system_error& e) {
        ::_exit(e.code().value() == EIDRM || e.code().value() == ESTALE ? 0 : 1);
    }
}

[[noreturn]] void read_until_gone(int index, const std::string& name, lite_test::Signal& begun) {
    lite::context node(index);
    const auto lmr = node.map(name);
    (void)lmr.load<std::uint64_t>(0);
    begun.post();
    try {
        for (;;)
            (void)lmr.load<std::uint64_t>(0);
    } catch (const std::system_error& e) {
        ::_exit(e.code().value() == EIDRM ? 0 : 1);
    }
}

void hold(int index, const std::string& name, std::uint64_t offset, lite_test::Signal& mapped) {
    lite::context node(index);
    const auto lmr = node.map(name);
    const auto map = lmr.mmap(offset, lmr.length() - offset);
    const auto bytes = map.as<char>();
    for (std::size_t at = 0; at < bytes.size(); at += 4096)
        bytes[at] = 1;
    mapped.post();
    until_end_of_input();
}

// So many processes, until the end of the input.
int crowd(int count, const std::function<void(lite_test::Signal& begun)>& body) {
    lite_test::Shared<lite_test::Signal> begun;
    std::vector<lite_test::Child> children;
    for (int i = 0; i < count; i++) {
        children.emplace_back([&] { body(*begun); });
        std::printf("%d\n", children.back().pid());
    }
    for (int i = 0; i < count; i++)
        begun->wait("all have begun");
    ready_until_end_of_input();
    for (auto& child : children)
        child.join();
    return 0;
}

int grow(lite::context& node, const std::string& name, std::uint64_t pages) {
    constexpr std::uint64_t page = 4096;
    for (std::uint64_t n = 2; n <= pages; n++)
        node.resize(name, n * page);
    return 0;
}

int keep(lite::context& node, const std::string& name) {
    constexpr std::size_t size = 4 << 20;
    void* memory =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 1;
    const auto registered =
        node.register_memory({static_cast<std::byte*>(memory), size}, name, 0666);
    ready_until_end_of_input();
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmPin:"))
            std::puts(line.c_str());
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const std::vector<std::string> words(argv + 1, argv + argc);
        if (words.size() < 3)
            return 2;
        const auto& name = words[1];
        const int index = std::stoi(words[2]);
        if (words[0] == "again")
            return crowd(std::stoi(words.at(3)),
                         [&](auto& begun) { map_until_gone(index, name, begun); });
        if (words[0] == "read")
            return crowd(std::stoi(words.at(3)),
                         [&](auto& begun) { read_until_gone(index, name, begun); });
        if (words[0] == "hold")
            return crowd(std::stoi(words.at(4)),
                         [&](auto& begun) { hold(index, name, std::stoull(words.at(3)), begun); });
        lite::context node(index);
        if (words[0] == "register")
            return keep(node, name);
        if (words[0] == "grow")
            return grow(node, name, std::stoull(words.at(3)));
        return use(node, name, words.size() > 3 ? std::stoull(words[3]) : 0);
    } catch (const std::exception& e) {
        std::printf("%s\n", e.what());
        return 1;
    }
}
