// SPDX-License-Identifier: MIT
#include "shadow.hpp"

#include "pattern.hpp"

#include <algorithm>
#include <bit>
#include <sstream>

namespace lite_test {
namespace {

constexpr std::uint64_t kPageSize = 4096;

}  // namespace

TransferStream::TransferStream(const Plan& plan) : plan_(plan), random_(mix(plan.seed)) {
    // Boundaries between the shares of two nodes, and possible ends of the largest contiguous
    // pieces.
    const auto share = (plan.lmr_length + plan.n_nodes - 1) / plan.n_nodes;
    const auto whole = (share + kPageSize - 1) / kPageSize * kPageSize;
    for (auto at = whole; at < plan.lmr_length && plan.n_nodes > 1; at += whole)
        seams_.push_back(at);
    for (std::uint64_t at = 2 << 20; at < plan.lmr_length; at += 2 << 20)
        seams_.push_back(at);
    seams_.push_back(plan.lmr_length);
    seams_.push_back(0);
}

// Not std::uniform_int_distribution: its results may differ between libraries, and these numbers
// are used on several machines.
std::uint64_t TransferStream::below(std::uint64_t limit) { return random_() % limit; }

std::uint64_t TransferStream::random_length() {
    const auto most = std::min(plan_.max_length, plan_.lmr_length);
    if (below(16) == 0)
        return most;
    // Every order of magnitude is equally likely.
    const auto bits = below(static_cast<std::uint64_t>(std::bit_width(most)));
    return std::min(most, (std::uint64_t{1} << bits) + below(std::uint64_t{1} << bits));
}

std::uint64_t TransferStream::random_offset(std::uint64_t length) {
    const auto last = plan_.lmr_length - length;
    if (below(2) == 0)
        return below(last + 1);
    // Chosen so that the transfer crosses a seam, or begins or ends at it.
    const auto seam = seams_[below(seams_.size())];
    const auto before = below(length + 1);
    return std::min(last, seam > before ? seam - before : 0);
}

Transfer TransferStream::next() {
    Transfer transfer{};
    transfer.kind = below(3) == 0 ? Transfer::Kind::read : Transfer::Kind::write;
    transfer.length = random_length();
    transfer.offset = random_offset(transfer.length);
    transfer.pattern = random_();
    return transfer;
}

Shadow::Shadow(const Plan& plan) : Shadow(plan.lmr_length) {
    TransferStream stream(plan);
    for (std::size_t i = 0; i < plan.count; ++i)
        apply(stream.next());
}

void Shadow::apply(const Transfer& transfer) {
    if (transfer.kind == Transfer::Kind::write)
        fill_pattern(std::span(bytes_).subspan(transfer.offset, transfer.length), transfer.pattern);
}

std::string compare(std::span<const std::byte> actual, std::span<const std::byte> wanted,
                    std::uint64_t offset) {
    if (std::equal(actual.begin(), actual.end(), wanted.begin(), wanted.end()))
        return "";
    const auto [here, there] =
        std::mismatch(actual.begin(), actual.end(), wanted.begin(), wanted.end());
    const auto first = static_cast<std::size_t>(here - actual.begin());
    std::size_t wrong = 0;
    std::size_t last = first;
    for (auto i = first; i < actual.size(); ++i) {
        if (actual[i] != wanted[i]) {
            ++wrong;
            last = i;
        }
    }
    std::ostringstream text;
    text << wrong << " bytes differ, the first at offset " << offset + first << ", the last at "
         << offset + last << "; at the first: " << std::hex << std::to_integer<int>(actual[first])
         << " instead of " << std::to_integer<int>(wanted[first]);
    return text.str();
}

}  // namespace lite_test
