// SPDX-License-Identifier: MIT
//
// Threads of the library.
#pragma once

#include <cerrno>
#include <csignal>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

namespace lite::verbs {

// Starts a thread that blocks all signals but those of its own faults: a blocked one would end the
// process even if the program handles it. 0 or errno.
template <typename F>
int start_quiet(std::thread& started, F&& body) {
    int err = 0;
    sigset_t all, before;
    ::sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
        ::sigdelset(&all, fault);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        started = std::thread(std::forward<F>(body));
    } catch (const std::system_error& e) {
        err = e.code().value();
    } catch (const std::bad_alloc&) {
        err = ENOMEM;
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return err;
}

}  // namespace lite::verbs
