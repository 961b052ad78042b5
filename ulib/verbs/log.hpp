// SPDX-License-Identifier: MIT
//
// Messages on stderr: each fallback once, and with LITE_VERBS_DEBUG=1 what the library does.
#pragma once

namespace lite::verbs {

// Reports a fallback or a failure: once for each @what in a process, or always when debugging.
void say_once(const char* what, const char* why) noexcept;

bool is_debugging();

[[gnu::format(printf, 1, 2)]] void debug(const char* format, ...);

}  // namespace lite::verbs
