// SPDX-License-Identifier: MIT
//
// What an arm of the comparison must be able to do. Workloads know nothing else about it.
//
// This side has a buffer, the other one or more regions. A request moves bytes between a place in
// the buffer and one in a region, so that an arm that must register memory registers it once, as an
// expert would, and none has an advantage from hot caches. An echo sends bytes of the buffer to a
// program at the other end, which sends them back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "slice.hpp"

namespace perf {

enum class Op : std::uint8_t { read = 1, write = 2, fetch_add = 3, echo = 4 };

/// Length of what an atomic works on.
inline constexpr std::uint32_t atomic_bytes = 8;

/// The longest request and reply of an echo: that is what LITE's calls can carry.
inline constexpr std::uint32_t echo_max = 64 << 10;

struct Request {
    Op op;
    std::uint32_t length;      ///< bytes; atomic_bytes for fetch_add, which adds 1
    std::uint64_t offset = 0;  ///< in the region
    std::uint64_t local = 0;   ///< in the buffer
    std::uint32_t region = 0;  ///< which one
};

/// A connection to remote memory by one technique. Used by one thread.
class Transport {
  public:
    Transport() = default;
    Transport(const Transport&) = delete;
    Transport& operator=(const Transport&) = delete;
    virtual ~Transport() = default;

    /// Name of the arm, as on the command line.
    virtual std::string_view name() const = 0;

    /// The local memory: what is written, and where reads arrive.
    virtual std::span<std::byte> buffer() = 0;

    virtual bool supports(Op op) const = 0;

    /// How many requests may be under way at once. 1: every call blocks.
    virtual unsigned max_window() const = 0;

    /// How many requests it wants to be given at once, where a window is to be kept under way: so
    /// that they share a doorbell, a completion, or a system call. At most @window.
    virtual unsigned batch(unsigned window) const {
        (void)window;
        return 1;
    }

    /// Whether more callers than CPUs are at work: who busily waits had better not.
    virtual void set_crowded(bool crowded) { (void)crowded; }

    /// Where the replies of echoes arrive, each at its beginning; empty: there are none.
    virtual std::span<std::byte> echoed() { return {}; }

    /// Start requests, which end together. One that blocks does all its work here.
    virtual void post(std::span<const Request> requests) = 0;

    /// Wait for those of the oldest post() under way, until their data is at its destination and
    /// this side knows it. Returns the old value of the word of the last, if that is an atomic.
    virtual std::uint64_t collect() = 0;

    /// One whole round trip.
    std::uint64_t call(const Request& request) {
        post({&request, 1});
        return collect();
    }

    /// The time of each of a slice's calls, one after the other, in microseconds.
    virtual std::vector<double> times(const Request& request, const Slice& slice);

    /// Calls per second with so many of them under way, which have neighbouring pieces of buffer
    /// and region, in turn.
    virtual double rate(const Request& request, unsigned window, const Slice& slice);
};

/// What the arms are to talk to.
struct Target {
    std::string server;         ///< host of "lite-perf serve"
    std::uint16_t port = 0;     ///< its port
    std::uint32_t node = 0;     ///< LITE node id; 0: none given
    unsigned lite_index = 0;    ///< the N of this machine's /dev/liteN
    std::uint64_t bytes = 0;    ///< size of a region
    std::uint32_t regions = 1;  ///< how many of them; more than 1: arms of many_regions only
    std::uint64_t local = 0;    ///< size of the buffer; 0: as a region
    unsigned window = 1;        ///< the most requests that will be under way

    std::uint64_t buffer_bytes() const { return local ? local : bytes; }
};

struct Arm {
    std::string_view name;
    std::unique_ptr<Transport> (*make)(const Target&);
    bool needs_node = false;        ///< a LITE node at the other end; else "lite-perf serve"
    bool one_sided = false;         ///< reads, writes and atomics
    bool echoes = false;            ///< (LITE: only if somebody serves them)
    bool many_regions = false;      ///< can have them
    bool in_kernel = false;         ///< calls are made there, by one thread
    bool by_default = false;        ///< measured if --arms does not say what is
    std::string_view variant_of{};  ///< the arm whose other end it talks to, in another way
};

/// The arms, in the order in which they are run and printed.
std::span<const Arm> arms();

/// Throws std::invalid_argument if there is none.
const Arm& arm_of(std::string_view name);

/// Connect one arm. Throws std::runtime_error or std::system_error saying what went wrong.
std::unique_ptr<Transport> make_transport(std::string_view name, const Target& target);

/// Show that an arm really moves data, both ways. Throws if it does not.
void verify(Transport& transport);

std::unique_ptr<Transport> make_lite_transport(const Target& target);
std::unique_ptr<Transport> make_lite_vector_transport(const Target& target);
std::unique_ptr<Transport> make_lite_uring_transport(const Target& target);
std::unique_ptr<Transport> make_verbs_transport(const Target& target);
std::unique_ptr<Transport> make_verbs_events_transport(const Target& target);
std::unique_ptr<Transport> make_tcp_transport(const Target& target);
std::unique_ptr<Transport> make_write_imm_transport(const Target& target);
std::unique_ptr<Transport> make_send_transport(const Target& target);
std::unique_ptr<Transport> make_grpc_transport(const Target& target);
std::unique_ptr<Transport> make_kernel_lite_transport(const Target& target);
std::unique_ptr<Transport> make_kernel_verbs_transport(const Target& target);

}  // namespace perf
