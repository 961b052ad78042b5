// SPDX-License-Identifier: MIT
//
// Parses words that should be addresses, maybe with ports.

#include "common/endpoint.hpp"
#include "common/error.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

void require(bool condition) {
    if (!condition)
        std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view word(reinterpret_cast<const char*>(data), size);
    try {
        const auto endpoint = tools::parse_endpoint(word);
        require(!endpoint.host.empty());
        require(endpoint.port.value_or(1) != 0);
        // A numeric address that is printed and parsed again stays the same.
        if (const auto address = tools::ip_address::from_text(endpoint.host)) {
            const auto port = endpoint.port.value_or(18500);
            const auto again = tools::parse_endpoint(tools::to_string(*address, port));
            require(again.port == port);
            require(tools::ip_address::from_text(again.host) == address);
        }
    } catch (const tools::usage_error& e) {
        require(e.what()[0] != '\0');
    }
    return 0;
}
