// SPDX-License-Identifier: MIT
//
// The TCP arm: requests and answers on one connection, header and data in one system call. A write
// is answered once its data is in the server's region, like an RDMA write.
#include <stdexcept>

#include "memory.hpp"
#include "net.hpp"
#include "transport.hpp"

namespace perf {

namespace {

// With more, a client that is still sending could deadlock with a server that no longer receives.
constexpr unsigned pending_max = 64;

class TcpTransport final : public Transport {
  public:
    explicit TcpTransport(const Target& target)
        : socket_(tcp_open(target.server, target.port, target.bytes)),
          region_(target.buffer_bytes()),
          echoed_(echo_max) {}

    std::string_view name() const override { return "tcp"; }
    std::span<std::byte> buffer() override { return region_.bytes(); }
    std::span<std::byte> echoed() override { return echoed_.bytes(); }
    bool supports(Op) const override { return true; }
    unsigned max_window() const override { return pending_max; }

    void post(std::span<const Request> requests) override {
        for (const Request& request : requests) {
            TcpRequest header{request.offset, request.length, tcp_op(request.op), {}};
            iovec parts[2] = {iov_of(header),
                              {region_.bytes().data() + request.local, request.length}};
            const bool data = request.op == Op::write || request.op == Op::echo;
            send_all(socket_.get(), std::span(parts).first(data ? 2 : 1));
            pending_[(head_ + count_++) % pending_max] = request;
        }
    }

    std::uint64_t collect() override {
        const Request request = pending_[head_];
        head_ = (head_ + 1) % pending_max;
        count_--;
        std::uint64_t word = 0;
        const bool open = receive_all(
            socket_.get(), request.op == Op::read
                               ? region_.bytes().subspan(request.local, request.length)
                           : request.op == Op::echo ? echoed_.bytes().first(request.length)
                                                    : bytes_of(word));
        if (!open)
            throw std::runtime_error("TCP: the server closed the connection");
        return word;
    }

  private:
    Fd socket_;
    Region region_;
    Region echoed_;
    Request pending_[pending_max];
    unsigned head_ = 0;
    unsigned count_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_tcp_transport(const Target& target) {
    return std::make_unique<TcpTransport>(target);
}

}  // namespace perf
