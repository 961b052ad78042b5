// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <stdexcept>
#include <vector>
#include "catch.hpp"

#include "fake_transport.hpp"
#include "file/file_mover.hpp"
#include "file/processor.hpp"
#include "file/sample_file.hpp"
#include "net.hpp"

using namespace perf;

namespace {

constexpr std::uint64_t page = Shape::page;

std::vector<std::byte> bytes_of_file(const SampleFile& file) {
    std::vector<std::byte> bytes(file.bytes());
    read_at(file.fd(), bytes, 0);
    return bytes;
}

/// CPU time of this thread.
std::chrono::nanoseconds cpu_time() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

/// A step of move_parts().
struct Step {
    bool begins;
    unsigned slot;
    std::uint64_t offset;
    std::uint64_t length;
    bool operator==(const Step&) const = default;
};

std::vector<Step> steps_of(std::uint64_t length, Shape shape) {
    std::vector<Step> steps;
    auto note = [&](bool begins) {
        return [&, begins](const Part& part) {
            steps.push_back({begins, part.slot, part.offset, part.length});
        };
    };
    move_parts(length, shape, note(true), note(false));
    return steps;
}

}  // namespace

TEST_CASE("a small file is moved in fewer and smaller parts") {
    CHECK(shape_of(64 << 20, {6, 256}) == Shape{6, 256});
    CHECK(shape_of(1 << 20, {2, 256}) == Shape{1, 256});
    CHECK(shape_of((1 << 20) + 1, {6, 256}) == Shape{2, 256});
    CHECK(shape_of(1, {2, 16}) == Shape{1, 1});
    CHECK(shape_of(5 * page, {6, 2}) == Shape{3, 2});
}

TEST_CASE("parts of a file end in order, when their slots are needed") {
    CHECK(steps_of(3 * page + 5, {2, 1}) == std::vector<Step>{{true, 0, 0, page},
                                                              {true, 1, page, page},
                                                              {false, 0, 0, page},
                                                              {true, 0, 2 * page, page},
                                                              {false, 1, page, page},
                                                              {true, 1, 3 * page, 5},
                                                              {false, 0, 2 * page, page},
                                                              {false, 1, 3 * page, 5}});
    CHECK(steps_of(9, {1, 16}) == std::vector<Step>{{true, 0, 0, 9}, {false, 0, 0, 9}});
}

TEST_CASE("a file is copied through a buffer, both ways") {
    // The fake arm has two pages of memory.
    const SampleFile file("/tmp", 2 * page - 7);
    const auto original = bytes_of_file(file);
    for (const Shape shape : {Shape{1, 1}, Shape{2, 1}, Shape{1, 2}}) {
        auto owned = std::make_unique<FakeTransport>(2, 1);
        FakeTransport& arm = *owned;
        CopyingMover mover(std::move(owned));
        mover.send(file.fd(), file.bytes(), shape);
        CHECK(arm.most == shape.pipes);
        CHECK(arm.under_way == 0);
        std::vector<std::byte> there(file.bytes());
        mover.fetch(0, there);
        CHECK(there == original);
        const SampleFile copy("/tmp", file.bytes());
        mover.receive(copy.fd(), copy.bytes(), shape);
        CHECK(bytes_of_file(copy) == original);
        CHECK(arm.under_way == 0);
    }
}

TEST_CASE("files are random, and can be cleared") {
    constexpr std::uint64_t size = (1 << 20) + 3;
    const SampleFile first("/tmp", size);
    const SampleFile second("/tmp", size);
    CHECK(bytes_of_file(first) != bytes_of_file(second));
    CHECK(lseek(first.fd(), 0, SEEK_END) == size);
    first.clear();
    CHECK(bytes_of_file(first) == std::vector<std::byte>(size));
    CHECK(lseek(first.fd(), 0, SEEK_END) == size);
    std::vector<std::byte> more(size + 1);
    CHECK_THROWS_WITH(read_at(first.fd(), more, 0), Catch::Contains("ends too early"));
    CHECK_THROWS_WITH(SampleFile("/no/such/directory", 1), Catch::Contains("/no/such/directory"));
}

TEST_CASE("a file that exists only in memory cannot be dropped from there") {
    const SampleFile file("/dev/shm", page);
    CHECK_THROWS_WITH(file.drop(), Catch::Contains("/dev/shm stay in memory"));
}

TEST_CASE("processors are busy while something is computed") {
    const std::int64_t before = busy_time();
    const auto begin = cpu_time();
    while (cpu_time() - begin < std::chrono::milliseconds(200)) {
    }
    // The kernel reports times in steps of 10 ms.
    CHECK(busy_time() - before >= 150'000'000);
    const Processors here_only{Target{}};
    CHECK_FALSE(here_only.knows_both());
    CHECK(here_only.busy().there == 0);
    CHECK(here_only.busy().here >= static_cast<double>(before));
}
