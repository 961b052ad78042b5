// SPDX-License-Identifier: MIT
// All operations on unpinned memory, of which the process throws chunks away:
//
//   unpinned operations OWNER USER THIRD ROUNDS SEED
//                         a user of one node executes all operations, in each way, on memory of
//                         another one's, against a model of it: with all chunks as they were left,
//                         with one just thrown away, and with all; then ROUNDS times while another
//                         thread throws chunks away; then where the process has no memory, or none
//                         that may be written. With all chunks there they come last in each way,
//                         and before that only if there is more than one round, else in one way
//                         at random. Says how many chunks were missing when an operation wanted
//                         them
//   unpinned shake NODE NAME MB US
//                         registers memory, says "ready", and for each line throws so many chunks
//                         away, about US microseconds apart; then it says "shaken" and how many
#include "operations.hpp"

#include <lite/file.h>
#include <lite/uring.h>
#include <lite/vector.h>

#include <liburing.h>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <thread>
#include <utility>

namespace unpinned {
namespace {

constexpr unsigned kAll = (1U << kChunks) - 1;
constexpr int kThrows = 4;  // in the time of a list of operations, at most

// The pages get other rights, so the kernel takes them from other nodes. They keep what they have,
// and can be read and written all the time.
void throw_away(std::byte* at, std::size_t length) {
    constexpr int usual = PROT_READ | PROT_WRITE;
    check_errno(::mprotect(at, length, usual | PROT_EXEC), "mprotect");
    check_errno(::mprotect(at, length, usual), "mprotect");
}

class Ring {
  public:
    Ring() { expect(::io_uring_queue_init(64, &ring_, 0), 0, "io_uring_queue_init"); }
    ~Ring() { ::io_uring_queue_exit(&ring_); }
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;

    io_uring_sqe* next() {
        io_uring_sqe* const sqe = ::io_uring_get_sqe(&ring_);
        check(sqe, "no room in the submission queue");
        *sqe = {};
        sqe->user_data = n_++;
        return sqe;
    }

    // Executes what was prepared; returns the results in this order.
    std::vector<int> run() {
        std::vector<int> results(std::exchange(n_, 0));
        const auto n = static_cast<unsigned>(results.size());
        expect(::io_uring_submit_and_wait(&ring_, n), n, "io_uring_submit_and_wait");
        for (unsigned i = 0; i < n; ++i) {
            io_uring_cqe* cqe = nullptr;
            expect(::io_uring_wait_cqe(&ring_, &cqe), 0, "io_uring_wait_cqe");
            results.at(cqe->user_data) = cqe->res;
            ::io_uring_cqe_seen(&ring_, cqe);
        }
        return results;
    }

  private:
    io_uring ring_{};
    unsigned n_ = 0;
};

class File {
  public:
    File() : fd_(::memfd_create("operations", 0)) { check_errno(fd_, "memfd_create"); }
    ~File() { ::close(fd_); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    int fd() const { return fd_; }
    std::size_t size() const { return static_cast<std::size_t>(::lseek(fd_, 0, SEEK_END)); }

    void write(std::size_t at, const Bytes& bytes) const {
        expect(::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(at)),
               static_cast<long>(bytes.size()), "pwrite");
    }

    Bytes read(std::size_t at, std::size_t length) const {
        Bytes bytes(length);
        expect(::pread(fd_, bytes.data(), length, static_cast<off_t>(at)),
               static_cast<long>(length), "pread");
        return bytes;
    }

  private:
    int fd_;
};

// Ways to have a list of operations executed: one after the other, or all at once.
enum class Way { each, vector, ring, workers, vector_in_ring };
constexpr std::array kWays = {
    std::pair{Way::each, "one by one"},
    std::pair{Way::vector, "vector"},
    std::pair{Way::ring, "io_uring"},
    std::pair{Way::workers, "io_uring, by workers"},
    std::pair{Way::vector_in_ring, "io_uring, vector"},
};

constexpr std::array kLists = {
    std::pair{"small ones", &Memory::small},
    std::pair{"writing", &Memory::writing},
    std::pair{"reading", &Memory::reading},
    std::pair{"copying", &Memory::copying},
    std::pair{"copying backward", &Memory::backward},
    std::pair{"copying forward", &Memory::forward},
};

void check_one(const Wanted& wanted, const lite_op& op) {
    const auto what = "opcode " + std::to_string(op.opcode) + ", offset " +
                      std::to_string(op.offset) + ", length " + std::to_string(op.length);
    expect(op.error, -wanted.error, what);
    const bool partly = op.opcode == LITE_OP_READ || op.opcode == LITE_OP_WRITE ||
                        op.opcode == LITE_OP_SET || op.opcode == LITE_OP_COPY;
    if (wanted.error) {
        check(!partly || op.result <= wanted.result, what + ": more is done than can be");
        return;
    }
    check(op.result == wanted.result, what + ": result " + std::to_string(op.result) +
                                          " instead of " + std::to_string(wanted.result));
    if (!wanted.read.empty())
        expect_same(wanted.bytes, wanted.read, op.offset, what + ", what was read");
}

class Operations {
  public:
    Operations(int owner, int user, int third, std::uint64_t seed)
        : memory_(owner, user, third, seed) {}

    // Chunks that were missing when an operation wanted them.
    std::uint64_t missing() const { return missing_; }

    // One of the chunks, at random, as a bit for all().
    unsigned one_chunk() { return 1U << memory_.random() % kChunks; }

    // All operations in all ways, or each in one at random. @lost: bits of the chunks that are
    // thrown away before each list.
    void all(unsigned lost, bool each_way = true) {
        for (const auto& [what, list] : kLists) {
            const auto* const only = &kWays.at(memory_.random() % kWays.size());
            for (const auto& each : kWays) {
                if (each_way || &each == only)
                    once(std::string(what) + ", " + each.second, lost,
                         [&, list = list] { run((memory_.*list)(), each.first, lost); });
            }
        }
        const auto only = memory_.random() % 4;
        for (unsigned way = 0; way < 4; ++way) {
            if (!each_way && way != only)
                continue;
            const bool ring = way & 1;
            const std::uint32_t sets = way & 2 ? 4 : 0;
            const auto how = std::to_string(sets) + " sets" + (ring ? ", io_uring" : ", by itself");
            once("sendfile, " + how, lost, [&] { send(ring, sets, lost); });
            once("recvfile, " + how, lost, [&] { receive(ring, sets, lost); });
        }
    }

    // All operations while another thread throws chunks away.
    void beside(std::uint64_t rounds) {
        std::atomic<bool> over = false;
        const auto end = [&] {
            over = true;
            ++begun_;
            begun_.notify_all();
        };
        const auto seed = static_cast<std::uint32_t>(memory_.random());
        std::jthread thrower([&, random = std::mt19937(seed)]() mutable {
            for (std::uint64_t seen = 0; !over; seen = begun_) {
                // Not more often, or an operation might never get on.
                begun_.wait(seen);
                for (int i = 0; i < kThrows && !over; ++i) {
                    // At any moment of the operations, not at their beginning.
                    std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
                    throw_one(random);
                }
            }
        });
        try {
            for (std::uint64_t i = 0; i < rounds; ++i)
                all(0);
        } catch (...) {
            end();
            throw;
        }
        end();
    }

    // Where the process has no memory. @each_way: of operations when it has memory there again.
    void without_memory(bool each_way) {
        std::byte* const hole = memory_.range().data() + kHole;
        for (const auto& [way, name] : kWays) {
            check_errno(::munmap(hole, kPage), "munmap");
            once(std::string("no memory, ") + name, 0, [&, way = way] {
                auto list = memory_.without_memory(kHole);
                except_ = {kHole - Memory::kAround, Memory::kAround + kPage};
                execute(list, way);
            });
            memory_.range().renew(kHole, kPage);
            memory_.fill(kHole - Memory::kAround, Memory::kAround + kPage);
            memory_.forget();
        }
        check_errno(::munmap(hole, kPage), "munmap");
        for (const bool ring : {false, true}) {
            once("no memory, sendfile", 0, [&] { send_to_hole(ring); });
            once("no memory, recvfile", 0, [&] { receive_from_hole(ring); });
        }
        memory_.range().renew(kHole, kPage);
        memory_.fill(kHoleFrom, kHoleLength);
        all(0, each_way);
    }

    // Where it has some that may only be read.
    void read_only() {
        std::byte* const page = memory_.range().data() + kHole;
        check_errno(::mprotect(page, kPage, PROT_READ), "mprotect");
        for (const auto& [way, name] : kWays) {
            once(std::string("read-only, ") + name, 0, [&, way = way] {
                auto list = memory_.read_only(kHole);
                execute(list, way);
            });
        }
        for (const bool ring : {false, true})
            once("read-only, files", 0, [&] { files_read_only(ring); });
        check_errno(::mprotect(page, kPage, PROT_READ | PROT_WRITE), "mprotect");
        all(0);
    }

  private:
    // A page in the middle of a chunk, and a range that begins with the chunk before it.
    static constexpr std::size_t kHole = 2 * kChunk + 10 * kPage;
    static constexpr std::size_t kHoleFrom = kChunk;
    static constexpr std::size_t kHoleLength = 2 * kChunk;

    void throw_one(std::mt19937& random) const {
        const auto& others = memory_.others();
        const Range* range = others[random() % others.size()].memory;
        if (!range)
            range = &memory_.range();
        unpinned::throw_away(range->data() + random() % kChunks * kChunk, kChunk);
    }

    void throw_away(unsigned lost) const {
        for (std::size_t i = 0; i < kChunks; ++i) {
            if (lost >> i & 1)
                unpinned::throw_away(memory_.range().data() + i * kChunk, kChunk);
        }
        for (const auto& other : memory_.others()) {
            if (other.memory && lost == kAll)
                unpinned::throw_away(other.memory->data(), kSize);
        }
    }

    void once(const std::string& what, unsigned lost, const std::function<void()>& operate) {
        memory_.begin();
        except_ = {};
        ++begun_;
        begun_.notify_all();
        try {
            operate();
            verify();
        } catch (const std::exception& e) {
            throw std::runtime_error(what + (lost ? ", chunks thrown away" : "") + ": " + e.what());
        }
        missing_ += static_cast<unsigned>(std::popcount(memory_.used() & lost));
    }

    // The process's memory, and another LMR that was changed, have what they must have.
    void verify() const {
        const auto has = std::span<const std::byte>(memory_.range().data(), kSize);
        const auto [from, length] = except_;
        expect_same(has.first(from), memory_.part(0, from), 0, "the memory");
        const std::size_t behind = from + length;
        expect_same(has.subspan(behind), memory_.part(behind, kSize - behind), behind,
                    "the memory");
        if (!memory_.changed())
            return;
        Bytes other(kSize);
        expect(lite_read(memory_.user(), memory_.changed()->lh, 0, other.data(), kSize), 0, "read");
        expect_same(other, memory_.changed()->model, 0, "the other LMR");
    }

    void run(List list, Way way, unsigned lost) {
        if (way == Way::vector || way == Way::vector_in_ring)
            memory_.add_fence(list);
        throw_away(lost);
        execute(list, way);
    }

    void execute(const List& list, Way way) {
        lite_ctx* const ctx = memory_.user();
        std::vector<lite_op> ops;
        int errors = 0;
        for (const auto& wanted : list) {
            ops.push_back(wanted.op);
            ops.back().size = sizeof(lite_op);
            errors += wanted.error != 0;
        }
        if (way == Way::each) {
            for (auto& op : ops)
                op.error = lite_op_submit(ctx, &op);
        } else if (way == Way::vector) {
            expect(lite_vector(ctx, ops.data(), ops.size()), errors, "failed operations");
        } else if (way == Way::vector_in_ring) {
            lite_ioc_vector arg = {};
            arg.size = sizeof(arg);
            arg.ops = reinterpret_cast<std::uintptr_t>(ops.data());
            arg.n_ops = static_cast<__u32>(ops.size());
            arg.op_size = sizeof(lite_op);
            lite_uring_command(ring_.next(), ctx, LITE_IOC_VECTOR, &arg);
            expect(ring_.run().at(0), 0, "the command");
            expect(arg.n_done, static_cast<long>(ops.size()), "operations done");
            expect(arg.n_failed, errors, "failed operations");
        } else {
            execute_in_ring(ops, way == Way::workers);
        }
        for (std::size_t i = 0; i < ops.size(); ++i)
            check_one(list[i], ops[i]);
    }

    void execute_in_ring(std::vector<lite_op>& ops, bool workers) {
        for (auto& op : ops) {
            io_uring_sqe* const sqe = ring_.next();
            lite_uring_op(sqe, memory_.user(), &op);
            if (workers)
                sqe->flags |= IOSQE_ASYNC;
        }
        const auto results = ring_.run();
        for (std::size_t i = 0; i < ops.size(); ++i)
            ops[i].error = results[i];
    }

    // Returns the bytes moved. @sets: of 16 pages; 0: the defaults. @wanted: 0 or a negative errno.
    std::size_t move(bool ring, unsigned command, std::size_t at, const File& file,
                     std::size_t file_at, std::size_t length, std::uint32_t sets, int wanted) {
        lite_ioc_file arg = {};
        arg.size = sizeof(arg);
        arg.lh = memory_.lh();
        arg.offset = at;
        arg.fd = file.fd();
        arg.file_offset = file_at;
        arg.length = length;
        arg.sets = sets;
        arg.pages = sets ? 16 : 0;
        int err = 0;
        if (ring) {
            lite_uring_command(ring_.next(), memory_.user(), command, &arg);
            err = ring_.run().at(0);
        } else {
            err = lite_file_submit(memory_.user(), command, &arg);
        }
        expect(err, wanted, command == LITE_IOC_SENDFILE ? "sendfile" : "recvfile");
        return err ? 0 : arg.moved;
    }

    static constexpr std::size_t kFileAt = 5000;
    static constexpr std::size_t kSentAt = kChunk - 777;
    static constexpr std::size_t kSent = 2 * kChunk + 12345;

    void send(bool ring, std::uint32_t sets, unsigned lost) {
        const File file;
        const auto bytes = memory_.some(kSent);
        file.write(kFileAt, bytes);
        memory_.use(kSentAt, kSent);
        throw_away(lost);
        expect(static_cast<long>(
                   move(ring, LITE_IOC_SENDFILE, kSentAt, file, kFileAt, kSent + 1, sets, 0)),
               kSent, "bytes sent");
        memory_.put(kSentAt, bytes);
    }

    void receive(bool ring, std::uint32_t sets, unsigned lost) {
        const File file;
        memory_.use(kSentAt, kSent);
        throw_away(lost);
        expect(static_cast<long>(
                   move(ring, LITE_IOC_RECVFILE, kSentAt, file, kFileAt, kSent, sets, 0)),
               kSent, "bytes received");
        expect(static_cast<long>(file.size()), kFileAt + kSent, "size of the file");
        expect_same(file.read(kFileAt, kSent), memory_.part(kSentAt, kSent), kSentAt, "the file");
    }

    // A call that has moved some bytes succeeds; one that begins where there is no memory fails.
    void send_to_hole(bool ring) {
        const File file;
        const auto bytes = memory_.some(kHoleLength);
        file.write(0, bytes);
        except_ = {kHoleFrom, kHoleLength};
        const auto n = move(ring, LITE_IOC_SENDFILE, kHoleFrom, file, 0, kHoleLength, 0, 0);
        check(n > 0 && n <= kHole - kHoleFrom, std::to_string(n) + " bytes are sent");
        expect_same({memory_.range().data() + kHoleFrom, n}, std::span(bytes).first(n), kHoleFrom,
                    "what was sent");
        move(ring, LITE_IOC_SENDFILE, kHole, file, 0, 64, 0, -EFAULT);
    }

    void receive_from_hole(bool ring) {
        const File file;
        except_ = {kHoleFrom, kHoleLength};
        const auto n = move(ring, LITE_IOC_RECVFILE, kHoleFrom, file, 0, kHoleLength, 0, 0);
        check(n > 0 && n <= kHole - kHoleFrom, std::to_string(n) + " bytes are received");
        expect(static_cast<long>(file.size()), static_cast<long>(n), "size of the file");
        expect_same(file.read(0, n), {memory_.range().data() + kHoleFrom, n}, kHoleFrom,
                    "what was received");
        move(ring, LITE_IOC_RECVFILE, kHole, file, 0, 64, 0, -EFAULT);
    }

    void files_read_only(bool ring) {
        const File file;
        file.write(0, memory_.some(kPage));
        move(ring, LITE_IOC_SENDFILE, kHole, file, 0, kPage, 0, -EFAULT);
        expect(static_cast<long>(move(ring, LITE_IOC_RECVFILE, kHole, file, 0, kPage, 0, 0)), kPage,
               "bytes received");
        expect_same(file.read(0, kPage), memory_.part(kHole, kPage), kHole, "what was received");
    }

    Memory memory_;
    Ring ring_;
    std::atomic<std::uint64_t> begun_ = 0;  // lists
    std::uint64_t missing_ = 0;
    // Offset and length of what the present list may leave in any state.
    std::pair<std::size_t, std::size_t> except_ = {};
};

}  // namespace

int operations(int argc, char** argv) {
    if (argc < 7)
        return 2;
    Operations o(std::stoi(argv[2]), std::stoi(argv[3]), std::stoi(argv[4]), std::stoull(argv[6]));
    const auto rounds = std::stoull(argv[5]);
    o.all(0, rounds > 1);
    o.all(o.one_chunk());
    o.all(kAll);
    o.beside(rounds);
    o.without_memory(rounds > 1);
    o.read_only();
    std::printf("%llu chunks were missing\n", static_cast<unsigned long long>(o.missing()));
    return 0;
}

int shake(int argc, char** argv) {
    if (argc < 6)
        return 2;
    const Node node(std::stoi(argv[2]));
    const Range range(std::stoull(argv[4]) << 20);
    const auto pause = std::stoull(argv[5]);
    (void)node.make(argv[3], range.data(), range.size());
    std::mt19937_64 random(1);
    std::puts("ready");
    std::fflush(stdout);
    std::uint64_t thrown = 0;
    for (std::string line; std::getline(std::cin, line);) {
        for (const auto until = thrown + std::stoull(line); thrown < until; ++thrown) {
            std::this_thread::sleep_for(std::chrono::microseconds(random() % (2 * pause)));
            throw_away(range.data() + random() % (range.size() / kChunk) * kChunk, kChunk);
        }
        std::printf("shaken %llu\n", static_cast<unsigned long long>(thrown));
        std::fflush(stdout);
    }
    return 0;
}

}  // namespace unpinned
