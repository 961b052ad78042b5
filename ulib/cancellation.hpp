// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>

namespace lite::internal {

// While it exists, no function is a cancellation point of this thread: a cancelled thread unwinds
// its stack, and would end the process at a function that is noexcept.
class no_cancellation {
  public:
    no_cancellation() noexcept { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &m_was); }
    no_cancellation(const no_cancellation&) = delete;
    no_cancellation& operator=(const no_cancellation&) = delete;
    ~no_cancellation() { ::pthread_setcancelstate(m_was, nullptr); }

  private:
    int m_was = PTHREAD_CANCEL_ENABLE;
};

}  // namespace lite::internal
