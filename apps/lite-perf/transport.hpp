// SPDX-License-Identifier: MIT
//
// What an arm of the comparison must be able to do. Workloads know nothing else about it.
//
// Both sides have a region of the same size. A request moves bytes between the same offset of the
// local and of the remote region, so that an arm that must register memory registers it once, as
// an expert would, and none has an advantage from hot caches. An echo sends bytes of the local
// region to a program at the other end, which sends them back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace perf {

enum class Op : std::uint8_t { read = 1, write = 2, fetch_add = 3, echo = 4 };

/// Length of what an atomic works on.
inline constexpr std::uint32_t atomic_bytes = 8;

/// The longest request and reply of an echo: that is what LITE's calls can carry.
inline constexpr std::uint32_t echo_max = 64 << 10;

struct Request {
    Op op;
    std::uint32_t length;  ///< bytes; atomic_bytes for fetch_add, which adds 1
    std::uint64_t offset;  ///< in both regions
};

struct Target;

/// A connection to remote memory by one technique. Used by one thread.
class Transport {
  public:
    Transport() = default;
    Transport(const Transport&) = delete;
    Transport& operator=(const Transport&) = delete;
    virtual ~Transport() = default;

    /// Name of the arm, as on the command line.
    virtual std::string_view name() const = 0;

    /// The local region: what is written, and where reads arrive.
    virtual std::span<std::byte> buffer() = 0;

    virtual bool supports(Op op) const = 0;

    /// How many requests may be under way at once. 1: every call blocks.
    virtual unsigned max_window() const = 0;

    /// Where the replies of echoes arrive, each at its beginning; empty: there are none.
    virtual std::span<std::byte> echoed() { return {}; }

    /// Start a request. One that blocks does all its work here.
    virtual void issue(const Request& request) = 0;

    /// Wait for the oldest request under way, until its data is at its destination and this side
    /// knows it. Returns the word's old value for an atomic, otherwise 0.
    virtual std::uint64_t wait() = 0;

    /// One whole round trip.
    std::uint64_t call(const Request& request) {
        issue(request);
        return wait();
    }

    /// A connection for echoes, for each of several threads; 0 is this one. They are made when they
    /// are first asked for, and stay.
    Transport& caller(unsigned i) {
        while (others_.size() < i)
            others_.push_back(another_());
        return i ? *others_[i - 1] : *this;
    }

  private:
    friend std::unique_ptr<Transport> make_transport(std::string_view name, const Target& target);

    std::function<std::unique_ptr<Transport>()> another_;
    std::vector<std::unique_ptr<Transport>> others_;
};

/// What the arms are to talk to.
struct Target {
    std::string server;       ///< host of "lite-perf serve"
    std::uint16_t port = 0;   ///< its port
    std::uint32_t node = 0;   ///< LITE node id; 0: none given
    unsigned lite_index = 0;  ///< the N of this machine's /dev/liteN
    std::uint64_t bytes = 0;  ///< size of the regions
    unsigned window = 1;      ///< the most requests the workloads keep under way
    unsigned callers = 1;     ///< the most threads that call at once
};

/// The arms, in the order in which they are run and printed.
std::span<const std::string_view> transport_names();

/// Connect one arm. Throws std::runtime_error or std::system_error saying what went wrong.
std::unique_ptr<Transport> make_transport(std::string_view name, const Target& target);

std::unique_ptr<Transport> make_lite_transport(const Target& target);
std::unique_ptr<Transport> make_verbs_transport(const Target& target);
std::unique_ptr<Transport> make_tcp_transport(const Target& target);
std::unique_ptr<Transport> make_write_imm_transport(const Target& target);
std::unique_ptr<Transport> make_send_transport(const Target& target);
std::unique_ptr<Transport> make_grpc_transport(const Target& target);

}  // namespace perf
