// SPDX-License-Identifier: MIT
//
// Native echoes, as somebody who knows verbs would write them: one end of a connection.
//
//   write-imm   request and reply are RDMA writes with immediate into memory that the other end
//               has registered for them; receives without a buffer are posted ahead
//   send        request and reply are sent; receives with a buffer are posted ahead
//
// Short messages go inline; one send in many is signalled; completions are polled for. A message is
// sent back from where it arrived.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "memory.hpp"
#include "net.hpp"
#include "rdma.hpp"

namespace perf {

enum class EchoMode : std::uint32_t { write_imm = 1, send = 2 };

/// Private data of both RDMA CM messages of a connection: who I am, and where you can write to.
struct EchoHello {
    Hello hello;
    EchoMode mode;
    std::uint32_t rkey;
    std::uint64_t address;

    bool valid() const {
        return is_valid(hello) && (mode == EchoMode::write_imm || mode == EchoMode::send);
    }
};
static_assert(sizeof(EchoHello) == 40 && std::is_trivially_copyable_v<EchoHello>);

/// RDMA CM port of echoes, next to that of one-sided operations.
constexpr std::uint16_t echo_port(std::uint16_t port) {
    return static_cast<std::uint16_t>(port + 1);
}

class EchoEnd {
  public:
    /// @id has a device. Its receives complete in @receive_cq.
    EchoEnd(CmId id, EchoMode mode, ibv_cq* receive_cq);

    /// Completions in a receive CQ at any time.
    static constexpr unsigned receives = 16;

    rdma_cm_id* id() const { return id_.get(); }
    EchoHello hello() const;
    /// What the other end has said.
    void learn(const EchoHello& peer) { peer_ = peer; }

    /// Memory that post() can send from.
    std::span<std::byte> out() const;

    /// Send a message from out() or from where the last one was received. The one that was sent
    /// before it must have arrived.
    void post(std::span<const std::byte> message);

    /// Where a message is that a receive has completed for, until the next one is received.
    std::span<const std::byte> received(const ibv_wc& wc);

  private:
    void post_receive(unsigned buffer);

    // In the order of creation; destroyed from the last to the first.
    CmId id_;
    EchoMode mode_;
    Region region_;
    CompletionQueue send_cq_;
    MemoryRegion memory_;
    QueuePair qp_;
    unsigned inline_bytes_ = 0;
    EchoHello peer_{};
    unsigned posted_ = 0;
    bool signalled_ = false;
    unsigned last_ = 0;  ///< buffer of the last message
    bool any_ = false;   ///< there was one
};

}  // namespace perf
