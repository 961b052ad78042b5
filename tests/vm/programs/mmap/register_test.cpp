// SPDX-License-Identifier: MIT
// Memory of a process as an LMR: which memory may be registered, that it is the same memory, that
// it is accounted, and when it ends.
#include "fixture.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <fstream>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace lite_test;

namespace {

constexpr std::size_t kRegisteredLength = kHugePage + 7 * kPage;
constexpr Identity kAlice{1000, 1000};

// Kilobytes that this process has pinned, according to /proc.
std::size_t pinned_kb() {
    std::ifstream status("/proc/self/status");
    std::string word;
    while (status >> word) {
        if (word == "VmPin:") {
            std::size_t kb = 0;
            status >> kb;
            return kb;
        }
    }
    throw Failure("no VmPin in /proc/self/status");
}

Errno try_register(const Device& dev, const void* addr, std::uint64_t length) {
    return dev.call(LITE_IOC_REGISTER, std::array{register_args({}, addr, length)}.data());
}

void limit_memlock(std::size_t bytes) {
    const rlimit limit{bytes, bytes};
    expect_equal(::setrlimit(RLIMIT_MEMLOCK, &limit), 0, "setrlimit");
}

// The LMR and the memory are the same bytes, for this node and for another one.
void check_same(const Device& dev, std::uint64_t lh, const std::string& name,
                std::span<std::byte> memory) {
    const Device other = device_for(1);
    const auto elsewhere = other.map(name, kUse);
    check_same_bytes(dev, lh, other, elsewhere, memory);
    std::uint64_t word = 5;
    std::memcpy(memory.data() + kPage + 8, &word, sizeof(word));
    expect_equal(other.fetch_add(elsewhere, kPage + 8, 6), 5U, "an atomic");
    std::memcpy(&word, memory.data() + kPage + 8, sizeof(word));
    expect_equal(word, 11U, "an atomic in memory");
    other.unmap(elsewhere);
}

}  // namespace

TEST_CASE_METHOD(Mmap, "register: anonymous memory, by name", "[register]") {
    Mapping memory(kRegisteredLength);
    const auto name = unique_name("registered");
    const auto used = dev.query().mem_used;
    const auto lh = register_memory(dev, memory.bytes(), name, 0640);
    const auto info = dev.stat(name);
    CHECK(info.length == kRegisteredLength);
    CHECK(info.home == env().self);
    CHECK(info.mode == 0640);
    CHECK(dev.query().mem_used == used);  // it does not count as the node's
    CHECK(pinned_kb() == kRegisteredLength / 1024);
    REQUIRE_NOTHROW(check_same(dev, lh, name, memory.bytes()));
    auto again = register_args(name, memory.data(), kPage);
    CHECK(dev.call(LITE_IOC_REGISTER, &again) == err(EEXIST));
    CHECK(pinned_kb() == kRegisteredLength / 1024);
    CHECK(try_mmap(dev, mmap_args(lh, 0, kPage)) == err(EOPNOTSUPP));
    device_for(1).free(name);
    CHECK(pinned_kb() == 0);
    CHECK(dev(read_args(lh, 0, memory.data(), 8)) == err(EIDRM));
    check_nothing_used();
}

TEST_CASE_METHOD(Mmap, "register: memory of every kind that is allowed", "[register]") {
    const auto kind = GENERATE(as<std::string>{}, "anonymous", "shared", "memfd", "thp", "touched");
    INFO(kind);
    const int fd = ::memfd_create("registered", 0);
    REQUIRE(fd >= 0);
    // Several adjacent huge pages: local copies cross their seams.
    constexpr std::size_t size = 4 * kHugePage;
    REQUIRE(::ftruncate(fd, size) == 0);
    void* at = ::mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(at != MAP_FAILED);
    auto* aligned = reinterpret_cast<std::byte*>(
        (reinterpret_cast<std::uintptr_t>(at) + kHugePage - 1) / kHugePage * kHugePage);
    if (kind == "thp")
        REQUIRE(::madvise(aligned, size, MADV_HUGEPAGE) == 0);
    if (kind == "shared")
        REQUIRE(::mmap(aligned, size, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == aligned);
    if (kind == "memfd")
        REQUIRE(::mmap(aligned, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
                aligned);
    if (kind == "touched") {
        // Only read so far: the zero page must not become part of the LMR.
        for (std::size_t i = 0; i < size; i += kPage)
            REQUIRE(aligned[i] == std::byte{});
    }
    const std::span<std::byte> memory(aligned, size);
    const auto name = unique_name("kind");
    const auto lh = register_memory(dev, memory, name);
    REQUIRE_NOTHROW(check_same(dev, lh, name, memory));
    dev.free(lh);
    CHECK(pinned_kb() == 0);
    ::munmap(at, size + kHugePage);
    ::close(fd);
    check_nothing_used();
}

TEST_CASE_METHOD(Mmap, "register: refused memory", "[register]") {
    Mapping memory(16 * kPage);
    CHECK(try_register(dev, memory.data() + 1, kPage) == err(EINVAL));
    CHECK(try_register(dev, memory.data(), kPage + 1) == err(EINVAL));
    CHECK(try_register(dev, memory.data(), 0) == err(EINVAL));
    CHECK(try_register(dev, memory.data(), LITE_LMR_SIZE_MAX + kPage) == err(EFBIG));
    CHECK(try_register(dev, reinterpret_cast<void*>(std::uintptr_t{0} - kPage), kPage) ==
          err(EFAULT));
    CHECK(try_register(dev, nullptr, kPage) == err(EFAULT));
    auto odd = register_args({}, memory.data(), kPage, 0700);
    CHECK(dev.call(LITE_IOC_REGISTER, &odd) == err(EINVAL));
    odd = register_args({}, memory.data(), kPage);
    odd.flags = 1;
    CHECK(dev.call(LITE_IOC_REGISTER, &odd) == err(EOPNOTSUPP));
    odd = register_args({}, memory.data(), kPage);
    odd.reserved = 1;
    CHECK(dev.call(LITE_IOC_REGISTER, &odd) == err(EOPNOTSUPP));
    odd = register_args({}, memory.data(), kPage);
    std::memset(odd.name, 'n', sizeof(odd.name));
    CHECK(dev.call(LITE_IOC_REGISTER, &odd) == err(ENAMETOOLONG));

    memory.protect(4 * kPage, kPage, PROT_READ);
    CHECK(try_register(dev, memory.data(), 8 * kPage) == err(EFAULT));
    memory.cut(10 * kPage, kPage);
    CHECK(try_register(dev, memory.data() + 8 * kPage, 8 * kPage) == err(EFAULT));
    CHECK(pinned_kb() == 0);

    // A file in a file system.
    const char* dir = std::getenv("LITE_TEST_FILES");
    REQUIRE(dir);
    const std::string path = std::string(dir) + "/" + unique_name("file");
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
    REQUIRE(fd >= 0);
    REQUIRE(::ftruncate(fd, 4 * kPage) == 0);
    {
        const Mapping file(4 * kPage, fd, MAP_SHARED);
        std::memset(file.data(), 1, file.size());
        const Errno e = try_register(dev, file.data(), 4 * kPage);
        CHECK((e == err(EOPNOTSUPP) || e == err(EFAULT)));
        // A private copy does not belong to the file.
        const Mapping copy(4 * kPage, fd, MAP_PRIVATE);
        CHECK(try_register(dev, copy.data(), 4 * kPage) == ok);
    }
    ::close(fd);
    ::unlink(path.c_str());
    CHECK(pinned_kb() == 4 * kPage / 1024);

    // The result cannot be stored, so the LMR is freed again.
    auto* readonly = static_cast<lite_ioc_register*>(
        ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    *readonly = register_args({}, memory.data(), kPage);
    ::mprotect(readonly, kPage, PROT_READ);
    CHECK(dev.call(LITE_IOC_REGISTER, readonly) == err(EFAULT));
    ::munmap(readonly, kPage);
    CHECK(pinned_kb() == 4 * kPage / 1024);
}

TEST_CASE_METHOD(Mmap, "register: RLIMIT_MEMLOCK", "[register]") {
    // Root may lock any amount, other users as much as their limit allows in total.
    REQUIRE_NOTHROW(in_child([&] {
        limit_memlock(4 * kPage);
        const Device own(env().indexes.front());
        Mapping memory(16 * kPage);
        expect_equal(try_register(own, memory.data(), 16 * kPage), ok, "as root");
    }));
    REQUIRE_NOTHROW(in_child([&] {
        limit_memlock(8 * kPage);
        become(kAlice);
        const Device own(env().indexes.front());
        Mapping memory(16 * kPage);
        expect_equal(try_register(own, memory.data(), 9 * kPage), err(EDQUOT), "too much");
        const auto first = register_memory(own, memory.bytes().first(5 * kPage));
        expect_equal(try_register(own, memory.data(), 4 * kPage), err(EDQUOT), "too much in all");
        const auto second = register_memory(own, memory.bytes().first(3 * kPage));
        own.free(first);
        const auto third = register_memory(own, memory.bytes().last(5 * kPage));
        own.free(second);
        own.free(third);
        expect_equal(pinned_kb(), 0U, "given back");
    }));
    check_nothing_used();
}

TEST_CASE_METHOD(Mmap, "register: RLIMIT_MEMLOCK is the user's, however many processes",
                 "[register]") {
    REQUIRE_NOTHROW(in_child([&] {
        limit_memlock(8 * kPage);
        become(kAlice);
        const Device own(env().indexes.front());
        Mapping memory(16 * kPage);
        const auto mine = register_memory(own, memory.bytes().first(5 * kPage));
        in_child([&] {
            const Device other(env().indexes.front());
            Mapping more(16 * kPage);
            expect_equal(try_register(other, more.data(), 4 * kPage), err(EDQUOT), "a child");
            expect_equal(try_register(other, more.data(), 3 * kPage), ok, "what is left");
        });
        own.free(mine);
        expect_equal(try_register(own, memory.data(), 8 * kPage), ok, "all of it again");
    }));
    check_nothing_used();
}

TEST_CASE_METHOD(Mmap, "register: memory of an LMR is refused", "[register]") {
    NamedLmr lmr(dev, kRegisteredLength);
    dev.write(lmr.lh(), 0, make_pattern(kRegisteredLength, 9));
    View view(dev, lmr.lh(), 0, kRegisteredLength);
    CHECK(try_register(dev, view.data(), kPage) == err(EOPNOTSUPP));
    REQUIRE(load_signal(view.data()) == 0);
    CHECK(try_register(dev, view.data(), kRegisteredLength) == err(EOPNOTSUPP));
    // Beside memory that may be registered, and whatever another thread does meanwhile.
    Mapping memory(2 * kPage);
    std::atomic<bool> over{false};
    Threads threads;
    threads.start([&] {
        auto* second = memory.data() + kPage;
        auto* other = view.data() + kPage;
        while (!over) {
            ::mremap(other, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, second);
            ::mremap(second, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, other);
            ::mmap(second, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                   -1, 0);
        }
    });
    for (std::size_t round = 0; round < env().scaled(2000, 100); ++round) {
        auto args = register_args({}, memory.data(), 2 * kPage);
        const Errno e = dev.call(LITE_IOC_REGISTER, &args);
        REQUIRE((e == ok || e == err(EOPNOTSUPP) || e == err(EFAULT)));
        if (e == ok) {
            dev.write(args.lh, 0, std::vector<std::byte>(2 * kPage, std::byte{0x5a}));
            dev.free(args.lh);
        }
    }
    over = true;
    threads.join();
    std::vector<std::byte> got(kRegisteredLength);
    dev.read(lmr.lh(), 0, got);
    CHECK_FALSE(find_mismatch(got, 9));
}

TEST_CASE_METHOD(Mmap, "register: it ends with the file, named or not", "[register]") {
    Mapping memory(kRegisteredLength);
    const auto name = unique_name("ends");
    {
        const Device own(env().indexes.front());
        (void)register_memory(own, memory.bytes(), name, 0644);
        const auto anonymous = register_memory(own, memory.bytes().first(kPage));
        const Device other = device_for(1);
        const auto elsewhere = other.map(name, LITE_RIGHT_READ);
        own.unmap(anonymous);  // the last handle
        CHECK(pinned_kb() == kRegisteredLength / 1024);
        std::vector<std::byte> got(kPage);
        other.read(elsewhere, 0, got);
    }
    REQUIRE_NOTHROW(wait_until("the pages to be given back", [] { return pinned_kb() == 0; }));
    CHECK(dev(map_args(name, LITE_RIGHT_READ)) == err(ENOENT));

    // It ends with the process, however that ends.
    Shared<Signal> registered;
    Child child([&] {
        const Device own(env().indexes.front());
        Mapping theirs(kRegisteredLength);
        fill_pattern(theirs.bytes(), 4);
        (void)register_memory(own, theirs.bytes(), name, 0644);
        registered->post();
        for (;;)
            ::pause();
    });
    REQUIRE_NOTHROW(registered->wait("the child"));
    const Device other = device_for(1);
    const auto elsewhere = other.map(name, LITE_RIGHT_READ);
    std::vector<std::byte> got(kRegisteredLength);
    other.read(elsewhere, 0, got);
    CHECK_FALSE(find_mismatch(got, 4));
    child.kill(SIGKILL);
    (void)child.wait();
    REQUIRE_NOTHROW(wait_until("the LMR to be gone", [&] {
        return other(read_args(elsewhere, 0, got.data(), 8)) == err(EIDRM);
    }));
    check_nothing_used();
}

TEST_CASE_METHOD(Mmap, "register: the LMR keeps its pages, whatever the process does",
                 "[register]") {
    Mapping memory(8 * kPage);
    fill_pattern(memory.bytes(), 5);
    const auto name = unique_name("keeps");
    const auto lh = register_memory(dev, memory.bytes(), name, 0644);
    const Device other = device_for(1);
    const auto elsewhere = other.map(name, kUse);

    // A child has a copy; the parent keeps the LMR's pages, also when both write.
    REQUIRE_NOTHROW(in_child([&] {
        expect(!find_mismatch(memory.bytes(), 5), "the child's copy");
        std::memset(memory.data(), 0, memory.size());
    }));
    std::vector<std::byte> got(8 * kPage);
    other.read(elsewhere, 0, got);
    CHECK_FALSE(find_mismatch(got, 5));
    fill_pattern(memory.bytes(), 6);
    other.read(elsewhere, 0, got);
    CHECK_FALSE(find_mismatch(got, 6));

    // Unmapped pages stay in the LMR, and pages that are mapped in their place do not belong to it.
    memory.cut(0, 4 * kPage);
    memory.replace(0, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    std::memset(memory.data(), 0xee, 2 * kPage);
    REQUIRE(::madvise(memory.data() + 4 * kPage, kPage, MADV_DONTNEED) == 0);
    other.read(elsewhere, 0, got);
    CHECK_FALSE(find_mismatch(got, 6));
    other.write(elsewhere, 0, make_pattern(8 * kPage, 7));
    CHECK(memory.data()[0] == std::byte{0xee});
    dev.read(lh, 0, got);
    CHECK_FALSE(find_mismatch(got, 7));
    dev.free(lh);
}

TEST_CASE_METHOD(Mmap, "register: it can be renamed, but not moved or resized", "[register]") {
    Mapping memory(8 * kPage);
    const auto name = unique_name("is");
    const auto lh = register_memory(dev, memory.bytes(), name, 0600);
    const Device other = device_for(1);
    for (const auto length : {std::uint64_t{8 * kPage}, std::uint64_t{kPage},
                              std::uint64_t{16 * kPage}, std::uint64_t{100}}) {
        CHECK(dev(resize_args(lh, length)) == err(EOPNOTSUPP));
        CHECK(other(resize_args(name, length)) == err(EOPNOTSUPP));
    }
    CHECK(dev(move_args(lh, env().peer())) == err(EOPNOTSUPP));
    CHECK(other(move_args(name, env().peer(), kPage, kPage)) == err(EOPNOTSUPP));
    CHECK(other(move_args(name, env().self)) == err(EOPNOTSUPP));
    // None of these calls has changed anything.
    fill_pattern(memory.bytes(), 12);
    std::vector<std::byte> got(8 * kPage);
    const auto renamed = unique_name("called");
    dev.rename(name, renamed);
    const auto elsewhere = other.map(renamed, kUse);
    other.read(elsewhere, 0, got);
    CHECK_FALSE(find_mismatch(got, 12));
    // Rights are granted and revoked as with other LMRs.
    const auto as_alice = [&] {
        Shared<std::atomic<int>> result;
        as_user(kAlice, [&] { *result = other(map_args(renamed, LITE_RIGHT_READ)).value; });
        return err(*result);
    };
    CHECK(as_alice() == err(EACCES));
    dev.grant(renamed, kAlice.uid, 0, LITE_RIGHT_READ);
    CHECK(as_alice() == ok);
    dev.grant(renamed, kAlice.uid, 0, 0);
    CHECK(as_alice() == err(EACCES));
    other.write(elsewhere, 0, make_pattern(8 * kPage, 13));
    CHECK_FALSE(find_mismatch(memory.bytes(), 13));
    dev.free(lh);
    CHECK(pinned_kb() == 0);
    check_nothing_used();
}

TEST_CASE_METHOD(Mmap, "register: the same memory twice", "[register]") {
    Mapping memory(8 * kPage);
    const auto one = register_memory(dev, memory.bytes());
    const auto two = register_memory(dev, memory.bytes().subspan(2 * kPage, 3 * kPage));
    const auto three = register_memory(dev, memory.bytes());
    CHECK(pinned_kb() == 19 * kPage / 1024);
    std::vector<std::byte> got(8 * kPage);
    dev.write(one, 0, make_pattern(8 * kPage, 8));
    dev.free(one);
    dev.read(three, 0, got);
    CHECK_FALSE(find_mismatch(got, 8));
    dev.free(three);
    got.resize(3 * kPage);
    dev.read(two, 0, got);
    CHECK_FALSE(find_mismatch(got, 8, 2 * kPage));
    dev.free(two);
    CHECK(pinned_kb() == 0);
}

TEST_CASE_METHOD(Mmap, "register: freed while others write to it", "[register]") {
    // Registered memory is ordinary memory of the process again when the free has returned.
    const std::size_t rounds = env().scaled(12, 2);
    for (std::size_t round = 0; round < rounds; ++round) {
        Mapping memory(kRegisteredLength);
        const auto name = unique_name("written");
        const auto lh = register_memory(dev, memory.bytes(), name);
        Shared<Signal> running;
        std::vector<Child> users;
        for (std::size_t i = 0; i < 3; ++i) {
            users.emplace_back([&, i] {
                const Device own = device_for(i);
                const auto theirs = own.map(name, LITE_RIGHT_WRITE);
                const std::vector<std::byte> poison(kRegisteredLength, std::byte{0xff});
                running->post();
                Errno e;
                do {
                    e = own(write_args(theirs, 0, poison.data(), i % 2 ? kRegisteredLength : 100));
                } while (e == ok);
                expect_equal(e, err(EIDRM), "the end of it");
            });
        }
        for (std::size_t i = 0; i < users.size(); ++i)
            REQUIRE_NOTHROW(running->wait("the users"));
        dev.free(lh);
        std::memset(memory.data(), 0, memory.size());
        for (auto& user : users)
            REQUIRE_NOTHROW(user.join());
        REQUIRE(std::all_of(memory.bytes().begin(), memory.bytes().end(),
                            [](std::byte b) { return b == std::byte{}; }));
    }
    check_nothing_used();
}
