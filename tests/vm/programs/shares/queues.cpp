// SPDX-License-Identifier: MIT
// Users of one link to a peer; their operations wait for their turn:
//
//   queues stream NAME OFFSET BYTES THREADS PRIORITY
//                      each thread writes and reads BYTES in turn, in a place of its own from
//                      OFFSET on, and checks what it reads, until standard input ends; "ready"
//                      after the first of all
//   queues writes NAME OFFSET BYTES THREADS PRIORITY
//                      the same without reading, always with the same bytes: a slow processor has
//                      time for that
//   queues urgent NAME OFFSET COUNT PRIORITY
//                      writes 64 bytes COUNT times; prints the median and the 99th percentile in us
//   queues classes NAME OFFSET
//                      writes a byte in each class; prints the classes in which it may not
//   queues vector NAME OFFSET PRIORITY
//                      writes by a vector, with this priority of each operation
//   queues ring NAME OFFSET PRIORITY
//                      the same by io_uring
//   queues refused NAME OFFSET PRIORITY
//                      the same by single operations, a vector and io_uring, each of which must end
//                      with EPERM
//   queues file PATH NAME SETS PRIORITY
//                      says "ready", and after a line on standard input sends the file again and
//                      again, in SETS sets of 64 pages at a time
//   queues register NAME BYTES RUN
//                      registers memory with extents of RUN pages, until standard input ends;
//                      "ready"
//
// PRIORITY is 0, the default, or a class and 1.
#include <lite/uring.h>
#include <lite/vector.h>
#include <lite/file.hpp>
#include <lite/lite.hpp>
#include <lite/order.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <liburing.h>
#include <sys/mman.h>

namespace {

using Clock = std::chrono::steady_clock;

std::byte pattern(std::uint64_t seed, std::size_t i) {
    return static_cast<std::byte>((seed * 131 + i * 7 + (i >> 8)) & 0xff);
}

class Stream {
  public:
    Stream(const std::string& name, std::uint64_t offset, std::size_t bytes, unsigned threads,
           std::uint32_t priority, bool reads)
        : offset_(offset), bytes_(bytes), reads_(reads) {
        lite::set_priority(node_, priority);
        region_ = node_.map(name, lite::rights::read | lite::rights::write);
        for (unsigned i = 0; i < threads; ++i)
            threads_.emplace_back([this, i] { work(i); });
        while (started_ < threads && !failed_)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        say("ready");
    }

    // Throws what a thread has thrown.
    void end() {
        stop_ = true;
        for (auto& thread : threads_)
            thread.join();
        if (error_)
            std::rethrow_exception(error_);
    }

    static void say(const std::string& text) {
        std::puts(text.c_str());
        std::fflush(stdout);
    }

  private:
    void work(unsigned number) try {
        std::vector<std::byte> out(bytes_);
        std::vector<std::byte> in(bytes_);
        for (std::uint64_t round = 0; !stop_; ++round) {
            const std::uint64_t seed = number * 1000003 + round;
            if (reads_ || round == 0)
                for (std::size_t i = 0; i < bytes_; ++i)
                    out[i] = pattern(seed, i);
            region_.write(offset_ + number * bytes_, out);
            if (round == 0)
                ++started_;
            if (round % 8 || !reads_)
                continue;
            region_.read(offset_ + number * bytes_, std::span(in));
            if (in != out)
                throw std::runtime_error("other bytes were read than written");
        }
    } catch (...) {
        if (!failed_.exchange(true))
            error_ = std::current_exception();
        stop_ = true;
    }

    std::uint64_t offset_;
    std::size_t bytes_;
    bool reads_;
    lite::context node_{-1};
    lite::region region_;
    std::vector<std::thread> threads_;
    std::atomic<unsigned> started_ = 0;
    std::atomic<bool> stop_ = false;
    std::atomic<bool> failed_ = false;
    std::exception_ptr error_;
};

void stream(const std::string& name, std::uint64_t offset, std::size_t bytes, unsigned threads,
            std::uint32_t priority, bool reads) {
    Stream all(name, offset, bytes, threads, priority, reads);
    while (std::getchar() != EOF) {
    }
    all.end();
}

void urgent(const std::string& name, std::uint64_t offset, std::size_t count,
            std::uint32_t priority) {
    lite::context node(-1);
    lite::set_priority(node, priority);
    auto region = node.map(name, lite::rights::write);
    const std::vector<std::byte> bytes(64);
    std::vector<std::int64_t> times;
    for (std::size_t i = 0; i < count; ++i) {
        const auto begun = Clock::now();
        region.write(offset, bytes);
        times.push_back(
            std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begun).count());
    }
    std::sort(times.begin(), times.end());
    std::printf("%lld %lld\n", static_cast<long long>(times[count / 2]),
                static_cast<long long>(times[count * 99 / 100]));
}

void classes(const std::string& name, std::uint64_t offset) {
    const std::array<std::byte, 1> byte{};
    for (std::uint32_t number = 0; number < 8; ++number)
        try {
            lite::context node(-1);
            lite::set_priority(node, number + 1);
            node.map(name, lite::rights::write).write(offset, byte);
        } catch (const lite::error& e) {
            if (e.code().value() != EPERM)
                throw;
            std::printf("%u\n", number);
        }
}

using Writes = std::array<lite_op, 16>;

// Writes to consecutive places.
Writes writes(const lite::region& region, std::uint64_t offset, std::uint8_t priority) {
    static const std::array<std::byte, 256> bytes{};
    Writes ops{};
    for (std::size_t i = 0; i < ops.size(); i++) {
        ops[i].size = sizeof(lite_op);
        ops[i].opcode = LITE_OP_WRITE;
        ops[i].priority = priority;
        ops[i].lh = region.handle();
        ops[i].offset = offset + i * bytes.size();
        ops[i].length = bytes.size();
        ops[i].buf = reinterpret_cast<std::uintptr_t>(bytes.data());
    }
    return ops;
}

void vector(const std::string& name, std::uint64_t offset, std::uint8_t priority) {
    lite::context node(-1);
    const auto region = node.map(name, lite::rights::write);
    auto ops = writes(region, offset, priority);
    if (lite_vector(node.get(), ops.data(), ops.size()))
        throw std::runtime_error("an operation of the vector has failed");
}

// Throws unless each operation ends with this result.
void by_ring(const lite::context& node, Writes& ops, int result) {
    io_uring ring{};
    if (::io_uring_queue_init(std::tuple_size_v<Writes>, &ring, 0))
        throw std::runtime_error("there is no ring");
    for (auto& op : ops)
        lite_uring_op(::io_uring_get_sqe(&ring), node.get(), &op);
    ::io_uring_submit(&ring);
    for (std::size_t i = 0; i < ops.size(); i++) {
        io_uring_cqe* cqe = nullptr;
        if (::io_uring_wait_cqe(&ring, &cqe) || cqe->res != result)
            throw std::runtime_error("an operation of the ring has another result");
        ::io_uring_cqe_seen(&ring, cqe);
    }
    ::io_uring_queue_exit(&ring);
}

void ring(const std::string& name, std::uint64_t offset, std::uint8_t priority) {
    lite::context node(-1);
    const auto region = node.map(name, lite::rights::write);
    auto ops = writes(region, offset, priority);
    by_ring(node, ops, 0);
}

void refused(const std::string& name, std::uint64_t offset, std::uint8_t priority) {
    lite::context node(-1);
    const auto region = node.map(name, lite::rights::write);
    auto ops = writes(region, offset, priority);
    for (auto& op : ops)
        if (lite_op_submit(node.get(), &op) != -EPERM)
            throw std::runtime_error("an operation is not refused");
    if (lite_vector(node.get(), ops.data(), ops.size()) != static_cast<int>(ops.size()) ||
        std::ranges::any_of(ops, [](const lite_op& op) { return op.error != -EPERM; }))
        throw std::runtime_error("an operation of a vector is not refused");
    ops = writes(region, offset, priority);
    by_ring(node, ops, -EPERM);
}

[[noreturn]] void file(const std::string& path, const std::string& name, std::uint32_t sets,
                       std::uint32_t priority) {
    lite::context node(-1);
    lite::set_priority(node, priority);
    auto region = node.map(name, lite::rights::write);
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        throw std::runtime_error("there is no such file");
    Stream::say("ready");
    std::getchar();
    for (;;)
        lite::send_file(node, region, 0, fd, 0, lite::to_end, {}, {.pages = 64, .count = sets});
}

// Pages that are touched in no order are seldom contiguous. Here runs of them are: extents of more
// than a page are written to without copying.
void registered(const std::string& name, std::size_t bytes, std::size_t run) {
    constexpr std::size_t page = 4096;
    std::vector<std::size_t> order(bytes / page / run);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), std::minstd_rand(1));
    auto* const memory = static_cast<std::byte*>(
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory == MAP_FAILED || ::madvise(memory, bytes, MADV_NOHUGEPAGE))
        throw std::runtime_error("no memory");
    for (const auto i : order)
        for (std::size_t at = i * run; at < (i + 1) * run; at++)
            memory[at * page] = std::byte{1};
    lite::context node(-1);
    const auto held = node.register_memory({memory, bytes}, name, 0666);
    Stream::say("ready");
    while (std::getchar() != EOF) {
    }
}

}  // namespace

int main(int argc, char** argv) try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const auto number = [&](std::size_t i) { return std::stoul(words.at(i)); };
    if (words.at(0) == "stream" || words.at(0) == "writes")
        stream(words.at(1), number(2), number(3), static_cast<unsigned>(number(4)),
               static_cast<std::uint32_t>(number(5)), words.at(0) == "stream");
    else if (words.at(0) == "urgent")
        urgent(words.at(1), number(2), number(3), static_cast<std::uint32_t>(number(4)));
    else if (words.at(0) == "classes")
        classes(words.at(1), number(2));
    else if (words.at(0) == "vector")
        vector(words.at(1), number(2), static_cast<std::uint8_t>(number(3)));
    else if (words.at(0) == "ring")
        ring(words.at(1), number(2), static_cast<std::uint8_t>(number(3)));
    else if (words.at(0) == "refused")
        refused(words.at(1), number(2), static_cast<std::uint8_t>(number(3)));
    else if (words.at(0) == "file")
        file(words.at(1), words.at(2), static_cast<std::uint32_t>(number(3)),
             static_cast<std::uint32_t>(number(4)));
    else if (words.at(0) == "register")
        registered(words.at(1), number(2), number(3));
    else
        throw std::runtime_error("see the head of queues.cpp");
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "queues: %s\n", e.what());
    return 1;
}
