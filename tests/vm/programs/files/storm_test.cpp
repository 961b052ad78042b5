// SPDX-License-Identifier: MIT
// Files that change while they are moved, processes and nodes that die meanwhile, and files that
// can be read only when another process permits it.
#include "fixture.hpp"

#include <sys/fanotify.h>

#include <poll.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>

using namespace lite_test;

namespace {

constexpr std::uint64_t kStormLength = 3 << 18;

// Truncates, punches and fills the file, and evicts its pages.
void change(const File& file, std::uint64_t seed, std::mt19937_64& random) {
    const auto at = random() % kStormLength;
    const auto length = std::min<std::uint64_t>(random() % 100000 + 1, kStormLength - at);
    switch (random() % 5) {
        case 0:
            file.resize(at);
            break;
        case 1:
            ::fallocate(file.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        static_cast<off_t>(at), static_cast<off_t>(length));
            break;
        case 2:
            evict(file);
            break;
        default:
            file.write(at, make_pattern(length, seed, at));
            break;
    }
}

// Every byte is what was once written there, or zero. Most blocks are one or the other, which is
// quicker to see.
bool is_old_or_zero(std::span<const std::byte> got, std::uint64_t seed) {
    constexpr std::size_t block = 512;
    const auto pattern = make_pattern(got.size(), seed);
    for (std::size_t at = 0; at < got.size(); at += block) {
        const auto part = got.subspan(at, std::min(block, got.size() - at));
        const auto wanted = std::span(pattern).subspan(at, part.size());
        if (!std::memcmp(part.data(), wanted.data(), part.size()) || all_are(part, std::byte{}))
            continue;
        if (!std::equal(part.begin(), part.end(), wanted.begin(), [](std::byte have, auto want) {
                return have == want || have == std::byte{};
            }))
            return false;
    }
    return true;
}

// As move(); meanwhile another thread calls @disturb with 0, 1, 2, ...
Moved move_in_storm(const Device& dev, unsigned long request, const lite_ioc_file& args,
                    const std::function<void(int)>& disturb) {
    std::atomic<bool> over = false;
    Threads threads;
    threads.start([&] {
        int round = 0;
        do
            disturb(round++);
        while (!over);
    });
    const auto moved = move(dev, request, args);
    over = true;
    threads.join();
    return moved;
}

}  // namespace

TEST_CASE_METHOD(FilesEverywhere, "storm: a file that changes while it is sent", "[storm]") {
    const auto seed = env().seed + 20;
    const auto lh = dev.alloc(kStormLength, std::vector{env().peer()});
    const File file = make_file(directory);
    file.write(0, make_pattern(kStormLength, seed));
    std::mt19937_64 changes(seed);
    std::mt19937_64 random(seed + 1);
    for (std::size_t i = 0; i < env().scaled(60, 6); ++i) {
        auto args = file_args(lh, 0, file.fd(), 0, kAll);
        args.pages = static_cast<__u32>(1 + random() % 128);
        args.sets = static_cast<__u32>(1 + random() % 4);
        const auto moved =
            move_in_storm(dev, LITE_IOC_SENDFILE, args, [&](int) { change(file, seed, changes); });
        INFO(directory << ", " << args.sets << " sets of " << args.pages << " pages");
        REQUIRE(moved.error == ok);
        REQUIRE(moved.bytes <= kStormLength);
        REQUIRE(is_old_or_zero(read_lmr(dev, lh, 0, moved.bytes), seed));
    }
}

TEST_CASE_METHOD(FilesEverywhere, "storm: a file that changes while it is received", "[storm]") {
    const auto seed = env().seed + 30;
    const auto lh = dev.alloc(kStormLength, std::vector{env().peer()});
    dev.write(lh, 0, make_pattern(kStormLength, seed));
    std::mt19937_64 changes(seed);
    std::mt19937_64 random(seed + 1);
    for (std::size_t i = 0; i < env().scaled(20, 3); ++i) {
        // A file with a name, except for a memfd: one that is removed meanwhile.
        const auto path = directory + "/" + unique_name("received");
        const bool named = directory != kMemfd;
        const File file = named ? File(path, O_RDWR | O_CREAT) : make_file(directory);
        auto args = file_args(lh, 0, file.fd(), 0, kAll);
        args.pages = static_cast<__u32>(1 + random() % 128);
        args.sets = static_cast<__u32>(1 + random() % 4);
        const auto moved = move_in_storm(dev, LITE_IOC_RECVFILE, args, [&](int round) {
            if (round == 3 && named)
                ::unlink(path.c_str());
            change(file, seed, changes);
        });
        ::unlink(path.c_str());
        INFO(directory << ", " << args.sets << " sets of " << args.pages << " pages");
        REQUIRE(moved.error == ok);
        REQUIRE(moved.bytes == kStormLength);
        REQUIRE(file.size() <= kStormLength);
        REQUIRE(is_old_or_zero(file.read(0, file.size()), seed));
        REQUIRE(receive(dev, lh, 0, file, 0, kAll).bytes == kStormLength);
        REQUIRE(!find_mismatch(file.read(0, kStormLength), seed));
    }
}

TEST_CASE_METHOD(FilesEverywhere, "storm: a file that gets other names", "[storm]") {
    if (directory == kMemfd)  // it has none
        return;
    const auto lh = dev.alloc(2 * kStormLength, std::vector{env().peer()});
    const std::array names{directory + "/" + unique_name("renamed"),
                           directory + "/" + unique_name("renamed")};
    const File from(names[0], O_RDWR | O_CREAT);
    const File to(names[1], O_RDWR | O_CREAT);
    from.write(0, make_pattern(kStormLength, 1));
    dev.write(lh, kStormLength, make_pattern(kStormLength, 2));
    // They change places, and each replaces another file.
    const auto spare = directory + "/" + unique_name("renamed");
    const auto change_places = [&](int) {
        expect_equal(::rename(names[0].c_str(), spare.c_str()), 0, "rename");
        expect_equal(::rename(names[1].c_str(), names[0].c_str()), 0, "rename");
        { const File replaced(names[1], O_RDWR | O_CREAT); }
        expect_equal(::rename(spare.c_str(), names[1].c_str()), 0, "rename");
    };
    for (std::size_t i = 0; i < env().scaled(40, 4); ++i) {
        INFO(directory << ", number " << i);
        auto args = file_args(lh, 0, from.fd(), 0, kAll);
        args.pages = static_cast<__u32>(17 + 13 * i);
        args.sets = 3;
        auto moved = move_in_storm(dev, LITE_IOC_SENDFILE, args, change_places);
        REQUIRE(moved.bytes == kStormLength);
        REQUIRE(!find_mismatch(read_lmr(dev, lh, 0, kStormLength), 1));
        args.offset = kStormLength;
        args.fd = to.fd();
        moved = move_in_storm(dev, LITE_IOC_RECVFILE, args, change_places);
        REQUIRE(moved.bytes == kStormLength);
        REQUIRE(!find_mismatch(to.read(0, kStormLength), 2));
    }
    for (const auto& name : names)
        ::unlink(name.c_str());
    REQUIRE(!find_mismatch(from.read(0, kStormLength), 1));
}

TEST_CASE_METHOD(FilesEverywhere, "storm: processes that are killed", "[storm]") {
    const auto lh = dev.alloc(kStormLength, std::vector{env().peer()});
    const File from = make_file(directory);
    from.write(0, make_pattern(kStormLength, 1));
    std::mt19937_64 random(env().seed);
    for (std::size_t i = 0; i < env().scaled(40, 6); ++i) {
        Shared<Signal> running;
        const Child child([&, i] {
            const File to = make_file(directory);
            for (;;) {
                auto args = file_args(lh, 0, i % 2 ? from.fd() : to.fd(), 0, kAll);
                args.pages = 32;
                args.sets = 4;
                move(dev, i % 2 ? LITE_IOC_SENDFILE : LITE_IOC_RECVFILE, args);
                running->post();
            }
        });
        running->wait("the first transfer");
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
        child.kill(SIGKILL);
    }
    if (directory.rfind("/tmp", 0) != 0)  // files of tmpfs are not evicted
        wait_until("the pages are released", [&] { return is_released(from); });
    // The LMR and the file are as usable as before.
    REQUIRE(send(dev, lh, 0, from, 0, kAll).bytes == kStormLength);
    REQUIRE(!find_mismatch(read_lmr(dev, lh, 0, kStormLength), 1));
}

TEST_CASE_METHOD(Files, "storm: a file that another process keeps from being read", "[storm]") {
    // A listener of fanotify has to permit each read. While it does not answer, the sender holds no
    // LMR: that can be freed.
    const int listener = ::fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY);
    if (listener < 0 && errno == ENOSYS)  // the debug kernels
        return;
    REQUIRE(listener >= 0);
    const File events(listener);
    const auto path = "/tmp/" + unique_name("watched");
    const File file(path, O_RDWR | O_CREAT);
    file.write(0, make_pattern(kStormLength, 1));
    const NamedLmr lmr(dev, kStormLength, std::vector{env().peer()});
    REQUIRE(::fanotify_mark(listener, FAN_MARK_ADD, FAN_ACCESS_PERM, AT_FDCWD, path.c_str()) == 0);

    const auto permit = [&] {
        pollfd ready{.fd = listener, .events = POLLIN, .revents = 0};
        expect_equal(::poll(&ready, 1, static_cast<int>(patience().count())), 1, "an event");
        fanotify_event_metadata event{};
        expect(::read(listener, &event, sizeof(event)) >= static_cast<ssize_t>(sizeof(event)),
               "read an event");
        return event.fd;
    };
    const auto answer = [&](int fd) {
        const fanotify_response response{.fd = fd, .response = FAN_ALLOW};
        expect_equal(::write(listener, &response, sizeof(response)),
                     static_cast<ssize_t>(sizeof(response)), "answer");
        ::close(fd);
    };
    std::atomic<bool> over = false;
    Moved moved{};
    Threads threads;
    threads.start([&] {
        const File own(path, O_RDONLY);
        auto args = file_args(lmr.lh(), 0, own.fd(), 0, kAll);
        args.pages = 16;
        args.sets = 3;
        moved = move(dev, LITE_IOC_SENDFILE, args);
        over = true;
    });
    // Some sets go through, so others are in flight when the next read waits.
    for (int i = 0; i < 6; ++i)
        answer(permit());
    const int waiting = permit();
    dev.free(lmr.name());
    REQUIRE(!over);
    answer(waiting);
    ::fanotify_mark(listener, FAN_MARK_FLUSH, 0, AT_FDCWD, nullptr);
    pollfd ready{.fd = listener, .events = POLLIN, .revents = 0};
    while (!over) {
        if (::poll(&ready, 1, 10) == 1)
            answer(permit());
    }
    threads.join();
    ::unlink(path.c_str());
    // What was moved before counts; then the LMR was gone.
    REQUIRE((moved.error == ok || moved.error == err(EIDRM)));
    REQUIRE(moved.bytes < kStormLength);
}

TEST_CASE_METHOD(Files, "storm: until the receiver dies", "[.death]") {
    const char* name = std::getenv("LITE_TEST_LMR");
    REQUIRE(name);
    const auto lh = dev.map(name);
    const File file = make_file(directories().back());
    file.write(0, make_pattern(kStormLength, 1));
    Moved moved{};
    for (bool first = true; moved.error == ok; first = false) {
        auto args = file_args(lh, 0, file.fd(), 0, kAll);
        args.pages = 64;
        args.sets = 4;
        moved = move(dev, LITE_IOC_SENDFILE, args);
        if (first) {
            std::printf("sending\n");
            std::fflush(stdout);
        }
    }
    INFO(moved.error);
    REQUIRE((moved.error == err(EHOSTDOWN) || moved.error == err(ETIMEDOUT)));
    REQUIRE(!find_mismatch(file.read(0, kStormLength), 1));
}

TEST_CASE_METHOD(Files, "storm: until the source dies", "[.source]") {
    const char* name = std::getenv("LITE_TEST_LMR");
    REQUIRE(name);
    const auto lh = dev.map(name);
    dev.write(lh, 0, make_pattern(kStormLength, 1));
    const File file = make_file(directories().back());
    Moved moved{};
    for (bool first = true; moved.error == ok; first = false) {
        file.resize(0);
        auto args = file_args(lh, 0, file.fd(), 0, kStormLength);
        args.pages = 64;
        args.sets = 4;
        moved = move(dev, LITE_IOC_RECVFILE, args);
        // Also of what was moved before it died.
        const auto bytes = moved.error == ok ? moved.bytes : 0;
        REQUIRE(bytes <= kStormLength);
        REQUIRE(file.size() == bytes);
        REQUIRE(!find_mismatch(file.read(0, bytes), 1));
        if (first) {
            std::printf("receiving\n");
            std::fflush(stdout);
        }
    }
    INFO(moved.error);
    REQUIRE((moved.error == err(EHOSTDOWN) || moved.error == err(ETIMEDOUT)));
}

TEST_CASE_METHOD(Files, "storm: a file larger than the memory", "[.pressure]") {
    const char* name = std::getenv("LITE_TEST_LMR");
    REQUIRE(name);
    const auto lh = dev.map(name);
    constexpr std::uint64_t kPart = 8 << 20;
    constexpr std::uint64_t kParts = 128;
    const File file = make_file(directories().back());
    for (std::uint64_t part = 0; part < kParts; ++part)
        file.write(part * kPart, make_pattern(kPart, 1, part * kPart));
    for (std::uint64_t part = 0; part < kParts; ++part) {
        INFO(part);
        REQUIRE(send(dev, lh, 0, file, part * kPart, kPart).bytes == kPart);
        REQUIRE(!find_mismatch(read_lmr(dev, lh, 0, kPart), 1, part * kPart));
    }
    // And back, over what is there.
    dev.write(lh, 0, make_pattern(kPart, 2));
    for (std::uint64_t part = 0; part < kParts; ++part)
        REQUIRE(receive(dev, lh, 0, file, part * kPart, kPart).bytes == kPart);
    for (std::uint64_t part = 0; part < kParts; ++part)
        REQUIRE(!find_mismatch(file.read(part * kPart, kPart), 2));
}
