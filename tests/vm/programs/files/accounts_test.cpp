// SPDX-License-Identifier: MIT
// What others see of a transfer: notifications of the file, and what the kernel counts for the
// thread, all as with sendfile(2).
#include "fixture.hpp"

#include <sys/inotify.h>
#include <sys/sendfile.h>

#include <array>
#include <charconv>
#include <functional>
#include <ostream>
#include <string_view>
#include <utility>

using namespace lite_test;

namespace {

constexpr std::uint64_t kCountedLength = 5 << 18;  // more than a set

class Watch {
  public:
    explicit Watch(const File& file) : fd_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
        const auto path = "/proc/self/fd/" + std::to_string(file.fd());
        expect(::inotify_add_watch(fd_.fd(), path.c_str(), IN_ACCESS | IN_MODIFY) >= 0, "a watch");
    }

    // What has happened since the last call.
    std::uint32_t seen() {
        alignas(inotify_event) std::array<char, 4096> events{};
        const auto n = ::read(fd_.fd(), events.data(), events.size());
        std::uint32_t all = 0;
        for (ssize_t at = 0; at < n; at += static_cast<ssize_t>(sizeof(inotify_event))) {
            inotify_event event{};  // without a name: no directory is watched
            std::memcpy(&event, events.data() + at, sizeof(event));
            all |= event.mask;
        }
        return all;
    }

  private:
    File fd_;
};

struct Counts {
    std::uint64_t rchar, wchar, syscr, syscw;
    bool operator==(const Counts&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Counts& c) {
    return out << c.rchar << " read, " << c.wchar << " written, by " << c.syscr << " and "
               << c.syscw << " calls";
}

// Of this thread, and the bytes of the read(2) that it takes to know them, which counts afterwards.
std::pair<Counts, std::uint64_t> counts() {
    const File file("/proc/thread-self/io", O_RDONLY);
    std::array<char, 512> text{};
    const auto n = ::read(file.fd(), text.data(), text.size() - 1);
    expect(n > 0, "counts");
    const auto value = [&](std::string_view name) {
        std::uint64_t number = 0;
        const char* at = std::strstr(text.data(), name.data());
        expect(at, name);
        std::from_chars(at + name.size(), text.data() + n, number);
        return number;
    };
    return {{value("rchar: "), value("wchar: "), value("syscr: "), value("syscw: ")},
            static_cast<std::uint64_t>(n)};
}

// What @body adds.
Counts taken(const std::function<void()>& body) {
    const auto [before, own] = counts();
    body();
    const auto after = counts().first;
    return {after.rchar - before.rchar - own, after.wchar - before.wchar,
            after.syscr - before.syscr - 1, after.syscw - before.syscw};
}

}  // namespace

TEST_CASE_METHOD(FilesEverywhere, "accounts: notifications", "[transfers]") {
    const auto lh = dev.alloc(kCountedLength, std::vector{env().peer()});
    const File file = make_file(directory);
    file.write(0, make_pattern(kCountedLength, 1));
    Watch watch(file);
    REQUIRE(send(dev, lh, 0, file, 0, kAll).bytes == kCountedLength);
    REQUIRE(watch.seen() == IN_ACCESS);
    REQUIRE(receive(dev, lh, 0, file, 0, kAll).bytes == kCountedLength);
    REQUIRE(watch.seen() == IN_MODIFY);
    REQUIRE(send(dev, lh, 0, file, kCountedLength, kAll).bytes == 0);
    REQUIRE(watch.seen() == 0);
}

TEST_CASE_METHOD(Files, "accounts: bytes and calls, beside sendfile(2)", "[transfers]") {
    if (::access("/proc/thread-self/io", R_OK))  // the debug kernels
        return;
    const auto lh = dev.alloc(kCountedLength, std::vector{env().peer()});
    const File from = make_file("/tmp");
    from.write(0, make_pattern(kCountedLength, 1));
    const File to = make_file(kMemfd);
    // Some bytes, none after the end of the file, and none as the target may not be written to.
    for (const auto at : {std::uint64_t{0}, kCountedLength - 5000, kCountedLength}) {
        INFO(at);
        const auto moved = kCountedLength - at;
        const auto wanted = taken([&] {
            off_t offset = static_cast<off_t>(at);
            expect_equal(::sendfile(to.fd(), from.fd(), &offset, kCountedLength),
                         static_cast<ssize_t>(moved), "sendfile");
        });
        REQUIRE(wanted == Counts{moved, moved, 1, 1});
        REQUIRE(taken([&] {
                    expect_equal(send(dev, lh, 0, from, at, kAll).bytes, moved, "sent");
                }) == wanted);
        REQUIRE(taken([&] {
                    expect_equal(receive(dev, lh, at, to, 0, kAll).bytes, moved, "received");
                }) == wanted);
    }
    REQUIRE(::fcntl(to.fd(), F_ADD_SEALS, F_SEAL_WRITE) == 0);
    const auto wanted = taken([&] {
        off_t offset = 0;
        ::lseek(to.fd(), 0, SEEK_SET);
        expect_equal(::sendfile(to.fd(), from.fd(), &offset, kCountedLength), ssize_t{-1},
                     "sendfile");
    });
    REQUIRE(wanted == Counts{0, 0, 1, 1});
    REQUIRE(taken([&] {
                expect(receive(dev, lh, 0, to, 0, kAll).error == err(EPERM), "refused");
            }) == wanted);
}
