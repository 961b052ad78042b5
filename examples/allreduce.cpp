// SPDX-License-Identifier: MIT
//
// allreduce: sums up an array of doubles over several processes, in a ring. Each round uses fresh
// memory, as programs do that make a new array for each step.
//
//    allreduce NAME DEVICE RANK RANKS BYTES ROUNDS arena|register
//
// Start RANKS of them, with ranks from 0 on, on any nodes; DEVICE: the N of /dev/liteN. All have
// the sums after each round. With "arena" the memory is an arena's: the neighbour that writes into
// it opens its LMR once, and is told an offset in each round. With "register" memory is registered,
// and opened by the neighbour, in each round. Rank 0 prints the median time of a round in us.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/mman.h>

#include <lite/arena.hpp>
#include <lite/lite.hpp>
#include <lite/order.hpp>

namespace {

// What a rank's neighbours tell it, in an LMR of its own. Each word has one writer.
struct mailbox {
    std::uint64_t place;    // the last round, from 1, for which offset and chunk are set
    std::uint64_t offset;   // of the right neighbour's memory, in its LMR
    std::uint64_t chunk;    // number of that LMR
    std::uint64_t arrived;  // steps that the left neighbour has written, in all rounds
};

// Memory of one round: the array, and room for what arrives in each step.
class memory {
  public:
    virtual ~memory() = default;
    virtual std::byte* begin(std::size_t size, std::uint64_t round) = 0;
    virtual void end() = 0;
    virtual bool stays() const = 0;  // may peers keep its LMR open?
    std::uint64_t offset = 0, chunk = 0;
};

class arena_memory final : public memory {
  public:
    arena_memory(lite::context& node, const std::string& name, std::size_t size)
        : m_arena(node, name, size, 0666) {}

    std::byte* begin(std::size_t size, std::uint64_t) override {
        m_size = size;
        m_data = static_cast<std::byte*>(m_arena.allocate(size, 4096));
        const auto range = m_arena.register_range({m_data, size});
        offset = range.offset;
        chunk = range.chunk;
        m_key = range.key;
        return m_data;
    }
    void end() override {
        m_arena.deregister(m_key);
        m_arena.deallocate(m_data, m_size, 4096);
    }
    bool stays() const override { return true; }

  private:
    lite::arena m_arena;
    std::byte* m_data = nullptr;
    std::size_t m_size = 0;
    std::uint64_t m_key = 0;
};

class registered_memory final : public memory {
  public:
    registered_memory(lite::context& node, std::string name)
        : m_node(node), m_name(std::move(name)) {}

    std::byte* begin(std::size_t size, std::uint64_t round) override {
        m_size = (size + 4095) / 4096 * 4096;
        void* data =
            ::mmap(nullptr, m_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (data == MAP_FAILED)
            throw std::bad_alloc();
        m_data = static_cast<std::byte*>(data);
        chunk = round;
        m_lmr.emplace(
            m_node.register_memory({m_data, m_size}, m_name + '.' + std::to_string(round), 0666));
        return m_data;
    }
    void end() override {
        m_lmr.reset();
        ::munmap(m_data, m_size);
    }
    bool stays() const override { return false; }

  private:
    lite::context& m_node;
    std::string m_name;
    std::byte* m_data = nullptr;
    std::size_t m_size = 0;
    std::optional<lite::registration> m_lmr;
};

template <typename T>
T load(const T& word) {
    return std::atomic_ref(const_cast<T&>(word)).load(std::memory_order_acquire);
}

void await(const std::uint64_t& word, std::uint64_t value) {
    while (load(word) < value)
        std::this_thread::yield();
}

lite::region open(lite::context& node, const std::string& name) {
    for (;;) {
        try {
            return node.map(name);
        } catch (const lite::error& e) {
            if (e.code() != std::errc::no_such_file_or_directory)
                throw;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    }
}

class ring {
  public:
    ring(lite::context& node, const std::string& name, unsigned rank, unsigned ranks)
        : m_node(node),
          m_name(name),
          m_rank(rank),
          m_ranks(ranks),
          m_own(node.alloc(
              {.name = name + ".box" + std::to_string(rank), .length = 4096, .mode = 0666})),
          m_map(m_own.mmap()),
          m_box(m_map.as<mailbox>()[0]),
          m_left(open(node, name + ".box" + std::to_string((rank + ranks - 1) % ranks))),
          m_right(open(node, name + ".box" + std::to_string((rank + 1) % ranks))) {}
    ring(const ring&) = delete;
    ring& operator=(const ring&) = delete;
    ~ring() {
        try {
            m_node.free(m_name + ".box" + std::to_string(m_rank));
        } catch (const lite::error&) {
        }
    }

    // One round: fills a fresh array with @value, sums up, and checks that all sums are @wanted.
    void round(memory& mem, std::size_t count, double value, double wanted) {
        m_round++;
        const std::size_t part = count / m_ranks;
        const std::size_t steps = m_ranks - 1;
        auto* data =
            reinterpret_cast<double*>(mem.begin((count + steps * part) * sizeof(double), m_round));
        double* room = data + count;
        std::fill_n(data, count, value);
        // Tells the left neighbour where to write, and waits to be told by the right one.
        const std::array<std::uint64_t, 2> where{mem.offset, mem.chunk};
        put(m_left, offsetof(mailbox, offset), std::as_bytes(std::span(where)));
        lite::fence(m_node, m_left);
        tell(m_left, offsetof(mailbox, place), m_round);
        await(m_box.place, m_round);
        lite::region& peer = target(load(m_box.chunk));
        const std::uint64_t base = load(m_box.offset);

        // Reduce: each part passes all ranks, and is complete at the last one. Then spread it.
        for (std::size_t step = 0; step < 2 * steps; step++) {
            const bool reduce = step < steps;
            const std::size_t out = (m_rank + 2 * m_ranks - step) % m_ranks;
            const std::size_t in = (out + m_ranks - 1) % m_ranks;
            const std::size_t to = reduce ? count + step * part : out * part;
            put(peer, base + to * sizeof(double),
                std::as_bytes(std::span(data + out * part, part)));
            lite::fence(m_node, peer);
            tell(m_right, offsetof(mailbox, arrived), ++m_sent);
            await(m_box.arrived, m_sent);
            for (std::size_t i = 0; reduce && i < part; i++)
                data[in * part + i] += room[step * part + i];
        }
        for (std::size_t i = 0; i < part * m_ranks; i++) {
            if (data[i] != wanted)
                throw std::runtime_error("wrong sum");
        }
        // All that the left neighbour sends has arrived: nothing writes into this memory any more.
        if (!mem.stays())
            m_peers.clear();
        mem.end();
    }

  private:
    static void put(lite::region& to, std::uint64_t at, std::span<const std::byte> bytes) {
        to.write(at, bytes);
    }
    static void tell(lite::region& box, std::size_t at, std::uint64_t value) {
        box.write(at, std::as_bytes(std::span(&value, 1)));
    }

    // The right neighbour's memory, opened when first needed.
    lite::region& target(std::uint64_t chunk) {
        const auto it = m_peers.find(chunk);
        if (it != m_peers.end())
            return it->second;
        std::string name = m_name + ".data" + std::to_string((m_rank + 1) % m_ranks);
        if (chunk)
            name += '.' + std::to_string(chunk);
        return m_peers.emplace(chunk, open(m_node, name)).first->second;
    }

    lite::context& m_node;
    std::string m_name;
    unsigned m_rank, m_ranks;
    lite::region m_own;
    lite::memory_map m_map;
    mailbox& m_box;
    lite::region m_left, m_right;
    std::map<std::uint64_t, lite::region> m_peers;
    std::uint64_t m_round = 0, m_sent = 0;
};

int run(std::span<char*> words) {
    const std::string name = words[0], mode = words[6];
    const auto number = [&](std::size_t i) { return std::strtoull(words[i], nullptr, 0); };
    const auto rank = static_cast<unsigned>(number(2)), ranks = static_cast<unsigned>(number(3));
    if (rank >= ranks || !number(5) || (mode != "arena" && mode != "register"))
        throw std::invalid_argument(
            "RANK must be below RANKS, ROUNDS at least 1, and the memory "
            "arena or register");
    const std::size_t count = number(4) / sizeof(double) / ranks * ranks;
    lite::context node(static_cast<int>(number(1)));
    const std::string data = name + ".data" + std::to_string(rank);
    std::unique_ptr<memory> mem;
    if (mode == "arena")
        mem = std::make_unique<arena_memory>(node, data, 2 * number(4) + (2 << 20));
    else
        mem = std::make_unique<registered_memory>(node, data);
    ring all(node, name, rank, ranks);
    std::vector<double> times;
    for (std::size_t i = 0; i < number(5); i++) {
        const auto begin = std::chrono::steady_clock::now();
        all.round(*mem, count, rank + 1.0, ranks * (ranks + 1) / 2.0);
        const std::chrono::duration<double, std::micro> took =
            std::chrono::steady_clock::now() - begin;
        times.push_back(took.count());
    }
    std::ranges::sort(times);
    if (!rank)
        std::cout << times[times.size() / 2] << '\n';
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 8) {
        std::cerr << "usage: allreduce NAME DEVICE RANK RANKS BYTES ROUNDS arena|register\n";
        return 2;
    }
    try {
        return run(std::span(argv + 1, 7));
    } catch (const std::exception& e) {
        std::cerr << "allreduce: " << e.what() << '\n';
        return 1;
    }
}
