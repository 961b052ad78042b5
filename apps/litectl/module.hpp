// SPDX-License-Identifier: MIT
//
// Loads the kernel module.
#pragma once

namespace tools {

// Runs modprobe. Throws failure with its message, and a hint to load the module by hand.
void load_module();

}  // namespace tools
