// SPDX-License-Identifier: MIT
//
// The process's side of the queue of an inbox (<uapi/lite_inbox.h>): any number of
// threads take entries that the kernel puts there.
#pragma once

#include <uapi/lite_inbox.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace lite::internal {

class inbox_queue {
  public:
    enum class state { taken, empty, closed };

    inbox_queue() = default;
    inbox_queue(lite_inbox_control* control, std::uint32_t entries) noexcept
        : m_control(control),
          m_entries(reinterpret_cast<lite_inbox_entry*>(control + 1)),
          m_mask(entries - 1) {}

    // Takes the next entry. If it is empty, @seen is what the kernel had put there.
    state take(lite_inbox_entry& entry, std::uint64_t& seen) const noexcept {
        for (;;) {
            // In this order: the tail is not behind the head then.
            __u64 head = word(m_control->head).load(std::memory_order_acquire);
            if (head & LITE_INBOX_CLOSED)
                return state::closed;
            seen = tail();
            if (seen == head)
                return state::empty;
            copy(entry, m_entries[head & m_mask]);
            // If nobody has taken it meanwhile, it has not been written again either.
            if (word(m_control->head)
                    .compare_exchange_strong(head, head + 1, std::memory_order_acq_rel))
                return state::taken;
        }
    }

    // Has all that is before @tail been taken?
    bool is_empty(std::uint64_t tail) const noexcept {
        return word(m_control->head).load(std::memory_order_relaxed) == tail;
    }

    std::uint64_t tail() const noexcept {
        // With the kernel's release: the entries, and the requests.
        return word(m_control->tail).load(std::memory_order_acquire);
    }

  private:
    template <typename T>
    static std::atomic_ref<T> word(T& value) noexcept {
        return std::atomic_ref<T>(value);
    }

    // It may be written at the same time, and is then thrown away.
    static void copy(lite_inbox_entry& to, lite_inbox_entry& from) noexcept {
        constexpr std::size_t words = sizeof(lite_inbox_entry) / sizeof(__u64);
        __u64 values[words];
        auto* source = reinterpret_cast<__u64*>(&from);
        for (std::size_t i = 0; i < words; i++)
            values[i] = word(source[i]).load(std::memory_order_relaxed);
        std::memcpy(&to, values, sizeof(to));
    }

    lite_inbox_control* m_control = nullptr;
    lite_inbox_entry* m_entries = nullptr;
    std::uint64_t m_mask = 0;
};

}  // namespace lite::internal
