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

/// How a file is divided: into parts (LITE: sets) of so many pages, of which so many are moved at a
/// time (HotI'07: pipes).
struct Shape {
    unsigned pipes;
    unsigned pages;

    static constexpr std::uint64_t page = 4096;
    std::uint64_t part_bytes() const { return pages * page; }
    std::uint64_t bytes() const { return pipes * part_bytes(); }
    bool operator==(const Shape&) const = default;
};

/// What a shape comes to if a file has no more pages and parts than that.
Shape shape_of(std::uint64_t file_bytes, Shape shape);

/// The remote memory for a file, and a connection to it. Used by one thread.
class FileMover {
  public:
    FileMover() = default;
    FileMover(const FileMover&) = delete;
    FileMover& operator=(const FileMover&) = delete;
    virtual ~FileMover() = default;

    /// Copies the first @length bytes of a file to the start of the remote memory. Returns when all
    /// are there.
    virtual void send(int fd, std::uint64_t length, Shape shape) = 0;
    /// The other way: returns when all are in the file.
    virtual void receive(int fd, std::uint64_t length, Shape shape) = 0;
    /// Reads the remote memory; not to be measured.
    virtual void fetch(std::uint64_t offset, std::span<std::byte> to) = 0;

    virtual bool receives() const { return true; }
    /// Most bytes of memory on this machine, in buffers or of the file, that a transfer of this
    /// shape pins or keeps from being reclaimed.
    virtual std::uint64_t held(Shape shape) const { return shape.bytes(); }
};

/// lite_sendfile() and lite_recvfile().
std::unique_ptr<FileMover> make_lite_file_mover(const Target& target);

/// read(2) into parts of a transport's buffer, and writes from there; or reads and write(2).
/// target.local and target.window are to be enough for all shapes.
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

/// sendfile(2) to "lite-perf serve", which puts the bytes into memory and answers; or bytes from
/// there, and write(2). Only receiving depends on the shape.
std::unique_ptr<FileMover> make_tcp_file_mover(const Target& target);

/// Maps and registers each part of the file, and deregisters it after an RDMA write. Only sends.
std::unique_ptr<FileMover> make_registering_mover(const Target& target);

/// Moves a part of a file at @offset, of @length bytes, by the slot @slot.
struct Part {
    std::uint64_t offset;
    std::uint64_t length;
    unsigned slot;
};

/// Begins all parts of a file in order, with shape.pipes of them at a time in slots of their own,
/// and ends them in order.
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
