// SPDX-License-Identifier: MIT
// Unpinned memory, a model of it, and lists of operations that change both: for operations.cpp.
#pragma once

#include "memory.hpp"

#include <lite/lite.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace unpinned {

using Bytes = std::vector<std::byte>;

inline constexpr std::size_t kChunk = 64 * kPage;
inline constexpr std::size_t kChunks = 4;
inline constexpr std::size_t kSize = kChunks * kChunk;

// Compares a result, or a negative errno.
void expect(long seen, long wanted, const std::string& what);

// Throws if bytes differ; @at: the offset of the first one.
void expect_same(std::span<const std::byte> has, std::span<const std::byte> wanted, std::size_t at,
                 const std::string& what);

// An operation, and what must come of it.
struct Wanted {
    lite_op op = {};
    std::uint64_t result = 0;  // of reads, writes, sets and copies with an error: at most
    int error = 0;
    Bytes bytes = {};  // that it writes or reads
    Bytes read = {};   // what it must read
};
using List = std::vector<Wanted>;

// Another LMR that takes part, and the bytes in it.
struct Other {
    lite_lh_t lh = 0;
    const Range* memory = nullptr;  // if it is unpinned
    Bytes model = {};
};

// A user of one node, with unpinned memory of another one. The operations of a list may be executed
// in any order, or at the same time.
class Memory {
  public:
    // Within so many bytes before a page that is missing, operations begin that want it, too.
    static constexpr std::size_t kAround = 100;

    Memory(int owner, int user, int third, std::uint64_t seed);

    lite_ctx* user() const { return user_.get(); }
    lite_lh_t lh() const { return lh_; }
    const Range& range() const { return range_; }
    const std::vector<Other>& others() const { return others_; }
    std::uint64_t random() { return random_(); }

    Bytes some(std::size_t length);
    // The process fills its memory.
    void fill(std::size_t at, std::size_t length);
    // Of the model.
    void put(std::size_t at, std::span<const std::byte> bytes);
    std::span<const std::byte> part(std::size_t at, std::size_t length) const;

    // Before each list.
    void begin();
    // Of the last list: bits of the chunks that it wants, and an LMR that it changes, or NULL.
    unsigned used() const { return used_; }
    void use(std::size_t at, std::size_t length);
    const Other* changed() const { return changed_; }

    List small();
    List writing();
    List reading();
    List copying();
    List backward();
    List forward();
    // A fence, and reads of what was there before it.
    void add_fence(List& list);
    // Without the page, all that want it fail with EFAULT, and others do not. forget() is for after
    // it: some of the bytes may have been changed.
    List without_memory(std::size_t page);
    void forget();
    // All that write to the page fail with EFAULT, and write nothing.
    List read_only(std::size_t page);

  private:
    lite_lh_t share(const Node& node, const char* name, const Range& range) const;
    lite_lh_t alloc(const Node& node) const;
    void write(Other& other, std::size_t at, const Bytes& bytes) const;
    Other& other();
    Wanted& push(List& list, lite_opcode opcode, std::size_t at, std::size_t length) const;
    void push_write(List& list, std::size_t at, std::size_t length);
    void push_read(List& list, std::size_t at, std::size_t length);
    void push_set(List& list, std::size_t at, std::size_t length);
    void push_checksum(List& list, std::size_t at, std::size_t length);
    Wanted& push_two(List& list, lite_opcode opcode, std::size_t at, lite_lh_t with,
                     std::size_t from, std::size_t length);
    void push_word(List& list, lite_opcode opcode, std::size_t at, bool equal = true);
    void push_words(List& list, std::size_t at);
    List within(std::size_t at, std::size_t from, std::size_t length);

    Node owner_;
    Node user_;
    Node third_;
    Range range_{kSize};
    Range second_{kSize};
    Range far_{kSize};
    lite_lh_t lh_;
    Bytes model_ = Bytes(kSize);  // of range_
    std::vector<Other> others_;
    std::mt19937_64 random_;
    std::size_t turn_ = 0;
    unsigned used_ = 0;
    const Other* changed_ = nullptr;
};

}  // namespace unpinned
