// SPDX-License-Identifier: MIT
//
// liblite for C++20: files straight into regions, and back.
//
//	auto data = node.map("data");
//	lite::send_file(node, data, 0, fd, 0, lite::to_end,
//	                [](std::uint64_t moved) { std::cerr << moved << '\r'; });
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>

#include <lite/file.h>
#include <lite/lite.hpp>

namespace lite {

// As a length: up to the end of the file, or of the region.
inline constexpr std::uint64_t to_end = std::numeric_limits<std::uint64_t>::max();

// Size and number of the sets in which the kernel moves pages; 0: its defaults.
struct file_sets {
    std::uint32_t pages = 0;  // of a set
    std::uint32_t count = 0;  // at a time
};

namespace detail {

// Bytes moved between two reports of progress.
inline constexpr std::uint64_t file_part = 16U << 20;

template <typename Progress>
std::uint64_t move_file(unsigned int command, const char* doing, const context& node,
                        const region& lmr, std::uint64_t offset, int fd, std::uint64_t file_offset,
                        std::uint64_t length, Progress&& progress, file_sets sets) {
    ::lite_ioc_file arg{};
    arg.lh = lmr.handle();
    arg.fd = fd;
    arg.file_offset = file_offset;
    arg.pages = sets.pages;
    arg.sets = sets.count;
    std::uint64_t moved = 0;
    do {
        arg.offset = offset + moved;
        arg.length = std::min(length - moved, file_part);
        const int err = lite_file_submit(node.get(), command, &arg);
        if (err)
            throw error(err, doing, moved);
        moved += arg.moved;
        progress(moved);
    } while (arg.moved && moved < length);
    return moved;
}

struct no_progress {
    void operator()(std::uint64_t) const noexcept {}
};

}  // namespace detail

// Writes up to @length bytes of file @fd, from @file_offset on, to a region of @node. Returns how
// many: fewer if the file ends before. @progress is called after each part with the bytes moved so
// far; what it throws ends the transfer.
// @throws error as lite_sendfile(), with transferred(); ERANGE also if the file is longer than the
// region
template <std::invocable<std::uint64_t> Progress = detail::no_progress>
std::uint64_t send_file(const context& node, region& to, std::uint64_t offset, int fd,
                        std::uint64_t file_offset = 0, std::uint64_t length = to_end,
                        Progress&& progress = {}, file_sets sets = {}) {
    return detail::move_file(LITE_IOC_SENDFILE, "send a file", node, to, offset, fd, file_offset,
                             length, progress, sets);
}

// Writes up to @length bytes of a region of @node to file @fd, at @file_offset. Returns how many:
// fewer if the region ends before.
// @throws error as lite_recvfile(), with transferred()
template <std::invocable<std::uint64_t> Progress = detail::no_progress>
std::uint64_t receive_file(const context& node, const region& from, std::uint64_t offset, int fd,
                           std::uint64_t file_offset = 0, std::uint64_t length = to_end,
                           Progress&& progress = {}, file_sets sets = {}) {
    return detail::move_file(LITE_IOC_RECVFILE, "receive a file", node, from, offset, fd,
                             file_offset, length, progress, sets);
}

}  // namespace lite
