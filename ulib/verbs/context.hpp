// SPDX-License-Identifier: MIT
//
// Opened devices: contexts whose operations are ours.
#pragma once

#include "progress.hpp"

#include <infiniband/verbs.h>

#include <memory>

namespace lite::verbs {

class device_context {
  public:
    // Takes a context over that was just opened. False: it stays as it is.
    static bool take_over(ibv_context* context);
    // nullptr: not one of ours.
    static std::shared_ptr<device_context> find(const ibv_context* context);
    // Before a context is closed.
    static void give_back(ibv_context* context);

    device_context(const ibv_context_ops& real, ibv_comp_channel* channel)
        : m_real(real), m_progress(channel) {}

    const ibv_context_ops& real() const { return m_real; }
    progress& events() { return m_progress; }

  private:
    const ibv_context_ops m_real;
    progress m_progress;
};

}  // namespace lite::verbs
