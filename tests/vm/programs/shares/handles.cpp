// SPDX-License-Identifier: MIT
// Handles of one LMR, as many as a user gets.
//
//   handles fill INDEX NAME SPARE    opens the LMR, through one file after the other, until the
//   user
//                                    gets no more handles; prints how many. After a line it closes
//                                    SPARE of them, and maps the LMR until that is refused, or
//                                    twice as often; prints how often, the errno that ended that,
//                                    or 0, and "mapped". Keeps all until its input ends
//   handles map INDEX NAME COUNT     opens the LMR, and maps it COUNT times, or until that is
//                                    refused; prints the same
#include "common/raw.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

using lite_test::Device;
using lite_test::Errno;

void say(const std::string& text) {
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
}

std::uint64_t open_all(const Device& device, const std::string& name) {
    for (std::uint64_t n = 0;; n++) {
        auto map = lite_test::map_args(name, LITE_RIGHT_READ);
        const auto result = device.call(LITE_IOC_MAP, &map);
        if (result.value == EMFILE)
            return n;
        if (result.value)
            throw std::runtime_error(std::string("map: ") + std::strerror(result.value));
    }
}

// Maps an LMR COUNT times, or until that is refused.
void map_often(const Device& device, std::uint64_t lh, std::uint64_t count) {
    lite_ioc_mmap args{};
    args.size = sizeof(args);
    args.lh = lh;
    args.length = 1;
    args.prot = LITE_PROT_READ;
    std::uint64_t mapped = 0;
    Errno result;
    while (mapped < count && !(result = device.call(LITE_IOC_MMAP, &args)).value)
        mapped++;
    say(std::to_string(mapped) + " " + std::to_string(result.value) + " mapped");
}

int map(unsigned index, const std::string& name, std::uint64_t count) {
    const Device device(index);
    map_often(device, device.map(name, LITE_RIGHT_READ), count);
    return 0;
}

int fill(unsigned index, const std::string& name, std::uint64_t spare) {
    const Device mapper(index);
    const auto lh = mapper.map(name, LITE_RIGHT_READ);
    std::vector<std::uint64_t> spares;
    while (spares.size() < spare)
        spares.push_back(mapper.map(name, LITE_RIGHT_READ));
    std::vector<Device> files;
    std::uint64_t opened = 1 + spare;
    std::uint64_t more = 0;
    do {
        more = open_all(files.emplace_back(index), name);
        opened += more;
    } while (more);
    say(std::to_string(opened));
    char c;
    if (::read(0, &c, 1) != 1)
        return 1;
    for (const auto each : spares)
        mapper.unmap(each);
    map_often(mapper, lh, 2 * spare);
    while (::read(0, &c, 1) > 0) {
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5)
        return 2;
    const std::string what = argv[1];
    const auto index = static_cast<unsigned>(std::stoul(argv[2]));
    try {
        if (what == "fill")
            return fill(index, argv[3], std::stoul(argv[4]));
        if (what == "map")
            return map(index, argv[3], std::stoul(argv[4]));
    } catch (const std::exception& e) {
        std::fprintf(stderr, "handles: %s\n", e.what());
        return 1;
    }
    return 2;
}
