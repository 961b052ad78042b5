// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>

namespace lite::internal {

// The number of fork(2)s from the first process to this one. It tells a child from its parent where
// process ids do not, as in another namespace.
inline unsigned forks = 0;
inline const int fork_handler = ::pthread_atfork(nullptr, nullptr, [] { forks++; });

}  // namespace lite::internal
