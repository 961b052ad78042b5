// SPDX-License-Identifier: MIT
// What the fuzzers of kernel/core share.
#pragma once

extern "C" {
#include "core/bounds.h"
#include "core/extent.h"
#include "core/name.h"
#include "core/rights.h"
#include "core/ring.h"
#include "core/spread.h"
#include "wire/imm.h"
#include "wire/wire.h"
#include "wire/wire_pack.h"
#include "wire/wire_rpc.h"
}

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace lite_fuzz {

// Like assert(), but never compiled out.
inline void require(bool condition, const char* what) {
    if (condition)
        return;
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
}

// Takes values from the front of the input, and zeroes when that is used up.
class Input {
  public:
    Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

    template <typename T>
    T take() {
        T value{};
        const auto n = size_ < sizeof(T) ? size_ : sizeof(T);
        std::memcpy(&value, data_, n);
        data_ += n;
        size_ -= n;
        return value;
    }
    bool empty() const { return size_ == 0; }
    std::size_t size() const { return size_; }

    // The rest, in a block of exactly its size, so that the address sanitizer sees reads beyond it.
    std::unique_ptr<std::uint8_t[]> rest() const {
        auto copy = std::make_unique<std::uint8_t[]>(size_);
        if (size_ > 0)
            std::memcpy(copy.get(), data_, size_);
        return copy;
    }

  private:
    const std::uint8_t* data_;
    std::size_t size_;
};

}  // namespace lite_fuzz
