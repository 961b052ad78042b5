// SPDX-License-Identifier: MIT
//
// Histories for the checker's own tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "history.hpp"

namespace lin {

struct Shape {
    std::uint32_t processes = 4;  ///< each has at most one operation under way
    std::size_t operations = 100;
    std::vector<Kind> kinds;
    std::uint64_t values = 1000;  ///< operands are below this
    double lost = 0;              ///< share of operations with unknown answers
};

/// A linearizable history: each operation happens at a moment between its begin and its end.
std::vector<Operation> right_history(const Shape& shape, std::mt19937_64& random);

/// A few operations with any answers at any times; most such histories are not linearizable.
std::vector<Operation> any_history(std::size_t operations, bool lock, std::mt19937_64& random);

/// Tries each order of the operations known to have happened and any subset of the others. For few
/// operations.
bool brute_force(const std::vector<Operation>& operations);

}  // namespace lin
