// SPDX-License-Identifier: MIT
//
// Threads of the library.
#pragma once

#include <thread>
#include <utility>

#include <csignal>

namespace lite::verbs {

// Starts a thread that handles no signals: they are for the program's.
template <typename F>
std::thread start_quiet(F&& body) {
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread started(std::forward<F>(body));
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
}

}  // namespace lite::verbs
