// SPDX-License-Identifier: MIT
// Names from a user, and immediate data from a peer.
#include "fuzz.hpp"

using namespace lite_fuzz;

namespace {

void check_name(const char* field, std::size_t size) {
    const int length = lite_name_check(field, size);
    if (length == -ENAMETOOLONG) {
        require(std::memchr(field, '\0', size) == nullptr, "a name with an end is not too long");
        return;
    }
    if (length < 0) {
        require(length == -EINVAL, "an errno that is not documented");
        return;
    }
    const auto n = static_cast<std::size_t>(length);
    require(n >= 1 && n < size && field[n] == '\0', "a length that is not the name's");
    for (std::size_t i = 0; i < n; ++i) {
        const auto byte = static_cast<unsigned char>(field[i]);
        require(byte >= 0x20 && byte != 0x7f, "a byte that no name may have");
    }
    require(lite_name_hash(field, n) == lite_name_hash(field, n), "a hash that changes");
}

void check_imm(std::uint32_t imm) {
    lite_imm_kind kind{};
    std::uint16_t ring = 0;
    std::uint16_t slot = 0;
    imm &= 0x7fffffff;  // C++ has no other values of the enumeration.
    lite_imm_decode(imm, &kind, &ring, &slot);
    require(lite_imm_encode(kind, ring, slot) == imm,
            "immediate data that changes in the round trip");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    check_imm(input.take<std::uint32_t>());
    const auto bytes = input.rest();
    if (input.size() > 0)
        check_name(reinterpret_cast<const char*>(bytes.get()), input.size());
    return 0;
}
