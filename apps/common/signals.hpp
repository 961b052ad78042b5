// SPDX-License-Identifier: MIT
//
// Being interrupted in an orderly way: signals that end a program become an
// exception at a place that is ready for it, so that temporary files vanish and
// the terminal is left clean; then the program dies of the signal after all, so
// that its parent (a shell in a loop, say) sees what happened.
#pragma once

namespace tools {

// Thrown when a signal came. Not a std::exception: it is to be caught by
// main() alone.
struct interrupted {
    int signal;
};

// While it lives, SIGINT, SIGTERM, SIGHUP and SIGPIPE are noted instead of
// obeyed, unless they were ignored when the program started. Only the first of
// each: a second one kills at once, in case something hangs. System calls are
// interrupted (EINTR). One at a time in a process, in its main thread.
class interrupt_guard {
  public:
    interrupt_guard();
    interrupt_guard(const interrupt_guard&) = delete;
    interrupt_guard& operator=(const interrupt_guard&) = delete;
    ~interrupt_guard();

    // Whether a signal came since the process began to guard.
    static bool pending() noexcept;
    // Throws interrupted if so.
    static void check();
};

// While it lives, a signal is ignored, or does what it does by default, whatever
// the parent has left us.
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

// Ends the process as the signal would have without anybody noting it.
[[noreturn]] void die_of(int signal) noexcept;

}  // namespace tools
