// SPDX-License-Identifier: MIT
//
// lite_alloc() with LITE_ALLOC_UNPINNED: memory that the library makes, on one node, used from
// another.
#include "memory.hpp"

#include <lite/lite.hpp>

#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <vector>

namespace unpinned {
namespace {

constexpr std::uint64_t kLength = 8 << 20;

// Mappings of such memory in this process, in bytes.
std::uint64_t mapped() {
    std::ifstream maps("/proc/self/maps");
    std::uint64_t bytes = 0;
    for (std::string line; std::getline(maps, line);) {
        if (line.find("/memfd:lite ") == std::string::npos)
            continue;
        std::size_t at = 0;
        const auto begin = std::stoull(line, &at, 16);
        bytes += std::stoull(line.substr(at + 1), nullptr, 16) - begin;
    }
    return bytes;
}

int try_alloc(const Node& node, const char* name, std::uint64_t length, std::uint32_t flags,
              const std::vector<std::uint32_t>& nodes, lite_lh_t* lh) {
    lite_alloc_params p = {};
    p.size = sizeof(p);
    p.flags = LITE_ALLOC_UNPINNED | flags;
    p.name = name;
    p.length = length;
    p.nodes = nodes.data();
    p.n_nodes = static_cast<std::uint32_t>(nodes.size());
    p.mode = 0666;
    return lite_alloc(node.get(), &p, lh);
}

void refusals(const Node& node, std::uint32_t self, std::uint32_t other) {
    lite_lh_t lh = 0;
    const auto expect = [&](int err, int wanted, const char* what) {
        check(err == wanted, std::string(what) + ": " + lite_strerror(err));
    };
    expect(try_alloc(node, "no", 1, LITE_ALLOC_NO_HANDLE, {}, nullptr), -EINVAL, "no handle");
    expect(try_alloc(node, "", 1, 0, {}, nullptr), -EINVAL, "no place for the handle");
    expect(try_alloc(node, "", 0, 0, {}, &lh), -EINVAL, "no bytes");
    expect(try_alloc(node, "", 1, 0, {other}, &lh), -EINVAL, "another node");
    expect(try_alloc(node, "", 1, 0, {self, other}, &lh), -EINVAL, "two nodes");
    expect(try_alloc(node, "", std::uint64_t{5} << 30, 0, {}, &lh), -EFBIG, "5 GB");
    expect(try_alloc(node, "", UINT64_MAX, 0, {}, &lh), -EFBIG, "too long to round up");
    expect(try_alloc(node, "taken", 1, 0, {self}, &lh), 0, "this node");
    lite_lh_t second = 0;
    expect(try_alloc(node, "taken", 1, 0, {}, &second), -EEXIST, "the same name");
    check(mapped() == kPage, "a failure leaves memory");
    expect(lite_free(node.get(), lh), 0, "free");
}

}  // namespace

int alloc(int argc, char** argv) {
    if (argc < 4)
        return 2;
    Node user(std::stoi(argv[3]));
    lite_lh_t used = 0;
    const auto self_id = [](const Node& node) {
        lite_ioc_query query = {};
        check(!lite_query(node.get(), &query), "query");
        return query.node_id;
    };
    std::vector<std::uint64_t> words(kLength / 8), got(kLength / 8, 1);
    for (std::size_t i = 0; i < words.size(); ++i)
        words[i] = i * 0x9e3779b97f4a7c15 + 1;
    {
        Node owner(std::stoi(argv[2]));
        refusals(owner, self_id(owner), self_id(user));
        lite_lh_t lh = 0;
        check(!try_alloc(owner, "made", kLength + 1, 0, {}, &lh), "alloc");
        check(mapped() == kLength + kPage, "whole pages are mapped");
        used = user.open("made");
        check(!lite_read(user.get(), used, 0, got.data(), kLength), "read");
        check(got == std::vector<std::uint64_t>(kLength / 8), "it is zeroed");
        check(!lite_write(user.get(), used, 0, words.data(), kLength), "write");
        const pid_t child = ::fork();
        if (!child) {
            const bool none = !mapped();
            lite_close(owner.get());
            ::_exit(none ? 0 : 1);
        }
        int status = 0;
        check(::waitpid(child, &status, 0) == child && !status, "a child has none of the memory");
        check(!lite_read(owner.get(), lh, 0, got.data(), kLength) && got == words,
              "what another node wrote");
        // It has a name, so it stays without a handle.
        check(!lite_unmap(owner.get(), lh), "unmap");
        check(!lite_read(user.get(), used, 0, got.data(), kLength) && got == words, "read again");
        check(!try_alloc(owner, nullptr, kPage, 0, {}, &lh), "anonymous");
        check(mapped() == kLength + 2 * kPage && !lite_unmap(owner.get(), lh), "unmap");
        check(mapped() == kLength + kPage, "an anonymous one ends with its handle");
        check(!try_alloc(owner, "freed", kPage, 0, {}, &lh) && !lite_free(owner.get(), lh), "free");
        check(mapped() == kLength + kPage, "memory goes with what is freed");
    }
    check(!mapped(), "memory goes with the context");
    check(lite_read(user.get(), used, 0, got.data(), 8) == -EIDRM, "the LMR, too");
    {
        lite::context context(std::stoi(argv[2]));
        auto region = context.alloc({.name = "made", .length = kLength, .unpinned = true});
        const lite_lh_t again = user.open("made");
        check(!lite_write(user.get(), again, 0, words.data(), kLength), "write");
        region.read(0, std::as_writable_bytes(std::span(got)));
        check(got == words, "in C++");
    }
    std::puts("right");
    return 0;
}

}  // namespace unpinned
