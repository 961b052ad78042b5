// SPDX-License-Identifier: MIT
//
// The interface of the arms to workloads.
//
// This side has a buffer, the remote side one or more regions; a request moves bytes between them.
// So each arm registers memory only once, as an expert would, and no arm profits from hotter
// caches. An echo sends bytes of the buffer to a program at the other end, which sends them back.
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

inline constexpr std::uint32_t atomic_bytes = 8;

/// The longest request and reply of an echo.
inline constexpr std::uint32_t echo_max = 64 << 10;

struct Request {
    Op op;
    std::uint32_t length;      ///< bytes; atomic_bytes for fetch_add, which adds 1
    std::uint64_t offset = 0;  ///< in the region
    std::uint64_t local = 0;   ///< in the buffer
    std::uint32_t region = 0;  ///< index of the region
};

/// A connection to remote memory using one technique. Used by one thread.
class Transport {
  public:
    Transport() = default;
    Transport(const Transport&) = delete;
    Transport& operator=(const Transport&) = delete;
    virtual ~Transport() = default;

    /// Name of the arm, as on the command line.
    virtual std::string_view name() const = 0;

    /// The local memory: source of writes, destination of reads.
    virtual std::span<std::byte> buffer() = 0;

    virtual bool supports(Op op) const = 0;

    /// Maximum of requests in flight. 1: every call blocks.
    virtual unsigned max_window() const = 0;

    /// Requests to pass to post() at once when a window is kept in flight, so that they share a
    /// doorbell, a completion or a system call. At most @window.
    virtual unsigned batch(unsigned window) const {
        (void)window;
        return 1;
    }

    /// @crowded: there are more callers than CPUs, so busy waiting does harm.
    virtual void set_crowded(bool crowded) { (void)crowded; }

    /// Gives later requests a high priority, if the arm has priorities.
    virtual void set_urgent() {}

    /// Where replies to echoes arrive, each at offset 0; empty: the arm has no echoes.
    virtual std::span<std::byte> echoed() { return {}; }

    /// Starts requests that are collected together. A blocking arm executes them here.
    virtual void post(std::span<const Request> requests) = 0;

    /// Waits until the data of the oldest post() in flight is at its destination, and this side
    /// knows it. Returns the old value of the word if the last request is an atomic.
    virtual std::uint64_t collect() = 0;

    std::uint64_t call(const Request& request) {
        post({&request, 1});
        return collect();
    }

    /// The times of a slice's calls, made one after another, in microseconds.
    virtual std::vector<double> times(const Request& request, const Slice& slice);

    /// Calls per second with @window in flight, on adjacent pieces of buffer and region in turn.
    virtual double rate(const Request& request, unsigned window, const Slice& slice);
};

/// The other end of an arm, and the memory to use.
struct Target {
    std::string server;         ///< host of "lite-perf serve"
    std::uint16_t port = 0;     ///< its port
    std::uint32_t node = 0;     ///< LITE node id; 0: none given
    unsigned lite_index = 0;    ///< the N of this machine's /dev/liteN
    std::uint64_t bytes = 0;    ///< size of a region
    std::uint32_t regions = 1;  ///< number of regions; more than 1 needs an arm with many_regions
    std::uint64_t local = 0;    ///< size of the buffer; 0: that of a region
    unsigned window = 1;        ///< most requests in flight
    bool patient = false;       ///< the device is busy: verbs wait longer for acknowledgements

    std::uint64_t buffer_bytes() const { return local ? local : bytes; }
};

struct Arm {
    std::string_view name;
    std::unique_ptr<Transport> (*make)(const Target&);
    bool needs_node = false;        ///< needs a LITE node at the other end; else "lite-perf serve"
    bool one_sided = false;         ///< has reads, writes and atomics
    bool echoes = false;            ///< has echoes (LITE: only if served)
    bool many_regions = false;      ///< supports several regions
    bool in_kernel = false;         ///< calls are made by one thread in the kernel
    bool by_default = false;        ///< measured without --arms
    std::string_view variant_of{};  ///< arm with the same other end, used in another way
};

/// The arms, in the order of runs and tables.
std::span<const Arm> arms();

/// Throws std::invalid_argument for an unknown name.
const Arm& arm_of(std::string_view name);

/// Connects an arm. Throws std::runtime_error or std::system_error.
std::unique_ptr<Transport> make_transport(std::string_view name, const Target& target);

/// Throws if the arm does not move data correctly, both ways.
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
