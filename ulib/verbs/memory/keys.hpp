// SPDX-License-Identifier: MIT
//
// Keys (lkey and rkey) of unpinned registrations: they name a process of a node, and one of its
// registrations. The top bit tells them from the device's keys, which pinned registrations have.
#pragma once

#include <cstdint>
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

// Slots that always stay free, so that no key is reused before all their generations were used.
inline constexpr uint32_t slots_kept = 1024;

// Hands out the keys of one process. A slot is reused as late as possible, and then with another
// generation. Not thread-safe.
class key_maker {
  public:
    explicit key_maker(uint32_t process) : m_process(process) {}

    // A key, or nothing when too many are in use.
    std::optional<uint32_t> take() {
        uint32_t slot = 0;
        if (m_n_used == slots_max - slots_kept)
            return std::nullopt;
        if (m_slots.size() < slots_max) {
            slot = static_cast<uint32_t>(m_slots.size());
            m_slots.push_back({});
        } else {
            slot = m_first;
            m_first = m_slots[slot].next;
        }
        m_n_used++;
        return make_key(m_process, slot, m_slots[slot].generation);
    }

    // Gives a key of take() back. Allocates nothing: it is also called when memory has run out.
    void give(uint32_t key) noexcept {
        const uint32_t slot = slot_of(key);
        m_slots[slot].generation = (m_slots[slot].generation + 1) % generations;
        m_slots[slot].next = none;
        (m_first == none ? m_first : m_slots[m_last].next) = slot;
        m_last = slot;
        m_n_used--;
    }

  private:
    static constexpr uint32_t none = slots_max;
    struct place {
        uint32_t generation = 0;
        uint32_t next = none;  // the slot to be reused after this one
    };

    uint32_t m_process;
    uint32_t m_n_used = 0;
    std::vector<place> m_slots;  // those that were ever used
    uint32_t m_first = none;
    uint32_t m_last = none;
};

}  // namespace lite::verbs
