// SPDX-License-Identifier: MIT
// Mapped LMRs that are changed: moved, resized, renamed; and users that lose their rights.
#include "fixture.hpp"

#include <array>
#include <atomic>

using namespace lite_test;

namespace {

constexpr std::uint64_t kChangedLength = 64 * kPage;
const Identity kBob{1001, 1001};

// An LMR with a range in this node's memory; its home is this node or another one.
struct Here {
    std::string label;
    std::vector<std::uint32_t> nodes;
    std::uint64_t offset;  // of the range at this node, which goes to the end
};

std::vector<Here> heres() {
    return {{"at home here", {env().self}, 0},
            {"at home elsewhere", {env().peer(), env().self}, kChangedLength / 2}};
}

// A handle that Bob has opened. It belongs to the file, which this process has, too.
std::uint64_t map_as_bob(const Device& dev, const std::string& name, std::uint32_t rights) {
    Shared<std::atomic<std::uint64_t>> lh;
    as_user(kBob, [&] { *lh = dev.map(name, rights); });
    return *lh;
}

// The counters of a user of a mapping, which other processes watch.
struct Progress {
    std::atomic<std::uint64_t> stored{0};
    std::atomic<std::uint64_t> faults{0};
};

// Stores growing numbers into a word of its own through the mapping. Checks with READ that stored
// numbers are there, and that those answered with SIGBUS are not.
void count_up(const Device& dev, std::uint64_t lh, const View& view, std::size_t offset,
              Progress& progress, const std::atomic<bool>& stop) {
    std::uint64_t last = 0;
    while (!stop) {
        const std::uint64_t next = last + 1;
        const int got = signal_of([&] { view.word(offset) = next; });
        expect(!got || got == SIGBUS, "a store");
        last = got ? last : next;
        std::uint64_t now = 0;
        dev.read(lh, offset, std::as_writable_bytes(std::span(&now, 1)));
        expect_equal(now, last, "what was stored last");
        ++(got ? progress.faults : progress.stored);
    }
}

}  // namespace

TEST_CASE_METHOD(Mmap, "change: moved away, and back", "[change]") {
    for (const auto& here : heres()) {
        INFO(here.label);
        NamedLmr lmr(dev, kChangedLength, here.nodes);
        const auto size = kChangedLength - here.offset;
        const View view(dev, lmr.lh(), here.offset, size);
        fill_pattern(view.bytes(), 1, here.offset);
        dev.move(lmr.name(), env().peer());
        CHECK(load_signal(view.data()) == SIGBUS);
        CHECK(store_signal(view.data() + size - 1) == SIGBUS);
        CHECK(try_mmap(dev, mmap_args(lmr.lh(), here.offset, size)) == err(EREMOTE));
        std::vector<std::byte> got(size);
        dev.read(lmr.lh(), here.offset, got);
        CHECK_FALSE(find_mismatch(got, 1, here.offset));
        dev.write(lmr.lh(), here.offset, make_pattern(kPage, 2, here.offset));
        // One page of it comes back, then the rest.
        dev.move(lmr.name(), env().self, here.offset + 3 * kPage, kPage);
        CHECK(load_signal(view.data()) == SIGBUS);
        CHECK(load_signal(view.data() + 4 * kPage) == SIGBUS);
        CHECK(load_signal(view.data() + 3 * kPage) == 0);
        CHECK_FALSE(
            find_mismatch(view.bytes().subspan(3 * kPage, kPage), 1, here.offset + 3 * kPage));
        dev.move(lmr.name(), env().self, here.offset);
        CHECK_FALSE(find_mismatch(view.bytes().first(kPage), 2, here.offset));
        CHECK_FALSE(find_mismatch(view.bytes().subspan(kPage), 1, here.offset + kPage));
        view.word(8) = 77;
        std::uint64_t word = 0;
        dev.read(lmr.lh(), here.offset + 8, std::as_writable_bytes(std::span(&word, 1)));
        CHECK(word == 77);
    }
    check_nothing_used();
}

TEST_CASE_METHOD(Mmap, "change: shorter, longer", "[change]") {
    for (const auto& here : heres()) {
        INFO(here.label);
        NamedLmr lmr(dev, kChangedLength, here.nodes);
        const auto size = kChangedLength - here.offset;
        View view(dev, lmr.lh(), here.offset, size);
        std::memset(view.data(), 0x5a, size);
        const std::uint64_t left = 5 * kPage + 100;
        dev.resize(lmr.name(), here.offset + left);
        CHECK(load_signal(view.data() + left - 1) == 0);
        CHECK(load_signal(view.data() + 6 * kPage) == SIGBUS);
        CHECK(store_signal(view.data() + size - 1) == SIGBUS);
        // The rest of the last page can be used, but does not belong to the LMR.
        CHECK(all_are(view.bytes().subspan(left, kPage - 100), std::byte{}));
        std::memset(view.data() + left, 0x77, kPage - 100);
        dev.resize(lmr.name(), here.offset + left + 10);
        CHECK(all_are(view.bytes().subspan(left, kPage - 100), std::byte{}));
        std::memset(view.data() + left, 0x66, 10);
        std::memset(view.data() + left + 10, 0x77, kPage - 110);
        view.unmap();
        dev.resize(lmr.name(), kChangedLength);
        const View again(dev, lmr.lh(), here.offset, size);
        CHECK(again.data()[left - 1] == std::byte{0x5a});
        CHECK(again.data()[left + 9] == std::byte{0x66});
        CHECK(all_are(again.bytes().subspan(left + 10), std::byte{}));
        std::vector<std::byte> got(size);
        const Device other = device_for(1);
        other.read(other.map(lmr.name(), LITE_RIGHT_READ), here.offset, got);
        CHECK(std::equal(got.begin(), got.end(), again.data()));
    }
    check_nothing_used();
}

TEST_CASE_METHOD(Mmap, "change: renamed", "[change]") {
    NamedLmr lmr(dev, kChangedLength);
    const View view(dev, lmr.lh(), 0, kChangedLength);
    view.word(0) = 5;
    const auto other = unique_name("renamed");
    dev.rename(lmr.name(), other);
    CHECK(view.word(0) == 5);
    view.word(0) = 6;
    // Another LMR has the old name now.
    const auto taken = dev.alloc(kChangedLength, {}, lmr.name());
    std::uint64_t word = 1;
    dev.read(taken, 0, std::as_writable_bytes(std::span(&word, 1)));
    CHECK(word == 0);
    dev.free(taken);
    CHECK(view.word(0) == 6);
    dev.rename(other, lmr.name());
    CHECK(view.word(0) == 6);
}

TEST_CASE_METHOD(Mmap, "change: used while it is moved, resized and renamed", "[change]") {
    constexpr std::size_t users = 3;
    const std::size_t rounds = env().scaled(8, 2);
    NamedLmr lmr(dev, kChangedLength);
    std::array<Shared<Progress>, users> progress;
    Shared<std::atomic<bool>> stop;
    std::vector<Child> children;
    for (std::size_t i = 0; i < users; ++i) {
        children.emplace_back([&, i] {
            const Device own(env().indexes.front());
            const auto lh = own.map(lmr.name(), kUse);
            const View view(own, lh, 0, kChangedLength);
            count_up(own, lh, view, (i * 17 + 1) * kPage + 8 * i, *progress[i], *stop);
        });
    }
    const auto all_go_on = [&](std::string_view what, std::atomic<std::uint64_t> Progress::*count) {
        for (auto& each : progress) {
            const auto before = ((*each).*count).load();
            REQUIRE_NOTHROW(wait_until(what, [&] { return ((*each).*count).load() > before + 1; }));
        }
    };
    std::string name = lmr.name();
    for (std::size_t round = 0; round < rounds; ++round) {
        INFO("round " << round);
        all_go_on("stores", &Progress::stored);
        dev.move(name, env().peer());
        all_go_on("SIGBUS", &Progress::faults);
        device_for(1).move(name, env().self);
        all_go_on("stores after it is back", &Progress::stored);
        dev.resize(name, kChangedLength * 2 + 5);
        all_go_on("stores after it grew", &Progress::stored);
        device_for(1).resize(name, kChangedLength - 10);
        all_go_on("stores after it shrank", &Progress::stored);
        dev.resize(name, kChangedLength);
        const auto next = round + 1 == rounds ? lmr.name() : unique_name("renamed");
        if (next != name)
            dev.rename(name, next);
        name = next;
        dev.chmod(name, 0600);
    }
    all_go_on("stores in the end", &Progress::stored);
    *stop = true;
    for (auto& child : children)
        REQUIRE_NOTHROW(child.join());
    dev.free(lmr.name());
    check_nothing_used();
}

TEST_CASE_METHOD(Mmap, "change: rights that are taken away", "[change]") {
    for (const auto& here : heres()) {
        INFO(here.label);
        NamedLmr lmr(dev, kChangedLength, here.nodes, 0);
        constexpr auto both = LITE_RIGHT_READ | LITE_RIGHT_WRITE;
        dev.grant(lmr.name(), kBob.uid, 0, both);
        const auto lh = map_as_bob(dev, lmr.name(), both);
        const View view(dev, lh, here.offset, kPage);
        const View shut(dev, lh, here.offset, kPage);
        const View reader(dev, lh, here.offset, kPage, LITE_PROT_READ);
        CHECK(store_signal(view.data()) == 0);
        CHECK(store_signal(shut.data()) == 0);
        REQUIRE(::mprotect(shut.data(), kPage, PROT_READ) == 0);
        CHECK(load_signal(reader.data()) == 0);

        device_for(1).grant(lmr.name(), kBob.uid, 0, LITE_RIGHT_READ);
        // The mapping has fewer rights than it was made with. That counts, whatever its protection
        // is now or was.
        CHECK(load_signal(view.data()) == SIGBUS);
        CHECK(store_signal(view.data()) == SIGBUS);
        CHECK(load_signal(shut.data()) == SIGBUS);
        REQUIRE(::mprotect(shut.data(), kPage, PROT_READ | PROT_WRITE) == 0);
        CHECK(store_signal(shut.data()) == SIGBUS);
        CHECK(load_signal(reader.data()) == 0);
        CHECK(reader.data()[0] == std::byte{0xff});
        CHECK(store_signal(reader.data()) == SIGSEGV);
        CHECK(::mprotect(reader.data(), kPage, PROT_READ | PROT_WRITE) == -1);
        CHECK(errno == EACCES);
        CHECK(try_mmap(dev, mmap_args(lh, here.offset, kPage)) == err(EACCES));

        // The same handle does not regain a right that it has lost.
        dev.grant(lmr.name(), kBob.uid, 0, both);
        CHECK(load_signal(view.data()) == SIGBUS);
        CHECK(load_signal(reader.data()) == 0);
        dev.grant(lmr.name(), kBob.uid, 0, 0);
        CHECK(load_signal(reader.data()) == SIGBUS);
    }
    check_nothing_used();
}

TEST_CASE_METHOD(Mmap, "change: a right is taken away while it is used", "[change]") {
    const std::size_t rounds = env().scaled(15, 3);
    for (std::size_t round = 0; round < rounds; ++round) {
        const auto all = heres();
        const auto& here = all[round % all.size()];
        INFO("round " << round << ", " << here.label);
        NamedLmr lmr(dev, kChangedLength, here.nodes, 0);
        dev.grant(lmr.name(), kBob.uid, 0, LITE_RIGHT_READ | LITE_RIGHT_WRITE);
        const auto size = kChangedLength - here.offset;
        Shared<Signal> running;
        std::vector<Child> users;
        for (std::size_t i = 0; i < 3; ++i) {
            users.emplace_back([&, i] {
                become(kBob);
                const Device own(env().indexes.front());
                const View view(own, own.map(lmr.name(), LITE_RIGHT_READ | LITE_RIGHT_WRITE),
                                here.offset, size);
                const std::span<volatile std::byte> bytes(view.data(), size);
                bytes[0] = std::byte{0xff};
                running->post();
                bool seen = false;
                const int got = signal_of([&] {
                    for (std::size_t at = i * 4099;; at = (at + 61) % size) {
                        if (i % 2)
                            bytes[at] = std::byte{0xff};
                        else if (bytes[at] == std::byte{0xc3}) {
                            seen = true;
                            return;
                        }
                    }
                });
                expect(!seen, "what was written when the right was gone was seen");
                expect_equal(got, SIGBUS, "the end of it");
            });
        }
        for (std::size_t i = 0; i < users.size(); ++i)
            REQUIRE_NOTHROW(running->wait("the users"));
        device_for(round).grant(lmr.name(), kBob.uid, 0, 0);
        const std::vector<std::byte> canary(size, std::byte{0xc3});
        dev.write(lmr.lh(), here.offset, canary);
        for (auto& user : users)
            REQUIRE_NOTHROW(user.join());
        std::vector<std::byte> got(size);
        dev.read(lmr.lh(), here.offset, got);
        REQUIRE(got == canary);
    }
    check_nothing_used();
}
