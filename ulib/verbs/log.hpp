// SPDX-License-Identifier: MIT
//
// What the library says on stderr: fallbacks once each, and with LITE_VERBS_DEBUG=1 what it does.
#pragma once

namespace lite::verbs {

// Something that is not unpinned, or not done by LITE: said once for each @what in a process.
void say_once(const char* what, const char* why) noexcept;

bool is_debugging();

[[gnu::format(printf, 1, 2)]] void debug(const char* format, ...);

}  // namespace lite::verbs
