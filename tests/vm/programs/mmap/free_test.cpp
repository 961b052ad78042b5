// SPDX-License-Identifier: MIT
// Freeing LMRs that are mapped, and pages that a process has pinned: users get SIGBUS, and never
// see memory of another LMR.
#include "fixture.hpp"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

using namespace lite_test;

namespace {

constexpr std::uint64_t kFreedLength = 3 * kHugePage + 5 * kPage;

// Allocates until a node's free memory has been reused: a process that still had old pages would
// show in these LMRs. All bytes are @value.
class Refill {
  public:
    Refill(const Device& dev, std::size_t lmrs, std::uint64_t length, std::byte value)
        : dev_(dev), length_(length), value_(value) {
        const std::vector<std::byte> bytes(length, value);
        for (std::size_t i = 0; i < lmrs; ++i) {
            lhs_.push_back(dev.alloc(length));
            dev.write(lhs_.back(), 0, bytes);
        }
    }
    ~Refill() {
        for (const auto lh : lhs_)
            (void)dev_(free_args(lh));
    }
    Refill(const Refill&) = delete;
    Refill& operator=(const Refill&) = delete;

    bool untouched() const {
        std::vector<std::byte> bytes(length_);
        for (const auto lh : lhs_) {
            dev_.read(lh, 0, bytes);
            if (!all_are(bytes, value_))
                return false;
        }
        return true;
    }

  private:
    const Device& dev_;
    std::uint64_t length_;
    std::byte value_;
    std::vector<std::uint64_t> lhs_;
};

}  // namespace

TEST_CASE_METHOD(Mmap, "free: SIGBUS, and EFAULT for the kernel", "[free]") {
    NamedLmr lmr(dev, kFreedLength);
    const View view(dev, lmr.lh(), 0, kFreedLength);
    const View reader(dev, lmr.lh(), kPage, kPage, LITE_PROT_READ);
    std::memset(view.data(), 0x5a, view.size());
    REQUIRE(reader.data()[0] == std::byte{0x5a});
    // Freed by another file, at another node.
    device_for(1).free(lmr.name());
    for (const std::size_t at : {std::size_t{0}, kHugePage - 1, 2 * kHugePage, view.size() - 1}) {
        CHECK(load_signal(view.data() + at) == SIGBUS);
        CHECK(store_signal(view.data() + at) == SIGBUS);
    }
    CHECK(load_signal(reader.data()) == SIGBUS);
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    CHECK(::write(ends[1], view.data(), 100) == -1);
    CHECK(errno == EFAULT);
    REQUIRE(::write(ends[1], "x", 1) == 1);
    CHECK(::read(ends[0], view.data(), 1) == -1);
    CHECK(errno == EFAULT);
    ::close(ends[0]);
    ::close(ends[1]);
    // The memory is freed although the mapping still exists.
    check_nothing_used();
}

TEST_CASE_METHOD(Mmap, "free: memory that is reused stays untouched and unseen", "[free]") {
    const std::size_t rounds = env().scaled(15, 3);
    for (std::size_t round = 0; round < rounds; ++round) {
        NamedLmr lmr(dev, kFreedLength);
        dev.write(lmr.lh(), 0, std::vector<std::byte>(kFreedLength, std::byte{0x11}));
        Shared<Signal> running;
        std::vector<Child> users;
        for (std::size_t i = 0; i < 4; ++i) {
            users.emplace_back([&, i] {
                const Device own(env().indexes.front());
                const View view(own, own.map(lmr.name(), kUse), 0, kFreedLength);
                const std::span<volatile std::byte> bytes(view.data(), kFreedLength);
                bool wrong = false;
                running->post();
                std::size_t at = i * 4099;
                // 0x11 is the LMR's own value, 0xff the users': any other value comes from another
                // LMR.
                const int got = signal_of([&] {
                    for (;; at = (at + 61) % kFreedLength) {
                        if (i % 2) {
                            bytes[at] = std::byte{0xff};
                        } else if (bytes[at] != std::byte{0x11} && bytes[at] != std::byte{0xff}) {
                            wrong = true;
                            return;
                        }
                    }
                });
                expect(!wrong, "memory of another LMR was seen");
                expect_equal(got, SIGBUS, "the end of it");
            });
        }
        for (std::size_t i = 0; i < users.size(); ++i)
            REQUIRE_NOTHROW(running->wait("the users"));
        if (round % 2)
            device_for(1).free(lmr.name());
        else
            dev.free(lmr.lh());
        const Refill canaries(dev, 2, kFreedLength, std::byte{0xc3});
        for (auto& user : users)
            REQUIRE_NOTHROW(user.join());
        REQUIRE(canaries.untouched());
    }
    check_nothing_used();
}

TEST_CASE_METHOD(Mmap, "free: pages in a pipe are not reused before they are read", "[free]") {
    constexpr std::size_t pages = 8;
    NamedLmr lmr(dev, kFreedLength);
    const View view(dev, lmr.lh(), 0, kFreedLength);
    std::memset(view.data(), 0x77, view.size());
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const iovec iov{view.data() + kHugePage, pages * kPage};
    REQUIRE(::vmsplice(ends[1], &iov, 1, 0) == static_cast<ssize_t>(pages * kPage));
    dev.free(lmr.lh());
    const Refill others(dev, 3, kFreedLength, std::byte{0xc3});
    std::vector<std::byte> got(pages * kPage);
    for (std::size_t n = 0; n < got.size();) {
        const ssize_t part = ::read(ends[0], got.data() + n, got.size() - n);
        REQUIRE(part > 0);
        n += static_cast<std::size_t>(part);
    }
    CHECK(all_are(got, std::byte{0x77}));
    CHECK(others.untouched());
    ::close(ends[0]);
    ::close(ends[1]);
}
