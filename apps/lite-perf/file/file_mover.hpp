// SPDX-License-Identifier: MIT
//
// Ways to move a file to memory of another machine, and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "../transport.hpp"

namespace perf {

/// How a file is moved: in parts (LITE: sets) of @pages, @pipes of them at a time (as in HotI'07).
struct Shape {
    unsigned pipes;
    unsigned pages;

    static constexpr std::uint64_t page = 4096;
    std::uint64_t part_bytes() const { return pages * page; }
    std::uint64_t bytes() const { return pipes * part_bytes(); }
    bool operator==(const Shape&) const = default;
};

/// Limits a shape to the pages and parts that a file of this size has.
Shape shape_of(std::uint64_t file_bytes, Shape shape);

/// The remote memory for a file, and a connection to it. Used by one thread.
class FileMover {
  public:
    FileMover() = default;
    FileMover(const FileMover&) = delete;
    FileMover& operator=(const FileMover&) = delete;
    virtual ~FileMover() = default;

    /// Copies the first @length bytes of a file to the start of the remote memory.
    virtual void send(int fd, std::uint64_t length, Shape shape) = 0;
    /// Copies bytes back into a file. Both return when all bytes are at their destination.
    virtual void receive(int fd, std::uint64_t length, Shape shape) = 0;
    /// Reads the remote memory for checks, which are not measured.
    virtual void fetch(std::uint64_t offset, std::span<std::byte> to) = 0;

    /// Most bytes of memory on this machine, in buffers or of the file, that a transfer of this
    /// shape pins or keeps from being reclaimed.
    virtual std::uint64_t held(Shape shape) const { return shape.bytes(); }
};

/// LITE_IOC_SENDFILE and LITE_IOC_RECVFILE, with sets of the given shape.
std::unique_ptr<FileMover> make_lite_file_mover(const Target& target);

/// Sends by read(2) into the transport's buffer and writes from there; receives by reads and
/// write(2). The target's buffer (local) and window must be enough for all shapes.
class CopyingMover final : public FileMover {
  public:
    explicit CopyingMover(std::unique_ptr<Transport> transport)
        : transport_(std::move(transport)) {}

    void send(int fd, std::uint64_t length, Shape shape) override;
    void receive(int fd, std::uint64_t length, Shape shape) override;
    void fetch(std::uint64_t offset, std::span<std::byte> to) override;

  private:
    std::unique_ptr<Transport> transport_;
};

/// Sends by sendfile(2) to "lite-perf serve", which answers when it has all; receives bytes and
/// does write(2). Only receiving depends on the shape.
std::unique_ptr<FileMover> make_tcp_file_mover(const Target& target);

/// Maps and registers each part of the file, and deregisters it after an RDMA write. Only sends.
std::unique_ptr<FileMover> make_registering_mover(const Target& target);

/// A part of a file, moved in a slot: a buffer or registration that one part uses at a time.
struct Part {
    std::uint64_t offset;
    std::uint64_t length;
    unsigned slot;
};

/// Calls @begin for each part in order, and @end in the same order. At most shape.pipes parts are
/// begun and not ended, each in a slot of its own.
template <typename Begin, typename End>
void move_parts(std::uint64_t length, Shape shape, Begin&& begin, End&& end) {
    const std::uint64_t size = shape.part_bytes();
    const std::uint64_t count = (length + size - 1) / size;
    auto part = [&](std::uint64_t i) {
        const std::uint64_t offset = i * size;
        return Part{offset, std::min(size, length - offset),
                    static_cast<unsigned>(i % shape.pipes)};
    };
    std::uint64_t ended = 0;
    for (std::uint64_t begun = 0; begun < count; begun++) {
        if (begun - ended == shape.pipes)
            end(part(ended++));
        begin(part(begun));
    }
    while (ended < count)
        end(part(ended++));
}

}  // namespace perf
