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

// A block of memory, found by its length, of which there is no other.
void* address_of(std::uint64_t length) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        std::size_t at = 0;
        if (line.find("/memfd:lite ") == std::string::npos)
            continue;
        const auto begin = std::stoull(line, &at, 16);
        if (std::stoull(line.substr(at + 1), nullptr, 16) - begin == length)
            return reinterpret_cast<void*>(begin);
    }
    return nullptr;
}

// What lives on keeps its memory, and what does not gives it back, however it ends.
void ends(const Node& owner, const Node& user) {
    const auto before = mapped();
    std::uint64_t word = 0x900d, got = 0;
    lite_lh_t lh = 0;
    check(!try_alloc(owner, nullptr, kPage, 0, {}, &lh), "anonymous");
    check(!lite_write(owner.get(), lh, 0, &word, 8), "write");
    check(!lite_rename(owner.get(), lh, "late") && !lite_unmap(owner.get(), lh), "named later");
    check(mapped() == before + kPage, "its memory goes with its handle");
    lite_lh_t used = user.open("late");
    check(!lite_read(user.get(), used, 0, &got, 8) && got == word, "named later: its bytes");
    check(!lite_rename_name(user.get(), "late", "later"), "rename");
    check(!lite_free_name(owner.get(), "later"), "free by name");
    check(mapped() == before, "memory of what is freed by name stays");

    check(!try_alloc(owner, "other", kPage, 0, {}, &lh), "alloc");
    const lite_lh_t second = owner.open("other");
    check(lite_free(owner.get(), second) == -EACCES, "without the right");
    check(!lite_free_name(user.get(), "other") && !lite_unmap(owner.get(), lh), "freed elsewhere");
    check(mapped() == before, "memory of what another node frees stays");
    check(!try_alloc(owner, "other", kPage, 0, {}, &lh), "alloc");
    check(!lite_free_name(user.get(), "other") && lite_free(owner.get(), lh) == -EIDRM, "freed");
    check(mapped() == before, "memory of what is freed already stays");
}

// LITE_ALLOC_LEASED, too.
void leased(const Node& owner, const Node& user) {
    constexpr std::uint64_t length = 5 * kPage;
    lite_lh_t lh = 0;
    const auto before = mapped();
    check(!try_alloc(owner, "leased", length - 1, LITE_ALLOC_LEASED, {}, &lh), "alloc, leased");
    check(mapped() == before, "leased memory is a memfd's");
    const lite_lh_t used = user.open("leased");
    const std::uint64_t word = 0x1ea5ed;
    std::uint64_t got = 1;
    check(!lite_read(user.get(), used, length - 8, &got, 8) && !got, "leased: it is zeroed");
    check(!lite_write(user.get(), used, 0, &word, 8), "leased: write");
    check(!lite_read(owner.get(), lh, 0, &got, 8) && got == word, "leased: read");
    check(!lite_free(owner.get(), lh), "leased: free");
    check(lite_read(user.get(), used, 0, &got, 8) == -EIDRM, "leased: freed");
    lite_alloc_params p = {};
    p.size = sizeof(p);
    p.flags = LITE_ALLOC_LEASED;
    p.length = kPage;
    check(lite_alloc(owner.get(), &p, &lh) == -EOPNOTSUPP, "leased alone");
}

// A child has the file open longer than the context's owner has.
void ends_before_child(int index, const Node& user) {
    constexpr std::uint64_t length = 3 * kPage;
    int fds[2];
    check(!::pipe(fds), "pipe");
    lite_lh_t used[2] = {};
    void* memory = nullptr;
    pid_t child = 0;
    {
        Node owner(index);
        lite_lh_t lh = 0;
        check(!try_alloc(owner, "kept", length, 0, {}, &lh), "alloc");
        memory = address_of(length);
        check(!try_alloc(owner, "let go", length, 0, {}, &lh), "alloc");
        used[0] = user.open("kept");
        used[1] = user.open("let go");
        check(!lite_unmap(owner.get(), lh), "unmap");
        child = ::fork();
        if (!child) {
            ::close(fds[1]);
            char byte = 0;
            ::_exit(static_cast<int>(::read(fds[0], &byte, 1)));
        }
    }
    check(!mapped(), "memory goes with the context, whatever children there are");
    void* next = ::mmap(memory, length, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    check(memory && next == memory, "its addresses");
    std::memset(next, 0x5e, length);
    std::uint64_t got = 0;
    for (const lite_lh_t lh : used) {
        const int err = lite_read(user.get(), lh, 0, &got, 8);
        check(err == -EIDRM, std::string("what comes there next: ") + lite_strerror(err));
    }
    ::munmap(next, length);
    ::close(fds[1]);
    int status = 0;
    check(::waitpid(child, &status, 0) == child && !status, "the child");
    ::close(fds[0]);
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
        ends(owner, user);
        leased(owner, user);
    }
    check(!mapped(), "memory goes with the context");
    check(lite_read(user.get(), used, 0, got.data(), 8) == -EIDRM, "the LMR, too");
    ends_before_child(std::stoi(argv[2]), user);
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
