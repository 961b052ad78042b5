// SPDX-License-Identifier: MIT
//
// Native echoes, as a verbs expert would write them: one end of a connection.
//
//   write-imm   request and reply are RDMA writes with immediate into memory that the other end
//               has registered for them; receives without a buffer are posted in advance
//   send        request and reply are sent; receives with a buffer are posted in advance
//
// Short messages are inline; one send in many is signalled; completions are polled. A message is
// sent back from where it arrived.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "arms/verbs/rdma.hpp"
#include "memory.hpp"
#include "net.hpp"

namespace perf {

enum class EchoMode : std::uint32_t { write_imm = 1, send = 2 };

/// Private data of both RDMA CM messages: identification, and where the other end can write to.
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
    /// @id is bound to a device. Receives complete in @receive_cq.
    EchoEnd(CmId id, EchoMode mode, ibv_cq* receive_cq);

    /// Most receives posted, and so most completions of a connection in its receive CQ.
    static constexpr unsigned receives = 16;

    rdma_cm_id* id() const { return id_.get(); }
    EchoHello hello() const;
    void learn(const EchoHello& peer) { peer_ = peer; }

    /// Memory that post() can send from.
    std::span<std::byte> out() const;

    /// Sends a message from out() or from where the last one was received. The message sent before
    /// must have arrived.
    void post(std::span<const std::byte> message);

    /// The message of a completed receive; valid until the next one is received.
    std::span<const std::byte> received(const ibv_wc& wc);

  private:
    void post_receive(unsigned buffer);

    // In order of creation; destroyed in reverse.
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
    bool any_ = false;   ///< there is a last message
};

}  // namespace perf
