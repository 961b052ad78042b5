// SPDX-License-Identifier: MIT
// Prints a well-formed request of every kind: name, number, and payload in hexadecimal.
#include "wire_fixtures.hpp"

#include <cstdio>

int main() {
    for (const auto& message : lite_test::requests()) {
        std::printf("%s %u ", message.label, unsigned{message.call});
        for (const std::byte byte : message.payload)
            std::printf("%02x", std::to_integer<unsigned>(byte));
        std::puts("");
    }
}
