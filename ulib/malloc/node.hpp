// SPDX-License-Identifier: MIT
//
// Memory from the LITE node, and what the library says on stderr.
#pragma once

#include <cstddef>

namespace lite::large {

// Reads LITE_INDEX and LITE_ARENA_DEBUG, once: getenv(3) is unsafe while the program changes its
// environment, which it may do in another thread than the one that allocates.
void read_environment() noexcept;

// Maps an arena of @size bytes, whole blocks, with all pages present: if the node stops, they
// become ordinary memory. The open file is closed again, so the program cannot close it, or pass it
// on to a child. 0 or a negative errno.
int map_arena(std::size_t size, void*& at) noexcept;

// May map_arena() succeed later, after it has failed with this?
bool may_pass(int err) noexcept;

// Each of these is said once, if LITE_ARENA_DEBUG is set.
enum class event { used, no_node, refused, no_addresses, bad_setting, not_copied };
void say(event what, const char* text, const char* why) noexcept;

}  // namespace lite::large
