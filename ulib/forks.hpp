// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>

namespace lite::internal {

// How many fork(2)s this process descends from: its number is not that of its parent, as process
// ids may be, in other namespaces.
inline unsigned forks = 0;
inline const int fork_handler = ::pthread_atfork(nullptr, nullptr, [] { forks++; });

}  // namespace lite::internal
