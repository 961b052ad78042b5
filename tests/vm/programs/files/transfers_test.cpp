// SPDX-License-Identifier: MIT
// What is in a file arrives in an LMR, and the other way, whatever the sizes, offsets and sets.
#include "fixture.hpp"

#include <lite/file.hpp>

#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <random>

using namespace lite_test;

namespace {

// Two sets, if a call leaves that to the kernel.
constexpr std::uint64_t kMovedLength = 3 << 19;
constexpr std::uint64_t kPartLength = 1200003;

// 0, and numbers next to whole pages, are frequent.
std::uint64_t with_edges(std::mt19937_64& random, double size, std::uint64_t most) {
    auto n = static_cast<std::uint64_t>(size) - 1;
    if (n && random() % 3 == 0)
        n = (n + kPage - 1) / kPage * kPage + random() % 3 - 1;
    return random() % 16 ? std::min(n, most) : 0;
}

// Small numbers as often as large ones.
std::uint64_t any_size(std::mt19937_64& random, std::uint64_t most) {
    const double log =
        std::uniform_real_distribution(0.0, std::log2(static_cast<double>(most) + 1))(random);
    return with_edges(random, std::exp2(log), most);
}

// Half as many numbers for each factor of 16.
std::uint64_t mostly_small(std::mt19937_64& random, std::uint64_t most) {
    const double least = std::pow(static_cast<double>(most) + 1, -0.25);
    const double root = std::uniform_real_distribution(least, 1.0)(random);
    return with_edges(random, std::pow(root, -4.0), most);
}

// Makes and fills a hole in front of a range of a file, writes behind it, changes the file's size
// there, or evicts its pages. Mostly in the pages of the range's first and last bytes.
void change_beside(const File& file, std::uint64_t begin, std::uint64_t end,
                   std::mt19937_64& random) {
    const auto length = 1 + random() % (2 * kPage);
    const auto in_front = std::min(begin, length);
    switch (random() % 5) {
        case 0:
            ::fallocate(file.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        static_cast<off_t>(begin - in_front), static_cast<off_t>(in_front));
            break;
        case 1:
            file.write(begin - in_front, make_pattern(in_front, length));
            break;
        case 2:
            file.write(end, make_pattern(length, length));
            break;
        case 3:
            file.resize(end + length);
            break;
        default:
            evict(file);
            break;
    }
}

// As move(); meanwhile the file is changed, but not what is moved.
Moved move_beside_changes(const Files& files, unsigned long request, const lite_ioc_file& args,
                          const File& file, std::uint64_t seed) {
    std::atomic<bool> over = false;
    Threads threads;
    threads.start([&] {
        std::mt19937_64 random(seed);
        do
            change_beside(file, args.file_offset, args.file_offset + args.length, random);
        while (!over);
    });
    const auto moved = move(files.dev, request, args);
    over = true;
    threads.join();
    return moved;
}

// Sends a file of random bytes to the LMR, and receives it in another one.
void there_and_back(const Files& files, const std::string& directory, std::uint64_t lh,
                    std::uint64_t at, std::uint64_t length, std::mt19937_64& random,
                    bool changes = false) {
    const auto before = any_size(random, 1 << 20);  // in the file
    const auto seed = random();
    auto args = file_args(lh, at, -1, before, length);
    args.pages = random() % 2 ? 0 : static_cast<__u32>(1 + any_size(random, 63));
    args.sets = static_cast<__u32>(random() % 7);
    INFO(directory << ", " << length << " bytes at " << at << " from " << before << ", "
                   << args.sets << " sets of " << args.pages << " pages");
    const auto move_file = [&](unsigned long request, const File& file) {
        args.fd = file.fd();
        return changes ? move_beside_changes(files, request, args, file, seed)
                       : move(files.dev, request, args);
    };
    {
        const File from = make_file(directory);
        from.write(before, make_pattern(length, seed));
        const auto moved = move_file(LITE_IOC_SENDFILE, from);
        REQUIRE(moved.error == ok);
        REQUIRE(moved.bytes == length);
        REQUIRE(moved.end == before + length);
        REQUIRE(!find_mismatch(read_lmr(files.dev, lh, at, length), seed));
    }
    const File to = make_file(directory);
    const auto moved = move_file(LITE_IOC_RECVFILE, to);
    REQUIRE(moved.error == ok);
    REQUIRE(moved.bytes == length);
    REQUIRE(moved.end == before + length);
    if (!changes)
        REQUIRE(to.size() == (length ? before + length : 0));
    REQUIRE(!find_mismatch(to.read(before, length), seed));
}

// Mostly small files of up to @most bytes. An LMR is used for @per_lmr of them.
void many_files(const Files& files, const std::string& directory, std::size_t count,
                std::uint64_t most, std::size_t per_lmr, bool changes = false) {
    std::mt19937_64 random(env().seed);
    const auto places = env().placements();
    std::uint64_t lh = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const auto& where = places[i / per_lmr % places.size()];
        if (i % per_lmr == 0)
            lh = files.dev.alloc(most, where.nodes);
        INFO(where.label << ", seed " << env().seed << ", number " << i);
        // The longest are at each of the places in turn, and first at a peer.
        const auto length = i % (6 * per_lmr) == per_lmr ? most : mostly_small(random, most);
        const auto at = any_size(random, most - length);
        there_and_back(files, directory, lh, at, length, random, changes);
        if ((i + 1) % per_lmr == 0 || i + 1 == count)
            files.dev.free(lh);
    }
}

// How many operations have written to other nodes.
std::uint64_t writes() {
    const std::string command =
        "litectl stats -j -i " + std::to_string(env().indexes.front()) + " | tr -d ' \\n'";
    std::FILE* const out = ::popen(command.c_str(), "r");
    REQUIRE(out);
    char text[16384] = {};
    const auto n = std::fread(text, 1, sizeof(text) - 1, out);
    REQUIRE(::pclose(out) == 0);
    const std::string said(text, n);
    const std::string key = "\"writes\":";
    const auto at = said.find(key);
    REQUIRE(at != said.npos);
    return std::stoull(said.substr(at + key.size()));
}

}  // namespace

TEST_CASE_METHOD(FilesEverywhere, "transfers: random files, sets and places", "[transfers]") {
    std::mt19937_64 random(env().seed);
    const auto places = env().placements();
    const auto count = env().scaled(60, 8);
    for (std::size_t i = 0; i < count; ++i) {
        const auto& where = places[i % places.size()];
        INFO(where.label << ", seed " << env().seed << ", number " << i);
        const auto lh = dev.alloc(kMovedLength, where.nodes);
        const auto length = any_size(random, kMovedLength);
        there_and_back(*this, directory, lh, any_size(random, kMovedLength - length), length,
                       random);
        dev.free(lh);
    }
}

// Of all file systems together. One in fifty is longer than 1 MB, one in two hundred than 16 MB.
TEST_CASE_METHOD(FilesEverywhere, "transfers: ten thousand files of up to 64 MB", "[.many]") {
    many_files(*this, directory, env().scaled(10000 / directories().size() + 1), 64 << 20, 50);
}

// A tenth of them, and not as long.
TEST_CASE_METHOD(FilesEverywhere, "transfers: a thousand files that change beside what is moved",
                 "[.beside]") {
    many_files(*this, directory, env().scaled(1000 / directories().size() + 1, 15), 2 << 20, 3,
               true);
}

TEST_CASE_METHOD(FilesEverywhere, "transfers: only the bytes asked for are written",
                 "[transfers]") {
    const auto lh = dev.alloc(kMovedLength, std::vector{env().peer()});
    const auto all = make_pattern(kMovedLength, 1);
    const File file = make_file(directory);
    file.write(0, make_pattern(kMovedLength, 2));
    dev.write(lh, 0, all);
    REQUIRE(send(dev, lh, 5000, file, 7000, kPartLength).bytes == kPartLength);
    auto got = read_lmr(dev, lh, 0, kMovedLength);
    REQUIRE(!find_mismatch(std::span(got).first(5000), 1));
    REQUIRE(!find_mismatch(std::span(got).subspan(5000, kPartLength), 2, 7000));
    REQUIRE(!find_mismatch(std::span(got).subspan(5000 + kPartLength), 1, 5000 + kPartLength));

    dev.write(lh, 0, all);
    REQUIRE(receive(dev, lh, 5000, file, 7000, kPartLength).bytes == kPartLength);
    got = file.read(0, kMovedLength);
    REQUIRE(!find_mismatch(std::span(got).first(7000), 2));
    REQUIRE(!find_mismatch(std::span(got).subspan(7000, kPartLength), 1, 5000));
    REQUIRE(!find_mismatch(std::span(got).subspan(7000 + kPartLength), 2, 7000 + kPartLength));
}

TEST_CASE_METHOD(FilesEverywhere, "transfers: to the end of the file, or of the LMR",
                 "[transfers]") {
    const auto lh = dev.alloc(kMovedLength, std::vector{env().peer()});
    const File file = make_file(directory);
    file.write(0, make_pattern(kMovedLength - 100, 3));
    auto moved = send(dev, lh, 0, file, 0, kAll);
    REQUIRE(moved.error == ok);
    REQUIRE(moved.bytes == kMovedLength - 100);
    moved = send(dev, lh, 0, file, kMovedLength - 100, kAll);  // at its end
    REQUIRE(moved.error == ok);
    REQUIRE(moved.bytes == 0);
    REQUIRE(send(dev, lh, 0, file, kMovedLength, 1).bytes == 0);  // beyond

    file.write(0, make_pattern(kMovedLength + 100, 4));
    moved = send(dev, lh, 50, file, 0, kAll);
    REQUIRE(moved.error == ok);
    REQUIRE(moved.bytes == kMovedLength - 50);
    REQUIRE(send(dev, lh, kMovedLength, file, moved.end, kAll).error == err(ERANGE));
    REQUIRE(send(dev, lh, kMovedLength, file, kMovedLength + 100, kAll).error == ok);
    REQUIRE(send(dev, lh, kMovedLength + 1, file, 0, 1).error == err(ERANGE));

    file.resize(0);
    moved = receive(dev, lh, 50, file, 0, kAll);
    REQUIRE(moved.error == ok);
    REQUIRE(moved.bytes == kMovedLength - 50);
    REQUIRE(file.size() == kMovedLength - 50);
    REQUIRE(!find_mismatch(file.read(0, kMovedLength - 50), 4));
    moved = receive(dev, lh, kMovedLength, file, 0, kAll);
    REQUIRE(moved.error == ok);
    REQUIRE(moved.bytes == 0);
    REQUIRE(receive(dev, lh, kMovedLength + 1, file, 0, 1).error == err(ERANGE));
}

TEST_CASE_METHOD(FilesEverywhere, "transfers: holes are zeroes", "[transfers]") {
    const auto lh = dev.alloc(kMovedLength, std::vector{env().peer()});
    dev.write(lh, 0, make_pattern(kMovedLength, 5));
    const File file = make_file(directory);
    file.write(1000000, make_pattern(3000, 6));
    file.resize(kMovedLength);
    const auto before = send(dev, lh, 0, file, 0, kAll);
    REQUIRE(before.bytes == kMovedLength);
    const auto got = read_lmr(dev, lh, 0, kMovedLength);
    REQUIRE(got == file.read(0, kMovedLength));
    REQUIRE(all_are(std::span(got).first(1000000), std::byte{}));
    REQUIRE(!find_mismatch(std::span(got).subspan(1000000, 3000), 6));
}

TEST_CASE_METHOD(Files, "transfers: holes in memory stay holes", "[transfers]") {
    // The kernel gives the page of zeroes for each page that tmpfs does not have, so a file larger
    // than the memory can be sent without any.
    constexpr std::uint64_t part = 16 << 20;
    const auto lh = dev.alloc(part, std::vector{env().peer()});
    const File file = make_file(kMemfd);
    const auto length = env().scaled(32, 2) * part;
    file.resize(length);
    for (std::uint64_t at = 0; at < length; at += part) {
        if (at == 0)
            dev.write(lh, 0, make_pattern(part, 14));
        REQUIRE(send(dev, lh, 0, file, at, part).bytes == part);
    }
    const auto got = read_lmr(dev, lh, 0, part);
    REQUIRE(all_are(got, std::byte{}));
    struct stat status {};
    REQUIRE(::fstat(file.fd(), &status) == 0);
    REQUIRE(status.st_blocks == 0);
}

TEST_CASE_METHOD(Files, "transfers: a block device", "[transfers]") {
    const char* path = std::getenv("LITE_TEST_BLOCK");
    REQUIRE(path);
    const auto lh = dev.alloc(kMovedLength, std::vector{env().peer()});
    for (const int flags : {O_RDWR, O_RDWR | O_DIRECT}) {
        INFO(flags);
        const File device(path, flags);
        const File beside(path, O_RDWR);
        dev.write(lh, 0, make_pattern(kMovedLength, 15));
        REQUIRE(receive(dev, lh, 0, device, 1 << 20, kAll).bytes == kMovedLength);
        REQUIRE(!find_mismatch(beside.read(1 << 20, kMovedLength), 15));
        dev.write(lh, 0, make_pattern(kMovedLength, 16));
        REQUIRE(send(dev, lh, 0, device, 1 << 20, kMovedLength).bytes == kMovedLength);
        REQUIRE(!find_mismatch(read_lmr(dev, lh, 0, kMovedLength), 15));
        // Its end is that of a file which cannot grow.
        const auto end = static_cast<std::uint64_t>(::lseek(beside.fd(), 0, SEEK_END));
        REQUIRE(send(dev, lh, 0, device, end - 8192, kAll).bytes == 8192);
        REQUIRE(send(dev, lh, 0, device, end, kAll).bytes == 0);
        REQUIRE(receive(dev, lh, 0, device, end - 8192, kAll).bytes == 8192);
        REQUIRE(receive(dev, lh, 0, device, end, kAll).error == err(ENOSPC));
    }
}

TEST_CASE_METHOD(Files, "transfers: far into a sparse file", "[transfers]") {
    // Beyond what 32 bits count, in bytes and in pages.
    for (const std::uint64_t at : {(1ULL << 32) - 5000, (1ULL << 44) - 5000}) {
        const auto lh = dev.alloc(kMovedLength, std::vector{env().peer()});
        const File file = make_file(kMemfd);
        file.write(at, make_pattern(20000, 7));
        REQUIRE(send(dev, lh, 3, file, at, 20000).bytes == 20000);
        REQUIRE(!find_mismatch(read_lmr(dev, lh, 3, 20000), 7));
        const File other = make_file(kMemfd);
        REQUIRE(receive(dev, lh, 3, other, at, 20000).end == at + 20000);
        REQUIRE(!find_mismatch(other.read(at, 20000), 7));
        dev.free(lh);
    }
}

TEST_CASE_METHOD(FilesEverywhere, "transfers: the position of the file", "[transfers]") {
    const auto lh = dev.alloc(kMovedLength, std::vector{env().peer()});
    const File file = make_file(directory);
    file.write(0, make_pattern(100000, 8));
    auto args = file_args(lh, 0, file.fd(), 77, 30000);
    args.flags = LITE_FILE_POSITION;
    ::lseek(file.fd(), 10000, SEEK_SET);
    REQUIRE(move(dev, LITE_IOC_SENDFILE, args).bytes == 30000);
    REQUIRE(::lseek(file.fd(), 0, SEEK_CUR) == 40000);
    REQUIRE(!find_mismatch(read_lmr(dev, lh, 0, 30000), 8, 10000));
    REQUIRE(move(dev, LITE_IOC_RECVFILE, args).bytes == 30000);
    REQUIRE(::lseek(file.fd(), 0, SEEK_CUR) == 70000);
    REQUIRE(!find_mismatch(file.read(40000, 30000), 8, 10000));
    // With an offset the position stays.
    REQUIRE(send(dev, lh, 0, file, 5, 1000).bytes == 1000);
    REQUIRE(::lseek(file.fd(), 0, SEEK_CUR) == 70000);
}

TEST_CASE_METHOD(FilesEverywhere, "transfers: appending", "[transfers]") {
    const auto lh = dev.alloc(kMovedLength, std::vector{env().peer()});
    dev.write(lh, 0, make_pattern(300000, 9));
    const File file = make_file(directory);
    file.write(0, make_pattern(12345, 10));
    const File appending = open_again(file, O_WRONLY | O_APPEND);
    auto args = file_args(lh, 0, appending.fd(), 0, 300000);
    args.pages = 16;
    const auto moved = move(dev, LITE_IOC_RECVFILE, args);
    REQUIRE(moved.bytes == 300000);
    REQUIRE(moved.end == 312345);
    REQUIRE(file.size() == 312345);
    REQUIRE(!find_mismatch(file.read(0, 12345), 10));
    REQUIRE(!find_mismatch(file.read(12345, 300000), 9));
}

TEST_CASE_METHOD(FilesEverywhere, "transfers: files that are read and written directly",
                 "[transfers]") {
    const File file = make_file(directory);
    const int fd =
        ::open(("/proc/self/fd/" + std::to_string(file.fd())).c_str(), O_RDWR | O_DIRECT);
    if (fd < 0)  // tmpfs of 6.1
        return;
    const File direct(fd);
    const auto lh = dev.alloc(kMovedLength, std::vector{env().peer()});
    file.write(0, make_pattern(1 << 20, 11));
    REQUIRE(send(dev, lh, 1, direct, 8192, 500 * kPage).bytes == (1 << 20) - 8192);
    REQUIRE(!find_mismatch(read_lmr(dev, lh, 1, (1 << 20) - 8192), 11, 8192));
    REQUIRE(receive(dev, lh, 1, direct, 16384, 123 * kPage).bytes == 123 * kPage);
    REQUIRE(!find_mismatch(file.read(16384, 123 * kPage), 11, 8192));
    // Unaligned: as write(2).
    const Mapping aligned(2 * kPage);
    const bool can = ::pwrite(direct.fd(), aligned.data(), 5555, 1000) == 5555;
    REQUIRE(receive(dev, lh, 1, direct, 1000, 5555).error == (can ? ok : err(EINVAL)));
}

TEST_CASE_METHOD(Files, "transfers: files without pages", "[transfers]") {
    // What the kernel makes up as it is read arrives in pieces that begin and end anywhere.
    const auto lh = dev.alloc(kMovedLength, std::vector{env().peer()});
    for (const char* path : {"/proc/iomem", "/proc/crypto", "/proc/version"}) {
        INFO(path);
        const File file(path, O_RDONLY);
        std::vector<std::byte> wanted(kMovedLength);
        std::uint64_t length = 0;
        for (ssize_t n = 1; n > 0; length += static_cast<std::uint64_t>(n)) {
            n = ::pread(file.fd(), wanted.data() + length, kMovedLength - length,
                        static_cast<off_t>(length));
            REQUIRE(n >= 0);
        }
        wanted.resize(length);
        REQUIRE(length > 20);
        REQUIRE(send(dev, lh, 0, file, 0, kAll).bytes == length);
        REQUIRE(read_lmr(dev, lh, 0, length) == wanted);
        REQUIRE(send(dev, lh, 0, file, 15, length - 20).bytes == length - 20);
        wanted.resize(length - 5);
        wanted.erase(wanted.begin(), wanted.begin() + 15);
        REQUIRE(read_lmr(dev, lh, 0, length - 20) == wanted);
    }
}

TEST_CASE_METHOD(Files, "transfers: records fill sets", "[transfers]") {
    // A read of /proc gives whole records, less than a page. If each were a set, the kernel would
    // write the file again from its beginning for each, and records that change would be torn.
    const File locked = make_file(kMemfd);
    for (int i = 0; i < 4000; i++) {
        struct flock lock = {};
        lock.l_type = F_WRLCK;
        lock.l_start = 2 * i;
        lock.l_len = 1;
        REQUIRE(::fcntl(locked.fd(), F_SETLK, &lock) == 0);
    }
    const auto lh = dev.alloc(1 << 20, std::vector{env().peer()});
    const File file("/proc/locks", O_RDONLY);
    std::vector<std::byte> wanted(1 << 20);
    std::size_t length = 0;
    for (ssize_t n = 1; n > 0; length += static_cast<std::size_t>(n)) {
        n = ::read(file.fd(), wanted.data() + length, wanted.size() - length);
        REQUIRE(n >= 0);
    }
    wanted.resize(length);
    REQUIRE(length > 40 * kPage);
    const auto before = writes();
    REQUIRE(send(dev, lh, 0, file, 0, kAll).bytes == length);
    CHECK(writes() - before <= 20);
    REQUIRE(read_lmr(dev, lh, 0, length) == wanted);
}

TEST_CASE_METHOD(Files, "transfers: the library", "[transfers]") {
    constexpr std::uint64_t call = 16 << 20;  // that it moves at most in one
    constexpr std::uint64_t rest = 100000;
    lite::context node(static_cast<int>(env().indexes.front()));
    auto lmr = node.alloc({.length = call + rest, .nodes = {env().peer()}});
    const File file = make_file(kMemfd);
    file.write(0, make_pattern(lmr.length(), 12));
    std::vector<std::uint64_t> seen;
    const auto note = [&seen](std::uint64_t moved) { seen.push_back(moved); };
    REQUIRE(lite::send_file(node, lmr, 0, file.fd(), 0, lite::to_end, note) == lmr.length());
    REQUIRE(seen == std::vector<std::uint64_t>{call, call + rest, call + rest});
    std::vector<std::byte> got(2 * rest);
    lmr.read(call - rest, got);
    REQUIRE(!find_mismatch(got, 12, call - rest));

    const File copy = make_file(kMemfd);
    REQUIRE(lite::receive_file(node, lmr, 100, copy.fd(), 5) == lmr.length() - 100);
    REQUIRE(!find_mismatch(copy.read(5, lmr.length() - 100), 12, 100));

    // One byte too many: all that has room is moved, then the error tells.
    try {
        lite::send_file(node, lmr, call + 1, file.fd(), call);
        FAIL("no error");
    } catch (const lite::error& e) {
        REQUIRE(e.code() == std::errc::result_out_of_range);
        REQUIRE(e.transferred() == rest - 1);
    }

    std::int64_t at = 1000;
    REQUIRE(lite_sendfile(node.get(), lmr.handle(), 0, file.fd(), &at, 5000) == 5000);
    REQUIRE(at == 6000);
    REQUIRE(lite_recvfile(node.get(), lmr.handle(), 0, copy.fd(), &at, 5000) == 5000);
    REQUIRE(at == 11000);
    ::lseek(file.fd(), 2000, SEEK_SET);
    REQUIRE(lite_sendfile(node.get(), lmr.handle(), 0, file.fd(), nullptr, 500) == 500);
    REQUIRE(::lseek(file.fd(), 0, SEEK_CUR) == 2500);
    at = -1;
    REQUIRE(lite_sendfile(node.get(), lmr.handle(), 0, file.fd(), &at, 1) == -EINVAL);
    lite_ioc_file args{};
    REQUIRE(lite_file_submit(node.get(), LITE_IOC_OP, &args) == -EINVAL);
}
