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
    // May a program ask for these IBV_QP_EX_WITH_*?
    static bool is_possible(uint64_t operations);
    // Makes the functions of a QP ours.
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
    // The list to be posted; nullptr: it is empty. Throws bad_alloc, also if one of those above had
    // no memory.
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
    part m_spare;            // for what there was no memory for
    part* m_last = nullptr;  // of the parts, or the spare one
    bool m_has_failed = false;
};

}  // namespace lite::verbs
