// SPDX-License-Identifier: MIT
//
// All ways except that of registering parts of the file (registering_mover.cpp).
#include <fmt/format.h>
#include <lite/file.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "../memory.hpp"
#include "../net.hpp"
#include "arms/lite/lite_memory.hpp"
#include "file_mover.hpp"
#include "sample_file.hpp"

namespace perf {

namespace {

class LiteFileMover final : public FileMover {
  public:
    explicit LiteFileMover(const Target& target) : memory_(target) {}

    void send(int fd, std::uint64_t length, Shape shape) override {
        move(LITE_IOC_SENDFILE, fd, length, shape);
    }

    void receive(int fd, std::uint64_t length, Shape shape) override {
        move(LITE_IOC_RECVFILE, fd, length, shape);
    }

    void fetch(std::uint64_t offset, std::span<std::byte> to) override {
        check_lite(lite_read(memory_.context(), handle(), offset, to.data(), to.size()), "read");
    }

  private:
    lite_lh_t handle() const { return memory_.handle({Op::read, 0}); }

    void move(unsigned command, int fd, std::uint64_t length, Shape shape) const {
        lite_ioc_file arg{};
        arg.lh = handle();
        arg.fd = fd;
        arg.pages = shape.pages;
        arg.sets = shape.pipes;
        while (arg.offset < length) {
            arg.length = length - arg.offset;
            check_lite(lite_file_submit(memory_.context(), command, &arg), "move a file");
            if (!arg.moved)
                throw std::runtime_error("LITE: the file ends too early");
            arg.offset += arg.moved;
        }
    }

    LiteMemory memory_;
};

class TcpFileMover final : public FileMover {
  public:
    explicit TcpFileMover(const Target& target)
        : socket_(tcp_open(target.server, target.port, target.bytes)),
          buffer_(target.buffer_bytes()) {}

    void send(int fd, std::uint64_t length, Shape) override {
        const TcpRequest header{0, static_cast<std::uint32_t>(length), TcpOp::write, {}};
        if (::send(socket_.get(), &header, sizeof header, MSG_MORE | MSG_NOSIGNAL) !=
            static_cast<ssize_t>(sizeof header))
            throw_errno("TCP: send");
        off_t at = 0;
        while (static_cast<std::uint64_t>(at) < length) {
            const ssize_t sent =
                sendfile(socket_.get(), fd, &at, length - static_cast<std::uint64_t>(at));
            if (sent < 0 && errno != EINTR)
                throw_errno("TCP: sendfile");
            if (sent == 0)
                throw std::runtime_error("TCP: the file ends too early");
        }
        std::uint64_t answer = 0;
        receive_bytes(bytes_of(answer));
    }

    void receive(int fd, std::uint64_t length, Shape shape) override {
        request(0, length);
        // The server sends all at once, so the sockets limit what is in flight, not the shape.
        move_parts(
            length, shape, [](const Part&) {},
            [&](const Part& part) {
                const auto data = buffer_.bytes().first(part.length);
                receive_bytes(data);
                write_at(fd, data, part.offset);
            });
    }

    void fetch(std::uint64_t offset, std::span<std::byte> to) override {
        request(offset, to.size());
        receive_bytes(to);
    }

    /// sendfile(2) keeps pages of the file in the send buffer until they are acknowledged.
    std::uint64_t held(Shape) const override {
        int bytes = 0;
        socklen_t size = sizeof bytes;
        if (getsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUF, &bytes, &size))
            throw_errno("TCP: SO_SNDBUF");
        return static_cast<std::uint64_t>(bytes);
    }

  private:
    void request(std::uint64_t offset, std::uint64_t length) const {
        TcpRequest header{offset, static_cast<std::uint32_t>(length), TcpOp::read, {}};
        iovec part = iov_of(header);
        send_all(socket_.get(), {&part, 1});
    }

    void receive_bytes(std::span<std::byte> data) const {
        if (!receive_all(socket_.get(), data))
            throw std::runtime_error("TCP: the server closed the connection");
    }

    Fd socket_;
    Region buffer_;
};

}  // namespace

Shape shape_of(std::uint64_t file_bytes, Shape shape) {
    const std::uint64_t pages = (file_bytes + Shape::page - 1) / Shape::page;
    shape.pages = static_cast<unsigned>(std::min<std::uint64_t>(shape.pages, pages));
    const std::uint64_t parts = (pages + shape.pages - 1) / shape.pages;
    shape.pipes = static_cast<unsigned>(std::min<std::uint64_t>(shape.pipes, parts));
    return shape;
}

void CopyingMover::send(int fd, std::uint64_t length, Shape shape) {
    move_parts(
        length, shape,
        [&](const Part& part) {
            const std::uint64_t local = part.slot * shape.part_bytes();
            read_at(fd, transport_->buffer().subspan(local, part.length), part.offset);
            const Request request{Op::write, static_cast<std::uint32_t>(part.length), part.offset,
                                  local};
            transport_->post({&request, 1});
        },
        [&](const Part&) { transport_->collect(); });
}

void CopyingMover::receive(int fd, std::uint64_t length, Shape shape) {
    move_parts(
        length, shape,
        [&](const Part& part) {
            const Request request{Op::read, static_cast<std::uint32_t>(part.length), part.offset,
                                  part.slot * shape.part_bytes()};
            transport_->post({&request, 1});
        },
        [&](const Part& part) {
            transport_->collect();
            write_at(fd, transport_->buffer().subspan(part.slot * shape.part_bytes(), part.length),
                     part.offset);
        });
}

void CopyingMover::fetch(std::uint64_t offset, std::span<std::byte> to) {
    const std::span<std::byte> buffer = transport_->buffer();
    for (std::size_t done = 0; done < to.size();) {
        const std::size_t n = std::min(buffer.size(), to.size() - done);
        transport_->call({Op::read, static_cast<std::uint32_t>(n), offset + done});
        std::ranges::copy(buffer.first(n), to.begin() + static_cast<std::ptrdiff_t>(done));
        done += n;
    }
}

std::unique_ptr<FileMover> make_lite_file_mover(const Target& target) {
    return std::make_unique<LiteFileMover>(target);
}

std::unique_ptr<FileMover> make_tcp_file_mover(const Target& target) {
    return std::make_unique<TcpFileMover>(target);
}

}  // namespace perf
