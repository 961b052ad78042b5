// SPDX-License-Identifier: MIT
// The rate of transfers of one size, one after the other, in MB (10^6 bytes) per second:
//
//   bandwidth INDEX NODE read|write SIZE SECONDS [plain|skewed|huge|mapped]
//
// The last word describes the buffer: plain pages, not aligned, huge pages, or a mapped LMR of this
// node.
#include "../common/run_main.hpp"

#include <lite/lite.hpp>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <sys/mman.h>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t huge_page = 2U << 20;
constexpr std::size_t skew = 100;

class Buffer {
  public:
    Buffer(lite::context& node, std::size_t size, const std::string& kind) {
        if (kind == "mapped") {
            region_ = node.alloc({.length = size});
            map_ = region_->mmap(0, size);
            data_ = map_->as<std::byte>().data();
        } else {
            // Never unmapped, as the process ends soon.
            void* memory = ::mmap(nullptr, size + 2 * huge_page, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (memory == MAP_FAILED)
                throw std::system_error(errno, std::generic_category(), "mmap");
            ::madvise(memory, size + 2 * huge_page,
                      kind == "huge" ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
            const auto first = reinterpret_cast<std::uintptr_t>(memory);
            data_ = static_cast<std::byte*>(memory) + (-first & (huge_page - 1));
            if (kind == "skewed")
                data_ += skew;
            else if (kind != "plain" && kind != "huge")
                throw std::runtime_error("a buffer is plain, skewed, huge or mapped");
        }
        std::memset(data_, 1, size);
    }
    std::byte* data() const { return data_; }

  private:
    std::optional<lite::region> region_;
    std::optional<lite::memory_map> map_;
    std::byte* data_ = nullptr;
};

int run(const std::vector<std::string>& args) {
    if (args.size() < 5 || args.size() > 6 || (args[2] != "read" && args[2] != "write"))
        throw std::runtime_error("usage: bandwidth INDEX NODE read|write SIZE SECONDS [BUFFER]");
    lite::context node(std::stoi(args[0]));
    const std::size_t size = std::stoul(args[3]);
    const std::chrono::duration<double> limit(std::stod(args[4]));
    lite::region region =
        node.alloc({.length = size, .nodes = {static_cast<std::uint32_t>(std::stoul(args[1]))}});
    const Buffer buffer(node, size, args.size() > 5 ? args[5] : "plain");
    const std::span bytes(buffer.data(), size);
    const bool reading = args[2] == "read";
    const auto transfer = [&] { reading ? region.read(0, bytes) : region.write(0, bytes); };

    for (int i = 0; i < 3; i++)
        transfer();
    std::uint64_t done = 0;
    const auto begun = Clock::now();
    std::chrono::duration<double> took{};
    do {
        transfer();
        done += size;
        took = Clock::now() - begun;
    } while (took < limit);
    std::printf("%.3f\n", static_cast<double>(done) / took.count() / 1e6);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return lite_test::run_main("bandwidth", [&] { return run({argv + 1, argv + argc}); });
}
