// SPDX-License-Identifier: MIT
// Users of one link to a peer; their operations wait for their turn:
//
//   queues stream NAME OFFSET BYTES THREADS PRIORITY
//                      each thread writes and reads BYTES in turn, in a place of its own from
//                      OFFSET on, and checks what it reads, until standard input ends; "ready"
//                      after the first of all
//   queues writes NAME OFFSET BYTES THREADS PRIORITY
//                      the same without reading
//   queues urgent NAME OFFSET COUNT PRIORITY
//                      writes 64 bytes COUNT times; prints the median and the 99th percentile in us
//   queues vector NAME OFFSET PRIORITY
//                      writes by a vector, with this priority of each operation
//   queues ring NAME OFFSET PRIORITY
//                      the same by io_uring
//
// PRIORITY is 0, the default, or a class and 1.
#include <lite/uring.h>
#include <lite/vector.h>
#include <lite/lite.hpp>
#include <lite/order.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <liburing.h>

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

// Writes to consecutive places.
std::array<lite_op, 16> writes(const lite::region& region, std::uint64_t offset,
                               std::uint8_t priority) {
    static const std::array<std::byte, 256> bytes{};
    std::array<lite_op, 16> ops{};
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

void ring(const std::string& name, std::uint64_t offset, std::uint8_t priority) {
    lite::context node(-1);
    const auto region = node.map(name, lite::rights::write);
    auto ops = writes(region, offset, priority);
    io_uring ring{};
    if (::io_uring_queue_init(ops.size(), &ring, 0))
        throw std::runtime_error("there is no ring");
    for (auto& op : ops)
        lite_uring_op(::io_uring_get_sqe(&ring), node.get(), &op);
    ::io_uring_submit(&ring);
    for (std::size_t i = 0; i < ops.size(); i++) {
        io_uring_cqe* cqe = nullptr;
        if (::io_uring_wait_cqe(&ring, &cqe) || cqe->res)
            throw std::runtime_error("an operation of the ring has failed");
        ::io_uring_cqe_seen(&ring, cqe);
    }
    ::io_uring_queue_exit(&ring);
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
    else if (words.at(0) == "vector")
        vector(words.at(1), number(2), static_cast<std::uint8_t>(number(3)));
    else if (words.at(0) == "ring")
        ring(words.at(1), number(2), static_cast<std::uint8_t>(number(3)));
    else
        throw std::runtime_error("see the head of queues.cpp");
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "queues: %s\n", e.what());
    return 1;
}
