// SPDX-License-Identifier: MIT
// Which objects outlive others: LMRs, handles, files, processes.
#include "fixture.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <optional>

using namespace lite_test;

namespace {

constexpr std::uint64_t kOwnedLength = 300000;

struct Owners : LifeEverywhere {
    // If all memory is at this node, it is free when close(2) returns. Other nodes are told, and
    // close(2) does not wait for them.
    void check_gone(std::size_t before) const {
        if (where.nodes == std::vector{env().self})
            CHECK(anonymous_lmrs(dev) == before);
        REQUIRE_NOTHROW(
            wait_until("the LMR is gone", [&] { return anonymous_lmrs(dev) == before; }));
        check_nothing_used();
    }
};

// Sends a descriptor with one byte.
void pass_on(int socket, int fd) {
    char byte = 0;
    iovec data{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(fd))> control{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(fd));
    std::memcpy(CMSG_DATA(head), &fd, sizeof(fd));
    expect_equal(::sendmsg(socket, &message, 0), 1, "sendmsg");
}

}  // namespace

TEST_CASE_METHOD(LifeEverywhere, "owners: a named LMR outlives its maker, contents and all",
                 "[owners]") {
    INFO(where.label);
    const auto name = unique_name("outlives");
    REQUIRE_NOTHROW(in_child([&] {
        const Device own(env().indexes.front());
        own.write(own.alloc(kOwnedLength, where.nodes, name), 0, make_pattern(kOwnedLength, 1));
    }));
    REQUIRE_NOTHROW(in_child([&] {
        const Device other = device_for(1);
        std::vector<std::byte> back(kOwnedLength);
        other.read(other.map(name, LITE_RIGHT_READ), 0, back);
        expect(!find_mismatch(back, 1), "contents");
    }));
    dev.free(name);
    check_nothing_used();
}

TEST_CASE_METHOD(LifeEverywhere, "owners: a named LMR outlives a killed maker", "[owners]") {
    INFO(where.label);
    const auto name = unique_name("killed");
    Shared<Signal> made;
    Child maker([&] {
        const Device own(env().indexes.front());
        own.write(own.alloc(kOwnedLength, where.nodes, name), 0, make_pattern(kOwnedLength, 2));
        made->post();
        ::pause();
    });
    made->wait("the LMR");
    maker.kill(SIGKILL);
    CHECK(maker.wait() == "killed by signal Killed");
    std::vector<std::byte> back(kOwnedLength);
    dev.read(dev.map(name, LITE_RIGHT_READ), 0, back);
    CHECK(find_mismatch(back, 2) == std::nullopt);
    dev.free(name);
    check_nothing_used();
}

TEST_CASE_METHOD(Owners, "owners: an anonymous LMR dies with its file", "[owners]") {
    INFO(where.label);
    const auto before = anonymous_lmrs(dev);
    Device own(env().indexes.front());
    (void)own.alloc(kOwnedLength, where.nodes);
    CHECK(anonymous_lmrs(dev) == before + 1);
    own.close();
    check_gone(before);
}

TEST_CASE_METHOD(LifeEverywhere, "owners: an anonymous LMR dies with its killed process",
                 "[owners]") {
    INFO(where.label);
    const auto before = anonymous_lmrs(dev);
    Shared<Signal> made;
    Child maker([&] {
        const Device own(env().indexes.front());
        for (int i = 0; i < 5; ++i)
            (void)own.alloc(kOwnedLength, where.nodes);
        made->post();
        ::pause();
    });
    made->wait("the LMRs");
    CHECK(anonymous_lmrs(dev) == before + 5);
    maker.kill(SIGKILL);
    (void)maker.wait();
    REQUIRE_NOTHROW(wait_until("they are gone", [&] { return anonymous_lmrs(dev) == before; }));
    check_nothing_used();
}

TEST_CASE_METHOD(Owners, "owners: an anonymous LMR without its handle still dies with the file",
                 "[owners]") {
    INFO(where.label);
    const auto before = anonymous_lmrs(dev);
    Device own(env().indexes.front());
    own.unmap(own.alloc(kOwnedLength, where.nodes));
    own.close();
    check_gone(before);
}

TEST_CASE_METHOD(Life, "owners: a file that a child inherited lives as long as either",
                 "[owners]") {
    Device own(env().indexes.front());
    const auto lh = own.alloc(kOwnedLength);
    Shared<Signal> parent_closed;
    Child child([&] {
        parent_closed->wait("the parent's close");
        expect_equal(own.fetch_add(lh, 0, 1), 7U, "value through the inherited handle");
    });
    (void)own.fetch_add(lh, 0, 7);
    own.close();
    parent_closed->post();
    REQUIRE_NOTHROW(child.join());
    check_nothing_used();
}

TEST_CASE_METHOD(Life, "owners: a child's new handles are the parent's, too", "[owners]") {
    Shared<std::atomic<std::uint64_t>> made;
    REQUIRE_NOTHROW(in_child([&] { *made = dev.alloc(kOwnedLength); }));
    CHECK(dev.fetch_add(*made, 0, 3) == 0);
    REQUIRE_NOTHROW(in_child([&] { dev.unmap(*made); }));
    CHECK(dev(fetch_add_args(*made, 0, 1)) == err(EBADF));
}

TEST_CASE_METHOD(Life, "owners: dup(2)ed descriptors are one file", "[owners]") {
    Device own(env().indexes.front());
    const auto lh = own.alloc(kOwnedLength);
    const int copy = ::dup(own.fd());
    REQUIRE(copy >= 0);
    own.close();
    CHECK(dev.query().mem_used > 0);
    (void)lh;
    ::close(copy);
    check_nothing_used();
}

TEST_CASE_METHOD(LifeEverywhere, "owners: handles of a killed process do not count as mappers",
                 "[owners]") {
    INFO(where.label);
    NamedLmr lmr(dev, kOwnedLength, where.nodes, 0666);
    Shared<Signal> mapped;
    std::vector<Child> users;
    for (std::size_t i = 0; i < 4; ++i) {
        users.emplace_back([&, i] {
            const Device own = device_for(i);
            for (int n = 0; n < 10; ++n)
                (void)own.map(lmr.name());
            mapped->post();
            ::pause();
        });
    }
    for (std::size_t i = 0; i < users.size(); ++i)
        mapped->wait("the handles");
    const auto with = dev.stat(lmr.name()).n_mappers;
    CHECK(with == std::min<std::size_t>(4, env().indexes.size()));
    for (auto& user : users) {
        user.kill(SIGKILL);
        (void)user.wait();
    }
    // Only this process's own handle is left.
    REQUIRE_NOTHROW(
        wait_until("the mappings are gone", [&] { return dev.stat(lmr.name()).n_mappers == 1; }));
}

TEST_CASE_METHOD(LifeSomewhere, "owners: many files and handles, closed in one go", "[owners]") {
    INFO(where.label);
    NamedLmr lmr(dev, kPage, where.nodes, 0666);
    REQUIRE_NOTHROW(in_child([&] {
        std::vector<Device> files;
        for (std::size_t i = 0; i < env().scaled(24, 8); ++i) {
            files.push_back(device_for(i));
            for (std::size_t n = 0; n < env().scaled(24, 8); ++n)
                (void)files.back().map(lmr.name());
        }
        // No unmap, no close: the exit does both.
    }));
    REQUIRE_NOTHROW(
        wait_until("the mappings are gone", [&] { return dev.stat(lmr.name()).n_mappers == 1; }));
}

TEST_CASE_METHOD(Life, "owners: a file that a user passes on is not waited for by others",
                 "[.][passed]") {
    // The home answers no UNMAP meanwhile, so none of these files is closed soon: a user's own
    // close waits for a while. The reader of a message drops the file that came with it.
    using Clock = std::chrono::steady_clock;
    Shared<Clock::duration> own_close;
    REQUIRE_NOTHROW(in_child([&] {
        become({2000, 2000});
        std::optional<Device> own(env().indexes.front());
        own->alloc(kOwnedLength, std::vector{env().peer()});
        const auto begun = Clock::now();
        own.reset();
        *own_close = Clock::now() - begun;
    }));
    auto least = Clock::duration::max();
    for (const uid_t uid : {2001U, 2002U, 2003U}) {
        std::array<int, 2> ends{};
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
        REQUIRE_NOTHROW(in_child([&] {
            become({uid, uid});
            const Device own(env().indexes.front());
            own.alloc(kOwnedLength, std::vector{env().peer()});
            pass_on(ends[0], own.fd());
        }));
        char byte = 1;
        const auto begun = Clock::now();
        REQUIRE(::read(ends[1], &byte, 1) == 1);
        least = std::min(least, Clock::now() - begun);
        ::close(ends[0]);
        ::close(ends[1]);
    }
    CHECK(2 * least < *own_close);
}
