// SPDX-License-Identifier: MIT

#include "log.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <set>
#include <string>

#include <unistd.h>

namespace lite::verbs {
namespace {

void say(const char* text) {
    char line[400];
    const int n = std::snprintf(line, sizeof(line), "liblite-verbs[%d]: %s\n",
                                static_cast<int>(::getpid()), text);
    const size_t length =
        n < static_cast<int>(sizeof(line)) ? static_cast<size_t>(n) : sizeof(line) - 1;
    // One write(2), as several threads may write at the same time.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line, length);
}

}  // namespace

bool is_debugging() {
    static const bool on = [] {
        // NOLINTNEXTLINE(concurrency-mt-unsafe)
        const char* text = std::getenv("LITE_VERBS_DEBUG");
        return text && *text && *text != '0';
    }();
    return on;
}

void say_once(const char* what, const char* why) noexcept {
    try {
        static auto& mutex = *new std::mutex;
        static auto& said = *new std::set<std::string>;
        const std::lock_guard lock(mutex);
        if (!said.insert(what).second && !is_debugging())
            return;
    } catch (const std::bad_alloc&) {
        // Not remembered, so it may be said again.
    }
    char text[300];
    std::snprintf(text, sizeof(text), "%s: %s", what, why);
    say(text);
}

void debug(const char* format, ...) {
    if (!is_debugging())
        return;
    char text[300];
    va_list args;
    va_start(args, format);
    std::vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    say(text);
}

}  // namespace lite::verbs
