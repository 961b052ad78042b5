// SPDX-License-Identifier: MIT
// A random sequence of transfers that can be derived again from its seed, and the model of an LMR's
// contents after it. One process carries the sequence out; any other process, anywhere, computes
// the contents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace lite_test {

struct Transfer {
    enum class Kind { read, write };
    Kind kind;
    std::uint64_t offset;
    std::uint64_t length;
    std::uint64_t pattern;  // seed of the data of a write
};

// The parameters of a sequence; equal plans make equal sequences.
struct Plan {
    std::uint64_t seed = 0;
    std::uint64_t lmr_length = 0;
    std::uint64_t max_length = 16 << 20;  // of a transfer
    std::uint32_t n_nodes = 1;            // with parts of the LMR; transfers often cross the seams
    std::size_t count = 100;
};

class TransferStream {
  public:
    explicit TransferStream(const Plan& plan);
    Transfer next();

  private:
    std::uint64_t below(std::uint64_t limit);
    std::uint64_t random_length();
    std::uint64_t random_offset(std::uint64_t length);

    Plan plan_;
    std::mt19937_64 random_;
    std::vector<std::uint64_t> seams_;
};

class Shadow {
  public:
    explicit Shadow(std::uint64_t length) : bytes_(length) {}
    // The contents after the whole plan.
    explicit Shadow(const Plan& plan);

    void apply(const Transfer& transfer);
    std::span<const std::byte> bytes() const { return bytes_; }
    std::span<const std::byte> part(std::uint64_t offset, std::uint64_t length) const {
        return bytes().subspan(offset, length);
    }

  private:
    std::vector<std::byte> bytes_;
};

// "" if equal, else where the first difference is, and what it is.
std::string compare(std::span<const std::byte> actual, std::span<const std::byte> wanted,
                    std::uint64_t offset);

}  // namespace lite_test
