// SPDX-License-Identifier: MIT

#include "signals.hpp"

#include <array>
#include <csignal>
#include <cstdlib>

#include <unistd.h>

namespace tools {
namespace {

constexpr std::array guarded = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

// File scope, for the signal handler.
volatile std::sig_atomic_t caught;

void note(int signal) { caught = signal; }

}  // namespace

interrupt_guard::interrupt_guard() {
    caught = 0;
    for (const int signal : guarded) {
        struct sigaction action {};
        ::sigaction(signal, nullptr, &action);
        if (action.sa_handler == SIG_IGN)
            continue;
        action = {};
        action.sa_handler = note;
        // No SA_RESTART: a read() that waits for a user must return.
        action.sa_flags = static_cast<int>(SA_RESETHAND);
        ::sigaction(signal, &action, nullptr);
    }
}

interrupt_guard::~interrupt_guard() {
    for (const int signal : guarded) {
        struct sigaction action {};
        ::sigaction(signal, nullptr, &action);
        if (action.sa_handler == note)
            ::signal(signal, SIG_DFL);
    }
}

bool interrupt_guard::pending() noexcept { return caught; }

void interrupt_guard::forget() noexcept { caught = 0; }

void interrupt_guard::check() {
    if (caught)
        throw interrupted{caught};
}

signal_setting::signal_setting(int signal, handler to) noexcept
    : m_signal(signal), m_before(::signal(signal, to)) {}

signal_setting::~signal_setting() { ::signal(m_signal, m_before); }

void die_of(int signal) noexcept {
    ::signal(signal, SIG_DFL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    ::raise(signal);
    ::_exit(128 + signal);
}

}  // namespace tools
