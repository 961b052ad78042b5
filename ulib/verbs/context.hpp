// SPDX-License-Identifier: MIT
//
// Opened devices: contexts (ibv_context) with operations of the library.
#pragma once

#include "completions/progress.hpp"

#include <infiniband/verbs.h>

#include <memory>

namespace lite::verbs {

class device_context {
  public:
    // Replaces the operations of a context that was just opened. False: it is unchanged.
    static bool take_over(ibv_context* context);
    // nullptr: the library has not taken the context over.
    static std::shared_ptr<device_context> find(const ibv_context* context);
    // Forgets a context, and ends its thread. Must be called before it is closed.
    static void give_back(ibv_context* context);

    using create_qp_ex_function = ibv_qp* (*)(ibv_context*, ibv_qp_init_attr_ex*);

    device_context(const ibv_context_ops& real, create_qp_ex_function create_qp_ex,
                   ibv_comp_channel* channel)
        : m_real(real), m_create_qp_ex(create_qp_ex), m_progress(channel) {}

    const ibv_context_ops& real() const { return m_real; }
    // nullptr: the device cannot make extended QPs.
    create_qp_ex_function real_create_qp_ex() const { return m_create_qp_ex; }
    progress& events() { return m_progress; }

  private:
    const ibv_context_ops m_real;
    const create_qp_ex_function m_create_qp_ex;
    progress m_progress;
};

}  // namespace lite::verbs
