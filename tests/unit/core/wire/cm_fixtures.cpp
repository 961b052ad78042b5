// SPDX-License-Identifier: MIT
// Private data that the RDMA CM carries.
#include "wire_fixtures.hpp"

namespace lite_test {
namespace {

lite_cm_hdr header(lite_cm_kind kind) {
    lite_cm_hdr hdr{};
    hdr.magic = cpu_to_le32(LITE_WIRE_MAGIC);
    hdr.version = LITE_WIRE_VERSION;
    hdr.kind = static_cast<std::uint8_t>(kind);
    hdr.nqps = 2;
    hdr.quirks = LITE_CM_QUIRKS;
    return hdr;
}

template <typename T>
PrivateData private_data_of(lite_cm_kind kind) {
    T data{};
    data.hdr = header(kind);
    return {kind, to_bytes(data)};
}

}  // namespace

std::vector<PrivateData> private_data() {
    return {
        private_data_of<lite_cm_hello>(LITE_CM_HELLO),
        private_data_of<lite_cm_challenge>(LITE_CM_CHALLENGE),
        private_data_of<lite_cm_connect>(LITE_CM_CONNECT),
        private_data_of<lite_cm_accept>(LITE_CM_ACCEPT),
        private_data_of<lite_cm_refuse>(LITE_CM_REFUSE),
    };
}

void poke(Bytes& bytes, std::size_t offset, std::size_t size, std::uint64_t value) {
    // Little-endian, like the wire.
    for (std::size_t i = 0; i < size; ++i)
        bytes.at(offset + i) = static_cast<std::byte>(value >> (8 * i));
}

}  // namespace lite_test
