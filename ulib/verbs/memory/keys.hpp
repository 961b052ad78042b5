// SPDX-License-Identifier: MIT
//
// Keys (lkey and rkey) of unpinned registrations: which process of a node made it, and which of its
// registrations it is. The top bit tells them from the keys of the device, which registrations that
// fell back to it have.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace lite::verbs {

inline constexpr unsigned slot_bits = 14;
inline constexpr unsigned generation_bits = 5;
inline constexpr unsigned process_bits = 12;
inline constexpr uint32_t slots_max = 1U << slot_bits;
inline constexpr uint32_t generations = 1U << generation_bits;
inline constexpr uint32_t processes_max = 1U << process_bits;
static_assert(slot_bits + generation_bits + process_bits == 31);

constexpr bool is_own_key(uint32_t key) noexcept { return key >> 31; }

constexpr uint32_t make_key(uint32_t process, uint32_t slot, uint32_t generation) noexcept {
    return 1U << 31 | process << (slot_bits + generation_bits) | slot << generation_bits |
           generation;
}

constexpr uint32_t process_of(uint32_t key) noexcept {
    return key >> (slot_bits + generation_bits) & (processes_max - 1);
}

constexpr uint32_t slot_of(uint32_t key) noexcept {
    return key >> generation_bits & (slots_max - 1);
}

// Hands out the keys of one process. One that was given back is used again as late as possible, and
// then with another generation. Not thread-safe.
class key_maker {
  public:
    explicit key_maker(uint32_t process) : m_process(process) {}

    // A key, or nothing when all are in use.
    std::optional<uint32_t> take() {
        uint32_t slot = 0;
        if (m_generation.size() < slots_max) {
            slot = static_cast<uint32_t>(m_generation.size());
            m_generation.push_back(0);
        } else if (!m_free.empty()) {
            slot = m_free.front();
            m_free.pop_front();
        } else {
            return std::nullopt;
        }
        return make_key(m_process, slot, m_generation[slot]);
    }

    // Gives a key of take() back.
    void give(uint32_t key) {
        const uint32_t slot = slot_of(key);
        m_generation[slot] = static_cast<uint8_t>((m_generation[slot] + 1) % generations);
        m_free.push_back(slot);
    }

  private:
    uint32_t m_process;
    std::vector<uint8_t> m_generation;  // by slot, as far as slots were ever used
    std::deque<uint32_t> m_free;
};

}  // namespace lite::verbs
