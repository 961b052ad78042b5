// SPDX-License-Identifier: MIT
// What both ends of the checker have: a device, queue pairs, and a TCP connection for all that is
// not under test. Plain verbs: nothing of LITE.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace verbs_check {

inline constexpr std::uint32_t kSends = 64;
inline constexpr std::uint32_t kReceives = 256;
inline constexpr std::uint32_t kMessageMax = 8192;
inline constexpr std::uint32_t kInline = 64;

inline void check(bool good, const std::string& what) {
    if (!good)
        throw std::runtime_error(what);
}

// The byte at a place of message or write @number.
inline std::uint8_t pattern(std::uint64_t number, std::uint64_t at) {
    return static_cast<std::uint8_t>((number * 0x9e3779b97f4a7c15 + at * 131) >> 24);
}

// Of bytes of both ends, to be compared.
inline std::uint64_t digest(const std::uint8_t* at, std::size_t length) {
    std::uint64_t hash = 14695981039346656037U;
    for (std::size_t i = 0; i < length; i++)
        hash = (hash ^ at[i]) * 1099511628211U;
    return hash;
}

// The clock's time.
inline double microseconds() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::micro>(now).count();
}

inline double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

// A TCP connection that carries structures.
class Wire {
  public:
    static Wire accept(int port);
    static Wire connect(const char* address, int port);
    explicit Wire(int fd) : fd_(fd) {}
    Wire(Wire&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
    ~Wire();

    void put(const void* data, std::size_t length);
    // False: the other end has closed it.
    bool get(void* data, std::size_t length);
    // The other end has closed it, and nothing is left to be read.
    bool is_closed() const;
    int fd() const { return fd_; }
    template <typename T>
    void put(const T& value) {
        put(&value, sizeof(value));
    }
    template <typename T>
    T get() {
        T value;
        check(get(&value, sizeof(value)), "the other end has gone");
        return value;
    }

  private:
    int fd_;
};

// A registered buffer.
struct Memory {
    Memory() = default;
    Memory(ibv_pd* pd, std::uint8_t* at, std::size_t length, unsigned access,
           std::uint64_t shift = 0);
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory();

    // A byte's address in work requests, of this process and of peers.
    std::uint64_t iova(std::uint64_t offset) const {
        return reinterpret_cast<std::uintptr_t>(at) + shift + offset;
    }
    ibv_sge sge(std::uint64_t offset, std::uint32_t length) const {
        return {iova(offset), length, mr->lkey};
    }
    // With the address in this process: for what is posted inline.
    ibv_sge sge_of_process(std::uint64_t offset, std::uint32_t length) const {
        return {iova(offset) - shift, length, mr->lkey};
    }

    std::uint8_t* at = nullptr;
    ibv_mr* mr = nullptr;
    std::uint64_t shift = 0;  // of iova() against the address in this process
};

struct Options {
    std::string device = "rxe0";
    int gid_index = 1;
    bool events = false;  // sleep for completions
    bool srq = false;
    bool is_soft = false;     // Soft-RoCE alone is under test
    std::uint64_t shift = 0;  // Memory::shift
};

ibv_context* open_device(const std::string& name);
// A new or reset queue pair, connected with another.
void make_ready(ibv_qp* qp, const ibv_gid& gid, std::uint32_t qpn, int gid_index);

// A device with a queue pair that may be connected again and again.
class Fabric {
  public:
    explicit Fabric(const Options& options);
    Fabric(const Fabric&) = delete;
    Fabric& operator=(const Fabric&) = delete;
    ~Fabric();

    // A new queue pair, connected with the other end's. @wire must live as long as this.
    void connect(Wire& wire);
    void receive(std::uint64_t id, const ibv_sge& sge);
    // Posts a list; its @n-th work request failed if the result is not 0.
    int post(std::vector<ibv_send_wr>& list);
    // Waits for one completion.
    ibv_wc wait();
    // None is there.
    bool is_quiet();

    ibv_pd* pd() const { return pd_; }
    ibv_qp* qp() const { return qp_; }

  private:
    Options options_;
    const Wire* wire_ = nullptr;
    ibv_context* context_ = nullptr;
    ibv_pd* pd_ = nullptr;
    ibv_comp_channel* channel_ = nullptr;
    ibv_cq* cq_ = nullptr;
    ibv_srq* srq_ = nullptr;
    ibv_qp* qp_ = nullptr;
    unsigned unacknowledged_ = 0;
};

// What the client asks the server for.
enum class Ask : std::uint32_t {
    reconnect,
    region,
    change_region,
    advise,
    free_region,
    digest,
    receive,
    expect,
    done
};

struct Request {
    Ask what;
    std::uint32_t access;
    std::uint64_t a, b, c;
};

struct Answer {
    std::uint64_t addr;
    std::uint64_t value;
    std::uint32_t rkey;
    std::uint32_t id;
};

// Of such a size the allocator has no memory, for this thread.
inline constexpr std::size_t nothing = SIZE_MAX;
extern thread_local constinit std::size_t refused;

int serve(const Options& options, int port, std::size_t bytes);
int use(const Options& options, const char* address, int port, std::uint64_t seed, int rounds,
        const std::string& what);
int loop(const Options& options, int rounds, const std::string& what);
int events(const Options& options, int rounds);
int failures(const Options& options);
int unreliable(const Options& options);
int registering(const Options& options, std::size_t bytes, int rounds);

}  // namespace verbs_check
