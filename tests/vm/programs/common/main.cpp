// SPDX-License-Identifier: MIT
// main() of the Catch2 programs: prints how to repeat the run, and ends test cases that take too
// long.
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include "catch.hpp"
#include "catch_session.hpp"
#include "env.hpp"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

namespace {

#if CATCH_VERSION_MAJOR >= 3
using Listener = Catch::EventListenerBase;
#else
using Listener = Catch::TestEventListenerBase;
#endif

std::array<char, 256> current_test;

void say(const char* text) { (void)!::write(STDERR_FILENO, text, std::strlen(text)); }

// Async-signal-safe. Ends the process: a system call that does not return leaves no gentler way to
// fail.
void on_alarm(int) {
    say("\nTIMEOUT in test case: ");
    say(current_test.data());
    say("\n");
    ::_exit(124);
}

struct Watchdog : Listener {
    using Listener::Listener;

    void testCaseStarting(const Catch::TestCaseInfo& info) override {
        std::snprintf(current_test.data(), current_test.size(), "%s", info.name.c_str());
        ::alarm(lite_test::env().timeout_s);
    }
    void testCaseEnded(const Catch::TestCaseStats&) override { ::alarm(0); }
};

}  // namespace

CATCH_REGISTER_LISTENER(Watchdog)

int main(int argc, char** argv) {
    ::signal(SIGALRM, on_alarm);
    try {
        const auto& env = lite_test::env();
        std::printf("node %u, seed %llu, scale %g, remote nodes:", env.self,
                    static_cast<unsigned long long>(env.seed), env.scale);
        for (const auto id : env.remote)
            std::printf(" %u", id);
        std::printf("\n");
        std::fflush(stdout);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s: cannot start: %s\n", argv[0], e.what());
        return 2;
    }
    return catch_session(argc, argv);
}
