// SPDX-License-Identifier: MIT
#include "support.hpp"

using namespace lite_test;

namespace {

// The same rule in arithmetic that cannot wrap.
int bounds_oracle(std::uint64_t offset, std::uint64_t length, std::uint64_t size) {
    __extension__ using Wide = unsigned __int128;
    if (length == 0)
        return -EINVAL;
    return Wide{offset} + length > size ? -ERANGE : 0;
}

int atomic_oracle(std::uint64_t offset, std::uint64_t length, std::uint64_t size) {
    if (length != 8 || offset % 8 != 0)
        return -EINVAL;
    return bounds_oracle(offset, length, size);
}

void compare(std::uint64_t offset, std::uint64_t length, std::uint64_t size) {
    const int bounds = lite_bounds_check(offset, length, size);
    const int atomic = lite_atomic_check(offset, length, size);
    if (bounds == bounds_oracle(offset, length, size) &&
        atomic == atomic_oracle(offset, length, size))
        return;
    CAPTURE(seed(), offset, length, size);
    CHECK(bounds == bounds_oracle(offset, length, size));
    CHECK(atomic == atomic_oracle(offset, length, size));
}

}  // namespace

TEST_CASE("bounds: the rules of the ABI") {
    CHECK(lite_bounds_check(0, 1, 1) == 0);
    CHECK(lite_bounds_check(99, 1, 100) == 0);
    CHECK(lite_bounds_check(0, 100, 100) == 0);
    CHECK(lite_bounds_check(0, 0, 100) == -EINVAL);
    CHECK(lite_bounds_check(100, 1, 100) == -ERANGE);
    CHECK(lite_bounds_check(99, 2, 100) == -ERANGE);
    CHECK(lite_bounds_check(~0ULL, 1, 100) == -ERANGE);
    CHECK(lite_bounds_check(~0ULL, 2, 100) == -ERANGE);
    CHECK(lite_bounds_check(1, ~0ULL, 100) == -ERANGE);
    // An empty region has no bytes.
    CHECK(lite_bounds_check(0, 1, 0) == -ERANGE);
}

TEST_CASE("bounds: atomics") {
    CHECK(lite_atomic_check(0, 8, 8) == 0);
    CHECK(lite_atomic_check(8, 8, 16) == 0);
    CHECK(lite_atomic_check(4, 8, 16) == -EINVAL);
    CHECK(lite_atomic_check(0, 4, 16) == -EINVAL);
    CHECK(lite_atomic_check(0, 0, 16) == -EINVAL);
    CHECK(lite_atomic_check(16, 8, 20) == -ERANGE);
    CHECK(lite_atomic_check(~7ULL, 8, ~0ULL) == -ERANGE);
}

TEST_CASE("bounds: every combination of edges agrees with wide arithmetic") {
    for (const auto offset : edges()) {
        for (const auto length : edges()) {
            for (const auto size : edges())
                compare(offset, length, size);
        }
    }
}

TEST_CASE("bounds: random numbers of all magnitudes agree with wide arithmetic") {
    Random random;
    for (int i = 0; i < 200000; ++i) {
        const auto size = random.magnitude();
        compare(random.magnitude(), random.magnitude(), size);
        // Close to the end.
        const auto offset = size - random.between(0, 16);
        compare(offset, random.between(0, 32), size);
        compare(offset & ~7ULL, 8, size);
    }
}
