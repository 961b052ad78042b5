// SPDX-License-Identifier: MIT
//
// Orderly interruption: a signal that ends the program is thrown as an exception at safe points, so
// that temporary files are removed and the terminal is left clean. Then the program dies of the
// signal, so that its parent (a shell in a loop) sees it.
#pragma once

namespace tools {

// Thrown after a signal. Not a std::exception: only main() catches it.
struct interrupted {
    int signal;
};

// While it lives, SIGINT, SIGTERM, SIGHUP and SIGPIPE are noted instead of obeyed, unless they were
// ignored when it was made. A second signal of one kind kills at once, in case something hangs.
// System calls fail with EINTR. One guard at a time per process, in its main thread.
class interrupt_guard {
  public:
    interrupt_guard();
    interrupt_guard(const interrupt_guard&) = delete;
    interrupt_guard& operator=(const interrupt_guard&) = delete;
    ~interrupt_guard();

    // Has a signal come since the last guard was made, or since forget()?
    static bool pending() noexcept;
    static void forget() noexcept;
    // Throws interrupted if a signal is pending.
    static void check();
};

// While it lives, a signal is ignored or has its default action, whatever the parent has set.
class signal_setting {
  public:
    using handler = void (*)(int);
    // @to: SIG_IGN or SIG_DFL
    signal_setting(int signal, handler to) noexcept;
    signal_setting(const signal_setting&) = delete;
    signal_setting& operator=(const signal_setting&) = delete;
    ~signal_setting();

  private:
    int m_signal;
    handler m_before;
};

// Ends the process as the signal does by default.
[[noreturn]] void die_of(int signal) noexcept;

}  // namespace tools
