// SPDX-License-Identifier: MIT
// Anonymous LMRs while nodes lose sight of each other.
//
//   anonymous INDEX HOME LENGTH [idle|COUNT]   makes an LMR at node HOME, through /dev/lite<INDEX>,
//                                              and says "running"; until a line comes on standard
//                                              input, writes and reads random parts of it (idle:
//                                              does nothing); with a COUNT, so many times, and
//                                              then says "enough"
//
// Then reads back its last writes, prints how often operations succeeded and how often the node
// could not be reached, and closes the LMR. It fails if the LMR is lost, or has wrong contents.
#include "common/data/pattern.hpp"
#include "common/process.hpp"
#include "common/raw.hpp"

#include <lite/lite.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

// The error of an operation on a node that is out of reach. The operation may have been carried
// out.
bool is_out_of_reach(int code) { return code == EHOSTDOWN || code == ETIMEDOUT || code == EIO; }

class User {
  public:
    User(int index, std::uint32_t home, std::uint64_t length)
        : node_(index),
          region_(node_.alloc({.length = length, .nodes = {{home}}})),
          length_(length) {}

    void round() {
        const std::uint64_t at = lite_test::mix(2 * rounds_) % length_;
        const std::uint64_t most = length_ - at;
        const std::uint64_t n = 1 + lite_test::mix(2 * rounds_ + 1) % most;
        const auto bytes = lite_test::make_pattern(n, rounds_);
        std::vector<std::byte> back(n);
        patiently([&] { region_.write(at, std::span(bytes)); });
        patiently([&] { region_.read(at, std::span(back)); });
        lite_test::expect(!lite_test::find_mismatch(back, rounds_), "own data");
        ++rounds_;
    }

    std::size_t rounds() const { return rounds_; }
    std::size_t missed() const { return missed_; }

  private:
    template <typename Operation>
    void patiently(Operation operation) {
        for (;;) {
            try {
                operation();
                return;
            } catch (const lite::error& e) {
                if (!is_out_of_reach(e.code().value()))
                    throw;
                ++missed_;
                // A pause, so that it does not ask again and again for as long as the node is away.
                std::this_thread::sleep_for(std::chrono::milliseconds(50));
            }
        }
    }

    lite::context node_;
    lite::region region_;
    std::uint64_t length_;
    std::size_t rounds_ = 0;
    std::size_t missed_ = 0;
};

void say(const char* word) {
    std::puts(word);
    std::fflush(stdout);
}

int use(int index, std::uint32_t home, std::uint64_t length, const std::string& how) {
    const bool idle = how == "idle";
    const std::size_t enough = idle ? 0 : std::strtoull(how.c_str(), nullptr, 0);
    User user(index, home, length);
    user.round();
    say("running");
    std::atomic<bool> over = false;
    std::jthread watcher([&] {
        (void)std::getchar();
        over = true;
        over.notify_all();
    });
    if (idle)
        over.wait(false);
    for (std::size_t done = 0; !over; ++done) {
        if (enough && done == enough) {
            say("enough");
            over.wait(false);
            break;
        }
        user.round();
    }
    user.round();
    std::printf("%zu rounds, %zu times out of reach\n", user.rounds(), user.missed());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4 && argc != 5)
        return 2;
    try {
        return use(std::atoi(argv[1]), static_cast<std::uint32_t>(std::atoi(argv[2])),
                   std::strtoull(argv[3], nullptr, 0), argc == 5 ? argv[4] : "");
    } catch (const std::exception& e) {
        std::printf("lost: %s\n", e.what());
        std::fflush(stdout);
        // Another thread still waits for standard input.
        std::_Exit(1);
    }
}
