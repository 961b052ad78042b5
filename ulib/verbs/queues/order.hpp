// SPDX-License-Identifier: MIT
//
// The order of a send queue: pure rules, not thread-safe.
//
// Work requests have sequence numbers. "Real" ones are posted to the device's QP, which executes
// them in order; "LITE" ones are executed by a call that returns when they have taken effect. So a
// real one may be posted while earlier real ones are in flight, but a LITE one has to wait until
// all before it have completed.
//
//    freed <= finished <= started <= posted        (numbers of work requests, ever growing)
//
// A work request is finished when it has an outcome, and freed when the program has polled its
// completion or a later one: only then is there room for another.
#pragma once

#include <cstdint>
#include <vector>

namespace lite::verbs {

enum class wr_kind : uint8_t { real, lite };

enum class send_step : uint8_t {
    none,   // all is started
    post,   // post the next one to the device
    run,    // execute the next one with LITE
    flush,  // complete the next one as flushed
    wait,   // for the device to complete what is in flight
};

class send_order {
  public:
    explicit send_order(uint32_t capacity) : m_kinds(capacity) {}

    uint64_t room() const { return m_kinds.size() - (m_posted - m_freed); }

    // Adds a work request, if there is room(). Returns its number.
    uint64_t post(wr_kind kind) {
        m_kinds[index(m_posted)] = kind;
        return m_posted++;
    }

    send_step next() const {
        if (m_started == m_posted)
            return send_step::none;
        const bool in_flight = m_finished != m_started;
        if (m_failed)
            return in_flight ? send_step::wait : send_step::flush;
        if (m_kinds[index(m_started)] == wr_kind::real)
            return send_step::post;
        return in_flight ? send_step::wait : send_step::run;
    }

    // Number of the work request that next() is about.
    uint64_t upcoming() const { return m_started; }
    uint64_t oldest_unfinished() const { return m_finished; }
    uint64_t posted() const { return m_posted; }
    bool in_flight() const { return m_finished != m_started; }
    bool failed() const { return m_failed; }

    void start() { m_started++; }
    void finish() { m_finished++; }
    // All that is not started will be flushed.
    void fail() { m_failed = true; }
    // The program has polled the completion of @number: all up to it are free.
    void free_up_to(uint64_t number) {
        if (number + 1 > m_freed)
            m_freed = number + 1;
    }
    void reset() {
        m_posted = m_started = m_finished = m_freed = 0;
        m_failed = false;
    }

    uint64_t index(uint64_t number) const { return number % m_kinds.size(); }
    uint32_t capacity() const { return static_cast<uint32_t>(m_kinds.size()); }

  private:
    std::vector<wr_kind> m_kinds;
    uint64_t m_posted = 0;
    uint64_t m_started = 0;
    uint64_t m_finished = 0;
    uint64_t m_freed = 0;
    bool m_failed = false;
};

}  // namespace lite::verbs
