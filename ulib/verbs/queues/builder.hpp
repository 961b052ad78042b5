// SPDX-License-Identifier: MIT
//
// The work requests that a program is building for an extended QP.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

namespace lite::verbs {

class builder {
  public:
    // Does the library have all of these operations, IBV_QP_EX_WITH_*?
    static bool is_possible(uint64_t operations);
    // Replaces the functions of a QP.
    static void take_over(ibv_qp_ex* qp);

    // One thread builds at a time, from begin() to end().
    void begin() { m_mutex.lock(); }
    void end() {
        m_parts.clear();
        m_has_failed = false;
        m_mutex.unlock();
    }
    ibv_send_wr& add();
    ibv_send_wr& last() { return m_last->wr; }
    void add_sge(const ibv_sge* list, size_t n);
    void add_inline(const ibv_data_buf* list, size_t n);
    // The list to be posted; nullptr: empty. Throws bad_alloc, also for the functions above.
    ibv_send_wr* finish();

  private:
    struct part {
        ibv_send_wr wr = {};
        std::vector<ibv_sge> list;
        std::vector<char> data;
    };

    template <typename F>
    void attempt(F&& body);

    std::mutex m_mutex;
    std::deque<part> m_parts;
    part m_spare;            // for a part when memory has run out
    part* m_last = nullptr;  // the last one of m_parts, or m_spare
    bool m_has_failed = false;
};

}  // namespace lite::verbs
